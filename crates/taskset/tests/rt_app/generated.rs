//! Generated files of all documented constructs: what is imported is what rt-app would do.

use shiftwork_model::RandomStream;
use shiftwork_taskset::import::rt_app;
use shiftwork_taskset::{read, write};

use super::interpreter::{Event, Open, Phase, Thread, interpret};
use super::model::execute;
use super::text::file_text;

/// µs.
const HORIZON: i64 = 150_000;

/// How a task may differ from its thread in what is compared here; such a loss is named.
const LOSSES_OF_JOBS: [&str; 2] = ["first job is not like", "first jobs are not like"];

fn event(stream: &mut RandomStream) -> Event {
    let pick =
        |stream: &mut RandomStream, items: &[i64]| items[stream.below(items.len() as u64) as usize];
    match stream.below(12) {
        0..=3 => Event::Run(pick(stream, &[0, 100, 300, 700, 1_500, 4_000])),
        4..=5 => Event::Sleep(pick(stream, &[0, 100, 500, 2_000])),
        6..=9 => Event::Timer {
            name: ["unique", "uniqueA", "own"][stream.below(3) as usize].to_string(),
            period: pick(stream, &[1_000, 2_000, 3_000, 8_000]),
            absolute: stream.below(2) == 0,
        },
        _ => {
            let texts = [
                r#""lock": "m-{name}", "unlock": "m-{name}""#,
                r#""signal": "x""#,
                r#""broad1": "x""#,
                r#""resume": "x""#,
                r#""sem_post": "x""#,
                r#""barrier": "b-{name}""#,
                r#""yield": """#,
                r#""comment": "never an event""#,
            ];
            Event::Nothing(texts[stream.below(texts.len() as u64) as usize].to_string())
        }
    }
}

fn phase(stream: &mut RandomStream) -> Phase {
    let rounds = match stream.below(8) {
        0 => Some(-1),
        1 => Some(0),
        2..=4 => Some(1 + stream.below(4) as i64),
        _ => None,
    };
    let events = (0..1 + stream.below(5)).map(|_| event(stream)).collect();
    Phase { rounds, events }
}

fn thread(stream: &mut RandomStream, number: usize) -> Thread {
    let has_phases = stream.below(2) == 0;
    let phases = if has_phases { 1 + stream.below(3) } else { 1 };
    Thread {
        name: format!("t{number}"),
        delay: 100 * stream.below(20) as i64,
        has_phases,
        rounds: (has_phases && stream.below(3) == 0).then(|| stream.below(6) as i64 - 1),
        phases: (0..phases).map(|_| phase(stream)).collect(),
        instances: 1,
        ..Thread::default()
    }
}

/// Makes the mode of a timer that of its first mention.
fn with_one_mode(mut thread: Thread) -> Thread {
    let mut modes = std::collections::BTreeMap::new();
    for phase in &mut thread.phases {
        for event in &mut phase.events {
            if let Event::Timer { name, absolute, .. } = event {
                *absolute = *modes.entry(name.clone()).or_insert(*absolute);
            }
        }
    }
    thread
}

#[derive(Default, Debug)]
struct Seen {
    same: u64,
    with_loss: u64,
    refused: u64,
    never_computes: u64,
}

fn check(seed: u64, seen: &mut Seen) {
    let mut stream = RandomStream::new(seed, 91, 0);
    let count = 1 + stream.below(3) as usize;
    let threads = (0..count).map(|number| with_one_mode(thread(&mut stream, number)));
    let threads: Vec<Thread> = threads.collect();
    let text = file_text(&threads);
    let imported = match rt_app::read(&text) {
        Ok(imported) => imported,
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("no thread of this file"),
                "seed {seed}: {error}\n{text}"
            );
            seen.refused += threads.len() as u64;
            return;
        }
    };
    if !imported.set.tasks.is_empty() {
        assert_eq!(
            read(&write(&imported.set)).as_ref(),
            Ok(&imported.set),
            "seed {seed}\n{text}"
        );
    }
    let computed = execute(&imported.set, HORIZON);
    for thread in &threads {
        let said = |what: &str| {
            let of = format!("task `{}`: ", thread.name);
            let mut lines = imported.left_out.iter();
            lines.any(|line| line.starts_with(&of) && line.contains(what))
        };
        let alone = std::slice::from_ref(thread);
        let busy = &interpret(alone, HORIZON, Open::IN_FILE).busy[0];
        let Some(task) = imported.set.find(&thread.name) else {
            if said("not imported") {
                seen.refused += 1;
            } else {
                assert!(
                    said("never computes"),
                    "seed {seed}: {} is lost\n{text}",
                    thread.name
                );
                assert!(busy.is_empty(), "seed {seed}: {}\n{text}", thread.name);
                seen.never_computes += 1;
            }
            continue;
        };
        if LOSSES_OF_JOBS.iter().any(|loss| said(loss)) {
            seen.with_loss += 1;
            continue;
        }
        assert_eq!(
            &computed[task.index()],
            busy,
            "seed {seed}: {}\n{text}\n{:#?}",
            thread.name,
            imported.set.tasks[task.index()]
        );
        seen.same += 1;
    }
}

#[test]
fn imported_tasks_compute_when_the_threads_do() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        1_000_000
    } else {
        20_000
    };
    let mut seen = Seen::default();
    for seed in 0..seeds {
        check(seed, &mut seen);
    }
    let all = seen.same + seen.with_loss + seen.refused + seen.never_computes;
    assert!(
        seen.same * 4 > all && seen.refused * 10 > all && seen.never_computes > 0,
        "{seen:?}"
    );
    println!("{seen:?}");
}
