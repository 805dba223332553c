//! Facts as records of a run, to be explained as those of any other.

use std::collections::BTreeMap;

use shiftwork_live::standing::{Absence, Fact, FactKind};
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Happening, Instant, JobId, NotReadyReason, Priority, Record, TaskId,
    TaskSet,
};
use shiftwork_trace::check::Facts;
use shiftwork_trace::explain::explain;

use super::Recorder;
use crate::accounts::Miss;

/// What is known of a task while its facts are read.
struct Actor {
    /// Its number among those of the explanation.
    id: TaskId,
    deadline: shiftwork_model::Span,
    priority: Priority,
    jobs: u64,
    /// Its job that is not finished.
    open: Option<JobId>,
    is_throttled: bool,
}

/// The records of the facts that are remembered.
struct Story {
    actors: BTreeMap<TaskId, Actor>,
    running: BTreeMap<CpuId, JobId>,
    records: Vec<Record>,
    /// Instants are counted from here, as of a run.
    begins_ns: u64,
    /// The job of the miss.
    late: Option<JobId>,
}

/// The explanation of this miss, in words; `None` if its beginning is not remembered any more.
pub(super) fn explain_miss(
    recorder: &Recorder,
    miss: &Miss,
    facts: &Facts,
    now: Instant,
) -> Option<String> {
    let begins_ns = recorder.facts.front()?.at_ns;
    let (set, actors) = cast(recorder)?;
    let mut story = Story {
        actors,
        running: BTreeMap::new(),
        records: Vec::new(),
        begins_ns,
        late: None,
    };
    for fact in &recorder.facts {
        story.take(fact, miss);
    }
    let until = Instant::from_ns(now.as_ns().saturating_sub(begins_ns));
    let explanation = explain(&set, facts, &story.records, story.late?, until).ok()?;
    let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    Some(explanation.text(&names))
}

/// The tasks that are remembered, as a task set of the machine's CPUs.
fn cast(recorder: &Recorder) -> Option<(TaskSet, BTreeMap<TaskId, Actor>)> {
    let mut tasks = Vec::new();
    let mut actors = BTreeMap::new();
    for (&id, known) in &recorder.tasks {
        let actor = Actor {
            id: TaskId::from_index(tasks.len()),
            deadline: known.task.deadline,
            priority: known.priority,
            jobs: 0,
            open: None,
            is_throttled: false,
        };
        actors.insert(id, actor);
        tasks.push(known.task.clone());
    }
    let last = recorder.cpus.iter().last()?;
    Some((TaskSet::new("agent", last.index() + 1, tasks), actors))
}

impl Story {
    fn record(&mut self, at_ns: u64, what: Happening) {
        let at = Instant::from_ns(at_ns.saturating_sub(self.begins_ns));
        self.records.push(Record { at, what });
    }

    fn take(&mut self, fact: &Fact, miss: &Miss) {
        match fact.task {
            Some(task) if self.actors.contains_key(&task) => self.of_task(fact, task, miss),
            Some(_) => {}
            None => self.of_cpu(fact),
        }
    }

    fn of_task(&mut self, fact: &Fact, task: TaskId, miss: &Miss) {
        let at_ns = fact.at_ns;
        match fact.what {
            FactKind::Woken => self.begin(at_ns, task, miss),
            FactKind::Ready { deadline_ns } => {
                self.begin(at_ns, task, miss);
                self.ready(at_ns, task, deadline_ns);
            }
            FactKind::Blocked | FactKind::Yielded => self.finish(at_ns, task),
            FactKind::Spent => self.spend(at_ns, task),
            FactKind::Running => self.switch(at_ns, fact.cpu, Some(task)),
            FactKind::Stopped { .. } => self.switch(at_ns, fact.cpu, None),
            FactKind::Left | FactKind::Demoted { .. } => {
                let actor = self.actors.get_mut(&task);
                let Some(actor) = actor else { return };
                actor.open = None;
                let task = actor.id;
                self.record(at_ns, Happening::Left { task });
            }
            FactKind::Entered { cpus } => {
                let id = self.actors[&task].id;
                self.record(at_ns, Happening::Entered { task: id });
                self.bind(at_ns, task, &cpus);
            }
            FactKind::Affinity { cpus } => self.bind(at_ns, task, &cpus),
            _ => {}
        }
    }

    fn begin(&mut self, at_ns: u64, task: TaskId, miss: &Miss) {
        let begins_ns = self.begins_ns;
        let Some(actor) = self.actors.get_mut(&task) else {
            return;
        };
        if actor.open.is_some() {
            return;
        }
        actor.jobs += 1;
        let job = JobId {
            task: actor.id,
            number: actor.jobs,
        };
        actor.open = Some(job);
        actor.is_throttled = false;
        let due_ns = at_ns.saturating_add(actor.deadline.as_ns());
        let deadline = Instant::from_ns(due_ns.saturating_sub(begins_ns));
        if task == miss.task && at_ns == miss.began_ns {
            self.late = Some(job);
        }
        self.record(at_ns, Happening::Released { job, deadline });
    }

    fn ready(&mut self, at_ns: u64, task: TaskId, deadline_ns: u64) {
        let begins_ns = self.begins_ns;
        let Some(actor) = self.actors.get_mut(&task) else {
            return;
        };
        actor.is_throttled = false;
        let (Some(job), priority) = (actor.open, actor.priority) else {
            return;
        };
        let deadline = Instant::from_ns(deadline_ns.saturating_sub(begins_ns));
        self.record(
            at_ns,
            Happening::Ready {
                job,
                deadline,
                priority,
            },
        );
    }

    fn spend(&mut self, at_ns: u64, task: TaskId) {
        let Some(actor) = self.actors.get_mut(&task) else {
            return;
        };
        let Some(job) = actor.open else { return };
        if std::mem::replace(&mut actor.is_throttled, true) {
            return;
        }
        self.record(at_ns, Happening::BudgetSpent { job });
        self.record(
            at_ns,
            Happening::NotReady {
                job,
                reason: NotReadyReason::Throttled,
            },
        );
    }

    fn finish(&mut self, at_ns: u64, task: TaskId) {
        let Some(actor) = self.actors.get_mut(&task) else {
            return;
        };
        if let Some(job) = actor.open.take() {
            self.record(at_ns, Happening::Completed { job });
        }
    }

    fn switch(&mut self, at_ns: u64, cpu: Option<CpuId>, to: Option<TaskId>) {
        let Some(cpu) = cpu else { return };
        let to = to.and_then(|task| self.actors.get(&task)?.open);
        let from = self.running.remove(&cpu);
        if let Some(job) = to {
            self.running.insert(cpu, job);
        }
        if from != to {
            self.record(at_ns, Happening::Switched { cpu, from, to });
        }
    }

    fn bind(&mut self, at_ns: u64, task: TaskId, cpus: &CpuSet) {
        let id = self.actors[&task].id;
        if let Some(affinity) = Affinity::new(*cpus) {
            let affinity = Box::new(affinity);
            self.record(at_ns, Happening::AffinitySet { task: id, affinity });
        }
    }

    fn of_cpu(&mut self, fact: &Fact) {
        let Some(cpu) = fact.cpu else { return };
        let what = match fact.what {
            FactKind::CpuLost { why } => match why {
                Absence::Offline => Happening::CpuOffline { cpu },
                Absence::Taken => Happening::CpuTaken { cpu },
                Absence::Background => Happening::BackgroundStarted { cpu },
            },
            FactKind::CpuBack { why } => match why {
                Absence::Offline => Happening::CpuOnline { cpu },
                Absence::Taken => Happening::CpuReturned { cpu },
                Absence::Background => Happening::BackgroundEnded { cpu },
            },
            _ => return,
        };
        self.record(fact.at_ns, what);
    }
}
