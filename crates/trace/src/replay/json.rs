//! The value of the key `replay` of `run --json`.

use serde_json::{Value, json};
use shiftwork_model::JobId;

use super::{Disagreement, Verdict};

impl Verdict {
    /// The value of the key `replay` of `run --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "holds": self.holds(),
            "rule": self.rule.name(),
            "window_ns": self.window.as_ns(),
            "decisions": self.decisions,
            "judged_ns": self.judged.as_ns(),
            "disagreements": self.count,
            "total_ns": self.total.as_ns(),
            "longest_ns": self.longest.as_ns(),
            "stalls": self.stalls,
            "longest_stall_ns": self.longest_stall.as_ns(),
            "intervals": self.disagreements.iter().map(|it| self.interval(it)).collect::<Vec<_>>(),
        })
    }

    fn interval(&self, it: &Disagreement) -> Value {
        let jobs = |jobs: &[JobId]| jobs.iter().map(|job| self.job(*job)).collect::<Vec<_>>();
        json!({
            "kind": it.kind.name(),
            "from_ns": it.from.as_ns(),
            "to_ns": it.to.as_ns(),
            "runs": jobs(&it.runs),
            "waits": jobs(&it.waits),
            "idle_cpu": it.idle.map(|cpu| cpu.index()),
            "what": self.describe(it),
        })
    }

    fn job(&self, job: JobId) -> Value {
        json!({"task": self.tasks.get(job.task.index()), "job": job.number})
    }
}
