//! The flight recorder: the facts of the last seconds, and what they say of a miss.

mod story;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use shiftwork_live::standing::{Fact, FactKind};
use shiftwork_model::{CpuSet, Instant, Priority, Span, Task, TaskId};
use shiftwork_trace::check::Facts;

use crate::accounts::Miss;

/// However many happen: about 40 MB.
const FACTS_MAX: usize = 500_000;

/// What is kept of misses, the last ones.
const EXPLANATIONS_MAX: usize = 100;

/// A reply has to fit into what a client takes.
const REPLY_MAX: usize = 32 << 20;

/// Remembers facts for some time, and explanations of misses longer.
#[derive(Clone, Debug)]
pub struct Recorder {
    span: Span,
    cpus: CpuSet,
    facts: VecDeque<Fact>,
    /// Who there is, and who there was in the time that is remembered.
    tasks: BTreeMap<TaskId, Known>,
    explanations: VecDeque<String>,
}

/// A task, as explanations name it.
#[derive(Clone, Debug)]
struct Known {
    task: Task,
    priority: Priority,
    /// When it was gone; `None`: it is there.
    gone: Option<Instant>,
}

impl Recorder {
    /// Remembers nothing yet, for this long at most; `cpus` are the agent's.
    pub fn new(span: Span, cpus: CpuSet) -> Self {
        Self {
            span,
            cpus,
            facts: VecDeque::new(),
            tasks: BTreeMap::new(),
            explanations: VecDeque::new(),
        }
    }

    /// The task is there from now on, or is another than before.
    pub fn know(&mut self, id: TaskId, task: Task, priority: Priority) {
        let known = Known {
            task,
            priority,
            gone: None,
        };
        self.tasks.insert(id, known);
    }

    /// The task is gone.
    pub fn forget(&mut self, id: TaskId, now: Instant) {
        if let Some(known) = self.tasks.get_mut(&id) {
            known.gone = Some(now);
        }
    }

    /// Something happened; facts come in the order of their instants.
    pub fn tell(&mut self, fact: Fact) {
        if self.span.is_zero() {
            return;
        }
        if self.facts.len() == FACTS_MAX {
            self.facts.pop_front();
        }
        self.facts.push_back(fact);
    }

    /// It is now so late: what is older than is to be remembered is forgotten.
    pub fn advance(&mut self, now: Instant) {
        let oldest_ns = now.as_ns().saturating_sub(self.span.as_ns());
        let old = self.facts.partition_point(|fact| fact.at_ns < oldest_ns);
        self.facts.drain(..old);
        let oldest = Instant::from_ns(oldest_ns);
        self.tasks
            .retain(|_, known| known.gone.is_none_or(|gone| gone >= oldest));
    }

    /// Why the deadline was missed, as far as is known by now; `facts` is what the policy promises. `None` if the
    /// beginning of that job is not remembered any more.
    ///
    /// # Cost
    /// That of reading all that is remembered, which may be milliseconds.
    pub fn explain(&self, miss: &Miss, facts: &Facts, now: Instant) -> Option<String> {
        story::explain_miss(self, miss, facts, now)
    }

    /// This was found out of a miss.
    pub fn keep(&mut self, explanation: String) {
        if self.explanations.len() == EXPLANATIONS_MAX {
            self.explanations.pop_front();
        }
        self.explanations.push_back(explanation);
    }

    /// The last explanations, the newest last.
    pub fn explanations(&self, count: usize) -> Vec<String> {
        let first = self.explanations.len().saturating_sub(count);
        self.explanations.iter().skip(first).cloned().collect()
    }

    /// What happened since then, one fact a line; of more than a reply can hold the newest.
    pub fn lines(&self, since: Instant) -> String {
        let first = self
            .facts
            .partition_point(|fact| fact.at_ns < since.as_ns());
        let mut lines = Vec::new();
        let mut length = 0;
        for fact in self.facts.iter().skip(first).rev() {
            let line = self.line(fact).to_string();
            length += line.len() + 1;
            if length > REPLY_MAX {
                break;
            }
            lines.push(line);
        }
        let mut text = String::with_capacity(length);
        for line in lines.iter().rev() {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    fn line(&self, fact: &Fact) -> Value {
        let mut line = json!({ "at_ns": fact.at_ns });
        if let Some(id) = fact.task {
            line["task"] = id.index().into();
            if let Some(known) = self.tasks.get(&id) {
                line["name"] = known.task.name.as_str().into();
            }
        }
        if let Some(cpu) = fact.cpu {
            line["cpu"] = cpu.index().into();
        }
        let (what, more) = words(&fact.what);
        line["what"] = what.into();
        if let Some((key, value)) = more {
            line[key] = value;
        }
        line
    }
}

/// A fact in words of JSON: what, and a value with its key where there is one.
fn words(what: &FactKind) -> (&'static str, Option<(&'static str, Value)>) {
    let cpus = |cpus: &CpuSet| Some(("cpus", Value::from(cpus.to_string())));
    match what {
        FactKind::Woken => ("woken", None),
        FactKind::Blocked => ("blocked", None),
        FactKind::Yielded => ("yielded", None),
        FactKind::Spent => ("spent", None),
        FactKind::Replenished { deadline_ns } => {
            ("replenished", Some(("deadline_ns", (*deadline_ns).into())))
        }
        FactKind::Overrun => ("overrun", None),
        FactKind::Ready { deadline_ns } => ("ready", Some(("deadline_ns", (*deadline_ns).into()))),
        FactKind::Assigned => ("assigned", None),
        FactKind::Running => ("running", None),
        FactKind::Stopped { ran } => ("stopped", Some(("ran_ns", ran.as_ns().into()))),
        FactKind::Entered { cpus: some } => ("entered", cpus(some)),
        FactKind::Left => ("left", None),
        FactKind::Affinity { cpus: some } => ("affinity", cpus(some)),
        FactKind::Demoted { asked } => ("demoted", cpus(asked)),
        FactKind::Narrowed { cpus: some } => ("narrowed", some.as_ref().and_then(cpus)),
        FactKind::Prioritized { priority } => {
            ("prioritized", Some(("priority", priority.number().into())))
        }
        FactKind::CpuLost { why } => ("cpu-lost", Some(("why", reason(*why).into()))),
        FactKind::CpuBack { why } => ("cpu-back", Some(("why", reason(*why).into()))),
        _ => ("other", None),
    }
}

fn reason(why: shiftwork_live::standing::Absence) -> &'static str {
    use shiftwork_live::standing::Absence;
    match why {
        Absence::Offline => "offline",
        Absence::Taken => "taken",
        Absence::Background => "background",
    }
}

#[cfg(test)]
mod tests;
