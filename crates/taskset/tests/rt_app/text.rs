//! Threads as the text of a file.

use super::interpreter::{Event, Phase, Thread};

/// A file of these threads, under SCHED_FIFO where they have a priority.
pub fn file_text(threads: &[Thread]) -> String {
    let threads: Vec<String> = threads.iter().map(thread_text).collect();
    format!("{{\"tasks\": {{{}}}}}", threads.join(",\n"))
}

fn thread_text(thread: &Thread) -> String {
    let mut keys = vec![format!("\"delay\": {}", thread.delay)];
    if thread.instances != 1 {
        keys.push(format!("\"instance\": {}", thread.instances));
    }
    if thread.priority > 0 {
        let priority = thread.priority;
        keys.push(format!(
            "\"policy\": \"SCHED_FIFO\", \"priority\": {priority}"
        ));
    }
    if thread.has_phases {
        keys.extend(thread.rounds.map(|rounds| format!("\"loop\": {rounds}")));
        let phases = thread.phases.iter().enumerate();
        let phases: Vec<String> = phases
            .map(|(number, phase)| {
                format!("\"p{number}\": {{{}}}", phase_text(thread, number, phase))
            })
            .collect();
        keys.push(format!("\"phases\": {{{}}}", phases.join(", ")));
    } else {
        keys.push(phase_text(thread, 0, &thread.phases[0]));
    }
    format!("\"{}\": {{{}}}", thread.name, keys.join(", "))
}

/// The keys and values of a phase. One name of a barrier counts each place where it stands, so that
/// each place has one of its own.
fn phase_text(thread: &Thread, number: usize, phase: &Phase) -> String {
    let name = &thread.name;
    let mut keys: Vec<String> = Vec::new();
    keys.extend(phase.rounds.map(|rounds| format!("\"loop\": {rounds}")));
    for (place, event) in phase.events.iter().enumerate() {
        keys.push(match event {
            Event::Run(length) => format!("\"run{place}\": {length}"),
            Event::Sleep(length) => format!("\"sleep\": {length}"),
            Event::Timer {
                name: timer,
                period,
                absolute,
            } => {
                let timer = match timer.as_str() {
                    "own" => format!("own-{name}"),
                    unique => unique.to_string(),
                };
                // Of one timer each mention of "absolute" would make it so for all; here the modes of
                // one name are the same, see `with_one_mode`.
                let mode = match (absolute, place % 2) {
                    (true, _) => ", \"mode\": \"absolute\"",
                    (false, 0) => ", \"mode\": \"relative\"",
                    (false, _) => "",
                };
                format!("\"timer{place}\": {{\"ref\": \"{timer}\", \"period\": {period}{mode}}}")
            }
            Event::Lock(mutex) => format!("\"lock\": \"{mutex}\""),
            Event::Unlock(mutex) => format!("\"unlock{place}\": \"{mutex}\""),
            Event::Wait { condition, mutex } => {
                format!("\"wait\": {{\"ref\": \"{condition}\", \"mutex\": \"{mutex}\"}}")
            }
            Event::Sync { condition, mutex } => {
                format!("\"sync{place}\": {{\"ref\": \"{condition}\", \"mutex\": \"{mutex}\"}}")
            }
            Event::Signal(condition) => format!("\"signal\": \"{condition}\""),
            Event::Broadcast(condition) => format!("\"broad{place}\": \"{condition}\""),
            // Its own name may be left out.
            Event::Suspend(own) if own == name && place % 2 == 0 => "\"suspend\": \"\"".to_string(),
            Event::Suspend(name) => format!("\"suspend{place}\": \"{name}\""),
            Event::Resume(name) => format!("\"resume\": \"{name}\""),
            Event::Post(semaphore) => format!("\"sem_post\": \"{semaphore}\""),
            Event::Take(semaphore) => format!("\"sem_wait{place}\": \"{semaphore}\""),
            Event::Nothing(text) => text
                .replace("b-{name}", &format!("b-{name}-{number}-{place}"))
                .replace("{name}", name),
        });
    }
    keys.join(", ")
}
