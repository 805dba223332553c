//! Threads with nested mutexes under random events, by seed: they get and lose reservations, are bound to other CPUs, change their
//! class, and end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use shiftwork_live::standing::Reservation;
use shiftwork_live::{Class, set_class};
use shiftwork_model::{OnOverrun, RandomStream, Span};

use super::{Again, Stage, bind, locked, wish_of};
use crate::faults::{compute, wait_for};
use crate::long;
use crate::mutexes::futex::InheritingMutex;

const THREADS: usize = 6;
const MUTEXES: usize = 3;
const CPUS: [u64; 6] = [0b0010, 0b0100, 0b1000, 0b0110, 0b1100, 0b1110];
const STEPS: u32 = 120;
const STEPS_LONG: u32 = 2_000;
/// With fewer nothing was tried.
const LOANS_MIN: u64 = 30;

struct Member {
    thread: Again,
    /// How often it has had all its mutexes.
    rounds: Arc<AtomicU64>,
    index: usize,
    is_admitted: bool,
}

/// Locks these mutexes, one within the other, and computes for so many microseconds at each depth.
fn nest(mutexes: &[Arc<InheritingMutex>], random: &mut RandomStream) {
    let section = Duration::from_micros(20 + random.below(300));
    match mutexes {
        [] => {}
        // In the same order in all threads.
        [first, rest @ ..] if random.below(3) > 0 => locked(first, || {
            compute(section);
            nest(rest, random);
        }),
        [_, rest @ ..] => nest(rest, random),
    }
}

impl Member {
    fn start(index: usize, mutexes: &[Arc<InheritingMutex>], seed: u64) -> Self {
        let rounds = Arc::<AtomicU64>::default();
        let (counted, mutexes) = (Arc::clone(&rounds), mutexes.to_vec());
        let mut random = RandomStream::new(seed, 0, 0);
        let thread = Again::start(move || {
            nest(&mutexes, &mut random);
            if random.below(2) > 0 {
                thread::sleep(Duration::from_micros(random.below(2_000)));
            }
            counted.fetch_add(1, Ordering::SeqCst);
        });
        Self {
            thread,
            rounds,
            index,
            is_admitted: false,
        }
    }
}

struct World {
    stage: Stage,
    random: RandomStream,
    mutexes: Vec<Arc<InheritingMutex>>,
    members: Vec<Member>,
    started: u64,
}

impl World {
    fn new(seed: u64) -> Result<Self, String> {
        let mutexes = (0..MUTEXES).map(|_| Arc::default()).collect();
        let mut world = Self {
            stage: Stage::load()?,
            random: RandomStream::new(seed, 0, 0),
            mutexes,
            members: Vec::new(),
            started: 0,
        };
        for index in 0..THREADS {
            world.start(index);
        }
        Ok(world)
    }

    fn start(&mut self, index: usize) {
        self.started += 1;
        let member = Member::start(index, &self.mutexes, self.started);
        self.members.push(member);
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len() as u64) as usize]
    }

    /// What happened.
    fn step(&mut self) -> Result<&'static str, String> {
        let which = self.random.below(THREADS as u64) as usize;
        let what = self.random.below(16);
        let done = match what {
            0..8 if !self.members[which].is_admitted => self.admit(which)?,
            0..4 => {
                let member = &mut self.members[which];
                member.is_admitted = false;
                self.stage.dismiss(member.index)?;
                "dismissed"
            }
            4..10 => {
                let cpus = self.pick(&CPUS);
                bind(&self.stage, self.members[which].thread.id, cpus)?;
                "bound"
            }
            10..13 => {
                let class = self.pick(&[Class::Fifo(10), Class::Ordinary, Class::Ordinary]);
                let thread = self.members[which].thread.id;
                set_class(Some(thread), class).map_err(|error| error.to_string())?;
                "in another class"
            }
            13 => {
                let member = self.members.remove(which);
                if member.is_admitted && self.random.below(2) > 0 {
                    self.stage.dismiss(member.index)?;
                }
                let (index, was_admitted) = (member.index, member.is_admitted);
                drop(member.thread);
                if was_admitted {
                    self.stage.dismiss(index)?;
                }
                self.start(index);
                "replaced"
            }
            _ => "nothing",
        };
        thread::sleep(Duration::from_micros(self.random.below(4_000)));
        self.stage.take()?;
        Ok(done)
    }

    fn admit(&mut self, which: usize) -> Result<&'static str, String> {
        let period = Span::from_us(3_000 + self.random.below(50_000));
        let cost = Span::from_us(100 + self.random.below(period.as_ns() / 2_000));
        let member = &self.members[which];
        let (index, thread) = (member.index, member.thread.id);
        let of = Reservation {
            cost,
            period,
            deadline: period,
            on_overrun: self.pick(&[OnOverrun::Continue, OnOverrun::Signal, OnOverrun::Throttle]),
            ..wish_of(thread, self.pick(&CPUS))
        };
        self.members[which].is_admitted = self.stage.admit(index, &of)?;
        Ok("admitted")
    }

    /// Each thread goes on.
    fn goes_on(&mut self) -> Result<(), String> {
        for at in 0..THREADS {
            let rounds = Arc::clone(&self.members[at].rounds);
            let before = rounds.load(Ordering::SeqCst);
            wait_for(&format!("thread {at}"), || {
                (rounds.load(Ordering::SeqCst) >= before + 2).then_some(())
            })?;
        }
        self.stage.is_sound()
    }
}

/// No thread is stuck, and all rules are kept.
pub fn loans_survive_random_events() -> Result<(), String> {
    let seeds = if long() { 1..=10 } else { 1..=1 };
    for seed in seeds {
        let mut world = World::new(seed)?;
        let mut done = std::collections::BTreeMap::<&str, u32>::new();
        for step in 0..if long() { STEPS_LONG } else { STEPS } {
            let failed = |why: String| format!("seed {seed}, step {step}: {why}");
            *done.entry(world.step().map_err(failed)?).or_default() += 1;
            if step % 40 == 39 {
                world.goes_on().map_err(failed)?;
            }
        }
        let loans = world.stage.standing.loans_made();
        println!("seed {seed}: {done:?}, {loans} loans");
        if loans < LOANS_MIN {
            return Err(format!("seed {seed}: only {loans} loans"));
        }
        for member in &world.members {
            set_class(Some(member.thread.id), Class::Ordinary)
                .map_err(|error| error.to_string())?;
        }
        world
            .goes_on()
            .map_err(|why| format!("seed {seed}, the end: {why}"))?;
        let World { stage, members, .. } = world;
        drop(members);
        stage
            .end()
            .map_err(|why| format!("seed {seed}, the end: {why}"))?;
    }
    Ok(())
}
