//! The server: a listener, its connections, and one turn after another.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::epoll::EventFlags;
use rustix::net::{SendFlags, send};
use shiftwork_client::{Error, Reaction, TooLong, error_bytes, react};
use shiftwork_live::peer_credentials;
use shiftwork_model::Instant;

use super::bind_error::BindError;
use super::connection::{Connection, Timeout};
use super::counters::Counters;
use super::epoll::{Epoll, NO_EVENTS};
use super::fair_queue::FairQueue;
use super::groups::{Groups, cgroup_of_peer};
use super::listener::{Access, Listener};
use super::peer::Service;
use super::rate_limits::{RateLimit, SocketLimits};
use super::users::Users;

/// What the kernel says when it speaks of the listener; connections count from 1.
const LISTENER: u64 = 0;

/// Serves the socket of the agent, never waiting for anything: whoever owns it waits for its descriptor
/// ([`AsFd`]) to be readable, or for [`Self::wake_at`], and then calls [`Self::serve`].
///
/// Each connection is in at most one queue of `turns` (`queued`), has one entry of `timers` (`due`), and
/// is watched by the kernel for what it wants (`watched`); `update` makes that so.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    epoll: Epoll,
    limits: SocketLimits,
    connections: BTreeMap<u64, Connection>,
    /// The number of the last that was let in.
    last: u64,
    users: Users,
    groups: Groups,
    queue: FairQueue,
    timers: BTreeSet<(Instant, u64)>,
    /// When the listener is watched again, while it is not.
    accept_resumes_at: Option<Instant>,
    counters: Counters,
}

impl Server {
    /// Listens at this path, in place of a dead agent if there was one.
    ///
    /// # Errors
    /// If an agent listens there already, or the system does not let us.
    pub fn bind(path: &Path, access: Access, limits: SocketLimits) -> Result<Self, BindError> {
        Self::new(Listener::bind(path, access)?, limits).map_err(|error| BindError::System {
            what: "watch",
            path: path.into(),
            error,
        })
    }

    /// Goes on where systemd listens for the agent (socket activation); `None` if it does not.
    ///
    /// # Errors
    /// If what systemd handed over is no such socket.
    pub fn inherited(limits: SocketLimits) -> Result<Option<Self>, BindError> {
        let Some(listener) = Listener::inherited()? else {
            return Ok(None);
        };
        Self::new(listener, limits)
            .map(Some)
            .map_err(|error| BindError::Inherited { error })
    }

    fn new(listener: Listener, limits: SocketLimits) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.change(listener.socket(), LISTENER, NO_EVENTS, EventFlags::IN)?;
        Ok(Self {
            listener,
            epoll,
            limits,
            connections: BTreeMap::new(),
            last: LISTENER,
            users: Users::default(),
            groups: Groups::default(),
            queue: FairQueue::default(),
            timers: BTreeSet::new(),
            accept_resumes_at: None,
            counters: Counters::default(),
        })
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many calls each user, and each control group, may make from now on.
    pub const fn set_rates(&mut self, user_rate: RateLimit, cgroup_rate: RateLimit) {
        self.limits.user_rate = user_rate;
        self.limits.cgroup_rate = cgroup_rate;
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// When to call [`Self::serve`] even if the descriptor is not readable: [`Instant::ZERO`] is at once,
    /// [`Instant::NEVER`] not at all.
    pub fn wake_at(&self) -> Instant {
        if !self.queue.is_empty() {
            return Instant::ZERO;
        }
        let timer = self.timers.first().map(|&(at, _)| at);
        [timer, self.accept_resumes_at]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Instant::NEVER)
    }

    /// Does what there is to do, a bounded part of it if it is much, and never waits. `now` must not go
    /// backwards.
    ///
    /// # Errors
    /// If the kernel does not tell what there is to do. That ends no connection; it may work the next
    /// time.
    ///
    /// # Cost
    /// At most `limits.batch` calls, as many pieces of messages, and as many connections let in.
    pub fn serve(&mut self, now: Instant, service: &mut dyn Service) -> io::Result<()> {
        self.resume_accepting(now);
        self.expire(now);
        for (number, happened) in self.epoll.poll(self.limits.batch)? {
            match number {
                LISTENER => self.accept_pending(now),
                _ => self.transfer(number, happened, now),
            }
        }
        for _ in 0..self.limits.batch {
            let Some(number) = self.queue.pop() else {
                break;
            };
            self.answer_next(number, now, service);
        }
        Ok(())
    }

    /// Lets in who waits.
    fn accept_pending(&mut self, now: Instant) {
        for _ in 0..self.limits.batch {
            match self.listener.accept() {
                Ok(Some(socket)) => self.add_connection(socket, now),
                Ok(None) => return,
                // The listener stays readable: whoever went on watching it would do nothing else.
                Err(_) => {
                    let socket = self.listener.socket();
                    if self
                        .epoll
                        .change(socket, LISTENER, EventFlags::IN, NO_EVENTS)
                        .is_ok()
                    {
                        self.accept_resumes_at = Some(now + self.limits.accept_backoff);
                    }
                    self.counters.accept_failures += 1;
                    return;
                }
            }
        }
    }

    /// Watches the listener again once that may help.
    fn resume_accepting(&mut self, now: Instant) {
        if self.accept_resumes_at.is_none_or(|at| at > now) {
            return;
        }
        let socket = self.listener.socket();
        let watched = self
            .epoll
            .change(socket, LISTENER, NO_EVENTS, EventFlags::IN);
        self.accept_resumes_at = watched.err().map(|_| now + self.limits.accept_backoff);
    }

    fn add_connection(&mut self, socket: OwnedFd, now: Instant) {
        let Ok(credentials) = peer_credentials(&socket) else {
            return;
        };
        let group = cgroup_of_peer(credentials.process);
        let user = credentials.user;
        // The group comes first: what it is refused takes nothing from its user's other groups.
        let permitted = self.groups.call(&group, user, now, &self.limits);
        let entered = permitted.and_then(|()| self.users.connect(user, now, &self.limits));
        if let Err(error) = entered {
            self.counters.rejected += 1;
            reject(&socket, &error);
            return;
        }
        self.counters.accepted += 1;
        self.last += 1;
        let connection = Connection::new(socket, credentials, group, &self.limits);
        self.connections.insert(self.last, connection);
        self.update(self.last, now);
    }

    fn transfer(&mut self, number: u64, happened: EventFlags, now: Instant) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let broke = happened.intersects(EventFlags::HUP | EventFlags::ERR);
        let wanted = connection.interest();
        if wanted.contains(EventFlags::IN) && (broke || happened.contains(EventFlags::IN)) {
            connection.receive(now);
        }
        if wanted.contains(EventFlags::OUT) && (broke || happened.contains(EventFlags::OUT)) {
            connection.send(now);
        }
        self.update(number, now);
    }

    /// Answers the next message of a connection.
    fn answer_next(&mut self, number: u64, now: Instant, service: &mut dyn Service) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.queued = false;
        let reaction = match connection.next_message(now, &self.limits) {
            Ok(None) => None,
            Ok(Some(message)) => {
                self.counters.calls += 1;
                let (user, limits) = (connection.user(), &self.limits);
                let of_group = self.groups.call(connection.group(), user, now, limits);
                let permitted = of_group.and_then(|()| self.users.call(user, now, limits));
                if permitted.is_err() {
                    self.counters.exhausted += 1;
                    connection.pause(now + self.limits.backoff);
                }
                let peer = connection.peer();
                let mut agent = |call| service.call(&peer, call);
                Some(react(&message, permitted.err(), &mut agent))
            }
            Err(TooLong { longest }) => Some(Reaction::to_no_call(format!(
                "is longer than {longest} bytes"
            ))),
        };
        if let Some(reaction) = reaction {
            self.counters.closed += u64::from(reaction.ends);
            connection.apply(reaction, now);
        }
        self.update(number, now);
    }

    /// Ends what has taken too long, and wakes up who has rested.
    fn expire(&mut self, now: Instant) {
        for _ in 0..self.limits.batch {
            let Some(&(at, number)) = self.timers.first().filter(|&&(at, _)| at <= now) else {
                return;
            };
            self.timers.remove(&(at, number));
            let Some(connection) = self.connections.get_mut(&number) else {
                continue;
            };
            connection.timer = None;
            match connection.expire(now, &self.limits) {
                Some(Timeout::Reply) => {
                    self.counters.aborted += 1;
                    connection.abort();
                }
                Some(Timeout::Message) => {
                    self.counters.closed += 1;
                    let reason = format!("does not end within {}", self.limits.message_timeout);
                    connection.apply(Reaction::to_no_call(reason), now);
                }
                None => {}
            }
            self.update(number, now);
        }
    }

    /// Makes so what is kept about a connection, after it changed.
    fn update(&mut self, number: u64, now: Instant) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let unread = connection.unread();
        self.users
            .unread_changed(connection.user(), connection.charged, unread);
        connection.charged = unread;

        let (before, wants) = (connection.interest(), connection.wanted_interest(now));
        match self
            .epoll
            .change(connection.socket(), number, before, wants)
        {
            Ok(()) => connection.set_interest(wants, now),
            // Nobody would ever hear of it again.
            Err(_) => connection.abort(),
        }
        if connection.is_ready(now) && !connection.queued {
            connection.queued = true;
            self.queue.push(connection.user(), number);
        }
        let due = connection.next_timeout(&self.limits);
        if due != connection.timer {
            self.timers.extend(due.map(|at| (at, number)));
            let before = std::mem::replace(&mut connection.timer, due);
            before.map(|at| self.timers.remove(&(at, number)));
        }
        if connection.is_over() {
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else {
            return;
        };
        self.users.disconnect(connection.user(), connection.charged);
        if let Some(at) = connection.timer {
            self.timers.remove(&(at, number));
        }
        // The kernel forgets to watch what is closed; `turns` finds nobody by this number.
    }
}

/// What wakes up whoever waits for something to do, besides [`Server::wake_at`].
impl AsFd for Server {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Says why to somebody who is not let in, if they take it at once.
fn reject(socket: &OwnedFd, error: &Error) {
    let _ = send(
        socket,
        &error_bytes(error),
        SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
    );
}
