//! The response time: the least window that does not leave a job unfinished.

use super::levels::Program;
use super::prices::Prices;
use crate::Steps;
use crate::affinity::interference::Capped;

/// The response is found to this part of the largest one allowed.
const RESOLUTION: u64 = 1 << 12;

/// A task that waits, and prices for what others execute meanwhile, kept to be improved.
pub(super) struct Waiter<'a> {
    program: &'a Program,
    prices: Option<Prices>,
}

/// What others execute while a task waits, by place in its program. Kept to be used again, as every allocation takes time.
#[derive(Default)]
pub(super) struct Others {
    capped: Vec<Capped>,
    works: Vec<u64>,
}

impl<'a> Waiter<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        Self {
            program,
            prices: Prices::new(program),
        }
    }

    /// A bound on the response time of the task at `place`, something above `limit` if there is none; `None` when out of
    /// steps. `capped` is what a task can do to it, other than itself.
    ///
    /// `alone` is what a job takes that never waits: C, or C + S if it may be suspended for S. If a job is unfinished after a
    /// window of length y, then it waited in it for y - `alone` + 1 whole units at least. So y is a bound once the time waited is
    /// at most y - `alone`. As what others execute in y grows with y, the time waited for a smaller y is no more than that for
    /// the bound: the search goes on from it.
    pub(super) fn response(
        &mut self,
        others: &mut Others,
        (place, alone): (usize, u64),
        (from, limit): (u64, u64),
        capped: impl Fn(usize) -> Capped,
        steps: &mut Steps,
    ) -> Option<u64> {
        let places = &self.program.places;
        steps.take(places.len())?;
        let beyond = limit.saturating_add(1);
        let Some(prices) = &mut self.prices else {
            return Some(beyond);
        };
        let nothing = |other: Capped| Capped { most: 0, ..other };
        let capped = places.iter().map(|&other| match other == place {
            true => nothing(capped(other)),
            false => capped(other),
        });
        others.capped.clear();
        others.capped.extend(capped);
        let mut length = from;
        while length <= limit {
            steps.take(places.len())?;
            let works = others.capped.iter();
            let works = works.map(|other| other.task.work_in(length).min(other.most));
            others.works.clear();
            others.works.extend(works);
            let spare = length - alone;
            let waited = prices.bound(self.program, &others.works, spare, steps)?;
            if waited <= u128::from(spare) {
                return Some(length);
            }
            let next = u128::from(alone).saturating_add(waited);
            let next = u64::try_from(next).unwrap_or(u64::MAX);
            length = next.max(length.saturating_add(limit / RESOLUTION + 1));
        }
        Some(beyond)
    }
}
