//! Reserved threads that compute for longer than their budget: at the expense of no other.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use shiftwork_live::standing::Reservation;
use shiftwork_model::{CpuSet, OnOverrun, Record, RecordKind, Span};

use super::stage::{Stage, completes, is_demoted, is_spent, runs, task, wish, wish_of};
use super::worker::{Doing, Worker};
use crate::faults::{Actor, goes_on, processor_time};
use crate::kernel::is_realtime;

/// The only CPU of the threads that compete.
const ONE: u64 = 0b0010;

/// The least that is reserved, due at once: it is the most urgent whenever it has a budget.
fn little(of: Pid, on_overrun: OnOverrun) -> Reservation {
    Reservation {
        cost: Span::from_us(50),
        period: Span::from_ms(10),
        deadline: Span::from_us(200),
        on_overrun,
        ..wish_of(of, ONE)
    }
}

/// A thread that computes all the time has what is reserved for it, and for the rest of its period shares the CPU with ordinary
/// work, or waits. A job of another task is delayed by no more than the reserved part.
pub fn overrun_is_ordinary_work_or_waits() -> Result<(), String> {
    const LASTS: Duration = Duration::from_millis(400);
    let (least, throttled) = match is_realtime()? {
        true => (0.25, 0.12),
        false => (0.35, 0.03),
    };
    let shares = [
        // In each period it loses what is left of its turn.
        (OnOverrun::Continue, least..0.65),
        (OnOverrun::Signal, least..0.65),
        // Until it is stopped at the return to user mode it is ordinary work.
        (OnOverrun::Throttle, 0.0..throttled),
    ];
    for (on_overrun, wanted) in shares {
        let mut stage = Stage::load()?;
        let [hogs, ordinary] = [(); 2].map(|()| Worker::start(Doing::Hogs));
        let naps = Worker::start(Doing::Naps);
        let bound = stage.standing.bind(ordinary.id, &CpuSet::from_bits(ONE));
        bound.map_err(|error| error.to_string())?;
        stage.must_admit(0, &little(hogs.id, on_overrun))?;
        stage.must_admit(1, &wish(&naps, ONE))?;
        stage.hear(0, 0, is_spent)?;
        stage.hear(0, 1, runs)?;
        let mark = stage.mark()?;
        let time = || {
            let time = |of: &Worker| processor_time(of.number()).ok_or("a thread is gone");
            Ok::<_, String>([time(&hogs)?, time(&ordinary)?])
        };
        let before = time()?;
        std::thread::sleep(LASTS);
        let after = time()?;
        let [own, others] = [0, 1].map(|index| (after[index] - before[index]).as_secs_f64());
        let share = own / (own + others);
        stage.take()?;
        let naps = stage.count(mark, 1, completes);
        println!("{on_overrun:?}: {share:.3} of the rest, {naps} naps");
        // It computes for 300 us and sleeps for 3 ms.
        let expected = usize::try_from(LASTS.as_micros() / 3_300).unwrap_or(usize::MAX);
        if !wanted.contains(&share) || naps < expected * 3 / 4 {
            return Err(format!(
                "{on_overrun:?}: a share of {share:.3}, wanted {wanted:?}; {naps} naps of {expected}"
            ));
        }
        stage.end()?;
    }
    Ok(())
}

/// A thread that asks for other CPUs again and again, and is admitted to them each time, has one budget in a period all the same.
pub fn regained_reservation_has_no_new_budget() -> Result<(), String> {
    const ROUNDS: usize = 10;
    let mut stage = Stage::load()?;
    let hogs = Worker::start(Doing::Hogs);
    // A period that is longer than all rounds take.
    let mut wanted = Reservation {
        period: Span::from_ms(500),
        deadline: Span::from_ms(500),
        ..wish(&hogs, 0b0010)
    };
    stage.must_admit(0, &wanted)?;
    let spent = stage.hear(0, 0, is_spent)?;
    let begin = stage.mark()?;
    for round in 0..ROUNDS {
        wanted.cpus = CpuSet::from_bits([0b0100, 0b0010][round % 2]);
        let mark = stage.mark()?;
        let bound = stage.standing.bind(hogs.id, &wanted.cpus);
        bound.map_err(|error| error.to_string())?;
        stage.hear(mark, 0, is_demoted)?;
        let mark = stage.mark()?;
        let admitted = stage.standing.admit(task(0), &wanted);
        if !matches!(admitted, Ok(true)) {
            return Err(format!("round {round}: {admitted:?}"));
        }
        stage.hear(mark, 0, is_spent)?;
    }
    let records = stage.records_since(begin)?;
    let ran = time_of_task(records);
    let lasted = records.last().and_then(|last| last.at.since(spent.at));
    println!("{ran} in {ROUNDS} rounds, which took {lasted:?}");
    if lasted.is_none_or(|lasted| lasted >= wanted.period - wanted.cost) {
        return Err(format!("the rounds took {lasted:?}, not within a period"));
    }
    if ran >= wanted.cost {
        return Err(format!("it ran for {ran} beyond its budget"));
    }
    stage.end()
}

/// For how long the only task there is runs by these records.
fn time_of_task(records: &[Record]) -> Span {
    let (mut ran, mut since) = (Span::ZERO, None);
    for record in records {
        match record.kind {
            RecordKind::Switched { to: Some(_), .. } => since = Some(record.at),
            RecordKind::Switched { to: None, .. } => {
                let stretch = since.take().and_then(|since| record.at.since(since));
                ran += stretch.unwrap_or(Span::ZERO);
            }
            _ => {}
        }
    }
    ran
}

/// How long it takes, by the guest's clock.
#[allow(clippy::disallowed_methods, reason = "what takes long is the fault")]
pub fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let result = what();
    (result, began.elapsed())
}

/// Threads that are throttled for 10 s while they rename files hold no lock of the file system: others rename there at once.
pub fn throttled_threads_hold_no_lock_of_the_kernel() -> Result<(), String> {
    const RENAMES: u32 = 40;
    let folder = std::env::temp_dir().join("renames");
    let [one, other] = ["one", "other"].map(|name| folder.join(name));
    for made in [&one, &other] {
        fs::create_dir_all(made).map_err(|error| format!("{}: {error}", made.display()))?;
    }
    let mut stage = Stage::load()?;
    let rename = |name: &str, there: bool| {
        let (from, to) = if there {
            (&one, &other)
        } else {
            (&other, &one)
        };
        fs::rename(from.join(name), to.join(name)).map_err(|error| error.to_string())
    };
    let threads: Vec<Worker> = (0..6)
        .map(|index| {
            let name = format!("file-{index}");
            fs::write(one.join(&name), "").map_err(|error| error.to_string())?;
            Ok(Worker::renames([one.join(&name), other.join(&name)]))
        })
        .collect::<Result<_, String>>()?;
    for (index, thread) in threads.iter().enumerate() {
        let cpus = [0b0010, 0b0100, 0b1000][index % 3];
        let reserved = Reservation {
            cost: Span::from_us(50),
            period: Span::from_s(10),
            deadline: Span::from_s(10),
            ..wish(thread, cpus)
        };
        stage.must_admit(index, &reserved)?;
        stage.hear(0, index, is_spent)?;
    }
    fs::write(one.join("own"), "").map_err(|error| error.to_string())?;
    let mut longest = Duration::ZERO;
    for round in 0..RENAMES {
        let (renamed, took) = timed(|| rename("own", round % 2 == 0));
        renamed?;
        longest = longest.max(took);
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("of {RENAMES} renames the longest took {longest:?}");
    if longest > Duration::from_millis(100) {
        return Err(format!("a rename took {longest:?}"));
    }
    // So that they end at once.
    (0..threads.len()).try_for_each(|index| stage.dismiss(index))?;
    drop(threads);
    stage.end()
}

/// A process that waits throttled for 10 s ends at once when it is killed.
pub fn throttled_process_can_be_killed() -> Result<(), String> {
    let mut stage = Stage::load()?;
    let hogs = Actor::start("hog")?;
    goes_on(hogs.id(), 5)?;
    let thread = i32::try_from(hogs.id()).ok().and_then(Pid::from_raw);
    let reserved = Reservation {
        period: Span::from_s(10),
        ..little(thread.ok_or("no such process")?, OnOverrun::Throttle)
    };
    stage.must_admit(0, &reserved)?;
    stage.hear(0, 0, is_spent)?;
    // By now it has left the kernel.
    std::thread::sleep(Duration::from_millis(20));
    let waited = processor_time(hogs.id()).ok_or("it is gone")?;
    std::thread::sleep(Duration::from_millis(50));
    let computed = processor_time(hogs.id()).ok_or("it is gone")? - waited;
    if !computed.is_zero() {
        return Err(format!("it is throttled, and computed for {computed:?}"));
    }
    let ((), took) = timed(|| drop(hogs));
    println!("it ended in {took:?}");
    match took < Duration::from_secs(1) {
        true => stage.end(),
        false => Err(format!("it ended in {took:?}")),
    }
}
