//! The keys of `run --json` that tell of reactions and agreement.

use serde_json::{Value, json};

use super::{Agreement, Disagreement, Finding, JobAgreement, ReactionStatistics, TOLERANCE};

impl Agreement {
    /// The value of the key `agreement` of `run --json`. `tolerance` is [`TOLERANCE`]; `worst` and
    /// `tightest` are null if no job was compared; `disagreements` counts also what
    /// `violations` does not list.
    pub fn to_json(&self) -> Value {
        let job = |job: Option<&JobAgreement>| job.map(|job| self.job_json(job));
        json!({
            "holds": self.holds(),
            "tolerance": TOLERANCE,
            "reaction_ns": self.reaction.as_ns(),
            "jobs": self.jobs.len(),
            "near_ties": self.near_ties(),
            "worst": job(self.worst()),
            "tightest": job(self.tightest()),
            "sets_differed_ns": self.sets_differed.as_ns(),
            "sets_differed_outside_ns": self.sets_differed_outside.as_ns(),
            "disagreements": self.disagreement_count,
            "violations": self.disagreements.iter().map(Disagreement::to_json).collect::<Vec<_>>(),
        })
    }

    fn job_json(&self, job: &JobAgreement) -> Value {
        json!({
            "task": self.tasks.get(job.job.task.index()),
            "job": job.job.number,
            "difference_ns": job.difference.as_ns(),
            "bound_ns": job.bound.as_ns(),
            "preemptions": job.preemptions,
            "reactions": job.reactions,
        })
    }
}

impl Disagreement {
    fn to_json(&self) -> Value {
        let kind = match self.what {
            Finding::Lost => "lost",
            Finding::Extra => "extra",
            Finding::Released { .. } => "released",
            Finding::Finished(_) => "finished",
            Finding::Executed { .. } => "executed",
        };
        json!({
            "at_ns": self.at.as_ns(),
            "task": self.task,
            "job": self.job.number,
            "kind": kind,
            "what": self.to_string(),
        })
    }
}

impl ReactionStatistics {
    /// The value of the key `reaction_ns` of `run --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "min": self.min_ns,
            "p50": self.p50_ns,
            "p99": self.p99_ns,
            "p99_9": self.p99_9_ns,
            "max": self.max_ns,
            "samples": self.samples,
        })
    }
}
