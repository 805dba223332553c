//! Whether a task set may begin, and what is promised to it.

use serde_json::{Value, json};
use shiftwork_analysis::admission::{
    Admitted, Decision, Guarantee, Placement, Terms, Verdict, admit, claims,
};
use shiftwork_model::{Affinity, TaskSet};
use shiftwork_policy::registry::Entry;
use shiftwork_verbs::why_nothing_is_guaranteed;

use crate::failure::Failure;
use crate::json::SCHEMA_VERSION;
use crate::output::Console;

/// What admission says of a task set under a policy.
pub struct Admission {
    /// Under which policy.
    policy: &'static str,
    /// `None` for a policy of which no condition is known.
    decision: Option<Decision>,
}

impl Admission {
    /// Decides on the task set with each task bound to these CPUs.
    pub fn of(entry: &Entry, set: &TaskSet, bound: &[Affinity]) -> Self {
        let terms = Terms::of(entry.name, set);
        Self {
            policy: entry.name,
            decision: terms.map(|terms| admit(set, bound, terms)),
        }
    }

    /// Who decides on requests while the run is on; `None` if nothing is guaranteed anyway.
    pub fn online(&self, entry: &Entry, set: &TaskSet, bound: &[Affinity]) -> Option<Admitted> {
        let terms = Terms::of(entry.name, set)?;
        let cpus = match (terms.placement, bound) {
            // A CPU that is dedicated to interrupts is nobody's.
            (Placement::Global, [first, ..]) => *first.cpus(),
            _ => set.platform.all(),
        };
        let begun = Admitted::begin(cpus, terms, claims(set, bound)).ok();
        begun
            .filter(|_| self.is_let_in())
            .map(|(admitted, _)| admitted)
    }

    /// Whether anything at all is guaranteed.
    pub fn is_let_in(&self) -> bool {
        self.decision
            .as_ref()
            .is_some_and(|it| it.verdict == Verdict::Admitted && it.guarantee != Guarantee::None)
    }

    fn verdict(&self) -> &'static str {
        self.decision
            .as_ref()
            .map_or("refused", |it| it.verdict.name())
    }

    fn guarantee(&self) -> &'static str {
        let guarantee = self.decision.as_ref().map(|it| it.guarantee);
        guarantee.unwrap_or(Guarantee::None).name()
    }

    fn reason(&self) -> &str {
        match &self.decision {
            Some(decision) => &decision.reason,
            None => why_nothing_is_guaranteed(self.policy),
        }
    }

    /// The value of the key `admission`.
    pub fn to_json(&self) -> Value {
        json!({
            "verdict": self.verdict(),
            "guarantee": self.guarantee(),
            "reason": self.reason(),
        })
    }

    /// Says why the task set does not begin, and what would be accepted.
    pub fn refuse(&self, console: &mut Console, entry: &Entry) -> Result<(), Failure> {
        if console.json {
            return console.json_line(&json!({
                "schema_version": SCHEMA_VERSION,
                "policy": entry.name,
                "admission": self.to_json(),
            }));
        }
        console.line(format!(
            "not admitted under {}: {}",
            entry.name,
            self.reason()
        ))?;
        console.line("nothing was run; --best-effort runs it without any guarantee")
    }

    /// Says what is guaranteed, before the run.
    pub fn tell(&self, console: &mut Console) -> Result<(), Failure> {
        if console.json {
            return Ok(());
        }
        let what = match self.is_let_in() {
            true => format!("admitted, guarantee {}", self.guarantee()),
            false => "best effort, no guarantee".to_owned(),
        };
        console.line(format!("{what}: {}", self.reason()))?;
        console.line("")?;
        console.flush()
    }
}
