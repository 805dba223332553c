//! The one error of this crate.

mod message;

use core::fmt;

use shiftwork_model::{CpuId, CpuSet, ParseCpuSetError, Span};

use crate::kind::Kind;
use crate::place::Place;

/// Why a file was refused, or why task sets cannot be generated. Each message says where, what was
/// found, and what would be accepted; the caller, which knows the path, puts it in front.
///
/// Readers of TOML files find all mistakes of a file: [`mistakes`](Self::mistakes) lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the fields are what the messages below call them"
)]
pub enum TasksetError {
    /// The text is no TOML, JSON or XML at all.
    Syntax {
        place: Place,
        format: &'static str,
        problem: String,
    },
    /// A text in the format of other tools, where TOML belongs.
    OtherFormat {
        place: Place,
        format: &'static str,
        tools: &'static str,
    },
    /// Two mistakes or more in one file, ordered by place; none of them is of this variant.
    Several { mistakes: Vec<TasksetError> },
    /// A file of another kind than the one that is read.
    OtherKind {
        place: Place,
        found: Kind,
        wanted: Kind,
    },
    /// A name that the environment of the file refuses: of a policy or test.
    Refused { place: Place, problem: String },
    /// A key that nothing reads, perhaps misspelt.
    UnknownKey {
        place: Place,
        key: String,
        within: String,
        accepted: Vec<&'static str>,
    },
    /// A key without which the rest means nothing.
    MissingKey {
        place: Place,
        key: &'static str,
        within: String,
        example: &'static str,
    },
    /// A value of the wrong kind.
    WrongKind {
        place: Place,
        key: String,
        found: String,
        accepted: &'static str,
    },
    /// A number where a duration with its unit belongs.
    NoUnit {
        place: Place,
        key: String,
        number: String,
    },
    /// A text that is no duration.
    NoDuration {
        place: Place,
        key: String,
        text: String,
        problem: String,
    },
    /// A duration of more than [`Span::MAX`].
    TooLong {
        place: Place,
        key: String,
        text: String,
    },
    /// A duration or number that is zero and must not be.
    Zero { place: Place, key: String },
    /// A value outside its range.
    OutOfRange {
        place: Place,
        key: String,
        found: String,
        accepted: String,
    },
    /// A word that is none of those that are known here.
    NotOneOf {
        place: Place,
        key: String,
        found: String,
        accepted: Vec<String>,
    },
    /// A list or text that must not be empty.
    Empty {
        place: Place,
        key: String,
        accepted: &'static str,
    },
    /// The cost cannot fit before the deadline even on an idle machine.
    CostAboveDeadline {
        place: Place,
        task: String,
        cost: Span,
        deadline: Span,
    },
    /// The cost fits neither before the deadline nor into the period: a later deadline would not help.
    CostAbovePeriod {
        place: Place,
        task: String,
        cost: Span,
        period: Span,
        /// What could be raised instead of a lower cost.
        raise: &'static str,
    },
    /// Two tasks with one name.
    DuplicateTask {
        place: Place,
        task: String,
        first: Place,
    },
    /// A name that no task of the file has.
    UnknownTask {
        place: Place,
        key: String,
        task: String,
        known: Vec<String>,
    },
    /// A name that no resource of the file has.
    UnknownResource {
        place: Place,
        key: String,
        resource: String,
        known: Vec<String>,
    },
    /// Tasks that may wait for each other's mutexes for ever.
    Deadlock {
        place: Place,
        /// Each task may wait for the next, the last for the first.
        locks: Vec<LockWhileHolding>,
    },
    /// A task that locks mutexes and may be throttled while it holds one.
    ThrottledWithLocks {
        place: Place,
        task: String,
        longest: Span,
        cost: Span,
    },
    /// Tasks that trigger one another, each the next, the last the first.
    TriggerCircle { place: Place, tasks: Vec<String> },
    /// A task whose phases trigger one that it is no source of.
    NotTriggeredBy {
        place: Place,
        source: String,
        target: String,
    },
    /// Two chains with one name.
    DuplicateChain {
        place: Place,
        chain: String,
        first: Place,
    },
    /// A chain that passes through a task twice.
    ChainRepeatsTask {
        place: Place,
        chain: String,
        task: String,
    },
    /// A chain of which a latency is wanted, and in which some task does not trigger the next.
    ChainNotTriggered { place: Place, chain: String },
    /// A chain of fewer than two tasks.
    ChainTooShort { place: Place, chain: String },
    /// A text that is no set of CPUs.
    NoCpuList {
        place: Place,
        key: String,
        problem: ParseCpuSetError,
    },
    /// A name that no set of the platform has.
    UnknownSet {
        place: Place,
        key: String,
        set: String,
        known: Vec<String>,
    },
    /// A set of CPUs without a CPU.
    NoCpus { place: Place, key: String },
    /// CPUs that the platform does not have.
    CpusBeyondPlatform {
        place: Place,
        key: String,
        cpus: Box<CpuSet>,
        platform: usize,
    },
    /// A CPU in two clusters.
    ClustersOverlap { place: Place, cpu: CpuId },
    /// CPUs in no cluster.
    ClustersLeaveOut { place: Place, cpus: Box<CpuSet> },
    /// A release that does not follow the one before by at least the period.
    ReleaseTooEarly {
        place: Place,
        release: Span,
        earliest: Span,
    },
    /// Two keys that say the same thing, or none where one is needed.
    NotExactlyOne {
        place: Place,
        within: String,
        found: Vec<&'static str>,
        accepted: Vec<&'static str>,
    },
    /// `cpus = "host"` on a machine that does not say what it has.
    Host { place: Place, problem: String },
    /// Options that no task set can satisfy.
    Impossible { what: String, accepted: String },
}

/// A task that locks a mutex while it holds another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWhileHolding {
    /// The task.
    pub task: String,
    /// The mutex that it holds.
    pub held: String,
    /// The mutex that it locks.
    pub locked: String,
}

impl TasksetError {
    /// One error of all these mistakes, of which there has to be one.
    pub(crate) fn of_all(mut mistakes: Vec<Self>) -> Self {
        match mistakes.len() {
            1 => mistakes.remove(0),
            _ => Self::Several { mistakes },
        }
    }

    /// The mistakes one by one, ordered by place; at least one.
    pub fn mistakes(&self) -> &[Self] {
        match self {
            Self::Several { mistakes } => mistakes,
            one => core::slice::from_ref(one),
        }
    }

    /// The message without the place; of several mistakes, that of the first.
    pub fn detail(&self) -> String {
        self.mistakes().first().map(message::of).unwrap_or_default()
    }

    /// Where in the text, of several mistakes the first; `None` if the mistake is in no text.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Several { mistakes } => mistakes.first()?.place(),
            Self::OtherKind { place, .. }
            | Self::Refused { place, .. }
            | Self::Syntax { place, .. }
            | Self::OtherFormat { place, .. }
            | Self::UnknownKey { place, .. }
            | Self::MissingKey { place, .. }
            | Self::WrongKind { place, .. }
            | Self::NoUnit { place, .. }
            | Self::NoDuration { place, .. }
            | Self::TooLong { place, .. }
            | Self::Zero { place, .. }
            | Self::OutOfRange { place, .. }
            | Self::NotOneOf { place, .. }
            | Self::Empty { place, .. }
            | Self::CostAboveDeadline { place, .. }
            | Self::CostAbovePeriod { place, .. }
            | Self::DuplicateTask { place, .. }
            | Self::UnknownTask { place, .. }
            | Self::UnknownResource { place, .. }
            | Self::Deadlock { place, .. }
            | Self::ThrottledWithLocks { place, .. }
            | Self::TriggerCircle { place, .. }
            | Self::NotTriggeredBy { place, .. }
            | Self::DuplicateChain { place, .. }
            | Self::ChainRepeatsTask { place, .. }
            | Self::ChainNotTriggered { place, .. }
            | Self::ChainTooShort { place, .. }
            | Self::NoCpuList { place, .. }
            | Self::UnknownSet { place, .. }
            | Self::NoCpus { place, .. }
            | Self::CpusBeyondPlatform { place, .. }
            | Self::ClustersOverlap { place, .. }
            | Self::ClustersLeaveOut { place, .. }
            | Self::ReleaseTooEarly { place, .. }
            | Self::NotExactlyOne { place, .. }
            | Self::Host { place, .. } => Some(*place),
            Self::Impossible { .. } => None,
        }
    }
}

impl fmt::Display for TasksetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.mistakes().iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            if let Some(place) = mistake.place() {
                write!(f, "{place}: ")?;
            }
            f.write_str(&mistake.detail())?;
        }
        Ok(())
    }
}

impl core::error::Error for TasksetError {}
