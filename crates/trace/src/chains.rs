//! Reaction times, data ages and end-to-end latencies of cause-effect chains, from the records of a run.

mod latency;
mod paths;
mod times;

use serde_json::{Value, json};
use shiftwork_model::{Chain, Instant, JobId, RecordKind, Recorder, TaskId, TaskSet};

use latency::Latency;
pub use paths::ChainTime;
pub(crate) use paths::{Measured, Step};
pub use times::EndToEnd;
pub(crate) use times::{Interval, Times};

/// The summary of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSummary {
    /// The name of the chain.
    pub name: String,
    /// Reaction times, one for each read of the first task but the first: from the read before it, which an event
    /// just misses, to the first output of the last task that rests on it or a later one.
    pub reaction: EndToEnd,
    /// Data ages, one for each output of the last task that rests on a read and was replaced.
    pub age: EndToEnd,
    /// End-to-end latencies, one for each job of the last task that stems from a job of the first; `None` if not every task
    /// is triggered by the one before.
    pub latency: Option<EndToEnd>,
}

impl ChainSummary {
    /// Whether one of the requirements was not met.
    pub fn is_violated(&self) -> bool {
        [Some(self.reaction), Some(self.age), self.latency]
            .iter()
            .flatten()
            .any(|times| times.is_met() == Some(false))
    }

    /// One item of the list under the key `chains` of `simulate --json`.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "reaction": self.reaction.to_json(),
            "age": self.age.to_json(),
            "latency": self.latency.map(EndToEnd::to_json),
        })
    }
}

/// What is measured of one chain, with the longest times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredChain {
    /// Reaction times.
    pub reaction: Times,
    /// Data ages.
    pub age: Times,
    /// End-to-end latencies; `None` if not every task is triggered by the one before.
    pub latency: Option<Times>,
}

/// Follows the data of all chains of a task set.
///
/// Definitions are those of [`Chain`]. A job reads at the first instant after which it executes. What happens at one
/// instant is taken together: a read sees what is written at its instant, in whatever order the records are. A job of which
/// the records have no start writes nothing.
///
/// # Cost
/// Memory for each task of a chain, and for jobs only where each task triggers the next. At each instant at which a task of a chain starts or completes a job,
/// time for each place of such a task in a chain.
#[derive(Clone, Debug)]
pub(crate) struct Chains {
    now: Instant,
    /// Per task; empty if there are no chains.
    tasks: Vec<Member>,
    /// Tasks that started or completed a job at this instant; they may repeat.
    changed: Vec<TaskId>,
    /// Where these are in chains, while the data is passed on.
    touched: Vec<Place>,
    flows: Vec<Flow>,
}

/// Where a task is in a chain; ordered by chain, then from the first task to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The index of the chain.
    chain: usize,
    /// The index of the task in it.
    link: usize,
}

/// What is followed of a task.
#[derive(Clone, Debug, Default)]
struct Member {
    /// Where it is in chains.
    places: Vec<Place>,
    /// The last job that was dispatched; 0 before.
    job: u64,
    /// When it began to execute; `None` if it did not yet, or is over.
    start: Option<Instant>,
    /// Number of CPUs that it is on; within an instant there may be two.
    cpus: usize,
    /// When the jobs started that completed at this instant.
    completed: Vec<Instant>,
}

/// A read of the first task, from 1.
#[derive(Clone, Copy, Debug)]
struct Sample {
    number: u64,
    read: Instant,
}

/// The data of one chain.
#[derive(Clone, Debug)]
struct Flow {
    name: String,
    links: Vec<Link>,
    /// Reads of the first task so far.
    reads: u64,
    /// The last read to which events are not answered: the one on which the present output rests, or the first.
    unanswered: Option<Sample>,
    reaction: Times,
    age: Times,
    latency: Option<Latency>,
}

/// One task of a chain.
#[derive(Clone, Debug)]
struct Link {
    task: TaskId,
    /// What its running job has read.
    held: Option<Sample>,
    /// What it wrote last.
    written: Option<Sample>,
}

impl Recorder for Chains {
    // Inline, so that what does not matter to chains costs nothing where the kind of the record is known.
    #[inline(always)]
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        if self.tasks.is_empty() {
            return;
        }
        match *kind {
            RecordKind::Switched { from, to, .. } => self.switch(at, from, to),
            RecordKind::Released { job, .. } => self.follow(at, job.task, kind),
            RecordKind::Completed { job } => {
                self.follow(at, job.task, kind);
                self.complete(job);
            }
            RecordKind::Triggered { task, .. } | RecordKind::AttributesSet { task, .. } => {
                self.follow(at, task, kind);
            }
            RecordKind::Left { task } => {
                self.follow(at, task, kind);
                self.leave(task);
            }
            _ => {}
        }
    }
}

impl Chains {
    /// For a run of this task set.
    pub(crate) fn new(set: &TaskSet) -> Self {
        let mut tasks = match set.chains.is_empty() {
            true => Vec::new(),
            false => vec![Member::default(); set.tasks.len()],
        };
        for (index, chain) in set.chains.iter().enumerate() {
            for (link, task) in chain.tasks.iter().enumerate() {
                let place = Place { chain: index, link };
                tasks[task.index()].places.push(place);
            }
        }
        Self {
            now: Instant::ZERO,
            tasks,
            changed: Vec::new(),
            touched: Vec::new(),
            flows: set
                .chains
                .iter()
                .map(|chain| Flow::of(chain, set))
                .collect(),
        }
    }

    /// Ends the run at `horizon`. A completion exactly at the horizon counts.
    pub(crate) fn finish(self, horizon: Instant) -> Vec<ChainSummary> {
        let summary = |(name, chain): (String, MeasuredChain)| ChainSummary {
            name,
            reaction: chain.reaction.summary(),
            age: chain.age.summary(),
            latency: chain.latency.map(Times::summary),
        };
        self.finish_measured(horizon).map(summary).collect()
    }

    /// The same, with the longest times.
    pub(crate) fn finish_measured(
        mut self,
        horizon: Instant,
    ) -> impl Iterator<Item = (String, MeasuredChain)> {
        self.settle();
        let flows = self.flows.into_iter();
        flows.map(move |flow| flow.finish(horizon))
    }

    /// What comes now happens at `at`.
    #[inline]
    fn advance(&mut self, at: Instant) {
        if at != self.now {
            if !self.changed.is_empty() {
                self.settle();
            }
            self.now = at;
        }
    }

    /// A CPU runs another job from now on.
    #[inline(never)]
    fn switch(&mut self, at: Instant, from: Option<JobId>, to: Option<JobId>) {
        self.advance(at);
        if let Some(job) = from {
            self.leave_cpu(job);
        }
        if let Some(job) = to {
            self.enter_cpu(job);
        }
    }

    /// Passes a record about this task on to the latencies of its chains.
    #[inline(never)]
    fn follow(&mut self, at: Instant, task: TaskId, kind: &RecordKind) {
        self.advance(at);
        for place in &self.tasks[task.index()].places {
            if let Some(latency) = &mut self.flows[place.chain].latency {
                latency.record(at, kind);
            }
        }
    }

    fn complete(&mut self, job: JobId) {
        let Some(task) = self.current(job) else {
            return;
        };
        task.cpus = 0;
        if let Some(start) = task.start.take() {
            task.completed.push(start);
            self.changed.push(job.task);
        }
    }

    fn leave(&mut self, task: TaskId) {
        if let Some(task) = self.member(task) {
            task.start = None;
            task.cpus = 0;
        }
    }

    /// The task, if it is part of a chain.
    fn member(&mut self, task: TaskId) -> Option<&mut Member> {
        let member = self.tasks.get_mut(task.index())?;
        (!member.places.is_empty()).then_some(member)
    }

    /// The task of the job, if the job was dispatched last and the task is part of a chain.
    fn current(&mut self, job: JobId) -> Option<&mut Member> {
        let member = self.member(job.task)?;
        (member.job == job.number).then_some(member)
    }

    fn enter_cpu(&mut self, job: JobId) {
        let now = self.now;
        let Some(task) = self.member(job.task) else {
            return;
        };
        if task.job != job.number {
            task.job = job.number;
            task.start = None;
            task.cpus = 0;
        }
        task.cpus += 1;
        if task.start.is_none() {
            task.start = Some(now);
            self.changed.push(job.task);
        }
    }

    /// A job that leaves its CPU at the instant at which it came there has not started.
    fn leave_cpu(&mut self, job: JobId) {
        let now = self.now;
        if let Some(task) = self.current(job) {
            task.cpus = task.cpus.saturating_sub(1);
            if task.cpus == 0 && task.start == Some(now) {
                task.start = None;
            }
        }
    }

    /// Passes the data on in all chains, where a task started or completed a job at this instant.
    fn settle(&mut self) {
        for task in &self.changed {
            self.touched.extend(&self.tasks[task.index()].places);
        }
        if self.touched.len() > 1 {
            self.touched.sort_unstable();
            self.touched.dedup();
        }
        for place in self.touched.drain(..) {
            self.flows[place.chain].settle(place.link, self.now, &self.tasks);
        }
        for task in self.changed.drain(..) {
            self.tasks[task.index()].completed.clear();
        }
    }
}

impl Flow {
    fn of(chain: &Chain, set: &TaskSet) -> Self {
        let link = |&task| Link {
            task,
            held: None,
            written: None,
        };
        Self {
            name: chain.name.clone(),
            links: chain.tasks.iter().map(link).collect(),
            reads: 0,
            unanswered: None,
            reaction: Times::new(chain.reaction),
            age: Times::new(chain.age),
            latency: Latency::of(chain, set),
        }
    }

    /// Takes what the task at this place did at `now`, after those before it: a read sees what the task before wrote.
    fn settle(&mut self, place: usize, now: Instant, tasks: &[Member]) {
        let member = &tasks[self.links[place].task.index()];
        for &start in &member.completed {
            if start == now {
                self.links[place].held = self.read(place, now);
            }
            let sample = self.links[place].held.take();
            self.write(place, sample, now);
        }
        if member.start == Some(now) {
            self.links[place].held = self.read(place, now);
        }
    }

    /// What the task at this place reads.
    fn read(&mut self, place: usize, now: Instant) -> Option<Sample> {
        match place.checked_sub(1) {
            Some(before) => self.links[before].written,
            None => {
                self.reads += 1;
                let sample = Sample {
                    number: self.reads,
                    read: now,
                };
                self.unanswered.get_or_insert(sample);
                Some(sample)
            }
        }
    }

    fn write(&mut self, place: usize, sample: Option<Sample>, now: Instant) {
        let before = std::mem::replace(&mut self.links[place].written, sample);
        let (Some(sample), true) = (sample, place + 1 == self.links.len()) else {
            return;
        };
        if let Some(before) = before {
            self.age.add(1, Interval::new(before.read, now));
        }
        if let Some(waiting) = self.unanswered.replace(sample)
            && waiting.number < sample.number
        {
            let reactions = sample.number - waiting.number;
            self.reaction
                .add(reactions, Interval::new(waiting.read, now));
        }
    }

    fn finish(mut self, horizon: Instant) -> (String, MeasuredChain) {
        let until_horizon = |sample: Sample| Interval::new(sample.read, horizon);
        let output = self.links.last().and_then(|link| link.written);
        self.reaction.pending = self.unanswered.map(until_horizon);
        self.age.pending = output.map(until_horizon);
        let measured = MeasuredChain {
            reaction: self.reaction,
            age: self.age,
            latency: self.latency.map(|latency| latency.finish(horizon)),
        };
        (self.name, measured)
    }
}

#[cfg(test)]
mod tests;
