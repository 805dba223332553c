//! A task set of which each task has a CPU whenever it wants one: a job begins at its release or at the end
//! of the job of its task before it, whichever is later, and does its phases in turn.

use std::collections::{BTreeMap, VecDeque};

use shiftwork_model::{Arrival, Join, Phase, ResourceId, Task, TaskId, TaskSet, Work};

use super::interpreter::{Busy, until};

struct Of<'a> {
    task: &'a Task,
    bodies: Vec<Vec<Phase>>,
    /// By time, in ns, those to come.
    releases: VecDeque<u64>,
    /// By triggers: those that were kept, of each source or of all together.
    kept: Vec<u64>,
    /// Jobs that have begun, and that are complete.
    begun: u64,
    complete: u64,
    /// Jobs whose release has come.
    released: u64,
    /// What the job that has begun has left to do.
    left: VecDeque<Phase>,
    until: Option<u64>,
    waits_for: Option<ResourceId>,
    busy: Vec<(u64, u64)>,
}

/// When each task computes before `horizon`, in whole µs. What takes less is left out.
pub fn execute(set: &TaskSet, horizon: i64) -> Vec<Vec<Busy>> {
    let end = horizon as u64 * 1_000;
    let mut machine = Machine {
        set,
        tasks: set.tasks.iter().map(|task| of(task, end)).collect(),
        holders: BTreeMap::new(),
        lockers: Vec::new(),
    };
    machine.run(end);
    let us = |busy: Vec<(u64, u64)>| {
        let us = |ns: u64| (ns / 1_000) as i64;
        let whole = busy.into_iter().map(|(from, to)| (us(from), us(to)));
        until(whole.collect(), horizon)
    };
    machine.tasks.into_iter().map(|it| us(it.busy)).collect()
}

fn of(task: &Task, end: u64) -> Of<'_> {
    let run = |length: &shiftwork_model::Span| vec![Phase::Run(*length)];
    let bodies: Vec<Vec<Phase>> = match &task.work {
        Work::Cost => vec![run(&task.cost)],
        Work::Constant(length) => vec![run(length)],
        Work::Trace(lengths) => lengths.iter().map(run).collect(),
        Work::Phases(phases) => vec![phases.clone()],
        Work::Uniform(..) => panic!("rt-app has no random work"),
    };
    let (offset, period) = (task.offset.as_ns(), task.period.as_ns());
    let releases = match &task.arrival {
        Arrival::Periodic => (0..=end / period)
            .map(|job| offset + job * period)
            .collect(),
        Arrival::Releases(releases) => releases.iter().map(|at| offset + at.as_ns()).collect(),
        Arrival::Triggered(_) => VecDeque::new(),
        Arrival::Sporadic | Arrival::Curve(..) => {
            panic!("imported threads arrive by time or by triggers")
        }
    };
    let places = match task.trigger() {
        Some(trigger) if trigger.join == Join::All => trigger.sources.len(),
        _ => 1,
    };
    Of {
        task,
        bodies,
        releases,
        kept: vec![0; places],
        begun: 0,
        complete: 0,
        released: 0,
        left: VecDeque::new(),
        until: None,
        waits_for: None,
        busy: Vec::new(),
    }
}

struct Machine<'a> {
    set: &'a TaskSet,
    tasks: Vec<Of<'a>>,
    holders: BTreeMap<ResourceId, usize>,
    /// In the order of their requests.
    lockers: Vec<usize>,
}

impl Machine<'_> {
    fn run(&mut self, end: u64) {
        let mut now = 0;
        while now < end {
            for of in &mut self.tasks {
                of.until = of.until.filter(|until| *until > now);
            }
            // In rounds: what jobs can do at once; then what they triggered arrives, and what comes of it is the next round.
            let mut is_first = true;
            loop {
                let can_act =
                    |of: &Of<'_>| of.has_begun() && of.until.is_none() && of.waits_for.is_none();
                let due: Vec<usize> = (0..self.tasks.len())
                    .filter(|task| can_act(&self.tasks[*task]))
                    .collect();
                if due.is_empty() && !is_first {
                    break;
                }
                let mut fired = Vec::new();
                for task in due {
                    self.act(task, now, &mut fired);
                }
                for of in self.tasks.iter_mut().filter(|_| is_first) {
                    while of.releases.front() == Some(&now) {
                        of.releases.pop_front();
                        of.released += 1;
                        of.begin();
                    }
                }
                for (source, target) in fired {
                    self.tasks[target].take(TaskId::from_index(source));
                }
                is_first = false;
            }
            let later = self
                .tasks
                .iter()
                .flat_map(|of| [of.until, of.releases.front().copied()]);
            match later.flatten().min() {
                Some(later) => now = later,
                None => return,
            }
        }
    }

    /// The job of the task does what comes next: it executes or sleeps, or locks one mutex. It triggers, unlocks and completes in
    /// passing.
    fn act(&mut self, task: usize, now: u64, fired: &mut Vec<(usize, usize)>) {
        loop {
            let of = &mut self.tasks[task];
            match of.left.pop_front() {
                Some(Phase::Run(length)) => {
                    of.busy.push((now, now + length.as_ns()));
                    of.until = Some(now + length.as_ns());
                    return;
                }
                Some(Phase::Sleep(length)) => {
                    of.until = Some(now + length.as_ns());
                    return;
                }
                Some(Phase::Trigger(target)) => fired.push((task, target.index())),
                Some(Phase::Lock(resource)) => {
                    match self.holders.contains_key(&resource) {
                        true => {
                            of.waits_for = Some(resource);
                            self.lockers.push(task);
                        }
                        false => drop(self.holders.insert(resource, task)),
                    }
                    return;
                }
                Some(Phase::Unlock(resource)) => self.unlock(resource),
                None => {
                    of.complete += 1;
                    of.begin();
                    self.fire_at_completion(task, fired);
                    return;
                }
            }
        }
    }

    fn fire_at_completion(&self, task: usize, fired: &mut Vec<(usize, usize)>) {
        let source = TaskId::from_index(task);
        for (target, other) in self.set.iter() {
            let sources = other.trigger().map_or(&[][..], |it| &it.sources);
            let mut within = self.set.tasks[task].triggers();
            if sources.contains(&source) && !within.any(|it| it == target) {
                fired.push((task, target.index()));
            }
        }
    }

    fn unlock(&mut self, resource: ResourceId) {
        self.holders.remove(&resource);
        let waits = |it: &&usize| self.tasks[**it].waits_for == Some(resource);
        let priority = |it: &usize| self.tasks[*it].task.priority;
        let next = self
            .lockers
            .iter()
            .filter(waits)
            .min_by_key(|it| priority(it))
            .copied();
        if let Some(next) = next {
            self.lockers.retain(|it| *it != next);
            self.tasks[next].waits_for = None;
            self.holders.insert(resource, next);
        }
    }
}

impl Of<'_> {
    fn has_begun(&self) -> bool {
        self.begun > self.complete
    }

    /// The next job begins, if it is released and the one before it is complete.
    fn begin(&mut self) {
        if !self.has_begun() && self.released > self.begun {
            let body = &self.bodies[self.begun as usize % self.bodies.len()];
            self.left = body.clone().into();
            self.begun += 1;
        }
    }

    /// Takes a trigger by a task, or loses it.
    fn take(&mut self, source: TaskId) {
        let trigger = self.task.trigger().unwrap();
        let place = match trigger.join {
            Join::Any => 0,
            Join::All => trigger.sources.iter().position(|it| *it == source).unwrap(),
        };
        self.kept[place] += 1;
        let released = *self.kept.iter().min().unwrap();
        let begins_at_once = released > self.released && !self.has_begun();
        let limit = trigger.queue.map_or(u64::MAX, u64::from);
        if self.kept[place] - self.begun > limit && !begins_at_once {
            self.kept[place] -= 1;
            return;
        }
        self.released = released;
        self.begin();
    }
}
