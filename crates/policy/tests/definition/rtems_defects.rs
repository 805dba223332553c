//! The two defects found in the RTEMS strong affinity scheduler: a running task changes its priority
//! (A) or its affinity (B). Our policies must get through both sequences.

use shiftwork_model::CpuSet;

use crate::drive::{Driver, Promise, Step};

fn cpus(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn a_running_task_may_change_its_priority() {
    // N {0} priority 5, S {0,1} priority 2, R {1} priority 10; raise N to 1, lower it to 6.
    let masks = [cpus("0"), cpus("0,1"), cpus("1")];
    let promise = Promise::StrongFewestShifts;
    for name in ["strong-fp", "hpa-fp"] {
        let mut driver = Driver::new(name, promise, 2, &masks);
        for (task, priority) in [(0, 5), (1, 2), (2, 10)] {
            driver.step(Step::SetPriority(task, priority));
            driver.step(Step::Toggle(task, 1));
        }
        driver.step(Step::SetPriority(0, 1));
        driver.step(Step::SetPriority(0, 6));
    }
}

#[test]
fn a_shifted_task_may_change_its_affinity() {
    // T0 {0,1} runs, T1 {0} shifts it to CPU 1, T0 is then bound to CPU 1 and blocks.
    for name in ["strong-fp", "hpa-fp"] {
        let masks = [cpus("0,1"), cpus("0")];
        let mut driver = Driver::new(name, Promise::StrongFewestShifts, 2, &masks);
        driver.step(Step::Toggle(0, 1));
        driver.step(Step::Toggle(1, 1));
        assert!(driver.step(Step::SetAffinity(0, cpus("1"))));
        driver.step(Step::Toggle(0, 1));
        driver.step(Step::Toggle(1, 1));
    }
}
