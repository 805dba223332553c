//! Claims that have ended but still count in admission.
//!
//! A task that has used the budget of its period and leaves, or asks for less, could come back at once for
//! another budget if its claim ended with it (Example 1 of Tang et al.: two tasks ask for 94 of 100 around
//! each of their replenishments and for 1 otherwise, are never seen with more than 0.95 together, and
//! use 1.88). So a claim that ends *lingers*: it counts until an instant `until` that the machine names.
//!
//! # What `until` has to be
//! The end of the server's period, which is the deadline where that is the period; it may be the zero-lag
//! time (deadline - what is left x T / C, rounded up) if what is left of the budget is given up and not
//! only lowered. A machine that knows neither says the present instant plus the old period, which is
//! never less.
//!
//! # Why no sequence of requests gets more than its share
//! Let a server be given a budget C at r, to be used in a period that ends at e = r + T. Invariant:
//! as long as the server may use it, and at least in all of [r, e), a claim counts with rate C/T or
//! more on CPUs among those that it may use. For a period that goes on to its end either the claim
//! is present, or it lingers until e; and what counts instead of it ([`Stay`]) has a rate that is
//! not lower. A server that gives up q of its budget at t has used C - q, and has been counted
//! since r with C/T until e - q T / C: that is C - q. A task that enters anew while its old claim
//! lingers has a new server: both count. So what is given to servers in any interval, to be used by
//! its end, is at most the integral of what counts in it; and at every instant that passed
//! admission, which holds for all claims together. With EDF on one CPU and no deadline before the
//! end of a period this is the demand criterion: no deadline is missed, for any sequence of
//! requests. On several CPUs it bounds the CPU time that any group of tasks can take from the
//! others in the long run.
//!
//! A task that moves to other CPUs in the middle of a period keeps its remaining budget. The old
//! claim lingers one period longer than `until`. Each stay on some CPUs then counts for as many
//! whole budgets as can be used there, and a task gains nothing by moving back and forth. The
//! unfinished work arrives with an early deadline, however, and may delay other tasks past their
//! deadlines by at most one budget for each move, unless the machine lowers the remaining budget to
//! what the rest of the period allows.
//!
//! # Where demand is not a rate
//! Under fixed priorities and for deadlines before the end of the period, tests look at intervals
//! in which the same tasks take part from beginning to end. No such interval may hold jobs of a
//! claim that ended and of one that came in its place, or each test might pass and both together
//! not be true. Where the test looks at the window of one job (fixed priorities, weak EDF, and strong EDF where
//! deadlines are promised, on several CPUs), a claim therefore lingers for the longest deadline more. Where it looks at busy
//! intervals (one CPU), it lingers until the CPU has been idle, which it has after (W + A) /
//! (supply - U), where W is the work of all jobs that can be pending when the period ends if no
//! deadline is missed, A the sum of the costs of all present tasks, and U the sum of their
//! utilizations: while the CPU is busy, the demand in an interval of length x is at most W plus C +
//! C x / T of each present task.
//!
//! # Assumes
//! Servers that keep their budgets ([`hard`](super::Guarantee::Hard) promises: exactly; what a machine lets
//! them overdraw comes on top), and instants that do not go back.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::{CpuSet, Instant, Placement, Share, Span};

use super::{Claim, DeadlineTests, Terms};
use crate::affinity::parts::parts;
use crate::exact::beside;

/// Maximum number of lingering claims of one task. Further changes of that task are refused until
/// one of them ends.
pub(super) const FORMER_MAX: usize = 16;

/// A claim that counts at least until then.
#[derive(Clone, Debug)]
pub(super) struct Former {
    pub(super) claim: Claim,
    pub(super) until: Instant,
}

/// All claims of one server, of which it has one at a time: the present one and those that linger.
#[derive(Clone, Copy)]
pub(super) struct Stay<'a> {
    pub(super) present: Option<&'a Claim>,
    /// The one that lingers as soon as a change is granted.
    pub(super) replaced: Option<&'a Claim>,
    pub(super) former: &'a [Former],
}

impl<'a> Stay<'a> {
    pub(super) fn all(self) -> impl Iterator<Item = &'a Claim> {
        let former = self.former.iter().map(|former| &former.claim);
        self.present.into_iter().chain(self.replaced).chain(former)
    }

    /// The claims that have to count, so that every other is stood for by one of them. CPUs of the others
    /// that are not among theirs are links between CPUs.
    ///
    /// `linear`: demand is a rate, see [`is_linear`].
    pub(super) fn counted(
        self,
        terms: Terms,
        linear: bool,
        online: &CpuSet,
    ) -> (Vec<&'a Claim>, Vec<CpuSet>) {
        let mut kept: Vec<&Claim> = Vec::new();
        // A former claim whose CPUs are all offline takes no capacity from other tasks.
        let present = self.present;
        let is_there = |claim: &&Claim| {
            present.is_some_and(|present| std::ptr::eq(*claim, present))
                || claim.cpus.intersects(online)
        };
        for claim in self.all().filter(is_there) {
            if kept.iter().any(|one| stands_for(one, claim, terms, linear)) {
                continue;
            }
            kept.retain(|one| !stands_for(claim, one, terms, linear));
            kept.push(claim);
        }
        let hidden = |claim: &&Claim| kept.iter().all(|one| one.cpus != claim.cpus);
        let links = self.all().filter(hidden).map(|claim| claim.cpus).collect();
        (kept, links)
    }
}

/// Whether deadlines on several CPUs are promised under EDF by tests that look at the window of one job.
fn by_windows(terms: Terms) -> bool {
    terms.policy.placement == Placement::Weak || terms.deadlines != DeadlineTests::None
}

/// Whether what these claims demand are rates: under EDF, except where all deadlines are promised by
/// windows, if no deadline is before the end of its period.
pub(super) fn is_linear<'a>(terms: Terms, mut claims: impl Iterator<Item = &'a Claim>) -> bool {
    let by_rate = terms.is_edf() && !by_windows(terms) && terms.quanta.is_none();
    by_rate && claims.all(|claim| claim.deadline >= claim.period)
}

/// Whether, of two successive claims of one server, counting `one` alone is enough for both: it
/// demands no less, and only on CPUs of the other.
fn stands_for(one: &Claim, other: &Claim, terms: Terms, linear: bool) -> bool {
    let is_edf = terms.is_edf();
    // Whatever contains the wider CPUs contains the narrower, which are also true of their sums.
    let nests = linear && terms.policy.placement.shifts();
    let within = match nests {
        true => one.cpus.is_subset(&other.cpus),
        false => one.cpus == other.cpus,
    };
    // Tests that look at windows are not exact: a later deadline may fail where an earlier one
    // passes.
    let is_exact = is_edf && !by_windows(terms);
    let covers = one.cost >= other.cost
        && one.period <= other.period
        && one.deadline <= other.deadline
        && (is_exact || one.deadline == other.deadline)
        && (is_edf || one.priority == other.priority);
    let [more, less] = [(one, other), (other, one)]
        .map(|(of, by)| u128::from(of.cost.as_ns()) * u128::from(by.period.as_ns()));
    within && (covers || (linear && more >= less))
}

/// How long after the end of its period the claim has to count, among these; see the module.
///
/// `active` says of each of the others whether it may still release jobs then.
pub(super) fn aftermath(
    former: &Former,
    counted: &[(&Claim, bool)],
    online: &CpuSet,
    terms: Terms,
) -> Span {
    let affinities: Vec<CpuSet> = counted
        .iter()
        .map(|(claim, _)| claim.cpus & *online)
        .collect();
    let parts = parts(&affinities);
    let cpus = former.claim.cpus & *online;
    let part = parts.into_iter().find(|part| part.cpus.intersects(&cpus));
    let Some(part) = part else {
        return Span::ZERO;
    };
    let members: Vec<(&Claim, bool)> = part.members.iter().map(|&place| counted[place]).collect();
    let is_short = |&(claim, _): &(&Claim, bool)| claim.deadline < claim.period;
    match (terms.is_edf(), part.cpus.len()) {
        (true, 1) if members.iter().any(is_short) => until_idle(&members, terms.reserve),
        (true, 1) => Span::ZERO,
        (true, _) if !by_windows(terms) => Span::ZERO,
        (false, 1) => until_idle(&members, terms.reserve),
        _ => members
            .iter()
            .map(|(claim, _)| claim.deadline)
            .max()
            .unwrap_or(Span::ZERO),
    }
}

/// (W + A) / (supply - U), rounded up; the longest span if there is no such time.
fn until_idle(members: &[(&Claim, bool)], reserve: Share) -> Span {
    let whole = |ns: u128| Ratio::from_integer(BigInt::from(ns));
    let mut work = whole(0);
    let mut spare = Ratio::new(
        BigInt::from(beside(reserve).billionths()),
        BigInt::from(Share::WHOLE),
    );
    for &(claim, is_active) in members {
        let [cost, period, deadline] =
            [claim.cost, claim.period, claim.deadline].map(|span| u128::from(span.as_ns()));
        let pending = deadline.div_ceil(period.max(1));
        work += whole(cost) * whole(pending + u128::from(is_active));
        if is_active {
            spare -= Ratio::new(BigInt::from(cost), BigInt::from(period.max(1)));
        }
    }
    if spare <= whole(0) {
        return Span::MAX;
    }
    let time = (work / spare).ceil().to_integer();
    u64::try_from(time).map_or(Span::MAX, Span::from_ns)
}
