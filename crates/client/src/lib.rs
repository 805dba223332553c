//! The varlink interface `org.shiftwork.Agent` between programs and the daemon.
//!
//! This crate owns the types of the interface, their encoding, a minimal client, and the calling thread as a task
//! ([`OwnTask`]). It must never make a decision, nor depend on the daemon. Start reading at `org.shiftwork.Agent.varlink`;
//! `call.rs` and `state.rs` have the same in Rust, and a test compares them.

mod apply;
mod base64;
mod call;
mod client;
mod clock;
mod error;
mod failure;
mod message;
mod message_buffer;
mod nanoseconds;
mod own_task;
mod releases;
mod reservation;
mod respond;
mod socket;
mod state;

pub use apply::{Applied, Apply, Cause, Outcome, Step};
pub use call::{
    Admit, Admitted, Answer, Call, CallError, Change, Changed, Dismiss, Dismissed, EndObservation,
    Explain, Explained, GetMisses, GetRecord, GetStatus, GotMisses, GotRecord, GotStatus, Miss,
    Observation, ObservationEnded, Observe, Observing,
};
pub use client::Client;
pub use error::{Error, ServiceError};
pub use failure::Failure;
pub use message::{Request, answer_bytes, error_bytes, request_bytes};
pub use message_buffer::{MessageBuffer, MessageTooLong};
pub use own_task::{OwnTask, calling_thread};
pub use reservation::{OnOverrun, Reservation};
pub use respond::{Response, respond};
pub use socket::{DEFAULT_SOCKET, SOCKET_VARIABLE, socket_path};
pub use state::{Cpu, Room, State, Status, Task};

pub use shiftwork_model::{Instant, Span};

/// The name of the interface; a method's full name is this, a dot, and the method.
pub const INTERFACE: &str = "org.shiftwork.Agent";

/// The description of the interface, as `GetInterfaceDescription` returns it.
pub const DESCRIPTION: &str = include_str!("org.shiftwork.Agent.varlink");

/// Maximum length of a task's name in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The name of the interface that every varlink service implements.
pub const SERVICE_INTERFACE: &str = "org.varlink.service";

/// The description of the interface that every varlink service implements.
///
/// # Source
/// <https://varlink.org/Service>
pub const SERVICE_DESCRIPTION: &str = include_str!("org.varlink.service.varlink");
