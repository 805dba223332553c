//! Wake-ups, completions and changes that coincide: within one interrupt of one CPU, in every order.
//!
//! Each set has a few threads with short jobs. Their releases lie a microsecond apart at most, so
//! that one interrupt of the timer wakes several of them. A CPU that is there runs its assignment
//! within a window.

use shiftwork_live::standing::Reservation;
use shiftwork_model::{CpuSet, OnOverrun, Order, Priority, RandomStream, Span, TaskId};

use super::periodic::{Jobs, Periodic, now_ns};
use super::stage::Stage;
use crate::deadline::work::sleep_until;
use crate::long;

/// How long a CPU may take to run what it is assigned. Some 50 us are usual where wake-ups coincide, and more where
/// CPUs wait for each other's lock, of which the emulator executes only one.
const WINDOW_NS: u64 = 1_000_000;
/// Time between the releases of a set.
const PERIOD_NS: u64 = 24_000_000;
/// Releases of a set before the next set.
const ROUNDS: u64 = 3;
const TASKS_MAX: usize = 5;

/// Sets of coinciding jobs under EDF and fixed priorities: no assigned task stands still beyond the window.
pub fn coinciding_wakeups_leave_no_assignment_waiting() -> Result<(), String> {
    let sets = if long() { 500 } else { 15 };
    for order in [Order::Edf, Order::FixedPriority] {
        let mut stage = Stage::load_ordered(order)?;
        let threads: Vec<Periodic> = (0..TASKS_MAX).map(|_| Periodic::start()).collect();
        let mut worst = 0;
        for seed in 1..=sets {
            let longest = try_set(seed, &mut stage, &threads)
                .map_err(|why| format!("{order:?}, seed {seed}: {why}"))?;
            worst = worst.max(longest);
        }
        println!("{order:?}: {sets} sets; a CPU ran its assignment after {worst} ns at the latest");
        drop(threads);
        stage.end()?;
    }
    Ok(())
}

/// Runs one set; returns how long an assignment waited at most, in ns.
fn try_set(seed: u64, stage: &mut Stage, threads: &[Periodic]) -> Result<u64, String> {
    let mut random = RandomStream::new(seed, 0, 0);
    let cpus = 2 + random.below(2);
    let count = 3 + random.below(TASKS_MAX as u64 - 2) as usize;
    let mark = stage.mark()?;
    stage.standing.take_reaction_max();
    let mut order: Vec<u64> = (0..count as u64).collect();
    shuffle(&mut order, &mut random);
    let (mut admitted, mut runs_us) = (Vec::new(), Vec::new());
    for (index, thread) in threads.iter().take(count).enumerate() {
        // CPUs 1 to 3 are there. Many are bound to the same one.
        let bits = match random.below(3) {
            0 => 1 + random.below((1 << cpus) - 1),
            1 => 0b10,
            _ => (1 << cpus) - 1,
        };
        // Long enough for a task that is forgotten to wait for longer than the window.
        let run_us = 200 + random.below(6_000);
        runs_us.push(run_us);
        let rank = order[index];
        let reservation = Reservation {
            thread: thread.id,
            cpus: CpuSet::from_bits(bits << 1),
            cost: Span::from_us(run_us + 500),
            period: Span::from_ns(PERIOD_NS),
            deadline: Span::from_us(20_000 + 100 * rank),
            on_overrun: OnOverrun::Continue,
            priority: Priority::new(1 + rank as u32).ok_or("no priority")?,
        };
        stage.must_admit(index, &reservation)?;
        admitted.push(reservation);
    }
    let begin = now_ns() + 2_000_000;
    let mut wakes: Vec<u64> = (0..count as u64).collect();
    shuffle(&mut wakes, &mut random);
    for ((thread, after_us), run_us) in threads.iter().zip(&wakes).zip(runs_us) {
        thread.does(&Jobs {
            first_ns: begin + after_us * (500 + random.below(1_000)),
            period_ns: PERIOD_NS,
            count: ROUNDS,
            run_us,
            locked_us: 0,
        });
    }
    disturb(begin, stage, &admitted, &mut random)?;
    sleep_until(begin + ROUNDS * PERIOD_NS);
    let begin = stage.records_since(mark)?.len().saturating_sub(200);
    let longest = stage.standing.take_reaction_max();
    for index in 0..count {
        stage.dismiss(index)?;
    }
    if longest.as_ns() <= WINDOW_NS {
        return Ok(longest.as_ns());
    }
    let last = &stage.records[mark + begin..];
    Err(format!("{longest}: {last:#?}\n{admitted:?}"))
}

/// At some of the releases, parameters and affinities change, too.
fn disturb(
    begin: u64,
    stage: &mut Stage,
    admitted: &[Reservation],
    random: &mut RandomStream,
) -> Result<(), String> {
    for round in 0..ROUNDS {
        if random.below(2) == 0 {
            continue;
        }
        let index = random.below(admitted.len() as u64) as usize;
        sleep_until(begin + round * PERIOD_NS + random.below(3_000));
        let of = &admitted[index];
        let task = TaskId::from_index(index);
        let done = match random.below(2) {
            0 => stage.standing.change(task, of),
            // All of the CPUs: wider, so it takes effect at once.
            _ => stage.standing.bind(of.thread, &CpuSet::from_bits(0b1110)),
        };
        done.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn shuffle(items: &mut [u64], random: &mut RandomStream) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at as u64 + 1) as usize);
    }
}
