//! Classification of policies by their properties, as far as tests and admission care.

use shiftwork_model::{Alignment, Budgets, Invariant, Order, Placement, PolicyTraits, Preemption};

/// Whether running jobs are preempted at any time, so that an invariant holds at all times.
pub(crate) const fn is_preemptive(policy: &PolicyTraits) -> bool {
    matches!(policy.preemption, Preemption::AtEvents)
        && matches!(
            policy.invariant,
            Invariant::Weak | Invariant::Strong | Invariant::Packed
        )
}

/// Whether deadlines alone rank jobs, so that the theory of EDF speaks of them on one CPU.
pub(crate) fn ranks_by_deadline(order: Order) -> bool {
    order == Order::Edf
}

/// Preemptive EDF, with any placement.
pub(crate) fn is_edf(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && ranks_by_deadline(policy.order)
}

/// Preemptive fixed priorities, with any placement.
pub(crate) fn is_fp(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && policy.order == Order::FixedPriority
}

/// Global scheduling by the priority points of fair lateness.
pub(crate) fn is_fair_lateness(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && policy.order == Order::FairLateness
}

/// Global EDF that runs a job without laxity before all others (EDZL). It meets the deadlines of every task set with
/// constrained deadlines of which global EDF does: as long as all jobs execute for their cost, both decide
/// alike, since under EDF no job waits that has no laxity left; and jobs that execute for less complete
/// no later than such jobs.
///
/// # Source
/// T. Baker, M. Cirinei, M. Bertogna, "EDZL scheduling analysis", Real-Time Systems 40(3), 2008, which states
/// the first and refers to S. Cho et al. 2002; X. Piao, S. Han, H. Kim, M. Park, Y. Cho, "Predictability of
/// Earliest Deadline Zero Laxity Algorithm for Multiprocessor Real-Time Systems", ISORC 2006, for the second.
pub(crate) fn is_zero_laxity(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && policy.order == Order::ZeroLaxity
}

/// Whether each CPU has a scheduler of its own.
pub(crate) const fn is_partitioned(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && matches!(policy.placement, Placement::Partitioned)
}

/// Whether each part has a scheduler of its own.
pub(crate) const fn is_packed(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && policy.placement.is_packed()
}

/// Whether affinities may differ within a part.
pub(crate) const fn is_by_affinity(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && (matches!(policy.placement, Placement::Weak) || shifts(policy))
}

/// Whether running jobs are moved where that makes room.
pub(crate) const fn shifts(policy: &PolicyTraits) -> bool {
    is_preemptive(policy) && policy.placement.shifts()
}

/// Global scheduling under which a job that runs goes on to its end, by deadlines or by priorities.
pub(crate) fn is_non_preemptive(policy: &PolicyTraits) -> bool {
    policy.placement == Placement::Global && policy.preemption == Preemption::Never
}

/// Non-preemptive global EDF.
pub(crate) fn is_np_edf(policy: &PolicyTraits) -> bool {
    is_non_preemptive(policy) && policy.order == Order::Edf
}

/// Non-preemptive global fixed priorities.
pub(crate) fn is_np_fp(policy: &PolicyTraits) -> bool {
    is_non_preemptive(policy) && policy.order == Order::FixedPriority
}

/// Fixed priorities, with preemption or without.
pub(crate) fn is_by_priority(policy: &PolicyTraits) -> bool {
    is_fp(policy) || is_np_fp(policy)
}

/// SCHED_DEADLINE with repaired migrations: each task on one CPU or on all of them.
pub(crate) fn is_semi_partitioned(policy: &PolicyTraits) -> bool {
    policy.budgets == Budgets::AsLinuxRepaired
}

/// PD2, in quanta that lie to each other like this.
pub(crate) const fn pfair(policy: &PolicyTraits) -> Option<Alignment> {
    match policy.preemption {
        Preemption::Pfair(alignment) => Some(alignment),
        _ => None,
    }
}
