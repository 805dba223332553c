//! Triggers in C and in Rust, in lockstep.

use shiftwork_kernel_core::{ARRIVALS_MAX, CoreTriggers, SOURCES_MAX};
use shiftwork_machine::{Taken, TriggerQueue};
use shiftwork_model::{Instant, Join, RandomStream, TaskId, Trigger};

/// Triggers and ends of jobs in any order; how often each answer was given.
fn run(seed: u64) -> [usize; 3] {
    let mut random = RandomStream::new(seed, 0, 0);
    let mut below = |n: u64| random.below(n);
    let count = 1 + below(SOURCES_MAX as u64);
    let sources: Vec<TaskId> = (0..count as usize).map(TaskId::from_index).collect();
    let join = match below(2) {
        0 => Join::Any,
        _ => Join::All,
    };
    // Without a limit C has room for so many arrivals alone, which a job ends often enough for.
    let limit = (below(3) > 0).then(|| 1 + below(4) as u32);
    let trigger = Trigger {
        sources: sources.clone(),
        join,
        queue: limit,
    };
    let mut queue = TriggerQueue::new(&trigger);
    let places = trigger.places() as u32;
    let mut core = CoreTriggers::new(places, limit.unwrap_or(u32::MAX));
    let (mut is_idle, mut waiting) = (true, 0);
    let mut answers = [0; 3];
    for step in 0..300 {
        let now = Instant::from_ns(step);
        if below(3) == 0 || waiting == ARRIVALS_MAX {
            let next = queue.next_arrival();
            assert_eq!(
                core.next_arrival(),
                next.unwrap_or(Instant::NEVER),
                "seed {seed}, step {step}"
            );
            is_idle = next.is_none();
            waiting -= usize::from(next.is_some());
            continue;
        }
        let source = below(count) as usize;
        let place = trigger.place(sources[source]) as u32;
        let taken = queue.take(sources[source], is_idle, now);
        let answer = core.take(place, is_idle, now);
        let same = match taken {
            Taken::Lost => 0,
            Taken::Waits => 1,
            Taken::Releases => 2,
        };
        assert_eq!(answer, same, "seed {seed}, step {step}");
        answers[answer as usize] += 1;
        waiting += usize::from(taken == Taken::Releases);
        if taken == Taken::Releases && is_idle {
            assert_eq!(
                core.next_arrival(),
                queue.next_arrival().unwrap_or(Instant::NEVER)
            );
            (is_idle, waiting) = (false, waiting - 1);
        }
    }
    answers
}

#[test]
fn triggers_in_c_equal_those_in_rust() {
    let mut answers = [0; 3];
    for seed in 0..2_000 {
        let more = run(seed);
        answers = std::array::from_fn(|kind| answers[kind] + more[kind]);
    }
    assert!(answers.iter().all(|&count| count > 10_000), "{answers:?}");
}

#[test]
fn job_behind_as_many_as_there_is_room_for_is_lost() {
    let mut core = CoreTriggers::new(1, u32::MAX);
    for at in 0..ARRIVALS_MAX as u64 {
        assert_eq!(core.take(0, false, Instant::from_ns(at)), 2);
    }
    assert_eq!(core.take(0, false, Instant::from_ns(99)), 0);
    assert_eq!(core.next_arrival(), Instant::ZERO);
    assert_eq!(core.take(0, false, Instant::from_ns(100)), 2);
}
