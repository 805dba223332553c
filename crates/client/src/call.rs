//! The methods of the interface: what each is told, and what it answers.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shiftwork_model::Span;

use crate::error::Error;
use crate::nanoseconds;
use crate::reservation::Reservation;
use crate::state::Status;

/// Reserves time for a thread of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admit {
    /// What to call the task.
    pub name: String,
    /// The thread; absent is the first of the caller's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// What it is to have.
    pub reservation: Reservation,
}

/// A thread was admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// The number of the new task.
    pub task: u32,
    /// What is guaranteed, in the words of `shiftwork analyze`.
    pub guarantee: String,
}

/// Gives a task of the caller another reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The task.
    pub task: u32,
    /// What it is to have from now on.
    pub reservation: Reservation,
}

/// A task has another reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// What is guaranteed now.
    pub guarantee: String,
}

/// Ends a reservation of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismiss {
    /// The task.
    pub task: u32,
}

/// A reservation has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissed {}

/// Asks how everything is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetStatus {}

/// How everything is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GotStatus {
    /// All of it.
    pub status: Status,
}

/// Watches a thread of the caller without reserving anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observe {
    /// The thread; absent is the first of the caller's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
}

/// A thread is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observing {
    /// The number to end it by.
    pub task: u32,
}

/// Ends what [`Observe`] began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndObservation {
    /// The number that [`Observing`] said.
    pub task: u32,
}

/// What was observed of a thread without enforcement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// For how long.
    #[serde(with = "nanoseconds::span")]
    pub observed: Span,
    /// How many jobs ended. A job is what a thread does between waking up and blocking.
    pub jobs: u64,
    /// Half of the jobs took at most so much processor time.
    #[serde(with = "nanoseconds::span")]
    pub cost_p50: Span,
    /// 99% of them did.
    #[serde(with = "nanoseconds::span")]
    pub cost_p99: Span,
    /// All of them did.
    #[serde(with = "nanoseconds::span")]
    pub cost_max: Span,
    /// The shortest time between waking up and the next time.
    #[serde(with = "nanoseconds::span")]
    pub period_min: Span,
    /// Half of these times were at most so long.
    #[serde(with = "nanoseconds::span")]
    pub period_p50: Span,
    /// Processor time of all jobs.
    #[serde(with = "nanoseconds::span")]
    pub ran: Span,
}

/// What was observed, once it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationEnded {
    /// All of it.
    pub observation: Observation,
}

/// Asks for what the agent remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GetRecord {
    /// Of how many seconds before now; absent is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// What the agent remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GotRecord {
    /// NDJSON, one fact a line.
    pub record: String,
}

/// Asks why deadlines were missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explain {
    /// How many of the last misses; absent is the agent's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// Why deadlines were missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// One text a miss, the newest last.
    pub explanations: Vec<String>,
}

/// A method with its parameters; serialized, the message that calls it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "method", content = "parameters")]
#[allow(missing_docs, reason = "each is what its parameters are")]
pub enum Call {
    #[serde(rename = "org.shiftwork.Agent.Admit")]
    Admit(Admit),
    #[serde(rename = "org.shiftwork.Agent.Change")]
    Change(Change),
    #[serde(rename = "org.shiftwork.Agent.Dismiss")]
    Dismiss(Dismiss),
    #[serde(rename = "org.shiftwork.Agent.GetStatus")]
    GetStatus(GetStatus),
    #[serde(rename = "org.shiftwork.Agent.Observe")]
    Observe(Observe),
    #[serde(rename = "org.shiftwork.Agent.EndObservation")]
    EndObservation(EndObservation),
    #[serde(rename = "org.shiftwork.Agent.GetRecord")]
    GetRecord(GetRecord),
    #[serde(rename = "org.shiftwork.Agent.Explain")]
    Explain(Explain),
}

/// What a method answers; serialized, the parameters of the reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each is named as the method that it answers")]
pub enum Answer {
    Admit(Admitted),
    Change(Changed),
    Dismiss(Dismissed),
    GetStatus(GotStatus),
    Observe(Observing),
    EndObservation(ObservationEnded),
    GetRecord(GotRecord),
    Explain(Explained),
}

/// Why something is no call of this interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The interface has no such method.
    Method,
    /// The parameters are not those of the method: always [`Error::Invalid`].
    Parameters(Error),
}

impl Call {
    /// The call of `method`, without the name of the interface, with these parameters.
    ///
    /// A parameter that the method does not have is refused, lest a misspelt one be without effect.
    ///
    /// # Errors
    /// If there is no such method, or by the path of the first parameter that is wrong.
    pub fn read(method: &str, parameters: Value) -> Result<Self, CallError> {
        match method {
            "Admit" => read(parameters).map(Self::Admit),
            "Change" => read(parameters).map(Self::Change),
            "Dismiss" => read(parameters).map(Self::Dismiss),
            "GetStatus" => read(parameters).map(Self::GetStatus),
            "Observe" => read(parameters).map(Self::Observe),
            "EndObservation" => read(parameters).map(Self::EndObservation),
            "GetRecord" => read(parameters).map(Self::GetRecord),
            "Explain" => read(parameters).map(Self::Explain),
            _ => return Err(CallError::Method),
        }
        .map_err(CallError::Parameters)
    }
}

fn read<T: DeserializeOwned>(parameters: Value) -> Result<T, Error> {
    if !parameters.is_object() {
        // What is derived would take a list of the values as well.
        return Err(invalid("parameters", "must be an object of named values"));
    }
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(parameters, &mut track);
    let mut unknown = None;
    let read = serde_ignored::deserialize(tracked, |path| {
        unknown.get_or_insert_with(|| path.to_string());
    });
    match (read, unknown) {
        (Err(error), _) => Err(invalid(place(&track.path()), error)),
        (Ok(_), Some(unknown)) => Err(invalid(
            unknown.replace(".?", ""),
            "is not known here; GetInterfaceDescription tells what is",
        )),
        (Ok(call), None) => Ok(call),
    }
}

/// Where a value is, "parameters" if it is all of them.
fn place(path: &serde_path_to_error::Path) -> String {
    let known = path
        .iter()
        .filter(|segment| !matches!(segment, serde_path_to_error::Segment::Unknown))
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    if known.is_empty() {
        return "parameters".into();
    }
    known.join(".")
}

fn invalid(parameter: impl Into<String>, reason: impl ToString) -> Error {
    Error::Invalid {
        parameter: parameter.into(),
        reason: reason.to_string(),
    }
}
