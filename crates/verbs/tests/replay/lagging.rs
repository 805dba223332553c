//! Runs on a machine with reactions of up to 77 us, under the right scheduler and under six wrong
//! ones.

use shiftwork_model::{Affinity, CpuSet, Instant, Priority, RandomStream, Span, Task, TaskSet};
use shiftwork_trace::replay::WINDOW;
use shiftwork_verbs::catalogue;
use shiftwork_verbs::replay::{Decider, Judgement, Measured, judge};

use crate::machine::{Run, Scheduler, run};

const REACTION_NS: u64 = 77_000;

const HORIZON: Instant = Instant::from_ns(200_000_000);

/// All of them, or a few.
fn sets() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 400,
        None => 40,
    }
}

/// A task set for 2 to 4 CPUs that uses 60% to 90% of them, with any affinities. Periods divide each other often,
/// so that many jobs have the same deadline.
fn random_set(random: &mut RandomStream) -> TaskSet {
    let cpus = 2 + random.below(3);
    let count = cpus + 2 + random.below(4);
    let share = 600 + random.below(300);
    let tasks = (0..count).map(|index| {
        let period = [4, 5, 8, 10, 16, 20][random.below(6) as usize] * 1_000_000;
        let weight = 50 + random.below(100);
        let cost = period / 1_000 * cpus * share / count * weight / 100;
        let bits = 1 + random.below((1 << cpus) - 1);
        let affinity = Affinity::new(CpuSet::from_bits(bits)).unwrap();
        let cost = Span::from_ns(cost.min(period * 9 / 10));
        let mut task = Task::periodic(&format!("t{index}"), cost, Span::from_ns(period), affinity);
        task.offset = Span::from_us(500 * random.below(8));
        task
    });
    let mut set = TaskSet::new("random", cpus as usize, tasks.collect());
    let priorities = set.priorities();
    for (task, priority) in set.tasks.iter_mut().zip(priorities) {
        task.priority = Some(priority);
    }
    set
}

fn judged(policy: &str, set: &TaskSet, run: &Run) -> Judgement {
    let measured = Measured {
        set,
        entry: catalogue::find(policy).unwrap(),
        decider: Decider::Policy,
        records: &run.records,
        window: WINDOW,
        horizon: HORIZON,
    };
    judge(&measured).unwrap()
}

/// How many runs in which the scheduler decided otherwise for two windows or more are found, of how many; and
/// how many sets were drawn for that.
fn caught(stream: u64, draw: impl Fn(&TaskSet, &mut RandomStream) -> Scheduler) -> (u64, u64, u64) {
    let (mut found, mut differing, mut drawn) = (0, 0, 0);
    while differing < sets() {
        drawn += 1;
        assert!(drawn <= 100 * sets(), "it hardly ever differs");
        let mut random = RandomStream::new(drawn, stream, 0);
        let set = random_set(&mut random);
        let scheduler = draw(&set, &mut random);
        let run = run(&set, scheduler, REACTION_NS, &mut random, HORIZON);
        if run.differed < Span::from_ns(2 * WINDOW.as_ns()) {
            continue;
        }
        differing += 1;
        match judged("strong-edf", &set, &run).verdict.holds() {
            false => found += 1,
            true => println!(
                "seed {drawn}, {scheduler:?}: not found, differed {}",
                run.differed
            ),
        }
    }
    (found, differing, drawn)
}

fn assert_caught(name: &str, (found, differing, drawn): (u64, u64, u64)) {
    println!("{name}: {found} of {differing} found ({drawn} sets drawn)");
    assert!(
        100 * found >= 95 * differing,
        "{name}: {found} of {differing}"
    );
}

#[test]
fn replay_finds_a_weak_scheduler_in_place_of_a_strong_one() {
    assert_caught("weak", caught(1, |_, _| Scheduler::Weak));
}

#[test]
fn replay_finds_another_order() {
    assert_caught("other order", caught(2, |_, _| Scheduler::FixedPriority));
}

#[test]
fn replay_finds_one_deadline_that_is_off_by_30_percent() {
    let draw = |set: &TaskSet, random: &mut RandomStream| {
        Scheduler::Deadline(random.below(set.tasks.len() as u64) as usize)
    };
    assert_caught("deadline off by 30%", caught(3, draw));
}

#[test]
fn replay_finds_that_one_cpu_of_one_affinity_is_ignored() {
    let draw = |set: &TaskSet, random: &mut RandomStream| {
        let wide = (0..set.tasks.len()).filter(|&it| set.tasks[it].affinity.cpus().len() > 1);
        let wide: Vec<usize> = wide.collect();
        match wide.len() as u64 {
            0 => Scheduler::Strong,
            count => {
                let task = wide[random.below(count) as usize];
                let cpus: Vec<_> = set.tasks[task].affinity.cpus().iter().collect();
                Scheduler::Affinity(task, cpus[random.below(cpus.len() as u64) as usize].index())
            }
        }
    };
    assert_caught("one CPU ignored", caught(4, draw));
}

#[test]
fn replay_finds_ties_broken_in_another_way() {
    assert_caught("ties by FIFO", caught(5, |_, _| Scheduler::Fifo));
}

#[test]
fn replay_finds_a_stall_of_5_ms() {
    let draw = |_: &TaskSet, random: &mut RandomStream| Scheduler::Stall(1 + random.below(100));
    assert_caught("stall of 5 ms", caught(6, draw));
}

#[test]
fn replay_names_a_stall_and_where_it_was() {
    let mut random = RandomStream::new(1, 7, 0);
    let all = Affinity::new(CpuSet::first(2)).unwrap();
    let (cost, period) = (Span::from_ms(2), Span::from_ms(10));
    let set = TaskSet::new("one", 2, vec![Task::periodic("b", cost, period, all)]);
    let run = run(&set, Scheduler::Stall(3), 0, &mut random, HORIZON);
    let verdict = judged("strong-edf", &set, &run).verdict;
    assert_eq!((verdict.count, verdict.stalls), (1, 1));
    assert_eq!(verdict.longest_stall, Span::from_ms(5));
    assert_eq!(
        verdict.describe(&verdict.disagreements[0]),
        "at 20ms for 5ms: job 3 of b did not run, and CPU 0 was idle"
    );
}

#[test]
fn replay_raises_no_false_alarm() {
    let count = sets().min(100);
    for seed in 1..=count {
        for (policy, scheduler) in [
            ("strong-edf", Scheduler::Strong),
            ("strong-fp", Scheduler::FixedPriority),
            ("weak-edf", Scheduler::Weak),
        ] {
            let mut random = RandomStream::new(seed, 8, 0);
            let mut set = random_set(&mut random);
            for (index, task) in set.tasks.iter_mut().enumerate() {
                // No two of a priority, nor in the order of their deadlines.
                task.priority = Priority::new(1 + (index as u32 * 7) % 11);
            }
            let run = run(&set, scheduler, REACTION_NS, &mut random, HORIZON);
            let verdict = judged(policy, &set, &run).verdict;
            assert!(verdict.holds(), "seed {seed}, {policy}:\n{verdict}");
            assert!(
                verdict.judged > Span::from_ms(50),
                "seed {seed}, {policy}: {}",
                verdict.judged
            );
        }
    }
    println!("{count} correct runs of each of three policies agree");
}
