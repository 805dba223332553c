//! The properties that policies have in common: of each placement those of its reference under EDF.

use shiftwork_model::{
    Affinities, Alignment, Budgets, Invariant, Machines, Order, Placement, PolicyTraits,
    Preemption, Role,
};

/// Strong scheduling under any affinities; special affinities make it global or hierarchical.
pub const STRONG: PolicyTraits = PolicyTraits {
    order: Order::Edf,
    placement: Placement::Strong,
    preemption: Preemption::AtEvents,
    invariant: Invariant::Strong,
    affinities: Affinities::Any,
    budgets: Budgets::OfJobs,
    machines: Machines::KernelOrAgent,
    structure: None,
    role: Role::Reference,
};

pub(super) const HIERARCHICAL: PolicyTraits = PolicyTraits {
    placement: Placement::Hierarchical,
    affinities: Affinities::Laminar,
    ..STRONG
};

pub(super) const GLOBAL: PolicyTraits = PolicyTraits {
    placement: Placement::Global,
    affinities: Affinities::Global,
    ..STRONG
};

pub(super) const PARTITIONED: PolicyTraits = PolicyTraits {
    placement: Placement::Partitioned,
    invariant: Invariant::Packed,
    ..STRONG
};

pub(super) const CLUSTERED: PolicyTraits = PolicyTraits {
    placement: Placement::Clustered,
    invariant: Invariant::Packed,
    affinities: Affinities::Clusters,
    ..STRONG
};

pub(super) const WEAK: PolicyTraits = PolicyTraits {
    placement: Placement::Weak,
    invariant: Invariant::Weak,
    machines: Machines::Agent,
    ..STRONG
};

pub(super) const NON_PREEMPTIVE: PolicyTraits = PolicyTraits {
    preemption: Preemption::Never,
    invariant: Invariant::NonPreemptive,
    machines: Machines::Agent,
    ..GLOBAL
};

pub(super) const LINUX: PolicyTraits = PolicyTraits {
    placement: Placement::PushPull,
    invariant: Invariant::PushPull,
    affinities: Affinities::WithinClusters,
    budgets: Budgets::AsLinux,
    machines: Machines::Agent,
    ..STRONG
};

/// SCHED_DEADLINE with the repairs that a task set names.
pub const LINUX_REPAIRED: PolicyTraits = PolicyTraits {
    affinities: Affinities::SemiPartitioned,
    budgets: Budgets::AsLinuxRepaired,
    ..LINUX
};

/// The same by fixed priorities.
pub const fn by_priority(of: PolicyTraits) -> PolicyTraits {
    PolicyTraits {
        order: Order::FixedPriority,
        ..of
    }
}

/// The same by the priority points of fair lateness.
pub(super) const fn by_priority_point(of: PolicyTraits) -> PolicyTraits {
    PolicyTraits {
        order: Order::FairLateness,
        machines: Machines::Agent,
        ..of
    }
}

/// The same by an order by laxity.
pub(super) const fn by_laxity(of: PolicyTraits, order: Order) -> PolicyTraits {
    PolicyTraits {
        order,
        machines: Machines::None,
        ..of
    }
}

/// An implementation that was published for the same rule. It may place jobs on other CPUs, so the core in the
/// kernel does not stand for it.
pub(super) const fn published(of: PolicyTraits) -> PolicyTraits {
    PolicyTraits {
        machines: Machines::Agent,
        role: Role::Variant,
        ..of
    }
}

/// PD2 with this placement.
pub(super) const fn pfair(of: PolicyTraits, alignment: Alignment) -> PolicyTraits {
    PolicyTraits {
        preemption: Preemption::Pfair(alignment),
        invariant: Invariant::Quanta,
        machines: Machines::Agent,
        ..of
    }
}
