//! The scheduler that stays loaded while tasks come and go: threads of this very process are its tasks, or of another
//! process that holds it.

pub mod beside_kernel;
pub mod coinciding;
pub mod cpus;
pub mod excess;
pub mod groups;
pub mod holder;
pub mod inheritance;
pub mod observed;
pub mod ordinary;
pub mod periodic;
pub mod stage;
pub mod worker;

use std::fs;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shiftwork_live::standing::Reservation;
use shiftwork_live::{Class, LiveError, set_class};
use shiftwork_model::{Affinity, CpuSet, NotReadyReason, OnOverrun, Record, RecordKind, Span};

use crate::faults::goes_on;
use stage::{
    ALL, Stage, completes, enters, is_demoted, is_spent, leaves, runs, task, task_of, wish,
};
use worker::{Doing, Worker};

/// The records of threads of this process say that they nap, yield, overrun and end.
pub fn standing_scheduler_reports_what_its_threads_do() -> Result<(), String> {
    let mut stage = Stage::load()?;
    let [mut naps, yields, hogs, warned] =
        [Doing::Naps, Doing::Yields, Doing::Hogs, Doing::Naps].map(Worker::start);
    for (index, worker) in [&naps, &yields, &hogs].into_iter().enumerate() {
        stage.must_admit(index, &wish(worker, 0b0110))?;
    }
    let little = Reservation {
        cost: Span::from_us(100),
        on_overrun: OnOverrun::Signal,
        ..wish(&warned, 0b1000)
    };
    stage.must_admit(3, &little)?;
    stage.hear(0, 0, enters)?;
    stage.hear(0, 0, |kind| is_bound(kind, 0b0110))?;
    let is_release = |kind: &RecordKind| matches!(kind, RecordKind::Released { .. });
    let is_ready = |kind: &RecordKind| matches!(kind, RecordKind::Ready { .. });
    let woken = stage.hear(0, 0, is_release)?;
    let ready = stage.hear(0, 0, is_ready)?;
    // A new server: its deadline begins where it wakes up.
    let due = woken.at + Span::from_ms(20);
    if !matches!(ready.kind, RecordKind::Ready { deadline, .. } if deadline == due) {
        return Err(format!("{woken:?}, then {ready:?}"));
    }
    let stops = |kind: &RecordKind| matches!(kind, RecordKind::Switched { to: None, .. });
    for is in [runs, completes, stops] {
        stage.hear(0, 0, is)?;
    }
    for index in [1, 2] {
        stage.hear(0, index, |kind| {
            matches!(kind, RecordKind::Replenished { .. })
        })?;
    }
    stage.hear(0, 1, completes)?;
    stage.hear(0, 2, is_spent)?;
    stage.hear(0, 2, is_throttled)?;
    // It is warned of each job, which ends as ordinary work.
    for _ in 0..3 {
        let mark = stage.mark()?;
        stage.hear(mark, 3, is_spent)?;
        stage.hear(mark, 3, is_throttled)?;
        stage.hear(mark, 3, completes)?;
    }
    let more = Reservation {
        cost: Span::from_ms(5),
        ..wish(&hogs, 0b0110)
    };
    let mark = stage.mark()?;
    let changed = stage.standing.change(task(2), &more);
    changed.map_err(|error| error.to_string())?;
    let (has_priority, has_cost) = (more.priority, more.cost);
    stage.hear(
        mark,
        2,
        |kind| matches!(kind, RecordKind::PrioritySet { priority, .. } if *priority == has_priority),
    )?;
    stage.hear(
        mark,
        2,
        |kind| matches!(kind, RecordKind::AttributesSet { cost, .. } if *cost == has_cost),
    )?;
    naps.end();
    stage.hear(0, 0, leaves)?;
    stage.end()
}

/// A thread that waits by `poll(2)` is woken when a task has left, asks for other CPUs or has
/// overrun, and for no other event.
pub fn standing_scheduler_wakes_the_reader_of_its_events() -> Result<(), String> {
    let mut stage = Stage::load()?;
    let [mut ends, asks, overruns, naps] = [Doing::Naps; 4].map(Worker::start);
    for (index, worker) in [&ends, &asks, &naps].into_iter().enumerate() {
        stage.must_admit(index, &wish(worker, 0b0110))?;
    }
    stage.hear(0, 2, runs)?;
    let quiet = (0..10)
        .filter(|_| stage.take().is_ok() && !is_woken(&stage, Duration::from_millis(50)))
        .count();
    println!("of 10 times with events of naps only, poll timed out {quiet} times");
    if quiet < 5 {
        return Err(format!("poll timed out only {quiet} times of 10"));
    }
    stage.take()?;
    ends.end();
    hears(&mut stage, 0, &leaves)?;
    asks.binds_itself(0b1000);
    hears(&mut stage, 1, &is_demoted)?;
    let little = Reservation {
        cost: Span::from_us(100),
        on_overrun: OnOverrun::Continue,
        ..wish(&overruns, 0b0110)
    };
    stage.must_admit(3, &little)?;
    stage.dismiss(3)?;
    let warned = Reservation {
        on_overrun: OnOverrun::Signal,
        ..little
    };
    stage.must_admit(3, &warned)?;
    hears(&mut stage, 3, &is_spent)?;
    stage.end()
}

/// Whether the machine says within this time that there is something to act upon.
fn is_woken(stage: &Stage, within: Duration) -> bool {
    let limit = Timespec::try_from(within).unwrap();
    let mut descriptors = [PollFd::new(&stage.standing, PollFlags::IN)];
    poll(&mut descriptors, Some(&limit)).unwrap() > 0
}

/// Waits by `poll(2)` until there is such a record of the task. It takes longer than a second only
/// if no event wakes this thread.
fn hears(stage: &mut Stage, index: usize, is: &dyn Fn(&RecordKind) -> bool) -> Result<(), String> {
    const SECONDS: u64 = 20;
    loop {
        if !is_woken(stage, Duration::from_secs(SECONDS)) {
            return Err(format!("poll timed out after {SECONDS} s"));
        }
        let of_task = |it: &&Record| task_of(&it.kind) == Some(task(index));
        let mut records = stage.take()?.iter().filter(of_task);
        if records.any(|it| is(&it.kind)) {
            return Ok(());
        }
    }
}

/// The records of a task with a reused number are about its own thread alone, whatever the earlier
/// threads do.
pub fn number_of_a_departed_task_is_used_again() -> Result<(), String> {
    const NUMBER: usize = 5;
    let mut stage = Stage::load()?;
    let (mut first, second) = (Worker::start(Doing::Hogs), Worker::start(Doing::Naps));
    stage.must_admit(NUMBER, &wish(&first, 0b0010))?;
    stage.hear(0, NUMBER, runs)?;
    stage.dismiss(NUMBER)?;
    // Where CPUs stand still while they seem to compute it overruns, and only the first may be
    // throttled in the records. Six naps of a period take 1.9 ms to 2.1 ms.
    let unlimited = Reservation {
        cost: Span::from_ms(4),
        on_overrun: OnOverrun::Continue,
        ..wish(&second, 0b0100)
    };
    stage.must_admit(NUMBER, &unlimited)?;
    let mark = stage.mark()?;
    // It goes on in the background, asks for other CPUs, and ends.
    goes_on(first.number(), 20)?;
    first.binds_itself(0b1000);
    goes_on(first.number(), 20)?;
    first.end();
    stage.hear(mark, NUMBER, completes)?;
    let mark = stage.mark()?;
    stage.hear(mark, NUMBER, completes)?;
    let of_first = |kind: &RecordKind| {
        matches!(
            kind,
            RecordKind::Left { .. }
                | RecordKind::Demoted { .. }
                | RecordKind::AffinitySet { .. }
                | RecordKind::BudgetSpent { .. }
        )
    };
    let begin = stage.records.iter();
    let begin = begin.rev().position(|it| enters(&it.kind)).unwrap();
    // Its reservation is said where it enters.
    let is_first = |it: &Record| matches!(it.kind, RecordKind::Released { .. });
    let begin = stage.records.len() - begin;
    let first = stage.records[begin..].iter().position(is_first);
    let begin = begin + first.unwrap_or(0);
    if stage.count(begin, NUMBER, of_first) > 0 {
        return Err(format!(
            "the second is not alone: {:?}",
            &stage.records[begin..]
        ));
    }
    if stage.records[begin..].iter().any(|it| is_on(&it.kind, 1)) {
        return Err(String::from("the second was on a CPU of the first"));
    }
    they_take_turns(&mut stage, NUMBER, &second)?;
    stage.end()
}

/// However late events are taken, and however few at a time: records say what was reserved when they happened, not what is by now.
pub fn records_of_a_backlog_say_what_was_reserved_then() -> Result<(), String> {
    const NUMBER: usize = 5;
    let mut stage = Stage::load()?;
    let [one, other] = [Doing::Naps; 2].map(Worker::start);
    let of_period = |worker: &Worker, ms: u64| Reservation {
        period: Span::from_ms(ms),
        deadline: Span::from_ms(ms),
        on_overrun: OnOverrun::Continue,
        ..wish(worker, 0b0010)
    };
    stage.must_admit(NUMBER, &of_period(&one, 20))?;
    goes_on(one.number(), 20)?;
    stage.dismiss(NUMBER)?;
    stage.must_admit(NUMBER, &of_period(&other, 40))?;
    goes_on(other.number(), 20)?;
    let changed = stage.standing.change(task(NUMBER), &of_period(&other, 60));
    changed.map_err(|error| error.to_string())?;
    goes_on(other.number(), 20)?;
    let mut takes = 0;
    while takes == 0 || stage.standing.has_more_records() {
        let records = stage.standing.take_records(8);
        stage
            .records
            .extend(records.map_err(|error| error.to_string())?);
        takes += 1;
    }
    let (mut periods, mut now) = (Vec::new(), Span::ZERO);
    for record in &stage.records {
        match record.kind {
            RecordKind::AttributesSet { period, .. } => {
                periods.push(period);
                now = period;
            }
            RecordKind::Released { deadline, .. } if deadline.since(record.at) != Some(now) => {
                return Err(format!("{now} is the period: {record:?}"));
            }
            _ => {}
        }
    }
    println!("{takes} times 8 events: periods of {periods:?}");
    match periods == [20, 40, 60].map(Span::from_ms) && takes > 10 {
        true => stage.end(),
        false => Err(format!("{:?}", stage.records)),
    }
}

/// A thread that computes on the very CPU that it is admitted to is recorded as running at once,
/// and has its budget and no more.
pub fn thread_admitted_while_it_runs_has_its_budget_at_once() -> Result<(), String> {
    /// Another thread naps every 3 ms, so its naps measure how long it took.
    const NAPS_MAX: usize = 300;
    let mut stage = Stage::load()?;
    let [naps, hogs] = [Doing::Naps, Doing::Hogs].map(Worker::start);
    stage.must_admit(0, &wish(&naps, 0b0010))?;
    for round in 0..5 {
        let bound = stage.standing.bind(hogs.id, &CpuSet::from_bits(0b0100));
        bound.map_err(|error| error.to_string())?;
        goes_on(hogs.number(), 20)?;
        let mark = stage.mark()?;
        stage.must_admit(1, &wish(&hogs, 0b0100))?;
        stage.hear(mark, 1, runs)?;
        stage.hear(mark, 1, is_spent)?;
        let naps = stage.count(mark, 0, completes);
        println!("round {round}: {naps} naps until its budget was spent");
        if naps > NAPS_MAX {
            return Err(String::from("it was not taken in for that long"));
        }
        stage.dismiss(1)?;
    }
    stage.end()
}

/// Two threads have the number in turns, a hog among them; and no thread has two.
fn they_take_turns(stage: &mut Stage, number: usize, naps: &Worker) -> Result<(), String> {
    const ROUNDS: usize = 40;
    let mark = stage.mark()?;
    let hogs = Worker::start(Doing::Hogs);
    for round in 0..ROUNDS {
        stage.dismiss(number)?;
        let next = if round % 2 == 0 { &hogs } else { naps };
        let begin = stage.mark()?;
        stage.must_admit(number, &wish(next, ALL))?;
        if round % 3 == 0 {
            stage.hear(begin, number, runs)?;
        }
        let twice = stage.standing.admit(task(number + 1), &wish(next, ALL));
        match twice {
            Err(LiveError::Reservation(why)) if why.contains("another number already") => {}
            other => return Err(format!("one thread is two tasks: {other:?}")),
        }
    }
    stage.is_sound()?;
    let lives: Vec<bool> = stage.records[mark..]
        .iter()
        .filter(|it| leaves(&it.kind) || enters(&it.kind))
        .map(|it| leaves(&it.kind))
        .collect();
    // The thread that had the number before leaves first.
    let expected: Vec<bool> = (0..2 * ROUNDS).map(|step| step % 2 == 0).collect();
    match lives == expected {
        true => Ok(()),
        false => Err(format!("left (true) and entered: {lives:?}")),
    }
}

/// A task that has overdrawn its budget is throttled, and for no longer than the kernel's watchdog permits however much it has
/// overdrawn: where instructions are counted that is once or twice, on a machine that stands still for a moment many times.
pub fn overdrawn_budget_throttles_for_a_bounded_time() -> Result<(), String> {
    // Dropped last: under so small a budget its end would take minutes.
    let hogs = Worker::start(Doing::Hogs);
    let mut stage = Stage::load()?;
    let little = Reservation {
        cost: Span::from_us(1),
        period: Span::from_ms(500),
        deadline: Span::from_ms(500),
        ..wish(&hogs, ALL)
    };
    stage.must_admit(0, &little)?;
    let spent = stage.hear(0, 0, is_spent)?;
    let again = stage.hear(0, 0, |kind| matches!(kind, RecordKind::Replenished { .. }))?;
    let RecordKind::Replenished { deadline, .. } = again.kind else {
        return Err(format!("{again:?}"));
    };
    let ahead = deadline.late_since(spent.at);
    println!("what it ran for is made good in {ahead}");
    match ahead > little.period && ahead <= Span::from_s(26) {
        true => stage.end(),
        false => Err(format!("{spent:?}, then {again:?}: {ahead}")),
    }
}

/// If the thread of a task becomes a SCHED_FIFO one, the task is blocked until it is an ordinary
/// thread again, and then has its reservation as before; so is one that is admitted meanwhile. One
/// that ends meanwhile has left.
pub fn thread_that_returns_from_a_higher_class_keeps_its_part() -> Result<(), String> {
    const ROUNDS: usize = 20;
    let mut stage = Stage::load()?;
    let (mut naps, hogs) = (Worker::start(Doing::Naps), Worker::start(Doing::Hogs));
    stage.must_admit(0, &wish(&naps, 0b0110))?;
    stage.must_admit(1, &wish(&hogs, 0b0110))?;
    let set = |worker: &Worker, class: Class| {
        set_class(Some(worker.id), class).map_err(|error| error.to_string())
    };
    for _ in 0..ROUNDS {
        for (index, worker) in [&naps, &hogs].into_iter().enumerate() {
            stage.hear(stage.records.len(), index, runs)?;
            set(worker, Class::Fifo(10))?;
            let mark = stage.mark()?;
            goes_on(worker.number(), 3)?;
            if stage.count(mark, index, runs) > 0 {
                return Err(format!("task {index} runs as one of ours in another class"));
            }
            set(worker, Class::Ordinary)?;
            stage.hear(mark, index, runs)?;
        }
    }
    if stage.count(0, 0, leaves) > 0 {
        return Err(String::from("a task has left that only changed its class"));
    }
    stage.dismiss(1)?;
    set(&hogs, Class::Fifo(10))?;
    let mark = stage.mark()?;
    stage.must_admit(1, &wish(&hogs, 0b0110))?;
    set(&hogs, Class::Ordinary)?;
    stage.hear(mark, 1, is_spent)?;
    set(&naps, Class::Fifo(10))?;
    naps.end();
    stage.hear(mark, 0, leaves)?;
    stage.end()
}

/// A job of a task begins to run there.
fn is_on(kind: &RecordKind, index: usize) -> bool {
    runs(kind) && matches!(kind, RecordKind::Switched { cpu, .. } if cpu.index() == index)
}

fn is_bound(kind: &RecordKind, cpus: u64) -> bool {
    let wanted = Affinity::new(CpuSet::from_bits(cpus));
    matches!(kind, RecordKind::AffinitySet { affinity, .. } if Some(**affinity) == wanted)
}

const fn is_throttled(kind: &RecordKind) -> bool {
    matches!(
        kind,
        RecordKind::NotReady {
            reason: NotReadyReason::Throttled,
            ..
        }
    )
}

/// Threads enter and leave by dismissal or by their end, and nothing of them stays.
pub fn threads_enter_and_leave_two_hundred_times() -> Result<(), String> {
    const ROUNDS: usize = 200;
    let mut stage = Stage::load()?;
    let stays = Worker::start(Doing::Naps);
    stage.must_admit(0, &wish(&stays, ALL))?;
    let mut open = None;
    for round in 0..ROUNDS {
        let number = 1 + round % 3;
        let doing = [Doing::Naps, Doing::Hogs, Doing::Yields][round % 3];
        let mut worker = Worker::start(doing);
        let mark = stage.mark()?;
        stage.must_admit(number, &wish(&worker, ALL))?;
        match round % 4 {
            0 => stage.dismiss(number)?,
            1 => {
                stage.hear(mark, number, runs)?;
                stage.dismiss(number)?;
                goes_on(worker.number(), 1)?;
            }
            // In the middle of whatever it does.
            2 => worker.end(),
            _ => {
                stage.hear(mark, number, runs)?;
                worker.end();
            }
        }
        stage.hear(mark, number, leaves)?;
        worker.end();
        if round == 20 {
            stage.is_sound()?;
            open = Some(descriptors());
        }
    }
    let lives = |is: &dyn Fn(&RecordKind) -> bool| {
        (1..4)
            .map(|number| stage.count(0, number, is))
            .sum::<usize>()
    };
    let came = lives(&enters);
    let went = lives(&leaves);
    if (came, went) != (ROUNDS, ROUNDS) {
        return Err(format!("{came} came and {went} went in {ROUNDS} rounds"));
    }
    if open != Some(descriptors()) {
        return Err(format!(
            "{open:?} descriptors were open, and {} are",
            descriptors()
        ));
    }
    let mark = stage.mark()?;
    stage.hear(mark, 0, runs)?;
    stage.end()
}

/// How many descriptors this process has open.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}
