//! A daemon without a kernel: socket and reservation table are real, and a backend without effect accepts everything.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shiftwork_analysis::admission::Guarantee;
use shiftwork_client::{
    self as client, Admitted, Answer, Call, Changed, Dismissed, Error, OwnTask,
};
use shiftwork_daemon::backend::AcceptsAll;
use shiftwork_daemon::clock::now;
use shiftwork_daemon::config::Config;
use shiftwork_daemon::quotas::{Amount, Quota, Quotas};
use shiftwork_daemon::reservation::{Denial, Owner, Reservation};
use shiftwork_daemon::reservation_table::{ReservationTable, Rules};
use shiftwork_daemon::socket::{Access, Peer, Server, Service, SocketLimits};
use shiftwork_daemon::threads;
use shiftwork_model::{CpuSet, OnOverrun, Priority, Span, TaskId};

/// A call that the daemon received, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedCall {
    pub call: Call,
    pub is_granted: bool,
}

struct TableService<'a> {
    table: ReservationTable,
    calls: &'a Mutex<Vec<ReceivedCall>>,
}

impl Service for TableService<'_> {
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error> {
        let answer = self.answer(peer, &call);
        let requested = match &call {
            Call::Admit(request) => Some(request.name.clone()),
            _ => None,
        };
        let is_granted = answer.is_ok();
        self.calls
            .lock()
            .unwrap()
            .push(ReceivedCall { call, is_granted });
        answer.map_err(|denial| match denial {
            Denial::Refused(reason) => Error::Refused {
                reason: self
                    .table
                    .with_names(&reason, peer.user, requested.as_deref()),
            },
            other => error(other),
        })
    }
}

impl TableService<'_> {
    fn answer(&mut self, peer: &Peer<'_>, call: &Call) -> Result<Answer, Denial> {
        self.table.advance(now(), &mut AcceptsAll);
        match call {
            Call::Admit(request) => {
                let found = threads::look_up(request.thread.or(peer.process).unwrap())?;
                let owner = Owner {
                    user: peer.user,
                    group: found.credentials.group,
                    account: found.account,
                    cgroup: found.cgroup,
                };
                let wanted = self.wanted(&request.reservation);
                let (task, guarantee) = self.table.admit(
                    owner,
                    found.thread,
                    &request.name,
                    wanted,
                    &mut AcceptsAll,
                )?;
                Ok(Answer::Admit(Admitted {
                    task: task.index() as u32,
                    guarantee: guarantee.name().to_owned(),
                }))
            }
            Call::Change(request) => {
                let task = TaskId::from_index(request.task as usize);
                let wanted = self.wanted(&request.reservation);
                let guarantee = self.table.change(task, wanted, &mut AcceptsAll)?;
                Ok(Answer::Change(Changed {
                    guarantee: guarantee.name().to_owned(),
                }))
            }
            Call::Dismiss(request) => {
                let task = TaskId::from_index(request.task as usize);
                self.table.dismiss(task, &mut AcceptsAll)?;
                Ok(Answer::Dismiss(Dismissed {}))
            }
            _ => Err(Denial::Broken("not implemented by this test".to_owned())),
        }
    }

    fn wanted(&self, request: &client::Reservation) -> Reservation {
        let cpus = request.cpus.as_ref().map(|cpus| cpus.parse().unwrap());
        Reservation {
            cost: request.cost,
            period: request.period,
            deadline: request.deadline.unwrap_or(request.period),
            cpus: cpus.unwrap_or(self.table.rules().cpus),
            priority: Priority::MOST_URGENT,
            on_overrun: OnOverrun::Throttle,
        }
    }
}

fn error(denial: Denial) -> Error {
    match denial {
        Denial::Refused(reason) => Error::Refused { reason },
        Denial::Forbidden(reason) => Error::Forbidden { reason },
        Denial::Invalid { parameter, reason } => Error::Invalid {
            parameter: parameter.to_owned(),
            reason,
        },
        Denial::Missing(what) => Error::Missing { what },
        Denial::Exhausted(limit) => Error::Exhausted { limit },
        Denial::Broken(reason) => Error::Broken { reason },
    }
}

/// A table with one CPU, of which 0.95 can be reserved.
fn table() -> ReservationTable {
    let amount = Amount {
        tasks: 64,
        share_ppm: 64_000_000,
    };
    let quota = Quota {
        held: amount,
        released: amount,
    };
    ReservationTable::new(Rules {
        cpus: CpuSet::first(1),
        terms: Config::parse("").unwrap().terms,
        guarantee: Guarantee::BoundedTardiness,
        quotas: Quotas {
            user: quota,
            cgroup: quota,
        },
        tasks_max: 64,
    })
}

/// A running daemon; programs find it by the path of its socket.
pub struct TestDaemon {
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

/// Runs a daemon while `programs` runs; returns the received calls, in order, and the result of `programs`.
pub fn with_daemon<T>(programs: impl FnOnce(&TestDaemon) -> T) -> (Vec<ReceivedCall>, T) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("daemon.sock");
    let access = Access {
        mode: 0o600,
        group: None,
    };
    let mut server = Server::bind(&socket, access, SocketLimits::default()).unwrap();
    let calls = Mutex::new(Vec::new());
    let should_stop = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            let table = table();
            let mut service = TableService {
                table,
                calls: &calls,
            };
            while !should_stop.load(Ordering::Relaxed) {
                server.serve(now(), &mut service).unwrap();
                let mut waits = [PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN)];
                let soon = Timespec {
                    tv_sec: 0,
                    tv_nsec: 5_000_000,
                };
                poll(&mut waits, Some(&soon)).unwrap();
            }
        });
        let ends = StopOnDrop(&should_stop);
        let daemon = TestDaemon {
            socket,
            _folder: folder,
        };
        let done = programs(&daemon);
        drop(ends);
        done
    });
    (calls.into_inner().unwrap(), done)
}

/// Stops the daemon also after a panic in a test; otherwise its thread would never be joined.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl TestDaemon {
    /// The path of its socket.
    pub fn socket(&self) -> &std::path::Path {
        &self.socket
    }

    /// Admits the calling thread with this cost and a period of 10 ms.
    pub fn occupy(&self, cost: Span) -> OwnTask {
        let reservation = client::Reservation::new(cost, Span::from_ms(10));
        OwnTask::admit_at(&self.socket, "other", &reservation).unwrap()
    }
}

/// The names of the called methods, with `!` after those that failed.
pub fn methods(calls: &[ReceivedCall]) -> Vec<String> {
    let name = |received: &ReceivedCall| {
        let mark = if received.is_granted { "" } else { "!" };
        let name = match received.call {
            Call::Admit(_) => "Admit",
            Call::Change(_) => "Change",
            Call::Dismiss(_) => "Dismiss",
            _ => "another",
        };
        format!("{name}{mark}")
    };
    calls.iter().map(name).collect()
}
