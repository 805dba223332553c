//! Random systems with nested affinities, in whole units of time.

use shiftwork_analysis::affinity::{Unavailable, laminar_tardiness, laminar_tardiness_beside};
use shiftwork_analysis::{Outcome, Placed, Sporadic, Steps};
use shiftwork_model::{Affinity, CpuSet, RandomStream, Span, Task, TaskSet};

/// Nanoseconds of a unit where bounds are computed, so that rounding up hides little.
pub const UNIT: u64 = 1000;

#[derive(Clone, Debug)]
pub struct Unit {
    pub cost: u64,
    pub period: u64,
    pub deadline: u64,
    pub mask: u64,
}

#[derive(Clone, Debug)]
pub struct System {
    pub cpus: usize,
    pub tasks: Vec<Unit>,
}

pub const SHAPES: [&str; 6] = [
    "global",
    "bi-level",
    "clustered",
    "chain",
    "three-level",
    "random",
];

/// How deadlines are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlines {
    Implicit,
    Any,
}

impl System {
    /// Up to `cpus_max` CPUs of this shape.
    pub fn random(
        shape: &str,
        deadlines: Deadlines,
        cpus_max: u64,
        stream: &mut RandomStream,
    ) -> Self {
        let cpus = (2 + stream.below(cpus_max - 1)) as usize;
        let masks = masks(shape, cpus, stream);
        let mut system = Self {
            cpus,
            tasks: Vec::new(),
        };
        let longest = [6, 12, 20][stream.below(3) as usize];
        let tries = 4 * cpus as u64 + stream.below(30);
        for _ in 0..tries {
            let period = 1 + stream.below(longest);
            let part = 1 + stream.below(3);
            system.try_add(Unit {
                cost: 1 + stream.below(period.div_ceil(part)),
                period,
                deadline: period,
                mask: masks[stream.below(masks.len() as u64) as usize],
            });
        }
        if stream.below(4) > 0 {
            system.fill(&masks);
        }
        if deadlines == Deadlines::Any {
            for task in &mut system.tasks {
                let most =
                    [task.period, 2 * task.period, 3 * task.period][stream.below(3) as usize];
                task.deadline = task.cost + stream.below(most - task.cost + 1);
            }
        }
        system
    }

    fn try_add(&mut self, task: Unit) -> bool {
        self.tasks.push(task);
        let fits = self.fits();
        if !fits {
            self.tasks.pop();
        }
        fits
    }

    /// Adds what is left of each node, from the inside, where it is a task with a short period.
    fn fill(&mut self, masks: &[u64]) {
        let mut masks = masks.to_vec();
        masks.sort_unstable_by_key(|mask| mask.count_ones());
        for mask in masks {
            for period in (1..=24).rev() {
                for cost in (1..=period).rev() {
                    let task = Unit {
                        cost,
                        period,
                        deadline: period,
                        mask,
                    };
                    if self.is_full(mask) {
                        break;
                    }
                    self.tasks.push(task);
                    if !self.fits() || !self.is_full(mask) {
                        self.tasks.pop();
                    }
                }
            }
        }
    }

    fn load(&self, mask: u64) -> u128 {
        let below = self.tasks.iter().filter(|task| task.mask & !mask == 0);
        below
            .map(|task| u128::from(task.cost) * PARTS / u128::from(task.period))
            .sum()
    }

    fn is_full(&self, mask: u64) -> bool {
        self.load(mask) == PARTS * u128::from(mask.count_ones())
    }

    fn fits(&self) -> bool {
        let masks = self.tasks.iter().map(|task| task.mask);
        masks
            .into_iter()
            .all(|mask| self.load(mask) <= PARTS * u128::from(mask.count_ones()))
    }

    /// In nanoseconds of `UNIT` to a unit.
    pub fn bounds(&self) -> Vec<u64> {
        let tasks: Vec<Placed> = self.tasks.iter().map(|task| task.placed()).collect();
        match laminar_tardiness(&tasks, &mut Steps::ordinary()) {
            Outcome::Pass(bounds) => {
                let bounds = bounds.into_iter().map(|bound| bound.unwrap().as_ns());
                bounds.collect()
            }
            other => panic!("{other:?} for {self:?}"),
        }
    }

    /// The same where CPUs are unavailable; by task, if all were found.
    pub fn bounds_beside(&self, unavailable: Unavailable) -> Option<Vec<u64>> {
        let tasks: Vec<Placed> = self.tasks.iter().map(|task| task.placed()).collect();
        match laminar_tardiness_beside(&tasks, unavailable, &mut Steps::ordinary()) {
            Outcome::Pass(bounds) => {
                let bounds = bounds.into_iter().map(|bound| Some(bound?.as_ns()));
                bounds.collect()
            }
            Outcome::StepLimit => None,
            Outcome::Fail(task) => panic!("{task:?} of {self:?}"),
        }
    }

    pub fn task_set(&self) -> TaskSet {
        let tasks = self.tasks.iter().enumerate().map(|(index, unit)| {
            let affinity = Affinity::new(CpuSet::from_bits(unit.mask)).unwrap();
            let (cost, period) = (Span::from_ns(unit.cost), Span::from_ns(unit.period));
            let mut task = Task::periodic(&format!("T{index}"), cost, period, affinity);
            task.deadline = Span::from_ns(unit.deadline);
            task
        });
        TaskSet::new("nested", self.cpus, tasks.collect())
    }
}

impl Unit {
    pub fn placed(&self) -> Placed {
        let span = |units: u64| Span::from_ns(units * UNIT);
        Placed {
            task: Sporadic {
                cost: span(self.cost),
                period: span(self.period),
                deadline: span(self.deadline),
            },
            cpus: CpuSet::from_bits(self.mask),
        }
    }
}

/// The least common multiple of 1 to 24: parts of a CPU in which all utilizations are whole.
const PARTS: u128 = 5_354_228_880;

fn masks(shape: &str, cpus: usize, stream: &mut RandomStream) -> Vec<u64> {
    let all = (1u64 << cpus) - 1;
    let single = (0..cpus).map(|cpu| 1u64 << cpu);
    let half = (1u64 << cpus.div_ceil(2)) - 1;
    match shape {
        "global" => vec![all],
        "bi-level" => single.chain([all]).collect(),
        "clustered" => vec![half, all & !half, all],
        "chain" => (1..=cpus).map(|size| (1u64 << size) - 1).collect(),
        "three-level" => single.chain([half, all & !half, all]).collect(),
        "random" => {
            let mut masks = Vec::new();
            split(0, cpus, stream, &mut masks);
            masks
        }
        other => panic!("no shape {other}"),
    }
}

/// Cuts a range into up to three, some of which are nodes.
fn split(from: usize, to: usize, stream: &mut RandomStream, masks: &mut Vec<u64>) {
    masks.push(((1u64 << to) - 1) & !((1u64 << from) - 1));
    let mut at = from;
    while at < to {
        let size = 1 + stream.below((to - at) as u64) as usize;
        if size < to - from && stream.below(4) > 0 {
            split(at, at + size, stream, masks);
        }
        at += size;
    }
}
