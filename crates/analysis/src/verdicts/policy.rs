//! What a policy is to a test.

use shiftwork_model::{Order, Share};

use crate::admission::{Placement, Terms};

/// By what rule a policy schedules, as far as tests care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Jobs are ranked and placed, and preempted at any time.
    Preemptive(Order, Placement),
    /// Global EDF; a job that runs goes on to its end.
    NonPreemptive,
    /// SCHED_DEADLINE with repaired migrations: each task on one CPU or on all of them.
    SemiPartitioned,
    /// SCHED_DEADLINE as Linux has it, of which no test speaks: only what holds of every scheduler does.
    AsLinux,
    /// Global EDF that decides at quantum boundaries: tests speak of it under overheads alone, as of whole quanta.
    InQuanta,
    /// PD2: in quanta that begin on all CPUs together, or staggered.
    Pfair {
        /// Whether the quanta of each CPU begin a little after those of the one before.
        staggered: bool,
    },
}

/// Every kind of policy of which a test speaks, by the name that DESIGN and `shiftwork policies` use.
/// Baselines and builds of the same rule (`strong-edf-kernel`) have the verdicts of theirs.
pub const POLICIES: [&str; 18] = [
    "p-edf",
    "p-fp",
    "c-edf",
    "c-fp",
    "g-edf",
    "g-fp",
    "np-g-edf",
    "weak-edf",
    "weak-fp",
    "strong-edf",
    "strong-fp",
    "hpa-edf",
    "hpa-fp",
    "dl-sp",
    "pd2",
    "s-pd2",
    "c-pd2",
    "cs-pd2",
];

impl Rule {
    /// The rule of the policy with this name, in any case; `None` for those of which nothing is known.
    pub fn of_policy(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "np-g-edf" => Some(Self::NonPreemptive),
            "dl-sp" => Some(Self::SemiPartitioned),
            "dl-linux" => Some(Self::AsLinux),
            "cqm" | "s-cqm" | "cq1" | "s-cq1" => Some(Self::InQuanta),
            "pd2" | "c-pd2" => Some(Self::Pfair { staggered: false }),
            "s-pd2" | "cs-pd2" => Some(Self::Pfair { staggered: true }),
            other => Terms::of_policy(other, Share::DEFAULT_RESERVE)
                .map(|terms| Self::Preemptive(terms.order, terms.placement)),
        }
    }

    pub(super) fn is_edf(self) -> bool {
        matches!(self, Self::Preemptive(Order::Edf, _))
    }

    pub(super) fn is_fp(self) -> bool {
        matches!(self, Self::Preemptive(Order::FixedPriority, _))
    }

    pub(super) fn is_partitioned(self) -> bool {
        matches!(self, Self::Preemptive(_, Placement::Partitioned))
    }

    /// Whether each part has a scheduler of its own.
    pub(crate) const fn is_packed(self) -> bool {
        matches!(
            self,
            Self::Preemptive(_, Placement::Partitioned | Placement::Clustered)
        )
    }

    /// Whether affinities may differ within a part.
    pub(super) fn is_by_affinity(self) -> bool {
        let Self::Preemptive(_, placement) = self else {
            return false;
        };
        matches!(
            placement,
            Placement::Weak | Placement::Strong | Placement::Hierarchical
        )
    }

    /// Whether running jobs are moved where that makes room.
    pub(crate) const fn shifts(self) -> bool {
        let Self::Preemptive(_, placement) = self else {
            return false;
        };
        matches!(placement, Placement::Strong | Placement::Hierarchical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_policy_has_a_rule_and_others_by_name() {
        for name in POLICIES {
            assert!(Rule::of_policy(name).is_some(), "{name}");
        }
        assert_eq!(
            Rule::of_policy("Strong-EDF-kernel"),
            Rule::of_policy("strong-edf")
        );
        assert_eq!(Rule::of_policy("rr"), None);
        // How it is built makes no difference to tests.
        for name in ["CEm", "HEm", "FEm", "CE1", "FE1"] {
            assert_eq!(Rule::of_policy(name), Rule::of_policy("g-edf"), "{name}");
        }
        // Something is known of these, and no test speaks of them.
        assert_eq!(Rule::of_policy("DL-Linux"), Some(Rule::AsLinux));
        assert!(!POLICIES.contains(&"dl-linux"));
        for name in ["CQm", "S-CQm", "CQ1", "S-CQ1"] {
            assert_eq!(Rule::of_policy(name), Some(Rule::InQuanta), "{name}");
        }
    }
}
