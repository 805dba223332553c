use shiftwork_model::Span;

use crate::{NotShown, Outcome, Sporadic, Steps};

use super::slack::{Known, rounds};
use super::{Deadlines, misfit, outcome};

/// Whether global EDF is shown to meet all deadlines, by bounds on response times; these bounds.
///
/// The response time of k is the least R with C_k + floor(sum over all others of min(W_i(R), I_i,
/// R - C_k + 1) / m) <= R. I_i is that of [`bcli`](super::bcli()); W_i(R) = N C_i + min(C_i, L - N T_i)
/// with N = floor(L/T_i) and L = R + D_i - C_i - S_i is what jobs of i run in any interval of length R
/// when they are done S_i before their deadlines. Rounds go on until all tasks are in time or nothing
/// is learnt.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; constrained deadlines.
///
/// # Cost
/// One step per other task and look at a task; pseudo-polynomial. Integers throughout.
///
/// # Source
/// M. Bertogna, M. Cirinei, "Response-Time Analysis for Globally Scheduled Symmetric Multiprocessor
/// Platforms", RTSS 2007, for EDF. The published algorithm may stop after a number of rounds; here
/// only [`Steps`] stops it.
pub fn rta(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Constrained) {
        return Outcome::Fail(misfit);
    }
    let mut others = Others::default();
    let respond = |place: usize, known: &[Known], steps: &mut Steps| {
        others.response(place, known, cpus, steps)
    };
    outcome(rounds(tasks, steps, respond))
}

/// What the other tasks may do, kept to be used again.
#[derive(Default)]
struct Others {
    /// The most that each runs until the deadline, ever: I_i.
    until_deadline: Vec<u64>,
    /// The most that each runs within the response time that is looked at.
    works: Vec<u64>,
}

impl Others {
    /// The response time of the task at a place, if it is in time.
    ///
    /// With x = R - C_k, the bound is the least x with x >= floor(sum of min(w_i, x + 1) / m). As the
    /// work w_i in R grows with R, the least x for the work at a smaller R is still too small or just
    /// right: the search goes on from there, rather than by single nanoseconds.
    fn response(
        &mut self,
        place: usize,
        known: &[Known],
        cpus: usize,
        steps: &mut Steps,
    ) -> Option<Option<u64>> {
        let own = &known[place];
        steps.take(known.len())?;
        let interference = known.iter().map(|other| other.due_within(own.deadline));
        self.until_deadline.clear();
        self.until_deadline.extend(interference);
        // It does not delay itself.
        self.until_deadline[place] = 0;
        let spare = own.deadline - own.cost;
        let mut delay = 0;
        loop {
            steps.take(known.len())?;
            let work = known.iter().zip(&self.until_deadline);
            let work = work.map(|(other, &most)| other.within(own.cost + delay).min(most));
            self.works.clear();
            self.works.extend(work);
            match least_delay(&self.works, delay, spare, cpus, steps)? {
                None => return Some(None),
                Some(least) if least <= delay => return Some(Some(own.cost + delay)),
                Some(least) => delay = least,
            }
        }
    }
}

/// The least x with floor(sum of min(w_i, x + 1) / m) <= x, if it is at most `most`. What is at most
/// `reached` is not distinguished: some number up to it stands for all.
///
/// With y = x + 1 that is the least y with sum of min(w_i, y) < m y. The left side is concave in y, so
/// that from any y that holds one comes down to the least by Newton's method, piece by piece.
pub(super) fn least_delay(
    works: &[u64],
    reached: u64,
    most: u64,
    cpus: usize,
    steps: &mut Steps,
) -> Option<Option<u64>> {
    let holds = |y: u64, below: u128, above: usize| {
        below + above as u128 * u128::from(y) < cpus as u128 * u128::from(y)
    };
    let mut y = reached + 1;
    let (below, above) = split(works, y);
    if holds(y, below, above) {
        return Some(Some(reached));
    }
    y = most + 1;
    loop {
        steps.take(works.len() / 4 + 1)?;
        let (below, above) = split(works, y);
        if !holds(y, below, above) {
            return Some(None);
        }
        // As it holds, fewer than m are not below y.
        let least = below / (cpus - above) as u128 + 1;
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        // The w_i are whole, so from y - 1 to y the sum is on this line: y - 1 does not hold, nor, as
        // the sum is concave, does anything less.
        if least >= y {
            return Some(Some(y - 1));
        }
        y = least;
    }
}

/// The sum of the numbers below `y`, and how many are not.
fn split(works: &[u64], y: u64) -> (u128, usize) {
    let (mut below, mut above) = (0, 0);
    for &work in works {
        if work < y {
            below += u128::from(work);
        } else {
            above += 1;
        }
    }
    (below, above)
}
