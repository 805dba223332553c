//! Schedulers that decide where quanta begin.

use shiftwork_model::PolicyTraits;

use super::charges::Charges;
use super::{Obstacle, StandIn};
use crate::Sporadic;
use crate::pfair::Quanta;
use crate::policy::pfair;

/// The tasks of the part, in its order. What the tests of Pfair charge themselves is left to them.
pub(super) fn inflate(
    (policy, quanta): (&PolicyTraits, &Quanta),
    tasks: &[Sporadic],
    charges: &Charges,
) -> Vec<StandIn> {
    let quantum = u128::from(quanta.quantum.as_ns());
    let releases = |task: &Sporadic| match charges.dedicated {
        true => 0,
        false => charges.release * quantum.div_ceil(task.period_ns().max(1)),
    };
    let of_all: u128 = tasks.iter().map(releases).sum();
    let is_pfair = pfair(policy).is_some();
    let sees_at_once = |task: &Sporadic| quanta.sees_at_once(task.period);
    // What is released at one instant is one interrupt, and nothing is released at others.
    let queued = match tasks.iter().all(sees_at_once) {
        true => Some(0),
        false => charges.queued,
    };
    let staggering = match is_pfair {
        true => 0,
        false => quanta.stagger_latency_ns(charges.cpus),
    };
    let inflated = |task: &Sporadic| {
        let at_once = sees_at_once(task);
        let Some(queued) = queued else {
            return StandIn::none(Obstacle::Interrupts);
        };
        // The release of a job at the beginning of a quantum is handled in that quantum.
        let handled = match charges.dedicated && at_once {
            true => queued + charges.release,
            false => 0,
        };
        let begin = charges.tick + charges.switch + charges.refill + handled;
        let lost = begin + of_all - releases(task);
        let Some(left) = quantum.checked_sub(lost).filter(|&left| left > 0) else {
            return StandIn::none(Obstacle::Quantum);
        };
        let cost = task.cost_ns().div_ceil(left) * quantum;
        let unseen = match (at_once, is_pfair) {
            (true, _) => 0,
            (false, true) => queued + charges.release,
            (false, false) => queued + charges.release + quantum,
        };
        let delay = unseen + staggering;
        let window = |span: shiftwork_model::Span| {
            let left = u128::from(span.as_ns()).saturating_sub(delay);
            match is_pfair {
                true => left,
                false => left - left % quantum,
            }
        };
        let times = [cost, window(task.period), window(task.deadline)];
        StandIn::new(delay, times)
    };
    tasks.iter().map(inflated).collect()
}
