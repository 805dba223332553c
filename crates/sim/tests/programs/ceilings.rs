//! Mutexes with MPCP and DPCP, in schedules that follow from their definitions by hand.

use shiftwork_model::{
    Affinity, CpuId, Order, Phase, Priority, Protocol, ResourceId, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_trace::check;

use crate::common::{AT, NS, contract, finishes, options, simulate, task};
use crate::random::{mutex, resources};

const R0: ResourceId = mutex(0);
const R1: ResourceId = mutex(1);

/// A task of this CPU, priority and offset, whose jobs do this.
type Row<'a> = (usize, u32, u64, &'a [Phase]);

fn run(ns: u64) -> Phase {
    Phase::Run(NS(ns))
}

fn section(mutex: ResourceId, ns: u64) -> [Phase; 3] {
    [Phase::Lock(mutex), run(ns), Phase::Unlock(mutex)]
}

fn set(cpus: usize, protocols: &[Protocol], rows: &[Row<'_>]) -> TaskSet {
    let tasks = rows
        .iter()
        .enumerate()
        .map(|(index, (cpu, priority, offset, phases))| {
            let mut task = task(cpus, &format!("t{index}"), 300, 1000);
            task.affinity = Affinity::pinned(CpuId::from_index(*cpu));
            task.priority = Priority::new(*priority);
            task.offset = NS(*offset);
            task.work = Work::Phases(phases.to_vec());
            task
        });
    let mut set = TaskSet::new("ceilings", cpus, tasks.collect());
    set.resources = resources(protocols);
    set
}

/// When the first job of each task completes, under policies by priority.
fn assert_finishes(set: &TaskSet, expected: &[u64]) {
    let mut policies = Vec::new();
    for entry in registry::POLICIES {
        if entry.traits.order != Order::FixedPriority || entry.build(set).is_err() {
            continue;
        }
        policies.push(entry.name);
        let (records, _) = simulate(set, entry.name, options(999));
        let all = 0..set.tasks.len();
        let found: Vec<u64> = all.map(|task| finishes(&records, task)[0]).collect();
        assert_eq!(found, expected, "{}", entry.name);
        let found = check::check(set, contract(entry, set), AT(999), &records);
        assert_eq!(found, [], "{}", entry.name);
    }
    assert_eq!(policies.len(), 7, "{policies:?}");
}

/// The example `mutex_mpcp` of Linux/RK (Carnegie Mellon University): a job in its section comes before the most urgent task of
/// its CPU, which preempts it afterwards, when the other job enters its own. How the 300 units are divided is chosen here.
#[test]
fn linux_rk_example_takes_the_published_course() {
    let [lock, section, unlock] = section(R0, 200);
    let short = [run(100), lock, run(100), unlock, run(100)];
    let rows: [Row<'_>; 3] = [
        (0, 1, 100, &[run(300)]),
        (0, 2, 0, &[run(50), lock, section, unlock, run(50)]),
        (1, 3, 100, &short),
    ];
    assert_finishes(&set(2, &[Protocol::Mpcp], &rows), &[550, 600, 450]);
}

#[test]
fn section_of_a_more_urgent_remote_ceiling_preempts_another() {
    let [lock, section_of_b, unlock] = section(R1, 2);
    let b = [run(1), lock, section_of_b, unlock];
    let (user, a, holder) = (section(R0, 1), section(R0, 6), section(R1, 4));
    let with = |remote| {
        let rows: [Row<'_>; 5] = [
            (0, 2, 50, &user),
            (0, 4, 0, &b),
            (0, 5, 0, &a),
            (1, 3, 0, &holder),
            (1, remote, 60, &user),
        ];
        set(2, &[Protocol::Mpcp; 2], &rows)
    };
    // `a` is in its section from 1 on, and `b` waits for `holder` until 4. On their CPU R1 has the ceiling 3, and R0 that of the last
    // task, whatever the first one has, which is on the same CPU.
    assert_finishes(&with(6), &[51, 6, 9, 4, 61]);
    // It goes on if its own is as urgent.
    assert_finishes(&with(3), &[51, 9, 7, 4, 61]);
    // And if it is more urgent.
    assert_finishes(&with(1), &[51, 9, 7, 4, 61]);
}

#[test]
fn mutex_passes_to_the_most_urgent_job_that_waits_for_it() {
    let rows: [Row<'_>; 3] = [
        (0, 1, 0, &section(R0, 5)),
        (1, 3, 1, &section(R0, 2)),
        (2, 2, 2, &section(R0, 2)),
    ];
    assert_finishes(&set(3, &[Protocol::Mpcp], &rows), &[5, 9, 7]);
    assert_finishes(&set(3, &[Protocol::Fmlp], &rows), &[5, 7, 9]);
}

#[test]
fn mutex_whose_users_share_a_cpu_has_the_ceiling_protocol() {
    let (low, high) = (section(R0, 5), section(R0, 2));
    let rows: [Row<'_>; 4] = [
        (0, 3, 0, &low),
        (0, 2, 2, &high),
        (0, 1, 1, &[run(1)]),
        // Another CPU has the mutex of its own.
        (1, 4, 0, &section(R1, 3)),
    ];
    for protocol in [Protocol::Mpcp, Protocol::Ceiling] {
        // The most urgent task uses no mutex and preempts the section.
        assert_finishes(&set(2, &[protocol; 2], &rows), &[6, 8, 2, 3]);
    }
}

/// DPCP on this CPU.
const fn dpcp(cpu: usize) -> Protocol {
    Protocol::Dpcp(CpuId::from_index(cpu))
}

#[test]
fn section_executes_on_the_cpu_of_its_mutex_before_all_tasks_there() {
    let [lock, section, unlock] = section(R0, 3);
    let rows: [Row<'_>; 4] = [
        (0, 2, 0, &[run(1), lock, section, unlock, run(1)]),
        (0, 3, 0, &[run(4)]),
        (1, 1, 0, &[run(5)]),
        // It uses the mutex, too.
        (1, 4, 50, &[lock, section, unlock]),
    ];
    // From 1 to 4 the first task is on the other CPU, and the second has its own.
    assert_finishes(&set(2, &[dpcp(1)], &rows), &[5, 6, 8, 53]);
    // As long as a section is on its own CPU, others there wait.
    assert_finishes(&set(2, &[dpcp(0)], &rows), &[5, 9, 5, 53]);
}

#[test]
fn job_waits_for_a_free_mutex_of_a_cpu_where_one_of_a_more_urgent_ceiling_is_locked() {
    let (a, b, user) = (section(R0, 4), section(R1, 2), section(R0, 1));
    let with = |priority| {
        let rows: [Row<'_>; 3] = [(0, 3, 0, &a), (1, 2, 1, &b), (0, priority, 50, &user)];
        set(3, &[dpcp(2); 2], &rows)
    };
    assert_finishes(&with(1), &[4, 6, 51]);
    // A ceiling as urgent as the job itself.
    assert_finishes(&with(2), &[4, 6, 51]);
    // It locks, and comes first, as its own ceiling is more urgent.
    assert_finishes(&with(4), &[6, 3, 51]);
    // On another CPU nothing keeps it.
    let mut apart = with(1);
    apart.resources[1].protocol = dpcp(1);
    // So that the mutex is not that of one CPU alone.
    apart.tasks[2].work = Work::Phases([user, section(R1, 1)].concat());
    assert_finishes(&apart, &[4, 3, 52]);
}

#[test]
fn most_urgent_job_that_waits_for_any_mutex_of_a_cpu_is_next() {
    let rows: [Row<'_>; 4] = [
        (0, 5, 0, &section(R0, 4)),
        (1, 4, 1, &section(R1, 2)),
        (2, 2, 2, &section(R0, 2)),
        (0, 1, 50, &section(R0, 1)),
    ];
    assert_finishes(&set(3, &[dpcp(0); 2], &rows), &[4, 8, 6, 51]);
}

#[test]
fn mutex_of_the_cpu_of_all_its_users_has_the_ceiling_protocol() {
    let (low, high) = (section(R0, 5), section(R0, 2));
    let rows: [Row<'_>; 3] = [(0, 3, 0, &low), (0, 2, 2, &high), (0, 1, 1, &[run(1)])];
    assert_finishes(&set(2, &[dpcp(0)], &rows), &[6, 8, 2]);
    // On another CPU no task of their own is in the way.
    assert_finishes(&set(2, &[dpcp(1)], &rows), &[5, 7, 2]);
}

#[test]
fn ceilings_across_cpus_are_refused_where_they_are_not_defined() {
    let rows: [Row<'_>; 2] = [(0, 1, 0, &section(R0, 1)), (1, 2, 0, &section(R0, 1))];
    let mut set = set(2, &[Protocol::Mpcp], &rows);
    let refusal = |policy: &str, set: &TaskSet| {
        let built = registry::find(policy).unwrap().build(set);
        built.err().map(|error| error.to_string())
    };
    assert_eq!(refusal("p-fp", &set), None);
    assert_eq!(
        refusal("p-edf", &set).unwrap(),
        "p-edf does not schedule by fixed priorities, by which the protocol \"mpcp\" of `R0` is defined; accepted are policies \
         that do, for example `p-fp`, and other protocols, for example \"fmlp+\""
    );
    let mut served = set.clone();
    served.resources[0].protocol = dpcp(0);
    assert!(refusal("p-edf", &served).unwrap().contains("\"dpcp\""));
    // A cluster of its own for each task, and one for the mutex, or none.
    served.platform.cpus = 4;
    served.resources[0].protocol = dpcp(2);
    served.platform.clusters = ["0", "1", "2", "3"].map(|it| it.parse().unwrap()).to_vec();
    assert_eq!(refusal("c-fp", &served), None);
    let (records, _) = simulate(&served, "c-fp", options(9));
    assert_eq!(finishes(&records, 0), [1]);
    served.platform.clusters.truncate(2);
    served.platform.clusters.push("2-3".parse().unwrap());
    assert_eq!(
        refusal("c-fp", &served).unwrap(),
        "c-fp: jobs that hold `R0` execute on CPU 2, and this policy binds jobs to all of {0} {1} {2,3}; accepted are CPUs that \
         are a cluster alone, and `p-fp`"
    );
    set.tasks[1].affinity = Affinity::new("0-1".parse().unwrap()).unwrap();
    assert_eq!(
        refusal("p-fp", &set).unwrap(),
        "p-fp: jobs that hold `R0` come before others of their CPU (protocol \"mpcp\"), and task `t1` may use CPUs 0,1; \
         accepted are tasks that use it and are bound to one CPU, and other protocols"
    );
    // One that no job locks is not refused.
    set.tasks
        .iter_mut()
        .for_each(|task| task.work = Work::Constant(NS(1)));
    assert_eq!(refusal("p-edf", &set), None);
}
