//! How much of a CPU each task uses.

use shiftwork_model::RandomStream;

use crate::error::TasksetError;

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

/// The probabilities of [`rand_fixed_sum`] for `n` values with the sum `s`.
pub(super) struct Transitions {
    n: usize,
    s: f64,
    /// The column in which the walk begins: the whole part of `s`.
    start: usize,
    /// Row after row, of each the columns that the walk can be in.
    table: Vec<f64>,
    /// Of every row, from 1 to `n - 1`: where it begins in the table, and with which column.
    rows: Vec<(usize, usize)>,
}

impl Transitions {
    /// The table for `n` values, at least one, with the sum `s`.
    ///
    /// O(k (n - k)) time and space for k the whole part of `s`. Entry (i, j) says how likely the walk
    /// through the simplices that fill the slice of the cube goes down in dimension i from column j;
    /// the weights are volumes, kept large against underflow.
    fn new(n: usize, s: f64) -> Self {
        let k = (s as usize).min(n - 1);
        let below: Vec<f64> = (0..=k).map(|j| s - (k as f64 - j as f64)).collect();
        let above: Vec<f64> = (0..=n).map(|j| (k + n - j) as f64 - s).collect();
        let mut table = Vec::with_capacity(n + (k + 1) * (n - k));
        let mut rows = Vec::with_capacity(n);
        let mut weights = vec![0.0; n + 2];
        let mut next = weights.clone();
        weights[1] = f64::MAX;
        for i in 2..=n {
            // The walk goes down by a column at most from row to row, and ends in the first.
            let columns = (k + i).saturating_sub(n)..i.min(k + 1);
            rows.push((table.len(), columns.start));
            let width = columns.len();
            let up = &weights[columns.start + 1..][..width];
            let down = &weights[columns.start..][..width];
            let below = &below[columns.clone()];
            let above = &above[n - i + columns.start..][..width];
            let next_row = &mut next[columns.start + 1..][..width];
            let size = i as f64;
            let begin = table.len();
            table.resize(begin + width, 0.0);
            let entries = &mut table[begin..];
            for j in 0..width {
                let up = up[j] * below[j] / size;
                let down = down[j] * above[j] / size;
                // Subnormal weights would make it many times slower and are never reached.
                let weight = up + down;
                next_row[j] = if weight < f64::MIN_POSITIVE {
                    0.0
                } else {
                    weight
                };
                // The smaller of both is divided, so that little is lost.
                let sum = weight + f64::MIN_POSITIVE;
                let rather_down = above[j] > below[j];
                let part = if rather_down { down } else { up } / sum;
                entries[j] = if rather_down { part } else { 1.0 - part };
            }
            std::mem::swap(&mut weights, &mut next);
        }
        Self {
            n,
            s,
            start: k,
            table,
            rows,
        }
    }

    /// The probability of going down in dimension `i` from column `j`.
    fn get(&self, i: usize, j: usize) -> f64 {
        let (begin, first) = self.rows[i - 1];
        self.table[begin + j - first]
    }
}

/// Values in `[0, 1]` with the sum of the table, uniform among all there are.
fn rand_fixed_sum(transitions: &Transitions, stream: &mut RandomStream) -> Vec<f64> {
    let n = transitions.n;
    let (mut rest, mut column) = (transitions.s, transitions.start);
    let (mut sum, mut product) = (0.0, 1.0);
    let mut drawn = Vec::with_capacity(n);
    for i in (1..n).rev() {
        let down = stream.unit() <= transitions.get(i, column);
        let coordinate = libm::pow(stream.unit(), 1.0 / i as f64);
        sum += (1.0 - coordinate) * product * rest / (i + 1) as f64;
        product *= coordinate;
        if down {
            drawn.push(sum + product);
            rest -= 1.0;
            column = column.saturating_sub(1);
        } else {
            drawn.push(sum);
        }
    }
    drawn.push(sum + product * rest);
    for value in &mut drawn {
        *value = value.clamp(0.0, 1.0);
    }
    stream.shuffle(&mut drawn);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(index: u64) -> RandomStream {
        RandomStream::new(11, 0, index)
    }

    fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for value in values {
            sum += value;
            count += 1.0;
        }
        sum / count
    }

    /// All entries, also those that no walk comes by, one by one.
    fn whole_triangle(n: usize, s: f64) -> Vec<Vec<f64>> {
        let k = (s as usize).min(n - 1);
        let below = |j: usize| s - (k as f64 - j as f64);
        let above = |j: usize| (k + n - j) as f64 - s;
        let mut weights = vec![0.0; n + 1];
        weights[1] = f64::MAX;
        let row = |i: usize| {
            let mut next = vec![0.0; n + 1];
            let entry = |j: usize| {
                let up = weights[j + 1] * below(j) / i as f64;
                let down = weights[j] * above(n - i + j) / i as f64;
                next[j + 1] = match up + down {
                    weight if weight < f64::MIN_POSITIVE => 0.0,
                    weight => weight,
                };
                let sum = up + down + f64::MIN_POSITIVE;
                match above(n - i + j) > below(j) {
                    true => down / sum,
                    false => 1.0 - up / sum,
                }
            };
            let entries = (0..i).map(entry).collect();
            weights = next;
            entries
        };
        (2..=n).map(row).collect()
    }

    #[test]
    fn the_table_has_the_bits_of_the_whole_triangle() {
        let mut stream = stream(9);
        for _ in 0..300 {
            let n = 1 + stream.below(90) as usize;
            let s = match stream.below(3) {
                0 => (1 + stream.below(n as u64)) as f64,
                _ => n as f64 * stream.unit(),
            };
            let (table, whole) = (Transitions::new(n, s), whole_triangle(n, s));
            for i in 1..n {
                // As many steps down as there have been rows.
                let columns = table.start.saturating_sub(n - 1 - i)..=table.start.min(i);
                let found = columns.clone().map(|j| table.get(i, j).to_bits());
                let expected = whole[i - 1][columns].iter().map(|entry| entry.to_bits());
                assert!(
                    found.eq(expected),
                    "row {i} for {n} values with the sum {s}"
                );
            }
        }
    }

    #[test]
    fn a_fixed_sum_is_met_within_bounds() {
        for (n, s) in [
            (1, 0.3),
            (2, 1.0),
            (3, 0.01),
            (5, 4.99),
            (10, 5.0),
            (240, 18.0),
            (7, 7.0),
        ] {
            for index in 0..50 {
                let drawn = rand_fixed_sum(&Transitions::new(n, s), &mut stream(index));
                assert_eq!(drawn.len(), n);
                assert!(
                    drawn.iter().all(|u| (0.0..=1.0).contains(u)),
                    "{n} {s} {drawn:?}"
                );
                let sum: f64 = drawn.iter().sum();
                assert!((sum - s).abs() < 1e-9, "{n} {s}: {sum}");
            }
        }
    }

    /// Uniform on the slice of the cube by its definition: draw all but one, keep what fits.
    fn by_rejection(n: usize, s: f64, stream: &mut RandomStream) -> Vec<f64> {
        loop {
            let mut drawn: Vec<f64> = (1..n).map(|_| stream.unit()).collect();
            let last = s - drawn.iter().sum::<f64>();
            if (0.0..=1.0).contains(&last) {
                drawn.push(last);
                return drawn;
            }
        }
    }

    #[test]
    fn a_fixed_sum_is_distributed_as_its_definition() {
        for (n, s) in [(2, 0.7), (3, 1.5), (3, 0.5), (4, 2.2), (5, 3.6)] {
            let sets = 20_000;
            let table = Transitions::new(n, s);
            let ours: Vec<_> = (0..sets)
                .map(|i| rand_fixed_sum(&table, &mut stream(i)))
                .collect();
            let theirs: Vec<_> = (0..sets)
                .map(|i| by_rejection(n, s, &mut stream(i)))
                .collect();
            for place in 0..n {
                for power in [1, 2, 3] {
                    let moment =
                        |sets: &[Vec<f64>]| mean(sets.iter().map(|u| u[place].powi(power)));
                    let (a, b) = (moment(&ours), moment(&theirs));
                    assert!((a - b).abs() < 0.012, "{n} {s} {place} {power}: {a} {b}");
                }
                let pair =
                    |sets: &[Vec<f64>]| mean(sets.iter().map(|u| u[place] * u[(place + 1) % n]));
                assert!(
                    (pair(&ours) - pair(&theirs)).abs() < 0.012,
                    "{n} {s} {place}"
                );
            }
        }
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
