//! rt-app's own rules, executed as its documentation and its main loop state them, for threads of which
//! each has a CPU whenever it wants one. Knows nothing of the importer.

use std::collections::{BTreeMap, VecDeque};

use shiftwork_model::RandomStream;

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
    Lock(String),
    Unlock(String),
    Wait {
        condition: String,
        mutex: String,
    },
    Sync {
        condition: String,
        mutex: String,
    },
    Signal(String),
    Broadcast(String),
    Suspend(String),
    Resume(String),
    Post(String),
    Take(String),
    /// One that changes nothing for any thread, with its text in the file.
    Nothing(String),
}

#[derive(Clone, Debug)]
pub struct Phase {
    /// As in the file; rt-app's default is 1.
    pub rounds: Option<i64>,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub name: String,
    pub delay: i64,
    /// How many are started.
    pub instances: usize,
    /// Greater is more urgent.
    pub priority: i64,
    /// Whether the file has `phases`; else there is one, whose keys are those of the thread.
    pub has_phases: bool,
    /// The `loop` of a thread with phases.
    pub rounds: Option<i64>,
    pub phases: Vec<Phase>,
    /// Not as rt-app does it: it waits from the start where it waits first.
    pub waits_from_start: bool,
    /// Not as rt-app does it: its rounds have no end.
    pub goes_on: bool,
}

/// Which of the threads that can go on at an instant does so first.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    FirstInFile,
    LastInFile,
    /// Drawn by this seed.
    Random(u64),
}

/// What a file leaves open.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub order: Order,
    /// Whether a mutex that is unlocked passes to a thread that waits for it, and one that is free to a thread that a
    /// condition wakes; else each may be overtaken by a thread that comes before it, which POSIX allows.
    pub hands_over: bool,
}

impl Open {
    /// The first of those that are tried.
    pub const IN_FILE: Self = Self {
        order: Order::FirstInFile,
        hands_over: true,
    };

    /// More that are tried, without an end.
    pub fn more() -> impl Iterator<Item = Self> {
        let orders = [
            Order::LastInFile,
            Order::FirstInFile,
            Order::Random(0),
            Order::LastInFile,
        ];
        let orders = orders.into_iter().chain((1..).map(Order::Random));
        orders.enumerate().map(|(place, order)| Self {
            order,
            hands_over: place % 2 == 0,
        })
    }
}

/// What the threads did.
pub struct Run {
    /// When each instance computed, in the order of the file.
    pub busy: Vec<Vec<Busy>>,
    /// How often a condition was signalled where no thread waited.
    pub unheard: u64,
    /// How often a thread had to wait for a mutex.
    pub contended: u64,
}

/// What an event consists of.
#[derive(Clone, Debug)]
enum Part {
    Run(i64),
    Sleep(i64),
    Timer(String, i64, bool),
    Lock(String),
    Unlock(String),
    /// Gives up the mutex and waits at the condition; then it locks the mutex again.
    Wait(String, String),
    Wake(String, bool),
    /// Wakes one and waits, and locks the mutex for that unless the thread has it.
    Sync(String, String),
    Post(String),
    Take(String),
}

/// The parts of an event, as rt-app's functions call pthreads.
fn parts(event: &Event) -> Vec<Part> {
    let lock = |name: &String| Part::Lock(name.clone());
    let unlock = |name: &String| Part::Unlock(name.clone());
    match event {
        Event::Run(length) => vec![Part::Run(*length)],
        Event::Sleep(length) => vec![Part::Sleep(*length)],
        Event::Timer {
            name,
            period,
            absolute,
        } => vec![Part::Timer(name.clone(), *period, *absolute)],
        Event::Lock(mutex) => vec![lock(mutex)],
        Event::Unlock(mutex) => vec![unlock(mutex)],
        Event::Wait { condition, mutex } => vec![Part::Wait(condition.clone(), mutex.clone())],
        Event::Sync { condition, mutex } => vec![Part::Sync(condition.clone(), mutex.clone())],
        Event::Signal(condition) => vec![Part::Wake(condition.clone(), false)],
        Event::Broadcast(condition) => vec![Part::Wake(condition.clone(), true)],
        // The condition and the mutex of a thread have one name.
        Event::Suspend(name) => vec![
            lock(name),
            Part::Wait(name.clone(), name.clone()),
            unlock(name),
        ],
        Event::Resume(name) => vec![lock(name), Part::Wake(name.clone(), true), unlock(name)],
        Event::Post(semaphore) => vec![Part::Post(semaphore.clone())],
        Event::Take(semaphore) => vec![Part::Take(semaphore.clone())],
        Event::Nothing(_) => Vec::new(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Until(i64),
    /// At a mutex, a condition or a semaphore.
    Blocked,
    Ended,
}

struct Instance<'a> {
    thread: &'a Thread,
    state: State,
    first: i64,
    /// What is left of the current event.
    parts: VecDeque<Part>,
    event: usize,
    phase: usize,
    phase_round: i64,
    thread_round: i64,
    round_began: i64,
    idle_rounds: u32,
    next: BTreeMap<String, i64>,
    /// Whether what it does takes no time and has no effect yet.
    is_skipping: bool,
    busy: Vec<Busy>,
}

struct Machine<'a> {
    hands_over: bool,
    now: i64,
    threads: Vec<Instance<'a>>,
    holders: BTreeMap<String, usize>,
    /// Those that wait for a mutex, in order.
    lockers: BTreeMap<String, Vec<usize>>,
    /// Those that wait at a condition, with the mutex.
    waiters: BTreeMap<String, Vec<(usize, String)>>,
    counts: BTreeMap<String, u64>,
    takers: BTreeMap<String, Vec<usize>>,
    unheard: u64,
    contended: u64,
}

/// What the threads do before `horizon`.
pub fn interpret(threads: &[Thread], horizon: i64, open: Open) -> Run {
    let instances = threads.iter().flat_map(|thread| {
        let instance = move |_| Instance {
            thread,
            state: State::Until(if thread.waits_from_start {
                0
            } else {
                thread.delay
            }),
            first: thread.delay,
            parts: VecDeque::new(),
            event: 0,
            phase: 0,
            phase_round: 0,
            thread_round: 0,
            round_began: thread.delay,
            idle_rounds: 0,
            next: BTreeMap::new(),
            is_skipping: thread.waits_from_start,
            busy: Vec::new(),
        };
        (0..thread.instances).map(instance)
    });
    let mut machine = Machine {
        hands_over: open.hands_over,
        now: 0,
        threads: instances.collect(),
        holders: BTreeMap::new(),
        lockers: BTreeMap::new(),
        waiters: BTreeMap::new(),
        counts: BTreeMap::new(),
        takers: BTreeMap::new(),
        unheard: 0,
        contended: 0,
    };
    machine.run(horizon, open.order);
    Run {
        busy: machine
            .threads
            .into_iter()
            .map(|it| until(it.busy, horizon))
            .collect(),
        unheard: machine.unheard,
        contended: machine.contended,
    }
}

impl Machine<'_> {
    fn run(&mut self, horizon: i64, order: Order) {
        let seed = match order {
            Order::Random(seed) => seed,
            Order::FirstInFile | Order::LastInFile => 0,
        };
        let mut random = RandomStream::new(seed, 93, 0);
        while self.now < horizon {
            for number in 0..self.threads.len() {
                if self.threads[number].state == State::Until(self.now) {
                    self.make_ready(number);
                }
            }
            let ready = |it: &&usize| self.threads[**it].state == State::Ready;
            let all: Vec<usize> = (0..self.threads.len()).collect();
            let all: Vec<&usize> = all.iter().filter(ready).collect();
            let next = match order {
                Order::FirstInFile => all.first().copied(),
                Order::LastInFile => all.last().copied(),
                Order::Random(_) if all.is_empty() => None,
                Order::Random(_) => Some(all[random.below(all.len() as u64) as usize]),
            };
            if let Some(&next) = next {
                self.step(next);
                continue;
            }
            let later = self.threads.iter().filter_map(|it| match it.state {
                State::Until(time) => Some(time),
                _ => None,
            });
            let Some(later) = later.min() else {
                return;
            };
            self.now = later;
        }
    }

    fn make_ready(&mut self, number: usize) {
        self.threads[number].state = State::Ready;
    }

    /// The thread does the next part of what it does.
    fn step(&mut self, number: usize) {
        let now = self.now;
        let thread = &mut self.threads[number];
        let Some(part) = thread.parts.pop_front() else {
            thread.next_event(now);
            return;
        };
        if let Part::Wait(..) | Part::Take(_) = part {
            thread.is_skipping = false;
        } else if thread.is_skipping {
            match part {
                Part::Lock(_) | Part::Unlock(_) | Part::Sync(..) => {}
                _ => return,
            }
        }
        match part {
            Part::Run(length) => {
                thread.busy.push((now, now + length));
                thread.wait_until(now, now + length);
            }
            Part::Sleep(length) => thread.wait_until(now, now + length),
            Part::Timer(name, period, absolute) => {
                let next = thread.next.entry(name).or_insert(thread.first);
                *next += period;
                if now < *next {
                    let next = *next;
                    thread.wait_until(now, next);
                } else if !absolute {
                    *next = now;
                }
            }
            Part::Lock(mutex) => self.lock(number, mutex),
            Part::Unlock(mutex) => self.unlock(number, &mutex),
            Part::Wait(condition, mutex) => {
                thread.state = State::Blocked;
                let waiters = self.waiters.entry(condition).or_default();
                waiters.push((number, mutex.clone()));
                self.unlock(number, &mutex);
            }
            Part::Wake(condition, all) => {
                let waiters = self.waiters.entry(condition).or_default();
                self.unheard += u64::from(waiters.is_empty());
                let count = if all {
                    waiters.len()
                } else {
                    waiters.len().min(1)
                };
                for (woken, mutex) in waiters.drain(..count).collect::<Vec<_>>() {
                    match self.hands_over {
                        true => self.lock(woken, mutex),
                        false => {
                            self.threads[woken].parts.push_front(Part::Lock(mutex));
                            self.make_ready(woken);
                        }
                    }
                }
            }
            Part::Sync(condition, mutex) => {
                let holds = self.holders.get(&mutex) == Some(&number);
                let mut parts = vec![
                    Part::Wake(condition.clone(), false),
                    Part::Wait(condition, mutex.clone()),
                ];
                if !holds {
                    parts.insert(0, Part::Lock(mutex.clone()));
                    parts.push(Part::Unlock(mutex));
                }
                for part in parts.into_iter().rev() {
                    thread.parts.push_front(part);
                }
            }
            Part::Post(semaphore) => match self.takers.get_mut(&semaphore) {
                Some(takers) if !takers.is_empty() => {
                    let taker = takers.remove(0);
                    self.make_ready(taker);
                }
                _ => *self.counts.entry(semaphore).or_default() += 1,
            },
            Part::Take(semaphore) => {
                let count = self.counts.entry(semaphore.clone()).or_default();
                match *count {
                    0 => {
                        thread.state = State::Blocked;
                        self.takers.entry(semaphore).or_default().push(number);
                    }
                    _ => *count -= 1,
                }
            }
        }
    }

    /// The thread has the mutex and is ready, or waits for it.
    fn lock(&mut self, number: usize, mutex: String) {
        if let Some(holder) = self.holders.get(&mutex) {
            self.contended += u64::from(*holder != number);
            self.threads[number].state = State::Blocked;
            self.lockers.entry(mutex).or_default().push(number);
            return;
        }
        self.holders.insert(mutex, number);
        if self.threads[number].state == State::Blocked {
            self.make_ready(number);
        }
    }

    /// The mutex passes to the most urgent thread that waits for it, of equals to the first.
    fn unlock(&mut self, number: usize, mutex: &str) {
        if self.holders.get(mutex) != Some(&number) {
            return;
        }
        self.holders.remove(mutex);
        let lockers = self.lockers.entry(mutex.to_string()).or_default();
        let urgency = |it: &usize| self.threads[*it].thread.priority;
        let Some(most) = lockers.iter().map(urgency).max() else {
            return;
        };
        let place = lockers.iter().position(|it| urgency(it) == most).unwrap();
        let next = lockers.remove(place);
        match self.hands_over {
            true => drop(self.holders.insert(mutex.to_string(), next)),
            false => self.threads[next]
                .parts
                .push_front(Part::Lock(mutex.to_string())),
        }
        self.make_ready(next);
    }
}

impl Instance<'_> {
    fn wait_until(&mut self, now: i64, time: i64) {
        if time > now {
            self.state = State::Until(time);
        }
    }

    /// Goes to the next event, or ends. A thread without phases is one phase; it is repeated for ever,
    /// unless `loop` says how often.
    fn next_event(&mut self, now: i64) {
        let thread = self.thread;
        let last_thread_round = match thread.has_phases {
            _ if thread.goes_on => -1,
            true => thread.rounds.unwrap_or(-1),
            false if thread.phases[0].rounds.is_some() => 1,
            false => -1,
        };
        if self.thread_round == last_thread_round || self.idle_rounds == 1_000 {
            self.state = State::Ended;
            return;
        }
        let phase = &thread.phases[self.phase];
        if let Some(event) = phase.events.get(self.event) {
            self.parts = parts(event).into();
            self.event += 1;
            return;
        }
        self.idle_rounds = if self.round_began == now {
            self.idle_rounds + 1
        } else {
            0
        };
        self.round_began = now;
        self.event = 0;
        self.phase_round += 1;
        if self.phase_round == phase.rounds.unwrap_or(1) {
            self.phase_round = 0;
            self.phase += 1;
            if self.phase == thread.phases.len() {
                self.phase = 0;
                self.thread_round += 1;
            }
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
