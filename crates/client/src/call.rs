//! The methods of the interface: their parameters and results.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shiftwork_model::{Instant, Span};

use crate::apply::{Applied, Apply};
use crate::error::Error;
use crate::nanoseconds;
use crate::reservation::Reservation;
use crate::state::Status;

/// Reserves CPU time for a thread of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admit {
    /// The name of the task.
    pub name: String,
    /// The thread; by default the main thread of the caller's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The reservation.
    pub reservation: Reservation,
}

/// Result of [`Admit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// The number of the new task.
    pub task: u32,
    /// The guarantee, as `shiftwork analyze` names it.
    pub guarantee: String,
}

/// Replaces the reservation of a task of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The task.
    pub task: u32,
    /// Its new reservation.
    pub reservation: Reservation,
}

/// Result of [`Change`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The new guarantee.
    pub guarantee: String,
}

/// Ends a reservation of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismiss {
    /// The task.
    pub task: u32,
}

/// Result of [`Dismiss`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissed {}

/// Requests the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetStatus {}

/// Result of [`GetStatus`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GotStatus {
    /// The status.
    pub status: Status,
}

/// Observes a thread of the caller without a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observe {
    /// The thread; by default the main thread of the caller's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
}

/// Result of [`Observe`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observing {
    /// The number of the observation.
    pub task: u32,
}

/// Ends an observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndObservation {
    /// The number from [`Observing`].
    pub task: u32,
}

/// Result of an observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Length of the observation.
    #[serde(with = "nanoseconds::span")]
    pub observed: Span,
    /// Number of completed jobs. A job lasts from waking up to blocking.
    pub jobs: u64,
    /// Median of the jobs' CPU time.
    #[serde(with = "nanoseconds::span")]
    pub cost_p50: Span,
    /// 99th percentile of the jobs' CPU time.
    #[serde(with = "nanoseconds::span")]
    pub cost_p99: Span,
    /// Maximum of the jobs' CPU time.
    #[serde(with = "nanoseconds::span")]
    pub cost_max: Span,
    /// Minimum time from one wake-up to the next.
    #[serde(with = "nanoseconds::span")]
    pub period_min: Span,
    /// Median of these times.
    #[serde(with = "nanoseconds::span")]
    pub period_p50: Span,
    /// CPU time of all jobs.
    #[serde(with = "nanoseconds::span")]
    pub ran: Span,
}

/// Result of [`EndObservation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationEnded {
    /// The result.
    pub observation: Observation,
}

/// Requests the recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GetRecord {
    /// Length of the requested part in seconds before now; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Result of [`GetRecord`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GotRecord {
    /// A Perfetto trace.
    #[serde(with = "crate::base64")]
    pub record: Vec<u8>,
    /// Where recordings of missed deadlines are kept; absent if that is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Requests explanations of missed deadlines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explain {
    /// Number of misses, the last ones; the daemon has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// Result of [`Explain`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// One text per miss, the newest last.
    pub explanations: Vec<String>,
}

/// Requests the missed deadlines of a task that were explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetMisses {
    /// The number of the task.
    pub task: u32,
    /// Number of misses, the last ones; the daemon has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// Result of [`GetMisses`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GotMisses {
    /// The newest last.
    pub misses: Vec<Miss>,
}

/// A missed deadline that was explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// The number of the job.
    pub job: u64,
    /// Its deadline, on the monotonic clock.
    #[serde(with = "nanoseconds::instant")]
    pub due: Instant,
    /// Its tardiness; a lower bound if it had not ended when this was explained.
    #[serde(with = "nanoseconds::span")]
    pub tardiness: Span,
    /// Whether it had ended by then.
    pub ended: bool,
    /// The cause in a few words: `overrun of hog`.
    pub cause: String,
    /// The whole explanation, as [`Explain`] returns it.
    pub text: String,
}

/// A method with its parameters; serializes to the message that calls it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "method", content = "parameters")]
#[allow(
    missing_docs,
    reason = "the types of the parameters have the documentation"
)]
pub enum Call {
    #[serde(rename = "org.shiftwork.Agent.Admit")]
    Admit(Admit),
    #[serde(rename = "org.shiftwork.Agent.Change")]
    Change(Change),
    #[serde(rename = "org.shiftwork.Agent.Dismiss")]
    Dismiss(Dismiss),
    #[serde(rename = "org.shiftwork.Agent.Apply")]
    Apply(Apply),
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
    #[serde(rename = "org.shiftwork.Agent.GetMisses")]
    GetMisses(GetMisses),
}

/// The result of a method; serializes to the parameters of the reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each is named as its method")]
pub enum Answer {
    Admit(Admitted),
    Change(Changed),
    Dismiss(Dismissed),
    Apply(Applied),
    GetStatus(GotStatus),
    Observe(Observing),
    EndObservation(ObservationEnded),
    GetRecord(GotRecord),
    Explain(Explained),
    GetMisses(GotMisses),
}

/// Why a message is not a call of this interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The interface does not have the method.
    Method,
    /// The parameters do not match the method: always [`Error::Invalid`].
    Parameters(Error),
}

impl Call {
    /// How many calls it counts as: as many as do the same without [`Apply`].
    pub fn weight(&self) -> usize {
        match self {
            Self::Apply(apply) => apply.steps.len().clamp(1, Apply::STEPS_MAX),
            _ => 1,
        }
    }

    /// The call of `method`, which is without the name of the interface, with these parameters.
    ///
    /// An unknown parameter is refused: otherwise a misspelt one would have no effect.
    ///
    /// # Errors
    /// If the method does not exist, or with the path of the first invalid parameter.
    pub fn read(method: &str, parameters: Value) -> Result<Self, CallError> {
        match method {
            "Admit" => read(parameters).map(Self::Admit),
            "Change" => read(parameters).map(Self::Change),
            "Dismiss" => read(parameters).map(Self::Dismiss),
            "Apply" => read(parameters).map(Self::Apply),
            "GetStatus" => read(parameters).map(Self::GetStatus),
            "Observe" => read(parameters).map(Self::Observe),
            "EndObservation" => read(parameters).map(Self::EndObservation),
            "GetRecord" => read(parameters).map(Self::GetRecord),
            "Explain" => read(parameters).map(Self::Explain),
            "GetMisses" => read(parameters).map(Self::GetMisses),
            _ => return Err(CallError::Method),
        }
        .map_err(CallError::Parameters)
    }
}

fn read<T: DeserializeOwned>(parameters: Value) -> Result<T, Error> {
    if !parameters.is_object() {
        // Derived deserializers would also accept a list of the values.
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
            "is unknown; GetInterfaceDescription returns the known ones",
        )),
        (Ok(call), None) => Ok(call),
    }
}

/// The path of a value; "parameters" for all of them.
fn place(path: &serde_path_to_error::Path) -> String {
    let known = path
        .iter()
        .filter(|segment| !matches!(segment, serde_path_to_error::Segment::Unknown))
        .map(|segment| match segment {
            // The path of the third step is `steps.2`.
            serde_path_to_error::Segment::Seq { index } => index.to_string(),
            other => other.to_string(),
        })
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
