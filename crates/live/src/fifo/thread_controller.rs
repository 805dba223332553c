//! Which thread is where, on which level: what was told to run, and what the threads told.

use std::io;
use std::sync::Arc;

use rustix::thread::Pid;
use shiftwork_model::{CpuId, CpuSet};

use super::managed_thread::{Known, Moment, NEVER};
use super::shared_state::Floor;
use super::thread_ops::Hands;
use super::{JOB_LEVEL, WAITING_LEVEL, refused};
use crate::LiveError;
use crate::agent::{Level, Slot};
use crate::event::{Event, Kind};
use crate::machine::Parameters;
use crate::sys::thread::Class;

/// Room for what happens between two looks of the agent.
const REPORTS: usize = 4096;

/// A CPU of the platform.
#[derive(Clone, Copy, Debug)]
struct Place {
    cpu: CpuId,
    /// Whom it was told to run and, as far as is known, runs or will.
    task: Option<usize>,
    is_blocked: bool,
}

/// Which thread is where, on which level. Only the agent's thread has it.
///
/// A task in a place is let out and raised, bound there, and in no other place; one that waits is raised
/// already, unless it was held when its job ended. A CPU is blocked, once [`block`](Self::block) has been
/// called, exactly if a task that is held is bound to it.
#[derive(Debug)]
pub(super) struct Board<H> {
    floor: Arc<Floor>,
    pub(super) hands: H,
    names: Vec<String>,
    tasks: Vec<Option<Known>>,
    /// In the order of the floor's posts.
    places: Vec<Place>,
    /// What the agent has not heard yet.
    pub(super) reports: Vec<Event>,
    /// What the agent is told of earlier is no news to it: it has looked how things stand.
    news_ns: u64,
    /// When the first of those who sleep wakes up.
    pub(super) wakes_ns: u64,
    /// Whether other tasks are held than when the blockers were last told.
    holds_others: bool,
    /// Whom each slot that is being filled really gets; kept so that nothing is allocated.
    filled: Vec<Option<usize>>,
}

impl<H: Hands> Board<H> {
    /// For the tasks of these names, of which none takes part.
    pub(super) fn new(floor: Arc<Floor>, hands: H, names: Vec<String>) -> Self {
        let place = |cpu| Place {
            cpu,
            task: None,
            is_blocked: false,
        };
        Self {
            tasks: vec![None; names.len()],
            places: floor.posts.iter().map(|post| place(post.cpu)).collect(),
            reports: Vec::with_capacity(REPORTS),
            news_ns: 0,
            wakes_ns: NEVER,
            holds_others: false,
            filled: Vec::with_capacity(floor.posts.len()),
            floor,
            hands,
            names,
        }
    }

    pub(super) fn now_ns(&mut self) -> u64 {
        self.hands.now_ns()
    }

    /// The thread of this task told this.
    pub(super) fn hear(&mut self, task: usize, event: Event) {
        let known = self.tasks.get(task).and_then(Option::as_ref);
        if known.is_none_or(|known| known.stay != event.task) {
            return;
        }
        match event.kind {
            Kind::Running => self.has_begun(task, event),
            Kind::Stopped => self.end_run(task, event.at, event.value),
            _ => self.has_stopped(task, event),
        }
    }

    /// Those who sleep until now or earlier are awake.
    pub(super) fn wake(&mut self, now_ns: u64) {
        self.wakes_ns = NEVER;
        for task in 0..self.tasks.len() {
            let Some(known) = &mut self.tasks[task] else {
                continue;
            };
            if known.wakes_ns > now_ns {
                self.wakes_ns = self.wakes_ns.min(known.wakes_ns);
                continue;
            }
            known.wakes_ns = NEVER;
            let cpu = known.cpu;
            self.report(now_ns, Kind::Woken, Some(task), Some(cpu), 0);
        }
    }

    /// Fills the slots.
    ///
    /// Whoever loses its CPU is held before anybody takes it over. A slot whose task has stopped since
    /// stays empty.
    pub(super) fn assign(&mut self, slots: &[Slot]) -> Result<(), LiveError> {
        let mut filled = std::mem::take(&mut self.filled);
        filled.clear();
        filled.extend(slots.iter().map(|slot| self.who_gets(slot)));
        for slot in slots {
            let loser = self.empty(slot.cpu);
            if loser.is_some() && !filled.contains(&loser) {
                loser.map_or(Ok(()), |loser| self.hold(loser))?;
            }
        }
        for (slot, &winner) in slots.iter().zip(&filled) {
            if let Some(task) = winner {
                self.fill(slot.cpu, task)?;
            }
            let now_ns = self.hands.now_ns();
            self.report(now_ns, Kind::Told, winner, Some(slot.cpu), 0);
        }
        self.filled = filled;
        self.block();
        Ok(())
    }

    /// Keeps held jobs from running where nobody else does.
    pub(super) fn block(&mut self) {
        if !std::mem::take(&mut self.holds_others) {
            return;
        }
        let known = self.tasks.iter().flatten();
        let held: CpuSet = known
            .filter(|known| known.is_held())
            .map(|known| known.cpu)
            .collect();
        for (post, place) in self.places.iter_mut().enumerate() {
            let is_blocked = held.contains(place.cpu);
            if is_blocked != place.is_blocked {
                place.is_blocked = is_blocked;
                self.hands.block(post, is_blocked);
            }
        }
    }

    /// The task takes part from now on; `None` if its thread is not there any more, otherwise whether
    /// it is awake.
    pub(super) fn admit(
        &mut self,
        task: usize,
        of: &Parameters,
    ) -> Result<Option<bool>, LiveError> {
        let cpu = self.first_cpu(task, of)?;
        let bound = self.hands.bind(of.thread, &CpuSet::single(cpu));
        let bound =
            bound.and_then(|()| self.hands.set_class(of.thread, Class::Fifo(WAITING_LEVEL)));
        if !self.is_there(task, bound)? {
            return Ok(None);
        }
        let seat = &self.floor.seats[task];
        *seat.engaged() = Some((of.thread, of.cpus));
        let mut known = Known::new(of, cpu, seat.engage());
        // A thread that takes no part sleeps by itself; somebody has to take over its alarm clock.
        let until_ns = seat.until_ns();
        known.placed = self.clocks(of.thread);
        let now_ns = known.placed.at_ns;
        let is_out = known.is_out;
        let is_awake = is_out || until_ns <= now_ns;
        if !is_awake {
            known.wakes_ns = until_ns;
            self.wakes_ns = self.wakes_ns.min(until_ns);
        }
        self.tasks[task] = Some(known);
        self.holds_others = true;
        if !is_out {
            // It waits until its word says otherwise, on whatever level; then it need only be woken.
            self.raise(task)?;
        }
        let affinity = of.cpus.words()[0];
        self.report(now_ns, Kind::Entered, Some(task), Some(cpu), affinity);
        self.block();
        Ok(Some(is_awake))
    }

    /// The task is ordinary work from now on. Changes nothing if it is that already.
    pub(super) fn dismiss(&mut self, task: usize) -> Result<(), LiveError> {
        let Some(known) = self.tasks.get(task).cloned().flatten() else {
            return Ok(());
        };
        let now = self.clocks(known.thread);
        self.end_run(task, now.at_ns, now.ran_ns);
        self.vacate(task);
        self.tasks[task] = None;
        // First ordinary, then free: it must not do its own thing on a level of ours.
        let freed = self.hands.set_class(known.thread, Class::Ordinary);
        let freed = freed.and_then(|()| self.hands.bind(known.thread, &known.cpus));
        let seat = &self.floor.seats[task];
        seat.release();
        *seat.engaged() = None;
        self.is_there(task, freed)?;
        self.report(now.at_ns, Kind::Left, Some(task), None, 0);
        self.holds_others = true;
        self.block();
        Ok(())
    }

    /// The task may use these CPUs; it stays where it is until it is told to run elsewhere.
    pub(super) fn approve(&mut self, task: usize, cpus: &CpuSet) {
        if let Some(Some(known)) = self.tasks.get_mut(task) {
            known.cpus = *cpus;
            *self.floor.seats[task].engaged() = Some((known.thread, *cpus));
        }
    }

    /// How things stand with the task.
    pub(super) fn level(&mut self, task: usize) -> Level {
        let now_ns = self.hands.now_ns();
        self.news_ns = now_ns + 1;
        let absent = Level {
            at_ns: now_ns,
            ..Level::default()
        };
        let known = self.tasks.get(task).and_then(Option::as_ref);
        known.map_or(absent, |known| known.level(now_ns))
    }

    /// Whom this slot gets: nobody if its task has stopped since that was decided.
    fn who_gets(&self, slot: &Slot) -> Option<usize> {
        let task = slot.task?.index();
        let known = self.tasks.get(task)?.as_ref()?;
        (known.stops == slot.stops).then_some(task)
    }

    /// The CPU has nobody now; whom it had.
    fn empty(&mut self, cpu: CpuId) -> Option<usize> {
        let mut places = self.places.iter_mut();
        places.find(|place| place.cpu == cpu)?.task.take()
    }

    /// The task has no CPU now.
    fn vacate(&mut self, task: usize) {
        for place in &mut self.places {
            if place.task == Some(task) {
                place.task = None;
            }
        }
    }

    /// The task is not to run on, in the middle of its job. It stays where it is.
    fn hold(&mut self, task: usize) -> Result<(), LiveError> {
        let Some(known) = self.tasks[task].as_mut().filter(|known| known.is_out) else {
            return Ok(());
        };
        known.is_raised = false;
        let thread = known.thread;
        let level = Class::Fifo(WAITING_LEVEL);
        let lowered = self.hands.set_class(thread, level);
        self.is_there(task, lowered)?;
        self.holds_others = true;
        self.note_displaced(task);
        Ok(())
    }

    /// The CPU, which has nobody, runs the task from now on.
    fn fill(&mut self, cpu: CpuId, task: usize) -> Result<(), LiveError> {
        if !self.move_to(cpu, task)? || !self.raise(task)? {
            return Ok(());
        }
        self.vacate(task);
        for place in &mut self.places {
            if place.cpu == cpu {
                place.task = Some(task);
            }
        }
        self.go_on(task);
        Ok(())
    }

    /// Whether its thread is there and is bound to this CPU.
    fn move_to(&mut self, cpu: CpuId, task: usize) -> Result<bool, LiveError> {
        let Some(known) = &mut self.tasks[task] else {
            return Ok(false);
        };
        if known.cpu == cpu {
            return Ok(true);
        }
        let thread = known.thread;
        let moved = self.hands.bind(thread, &CpuSet::single(cpu));
        let is_out = known.is_out;
        let is_there = self.is_there(task, moved)?;
        if is_out {
            self.note_displaced(task);
            self.holds_others = true;
        }
        if let Some(known) = &mut self.tasks[task] {
            known.cpu = cpu;
        }
        Ok(is_there)
    }

    /// Whether its thread is there and on the level of those that run.
    fn raise(&mut self, task: usize) -> Result<bool, LiveError> {
        let Some(known) = &mut self.tasks[task] else {
            return Ok(false);
        };
        if known.is_raised {
            return Ok(true);
        }
        known.is_raised = true;
        self.holds_others |= known.is_out;
        let (thread, will_tell) = (known.thread, known.is_out && !known.has_begun);
        if will_tell {
            let now = self.clocks(thread);
            self.tasks[task]
                .iter_mut()
                .for_each(|known| known.placed = now);
        }
        let raised = self.hands.set_class(thread, Class::Fifo(JOB_LEVEL));
        self.is_there(task, raised)
    }

    /// Lets the thread out if it waits. If it is in the middle of a job, it runs there from now on and
    /// does not know.
    fn go_on(&mut self, task: usize) {
        let Some(known) = &mut self.tasks[task] else {
            return;
        };
        if !known.is_out {
            known.is_out = true;
            self.floor.seats[task].open();
        } else if known.has_begun && known.begun_ns.is_none() {
            let (cpu, thread) = (known.cpu, known.thread);
            let now = self.clocks(thread);
            self.begin_run(task, now, cpu);
        }
    }

    /// The thread went on, and says when. It may not have come to saying so before it was moved or held,
    /// and perhaps told to run again, of which it does not know: what it ran before and what it runs
    /// since are two runs.
    fn has_begun(&mut self, task: usize, event: Event) {
        let Some(known) = &mut self.tasks[task] else {
            return;
        };
        known.has_begun = true;
        let (cpu, is_raised, placed) = (known.cpu, known.is_raised, known.placed);
        let displaced = known.displaced.take();
        let began = Moment {
            at_ns: event.at,
            ran_ns: event.value,
        };
        if let Some((until, there)) = displaced.filter(|(until, _)| began.at_ns <= until.at_ns) {
            self.begin_run(task, began, there);
            self.end_run_on(task, until, there);
        }
        // Held, it ran before the CPU was blocked: nobody told it to, so nobody is told.
        if is_raised {
            let since = if began.at_ns > placed.at_ns || displaced.is_none() {
                began
            } else {
                placed
            };
            self.begin_run(task, since, cpu);
        }
    }

    /// The thread waits again.
    fn has_stopped(&mut self, task: usize, event: Event) {
        self.vacate(task);
        let Some(known) = &mut self.tasks[task] else {
            return;
        };
        self.holds_others |= known.is_held();
        known.stop(event);
        self.wakes_ns = self.wakes_ns.min(known.wakes_ns);
        let cpu = known.cpu;
        self.report(event.at, event.kind, Some(task), Some(cpu), event.value);
    }

    fn begin_run(&mut self, task: usize, since: Moment, cpu: CpuId) {
        if let Some(known) = &mut self.tasks[task] {
            known.begun_ns = Some(since.ran_ns);
            self.report(since.at_ns, Kind::Running, Some(task), Some(cpu), 0);
        }
    }

    /// If it ran, it does not any more, having run for so long in its life.
    fn end_run(&mut self, task: usize, at_ns: u64, ran_ns: u64) {
        if let Some(cpu) = self.tasks[task].as_ref().map(|known| known.cpu) {
            self.end_run_on(task, Moment { at_ns, ran_ns }, cpu);
        }
    }

    /// The same, where it ran on this CPU.
    fn end_run_on(&mut self, task: usize, until: Moment, cpu: CpuId) {
        let begun_ns = self.tasks[task]
            .as_mut()
            .and_then(|known| known.begun_ns.take());
        if let (Some(begun_ns), Some(known)) = (begun_ns, &mut self.tasks[task]) {
            let ran_ns = until.ran_ns.saturating_sub(begun_ns);
            known.told_ns += ran_ns;
            self.report(until.at_ns, Kind::Stopped, Some(task), Some(cpu), ran_ns);
        }
    }

    /// It does not run where it was any more, since now.
    fn note_displaced(&mut self, task: usize) {
        let Some(thread) = self.tasks[task].as_ref().map(|known| known.thread) else {
            return;
        };
        let now = self.clocks(thread);
        self.end_run(task, now.at_ns, now.ran_ns);
        if let Some(known) = &mut self.tasks[task] {
            known.placed = now;
            if !known.has_begun {
                known.displaced.get_or_insert((now, known.cpu));
            }
        }
    }

    /// Now, and how long the thread has run in its life. A thread that is gone runs no further, and
    /// what it ran last does not matter to anybody.
    fn clocks(&mut self, thread: Pid) -> Moment {
        let ran_ns = self.hands.ran_ns(thread).unwrap_or(0);
        Moment {
            at_ns: self.hands.now_ns(),
            ran_ns,
        }
    }

    /// Where a task is bound first: where it is, or was, or else on its lowest CPU.
    fn first_cpu(&self, task: usize, of: &Parameters) -> Result<CpuId, LiveError> {
        let name = self.names.get(task).map_or("?", String::as_str);
        if !of.follows || task >= self.tasks.len() {
            return Err(LiveError::TaskSet(format!(
                "task {name} runs a program, of which nobody knows without sched_ext when it wants \
                 to run; `--machine kernel` and `--machine agent` run programs"
            )));
        }
        let start = of.start.filter(|&cpu| of.cpus.contains(cpu));
        start.or(of.cpus.lowest()).ok_or_else(|| {
            LiveError::TaskSet(format!("task {name} may not use any CPU of the platform"))
        })
    }

    /// Whether the thread of this task is still there, going by what the kernel said.
    fn is_there(&self, task: usize, said: io::Result<()>) -> Result<bool, LiveError> {
        match said {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(error) => {
                let name = &self.names[task];
                Err(refused(
                    error,
                    format!("put task {name} where it is to run"),
                ))
            }
        }
    }

    fn report(&mut self, at: u64, kind: Kind, task: Option<usize>, cpu: Option<CpuId>, value: u64) {
        self.reports.push(Event {
            // What a thread did before the agent looked, and is heard of only now, is news.
            at: at.max(self.news_ns),
            value,
            task: task.map_or(0, number),
            cpu: cpu.and_then(|cpu| u16::try_from(cpu.index()).ok()),
            kind,
        });
    }
}

/// The number of a task in events.
fn number(task: usize) -> u32 {
    u32::try_from(task + 1).unwrap_or(u32::MAX)
}
