//! Schedules in which jobs take as long as is shown of MPCP and DPCP but for an instant, so that no term can be left out.

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_model::{
    Affinity, CpuId, Instant, Phase, Priority, Protocol, Record, RecordKind, Resource, ResourceId,
    Task, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

use crate::NS;

/// A task of this CPU, priority and offset, whose jobs run, and have sections of mutexes.
type Row<'a> = (usize, u32, u64, &'a [(Option<usize>, u64)]);

/// Tasks of which one job each matters.
fn once(protocols: &[Protocol], rows: &[Row<'_>]) -> TaskSet {
    let task = |(cpu, priority, offset, parts): &Row<'_>| {
        let bound = Affinity::pinned(CpuId::from_index(*cpu));
        let cost = parts.iter().map(|(_, length)| length).sum();
        let mut task = Task::periodic("t", NS(cost), NS(10_000), bound);
        task.priority = Priority::new(*priority);
        task.offset = NS(*offset);
        let phases = parts.iter().flat_map(|&(mutex, length)| {
            let id = mutex.map(ResourceId::from_index);
            let run = std::iter::once(Phase::Run(NS(length)));
            let lock = id.map(Phase::Lock).into_iter();
            lock.chain(run).chain(id.map(Phase::Unlock))
        });
        task.work = Work::Phases(phases.collect());
        task
    };
    let mut set = TaskSet::new("", 4, rows.iter().map(task).collect());
    let resource = |(index, &protocol)| Resource {
        name: format!("r{index}"),
        protocol,
    };
    set.resources = protocols.iter().enumerate().map(resource).collect();
    set
}

/// What is shown of the first task, the most urgent of its CPU, and the response of its job.
fn bound_and_response(set: &TaskSet) -> (u64, u64) {
    let entry = registry::find("p-fp").unwrap();
    let StandIns::Other(others) = StandIns::of(set, &entry.traits) else {
        panic!("nothing is known");
    };
    let options = Options {
        seed: 0,
        horizon: Instant::from_ns(9_000),
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    let policy = entry.build(set).unwrap();
    Simulation::new(set, policy, &entry.traits, options).run(&mut records);
    let end = records.iter().find_map(|record| match record.kind {
        RecordKind::Completed { job } if job.task.index() == 0 => Some(record.at.as_ns()),
        _ => None,
    });
    let response = end.unwrap() - set.tasks[0].offset.as_ns();
    (others.set.tasks[0].cost.as_ns(), response)
}

/// Each term is longer than what the bound exceeds the response by, so that none can be left out.
#[test]
fn bound_of_ceilings_across_cpus_is_reached_but_for_an_instant_of_each_term() {
    // A low section when the job arrives, and another one that begins while it waits for one on another CPU.
    let rows: [Row<'_>; 4] = [
        (0, 1, 1, &[(None, 10), (Some(0), 10), (None, 10)]),
        (1, 3, 39, &[(Some(0), 40)]),
        (0, 4, 0, &[(Some(1), 30), (None, 38), (Some(1), 30)]),
        (1, 5, 5_000, &[(Some(1), 1)]),
    ];
    let set = once(&[Protocol::Mpcp; 2], &rows);
    assert_eq!(bound_and_response(&set), (30 + 40 + 30 + 30, 127));
}

#[test]
fn bound_of_sections_on_other_cpus_is_reached_but_for_an_instant_of_each_term() {
    // The same, but that low jobs execute while the section does, too; and then a section of another CPU follows.
    let rows: [Row<'_>; 4] = [
        (0, 1, 1, &[(None, 10), (Some(0), 10), (None, 10)]),
        (2, 3, 39, &[(Some(0), 40)]),
        (0, 4, 0, &[(Some(1), 30), (None, 48), (Some(1), 30)]),
        (2, 5, 100, &[(Some(1), 20)]),
    ];
    let on = |cpu| Protocol::Dpcp(CpuId::from_index(cpu));
    let set = once(&[on(1), on(0)], &rows);
    assert_eq!(bound_and_response(&set), (30 + 40 + 30 + 30 + 20, 147));
}

#[test]
fn jobs_that_are_pending_already_count_where_one_waits() {
    // While the first job waits, one of the second task ends and the next one of it begins, with a section each.
    let rows: [Row<'_>; 4] = [
        (0, 3, 46, &[(Some(0), 10)]),
        (1, 2, 0, &[(Some(0), 10)]),
        (1, 1, 0, &[(None, 45)]),
        (2, 2, 50, &[(Some(0), 10)]),
    ];
    for protocol in [Protocol::Mpcp, Protocol::Dpcp(CpuId::from_index(3))] {
        let mut set = once(&[protocol], &rows);
        set.tasks[1].period = NS(60);
        let (bound, found) = bound_and_response(&set);
        assert!(
            found == 39 && found <= bound,
            "{protocol:?}: {found} {bound}"
        );
    }
}
