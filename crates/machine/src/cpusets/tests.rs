//! Every request, granted and refused. `crates/machine/tests/cpusets.rs` searches for sequences of requests
//! that over-commit a cluster.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Repairs, Share, Span, Task, TaskId, TaskSet,
};

use super::{Cpusets, RequestRefused};
use crate::ServerParameters;

mod platform;

fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn affinity(list: &str) -> Affinity {
    Affinity::new(cpus(list)).unwrap()
}

fn cpu(number: usize) -> CpuId {
    CpuId::from_index(number)
}

fn id(index: usize) -> TaskId {
    TaskId::from_index(index)
}

fn share(billionths: u32) -> Share {
    Share::from_billionths(billionths).unwrap()
}

/// Tasks A, B, ... with costs, periods and affinities, all present from the start.
fn set(clusters: &[&str], tasks: &[(u64, u64, &str)]) -> TaskSet {
    let task = |(index, &(cost, period, list)): (usize, &(u64, u64, &str))| {
        let name = char::from(b'A' + index as u8).to_string();
        let [cost, period] = [cost, period].map(Span::from_ns);
        Task::periodic(&name, cost, period, affinity(list))
    };
    let tasks = tasks.iter().enumerate().map(task).collect();
    let mut set = TaskSet::new("", 4, tasks);
    set.platform.clusters = clusters.iter().map(|list| cpus(list)).collect();
    set
}

const SP: Repairs = Repairs::ALL;
const LINUX: Repairs = Repairs::NONE;

/// Admission repaired, and changes as in Linux.
const CHANGING: Repairs = Repairs {
    no_changes: false,
    ..Repairs::ALL
};

fn parameters(cost: u64, deadline: u64, period: u64) -> ServerParameters {
    ServerParameters {
        cost: Span::from_ns(cost),
        deadline: Span::from_ns(deadline),
        period: Span::from_ns(period),
    }
}

fn implicit(cost: u64, period: u64) -> ServerParameters {
    parameters(cost, period, period)
}

#[track_caller]
fn refused<T: core::fmt::Debug>(answer: Result<T, RequestRefused>, why: &str) {
    assert_eq!(answer.unwrap_err().to_string(), why);
}

/// Leaves at a zero-lag time that is over.
fn leave(cpusets: &mut Cpusets, task: usize) {
    cpusets.leave(id(task), Instant::ZERO).unwrap();
}

#[test]
fn task_enters_only_if_its_bandwidth_fits_the_cluster() {
    for repairs in [LINUX, SP] {
        let set = set(
            &["0-1", "2-3"],
            &[(12, 10, "0-1"), (7, 10, "0-1"), (8, 10, "0-1")],
        );
        let mut cpusets = Cpusets::new(&set, repairs);
        // No task is refused at the start, whatever the load.
        leave(&mut cpusets, 2);
        refused(cpusets.enter(id(1)), "task `B` takes part already");
        refused(
            cpusets.enter(id(2)),
            "task `C` asks for 0.7999992 of a CPU, and cluster 0 {0,1} has 0 left; up to that \
             would be taken",
        );
        leave(&mut cpusets, 1);
        // Exactly the limit.
        cpusets.enter(id(1)).unwrap();
        refused(
            cpusets.enter(id(2)),
            "task `C` asks for 0.7999992 of a CPU, and cluster 0 {0,1} has 0 left; up to that \
             would be taken",
        );
        leave(&mut cpusets, 0);
        refused(
            cpusets.enter(id(0)),
            "task `A` asks for 12ns within 10ns in each 10ns; its cost may be at most its deadline, and \
             that at most its period",
        );
        cpusets.enter(id(2)).unwrap();
        assert_eq!(cpusets.taken_of_cluster(0).to_string(), "1.499999");
        assert_eq!(cpusets.taken_of_cluster(1).to_string(), "0");
    }
}

#[test]
fn overcommitted_cluster_refuses_every_other_bandwidth() {
    let set = set(&["0", "1-3"], &[(9, 10, "0"), (9, 10, "0"), (1, 10, "0")]);
    let mut cpusets = Cpusets::new(&set, LINUX);
    leave(&mut cpusets, 2);
    refused(
        cpusets.enter(id(2)),
        "task `C` asks for 0.0999994 of a CPU, and cluster 0 {0} has 0 left; up to that would be taken",
    );
    refused(
        cpusets.set_attributes(id(0), implicit(8, 10)),
        "task `A` asks for 0.7999992 of a CPU, and cluster 0 {0} has 0.0500001 left; up to that would \
         be taken",
    );
    // The same bandwidth as before is accepted.
    cpusets.set_attributes(id(0), implicit(90, 100)).unwrap();
    refused(
        cpusets.set_reserve(share(0)),
        "cluster 0 {0} would have 1 of a CPU for tasks that take 1.7999992; tasks must leave or ask \
 for less first",
    );
    cpusets.set_attributes(id(0), implicit(5, 100)).unwrap();
    assert_eq!(cpusets.taken_of_cluster(0).to_string(), "0.9499988");
}

#[test]
fn bandwidth_is_cost_by_period_also_with_a_constrained_deadline() {
    let set = set(&["0-3"], &[(1, 10, "0-3")]);
    let mut cpusets = Cpusets::new(&set, LINUX);
    cpusets.set_attributes(id(0), parameters(5, 5, 20)).unwrap();
    assert_eq!(cpusets.taken_of_cluster(0).to_string(), "0.25");
    let sentence = |answer: Result<(), RequestRefused>| answer.unwrap_err().to_string();
    let found = "; its cost may be at most its deadline, and that at most its period";
    for (wrong, asked) in [
        (
            parameters(6, 5, 20),
            "task `A` asks for 6ns within 5ns in each 20ns",
        ),
        (
            parameters(5, 21, 20),
            "task `A` asks for 5ns within 21ns in each 20ns",
        ),
        (
            parameters(0, 5, 20),
            "task `A` asks for 0ns within 5ns in each 20ns",
        ),
    ] {
        let answer = cpusets.set_attributes(id(0), wrong);
        assert_eq!(sentence(answer), format!("{asked}{found}"));
    }
}

#[test]
fn limits_are_sums_of_capacities() {
    let mut set = set(&["0-1", "2-3"], &[(7, 10, "0-1"), (7, 10, "0-1")]);
    set.platform.capacities = vec![share(1_000_000_000), share(500_000_000), share(1), share(1)];
    set.scheduler.reserve = share(0);
    let mut cpusets = Cpusets::new(&set, SP);
    assert_eq!(cpusets.limit(&cpus("0-1")).to_string(), "1.5");
    leave(&mut cpusets, 1);
    cpusets.enter(id(1)).unwrap();
    leave(&mut cpusets, 1);
    // Condition (2) on a CPU of half the speed.
    cpusets.set_affinity(id(1), &affinity("1")).unwrap();
    refused(
        cpusets.enter(id(1)),
        "task `B` asks for 0.6999998 of a CPU, and CPU 1 has 0.5 left; up to that would be taken",
    );
    cpusets.set_affinity(id(1), &affinity("0")).unwrap();
    cpusets.enter(id(1)).unwrap();
    refused(
        cpusets.cpu_offline(cpu(1)),
        "cluster 0 {0,1} would have 1 of a CPU for tasks that take 1.3999996; tasks must leave or ask \
 for less first",
    );
}

#[test]
fn departed_server_counts_until_its_zero_lag_time() {
    let set = set(&["0", "1-3"], &[(6, 10, "0"), (6, 10, "0")]);
    let mut cpusets = Cpusets::new(&set, SP);
    leave(&mut cpusets, 1);
    cpusets.advance(Instant::from_ns(3));
    cpusets.leave(id(0), Instant::from_ns(7)).unwrap();
    refused(
        cpusets.leave(id(0), Instant::from_ns(7)),
        "task `A` takes no part",
    );
    assert_eq!(cpusets.taken_of_cluster(0), cpusets.taken_of_cpu(cpu(0)));
    cpusets.advance(Instant::from_ns(6));
    for task in [0, 1] {
        let answer = cpusets.enter(id(task)).unwrap_err();
        assert!(matches!(answer, RequestRefused::NoRoom { .. }), "{answer}");
    }
    cpusets.advance(Instant::from_ns(7));
    cpusets.enter(id(1)).unwrap();
    assert_eq!(cpusets.taken_of_cpu(cpu(0)).to_string(), "0.5999994");
}

#[test]
fn linux_refuses_an_affinity_smaller_than_the_cluster() {
    let mut set = set(&["0-1", "2-3"], &[(1, 10, "0-1"), (1, 10, "0")]);
    set.actions = vec![shiftwork_model::Action {
        at: Instant::ZERO,
        change: shiftwork_model::Change::Enter(id(1)),
    }];
    let mut cpusets = Cpusets::new(&set, LINUX);
    assert!(cpusets.is_controlled() && !cpusets.is_present(id(1)));
    let narrow = |task: &str, cluster: &str| {
        format!(
            "CPUs {{0}} of task `{task}` are less than its cluster {{{cluster}}}; SCHED_DEADLINE takes only \
             tasks that may use all of it, as long as it controls admission"
        )
    };
    refused(cpusets.enter(id(1)), &narrow("B", "0,1"));
    refused(
        cpusets.set_affinity(id(0), &affinity("0,2")),
        &narrow("A", "0,1"),
    );
    assert_eq!(
        cpusets.set_affinity(id(0), &affinity("0-2")),
        Ok(affinity("0-1"))
    );
    refused(
        cpusets.set_affinity(id(0), &affinity("2-3")),
        "none of CPUs {2,3} is in the cluster {0,1} of task `A`; name one of these, or `move` the task to \
         another cluster",
    );
    cpusets.set_affinity(id(1), &affinity("0-3")).unwrap();
    cpusets.enter(id(1)).unwrap();
}

#[test]
fn initial_task_with_a_narrow_affinity_disables_admission_control() {
    let set = set(
        &["0-1", "2-3"],
        &[(9, 10, "0"), (9, 10, "0-1"), (9, 10, "0-1")],
    );
    let mut cpusets = Cpusets::new(&set, LINUX);
    assert!(!cpusets.is_controlled());
    leave(&mut cpusets, 2);
    cpusets.set_affinity(id(2), &affinity("1-2")).unwrap();
    cpusets.enter(id(2)).unwrap();
    assert_eq!(cpusets.affinity_of(id(2)), &affinity("1"));
    cpusets.set_attributes(id(0), implicit(10, 10)).unwrap();
    cpusets.set_reserve(share(900_000_000)).unwrap();
    cpusets.cpu_offline(cpu(1)).unwrap();
    refused(
        cpusets.set_affinity(id(0), &affinity("1")),
        "none of CPUs {1} of task `A` is online; of its cluster {0} are",
    );
    refused(
        cpusets.cpu_offline(cpu(0)),
        "no CPU of cluster 0 {1} would be online; tasks that use it need one",
    );
    cpusets.move_to(id(0), 1).unwrap();
    assert_eq!(cpusets.affinity_of(id(0)), &affinity("2-3"));
    cpusets.set_clusters(&[cpus("0"), cpus("1-3")]).unwrap();
}

#[test]
fn repaired_admission_takes_one_cpu_or_the_whole_cluster() {
    let set = set(&["0-2", "3"], &[(5, 10, "0"), (5, 10, "0-2"), (3, 10, "1")]);
    let mut cpusets = Cpusets::new(&set, CHANGING);
    refused(
        cpusets.set_affinity(id(0), &affinity("0-1")),
        "CPUs {0,1} of task `A` are neither one CPU nor all of its cluster {0-2}; either would be taken",
    );
    refused(
        cpusets.set_affinity(id(1), &affinity("0")),
        "task `B` asks for 0.5 of a CPU, and CPU 0 has 0.4499998 left; up to that would be taken",
    );
    cpusets.set_affinity(id(1), &affinity("1")).unwrap();
    refused(
        cpusets.set_attributes(id(2), implicit(5, 10)),
        "task `C` asks for 0.5 of a CPU, and CPU 1 has 0.4499998 left; up to that would be taken",
    );
    leave(&mut cpusets, 2);
    cpusets.set_attributes(id(2), implicit(5, 10)).unwrap();
    refused(
        cpusets.enter(id(2)),
        "task `C` asks for 0.5 of a CPU, and CPU 1 has 0.4499998 left; up to that would be taken",
    );
    refused(
        cpusets.set_reserve(share(500_000_001)),
        "CPU 0 would have 0.499999 of a CPU for tasks that take 0.5; tasks must leave or ask \
 for less first",
    );
    cpusets.set_reserve(share(500_000_000)).unwrap();
    refused(
        cpusets.cpu_offline(cpu(1)),
        "task `B` is bound to CPU 1; it has to leave before that can go offline",
    );
    cpusets.set_affinity(id(2), &affinity("0-1")).unwrap();
    refused(
        cpusets.enter(id(2)),
        "CPUs {0,1} of task `C` are neither one CPU nor all of its cluster {0-2}; either would be taken",
    );
}

#[test]
fn repair_no_changes_fixes_affinity_and_parameters() {
    let set = set(&["0-1", "2-3"], &[(5, 10, "0")]);
    let mut cpusets = Cpusets::new(&set, SP);
    refused(
        cpusets.set_affinity(id(0), &affinity("0")),
        "task `A` keeps the affinity with which it entered; `leave`, change it, and `enter` again",
    );
    refused(
        cpusets.set_attributes(id(0), implicit(5, 10)),
        "task `A` keeps the parameters with which it entered; `leave`, change it, and `enter` again",
    );
    leave(&mut cpusets, 0);
    cpusets.set_affinity(id(0), &affinity("1")).unwrap();
    cpusets.set_attributes(id(0), implicit(6, 10)).unwrap();
    cpusets.enter(id(0)).unwrap();
    assert_eq!(cpusets.taken_of_cpu(cpu(1)).to_string(), "0.5999994");
    assert_eq!(cpusets.taken_of_cpu(cpu(0)).to_string(), "0");
}

#[test]
fn move_transfers_bandwidth_at_once_and_widens_the_affinity() {
    let set = set(&["0", "1-3"], &[(2, 10, "0"), (7, 10, "1-3"), (3, 10, "1")]);
    let mut cpusets = Cpusets::new(&set, SP);
    refused(
        cpusets.move_to(id(1), 1),
        "task `B` is in cluster 1 already; it can move to another one",
    );
    refused(
        cpusets.move_to(id(1), 2),
        "there is no cluster 2; the clusters are 0 to 1",
    );
    assert_eq!(cpusets.move_to(id(1), 0), Ok(affinity("0")));
    assert_eq!(cpusets.taken_of_cluster(1).to_string(), "0.2999992");
    refused(
        cpusets.move_to(id(2), 0),
        "task `C` asks for 0.2999992 of a CPU, and cluster 0 {0} has 0.0500001 left; up to that would be \
         taken",
    );
    assert_eq!(cpusets.move_to(id(0), 1), Ok(affinity("1-3")));
    assert_eq!(
        (cpusets.cluster_of(id(0)), cpusets.cluster_of(id(1))),
        (1, 0)
    );
    // A task that is not present can move as well; it has no bandwidth.
    leave(&mut cpusets, 2);
    assert_eq!(cpusets.move_to(id(2), 0), Ok(affinity("0")));
    leave(&mut cpusets, 1);
    cpusets.cpu_offline(cpu(0)).unwrap();
    refused(
        cpusets.move_to(id(0), 0),
        "no CPU of cluster 0 {0} would be online; tasks that use it need one",
    );
    refused(
        cpusets.enter(id(1)),
        "none of CPUs {0} of task `B` is online; of its cluster {} are",
    );
}
