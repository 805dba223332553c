//! The operator as its definition says: exact fractions, and every configuration tried.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::{CpuSet, RandomStream, Span};

use super::super::bounds::Bounds;
use super::super::component::Component;
use super::super::operator::Operator;
use super::super::solve::solve_coarsely;
use super::super::{components, groups, solve};
use super::times_if_long;
use crate::exact::whole;
use crate::{Placed, Sporadic, Steps};

pub(super) type Q = Ratio<BigInt>;

pub(super) fn q(number: i128) -> Q {
    Ratio::from_integer(number.into())
}

pub(super) fn zero() -> Q {
    q(0)
}

pub(super) fn or_zero(number: Q) -> Q {
    number.max(zero())
}

/// A component by the definitions of the document; affinities are bits.
pub(super) struct Naive {
    pub(super) costs: Vec<Q>,
    pub(super) rates: Vec<Q>,
    points: Vec<Q>,
    periods: Vec<Q>,
    pub(super) masks: Vec<u64>,
    pub(super) nodes: Vec<u64>,
    /// rho and beta, where CPUs are unavailable now and then.
    pub(super) lost: Option<(Q, Q)>,
}

/// As [`Bounds`], by task and by place in `nodes`.
pub(super) struct Point {
    pub(super) late: Vec<Q>,
    pub(super) blocked: Vec<Q>,
    pub(super) nearly_done: Vec<Q>,
}

/// X: a node and the children that are removed from it.
#[derive(Clone)]
pub(super) struct Set {
    pub(super) node: usize,
    pub(super) removed: Vec<u64>,
}

pub(super) fn inside(mask: u64, of: u64) -> bool {
    mask & !of == 0
}

pub(super) fn size(mask: u64) -> usize {
    mask.count_ones() as usize
}

/// All subsets of these items.
fn subsets<T: Clone>(items: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0u64..1 << items.len()).map(|bits| {
        let chosen = items
            .iter()
            .enumerate()
            .filter(|(place, _)| bits >> place & 1 == 1);
        chosen.map(|(_, item)| item.clone()).collect()
    })
}

impl Naive {
    fn tasks_below(&self, mask: u64) -> Vec<usize> {
        (0..self.masks.len())
            .filter(|&task| inside(self.masks[task], mask))
            .collect()
    }

    fn children(&self, node: usize) -> Vec<u64> {
        let around = self.nodes[node];
        let within = |mask: u64, of: u64| mask != of && inside(mask, of);
        let nodes = self.nodes.iter().copied();
        nodes
            .clone()
            .filter(|&mask| within(mask, around))
            .filter(|&mask| {
                !nodes
                    .clone()
                    .any(|other| within(mask, other) && within(other, around))
            })
            .collect()
    }

    /// Whether these can all run at the same time: Hall's condition for nested affinities.
    fn can_run_together(&self, tasks: &[usize]) -> bool {
        self.nodes.iter().all(|&node| {
            let below = tasks.iter().filter(|&&task| inside(self.masks[task], node));
            below.count() <= size(node)
        })
    }

    fn rank(&self, tasks: &[usize]) -> usize {
        let together = subsets(tasks).filter(|some| self.can_run_together(some));
        together.map(|some| some.len()).max().unwrap_or(0)
    }

    /// Bl.
    fn blockers(&self, node: usize) -> Vec<usize> {
        let mask = self.nodes[node];
        let around = (0..self.nodes.len()).filter(|&b| b != node && inside(mask, self.nodes[b]));
        if self.lost.is_some() {
            return around.collect();
        }
        around
            .filter(|&b| {
                let others: Vec<usize> = self
                    .tasks_below(self.nodes[b])
                    .into_iter()
                    .filter(|&task| !inside(self.masks[task], mask))
                    .collect();
                self.rank(&others) > size(self.nodes[b]) - size(mask)
            })
            .collect()
    }

    fn tasks_of(&self, set: &Set) -> Vec<usize> {
        let mut tasks = self.tasks_below(self.nodes[set.node]);
        tasks.retain(|&task| {
            !set.removed
                .iter()
                .any(|&gone| inside(self.masks[task], gone))
        });
        tasks
    }

    pub(super) fn cpus(&self, set: &Set) -> usize {
        size(self.nodes[set.node]) - set.removed.iter().map(|&gone| size(gone)).sum::<usize>()
    }

    fn running_max(&self, set: &Set) -> usize {
        let load: Q = self
            .tasks_of(set)
            .iter()
            .map(|&task| self.rates[task].clone())
            .sum();
        let cpus = q(self.cpus(set) as i128);
        let load = match &self.lost {
            Some((share, _)) => load + share * cpus,
            None => load,
        };
        usize::try_from(load.ceil().to_integer()).unwrap() - 1
    }

    /// All admissible sets of a node.
    pub(super) fn sets(&self, node: usize) -> Vec<Set> {
        let children = self.children(node);
        let sets = subsets(&children).map(|removed| Set { node, removed });
        sets.filter(|set| self.running_max(set) < self.cpus(set))
            .collect()
    }

    /// The most, over the configurations with `cpus` CPUs, of `full` for nodes, `runs` and `waits`
    /// for tasks.
    fn best(
        &self,
        set: &Set,
        cpus: usize,
        full: &dyn Fn(usize) -> Q,
        runs: &dyn Fn(usize) -> Q,
        waits: &dyn Fn(usize) -> Q,
    ) -> Q {
        let around = self.nodes[set.node];
        let of_set = |mask: u64| !set.removed.iter().any(|&gone| inside(mask, gone));
        let nodes: Vec<usize> = (0..self.nodes.len())
            .filter(|&h| h != set.node && inside(self.nodes[h], around) && of_set(self.nodes[h]))
            .collect();
        let tasks = self.tasks_of(set);
        let mut best: Option<Q> = None;
        for gamma in subsets(&nodes) {
            let apart = |a: usize, b: usize| a == b || self.nodes[a] & self.nodes[b] == 0;
            if !gamma.iter().all(|&a| gamma.iter().all(|&b| apart(a, b))) {
                continue;
            }
            let of_gamma = |mask: u64| gamma.iter().any(|&h| inside(mask, self.nodes[h]));
            let free: Vec<usize> = tasks
                .iter()
                .copied()
                .filter(|&task| !of_gamma(self.masks[task]))
                .collect();
            let taken: usize = gamma.iter().map(|&h| size(self.nodes[h])).sum();
            for running in subsets(&free) {
                let used = |mask: u64| {
                    let tasks = running
                        .iter()
                        .filter(|&&task| inside(self.masks[task], mask));
                    let nodes = gamma.iter().filter(|&&h| inside(self.nodes[h], mask));
                    tasks.count() + nodes.map(|&h| size(self.nodes[h])).sum::<usize>()
                };
                let not_full = |&&h: &&usize| {
                    of_gamma(self.nodes[h]) || used(self.nodes[h]) < size(self.nodes[h])
                };
                if running.len() + taken > cpus || !nodes.iter().all(|h| not_full(&h)) {
                    continue;
                }
                let waiting = free.iter().filter(|task| !running.contains(task));
                let sum = gamma.iter().map(|&h| full(h)).sum::<Q>()
                    + running.iter().map(|&task| runs(task)).sum::<Q>()
                    + waiting.map(|&task| waits(task)).sum::<Q>();
                best = best.max(Some(sum));
            }
        }
        best.unwrap()
    }

    pub(super) fn beyond(&self, point: &Point, task: usize) -> Q {
        or_zero(point.late[task].clone() - &self.costs[task])
    }

    fn whole(&self, node: usize) -> Set {
        Set {
            node,
            removed: Vec::new(),
        }
    }

    /// M.
    pub(super) fn lag(&self, point: &Point, set: &Set, after: &Q) -> Q {
        let burst = match &self.lost {
            Some((_, burst)) => burst * q(self.cpus(set) as i128),
            None => zero(),
        };
        burst + self.lag_alone(point, set, after)
    }

    fn lag_alone(&self, point: &Point, set: &Set, after: &Q) -> Q {
        let full = |h: usize| self.lag(point, &self.whole(h), after);
        let behind = |task: usize| &self.rates[task] * (self.beyond(point, task) - after);
        let cpus = self.running_max(set);
        if self.blockers(set.node).is_empty() {
            let runs = |task: usize| or_zero(behind(task)) + &self.costs[task];
            let waits = |task: usize| {
                let early = or_zero(&self.periods[task] - &self.points[task]);
                or_zero(&self.rates[task] * (early - after))
            };
            return self.best(set, cpus, &full, &runs, &waits);
        }
        let runs = |task: usize| or_zero(behind(task) + &self.costs[task]);
        let blocked = or_zero(point.blocked[set.node].clone() - after);
        let waits = |task: usize| &self.rates[task] * &blocked + &self.costs[task];
        self.best(set, cpus, &full, &runs, &waits)
    }

    /// Z.
    fn busy(&self, point: &Point, set: &Set) -> Q {
        let cpus = q(self.cpus(set) as i128);
        if self.blockers(set.node).is_empty() {
            return self.lag(point, set, &zero()) / cpus;
        }
        let mut after = point.blocked[set.node].clone();
        if !set.removed.is_empty() {
            after = after.max(point.nearly_done[set.node].clone());
        }
        let full = |h: usize| self.lag(point, &self.whole(h), &after);
        let runs = |task: usize| {
            let behind = &self.rates[task] * (self.beyond(point, task) - &after);
            or_zero(behind + &self.costs[task])
        };
        let waits = |task: usize| self.costs[task].clone();
        let most = self.best(set, self.cpus(set) - 1, &full, &runs, &waits);
        after + most / cpus
    }

    /// Y.
    fn blocking(&self, point: &Point, blocker: usize, mask: u64, rho: &Q) -> Q {
        let sets = self.sets(blocker).into_iter();
        let values = sets.map(|set| {
            let gone = set.removed.iter().any(|&gone| inside(mask, gone));
            let part = if gone {
                zero()
            } else {
                rho / q(self.cpus(&set) as i128)
            };
            self.busy(point, &set) - part
        });
        values.min().unwrap()
    }

    fn apply(&self, point: &Point) -> Point {
        let over = |node: usize, rho: &Q| {
            let mask = self.nodes[node];
            let values = self.blockers(node).into_iter();
            let values = values.map(|b| self.blocking(point, b, mask, rho));
            or_zero(values.max().unwrap_or(zero()))
        };
        let cheapest = |node: usize| {
            let below = self.tasks_below(self.nodes[node]);
            below
                .into_iter()
                .map(|task| self.costs[task].clone())
                .min()
                .unwrap()
        };
        let nodes = 0..self.nodes.len();
        Point {
            late: (0..self.costs.len())
                .map(|task| self.late(point, task))
                .collect(),
            blocked: nodes
                .clone()
                .map(|node| over(node, &cheapest(node)))
                .collect(),
            nearly_done: nodes.map(|node| over(node, &zero())).collect(),
        }
    }

    fn late(&self, point: &Point, task: usize) -> Q {
        let (mask, cost) = (self.masks[task], self.costs[task].clone());
        let least = or_zero(&cost - &self.points[task]);
        let node = self.nodes.iter().position(|&node| node == mask).unwrap();
        let mut blockers = self.blockers(node);
        let others: Vec<usize> = self
            .tasks_below(mask)
            .into_iter()
            .filter(|&other| other != task)
            .collect();
        if self.rank(&others) >= size(mask) {
            blockers.push(node);
        }
        if blockers.is_empty() {
            return least;
        }
        let mut chain: Vec<usize> = (0..self.nodes.len())
            .filter(|&b| inside(mask, self.nodes[b]))
            .collect();
        chain.sort_by_key(|&b| size(self.nodes[b]));
        let has = |set: &Set| !set.removed.iter().any(|&gone| inside(mask, gone));
        let sets: Vec<Vec<(Set, Q)>> = chain
            .iter()
            .map(|&b| {
                let sets = self.sets(b).into_iter();
                sets.map(|set| (set.clone(), self.lag(point, &set, &zero())))
                    .collect()
            })
            .collect();
        let all = sets.iter().flatten().filter(|(set, _)| has(set));
        let left = all
            .map(|(_, lag)| lag.clone())
            .min()
            .unwrap()
            .min(cost.clone());
        let by = blockers
            .iter()
            .map(|&b| self.blocking(point, b, mask, &cost))
            .max()
            .unwrap();
        let by_blocker = (cost + by).max(left.clone());
        // Lemma 8, level by level.
        let (mut work, mut late) = (left.clone(), left);
        for level in 0..chain.len() {
            let cpus = q(size(self.nodes[chain[level]]) as i128);
            let alone = sets[level].iter().map(|(set, lag)| {
                let work = if has(set) { work.clone() } else { zero() };
                (lag - work) / q(self.cpus(set) as i128)
            });
            let around = sets[level + 1..]
                .iter()
                .flatten()
                .filter(|(set, _)| has(set));
            let around = around.map(|(_, lag)| (lag - &work) / &cpus);
            let most = or_zero(alone.chain(around).min().unwrap());
            late += &most;
            work += most * cpus;
        }
        by_blocker.min(late).max(least)
    }
}

/// Of one component, at most 4 CPUs and 6 tasks.
pub(super) fn tiny(stream: &mut RandomStream) -> Vec<Placed> {
    let families: [&[u64]; 8] = [
        &[0b11, 0b1, 0b10],
        &[0b111, 0b1, 0b10, 0b100],
        &[0b111, 0b11, 0b1],
        &[0b111, 0b11, 0b100],
        &[0b111, 0b11, 0b1, 0b10, 0b100],
        &[0b111],
        &[0b1111, 0b111, 0b11, 0b1],
        &[0b1111, 0b111, 0b1],
    ];
    let masks = families[stream.below(8) as usize];
    let mut tasks: Vec<Placed> = Vec::new();
    for turn in 0..12 {
        let period = 1 + stream.below(12);
        let cost = 1 + stream.below(period);
        let deadline = cost + stream.below(2 * period);
        let which = if turn == 0 {
            0
        } else {
            stream.below(masks.len() as u64)
        };
        tasks.push(Placed {
            task: Sporadic {
                cost: Span::from_ns(cost),
                period: Span::from_ns(period),
                deadline: Span::from_ns(deadline),
            },
            cpus: CpuSet::from_bits(masks[which as usize]),
        });
        if groups(&tasks, whole()).is_err() || tasks.len() > 6 {
            tasks.pop();
        }
    }
    tasks
}

pub(super) fn naive(of: &Component, tasks: &[Placed], shift: u64) -> Naive {
    let mask = |place: usize| tasks[place].cpus.as_bits().unwrap();
    let fields = |field: fn(&Sporadic) -> u128| -> Vec<Q> {
        of.tasks
            .iter()
            .map(|member| q(field(&member.task) as i128))
            .collect()
    };
    let costs = fields(Sporadic::cost_ns);
    let periods = fields(Sporadic::period_ns);
    let deadlines = fields(Sporadic::deadline_ns);
    Naive {
        rates: costs
            .iter()
            .zip(&periods)
            .map(|(cost, period)| cost / period)
            .collect(),
        costs,
        periods,
        points: deadlines
            .into_iter()
            .map(|deadline| deadline - q(shift.into()))
            .collect(),
        masks: of.tasks.iter().map(|member| mask(member.place)).collect(),
        nodes: of
            .nodes
            .iter()
            .map(|node| mask(of.tasks[node.own.start].place))
            .collect(),
        lost: None,
    }
}

/// In the grid of the integers: this part of a nanosecond, as a power of two.
pub(super) const BITS: u32 = 20;

pub(super) fn random_point(of: &Component, stream: &mut RandomStream) -> Bounds<i128> {
    let mut point = Bounds::zero(of);
    let most = 1 + (stream.below(30) << BITS);
    point
        .values_mut()
        .for_each(|value| *value = stream.below(most).into());
    point
}

#[test]
fn the_operator_is_its_definition_rounded_up() {
    let unit = q(1 << BITS);
    for seed in 1..=times_if_long(20, 200) {
        let mut stream = RandomStream::new(seed, 8, 0);
        let tasks = tiny(&mut stream);
        let Ok(groups) = groups(&tasks, whole()) else {
            continue;
        };
        for of in components(&tasks, &groups, None) {
            let earliest = of
                .tasks
                .iter()
                .map(|member| member.task.deadline.as_ns())
                .min();
            let shift = stream.below(earliest.unwrap() + 1);
            let point = random_point(&of, &mut stream);
            let every = of
                .nodes
                .iter()
                .map(|node| (0..node.sets.len()).collect())
                .collect();
            let mut operator = Operator::new(&of, shift, |ns| i128::from(ns) << BITS);
            let got = operator
                .apply(&point, &every, &mut Steps::ordinary())
                .unwrap();
            let on_grid = |values: &[i128]| values.iter().map(|&v| q(v) / &unit).collect();
            let expected = naive(&of, &tasks, shift).apply(&Point {
                late: on_grid(&point.late),
                blocked: on_grid(&point.blocked),
                nearly_done: on_grid(&point.blocked_nearly_done),
            });
            let nodes = expected.blocked.into_iter().chain(expected.nearly_done);
            let expected = expected.late.into_iter().chain(nodes);
            for (place, (got, expected)) in got.values().zip(expected).enumerate() {
                let over = q(got) - expected * &unit;
                assert!(
                    over >= zero() && over < q(100),
                    "seed {seed}, value {place}, over by {over}, shift {shift}: {tasks:?}"
                );
            }
        }
    }
}

/// What the solver shows holds by the definition: F, in exact fractions, lowers it.
#[test]
fn what_is_shown_is_lowered_by_the_definition_of_the_operator() {
    for seed in 1..=times_if_long(30, 200) {
        let mut stream = RandomStream::new(seed, 10, 0);
        let tasks = tiny(&mut stream);
        for of in components(&tasks, &groups(&tasks, whole()).unwrap(), None) {
            let deadlines = of.tasks.iter().map(|member| member.task.deadline.as_ns());
            let shift = stream.below(deadlines.min().unwrap() + 1);
            for way in [solve, solve_coarsely] {
                let shown = way(&of, shift, &mut Steps::ordinary()).unwrap();
                let unit = q(1 << shown.bits);
                let on_grid = |values: &[i128]| values.iter().map(|&v| q(v) / &unit).collect();
                let point = Point {
                    late: on_grid(&shown.bounds.late),
                    blocked: on_grid(&shown.bounds.blocked),
                    nearly_done: on_grid(&shown.bounds.blocked_nearly_done),
                };
                let lower = naive(&of, &tasks, shift).apply(&point);
                let values = |point: Point| {
                    let nodes = point.blocked.into_iter().chain(point.nearly_done);
                    point.late.into_iter().chain(nodes)
                };
                for (place, (lower, shown)) in values(lower).zip(values(point)).enumerate() {
                    let what = format!("seed {seed}, value {place}, shift {shift}: {tasks:?}");
                    assert!(lower <= shown, "{lower} above {shown}, {what}");
                }
            }
        }
    }
}
