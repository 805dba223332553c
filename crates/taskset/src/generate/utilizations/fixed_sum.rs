//! Stafford's method: values with a fixed sum, uniform among all there are.

use shiftwork_model::RandomStream;

/// The probabilities of [`rand_fixed_sum`] for `n` values with the sum `s`.
pub(in crate::generate) struct Transitions {
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
    pub(super) fn new(n: usize, s: f64) -> Self {
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
pub(super) fn rand_fixed_sum(transitions: &Transitions, stream: &mut RandomStream) -> Vec<f64> {
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
    use super::super::tests::{mean, stream};
    use super::*;

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
}
