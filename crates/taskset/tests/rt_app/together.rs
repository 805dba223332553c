//! Generated files of threads that wake each other and share mutexes: what is imported is what rt-app would
//! do with the threads that are imported.

use std::collections::BTreeMap;

use shiftwork_model::{Join, RandomStream};
use shiftwork_taskset::import::{Imported, rt_app};
use shiftwork_taskset::{read, write};

use super::interpreter::{Busy, Event, Open, Phase, Run, Thread, interpret};
use super::model::execute;
use super::text::file_text;

/// µs.
const HORIZON: i64 = 80_000;

/// In how many more orders a file is executed, to see whether what it does depends on the order.
const ORDERS: usize = 8;

/// The same where it is not what is imported.
const ORDERS_BEFORE_FAILURE: usize = 500;

/// How a thread waits for others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Waits {
    Suspends,
    /// Locks a mutex, waits at a condition, and unlocks it.
    AtCondition,
    Syncs,
    /// The same with a mutex that it has locked.
    SyncsLocked,
    AtSemaphore,
    AtTwoSemaphores,
}

/// A thread that waits: how, and for what.
#[derive(Clone, Debug)]
struct Waiter {
    waits: Waits,
    name: String,
}

impl Waiter {
    fn events(&self) -> Vec<Event> {
        let name = self.name.clone();
        let mutex = format!("m-{name}");
        match self.waits {
            Waits::Suspends => vec![Event::Suspend(name)],
            Waits::AtCondition => {
                let (lock, unlock) = (Event::Lock(mutex.clone()), Event::Unlock(mutex.clone()));
                let condition = name;
                vec![lock, Event::Wait { condition, mutex }, unlock]
            }
            Waits::Syncs => {
                let condition = name;
                vec![Event::Sync { condition, mutex }]
            }
            Waits::SyncsLocked => {
                let (lock, unlock) = (Event::Lock(mutex.clone()), Event::Unlock(mutex.clone()));
                let condition = name;
                vec![lock, Event::Sync { condition, mutex }, unlock]
            }
            Waits::AtSemaphore => vec![Event::Take(name)],
            Waits::AtTwoSemaphores => {
                vec![
                    Event::Take(format!("{name}-b")),
                    Event::Take(format!("{name}-a")),
                ]
            }
        }
    }

    /// What wakes it, by a thread of this number.
    fn woken_by(&self, stream: &mut RandomStream, number: usize) -> Vec<Event> {
        let name = self.name.clone();
        match self.waits {
            Waits::Suspends => vec![Event::Resume(name)],
            Waits::AtSemaphore => vec![Event::Post(name)],
            Waits::AtTwoSemaphores if number.is_multiple_of(2) => {
                vec![Event::Post(format!("{name}-a"))]
            }
            Waits::AtTwoSemaphores => vec![Event::Post(format!("{name}-b"))],
            Waits::AtCondition | Waits::Syncs | Waits::SyncsLocked => {
                let wake = match stream.below(2) {
                    0 => Event::Signal(name),
                    _ => Event::Broadcast(name),
                };
                let mutex = format!("m-{}", self.name);
                match stream.below(3) {
                    0 => vec![wake],
                    1 => vec![Event::Lock(mutex.clone()), wake, Event::Unlock(mutex)],
                    _ => vec![
                        Event::Lock(mutex.clone()),
                        run(stream),
                        wake,
                        Event::Unlock(mutex),
                    ],
                }
            }
        }
    }
}

fn run(stream: &mut RandomStream) -> Event {
    Event::Run(1 + stream.below(900) as i64)
}

/// What a thread of this number does beside its wait or its timer.
fn body(stream: &mut RandomStream, number: usize, waiters: &[(usize, Waiter)]) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..1 + stream.below(3) {
        match stream.below(12) {
            0..=3 => events.push(run(stream)),
            4 => events.push(Event::Sleep(1 + stream.below(500) as i64)),
            5 => {
                let mutex = ["m0", "m1"][stream.below(2) as usize].to_string();
                events.extend([
                    Event::Lock(mutex.clone()),
                    run(stream),
                    Event::Unlock(mutex),
                ]);
            }
            6 => {
                // Nested, and now and then in two orders.
                let (outer, inner) = match stream.below(6) {
                    0 => ("m1", "m0"),
                    _ => ("m0", "m1"),
                };
                let lock = |mutex: &str| Event::Lock(mutex.to_string());
                let unlock = |mutex: &str| Event::Unlock(mutex.to_string());
                events.extend([lock(outer), run(stream), lock(inner), run(stream)]);
                events.extend([unlock(outer), unlock(inner)]);
            }
            _ => {
                let others = waiters.iter().filter(|(of, _)| match stream.below(25) {
                    0 => true,
                    _ => *of > number,
                });
                let others: Vec<&(usize, Waiter)> = others.collect();
                if !others.is_empty() {
                    let (_, waiter) = others[stream.below(others.len() as u64) as usize];
                    events.extend(waiter.woken_by(stream, number));
                }
            }
        }
    }
    if stream.below(60) == 0 {
        events.push(Event::Nothing(r#""barrier": "all""#.to_string()));
    }
    events
}

fn phase(events: Vec<Event>) -> Phase {
    let rounds = None;
    Phase { rounds, events }
}

fn timed(stream: &mut RandomStream, number: usize, waiters: &[(usize, Waiter)]) -> Thread {
    let mut events = body(stream, number, waiters);
    match stream.below(10) {
        0 => events.push(Event::Sleep(1_000 + stream.below(3_000) as i64)),
        _ => {
            if let Some(Event::Sleep(_)) = events.last() {
                events.push(run(stream));
            }
            events.push(Event::Timer {
                name: "unique".to_string(),
                period: 3_000 + stream.below(5_000) as i64,
                absolute: stream.below(8) > 0,
            });
        }
    }
    Thread {
        delay: 1 + stream.below(2_000) as i64,
        instances: if stream.below(12) == 0 { 2 } else { 1 },
        phases: vec![phase(events)],
        ..Thread::default()
    }
}

fn waiting(
    stream: &mut RandomStream,
    number: usize,
    waiter: &Waiter,
    waiters: &[(usize, Waiter)],
) -> Thread {
    let round = |stream: &mut RandomStream| {
        let mut events = waiter.events();
        let rest = body(stream, number, waiters);
        match stream.below(5) {
            0 => events.splice(0..0, rest),
            _ => events.splice(events.len().., rest),
        };
        events
    };
    let mut thread = Thread {
        delay: if stream.below(10) == 0 { 700 } else { 0 },
        instances: if stream.below(10) == 0 { 2 } else { 1 },
        phases: vec![phase(round(stream))],
        ..Thread::default()
    };
    if stream.below(5) == 0 {
        thread.has_phases = true;
        let mut second = waiter.events();
        second.push(run(stream));
        thread.phases = vec![phase(second), phase(round(stream))];
        thread.phases[0].rounds = Some(1 + stream.below(3) as i64);
        thread.rounds = (stream.below(4) == 0).then_some(3);
    }
    thread
}

fn file(stream: &mut RandomStream) -> Vec<Thread> {
    let by_time = 1 + stream.below(2) as usize;
    let all = by_time + 1 + stream.below(3) as usize;
    let mut waiters: Vec<(usize, Waiter)> = (by_time..all)
        .map(|number| {
            let waits = [
                Waits::Suspends,
                Waits::Suspends,
                Waits::AtCondition,
                Waits::Syncs,
                Waits::SyncsLocked,
                Waits::AtSemaphore,
                Waits::AtTwoSemaphores,
            ];
            let waits = waits[stream.below(waits.len() as u64) as usize];
            let name = format!("t{number}");
            (number, Waiter { waits, name })
        })
        .collect();
    // Now and then two wait for the same.
    if waiters.len() > 1 && stream.below(8) == 0 {
        waiters[1].1 = waiters[0].1.clone();
    }
    let mut threads: Vec<Thread> = (0..all)
        .map(|number| match number.checked_sub(by_time) {
            None => timed(stream, number, &waiters),
            Some(place) => waiting(stream, number, &waiters[place].1, &waiters),
        })
        .collect();
    let mut priorities: Vec<i64> = (1..=all as i64).collect();
    for (number, thread) in threads.iter_mut().enumerate() {
        thread.name = format!("t{number}");
        let place = stream.below(priorities.len() as u64) as usize;
        thread.priority = priorities.swap_remove(place);
    }
    threads
}

/// How many files had what.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    fn add(&mut self, what: &'static str, is_so: bool) {
        *self.0.entry(what).or_default() += u64::from(is_so);
    }
}

/// The threads that are imported, as the importer says that it reads them; `None` if it says that a task
/// is not like its thread in ways that are not compared here.
fn as_read(threads: &[Thread], imported: &Imported) -> Option<Vec<Thread>> {
    let lines = &imported.left_out;
    let said = |thread: &Thread, what: &str| {
        let of = format!("task `{}`: ", thread.name);
        let mut lines = lines.iter();
        lines.any(|line| line.starts_with(&of) && line.contains(what))
    };
    let waits_for_mutexes = !imported.set.resources.is_empty();
    let mut read = Vec::new();
    for thread in threads {
        if said(thread, "not imported") {
            continue;
        }
        // What is late since it waited for a mutex is not compared where the distance to the next job depends on it.
        let depends_on_mutexes = said(thread, "it has no timer")
            || lines.iter().any(|line| line.starts_with("relative timers"));
        // A thread that waits twice in a row may be woken twice at one instant, a job that takes 1ns is lost then.
        let waits_in_a_row = thread.has_phases && said(thread, "jobs that do not compute");
        if said(thread, "first job") || waits_in_a_row || (waits_for_mutexes && depends_on_mutexes)
        {
            return None;
        }
        let mut thread = thread.clone();
        let waits = said(&thread, "before its first") || said(&thread, "`delay`");
        thread.waits_from_start = waits;
        thread.goes_on = said(&thread, "`loop`");
        read.push(thread);
    }
    Some(read)
}

/// What the thread makes happen, or what it waits for, by name.
fn names<'t>(thread: &'t Thread, waits: bool) -> Vec<&'t String> {
    let events = thread.phases.iter().flat_map(|phase| &phase.events);
    let name = move |event: &'t Event| match event {
        Event::Signal(name) | Event::Broadcast(name) | Event::Resume(name) | Event::Post(name) => {
            (!waits).then_some(name)
        }
        Event::Sync { condition, .. } => Some(condition),
        Event::Wait { condition, .. } => waits.then_some(condition),
        Event::Suspend(name) | Event::Take(name) => waits.then_some(name),
        _ => None,
    };
    events.filter_map(name).collect()
}

fn check(seed: u64, seen: &mut Seen) {
    let mut stream = RandomStream::new(seed, 92, 0);
    let threads = file(&mut stream);
    let text = file_text(&threads);
    let imported = match rt_app::read(&text) {
        Ok(imported) => imported,
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("no thread of this file"),
                "seed {seed}: {error}\n{text}"
            );
            seen.add("files of which nothing is imported", true);
            return;
        }
    };
    if !imported.set.tasks.is_empty() {
        let again = read(&write(&imported.set));
        assert_eq!(again.as_ref(), Ok(&imported.set), "seed {seed}\n{text}");
    }
    let refused = |what: &str| {
        let mut lines = imported.left_out.iter();
        lines.any(|line| line.contains("not imported") && line.contains(what))
    };
    for (what, reason) in [
        ("refused: circles", "in a circle"),
        ("refused: woken by itself", "the thread itself"),
        ("refused: of a refused thread", "which is not imported"),
        ("refused: several wait for one signal", "threads wait for"),
        ("refused: never woken", "which no job of another thread"),
        ("refused: barriers", "`barrier`"),
        ("refused: deadlocks", "wait for each other for ever"),
        ("refused: jobs that are not alike", "not alike"),
    ] {
        seen.add(what, refused(reason));
    }
    // No thread is imported of which a wake-up would be missing.
    let is_imported = |thread: &&Thread| {
        let own = [thread.name.clone(), format!("{}-0", thread.name)];
        own.iter().any(|name| imported.set.find(name).is_some())
    };
    let is_refused = |thread: &&Thread| {
        let line = format!("task `{}`: not imported", thread.name);
        imported.left_out.iter().any(|it| it.starts_with(&line))
    };
    for refused in threads.iter().filter(is_refused) {
        for waiting in threads.iter().filter(is_imported) {
            let waits = names(waiting, true);
            let is_missing = names(refused, false).iter().any(|it| waits.contains(it));
            assert!(
                !is_missing,
                "seed {seed}: {} needs {}\n{text}",
                waiting.name, refused.name
            );
        }
    }
    let Some(read) = as_read(&threads, &imported) else {
        seen.add("not compared: losses", true);
        return;
    };
    let run = interpret(&read, HORIZON, Open::IN_FILE);
    let is_race = |orders| {
        let mut more = Open::more().take(orders);
        more.any(|open| interpret(&read, HORIZON, open).busy != run.busy)
    };
    if is_race(ORDERS) {
        seen.add("not compared: races", true);
        return;
    }
    let computed = execute(&imported.set, HORIZON);
    let names = read.iter().flat_map(|thread| {
        let name = |instance| match thread.instances {
            1 => thread.name.clone(),
            _ => format!("{}-{instance}", thread.name),
        };
        (0..thread.instances).map(name)
    });
    let found = |name: String| {
        let task = imported.set.find(&name);
        task.map_or_else(Vec::new, |task| computed[task.index()].clone())
    };
    let found: Vec<Vec<Busy>> = names.map(found).collect();
    // A rare race shows itself in more orders only.
    if found != run.busy && is_race(ORDERS_BEFORE_FAILURE) {
        seen.add("not compared: races", true);
        return;
    }
    assert_eq!(
        found,
        run.busy,
        "seed {seed}\n{text}\n{:#?}\n{}",
        imported.left_out,
        write(&imported.set)
    );
    count(&read, &imported, &run, seen);
}

/// Counts what a file had that was compared.
fn count(read: &[Thread], imported: &Imported, run: &Run, seen: &mut Seen) {
    seen.add("compared", true);
    let set = &imported.set;
    let triggers = || set.tasks.iter().filter_map(|task| task.trigger());
    if triggers().next().is_none() && set.resources.is_empty() {
        return;
    }
    let has = |wanted: fn(&Event) -> bool| {
        let phases = read.iter().flat_map(|thread| &thread.phases);
        phases.flat_map(|phase| &phase.events).any(wanted)
    };
    let all = triggers().any(|trigger| trigger.join == Join::All);
    let several = triggers().any(|it| it.join == Join::Any && it.sources.len() > 1);
    let within = set
        .tasks
        .iter()
        .any(|task| task.triggers().next().is_some());
    for (what, is_so) in [
        (
            "suspend and resume",
            has(|it| matches!(it, Event::Suspend(_))),
        ),
        (
            "wait at a condition",
            has(|it| matches!(it, Event::Wait { .. })),
        ),
        ("signal", has(|it| matches!(it, Event::Signal(_)))),
        ("broad", has(|it| matches!(it, Event::Broadcast(_)))),
        ("sync", has(|it| matches!(it, Event::Sync { .. }))),
        ("semaphores", has(|it| matches!(it, Event::Take(_)))),
        ("all of several semaphores", all),
        ("woken by any of several", several),
        ("triggers within jobs", within),
        (
            "triggers at completion",
            triggers().next().is_some() && !within,
        ),
        ("wake-ups that no thread heard", run.unheard > 0),
        ("shared mutexes", !set.resources.is_empty()),
        (
            "waits for mutexes",
            run.contended > 0 && !set.resources.is_empty(),
        ),
        (
            "begins before its first wait",
            read.iter().any(|it| it.waits_from_start),
        ),
        ("several instances", read.iter().any(|it| it.instances > 1)),
        ("jobs that differ", read.iter().any(|it| it.has_phases)),
        ("rounds that end", read.iter().any(|it| it.goes_on)),
    ] {
        seen.add(what, is_so);
    }
}

#[test]
fn imported_tasks_wake_each_other_and_wait_for_mutexes_as_the_threads_do() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        500_000
    } else {
        8_000
    };
    let mut seen = Seen::default();
    for seed in 0..seeds {
        check(seed, &mut seen);
    }
    for (what, files) in &seen.0 {
        println!("{files:>8} {what}");
        assert!(*files > 0, "{what}");
    }
    let compared = seen.0["compared"];
    assert!(
        compared * 4 > seeds,
        "{compared} of {seeds} files were compared"
    );
}
