//! Requests that change clusters, the reserve and CPUs.

use super::*;

#[test]
fn change_of_a_cluster_widens_the_affinities_of_its_tasks() {
    let set = set(
        &["0-1", "2-3"],
        &[(9, 10, "0"), (5, 10, "0-1"), (5, 10, "2"), (5, 10, "2-3")],
    );
    let mut cpusets = Cpusets::new(&set, SP);
    assert_eq!(
        cpusets.set_clusters(&[cpus("0-1"), cpus("2-3")]),
        Ok(vec![])
    );
    assert_eq!(cpusets.affinity_of(id(0)), &affinity("0"));
    let whole = affinity("0-2");
    leave(&mut cpusets, 2);
    refused(
        cpusets.set_clusters(&[cpus("0-3")]),
        "cluster 1 would be removed, but task `C` is in it; `move` it first",
    );
    assert_eq!(
        cpusets.set_clusters(&[cpus("0-2"), cpus("3")]),
        Ok(vec![
            (id(0), whole),
            (id(1), whole),
            (id(2), affinity("3")),
            (id(3), affinity("3"))
        ])
    );
    assert_eq!(cpusets.clusters(), [cpus("0-2"), cpus("3")]);
    assert_eq!(cpusets.taken_of_cpu(cpu(0)).to_string(), "0");
    refused(
        cpusets.set_clusters(&[cpus("0"), cpus("1-3")]),
        "cluster 0 {0} would have 0.9499998 of a CPU for tasks that take 1.3999996; tasks must leave or ask \
 for less first",
    );
    refused(
        cpusets.set_clusters(&[cpus("0-2"), CpuSet::EMPTY]),
        "cluster 1 would have no CPU; each cluster needs one at least",
    );
    refused(
        cpusets.set_clusters(&[]),
        "cluster 0 would have no CPU; each cluster needs one at least",
    );
    refused(
        cpusets.set_clusters(&[cpus("0-2"), cpus("2-3")]),
        "CPU 2 would be in clusters 0 and 1; a CPU can be in one only",
    );
    refused(
        cpusets.set_clusters(&[cpus("0-2"), cpus("3-4")]),
        "there is no CPU 4; the CPUs are 0 to 3",
    );
    // The second cluster is empty after both have moved.
    for task in [2, 3] {
        cpusets.move_to(id(task), 0).unwrap();
    }
    cpusets.set_clusters(&[cpus("0-2"), cpus("3")]).unwrap();
    assert_eq!(cpusets.set_clusters(&[cpus("0-2")]), Ok(vec![]));
    assert_eq!(cpusets.clusters().len(), 1);
}

#[test]
fn cluster_is_not_removed_while_a_departed_server_counts_there() {
    let set = set(&["0-1", "2-3"], &[(5, 10, "0-1"), (5, 10, "2")]);
    let mut cpusets = Cpusets::new(&set, SP);
    cpusets.leave(id(1), Instant::from_ns(9)).unwrap();
    cpusets.move_to(id(1), 0).unwrap();
    assert_eq!(cpusets.taken_of_cpu(cpu(2)).to_string(), "0.5");
    refused(
        cpusets.set_clusters(&[cpus("0-3")]),
        "cluster 1 would be removed, but the bandwidth that task `B` had there counts until 9ns; ask again then",
    );
    cpusets.set_clusters(&[cpus("0"), cpus("1-3")]).unwrap();
    assert_eq!(cpusets.taken_of_cpu(cpu(2)).to_string(), "0");
    assert_eq!(cpusets.taken_of_cluster(1).to_string(), "0.5");
    cpusets.advance(Instant::from_ns(9));
    cpusets.set_clusters(&[cpus("0-3")]).unwrap();
}

#[test]
fn cpu_goes_offline_only_if_the_remaining_cpus_suffice() {
    let set = set(&["0-1", "2-3"], &[(9, 10, "0-1"), (1, 10, "0-1")]);
    let mut cpusets = Cpusets::new(&set, LINUX);
    refused(
        cpusets.cpu_offline(cpu(1)),
        "cluster 0 {0,1} would have 0.9499998 of a CPU for tasks that take 0.999999; tasks must leave or ask \
 for less first",
    );
    leave(&mut cpusets, 1);
    cpusets.cpu_offline(cpu(1)).unwrap();
    refused(cpusets.cpu_offline(cpu(1)), "CPU 1 is offline already");
    refused(
        cpusets.cpu_offline(cpu(4)),
        "there is no CPU 4; the CPUs are 0 to 3",
    );
    refused(
        cpusets.cpu_online(cpu(4)),
        "there is no CPU 4; the CPUs are 0 to 3",
    );
    refused(cpusets.cpu_online(cpu(0)), "CPU 0 is online already");
    refused(
        cpusets.enter(id(1)),
        "task `B` asks for 0.0999994 of a CPU, and cluster 0 {0,1} has 0.0500001 left; up to that would be \
         taken",
    );
    refused(
        cpusets.cpu_offline(cpu(0)),
        "no CPU of cluster 0 {1} would be online; tasks that use it need one",
    );
    refused(
        cpusets.set_clusters(&[cpus("1"), cpus("0,2-3")]),
        "no CPU of cluster 0 {1} would be online; tasks that use it need one",
    );
    cpusets.cpu_online(cpu(1)).unwrap();
    cpusets.enter(id(1)).unwrap();
    // These CPUs are in no cluster with tasks.
    cpusets.cpu_offline(cpu(2)).unwrap();
    cpusets.cpu_offline(cpu(3)).unwrap();
    assert_eq!(*cpusets.online(), cpus("0-1"));
}

#[test]
fn departed_server_is_not_bound_to_an_offline_cpu() {
    let set = set(&["0-2", "3"], &[(9, 10, "1"), (5, 10, "1")]);
    let mut cpusets = Cpusets::new(&set, SP);
    leave(&mut cpusets, 1);
    cpusets.leave(id(0), Instant::from_ns(9)).unwrap();
    cpusets.cpu_offline(cpu(1)).unwrap();
    // The bandwidth fits the cluster, but would not fit CPU 1 alone.
    cpusets.set_reserve(share(500_000_000)).unwrap();
    cpusets.cpu_online(cpu(1)).unwrap();
    assert_eq!(cpusets.taken_of_cpu(cpu(1)).to_string(), "0");
    assert_eq!(cpusets.taken_of_cluster(0).to_string(), "0.8999996");
    cpusets.enter(id(1)).unwrap();
}
