//! Writing a task set and reading it back changes nothing, for random sets.

use proptest::prelude::*;
use shiftwork_model::*;
use shiftwork_taskset::{read, write};

use crate::list;

const CPUS: usize = 6;

fn positive() -> impl Strategy<Value = Span> {
    prop_oneof![
        (1..=Span::MAX.as_ns()).prop_map(Span::from_ns),
        (1..5_000u64).prop_map(Span::from_us),
        (1..5_000u64).prop_map(Span::from_ms),
    ]
}

fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![Just(Span::ZERO), positive()].prop_map(|span| Instant::ZERO + span)
}

fn cpu_set() -> impl Strategy<Value = CpuSet> {
    (1u64..1 << CPUS).prop_map(CpuSet::from_bits)
}

fn affinity() -> impl Strategy<Value = Affinity> {
    cpu_set().prop_map(|set| Affinity::new(set).unwrap())
}

fn share(least: u32) -> impl Strategy<Value = Share> {
    (least..=Share::WHOLE).prop_map(|billionths| Share::from_billionths(billionths).unwrap())
}

fn priority() -> impl Strategy<Value = Priority> {
    (1..=Priority::LEAST_URGENT.number()).prop_map(|number| Priority::new(number).unwrap())
}

fn cpu() -> impl Strategy<Value = CpuId> {
    (0..CPUS).prop_map(CpuId::from_index)
}

fn phases() -> impl Strategy<Value = Work> {
    let phase = prop_oneof![
        positive().prop_map(Phase::Run),
        positive().prop_map(Phase::Sleep)
    ];
    let phases = prop::collection::vec(phase, 0..4);
    // Mutexes that are nested in one order, around the phases.
    let locks = prop::sample::subsequence((0..RESOURCES).collect::<Vec<_>>(), 0..=RESOURCES);
    (positive(), phases, locks).prop_map(|(run, mut phases, locks)| {
        phases.push(Phase::Run(run));
        let lock = |&index: &usize| Phase::Lock(ResourceId::from_index(index));
        let unlock = |&index: &usize| Phase::Unlock(ResourceId::from_index(index));
        let before: Vec<Phase> = locks.iter().map(lock).collect();
        Work::Phases([before, phases, locks.iter().map(unlock).collect()].concat())
    })
}

/// As many as the tasks of a set may lock.
const RESOURCES: usize = 3;

fn resources() -> impl Strategy<Value = Vec<Resource>> {
    let protocols = [Protocol::None, Protocol::Inheritance, Protocol::Ceiling];
    let protocol = prop::sample::select(protocols.to_vec());
    prop::collection::vec(protocol, RESOURCES).prop_map(|protocols| {
        let resource = |(index, protocol)| Resource {
            name: format!("r \"{index}"),
            protocol,
        };
        protocols.into_iter().enumerate().map(resource).collect()
    })
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![
        Just(Work::Cost),
        positive().prop_map(Work::Constant),
        (positive(), positive()).prop_map(|(a, b)| Work::Uniform(a.min(b), a.max(b))),
        prop::collection::vec(positive(), 1..4).prop_map(Work::Trace),
        phases(),
    ]
}

/// Chains of any tasks of this many, under names of their own; none if there are fewer than two tasks.
fn chains(tasks: usize) -> impl Strategy<Value = Vec<Chain>> {
    let ids: Vec<TaskId> = (0..tasks).map(TaskId::from_index).collect();
    let path = prop::sample::subsequence(ids, 2.min(tasks)..=tasks).prop_shuffle();
    let wanted = || prop::option::of(positive());
    let chain = (".{0,6}", path, wanted(), wanted());
    prop::collection::vec(chain, 0..3).prop_map(|chains| {
        let chains = chains.into_iter().enumerate();
        let chains = chains.map(|(index, (name, tasks, reaction, age))| Chain {
            name: format!("{index}{name}"),
            tasks,
            reaction,
            age,
            latency: None,
        });
        chains.filter(|chain| chain.tasks.len() >= 2).collect()
    })
}

fn task() -> impl Strategy<Value = Task> {
    let arrival = prop_oneof![
        Just(Arrival::Periodic),
        Just(Arrival::Sporadic),
        prop::collection::vec(1u64..9, 0..4).prop_map(|gaps| {
            let releases = gaps.iter().scan(0, |at, gap| {
                *at += gap;
                Some(Instant::from_ns(*at))
            });
            Arrival::Releases(releases.collect())
        }),
        (prop::collection::vec(0u64..9, 1..5), any::<bool>()).prop_map(|(more, is_random)| {
            let mut distances: Vec<u64> = Vec::new();
            for more in more {
                let gaps = distances.len();
                let split = |first: usize| distances[first] + distances[gaps - 1 - first];
                let least = (0..gaps).map(split).max().unwrap_or(1);
                distances.push(least + more);
            }
            let curve = ArrivalCurve::new(distances.into_iter().map(Span::from_ns).collect());
            let pace = [Pace::Earliest, Pace::Random][usize::from(is_random)];
            Arrival::Curve(curve.unwrap(), pace)
        }),
    ];
    let overrun = prop_oneof![
        Just(OnOverrun::Throttle),
        Just(OnOverrun::Continue),
        Just(OnOverrun::Signal)
    ];
    let numbers = (positive(), positive(), positive(), (instant(), instant()));
    let options = (
        affinity(),
        prop::option::of(priority()),
        prop::option::of(cpu()),
    );
    let command = prop::collection::vec(".{0,6}", 0..3);
    let names = (
        ".{1,3}",
        prop::option::of((".{1,3}", prop::option::of(1u32..4))),
    );
    let thread = prop::option::of(names).prop_map(|names| {
        let (process, thread) = names?;
        let (name, number) = thread.unzip();
        Some(ThreadName {
            process,
            name,
            number: number.flatten(),
        })
    });
    let program = (command, thread);
    (numbers, options, arrival, work(), overrun, program).prop_map(
        |(
            (period, deadline, cost, (offset, jitter)),
            (affinity, priority, start_cpu),
            arrival,
            work,
            overrun,
            (command, thread),
        )| {
            let period = match &arrival {
                Arrival::Releases(_) => Span::from_ns(1),
                Arrival::Curve(curve, _) => curve.shortest(),
                _ => period,
            };
            Task {
                deadline,
                offset: offset.late_since(Instant::ZERO),
                jitter: jitter.late_since(Instant::ZERO),
                priority,
                arrival,
                start_cpu,
                work,
                on_overrun: overrun,
                thread: thread.filter(|_| command.is_empty()),
                command,
                ..Task::periodic("", cost.min(deadline), period, affinity)
            }
        },
    )
}

fn change(tasks: usize) -> impl Strategy<Value = Change> {
    let id = move || (0..tasks).prop_map(TaskId::from_index);
    let change = move |cost, period, deadline| {
        move |task| Change::SetAttributes {
            task,
            cost,
            period,
            deadline,
        }
    };
    let new = || prop::option::of(positive());
    prop_oneof![
        id().prop_map(Change::Enter),
        id().prop_map(Change::Leave),
        (id(), positive(), new(), new()).prop_map(move |(task, cost, period, deadline)| change(
            Some(cost),
            period,
            deadline
        )(
            task
        )),
        (id(), affinity()).prop_map(|(task, to)| Change::SetAffinity(task, to)),
        (id(), priority()).prop_map(|(task, to)| Change::SetPriority(task, to)),
        (id(), 0usize..2).prop_map(|(task, cluster)| Change::Move(task, cluster)),
        (1u64..(1 << CPUS) - 1).prop_map(|bits| {
            let part = CpuSet::from_bits(bits);
            Change::SetClusters(vec![CpuSet::first(CPUS) - part, part])
        }),
        cpu().prop_map(Change::CpuOffline),
        cpu().prop_map(Change::CpuOnline),
        share(0).prop_map(Change::SetReserve),
    ]
}

fn platform() -> impl Strategy<Value = Platform> {
    let sets = prop::collection::btree_map("[a-z][a-z0-9. \"-]{0,6}[a-z]", cpu_set(), 0..4);
    let caches = prop::collection::vec(cpu_set(), 0..4);
    let capacities = prop_oneof![Just(Vec::new()), prop::collection::vec(share(1), CPUS)];
    (sets, caches, capacities, any::<bool>()).prop_map(|(sets, caches, capacities, scaled)| {
        let halves = [CpuSet::first(3), list("3-5")];
        let frequency = [Frequency::Fixed, Frequency::GrubPa][usize::from(scaled)];
        Platform {
            sets,
            caches,
            capacities,
            frequency,
            clusters: halves.to_vec(),
            ..Platform::uniform(CPUS)
        }
    })
}

fn task_set() -> impl Strategy<Value = TaskSet> {
    let scheduler = (
        prop::option::of(".{1,8}"),
        share(0),
        any::<bool>(),
        prop::option::of(positive()),
        any::<bool>(),
        prop::option::of(".{1,8}"),
        prop::option::of(prop::sample::subsequence(Repairs::NAMES.to_vec(), 0..=4)),
        prop::sample::select(vec![Lagging::Grid, Lagging::Reset]),
    )
        .prop_map(
            |(
                policy,
                reserve,
                reserve_server,
                quantum,
                early_release,
                overheads,
                repairs,
                lagging,
            )| {
                SchedulerOptions {
                    policy,
                    reserve,
                    reserve_server,
                    quantum,
                    early_release,
                    overheads,
                    repairs: repairs.map(|names| {
                        let all = names
                            .iter()
                            .try_fold(Repairs::NONE, |all, name| all.with(name));
                        all.expect("these are names")
                    }),
                    lagging,
                }
            },
        );
    let tasks = prop::collection::vec(task(), 1..5);
    (".{0,8}", platform(), scheduler, tasks, resources()).prop_flat_map(
        |(name, platform, scheduler, mut tasks, resources)| {
            for (index, task) in tasks.iter_mut().enumerate() {
                task.name = format!("t{index}");
                if task.locks() {
                    task.on_overrun = OnOverrun::Continue;
                }
            }
            let action =
                (instant(), change(tasks.len())).prop_map(|(at, change)| Action { at, change });
            let actions = prop::collection::vec(action, 0..5);
            let triggers = prop::collection::vec(trigger(), tasks.len());
            let parts = (actions, chains(tasks.len()), triggers);
            parts.prop_map(move |(mut actions, chains, triggers)| {
                actions.sort_by_key(|action| action.at);
                let set = TaskSet {
                    name: name.clone(),
                    platform: platform.clone(),
                    scheduler: scheduler.clone(),
                    tasks: tasks.clone(),
                    resources: resources.clone(),
                    chains,
                    actions,
                };
                let mut set = triggered(set, &triggers);
                for action in &mut set.actions {
                    if let Change::SetAttributes { task, period, .. } = &mut action.change
                        && set.tasks[task.index()].curve().is_some()
                    {
                        *period = None;
                    }
                }
                set
            })
        },
    )
}

/// Whether a task is triggered; if so by how many of the tasks before it, how these are joined, the length of the queue,
/// and whether the first of them does it within its phases if it has any.
type Triggered = (bool, usize, bool, Option<u32>, bool);

fn trigger() -> impl Strategy<Value = Triggered> {
    let queue = prop::option::of(1..u32::MAX);
    (
        any::<bool>(),
        1..4usize,
        any::<bool>(),
        queue,
        any::<bool>(),
    )
}

/// The set with some of its tasks triggered by others before them.
fn triggered(mut set: TaskSet, triggers: &[Triggered]) -> TaskSet {
    for (index, &(is_triggered, count, all, queue, within)) in triggers.iter().enumerate() {
        let sources: Vec<TaskId> = (0..index.min(count)).map(TaskId::from_index).collect();
        let (true, Some(first)) = (is_triggered, sources.first()) else {
            continue;
        };
        let id = TaskId::from_index(index);
        if let (true, Work::Phases(phases)) = (within, &mut set.tasks[first.index()].work) {
            phases.insert(0, Phase::Trigger(id));
        }
        let join = match all {
            true => Join::All,
            false => Join::Any,
        };
        let trigger = Trigger {
            sources,
            join,
            queue,
        };
        let task = &mut set.tasks[index];
        (task.offset, task.jitter) = (Span::ZERO, Span::ZERO);
        task.arrival = Arrival::Triggered(trigger);
        set.tasks[index].period = set.triggered_period(id).unwrap();
    }
    set
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(set in task_set()) {
        let text = write(&set);
        match read(&text) {
            Ok(back) => prop_assert_eq!(back, set, "{}", text),
            Err(error) => prop_assert!(false, "{} in\n{}", error, text),
        }
    }
}

#[test]
fn cpu_of_a_mutex_is_written_and_read_back() {
    let text =
        "[platform]\ncpus = 2\n\n[[resource]]\nname = \"bus\"\nprotocol = \"dpcp\"\ncpu = 1\n";
    let set = read(text).unwrap();
    assert_eq!(
        set.resources[0].protocol,
        Protocol::Dpcp(CpuId::from_index(1))
    );
    assert_eq!(read(&write(&set)).unwrap(), set);
}
