//! An agent without a kernel: its socket and its ledger are the real ones, and what they decide is carried out by nobody.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shiftwork_analysis::admission::{Guarantee, Terms};
use shiftwork_client::{
    self as client, Admitted, Answer, Call, Changed, Dismissed, Error, OwnTask,
};
use shiftwork_daemon::hands::Hands;
use shiftwork_daemon::ledger::{Ledger, Rules};
use shiftwork_daemon::limits::{Limits, Quota};
use shiftwork_daemon::reservation::{Denial, Owner, Reservation, Thread};
use shiftwork_daemon::run::now;
use shiftwork_daemon::socket::{Access, Limits as SocketLimits, Peer, Server, Service};
use shiftwork_daemon::threads;
use shiftwork_model::{CpuSet, OnOverrun, Priority, Share, Span, TaskId};

/// Agrees to everything.
struct Nobody;

impl Hands for Nobody {
    fn admit(&mut self, _: TaskId, _: &Thread, _: &Reservation) -> Result<(), Denial> {
        Ok(())
    }

    fn serve_again(&mut self, _: TaskId, _: &Thread, _: &Reservation) -> Result<(), Denial> {
        Ok(())
    }

    fn change(
        &mut self,
        _: TaskId,
        _: &Thread,
        _: &Reservation,
        _: &Reservation,
    ) -> Result<(), Denial> {
        Ok(())
    }

    fn dismiss(&mut self, _: TaskId) {}
}

/// What was asked, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub call: Call,
    pub is_granted: bool,
}

struct Books<'a> {
    ledger: Ledger,
    asked: &'a Mutex<Vec<Asked>>,
}

impl Service for Books<'_> {
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error> {
        let answer = self.answer(peer, &call);
        let is_granted = answer.is_ok();
        self.asked.lock().unwrap().push(Asked { call, is_granted });
        answer.map_err(error)
    }
}

impl Books<'_> {
    fn answer(&mut self, peer: &Peer<'_>, call: &Call) -> Result<Answer, Denial> {
        self.ledger.advance(now(), &mut Nobody);
        match call {
            Call::Admit(asked) => {
                let found = threads::find(asked.thread.or(peer.process).unwrap())?;
                let owner = Owner {
                    user: peer.user,
                    cgroup: found.cgroup,
                };
                let wanted = self.wanted(&asked.reservation);
                let (task, guarantee) =
                    self.ledger
                        .admit(owner, found.thread, &asked.name, wanted, &mut Nobody)?;
                Ok(Answer::Admit(Admitted {
                    task: task.index() as u32,
                    guarantee: guarantee.name().to_owned(),
                }))
            }
            Call::Change(asked) => {
                let task = TaskId::from_index(asked.task as usize);
                let wanted = self.wanted(&asked.reservation);
                let guarantee = self.ledger.change(task, wanted, &mut Nobody)?;
                Ok(Answer::Change(Changed {
                    guarantee: guarantee.name().to_owned(),
                }))
            }
            Call::Dismiss(asked) => {
                let task = TaskId::from_index(asked.task as usize);
                self.ledger.dismiss(task, &mut Nobody)?;
                Ok(Answer::Dismiss(Dismissed {}))
            }
            _ => Err(Denial::Broken("no program here asks for that".to_owned())),
        }
    }

    fn wanted(&self, asked: &client::Reservation) -> Reservation {
        let cpus = asked.cpus.as_ref().map(|cpus| cpus.parse().unwrap());
        Reservation {
            cost: asked.cost,
            period: asked.period,
            deadline: asked.deadline.unwrap_or(asked.period),
            cpus: cpus.unwrap_or(self.ledger.rules().cpus),
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

/// One CPU, of which 0.95 may be reserved.
fn ledger() -> Ledger {
    let quota = Quota {
        tasks: 64,
        share_ppm: 64_000_000,
    };
    Ledger::new(Rules {
        cpus: CpuSet::first(1),
        terms: Terms::of_policy("strong-edf", Share::DEFAULT_RESERVE).unwrap(),
        promising: Guarantee::BoundedTardiness,
        limits: Limits {
            user: quota,
            cgroup: quota,
        },
        tasks_max: 64,
    })
}

/// An agent at work; programs find it by the path of its socket.
pub struct Agent {
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

/// Lets an agent work while programs ask it; returns what they asked, in order, and what `programs` did.
pub fn with_agent<T>(programs: impl FnOnce(&Agent) -> T) -> (Vec<Asked>, T) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    let access = Access {
        mode: 0o600,
        group: None,
    };
    let mut server = Server::bind(&socket, access, SocketLimits::default()).unwrap();
    let asked = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            let ledger = ledger();
            let mut books = Books {
                ledger,
                asked: &asked,
            };
            while !is_over.load(Ordering::Relaxed) {
                server.serve(now(), &mut books).unwrap();
                let mut waits = [PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN)];
                let soon = Timespec {
                    tv_sec: 0,
                    tv_nsec: 5_000_000,
                };
                poll(&mut waits, Some(&soon)).unwrap();
            }
        });
        let ends = EndsIt(&is_over);
        let agent = Agent {
            socket,
            _folder: folder,
        };
        let done = programs(&agent);
        drop(ends);
        done
    });
    (asked.into_inner().unwrap(), done)
}

/// Even a test that fails ends the agent, which nobody would wait for otherwise.
struct EndsIt<'a>(&'a AtomicBool);

impl Drop for EndsIt<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Agent {
    /// Where it listens.
    pub fn socket(&self) -> &std::path::Path {
        &self.socket
    }

    /// A task of the calling thread that has so much of each 10 ms.
    pub fn occupy(&self, cost: Span) -> OwnTask {
        let reservation = client::Reservation::new(cost, Span::from_ms(10));
        OwnTask::admit_at(&self.socket, "other", &reservation).unwrap()
    }
}

/// The names of the methods, with a `!` where they were refused.
pub fn methods(asked: &[Asked]) -> Vec<String> {
    let name = |asked: &Asked| {
        let mark = if asked.is_granted { "" } else { "!" };
        let name = match asked.call {
            Call::Admit(_) => "Admit",
            Call::Change(_) => "Change",
            Call::Dismiss(_) => "Dismiss",
            _ => "another",
        };
        format!("{name}{mark}")
    };
    asked.iter().map(name).collect()
}
