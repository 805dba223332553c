//! Budgets: the core and a plain model of the rules in lockstep, and the rules one by one.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "../../policy/tests/definition/oracle.rs"]
#[allow(dead_code, reason = "only the greedy set is used here")]
mod oracle;

use shiftwork_kernel_core::{Core, TaskNumber, TaskState};
use shiftwork_model::{CpuId, CpuSet, Instant, Order, Priority, RandomStream, Span, TaskId};

/// A server by the published rules (Tang et al. 2021, Fig. 1, and Linux for constrained deadlines): one
/// period at a time, in wide integers.
#[derive(Clone, Debug)]
struct Plain {
    budget: i128,
    period: i128,
    relative: i128,
    left: i128,
    deadline: Option<i128>,
    /// When the next period may begin.
    end: i128,
    throttled_until: Option<i128>,
    awake: bool,
    yielded: bool,
    ready: i128,
    mask: u64,
    priority: u32,
}

impl Plain {
    fn is_ready(&self) -> bool {
        self.awake && self.throttled_until.is_none()
    }

    fn begin(&mut self, now: i128) {
        self.deadline = Some(now + self.relative);
        self.end = now + self.period;
        self.left = self.budget;
    }

    fn hold(&mut self) {
        self.left = 0;
        self.throttled_until = Some(self.end);
    }

    fn wake(&mut self, now: i128) {
        self.awake = true;
        if self.throttled_until.is_some() {
            return;
        }
        self.ready = now;
        let implicit = self.relative == self.period;
        match self.deadline {
            Some(deadline) if self.budget > 0 && now < deadline => {
                if self.left * self.relative <= self.budget * (deadline - now) {
                    return;
                }
                if implicit {
                    return self.begin(now);
                }
                self.left = self.budget * (deadline - now) / self.relative;
                if self.left == 0 {
                    self.hold();
                }
            }
            Some(_) if self.budget > 0 && !implicit && now < self.end => self.hold(),
            _ => self.begin(now),
        }
    }

    fn replenish(&mut self, now: i128) {
        if self.yielded {
            self.left = self.left.min(0);
        }
        self.yielded = false;
        self.throttled_until = None;
        let (mut begins, earliest) = (self.end, self.end);
        self.left += self.budget;
        while self.budget > 0 && self.left <= 0 {
            begins += self.period;
            self.left += self.budget;
            // Nothing waits longer than a second to pay back what it has overdrawn.
            if begins - earliest > 1_000_000_000 {
                begins -= self.period;
                self.left = self.budget;
            }
        }
        self.deadline = Some(begins + self.relative);
        self.end = begins + self.period;
        if self.deadline.unwrap() < now {
            self.begin(now);
        }
    }

    fn end(&mut self, now: i128) {
        if now < self.end {
            self.throttled_until = Some(self.end);
        } else {
            self.replenish(now);
        }
    }

    fn charge(&mut self, ran: i128, now: i128) {
        if self.budget == 0 {
            return;
        }
        self.left -= ran;
        if self.left <= 0 && self.is_ready() {
            self.end(now);
        }
    }
}

struct Lockstep {
    core: Core,
    plain: Vec<Plain>,
    order: Order,
    cpus: usize,
    now: i128,
    /// Spans are multiples of this, some of them plus or minus 1 ns.
    unit: i128,
}

fn number(index: usize) -> TaskNumber {
    TaskNumber::of(TaskId::from_index(index)).unwrap()
}

fn at(instant: i128) -> Instant {
    Instant::from_ns(instant as u64)
}

fn span(length: i128) -> Span {
    Span::from_ns(length as u64)
}

/// Budget, period and relative deadline, drawn from few values, so that instants coincide.
fn parameters(random: &mut RandomStream, unit: i128) -> (i128, i128, i128) {
    let mut upto = |most: i128| 1 + i128::from(random.below(most as u64));
    let period = upto(20) + 1;
    let relative = if upto(2) == 1 { period } else { upto(period) };
    let budget = if upto(8) == 1 { 0 } else { upto(relative) };
    (budget * unit, period * unit, relative * unit)
}

impl Lockstep {
    fn new(random: &mut RandomStream, order: Order) -> Self {
        let cpus = 1 + random.below(4) as usize;
        let unit = [1, 1_000_000_007, 1 << 44][random.below(3) as usize];
        let mut core = Core::new(order, (1 << cpus) - 1);
        let plain = (0..1 + random.below(9) as usize)
            .map(|index| {
                let (budget, period, relative) = parameters(random, unit);
                let mask = 1 + random.below((1 << cpus) - 1);
                let priority = 1 + random.below(4) as u32;
                core.enter(number(index), mask, None);
                core.set_priority(number(index), Priority::new(priority).unwrap());
                core.set_server(number(index), span(budget), span(period), span(relative))
                    .unwrap();
                Plain {
                    budget,
                    period,
                    relative,
                    left: 0,
                    deadline: None,
                    end: 0,
                    throttled_until: None,
                    awake: false,
                    yielded: false,
                    ready: 0,
                    mask,
                    priority,
                }
            })
            .collect();
        Self {
            core,
            plain,
            order,
            cpus,
            now: 1_000,
            unit,
        }
    }

    fn running(&self) -> Vec<usize> {
        let cpus = (0..self.cpus).map(CpuId::from_index);
        let mut running: Vec<usize> = cpus
            .filter_map(|cpu| Some(self.core.runner(cpu)?.task().index()))
            .collect();
        running.sort_unstable();
        running
    }

    fn greedy(&self) -> Vec<usize> {
        let mut ready: Vec<usize> = (0..self.plain.len())
            .filter(|&index| self.plain[index].is_ready())
            .collect();
        ready.sort_by_key(|&index| {
            let plain = &self.plain[index];
            let rank = match self.order {
                Order::Edf => plain.deadline.unwrap(),
                _ => i128::from(plain.priority),
            };
            (rank, plain.ready, index)
        });
        let job = |(rank, &task): (usize, &usize)| oracle::Ready {
            task,
            rank: rank as u64,
            cpus: CpuSet::from_bits(self.plain[task].mask),
        };
        oracle::greedy_set(&ready.iter().enumerate().map(job).collect::<Vec<_>>())
    }

    fn compare(&mut self, replay: &str) {
        assert_eq!(self.running(), self.greedy(), "{replay}: {:?}", self.plain);
        for (index, plain) in self.plain.iter().enumerate() {
            let view = self.core.view(number(index));
            let state = match (plain.throttled_until, plain.awake) {
                (Some(_), _) => TaskState::Throttled,
                (None, true) => TaskState::Ready,
                (None, false) => TaskState::Blocked,
            };
            let found = (
                view.state,
                view.awake,
                i128::from(view.left_ns),
                i128::from(view.deadline.as_ns()),
            );
            let wanted = (state, plain.awake, plain.left, plain.deadline.unwrap_or(0));
            assert_eq!(found, wanted, "{replay}: task {index} {plain:?}");
        }
        let next = self
            .plain
            .iter()
            .filter_map(|plain| plain.throttled_until)
            .min();
        assert_eq!(
            self.core.next_replenishment(),
            next.map_or(Instant::NEVER, at),
            "{replay}"
        );
        assert_eq!(self.core.fault(), None, "{replay}");
    }

    /// The rank of the task, or the one that it would have if it woke up now; `None` if it could not run.
    fn rank_if_awake(&self, index: usize) -> Option<i128> {
        let mut plain = self.plain[index].clone();
        let before = plain.throttled_until;
        if !plain.awake {
            plain.wake(self.now);
        }
        // A budget that shrinks to nothing counts as one.
        let has_shrunk = before.is_none() && plain.deadline.is_some_and(|it| it > self.now);
        (plain.is_ready() || has_shrunk).then(|| match self.order {
            Order::Edf => plain.deadline.unwrap(),
            _ => i128::from(plain.priority),
        })
    }

    fn compare_ranks(&mut self, replay: &str) {
        let ranks: Vec<i128> = (0..self.plain.len())
            .map(|index| self.rank_if_awake(index).unwrap_or(i128::MAX))
            .collect();
        for (one, other) in (0..ranks.len()).flat_map(|a| (0..ranks.len()).map(move |b| (a, b))) {
            assert_eq!(
                self.core
                    .would_precede(number(one), number(other), at(self.now)),
                (ranks[one], one) < (ranks[other], other),
                "{replay}: {one} before {other}: {:?}",
                self.plain
            );
        }
    }

    /// Time advances: at most until the next budget end or replenishment, or somewhat beyond.
    fn pass(&mut self, random: &mut RandomStream) {
        let mut next = self.now + self.unit * i128::from(random.below(9));
        let running = self.running();
        let mut due: Vec<i128> = self
            .plain
            .iter()
            .filter_map(|plain| plain.throttled_until)
            .collect();
        for &index in &running {
            let end = self.core.budget_end(number(index), at(self.now));
            if end != Instant::NEVER {
                assert_eq!(
                    i128::from(end.as_ns()),
                    self.now + self.plain[index].left.max(0)
                );
                due.push(i128::from(end.as_ns()));
            }
        }
        if let (Some(&soonest), true) = (due.iter().min(), random.below(3) > 0) {
            let late = [0, 0, 1, self.unit * i128::from(random.below(60))];
            next = soonest.max(self.now) + late[random.below(4) as usize];
        }
        let ran = next - self.now;
        self.now = next;
        for index in running {
            self.core.charge(number(index), span(ran), at(self.now));
            self.plain[index].charge(ran, self.now);
        }
        while self.core.next_replenishment() <= at(self.now) {
            self.core.replenish_next(at(self.now));
            let throttled = |index: &usize| self.plain[*index].throttled_until;
            let first = (0..self.plain.len())
                .filter(|index| throttled(index).is_some())
                .min_by_key(|index| throttled(index))
                .unwrap();
            let plain = &mut self.plain[first];
            plain.ready = plain.throttled_until.unwrap();
            plain.replenish(self.now);
        }
    }

    fn act(&mut self, random: &mut RandomStream) {
        let index = random.below(self.plain.len() as u64) as usize;
        let (task, now) = (number(index), self.now);
        let plain = &mut self.plain[index];
        match random.below(12) {
            0..5 if !plain.awake => {
                plain.wake(now);
                self.core.wake(task, at(now));
            }
            0..3 => {
                plain.awake = false;
                self.core.sleep(task);
            }
            3..6 => {
                if plain.is_ready() {
                    plain.yielded = true;
                    plain.end(now);
                }
                self.core.yield_job(task, at(now));
            }
            6 => {
                plain.mask = 1 + random.below((1 << self.cpus) - 1);
                self.core.set_affinity(task, plain.mask);
            }
            7 if random.below(4) == 0 => {
                (plain.budget, plain.period, plain.relative) = parameters(random, self.unit);
                let (budget, period) = (span(plain.budget), span(plain.period));
                let set = self
                    .core
                    .set_server(task, budget, period, span(plain.relative));
                set.unwrap();
                plain.left = plain.left.min(plain.budget);
            }
            _ => {}
        }
    }
}

#[test]
fn servers_follow_the_rules() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        20_000
    } else {
        2_000
    };
    for seed in 1..=seeds {
        let mut random = RandomStream::new(seed, 0, 0);
        let order = [Order::Edf, Order::FixedPriority][seed as usize % 2];
        let mut beside = Lockstep::new(&mut random, order);
        for step in 0..200 {
            let replay = format!("{order:?}, seed {seed}, step {step}");
            beside.pass(&mut random);
            beside.compare(&replay);
            beside.act(&mut random);
            beside.compare(&replay);
            beside.compare_ranks(&replay);
        }
    }
}

fn one(budget: u64, period: u64, relative: u64) -> Core {
    let mut core = Core::new(Order::Edf, 1);
    core.enter(number(0), 1, None);
    let [budget, period, relative] = [budget, period, relative].map(Span::from_ns);
    core.set_server(number(0), budget, period, relative)
        .unwrap();
    core
}

/// Deadline and remaining budget.
fn pair(core: &mut Core) -> (u64, i64) {
    let view = core.view(number(0));
    (view.deadline.as_ns(), view.left_ns)
}

#[test]
fn task_without_budget_waits_for_the_next_period() {
    let mut core = one(3, 10, 10);
    core.wake(number(0), at(5));
    assert_eq!(core.budget_end(number(0), at(5)), at(8));
    core.charge(number(0), Span::from_ns(3), at(8));
    assert_eq!(core.runner(CpuId::from_index(0)), None);
    assert_eq!(core.next_replenishment(), at(15));
    assert_eq!(core.replenish_next(at(14)), 0);
    assert_eq!(core.replenish_next(at(15)), 1);
    assert_eq!(pair(&mut core), (25, 3));
}

#[test]
fn an_overdrawn_budget_is_paid_back() {
    let mut core = one(3, 10, 10);
    core.wake(number(0), at(0));
    core.charge(number(0), Span::from_ns(7), at(7));
    core.replenish_next(at(10));
    // An overdraft of 4: one period pays 3, the next the rest.
    assert_eq!(pair(&mut core), (30, 2));
}

#[test]
fn tardy_job_continues_with_the_next_deadline() {
    let mut core = one(3, 10, 10);
    core.wake(number(0), at(0));
    core.charge(number(0), Span::from_ns(3), at(12));
    assert_eq!(pair(&mut core), (20, 3));
    assert!(core.runner(CpuId::from_index(0)).is_some());
}

#[test]
fn early_wake_up_keeps_the_deadline_only_within_the_bandwidth() {
    // 2 of 3 are left until 10: at 3 that is at most 3 of 10, at 4 it is more.
    for (wakes, wanted) in [(3, (10, 2)), (4, (14, 3))] {
        let mut core = one(3, 10, 10);
        core.wake(number(0), at(0));
        core.charge(number(0), Span::from_ns(1), at(1));
        core.sleep(number(0));
        core.wake(number(0), at(wakes));
        assert_eq!(pair(&mut core), wanted);
    }
}

#[test]
fn constrained_deadline_is_never_given_twice_in_a_period() {
    // Linux: the deadline is kept, and the budget is reduced to its share; after the deadline the task waits.
    let mut core = one(4, 20, 8);
    core.wake(number(0), at(0));
    core.charge(number(0), Span::from_ns(1), at(1));
    core.sleep(number(0));
    core.wake(number(0), at(5));
    assert_eq!(pair(&mut core), (8, 1));
    core.sleep(number(0));
    core.wake(number(0), at(9));
    assert_eq!(core.view(number(0)).state, TaskState::Throttled);
    assert_eq!(core.next_replenishment(), at(20));
    core.replenish_next(at(20));
    assert_eq!(pair(&mut core), (28, 4));
}

#[test]
fn yield_gives_up_the_remaining_budget() {
    let mut core = one(4, 20, 20);
    core.wake(number(0), at(0));
    core.charge(number(0), Span::from_ns(1), at(1));
    core.yield_job(number(0), at(1));
    assert_eq!(core.next_replenishment(), at(20));
    core.replenish_next(at(20));
    assert_eq!(pair(&mut core), (40, 4));
}

#[test]
fn task_that_enters_again_has_no_more_budget_than_before() {
    let come_back = |core: &mut Core, at_ns| {
        core.leave(number(0));
        core.enter_again(number(0), 1, None);
        let [budget, period] = [3, 10].map(Span::from_ns);
        core.set_server(number(0), budget, period, period).unwrap();
        core.wake(number(0), at(at_ns));
    };
    let mut core = one(3, 10, 10);
    core.wake(number(0), at(0));
    core.charge(number(0), Span::from_ns(2), at(2));
    come_back(&mut core, 3);
    assert_eq!(pair(&mut core), (10, 1));
    core.charge(number(0), Span::from_ns(1), at(4));
    come_back(&mut core, 5);
    core.charge(number(0), Span::ZERO, at(5));
    assert_eq!(core.view(number(0)).state, TaskState::Throttled);
    assert_eq!(core.next_replenishment(), at(10));
    // After its period it begins with a full budget.
    come_back(&mut core, 10);
    assert_eq!(pair(&mut core), (20, 3));
}

#[test]
fn no_change_of_parameters_gives_a_second_budget_in_a_period() {
    let mut core = one(1, 100, 1);
    core.wake(number(0), at(0));
    core.set_server(number(0), span(1), span(100), span(100))
        .unwrap();
    core.charge(number(0), span(1), at(1));
    assert_eq!(core.next_replenishment(), at(100));
    core.replenish_next(at(100));
    assert_eq!(pair(&mut core), (200, 1));
}

#[test]
fn overdraft_of_a_large_budget_is_not_paid_back_in_small_ones() {
    const MS: i128 = 1_000_000;
    let mut core = one(2_000_000, 100_000_000, 100_000_000);
    core.wake(number(0), at(0));
    core.charge(number(0), span(5 * MS), at(5 * MS));
    let [budget, period] = [10_000, 10_000 * MS].map(span);
    core.set_server(number(0), budget, period, period).unwrap();
    core.replenish_next(at(100 * MS));
    assert_eq!(pair(&mut core), (10_100_000_000, 10_000));
    assert!(core.runner(CpuId::from_index(0)).is_some());
}

#[test]
fn follower_that_enters_again_is_throttled_until_its_period_ends() {
    let mut core = one(3, 10, 10);
    core.follow(number(0));
    core.wake(number(0), at(0));
    core.next_job(number(0), at(0), at(0));
    core.charge(number(0), Span::from_ns(2), at(2));
    core.leave(number(0));
    core.enter_again(number(0), 1, None);
    core.follow(number(0));
    core.wake(number(0), at(4));
    core.next_job(number(0), at(4), at(4));
    assert_eq!(pair(&mut core), (10, 1));
}

#[test]
fn narrowed_task_stays_on_its_cpu() {
    let mut core = Core::new(Order::Edf, 0b11);
    for index in 0..2 {
        core.enter(number(index), 0b11, None);
        let ms = Span::from_ms;
        core.set_server(number(index), ms(1), ms(9), ms(9)).unwrap();
        core.wake(number(index), at(index as i128));
    }
    let zero = CpuId::from_index(0);
    assert_eq!(core.runner(zero), Some(number(0)));
    assert_eq!(core.narrow(number(0), 0b01), 0);
    assert_eq!(core.set_affinity(number(0), 0b10), 0);
    assert_eq!(core.runner(zero), Some(number(0)));
    // Without the restriction its affinity applies: it migrates, and the other task shifts.
    assert_eq!(core.narrow(number(0), 0), 0b11);
    assert_eq!(core.runner(zero), Some(number(1)));
    assert_eq!(core.fault(), None);
}
