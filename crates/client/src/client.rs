//! A connection to the daemon.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{SendFlags, send};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::apply::{Applied, Apply, Step};
use crate::call::{
    Admit, Admitted, Call, Change, Changed, Dismiss, Dismissed, EndObservation, Explain, Explained,
    GetMisses, GetRecord, GetStatus, GotMisses, GotRecord, GotStatus, Miss, Observation,
    ObservationEnded, Observe, Observing,
};
use crate::error::{Error, ServiceError};
use crate::failure::Failure;
use crate::message::{Reply, request_bytes};
use crate::message_buffer::MessageBuffer;
use crate::reservation::Reservation;
use crate::socket;
use crate::state::Status;

/// Maximum length of a reply in bytes. The longest replies are recordings, which the daemon keeps below this.
const ANSWER_MAX: usize = 256 << 20;

/// A connection to the daemon: each method makes one call and waits for the reply.
///
/// A reservation ends with its thread, not with the connection.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    /// `None` after a failure: a late reply could be taken for that of the next call.
    stream: Option<UnixStream>,
    buffer: MessageBuffer,
}

impl Client {
    /// Timeout of a call. The daemon answers within milliseconds.
    pub const TIMEOUT: Duration = socket::TIMEOUT;

    /// Connects to the daemon that listens at this path; mostly that is [`socket_path`](socket::socket_path).
    ///
    /// # Errors
    /// If no daemon listens there, or the caller has no permission.
    pub fn connect(socket: impl AsRef<Path>) -> Result<Self, Failure> {
        let socket = socket.as_ref();
        let stream = UnixStream::connect(socket)
            .and_then(|stream| {
                stream.set_read_timeout(Some(Self::TIMEOUT))?;
                stream.set_write_timeout(Some(Self::TIMEOUT))?;
                Ok(stream)
            })
            .map_err(|error| Failure::of_connecting(socket, error))?;
        Ok(Self {
            socket: socket.to_owned(),
            stream: Some(stream),
            buffer: MessageBuffer::new(ANSWER_MAX),
        })
    }

    /// Reserves CPU time for a thread of this process or of another one of the same user, by default for the main thread of
    /// this process.
    ///
    /// # Errors
    /// If it is not admitted, or the daemon does not answer.
    pub fn admit(
        &mut self,
        name: &str,
        thread: Option<u32>,
        reservation: &Reservation,
    ) -> Result<Admitted, Failure> {
        self.call(&Call::Admit(Admit {
            name: name.into(),
            thread,
            reservation: reservation.clone(),
        }))
    }

    /// Replaces the reservation of a task, and returns the new guarantee.
    ///
    /// # Errors
    /// If it is not admitted, the task does not exist, or the daemon does not answer. The task keeps its reservation.
    pub fn change(&mut self, task: u32, reservation: &Reservation) -> Result<String, Failure> {
        let changed: Changed = self.call(&Call::Change(Change {
            task,
            reservation: reservation.clone(),
        }))?;
        Ok(changed.guarantee)
    }

    /// Ends a reservation. The thread continues as ordinary work.
    ///
    /// # Errors
    /// If the task does not exist, or the daemon does not answer.
    pub fn dismiss(&mut self, task: u32) -> Result<(), Failure> {
        let Dismissed {} = self.call(&Call::Dismiss(Dismiss { task }))?;
        Ok(())
    }

    /// Carries out all steps in their order, or none if one of them fails. With `dry_run` it only says what would become of
    /// them.
    ///
    /// # Errors
    /// If the daemon does not answer. That a step fails is no error, but the answer.
    pub fn apply(&mut self, steps: &[Step], dry_run: bool) -> Result<Applied, Failure> {
        self.call(&Call::Apply(Apply {
            steps: steps.to_vec(),
            dry_run: dry_run.then_some(true),
        }))
    }

    /// The status of the daemon.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub fn status(&mut self) -> Result<Status, Failure> {
        let got: GotStatus = self.call(&Call::GetStatus(GetStatus {}))?;
        Ok(got.status)
    }

    /// Observes a thread, given as for [`Self::admit`], without a reservation; returns the number for
    /// [`Self::end_observation`].
    ///
    /// # Errors
    /// If the thread does not exist, or the daemon does not answer.
    pub fn observe(&mut self, thread: Option<u32>) -> Result<u32, Failure> {
        let observing: Observing = self.call(&Call::Observe(Observe { thread }))?;
        Ok(observing.task)
    }

    /// Ends an observation and returns its result.
    ///
    /// # Errors
    /// If the observation does not exist, or the daemon does not answer.
    pub fn end_observation(&mut self, task: u32) -> Result<Observation, Failure> {
        let ended: ObservationEnded = self.call(&Call::EndObservation(EndObservation { task }))?;
        Ok(ended.observation)
    }

    /// What the daemon recorded in the last `seconds`, all of it if there is no number: a Perfetto trace; and where
    /// recordings of missed deadlines are kept.
    ///
    /// # Errors
    /// If the caller is not root, or the daemon does not answer.
    pub fn record(&mut self, seconds: Option<f64>) -> Result<GotRecord, Failure> {
        self.call(&Call::GetRecord(GetRecord { seconds }))
    }

    /// Explanations of the last `count` missed deadlines, the newest last.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub fn explain(&mut self, count: Option<u32>) -> Result<Vec<String>, Failure> {
        let explained: Explained = self.call(&Call::Explain(Explain { count }))?;
        Ok(explained.explanations)
    }

    /// The last `count` missed deadlines of a task that were explained, the newest last.
    ///
    /// # Errors
    /// If the task does not exist or is not the caller's, or the daemon does not answer.
    pub fn misses(&mut self, task: u32, count: Option<u32>) -> Result<Vec<Miss>, Failure> {
        let got: GotMisses = self.call(&Call::GetMisses(GetMisses { task, count }))?;
        Ok(got.misses)
    }

    fn call<A: DeserializeOwned>(&mut self, call: &Call) -> Result<A, Failure> {
        let reply = self.exchange(&request_bytes(call))?;
        self.answer_in(&reply)
    }

    /// Sends a message and waits for the next reply.
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, Failure> {
        // After a failure the connection is not used again: the next reply could be that of this call.
        let mut stream = self
            .stream
            .take()
            .ok_or_else(|| self.lost(io::ErrorKind::NotConnected.into()))?;
        let sent = send_all(&stream, message);
        // A daemon at its limit of connections sends an error and closes: there may be a reply although sending failed.
        let reply = match (self.receive(&mut stream), sent) {
            (Ok(reply), _) => reply,
            (Err(_), Err(error)) => return Err(self.lost(error)),
            (Err(failure), Ok(())) => return Err(failure),
        };
        self.stream = Some(stream);
        Ok(reply)
    }

    fn receive(&mut self, stream: &mut UnixStream) -> Result<Vec<u8>, Failure> {
        let mut chunk = [0; 64 << 10];
        loop {
            match self.buffer.next_message() {
                Ok(Some(message)) => return Ok(message.to_vec()),
                Ok(None) => {}
                Err(too_long) => {
                    let longest = too_long.longest;
                    return Err(self.garbled(format!("a reply is longer than {longest} bytes")));
                }
            }
            match stream.read(&mut chunk) {
                Ok(0) => return Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.buffer.push(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
    }

    fn answer_in<A: DeserializeOwned>(&self, message: &[u8]) -> Result<A, Failure> {
        let reply: Reply =
            serde_json::from_slice(message).map_err(|error| self.garbled(error.to_string()))?;
        let parameters = reply
            .parameters
            .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let Some(name) = reply.error else {
            return serde_json::from_value(parameters)
                .map_err(|error| self.garbled(error.to_string()));
        };
        let error = serde_json::json!({ "error": name, "parameters": parameters });
        if let Ok(error) = serde_json::from_value::<Error>(error.clone()) {
            return Err(Failure::Agent(error));
        }
        match serde_json::from_value::<ServiceError>(error) {
            Ok(error) => Err(Failure::Service(error)),
            Err(_) => Err(self.garbled(format!("it returns the unknown error `{name}`"))),
        }
    }

    fn lost(&self, error: io::Error) -> Failure {
        let socket = self.socket.clone();
        match error.kind() {
            // The error at a timeout depends on the system.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::Silent { socket },
            _ => Failure::Lost { socket, error },
        }
    }

    fn garbled(&self, reason: String) -> Failure {
        Failure::Garbled {
            socket: self.socket.clone(),
            reason,
        }
    }
}

/// Sends all bytes. If the daemon has closed the connection this is an error, not SIGPIPE.
fn send_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
