//! What a replay finds.

use std::fmt;

use shiftwork_model::{CpuId, Instant, JobId, Span};

/// By what runs of a policy are judged; see [the module](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The running jobs are those that the policy selects.
    SameSet,
    /// No ready job waits while a CPU that it may use is idle or runs a less urgent one.
    WeakInvariant,
    /// No CPU idles while a job waits for it, no job is preempted, the most urgent comes next.
    NonPreemptive,
    /// No CPU idles while a job waits for it.
    WorkConserving,
    /// CPUs begin with a task only where quanta begin.
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

    /// What was judged, to follow "judged by:".
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

/// In what the machine was not as the policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisagreementKind {
    /// Other jobs ran than should have.
    Set,
    /// A job that should have run did not, while a CPU that it may use was idle.
    Stall,
    /// A job was released, and the machine did not notice.
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

/// An interval in which the machine was not as the policy decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// What was wrong.
    pub kind: DisagreementKind,
    /// When that began, or the decision that the machine did not follow if that was later.
    pub from: Instant,
    /// When it was over.
    pub to: Instant,
    /// The jobs that ran and should not have.
    pub runs: Vec<JobId>,
    /// The jobs that should have run and did not.
    pub waits: Vec<JobId>,
    /// A CPU that idled meanwhile and could have run one of them.
    pub idle: Option<CpuId>,
}

impl Disagreement {
    /// How long it lasted.
    pub const fn length(&self) -> Span {
        self.to.late_since(self.from)
    }
}

/// What a replay finds of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// By what the run was judged.
    pub rule: Rule,
    /// How long the machine may take to carry out a decision.
    pub window: Span,
    /// The names of the tasks, in the order of the task set.
    pub tasks: Vec<String>,
    /// How many decisions there were.
    pub decisions: u64,
    /// For how long the machine was judged: the run without the windows after decisions.
    pub judged: Span,
    /// The first [`VIOLATIONS_MAX`](crate::check::VIOLATIONS_MAX), in the order of time.
    pub disagreements: Vec<Disagreement>,
    /// How many there are, also beyond those listed.
    pub count: u64,
    /// How long they lasted in all.
    pub total: Span,
    /// How long the longest of them lasted.
    pub longest: Span,
    /// How many of them were stalls, or releases that were not noticed.
    pub stalls: u64,
    /// How long the longest of these lasted.
    pub longest_stall: Span,
}

impl Verdict {
    /// Whether the machine did as the policy decides.
    pub const fn holds(&self) -> bool {
        self.count == 0
    }

    /// What a disagreement is about, for people.
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

/// Says all that is listed, a line each.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in &self.disagreements {
            writeln!(f, "{}", self.describe(it))?;
        }
        Ok(())
    }
}
