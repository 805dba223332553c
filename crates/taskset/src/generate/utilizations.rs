//! How much of a CPU each task uses.

mod fixed_sum;

use shiftwork_model::RandomStream;

use crate::error::TasksetError;
use fixed_sum::{Transitions, rand_fixed_sum};

/// How many tasks there are and how much of a CPU each uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Utilizations {
    /// Uniform among all ways to share `total` among `tasks`, none using more than a CPU.
    ///
    /// # Source
    /// R. Stafford, "Random vectors with fixed sum", 2006, as used by P. Emberson, R. Stafford and
    /// R. I. Davis, "Techniques for the synthesis of multiprocessor tasksets", WATERS 2010.
    RandFixedSum {
        /// How many tasks.
        tasks: usize,
        /// The sum of their utilizations, at most `tasks`.
        total: f64,
    },
    /// The same on one CPU, where `total` is at most 1.
    ///
    /// # Source
    /// E. Bini, G. Buttazzo, "Measuring the performance of schedulability tests", Real-Time
    /// Systems 30, 2005.
    UUniFast {
        /// How many tasks.
        tasks: usize,
        /// The sum of their utilizations, at most 1.
        total: f64,
    },
    /// UUniFast on several CPUs, drawing again if a task would use more than one. Slow if `total`
    /// is large for the number of tasks.
    ///
    /// # Source
    /// R. I. Davis, A. Burns, "Priority assignment for global fixed priority pre-emptive
    /// scheduling in multiprocessor real-time systems", RTSS 2009.
    UUniFastDiscard {
        /// How many tasks.
        tasks: usize,
        /// The sum of their utilizations, at most `tasks`.
        total: f64,
    },
    /// Tasks are drawn one by one until the next would exceed `cap`; that one is dropped.
    UntilCap {
        /// How each is drawn.
        distribution: Distribution,
        /// What the sum of the utilizations does not exceed.
        cap: f64,
    },
}

/// The six distributions of utilizations of the studies of Brandenburg et al., which draw from
/// `[0.001, 0.1]`, `[0.1, 0.4]`, `[0.5, 0.9]`, or from `[0.001, 0.5)` and `[0.5, 0.9]` by turns.
///
/// # Source
/// B. Brandenburg, J. Calandrino, J. Anderson, "On the scalability of real-time scheduling
/// algorithms on multicore platforms", RTSS 2008.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Uniform in `[0.001, 0.1]`.
    UniformLight,
    /// Uniform in `[0.1, 0.4]`.
    UniformMedium,
    /// Uniform in `[0.5, 0.9]`.
    UniformHeavy,
    /// Heavy with probability 1/9.
    BimodalLight,
    /// Heavy with probability 3/9.
    BimodalMedium,
    /// Heavy with probability 5/9.
    BimodalHeavy,
}

impl Distribution {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("uniform-light", Self::UniformLight),
        ("uniform-medium", Self::UniformMedium),
        ("uniform-heavy", Self::UniformHeavy),
        ("bimodal-light", Self::BimodalLight),
        ("bimodal-medium", Self::BimodalMedium),
        ("bimodal-heavy", Self::BimodalHeavy),
    ];

    /// One utilization.
    pub fn draw(self, stream: &mut RandomStream) -> f64 {
        let mut bimodal = |heavy_ninths| match stream.below(9) < heavy_ninths {
            true => (0.5, 0.9),
            false => (0.001, 0.5),
        };
        let (least, most) = match self {
            Self::UniformLight => (0.001, 0.1),
            Self::UniformMedium => (0.1, 0.4),
            Self::UniformHeavy => (0.5, 0.9),
            Self::BimodalLight => bimodal(1),
            Self::BimodalMedium => bimodal(3),
            Self::BimodalHeavy => bimodal(5),
        };
        least + (most - least) * stream.unit()
    }
}

/// The most tasks that a fixed sum is drawn for: its table has half the square of it as entries.
const FIXED_SUM_MAX: usize = 12_000;

/// The most tasks of the others.
const TASKS_MAX: usize = 100_000;

/// The largest cap: what the largest platform has.
const CAP_MAX: f64 = shiftwork_model::CPUS_MAX as f64;

impl Utilizations {
    /// Refuses what cannot be drawn.
    pub(super) fn check(&self) -> Result<(), TasksetError> {
        let impossible =
            |what: String, accepted: String| Err(TasksetError::Impossible { what, accepted });
        let (tasks, total, tasks_max) = match *self {
            Self::UntilCap { cap, .. } if cap > 0.0 && cap <= CAP_MAX => return Ok(()),
            Self::UntilCap { cap, .. } => {
                return impossible(
                    format!("a total utilization cannot be capped at {cap}"),
                    format!("write more than 0 and at most {CAP_MAX}"),
                );
            }
            Self::UUniFast { total, .. } if total > 1.0 => {
                return impossible(
                    format!("UUniFast cannot share a utilization of {total}"),
                    "write at most 1, or use UUniFast-discard or randfixedsum".to_string(),
                );
            }
            Self::RandFixedSum { tasks, total } => (tasks, total, FIXED_SUM_MAX),
            Self::UUniFast { tasks, total } | Self::UUniFastDiscard { tasks, total } => {
                (tasks, total, TASKS_MAX)
            }
        };
        if tasks == 0 || tasks > tasks_max {
            return impossible(
                format!("there cannot be {tasks} tasks"),
                format!("write 1 to {tasks_max}"),
            );
        }
        if !(total > 0.0 && total <= tasks as f64) {
            return impossible(
                format!("{tasks} tasks cannot have a total utilization of {total}"),
                format!("write more than 0 and at most {tasks}"),
            );
        }
        Ok(())
    }

    /// Ready to draw, after `check` has accepted it: what does not depend on the stream is done.
    pub(super) fn prepare(&self) -> Prepared {
        match *self {
            Self::RandFixedSum { tasks, total } => {
                Prepared::FixedSum(Transitions::new(tasks, total))
            }
            Self::UUniFast { tasks, total } => Prepared::UUniFast(tasks, total),
            Self::UUniFastDiscard { tasks, total } => Prepared::Discard(tasks, total),
            Self::UntilCap { distribution, cap } => Prepared::UntilCap(distribution, cap),
        }
    }
}

/// Utilizations that are ready to draw, again and again.
pub(super) enum Prepared {
    FixedSum(Transitions),
    UUniFast(usize, f64),
    Discard(usize, f64),
    UntilCap(Distribution, f64),
}

impl Prepared {
    /// The utilization of each task, all in `[0, 1]`.
    pub(super) fn draw(
        &self,
        stream: &mut RandomStream,
        attempts: u32,
    ) -> Result<Vec<f64>, TasksetError> {
        match *self {
            Self::FixedSum(ref table) => Ok(rand_fixed_sum(table, stream)),
            Self::UUniFast(tasks, total) => Ok(uunifast(tasks, total, stream)),
            Self::UntilCap(distribution, cap) => Ok(until_cap(distribution, cap, stream)),
            Self::Discard(tasks, total) => {
                let mut drawn = (0..attempts.max(1)).map(|_| uunifast(tasks, total, stream));
                let fits = |utilizations: &Vec<f64>| utilizations.iter().all(|&u| u <= 1.0);
                drawn.find(fits).ok_or_else(|| TasksetError::Impossible {
                    what: format!(
                        "UUniFast-discard found no {tasks} tasks with a total utilization of \
                         {total} in {attempts} attempts"
                    ),
                    accepted: "use randfixedsum, lower the utilization or allow more attempts"
                        .to_string(),
                })
            }
        }
    }
}

fn until_cap(distribution: Distribution, cap: f64, stream: &mut RandomStream) -> Vec<f64> {
    let (mut drawn, mut sum) = (Vec::new(), 0.0);
    // Each is at least 0.001, so this ends after at most 1000 tasks per CPU.
    loop {
        let utilization = distribution.draw(stream);
        sum += utilization;
        if sum > cap {
            return drawn;
        }
        drawn.push(utilization);
    }
}

fn uunifast(tasks: usize, total: f64, stream: &mut RandomStream) -> Vec<f64> {
    let mut rest = total;
    let mut drawn = Vec::with_capacity(tasks);
    for others in (1..tasks).rev() {
        let next = rest * libm::pow(stream.unit(), 1.0 / others as f64);
        drawn.push(rest - next);
        rest = next;
    }
    drawn.push(rest);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn stream(index: u64) -> RandomStream {
        RandomStream::new(11, 0, index)
    }

    pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for value in values {
            sum += value;
            count += 1.0;
        }
        sum / count
    }

    #[test]
    fn uunifast_is_uniform_among_all_sums() {
        let sets: Vec<_> = (0..20_000)
            .map(|i| uunifast(4, 0.8, &mut stream(i)))
            .collect();
        for place in 0..4 {
            // Each is 0.8 times a Beta(1, 3) variable, of mean 1/4 and mean square 1/10.
            let first = mean(sets.iter().map(|u| u[place])) / 0.8;
            let second = mean(sets.iter().map(|u| u[place] * u[place])) / 0.64;
            assert!((first - 0.25).abs() < 0.005, "{place}: {first}");
            assert!((second - 0.1).abs() < 0.005, "{place}: {second}");
        }
        for set in &sets {
            assert!((set.iter().sum::<f64>() - 0.8).abs() < 1e-12);
        }
    }

    #[test]
    fn discarding_keeps_every_task_below_one_cpu() {
        let kind = Utilizations::UUniFastDiscard {
            tasks: 6,
            total: 3.0,
        };
        for index in 0..500 {
            let drawn = kind.prepare().draw(&mut stream(index), 10_000).unwrap();
            assert!(drawn.iter().all(|&u| u <= 1.0));
            assert!((drawn.iter().sum::<f64>() - 3.0).abs() < 1e-9);
        }
        let hopeless = Utilizations::UUniFastDiscard {
            tasks: 20,
            total: 19.9,
        };
        let error = hopeless
            .prepare()
            .draw(&mut stream(0), 10)
            .unwrap_err()
            .to_string();
        assert!(error.contains("in 10 attempts"), "{error}");
    }

    #[test]
    fn the_six_distributions_have_their_bounds_means_and_shares() {
        for ((name, distribution), expected, heavy) in Distribution::ALL
            .into_iter()
            .zip([0.0505, 0.25, 0.7, 0.0, 0.0, 0.0])
            .zip([0.0, 0.0, 1.0, 1.0 / 9.0, 3.0 / 9.0, 5.0 / 9.0])
            .map(|((named, expected), heavy)| (named, expected, heavy))
        {
            let mut stream = stream(3);
            let drawn: Vec<f64> = (0..40_000)
                .map(|_| distribution.draw(&mut stream))
                .collect();
            let share = mean(drawn.iter().map(|&u| f64::from(u8::from(u >= 0.5))));
            assert!((share - heavy).abs() < 0.01, "{name}: {share}");
            let expected = match expected {
                0.0 => heavy * 0.7 + (1.0 - heavy) * 0.2505,
                uniform => uniform,
            };
            let found = mean(drawn.iter().copied());
            assert!(
                (found - expected).abs() < 0.006,
                "{name}: {found} {expected}"
            );
            assert!(drawn.iter().all(|u| (0.001..0.9).contains(u)), "{name}");
        }
    }

    #[test]
    fn tasks_are_added_up_to_the_cap() {
        for index in 0..200 {
            let sum: f64 = until_cap(Distribution::BimodalMedium, 4.0, &mut stream(index))
                .iter()
                .sum();
            assert!(sum <= 4.0 && sum > 3.1, "{sum}");
        }
    }
}
