use shiftwork_model::Span;

use crate::{NotShown, Outcome, Sporadic, Steps};

use super::slack::{Known, rounds};
use super::{Deadlines, misfit, outcome};

/// Whether global EDF is shown to meet all deadlines, with what is learnt about how early each task
/// finishes; the response times within which that is shown.
///
/// A job of k is delayed by at most floor(sum over all others of min(I_i, D_k - C_k + 1) / m), where
/// I_i = floor(D_k/T_i) C_i + min(C_i, max(0, D_k mod T_i - S_i)) and every job of i is done S_i
/// before its deadline.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; constrained deadlines.
///
/// # Cost
/// One step per pair of tasks and round. Integers throughout.
///
/// # Source
/// M. Bertogna, M. Cirinei, G. Lipari, "Schedulability Analysis of Global Scheduling Algorithms on
/// Multiprocessor Platforms", IEEE TPDS 20(4), 2009, the iterative test for EDF. The published
/// algorithm may stop after a number of rounds; here only [`Steps`] stops it.
pub fn bcli(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Constrained) {
        return Outcome::Fail(misfit);
    }
    let respond = |place: usize, known: &[Known], steps: &mut Steps| {
        steps.take(known.len())?;
        Some(response(place, known, cpus))
    };
    outcome(rounds(tasks, steps, respond))
}

/// The response time of the task at a place, if it is in time.
fn response(place: usize, known: &[Known], cpus: usize) -> Option<u64> {
    let (before, after) = (&known[..place], &known[place + 1..]);
    let own = &known[place];
    let most = own.deadline - own.cost + 1;
    let others = before.iter().chain(after);
    let delay: u128 = others
        .map(|other| u128::from(other.due_within(own.deadline).min(most)))
        .sum();
    let delay = u64::try_from(delay / cpus as u128).ok()?;
    own.cost
        .checked_add(delay)
        .filter(|&response| response <= own.deadline)
}
