//! Hand-computed examples, one for each term.

use shiftwork_analysis::overheads::{Obstacle, Structure, inflate};
use shiftwork_analysis::pfair::Quanta;
use shiftwork_analysis::verdicts::{Price, analyse_under};
use shiftwork_model::{Affinity, CpuSet, Interrupts, LinearCost, Overheads, Span, Task, TaskSet};
use shiftwork_policy::registry;

use crate::{DEDICATED, NS, cost, inflated, times};

/// Tasks with these costs and periods on so many CPUs, with ticks every 1000 ns.
fn set(cpus: usize, tasks: &[(u64, u64)]) -> TaskSet {
    let all = Affinity::new(CpuSet::first(cpus)).unwrap();
    let task = |&(cost, period): &(u64, u64)| Task::periodic("T", NS(cost), NS(period), all);
    let mut set = TaskSet::new("example", cpus, tasks.iter().map(task).collect());
    set.scheduler.quantum = Some(NS(1_000));
    set
}

fn costs(set: &TaskSet, policy: &str, overheads: &Overheads) -> Vec<u64> {
    let inflated = inflated(set, policy, Interrupts::Global, overheads);
    inflated.iter().map(|one| times(one)[0]).collect()
}

#[test]
fn a_job_pays_for_two_switches_and_the_refill_of_the_preempted_job() {
    let overheads = Overheads {
        schedule: cost(10),
        switch: cost(5),
        ipi: cost(7),
        preemption: vec![cost(100)],
        migration: vec![cost(60), cost(300)],
        ..Overheads::default()
    };
    let mut two = set(2, &[(1_000, 10_000), (2_000, 20_000)]);
    two.platform.caches = vec!["0-1".parse().unwrap()];
    // Within one cache group a migration costs less than to go on in place: 2 x 15 + 100 + 7.
    assert_eq!(costs(&two, "g-edf", &overheads), [1_137, 2_137]);
    two.platform.caches = vec!["0".parse().unwrap(), "1".parse().unwrap()];
    assert_eq!(costs(&two, "g-edf", &overheads), [1_337, 2_337]);
    // Without preemptions one switch; no refill.
    assert_eq!(costs(&two, "np-g-edf", &overheads), [1_022, 2_022]);
    // On one CPU there are no reschedule interrupts and no migrations.
    let one = set(1, &[(1_000, 10_000), (2_000, 20_000)]);
    assert_eq!(costs(&one, "p-edf", &overheads), [1_130, 2_130]);
    // A task alone on a CPU is never preempted; first fit packs these two apart.
    let apart = set(2, &[(6_000, 10_000), (12_000, 20_000)]);
    assert_eq!(costs(&apart, "p-edf", &overheads), [6_030, 12_030]);
}

#[test]
fn interrupts_slow_jobs_down_and_come_once_more_in_each_stretch() {
    let overheads = Overheads {
        release: cost(10),
        tick: cost(50),
        schedule: cost(15),
        ..Overheads::default()
    };
    // u = 50/1000 + 10/100 + 10/1000 = 0.16, and once 50 + 2 x 10: (854 + 30 + 140) / 0.84 = 1219.05.
    let set = set(2, &[(854, 100_000), (854, 100_000)]);
    let mut fast = set.clone();
    for (task, period) in fast.tasks.iter_mut().zip([100, 1_000]) {
        (task.period, task.deadline) = (NS(period), NS(period));
    }
    let found = inflated(&fast, "g-edf", Interrupts::Global, &overheads);
    assert_eq!(times(&found[0]), [1_220, 100, 100]);
    assert_eq!(times(&found[1]), [1_220, 1_000, 1_000]);
    assert_eq!(found[0].obstacle, Some(Obstacle::Density));
    // u = 0.05 + 2 x 10/100000 = 0.0502: 1024 / 0.9498 = 1078.1.
    assert_eq!(costs(&set, "g-edf", &overheads), [1_079, 1_079]);
    // Without preemptions there is one stretch: (854 + 15 + 70) / 0.9498 = 988.6.
    assert_eq!(costs(&set, "np-g-edf", &overheads), [989, 989]);
}

#[test]
fn a_dedicated_cpu_takes_the_releases() {
    let overheads = Overheads {
        release: cost(10),
        tick: cost(50),
        ..Overheads::default()
    };
    let set = set(3, &[(855, 100_000), (855, 100_000)]);
    let found = inflated(&set, "CE1", DEDICATED, &overheads);
    // (855 + 2 x 50) / 0.95 = 1005.3, rounded up, and its own release; that of the other may come first.
    assert_eq!(times(&found[0]), [1_016, 99_990, 99_990]);
    assert_eq!(found[0].delay, NS(10));
    assert_eq!(found[0].cpus, "1-2".parse().unwrap());
    let own = Structure::of(&registry::find("CE1").unwrap().traits, &set);
    assert_eq!(own.interrupts, DEDICATED);
}

#[test]
fn costs_count_the_tasks_of_the_partition() {
    let grows = Overheads {
        schedule: LinearCost {
            base: NS(1),
            per_task: NS(10),
        },
        ..Overheads::default()
    };
    let mut set = set(2, &[(100, 1_000), (100, 1_000), (100, 1_000)]);
    for (task, cpus) in set.tasks.iter_mut().zip(["0", "1", "1"]) {
        task.affinity = Affinity::new(cpus.parse().unwrap()).unwrap();
    }
    assert_eq!(costs(&set, "p-edf", &grows), [122, 142, 142]);
    // One scheduler handles all under weak affinities.
    assert_eq!(costs(&set, "weak-edf", &grows), [162, 162, 162]);
}

#[test]
fn a_queue_operation_may_wait_for_all_other_cpus() {
    let overheads = Overheads {
        release: cost(1),
        enqueue: cost(20),
        dequeue: cost(30),
        ..Overheads::default()
    };
    let mut set = set(3, &[(1_000, 1_000_000)]);
    // sch = 30 + 2 x 30, rel = 1 + 20 + 2 x 30: (1000 + 2 x 90 + 2 x 81) / (1 - 81/1000000) = 1342.1.
    assert_eq!(costs(&set, "g-edf", &overheads), [1_343]);
    set.platform.cpus = 1;
    set.tasks[0].affinity = Affinity::new(CpuSet::first(1)).unwrap();
    // Alone: (1000 + 2 x 30 + 2 x 21) / (1 - 21/1000000) = 1102.02.
    assert_eq!(costs(&set, "p-edf", &overheads), [1_103]);
}

#[test]
fn interrupts_that_take_all_leave_no_task() {
    let overheads = Overheads {
        tick: cost(1_000),
        ..Overheads::default()
    };
    let found = inflated(
        &set(1, &[(1, 100_000)]),
        "p-edf",
        Interrupts::Global,
        &overheads,
    );
    assert_eq!(
        (found[0].task, found[0].obstacle),
        (None, Some(Obstacle::Interrupts))
    );
}

#[test]
fn a_quantum_loses_what_its_beginning_costs() {
    let overheads = Overheads {
        release: cost(20),
        tick: cost(50),
        schedule: cost(30),
        switch: cost(10),
        preemption: vec![cost(90)],
        ..Overheads::default()
    };
    // 1000 - 50 - 30 - 10 - 90 - 20 of the other one = 800: 2401 are four quanta.
    let mut set = set(2, &[(2_401, 10_000), (800, 5_500)]);
    let found = inflated(&set, "pd2", Interrupts::Global, &overheads);
    assert_eq!(times(&found[0]), [4_000, 10_000, 10_000]);
    assert_eq!(found[0].delay, NS(0));
    // Its period is no number of quanta: its release is handled before it is seen. The rest is `pfair`'s.
    assert_eq!(times(&found[1]), [1_000, 5_480, 5_480]);
    assert_eq!(found[1].delay, NS(20));
    // A dedicated CPU handles both releases before the first of the quanta: 780 remain.
    set.tasks[0].cost = NS(2_341);
    let found = inflated(&set, "pd2", DEDICATED, &overheads);
    assert_eq!(times(&found[0]), [4_000, 10_000, 10_000]);
    set.tasks[0].cost = NS(2_340);
    let found = inflated(&set, "pd2", DEDICATED, &overheads);
    assert_eq!(times(&found[0]), [3_000, 10_000, 10_000]);
    set.scheduler.quantum = Some(NS(200));
    let found = inflated(&set, "pd2", Interrupts::Global, &overheads);
    assert_eq!(
        (found[0].task, found[0].obstacle),
        (None, Some(Obstacle::Quantum))
    );
}

#[test]
fn quanta_are_charged_where_tests_do_not_know_them() {
    // Global EDF by staggered quanta of 1000 on 4 CPUs, not aligned: 20 + 1000 + 750 are lost.
    let set = set(4, &[(900, 10_000)]);
    let traits = &registry::find("g-edf").unwrap().traits;
    let structure = Structure {
        quantum: Some(Quanta {
            quantum: NS(1_000),
            staggered: true,
            aligned: false,
        }),
        interrupts: Interrupts::Global,
    };
    let overheads = Overheads {
        release: cost(20),
        tick: cost(100),
        ..Overheads::default()
    };
    let bound = [CpuSet::first(4)];
    let found = inflate(&set, (traits, &structure), &bound, &overheads).unwrap();
    assert_eq!(times(&found[0]), [1_000, 8_000, 8_000]);
    assert_eq!(found[0].delay, NS(1_770));
    // A deadline within what is lost leaves nothing.
    let mut short = set;
    short.tasks[0].deadline = NS(2_769);
    let found = inflate(&short, (traits, &structure), &bound, &overheads).unwrap();
    assert_eq!(
        (found[0].task, found[0].obstacle),
        (None, Some(Obstacle::Window))
    );
}

/// SchedCAT's `overheads/pfair.py` calls `stagger_latency(total_cpus, qlen)`, which is defined with the
/// quantum first: on 32 CPUs it charges 31.97 us for a quantum of 1000 us.
#[test]
fn staggering_delays_by_nearly_a_quantum() {
    let staggered = |quantum: Span| Quanta {
        quantum,
        staggered: true,
        aligned: true,
    };
    let latency = staggered(Span::from_us(1_000)).stagger_latency_ns(32);
    assert_eq!(latency, 968_750);
    // The arguments exchanged, "32 us" and "1000 CPUs": 31.968 us.
    let exchanged = staggered(Span::from_us(32)).stagger_latency_ns(1_000);
    assert_eq!(exchanged, 31_968);
    let aligned = Quanta {
        staggered: false,
        ..staggered(Span::from_us(1_000))
    };
    assert_eq!(aligned.stagger_latency_ns(32), 0);
    // By this much alone does a bound on a response differ between PD2 and S-PD2.
    let mut set = set(32, &[(1_000_000, 4_000_000)]);
    set.scheduler.quantum = Some(Span::from_us(1_000));
    let response = |policy| pfair_response(&set, policy, Overheads::default());
    assert_eq!(response("s-pd2") - response("pd2"), NS(968_750));
}

/// The bound of Pfair on the response time of the first task under these overheads.
fn pfair_response(set: &TaskSet, policy: &str, overheads: Overheads) -> Span {
    let price = Price {
        structure: Structure::of(&registry::find(policy).unwrap().traits, set),
        worst: Some(overheads),
        average: None,
    };
    let candidates = [(crate::candidate(set, policy), Some(price))];
    let (found, accounts) = analyse_under(set, &candidates, 1_000_000);
    let bounds = found.policies[0].bounds.iter();
    let pfair: Vec<_> = bounds.filter(|bounds| bounds.test == "pfair").collect();
    assert_eq!(pfair.len(), 1);
    assert!(accounts[0].of_bounds("pfair").is_some());
    let best = found.policies[0].best[0].unwrap().response;
    let response = pfair[0].responses[0].unwrap();
    assert!(best <= response);
    response
}

#[test]
fn bounds_count_from_the_real_release() {
    // Five quanta of 1000, up to 999 until the next begins, and the release before that.
    let set = set(2, &[(800, 5_500)]);
    let free = pfair_response(&set, "pd2", Overheads::default());
    assert_eq!(free, NS(5_999));
    let overheads = Overheads {
        release: cost(20),
        ..Overheads::default()
    };
    assert_eq!(pfair_response(&set, "pd2", overheads), NS(6_019));
}

/// Under weak affinities T2 of seed 135, the least urgent of three on four CPUs, was moved to a
/// free CPU by a task that is bound to its CPU: T2 bore that cost, and it was charged to no task.
#[test]
fn nothing_is_known_where_affinities_overlap_and_differ() {
    let accounted = |policy: &str, affinities: [&str; 3]| {
        let set = set(2, &[(100, 1_000), (100, 1_000), (100, 1_000)]);
        let traits = &registry::find(policy).unwrap().traits;
        let bound = affinities.map(|cpus| cpus.parse().unwrap());
        let structure = Structure::of(traits, &set);
        inflate(&set, (traits, &structure), &bound, &Overheads::default()).is_some()
    };
    for policy in ["weak-edf", "weak-fp", "strong-edf", "hpa-fp"] {
        assert!(accounted(policy, ["0", "1", "0"]), "{policy}");
        assert!(accounted(policy, ["0-1", "0-1", "0-1"]), "{policy}");
        assert!(!accounted(policy, ["0-1", "0-1", "0"]), "{policy}");
    }
    for policy in ["dl-sp", "dl-linux"] {
        assert!(!accounted(policy, ["0-1", "0-1", "0-1"]), "{policy}");
    }
}
