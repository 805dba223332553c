//! What each of the nine implementations costs on the study's machine.
//!
//! The slides tabulate one of them: GEDF, which is CEm. What its decisions and releases cost grows with what its locks
//! cost. That part is replaced by what the locks of another implementation would cost in its place: the quotient of both
//! is known from [`locks`], whatever the speed of the machine. How large the part is in the figures of
//! the slides is not known; so all findings are computed twice, as if it were all, and as if it were half.

use std::collections::BTreeMap;

use shiftwork_analysis::verdicts::Criterion;
use shiftwork_model::{LinearCost, Overheads, Span, TaskSet};
use shiftwork_taskset::overheads::{OverheadFile, Use};

use super::locks::{self, Hold, Holds, QUEUES, TASKS, Taken};
use super::variants::{Invocation, Variant};

/// The policy that provides the cache-related delays of implementations in quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delays {
    /// G-EDF's, as of all others.
    OfGedf,
    /// Those of PD2 if quanta are aligned, and of S-PD2 if they are staggered: the only ones that the slides have of quanta.
    OfPfair,
}

/// What cannot be known from public data, and is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// How much of CEm's decisions and releases is locking, in percent.
    pub locking: u64,
    /// How long operations wait for others at worst.
    pub contention: Contention,
    /// The source of the cache-related delays of quanta.
    pub delays: Delays,
    /// How long an interprocessor interrupt takes.
    pub ipi: Span,
}

/// How long operations are delayed by others at worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    /// As in a simulation, the highest 1% left out as in the studies.
    Simulated,
    /// By every other CPU once.
    Counted,
}

/// What the locks of every implementation cost, relative to CEm's, by number of tasks; and CEm's own.
pub struct Derived {
    file: OverheadFile,
    ratios: BTreeMap<(&'static str, u64), Ratios>,
}

/// Relative to CEm, for each of [`TASKS`].
#[derive(Default)]
struct Ratios {
    average: Vec<Taken>,
    worst: Vec<Taken>,
    counted: Vec<Taken>,
}

impl Derived {
    /// All of them, for these shares of locking.
    ///
    /// # Errors
    /// In words, if the slides' figures are not there, or a simulation is refused.
    pub fn new(
        file: OverheadFile,
        variants: &[Variant],
        holds: &Holds,
        shares: &[u64],
    ) -> Result<Self, String> {
        let mut derived = Self {
            file,
            ratios: BTreeMap::new(),
        };
        let sets: Vec<TaskSet> = TASKS
            .into_iter()
            .map(contenders)
            .collect::<Result<_, _>>()?;
        let baseline = Variant::find("CEm")?;
        for &share in shares {
            let scale = derived.scale(&sets, holds, share)?;
            for variant in variants {
                let mut ratios = Ratios::default();
                for (set, tasks) in sets.iter().zip(TASKS) {
                    let taken = |one: &Variant| -> Result<[Taken; 3], String> {
                        let hold = hold(holds, one, tasks);
                        let [average, worst] = locks::simulated(set, one, hold, scale)?;
                        Ok([average, worst, locks::counted(one, hold, tasks)])
                    };
                    let (own, other) = (taken(variant)?, taken(&baseline)?);
                    let kinds = [&mut ratios.average, &mut ratios.worst, &mut ratios.counted];
                    for (kind, (own, other)) in kinds.into_iter().zip(own.iter().zip(&other)) {
                        kind.push(Taken {
                            enqueue: own.enqueue / other.enqueue.max(1.0),
                            dequeue: own.dequeue / other.dequeue.max(1.0),
                        });
                    }
                }
                derived.ratios.insert((variant.name, share), ratios);
            }
        }
        Ok(derived)
    }

    /// How much longer the study's machine holds locks than this one, if so many percent of what an average decision of
    /// CEm takes with 200 tasks is its lock.
    fn scale(&self, sets: &[TaskSet], holds: &Holds, share: u64) -> Result<f64, String> {
        const AT: usize = 3;
        let baseline = Variant::find("CEm")?;
        let schedule = self.slides(Use::Average, "g-edf")?.schedule.at(TASKS[AT]);
        let wanted = schedule.as_ns() as f64 * share as f64 / 100.0;
        let hold = hold(holds, &baseline, TASKS[AT]);
        let (mut low, mut high) = (1.0, wanted * 10.0 / hold.dequeue as f64);
        for _ in 0..12 {
            let middle = f64::midpoint(low, high);
            let [average, _] = locks::simulated(&sets[AT], &baseline, hold, middle)?;
            match average.dequeue < wanted {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(f64::midpoint(low, high))
    }

    fn slides(&self, purpose: Use, policy: &str) -> Result<&Overheads, String> {
        let found = self.file.find(purpose, policy);
        found.ok_or_else(|| format!("the slides' overheads have no {policy}"))
    }

    /// How much the implementation's locks cost, in those of CEm, for each of [`TASKS`].
    fn ratios(&self, variant: &Variant, criterion: Criterion, assumed: &Assumption) -> &[Taken] {
        let ratios = &self.ratios[&(variant.name, assumed.locking)];
        match (criterion, assumed.contention) {
            (Criterion::Soft, _) => &ratios.average,
            (Criterion::Hard, Contention::Simulated) => &ratios.worst,
            (Criterion::Hard, Contention::Counted) => &ratios.counted,
        }
    }

    /// The overheads of the implementation, as lines in the number of tasks like those of the slides: worst for hard
    /// criteria, average for soft ones.
    ///
    /// # Errors
    /// In words, if the slides' figures are not there.
    pub fn overheads(
        &self,
        variant: &Variant,
        criterion: Criterion,
        assumed: &Assumption,
    ) -> Result<Overheads, String> {
        let purpose = match criterion {
            Criterion::Hard => Use::Worst,
            Criterion::Soft => Use::Average,
        };
        let slides = self.slides(purpose, "g-edf")?;
        let ratios = self.ratios(variant, criterion, assumed);
        let replaced = |cost: &LinearCost, ratio: fn(&Taken) -> f64| {
            let points = TASKS.iter().zip(ratios).map(|(&tasks, taken)| {
                let all = cost.at(tasks).as_ns() as f64;
                let locking = all * assumed.locking as f64 / 100.0;
                (tasks as f64, all - locking + locking * ratio(taken))
            });
            line(&points.collect::<Vec<_>>())
        };
        let delays = match (assumed.delays, variant.invocation) {
            (Delays::OfGedf, _) | (_, Invocation::Event) => slides,
            (_, Invocation::Quantum { staggered: false }) => self.slides(purpose, "pd2")?,
            (_, Invocation::Quantum { staggered: true }) => self.slides(purpose, "s-pd2")?,
        };
        Ok(Overheads {
            release: replaced(&slides.release, |taken| taken.enqueue),
            schedule: replaced(&slides.schedule, |taken| taken.dequeue),
            switch: slides.switch,
            tick: slides.tick,
            ipi: LinearCost {
                base: assumed.ipi,
                per_task: Span::ZERO,
            },
            preemption: delays.preemption.clone(),
            migration: delays.migration.clone(),
            ..Overheads::default()
        })
    }

    /// The overheads of all these implementations as an overhead file.
    ///
    /// # Errors
    /// As [`overheads`](Self::overheads).
    pub fn file(&self, variants: &[Variant], assumed: &Assumption) -> Result<OverheadFile, String> {
        let mut file = OverheadFile {
            name: "Sun Niagara, RTSS 2009, derived".to_owned(),
            ..OverheadFile::default()
        };
        for variant in variants {
            for (purpose, criterion) in [
                (Use::Worst, Criterion::Hard),
                (Use::Average, Criterion::Soft),
            ] {
                let overheads = self.overheads(variant, criterion, assumed)?;
                let key = (purpose, variant.name.to_ascii_lowercase());
                file.tables.insert(key, overheads);
            }
        }
        Ok(file)
    }
}

/// The line through these points with the least sum of squares, in ns, as the studies drew theirs. Neither end of it
/// is below zero: a line that falls is level, at the mean, and one that begins below zero begins there.
fn line(points: &[(f64, f64)]) -> LinearCost {
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let slope = |(x, y): (f64, f64)| {
        let square = sum(&|point| (point.0 - x) * (point.0 - x));
        sum(&|point| (point.0 - x) * (point.1 - y)) / square.max(f64::MIN_POSITIVE)
    };
    let rise = slope((x, y)).max(0.0);
    let (base, rise) = match y - rise * x {
        below if below < 0.0 => (0.0, slope((0.0, 0.0)).max(0.0)),
        base => (base, rise),
    };
    let ns = |value: f64| Span::from_ns(value.round() as u64);
    LinearCost {
        base: ns(base),
        per_task: ns(rise),
    }
}

fn hold(holds: &Holds, variant: &Variant, tasks: usize) -> Hold {
    let place = QUEUES
        .iter()
        .position(|&queue| queue == variant.structure.queue);
    let found = place.and_then(|place| holds.get(&(place, tasks)));
    found.copied().unwrap_or_default()
}

/// So many tasks that together use about half of the machine.
fn contenders(tasks: usize) -> Result<TaskSet, String> {
    use shiftwork_taskset::generate::{self, Key, Periods, Spread, Utilizations};
    let options = generate::Options {
        cpus: super::CPUS,
        utilizations: Utilizations::RandFixedSum {
            tasks,
            total: (super::CPUS as f64 / 2.0).min(tasks as f64 / 2.0),
        },
        periods: Periods {
            shortest: Span::from_ms(10),
            longest: Span::from_ms(100),
            granularity: Span::from_ms(1),
            spread: Spread::Uniform,
        },
        ..generate::Options::default()
    };
    let key = Key {
        seed: 2009,
        cell: tasks as u64,
        index: 0,
    };
    generate::generate(&options, key).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_points_and_never_below_zero() {
        let of = |points: &[(f64, f64)]| {
            let found = line(points);
            (found.base.as_ns(), found.per_task.as_ns())
        };
        assert_eq!(
            of(&[(25.0, 1_250.0), (50.0, 1_500.0), (400.0, 5_000.0)]),
            (1_000, 10)
        );
        assert_eq!(of(&[(1.0, 30.0), (3.0, 10.0)]), (20, 0), "falling");
        assert_eq!(of(&[(1.0, 0.0), (3.0, 40.0)]), (0, 12), "from below zero");
        assert_eq!(of(&[(25.0, 7.0)]), (7, 0));
        assert_eq!(of(&[]), (0, 0));
    }
}
