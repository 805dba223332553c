//! The result of a replay.

use std::fmt;

use shiftwork_model::{CpuId, Instant, JobId, Span};

/// The rule by which runs of a policy are checked; see [the module](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The running jobs are those that the policy selects.
    SameSet,
    /// No ready job waits while a CPU that it may use is idle or runs a less urgent one.
    WeakInvariant,
    /// No CPU idles while a job waits for it, no job is preempted, the most urgent job starts next.
    NonPreemptive,
    /// No CPU idles while a job waits for it.
    WorkConserving,
    /// CPUs start a task only at quantum boundaries.
    AtBoundaries,
}

impl Rule {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SameSet => "same-set",
            Self::WeakInvariant => "weak-invariant",
            Self::NonPreemptive => "non-preemptive",
            Self::WorkConserving => "work-conserving",
            Self::AtBoundaries => "at-boundaries",
        }
    }

    /// The checked property, to follow "judged by:".
    pub const fn summary(self) -> &'static str {
        match self {
            Self::SameSet => "the set of running jobs is the policy's own",
            Self::WeakInvariant => {
                "no job waits for a CPU that idles or runs a less urgent one (the choice of CPUs is not judged)"
            }
            Self::NonPreemptive => {
                "no job waits for an idle CPU, none is preempted, the most urgent comes next"
            }
            Self::WorkConserving => {
                "no job waits for an idle CPU (which of the ready jobs run is not judged)"
            }
            Self::AtBoundaries => {
                "jobs begin at boundaries of quanta only (which of them is not judged)"
            }
        }
    }
}

/// The kind of a disagreement between the machine and the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisagreementKind {
    /// Other jobs ran than should have.
    Set,
    /// A job that should have run did not, while a CPU that it may use was idle.
    Stall,
    /// A job was released, and the machine did not notice it.
    Unnoticed,
    /// A job was scheduled by another deadline or priority than its own.
    Rank,
}

impl DisagreementKind {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Stall => "stall",
            Self::Unnoticed => "unnoticed",
            Self::Rank => "rank",
        }
    }
}

/// An interval in which the machine deviated from the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The kind of the deviation.
    pub kind: DisagreementKind,
    /// Its start, or the decision that the machine did not follow if that was later.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
    /// The jobs that ran and should not have.
    pub runs: Vec<JobId>,
    /// The jobs that should have run and did not.
    pub waits: Vec<JobId>,
    /// A CPU that was idle meanwhile and could have run one of them.
    pub idle: Option<CpuId>,
}

impl Disagreement {
    /// Its length.
    pub const fn length(&self) -> Span {
        self.to.late_since(self.from)
    }
}

/// The result of the replay of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The rule by which the run was checked.
    pub rule: Rule,
    /// The time that the machine may take to carry out a decision.
    pub window: Span,
    /// The names of the tasks, in the order of the task set.
    pub tasks: Vec<String>,
    /// Number of decisions.
    pub decisions: u64,
    /// The checked time: the run without the windows after decisions.
    pub judged: Span,
    /// The first [`VIOLATIONS_MAX`](crate::check::VIOLATIONS_MAX) disagreements, in the order of time.
    pub disagreements: Vec<Disagreement>,
    /// Number of disagreements, including those that are not listed.
    pub count: u64,
    /// Their total length.
    pub total: Span,
    /// Length of the longest of them.
    pub longest: Span,
    /// Number of stalls and unnoticed releases among them.
    pub stalls: u64,
    /// Length of the longest of these.
    pub longest_stall: Span,
}

impl Verdict {
    /// Whether the machine followed the policy.
    pub const fn holds(&self) -> bool {
        self.count == 0
    }

    /// The text of a disagreement.
    pub fn describe(&self, it: &Disagreement) -> String {
        let jobs = |jobs: &[JobId]| {
            let named = jobs.iter().map(|job| self.name(*job));
            named.collect::<Vec<_>>().join(", ")
        };
        let (waits, runs) = (jobs(&it.waits), jobs(&it.runs));
        let what = match (it.kind, it.idle) {
            (DisagreementKind::Stall, Some(cpu)) => {
                format!("{waits} did not run, and CPU {cpu} was idle")
            }
            (DisagreementKind::Unnoticed, _) => format!("the release of {waits} was not noticed"),
            (DisagreementKind::Rank, _) => {
                format!("{waits} was scheduled by a deadline or priority that is not its own")
            }
            _ if it.runs.is_empty() => format!("{waits} did not run and should have"),
            _ if it.waits.is_empty() => format!("{runs} ran and should not have"),
            _ => format!("{runs} ran, and {waits} should have"),
        };
        match it.kind {
            DisagreementKind::Rank => format!("at {}: {what}", it.from),
            _ => format!("at {} for {}: {what}", it.from, it.length()),
        }
    }

    fn name(&self, job: JobId) -> String {
        let task = self.tasks.get(job.task.index());
        format!("job {} of {}", job.number, task.map_or("?", String::as_str))
    }
}

/// Writes the listed disagreements, one per line.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in &self.disagreements {
            writeln!(f, "{}", self.describe(it))?;
        }
        Ok(())
    }
}
