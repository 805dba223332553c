//! Of which policies tests speak, and which parts of task sets they take.

use shiftwork_model::{Placement, PolicyTraits};

use super::super::case::{Case, Deadlines, Shape};
use crate::policy::{is_edf, is_fp, shifts};

pub(super) fn is_partitioned(policy: &PolicyTraits) -> bool {
    policy.placement == Placement::Partitioned
}

pub(super) fn is_partitioned_edf(policy: &PolicyTraits) -> bool {
    is_partitioned(policy) && is_edf(policy)
}

pub(super) fn is_partitioned_fp(policy: &PolicyTraits) -> bool {
    is_partitioned(policy) && is_fp(policy)
}

pub(super) fn globally(_: &PolicyTraits, case: &Case) -> bool {
    case.is_global()
}

pub(super) fn any(_: &PolicyTraits, _: &Case) -> bool {
    true
}

pub(super) fn on_one_cpu(_: &PolicyTraits, case: &Case) -> bool {
    matches!(case.shape, Shape::One(_))
}

/// Whether tardiness is bounded as soon as the demand fits: on one CPU under any order, since it is done
/// with everything by the end of a busy period; under global EDF; and under the strong invariant if no
/// deadline is beyond its period.
pub(super) fn fitting_is_enough(policy: &PolicyTraits, case: &Case) -> bool {
    match case.shape {
        Shape::One(_) => true,
        Shape::Uniform => is_edf(policy),
        Shape::Nested | Shape::Overlapping => {
            is_edf(policy) && shifts(policy) && case.deadlines <= Deadlines::Constrained
        }
    }
}
