//! rt-app's own rules, executed as its documentation and its main loop state them, for one thread
//! that has a CPU whenever it wants one and that no other thread disturbs. Knows nothing of the importer.

use std::collections::BTreeMap;

/// An interval in which a thread computes, in µs from the start of the program.
pub type Busy = (i64, i64);

/// One event of a phase; µs.
#[derive(Clone, Debug)]
pub enum Event {
    Run(i64),
    Sleep(i64),
    Timer {
        name: String,
        period: i64,
        absolute: bool,
    },
    /// One that changes nothing for a thread alone, with its text in the file.
    Nothing(String),
}

#[derive(Clone, Debug)]
pub struct Phase {
    /// As in the file; rt-app's default is 1.
    pub rounds: Option<i64>,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub name: String,
    pub delay: i64,
    /// Whether the file has `phases`; else there is one, whose keys are those of the thread.
    pub has_phases: bool,
    /// The `loop` of a thread with phases.
    pub rounds: Option<i64>,
    pub phases: Vec<Phase>,
}

struct Clock {
    now: i64,
    first: i64,
    next: BTreeMap<String, i64>,
    busy: Vec<Busy>,
}

/// When the thread computes before `horizon`.
pub fn interpret(thread: &Thread, horizon: i64) -> Vec<Busy> {
    let mut clock = Clock {
        now: thread.delay,
        first: thread.delay,
        next: BTreeMap::new(),
        busy: Vec::new(),
    };
    // A thread without phases is one phase; it is repeated for ever, unless `loop` says how often.
    let last_thread_round = match thread.has_phases {
        true => thread.rounds.unwrap_or(-1),
        false if thread.phases[0].rounds.is_some() => 1,
        false => -1,
    };
    let (mut phase, mut phase_round, mut thread_round) = (0, 0, 0);
    let mut idle_rounds = 0;
    while clock.now < horizon && thread_round != last_thread_round && idle_rounds < 1_000 {
        let before = clock.now;
        for event in &thread.phases[phase].events {
            clock.take(event);
        }
        idle_rounds = if clock.now == before {
            idle_rounds + 1
        } else {
            0
        };
        phase_round += 1;
        if phase_round == thread.phases[phase].rounds.unwrap_or(1) {
            phase_round = 0;
            phase += 1;
            if phase == thread.phases.len() {
                phase = 0;
                thread_round += 1;
            }
        }
    }
    until(clock.busy, horizon)
}

impl Clock {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Run(length) => {
                self.busy.push((self.now, self.now + length));
                self.now += length;
            }
            Event::Sleep(length) => self.now += length,
            Event::Timer {
                name,
                period,
                absolute,
            } => {
                let next = self.next.entry(name.clone()).or_insert(self.first);
                *next += period;
                if self.now < *next {
                    self.now = *next;
                } else if !absolute {
                    *next = self.now;
                }
            }
            Event::Nothing(_) => {}
        }
    }
}

/// The intervals before the horizon; those that touch are one.
pub fn until(busy: Vec<Busy>, horizon: i64) -> Vec<Busy> {
    let mut joined: Vec<Busy> = Vec::new();
    for (from, to) in busy {
        let to = to.min(horizon);
        if from >= to {
            continue;
        }
        match joined.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => joined.push((from, to)),
        }
    }
    joined
}
