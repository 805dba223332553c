//! Definition tests of the kernel core: the driver and the brute-force oracle of the reference
//! implementation's policies, and the core's own check of its invariants.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "../../../policy/tests/definition/drive.rs"]
#[allow(dead_code, reason = "the core keeps only some of the promises")]
mod drive;
#[path = "../../../policy/tests/definition/exhaustive.rs"]
mod exhaustive;
#[path = "../../../policy/tests/definition/oracle.rs"]
mod oracle;
#[path = "../../../policy/tests/definition/random.rs"]
mod random;

use drive::{Driver, Promise, Step};
use exhaustive::{all_events, arrivals_and_departures};
use random::{SMALL_AND_LARGE, Shape, run};
use shiftwork_kernel_core::POLICIES;
use shiftwork_policy::registry::{self, Entry};

const NAMES: [&str; 2] = ["strong-edf-kernel", "strong-fp-kernel"];

fn find(name: &str) -> &'static Entry {
    registry::find_in(&[POLICIES], name).unwrap()
}

#[test]
fn core_follows_the_definition_for_every_small_sequence_under_edf() {
    arrivals_and_departures(NAMES[0], Promise::StrongFewestShifts, false);
    all_events(NAMES[0], Promise::StrongFewestShifts);
}

#[test]
fn core_follows_the_definition_for_every_small_sequence_under_fixed_priorities() {
    arrivals_and_departures(NAMES[1], Promise::StrongFewestShifts, false);
    all_events(NAMES[1], Promise::StrongFewestShifts);
}

#[test]
fn core_follows_the_definition_under_arbitrary_affinities() {
    for name in NAMES {
        run(
            name,
            Promise::StrongFewestShifts,
            Shape::Arbitrary,
            SMALL_AND_LARGE,
        );
    }
}

#[test]
fn core_follows_the_definition_under_global_and_laminar_affinities() {
    for name in NAMES {
        for shape in [Shape::Laminar, Shape::Global] {
            run(name, Promise::StrongFewestShifts, shape, SMALL_AND_LARGE);
        }
    }
}

#[test]
fn running_task_changes_priority_and_shifted_task_changes_affinity() {
    // The two defects found in the RTEMS strong affinity scheduler.
    let cpus = |text: &str| text.parse().unwrap();
    let promise = Promise::StrongFewestShifts;
    let mut driver = Driver::new(NAMES[1], promise, 2, &[cpus("0"), cpus("0,1"), cpus("1")]);
    for (task, priority) in [(0, 5), (1, 2), (2, 10)] {
        driver.step(Step::SetPriority(task, priority));
        driver.step(Step::Toggle(task, 1));
    }
    driver.step(Step::SetPriority(0, 1));
    driver.step(Step::SetPriority(0, 6));
    let mut driver = Driver::new(NAMES[1], promise, 2, &[cpus("0,1"), cpus("0")]);
    driver.step(Step::Toggle(0, 1));
    driver.step(Step::Toggle(1, 1));
    assert!(driver.step(Step::SetAffinity(0, cpus("1"))));
    driver.step(Step::Toggle(0, 1));
    driver.step(Step::Toggle(1, 1));
}
