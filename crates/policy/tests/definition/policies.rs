//! The promises of the policies of this crate.

use crate::drive::Promise;
use crate::exhaustive::{all_events, arrivals_and_departures};
use crate::random::{SMALL_AND_LARGE, Shape, run};

#[test]
fn strong_edf_runs_the_definition_for_every_small_sequence() {
    arrivals_and_departures("strong-edf", Promise::StrongFewestShifts, false);
    all_events("strong-edf", Promise::StrongFewestShifts);
}

#[test]
fn strong_fp_runs_the_definition_for_every_small_sequence() {
    arrivals_and_departures("strong-fp", Promise::StrongFewestShifts, false);
    all_events("strong-fp", Promise::StrongFewestShifts);
}

#[test]
fn hpa_edf_runs_the_definition_for_every_small_sequence() {
    arrivals_and_departures("hpa-edf", Promise::LaminarFewestShifts, true);
    all_events("hpa-edf", Promise::LaminarFewestShifts);
}

#[test]
fn hpa_fp_runs_the_definition_for_every_small_sequence() {
    arrivals_and_departures("hpa-fp", Promise::LaminarFewestShifts, true);
    all_events("hpa-fp", Promise::LaminarFewestShifts);
}

#[test]
fn weak_policies_keep_their_invariant_for_every_small_sequence() {
    for name in ["weak-edf", "weak-fp"] {
        arrivals_and_departures(name, Promise::Weak, false);
        all_events(name, Promise::Weak);
    }
}

#[test]
fn strong_policies_run_the_definition() {
    for name in ["strong-edf", "strong-fp"] {
        run(
            name,
            Promise::StrongFewestShifts,
            Shape::Arbitrary,
            SMALL_AND_LARGE,
        );
        run(
            name,
            Promise::StrongFewestShifts,
            Shape::Laminar,
            &[(8, 20, 100, 80)],
        );
        run(
            name,
            Promise::Strong,
            Shape::Arbitrary,
            &[(150, 300, 1, 900)],
        );
    }
}

#[test]
fn hierarchical_policies_run_the_definition() {
    for name in ["hpa-edf", "hpa-fp"] {
        run(
            name,
            Promise::LaminarFewestShifts,
            Shape::Laminar,
            SMALL_AND_LARGE,
        );
        run(
            name,
            Promise::Laminar,
            Shape::Laminar,
            &[(200, 400, 2, 900)],
        );
    }
}

#[test]
fn global_policies_run_the_most_urgent_jobs() {
    for name in ["g-edf", "g-fp", "g-fl", "edzl"] {
        run(
            name,
            Promise::LaminarFewestShifts,
            Shape::Global,
            SMALL_AND_LARGE,
        );
    }
    for name in ["np-g-edf", "np-g-fp"] {
        run(name, Promise::NonPreemptive, Shape::Global, SMALL_AND_LARGE);
    }
}

#[test]
fn weak_policies_keep_their_invariant() {
    for name in ["weak-edf", "weak-fp"] {
        run(name, Promise::Weak, Shape::Arbitrary, SMALL_AND_LARGE);
    }
}

#[test]
fn published_hierarchical_baselines_run_the_definition() {
    for name in [
        "hpa-edf-ecrts16",
        "hpa-fp-ecrts16",
        "hpa-edf-ecrts16-alg4",
        "hpa-fp-ecrts16-alg4",
    ] {
        run(name, Promise::Laminar, Shape::Laminar, SMALL_AND_LARGE);
        run(
            name,
            Promise::Laminar,
            Shape::Laminar,
            &[(200, 400, 1, 400)],
        );
    }
}

#[test]
fn the_published_rtems_baseline_runs_the_definition() {
    run(
        "strong-fp-emsoft21",
        Promise::Strong,
        Shape::Arbitrary,
        SMALL_AND_LARGE,
    );
    run(
        "strong-fp-emsoft21",
        Promise::Strong,
        Shape::Arbitrary,
        &[(150, 300, 1, 400)],
    );
}
