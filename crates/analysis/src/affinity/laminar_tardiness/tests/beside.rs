//! Theorem 4's operator as its definition says: exact fractions, every configuration and every vertex of
//! the linear program tried.

use shiftwork_model::{RandomStream, Share, Span};

use super::super::reserved::Reserved;
use super::super::{Unavailable, components, groups};
use super::naive::{
    BITS, Naive, Point, Q, inside, naive, or_zero, q, random_point, size, tiny, zero,
};
use super::times_if_long;
use crate::Steps;
use crate::exact::beside;

impl Naive {
    /// F of Theorem 4.
    fn apply_beside(&self, point: &Point) -> Point {
        let blocked = |node: usize| {
            let inner = self.nodes[node];
            let around = |&task: &usize| {
                let mask = self.masks[task];
                mask != inner && inside(inner, mask)
            };
            let tasks = (0..self.masks.len()).filter(around);
            let late = tasks.map(|task| point.late[task].clone());
            late.max().unwrap_or(zero())
        };
        Point {
            late: (0..self.masks.len())
                .map(|task| self.late_beside(point, task))
                .collect(),
            blocked: (0..self.nodes.len()).map(blocked).collect(),
            nearly_done: vec![zero(); self.nodes.len()],
        }
    }

    /// The least over the nodes around a task of A and the value of the linear program, whose vertices
    /// are all tried.
    fn late_beside(&self, point: &Point, task: usize) -> Q {
        let mask = self.masks[task];
        let mut chain: Vec<usize> = (0..self.nodes.len())
            .filter(|&b| inside(mask, self.nodes[b]))
            .collect();
        chain.sort_by_key(|&b| size(self.nodes[b]));
        let (share, burst) = self.lost.as_ref().unwrap();
        let cost = &self.costs[task];
        let tops = (0..chain.len()).map(|top| {
            let after = &point.blocked[chain[top]];
            let slack = burst + share * or_zero(&point.late[task] - after);
            let beyond = or_zero(self.beyond(point, task) - after);
            let mut most = &self.rates[task] * beyond + cost;
            // Each row: coefficients of E and of the waits at each level, and what they are at most.
            let mut rows: Vec<(Vec<Q>, Q)> = Vec::new();
            for level in 0..=top {
                for set in self.sets(chain[level]) {
                    let lag = self.lag(point, &set, after);
                    let has = !set.removed.iter().any(|&gone| inside(mask, gone));
                    let cpus = q(self.cpus(&set) as i128);
                    let mut row = vec![zero(); top + 2];
                    if has {
                        most = most.min(lag.clone());
                        row[0] = q(1);
                        for inner in 0..level {
                            row[inner + 1] = q(size(self.nodes[chain[inner]]) as i128);
                        }
                    }
                    row[level + 1] = cpus.clone();
                    rows.push((row, lag + &slack * cpus));
                }
            }
            let mut only = vec![zero(); top + 2];
            only[0] = q(1);
            rows.push((only, most));
            after + largest_sum(&rows, top + 2)
        });
        tops.min().unwrap()
    }
}

/// The largest sum of so many variables, none negative, with each row's product at most its limit.
fn largest_sum(rows: &[(Vec<Q>, Q)], variables: usize) -> Q {
    // Vertices: every choice of as many tight constraints as there are variables.
    let mut all: Vec<(Vec<Q>, Q)> = rows.to_vec();
    for place in 0..variables {
        let mut row = vec![zero(); variables];
        row[place] = q(-1);
        all.push((row, zero()));
    }
    let mut best = zero();
    let mut chosen: Vec<usize> = (0..variables).collect();
    loop {
        let tight: Vec<&(Vec<Q>, Q)> = chosen.iter().map(|&place| &all[place]).collect();
        if let Some(point) = solution(&tight) {
            let is_within = all.iter().all(|(row, limit)| {
                let product: Q = row.iter().zip(&point).map(|(a, b)| a * b).sum();
                product <= *limit
            });
            if is_within {
                best = best.max(point.iter().sum());
            }
        }
        // The next combination.
        let Some(place) = (0..variables)
            .rev()
            .find(|&place| chosen[place] < all.len() - variables + place)
        else {
            return best;
        };
        chosen[place] += 1;
        for later in place + 1..variables {
            chosen[later] = chosen[later - 1] + 1;
        }
    }
}

/// Of as many equations as there are variables, by elimination; `None` if there is not exactly one.
fn solution(equations: &[&(Vec<Q>, Q)]) -> Option<Vec<Q>> {
    let count = equations.len();
    let mut rows: Vec<Vec<Q>> = equations
        .iter()
        .map(|(row, limit)| row.iter().chain([limit]).cloned().collect())
        .collect();
    for column in 0..count {
        let pivot = (column..count).find(|&row| rows[row][column] != zero())?;
        rows.swap(column, pivot);
        let by = rows[column][column].clone();
        rows[column].iter_mut().for_each(|value| *value /= &by);
        let pivot = rows[column].clone();
        for (place, row) in rows.iter_mut().enumerate() {
            let factor = row[column].clone();
            if place != column {
                let pairs = row.iter_mut().zip(&pivot);
                pairs.for_each(|(value, pivot)| *value -= &factor * pivot);
            }
        }
    }
    Some(rows.into_iter().map(|row| row[count].clone()).collect())
}

#[test]
fn operator_beside_outages_is_its_definition_rounded_up() {
    let unit = q(1 << BITS);
    let mut compared = 0;
    for seed in 1..=times_if_long(40, 50) {
        let mut stream = RandomStream::new(seed, 11, 0);
        let mut tasks = tiny(&mut stream);
        tasks.truncate(5);
        let parts = [4, 5, 8][stream.below(3) as usize];
        let share = Share::from_billionths(Share::WHOLE / parts).unwrap();
        let burst = Span::from_ns(stream.below(10));
        while groups(&tasks, beside(share)).is_err() {
            tasks.pop();
        }
        let groups = groups(&tasks, beside(share)).unwrap();
        for of in components(&tasks, &groups, Some(Unavailable { share, burst })) {
            let deadlines = of.tasks.iter().map(|member| member.task.deadline.as_ns());
            let shift = stream.below(deadlines.min().unwrap() + 1);
            let point = random_point(&of, &mut stream);
            let mut operator = Reserved::new(&of, shift, |ns| i128::from(ns) << BITS).unwrap();
            let got = operator.apply(&point, &mut Steps::ordinary()).unwrap();
            let on_grid = |values: &[i128]| values.iter().map(|&v| q(v) / &unit).collect();
            let mut naive = naive(&of, &tasks, shift);
            let share = q(1) / q(parts.into());
            naive.lost = Some((share, q(burst.as_ns().into())));
            let expected = naive.apply_beside(&Point {
                late: on_grid(&point.late),
                blocked: on_grid(&point.blocked),
                nearly_done: on_grid(&point.blocked_nearly_done),
            });
            let expected = expected.late.into_iter().chain(expected.blocked);
            compared += 1;
            let got = got.late.iter().chain(&got.blocked);
            for (place, (&got, expected)) in got.zip(expected).enumerate() {
                let over = q(got) - expected * &unit;
                assert!(
                    over >= zero() && over < q(100),
                    "seed {seed}, value {place}, over by {over}, shift {shift}: {tasks:?}"
                );
            }
        }
    }
    assert!(compared > 10, "{compared}");
}
