//! What happens at run time never allocates, under any policy.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use shiftwork_model::{
    Affinities, Affinity, CpuId, CpuSet, Instant, Job, RandomStream, Span, Task, TaskId,
};
use shiftwork_model::{Priority, TaskSet};
use shiftwork_policy::registry::{Entry, POLICIES};
use shiftwork_policy::{Event, Policy, Switches};

const EVENTS: usize = 5_000;

/// Nested masks that every policy takes which takes more than global ones.
fn task_set(cpus: usize, policy: &Entry, random: &mut RandomStream) -> TaskSet {
    let mut set = TaskSet::new("test", cpus, Vec::new());
    set.platform.clusters = vec![range(0, cpus / 2), range(cpus / 2, cpus - cpus / 2)];
    set.platform.caches = set.platform.clusters.clone();
    let widths = match policy.traits.affinities {
        Affinities::Global => vec![cpus],
        Affinities::Clusters => vec![cpus / 2],
        Affinities::WithinClusters | Affinities::SemiPartitioned => vec![cpus / 2, 1],
        Affinities::Laminar | Affinities::Any => vec![cpus, cpus / 2, 1],
    };
    for index in 0..5 * cpus {
        let width = widths[random.below(widths.len() as u64) as usize];
        let first = random.below((cpus / width) as u64) as usize * width;
        let affinity = Affinity::new(range(first, width)).expect("a mask has CPUs");
        let name = format!("t{index}");
        let (cost, period) = (Span::from_us(1), Span::from_ms(1));
        set.tasks
            .push(Task::periodic(&name, cost, period, affinity));
    }
    set
}

fn range(first: usize, size: usize) -> CpuSet {
    (first..first + size).map(CpuId::from_index).collect()
}

/// One of the events that happen at run time; about as many jobs wake as stop.
fn event(
    priorities: &[Priority],
    cpus: usize,
    now: u64,
    random: &mut RandomStream,
) -> Event<'static> {
    let index = random.below(priorities.len() as u64) as usize;
    let task = TaskId::from_index(index);
    match random.below(10) {
        0..4 => Event::Wake(Job {
            task,
            ready: Instant::from_ns(now),
            deadline: Instant::from_ns(now + random.below(50)),
            priority: priorities[index],
        }),
        4 | 5 => Event::Complete(task),
        6 => Event::Block(task),
        7 => Event::BudgetSpent(task),
        8 => Event::Released(Job {
            task,
            ready: Instant::from_ns(now),
            deadline: Instant::from_ns(now + random.below(50)),
            priority: priorities[index],
        }),
        _ => Event::Tick {
            cpu: CpuId::from_index(random.below(cpus as u64) as usize),
            quantum: now,
        },
    }
}

fn play(
    policy: &mut dyn Policy,
    events: &[Event<'_>],
    out: &mut Switches,
    mut allocated_by: impl FnMut(usize, u64),
) -> usize {
    let mut switches = 0;
    for (number, event) in events.iter().enumerate() {
        out.clear();
        let counted = allocation_counter::measure(|| {
            policy.on_event(*event, out);
            switches += out.len();
            out.clear();
            policy.end_instant(out);
        });
        allocated_by(number, counted.count_total);
        switches += out.len();
    }
    switches
}

#[test]
fn wake_block_complete_budget_and_tick_never_allocate() {
    for policy in POLICIES {
        // One-word masks, and masks of many words.
        for (seed, cpus) in [(1, 2), (2, 8), (3, 24), (4, 80)] {
            let mut random = RandomStream::new(seed, 0, 0);
            let set = task_set(cpus, policy, &mut random);
            let mut built = policy.build(&set).unwrap();
            let mut out = Switches::with_capacity(cpus);
            let priorities = set.priorities();
            let events: Vec<Event<'_>> = (0..EVENTS as u64)
                .map(|now| event(&priorities, cpus, now, &mut random))
                .collect();
            let switches = play(&mut *built, &events, &mut out, |number, count| {
                assert_eq!(
                    count, 0,
                    "{}: {cpus} CPUs, seed {seed}, event {number}, {:?}",
                    policy.name, events[number]
                );
            });
            assert!(
                switches > EVENTS / 50,
                "{}: {cpus} CPUs: hardly anything happened",
                policy.name
            );
        }
    }
}

#[test]
fn the_counter_sees_an_allocation() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1_u8])));
    assert_eq!(counted.count_total, 1);
}
