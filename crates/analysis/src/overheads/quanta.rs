//! Schedulers that decide where quanta begin.

use shiftwork_model::TaskSet;

use super::charges::Charges;
use super::{Obstacle, StandIn};
use crate::affinity::parts::Part;
use crate::pfair::Quanta;
use crate::verdicts::Rule;

/// The tasks of the part, in its order. What the tests of Pfair charge themselves is left to them.
pub(super) fn inflate(
    set: &TaskSet,
    (rule, quanta): (Rule, &Quanta),
    part: &Part,
    charges: &Charges,
) -> Vec<StandIn> {
    let quantum = u128::from(quanta.quantum.as_ns());
    let releases = |place: usize| match charges.dedicated {
        true => 0,
        false => {
            charges.release * quantum.div_ceil(u128::from(set.tasks[place].period.as_ns().max(1)))
        }
    };
    let of_all: u128 = part.members.iter().map(|&place| releases(place)).sum();
    let is_pfair = matches!(rule, Rule::Pfair { .. });
    let sees_at_once = |place: usize| quanta.sees_at_once(set.tasks[place].period);
    // What is released at one instant is one interrupt, and nothing is released at others.
    let queued = match part.members.iter().all(|&place| sees_at_once(place)) {
        true => Some(0),
        false => charges.queued,
    };
    let staggering = match is_pfair {
        true => 0,
        false => quanta.stagger_latency_ns(charges.cpus),
    };
    let inflated = |&place: &usize| {
        let task = &set.tasks[place];
        let at_once = sees_at_once(place);
        let Some(queued) = queued else {
            return StandIn::none(Obstacle::Interrupts);
        };
        // Whoever comes just where a quantum begins is handled in it.
        let handled = match charges.dedicated && at_once {
            true => queued + charges.release,
            false => 0,
        };
        let begin = charges.tick + charges.switch + charges.refill + handled;
        let lost = begin + of_all - releases(place);
        let Some(left) = quantum.checked_sub(lost).filter(|&left| left > 0) else {
            return StandIn::none(Obstacle::Quantum);
        };
        let cost = u128::from(task.cost.as_ns()).div_ceil(left) * quantum;
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
    part.members.iter().map(inflated).collect()
}
