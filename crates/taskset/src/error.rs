//! The one error of this crate, and the text of every message.

use core::fmt;

use shiftwork_model::{CpuId, CpuSet, ParseCpuSetError, Span};

use crate::place::Place;

/// Why a file was refused, or why task sets cannot be generated. Each message says where, what was
/// found, and what would be accepted; whoever knows the path puts it in front.
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

/// The most characters of a file that a message repeats.
const QUOTED_MAX: usize = 160;

/// What a file says, fit for a message on one line: cut if it is long, and without control
/// characters, which would act on a terminal.
fn short(found: &str) -> String {
    let mut out = String::new();
    for (count, character) in found.chars().enumerate() {
        if count == QUOTED_MAX {
            out.push('…');
            break;
        }
        match character.is_control() {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
}

/// As [`short`], for the text that could not be read as CPUs.
fn short_problem(problem: &ParseCpuSetError) -> String {
    let cut = match problem {
        ParseCpuSetError::Part(part) => ParseCpuSetError::Part(short(part)),
        ParseCpuSetError::Range(part) => ParseCpuSetError::Range(short(part)),
        ParseCpuSetError::TooLarge(part) => ParseCpuSetError::TooLarge(short(part)),
        ParseCpuSetError::Mask(text) => ParseCpuSetError::Mask(short(text)),
        other => other.clone(),
    };
    cut.to_string()
}

/// `a`, `b` or `c`.
fn any_of<T: AsRef<str>>(words: &[T]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("`{}`", word.as_ref()))
        .collect();
    match quoted.as_slice() {
        [] => "nothing".to_string(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// At most this many names are listed in a message.
const NAMES_SHOWN: usize = 12;

/// A short list of names that exist.
fn there_are(kind: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("there are no {kind}");
    }
    let shown = &known[..known.len().min(NAMES_SHOWN)];
    let quoted: Vec<String> = shown
        .iter()
        .map(|name| format!("`{}`", short(name)))
        .collect();
    let more = match known.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the {kind} are {}{more}", quoted.join(", "))
}

impl TasksetError {
    /// Where in the text; `None` if the mistake is in no text.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Syntax { place, .. }
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
            | Self::DuplicateTask { place, .. }
            | Self::UnknownTask { place, .. }
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

    /// Mistakes in how the text is written.
    fn fmt_form(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax {
                format, problem, ..
            } => write!(
                f,
                "this is no {format}: {problem}",
                problem = short(problem)
            ),
            Self::UnknownKey {
                key,
                within,
                accepted,
                ..
            } => write!(
                f,
                "{within} has no key `{key}`; accepted: {}",
                accepted.join(", "),
                key = short(key),
                within = short(within)
            ),
            Self::MissingKey {
                key,
                within,
                example,
                ..
            } => {
                write!(
                    f,
                    "{within} lacks `{key}`; write for instance `{example}`",
                    key = short(key),
                    within = short(within)
                )
            }
            Self::WrongKind {
                key,
                found,
                accepted,
                ..
            } => {
                write!(
                    f,
                    "`{key}` is {found}; write {accepted}",
                    key = short(key),
                    found = short(found)
                )
            }
            Self::NoUnit { key, number, .. } => write!(
                f,
                "`{key}` is the number {number} without a unit; write a duration like \"500us\" \
                 or \"2ms\"",
                key = short(key),
                number = short(number)
            ),
            Self::NoDuration {
                key, text, problem, ..
            } => write!(
                f,
                "`{key}` is \"{text}\", which is no duration ({problem}); write a whole number of \
                 nanoseconds in any unit, like \"500us\" or \"2.5ms\"",
                key = short(key),
                problem = short(problem),
                text = short(text)
            ),
            Self::TooLong { key, text, .. } => write!(
                f,
                "`{key}` is \"{text}\", which is too long; write at most {}ns (146 years)",
                Span::MAX.as_ns(),
                key = short(key),
                text = short(text)
            ),
            Self::Empty { key, accepted, .. } => {
                write!(f, "`{key}` is empty; write {accepted}", key = short(key))
            }
            Self::NotExactlyOne {
                within,
                found,
                accepted,
                ..
            } if found.is_empty() => {
                write!(
                    f,
                    "{within} says nothing; write one of {}",
                    any_of(accepted),
                    within = short(within)
                )
            }
            Self::NotExactlyOne { within, found, .. } => {
                let found = found.iter().map(|key| format!("`{key}`"));
                let found = found.collect::<Vec<_>>().join(" and ");
                write!(
                    f,
                    "{within} has {found}; keep one of them",
                    within = short(within)
                )
            }
            _ => self.fmt_value(f),
        }
    }

    /// Values that are well written and still cannot be.
    fn fmt_value(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { key, .. } => {
                write!(f, "`{key}` is zero; write more than zero", key = short(key))
            }
            Self::OutOfRange {
                key,
                found,
                accepted,
                ..
            } => {
                write!(
                    f,
                    "`{key}` is {found}; write {accepted}",
                    key = short(key),
                    found = short(found)
                )
            }
            Self::NotOneOf {
                key,
                found,
                accepted,
                ..
            } => {
                write!(
                    f,
                    "`{key}` is \"{found}\"; write {}",
                    any_of(accepted),
                    key = short(key),
                    found = short(found)
                )
            }
            Self::CostAboveDeadline {
                task,
                cost,
                deadline,
                ..
            } => write!(
                f,
                "task `{task}` costs {cost} but is due after {deadline}; lower `cost` or raise \
                 `deadline`",
                task = short(task)
            ),
            Self::DuplicateTask { task, first, .. } => write!(
                f,
                "task `{task}` is there already ({first}); give each task its own `name`",
                task = short(task)
            ),
            Self::UnknownTask {
                key, task, known, ..
            } => write!(
                f,
                "`{key}` names the task `{task}`, which does not exist; {}",
                there_are("tasks", known),
                key = short(key),
                task = short(task)
            ),
            Self::ReleaseTooEarly {
                release, earliest, ..
            } => write!(
                f,
                "a release at {release} comes too early; releases ascend and are at least a \
                 period apart: write {earliest} or later, or lower `period`"
            ),
            Self::Impossible { what, accepted } => write!(f, "{what}; {accepted}"),
            _ => self.fmt_cpus(f),
        }
    }

    /// Mistakes about CPUs.
    fn fmt_cpus(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCpuList { key, problem, .. } => write!(
                f,
                "`{key}`: {problem}",
                key = short(key),
                problem = short_problem(problem)
            ),
            Self::UnknownSet {
                key, set, known, ..
            } => write!(
                f,
                "`{key}` is \"{set}\", which is neither a CPU list nor a named set; {}",
                there_are("sets", known),
                key = short(key),
                set = short(set)
            ),
            Self::NoCpus { key, .. } => {
                write!(
                    f,
                    "`{key}` has no CPU; name at least one, like \"0\" or \"0-3\"",
                    key = short(key)
                )
            }
            Self::CpusBeyondPlatform {
                key,
                cpus,
                platform,
                ..
            } => write!(
                f,
                "`{key}` names CPU {cpus}, which the platform does not have; its CPUs are {}",
                CpuSet::first(*platform),
                key = short(key)
            ),
            Self::ClustersOverlap { cpu, .. } => write!(
                f,
                "CPU {cpu} is in two clusters; put every CPU into exactly one"
            ),
            Self::ClustersLeaveOut { cpus, .. } => write!(
                f,
                "CPU {cpus} is in no cluster; put every CPU into exactly one"
            ),
            Self::Host { problem, .. } => write!(
                f,
                "`cpus` is \"host\", but {problem}; write the number of CPUs, like `cpus = 4`",
                problem = short(problem)
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for TasksetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        self.fmt_form(f)
    }
}

impl core::error::Error for TasksetError {}
