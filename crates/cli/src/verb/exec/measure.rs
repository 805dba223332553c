//! `shiftwork exec --measure`: measures threads without a reservation, of a program with all that it starts or of a running
//! process, and proposes reservations. By the daemon, otherwise by the kernel's trace, otherwise by counters.

mod by_daemon;
mod output;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use shiftwork_client::{Client, socket_path};
use shiftwork_model::Span;
use shiftwork_observe::{
    Measurement, ObserveError, Percentile, ProcessTree, Sampling, TraceSession,
};

use crate::args::ExecArgs;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::verb::init;
use crate::verb::watch::{catch_interrupts, is_interrupted};
use by_daemon::DaemonSession;

pub use output::MeasuredOutput;

/// How often the daemon is given new threads, and the kernel's trace is read.
const INTERVAL: Span = Span::from_ms(20);

/// What measures.
enum Session {
    Daemon(Box<DaemonSession>),
    Trace(Box<TraceSession>),
    Counters(Sampling),
}

/// Measures the program until all that it started has ended, or the thread or process until Ctrl-C.
pub fn measure(args: &ExecArgs, console: &mut Console) -> Result<Answer, Failure> {
    catch_interrupts();
    let mut session = Session::begin(args, console)?;
    let program = launch(&args.command)?;
    while !is_interrupted() {
        thread::sleep(Duration::from_nanos(session.interval().as_ns()));
        if !session.poll()? || args.tid.is_some_and(has_ended) {
            break;
        }
    }
    let mut measurement = session.finish(console)?;
    if let Some(thread) = args.tid {
        measurement.threads.retain(|it| it.id == thread);
    }
    if let Some(mut program) = program {
        // It has ended, or goes on after Ctrl-C.
        let _ = program.try_wait();
    }
    let has_proposal = output::show(&measurement, console)?;
    // The measurement of a running thread regularly ends by Ctrl-C.
    Ok(match is_interrupted() && !args.command.is_empty() {
        true => Answer::Interrupted,
        false => Answer::from_truth(has_proposal),
    })
}

/// The threads of `/proc` are not listed, but found.
fn has_ended(thread: u32) -> bool {
    !Path::new(&format!("/proc/{thread}")).exists()
}

/// Starts the program, if one is to be started. What its processes leave behind at their end becomes a child of this process.
fn launch(command: &[OsString]) -> Result<Option<Child>, Failure> {
    let Some((program, rest)) = command.split_first() else {
        return Ok(None);
    };
    // Without, such processes are measured only if they were found before.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let child = Command::new(program).args(rest).spawn();
    let child = child
        .map_err(|error| Failure::input(format_args!("{}: {error}", Path::new(program).display())));
    child.map(Some)
}

/// The processes to be measured.
fn tree(args: &ExecArgs) -> Result<ProcessTree, ObserveError> {
    match (args.tid, args.pid) {
        (Some(thread), _) => ProcessTree::of_thread(thread),
        (None, Some(process)) => ProcessTree::of(process),
        (None, None) => Ok(ProcessTree::below_this_process()),
    }
}

impl Session {
    fn begin(args: &ExecArgs, console: &Console) -> Result<Self, Failure> {
        let processes = || tree(args).map_err(|error| init::failure(&error));
        let no_daemon = match Client::connect(socket_path()) {
            Ok(client) => {
                let session = DaemonSession::new(client, processes()?, args.tid);
                return Ok(Self::Daemon(Box::new(session)));
            }
            Err(failure) => failure,
        };
        let no_trace = match TraceSession::begin(processes()?) {
            Ok(session) => {
                console.note(format!(
                    "note: measured by the kernel's trace, not by the daemon: {no_daemon}"
                ));
                return Ok(Self::Trace(Box::new(session)));
            }
            Err(error) => error,
        };
        let session = Sampling::begin(processes()?).map_err(|error| init::failure(&error))?;
        console.note(format!(
            "note: costs and periods are mean values, by counters alone; the daemon or the kernel's trace would tell jobs apart\n  \
             no daemon: {no_daemon}\n  no trace: {no_trace}"
        ));
        Ok(Self::Counters(session))
    }

    fn interval(&self) -> Span {
        match self {
            Self::Daemon(_) | Self::Trace(_) => INTERVAL,
            Self::Counters(session) => session.interval(),
        }
    }

    /// Whether any of the processes is still there.
    fn poll(&mut self) -> Result<bool, Failure> {
        match self {
            Self::Daemon(session) => session.poll(),
            Self::Trace(session) => session.poll().map_err(|error| init::failure(&error)),
            Self::Counters(session) => Ok(session.poll()),
        }
    }

    fn finish(self, console: &Console) -> Result<Measurement, Failure> {
        match self {
            Self::Daemon(session) => session.finish(console),
            Self::Trace(session) => {
                let recording = session.finish().map_err(|error| init::failure(&error))?;
                Ok(shiftwork_observe::measure(&recording, Percentile::MAX))
            }
            Self::Counters(session) => Ok(session.finish()),
        }
    }
}
