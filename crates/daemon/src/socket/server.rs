//! The server: a listener, its connections, and the loop that serves them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::epoll::EventFlags;
use rustix::net::{SendFlags, send};
use shiftwork_client::{Call, Error, MessageTooLong, Response, error_bytes, respond};
use shiftwork_live::{ask_for_credentials, peer_credentials};
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
use crate::threads::account_of;

/// The number of the listener in epoll; connections count from 1.
const LISTENER: u64 = 0;

/// Serves the socket of the daemon without blocking: its owner waits until its descriptor ([`AsFd`]) is readable or until
/// [`Self::wake_at`], and then calls [`Self::serve`].
///
/// Invariant, restored by `update` after each change of a connection: it is in the queue at most once (`queued`), has at
/// most one entry in `timers` (`timer`), and epoll watches the events that it wants (`interest`).
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    epoll: Epoll,
    limits: SocketLimits,
    connections: BTreeMap<u64, Connection>,
    /// The number of the last accepted connection.
    last: u64,
    users: Users,
    groups: Groups,
    queue: FairQueue,
    timers: BTreeSet<(Instant, u64)>,
    /// Connections may wait that were made before the daemon took over the socket.
    has_early_connections: bool,
    /// While the listener is not watched: when to watch it again.
    accept_resumes_at: Option<Instant>,
    counters: Counters,
}

impl Server {
    /// Listens at this path, and replaces the file of a dead daemon.
    ///
    /// # Errors
    /// If another daemon listens there, or a system call fails.
    pub fn bind(path: &Path, access: Access, limits: SocketLimits) -> Result<Self, BindError> {
        Self::new(Listener::bind(path, access)?, limits).map_err(|error| BindError::System {
            what: "watch",
            path: path.into(),
            error,
        })
    }

    /// Takes over the listening socket from systemd (socket activation); `None` if there is none.
    ///
    /// # Errors
    /// If systemd passed anything else.
    pub fn inherited(limits: SocketLimits) -> Result<Option<Self>, BindError> {
        let Some(listener) = Listener::inherited()? else {
            return Ok(None);
        };
        let mut server =
            Self::new(listener, limits).map_err(|error| BindError::Inherited { error })?;
        server.has_early_connections = true;
        Ok(Some(server))
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
            has_early_connections: false,
            accept_resumes_at: None,
            counters: Counters::default(),
        })
    }

    /// Counters since the start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Replaces the rate limits of users and control groups.
    pub const fn set_rates(&mut self, user_rate: RateLimit, cgroup_rate: RateLimit) {
        self.limits.user_rate = user_rate;
        self.limits.cgroup_rate = cgroup_rate;
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// When to call [`Self::serve`] even if the descriptor is not readable: [`Instant::ZERO`] is immediately,
    /// [`Instant::NEVER`] never.
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

    /// Handles pending work, at most a bounded part of it, and never blocks. `now` must be monotonic.
    ///
    /// # Errors
    /// If epoll fails. No connection is closed, and the next call may succeed.
    ///
    /// # Cost
    /// At most `limits.calls` calls, `limits.batch` reads and writes, and as many accepted connections.
    pub fn serve(&mut self, now: Instant, service: &mut dyn Service) -> io::Result<()> {
        self.resume_accepting(now);
        self.expire(now);
        for (number, happened) in self.epoll.poll(self.limits.batch)? {
            match number {
                LISTENER => self.accept_pending(now),
                _ => self.transfer(number, happened, now),
            }
        }
        for _ in 0..self.limits.calls {
            let Some(number) = self.queue.pop() else {
                break;
            };
            self.answer_next(number, now, service);
        }
        Ok(())
    }

    /// Accepts waiting connections.
    fn accept_pending(&mut self, now: Instant) {
        for _ in 0..self.limits.batch {
            match self.listener.accept() {
                Ok(Some(socket)) => self.add_connection(socket, now),
                Ok(None) => {
                    self.has_early_connections = false;
                    return;
                }
                // The listener stays readable: if it were still watched the main loop would spin.
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

    /// Watches the listener again after a pause.
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
        // Since Linux 6.16 a connection asks for credentials if the listener did so when it was made.
        if self.has_early_connections && ask_for_credentials(&socket).is_err() {
            return;
        }
        let group = cgroup_of_peer(credentials.process);
        let user = account_of(credentials.process, credentials.user);
        // The group is checked first: calls that it is refused do not count for the user's other groups.
        let permitted = self.groups.call(&group, user, now, &self.limits);
        let entered = permitted.and_then(|()| self.users.connect(user, now, &self.limits));
        if let Err(error) = entered {
            self.counters.rejected += 1;
            reject(&socket, &error);
            return;
        }
        self.counters.accepted += 1;
        self.last += 1;
        let connection = Connection::new(socket, credentials, user, group, &self.limits);
        let connection = match self.has_early_connections {
            true => connection.made_early(),
            false => connection,
        };
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
        let response = match connection.next_message(now, &self.limits) {
            Ok(None) => None,
            Ok(Some(message)) => {
                self.counters.calls += 1;
                let (user, limits) = (connection.account(), &self.limits);
                let of_group = self.groups.call(connection.group(), user, now, limits);
                let permitted = of_group.and_then(|()| self.users.call(user, now, limits));
                let mut is_exhausted = permitted.is_err();
                let (peer, group) = (connection.peer(), connection.group());
                let mut handler = |call: Call| {
                    // The first was counted before the message was read.
                    for _ in 1..call.weight() {
                        let of_group = self.groups.call(group, user, now, limits);
                        let permitted = of_group.and_then(|()| self.users.call(user, now, limits));
                        permitted.inspect_err(|_| is_exhausted = true)?;
                    }
                    service.call(&peer, call)
                };
                let response = respond(&message, permitted.err(), &mut handler);
                if is_exhausted {
                    self.counters.exhausted += 1;
                    connection.pause(now + self.limits.backoff);
                }
                Some(response)
            }
            Err(MessageTooLong { longest }) => Some(Response::invalid_message(format!(
                "is longer than {longest} bytes"
            ))),
        };
        if let Some(response) = response {
            self.counters.closed += u64::from(response.closes);
            connection.apply(response, now);
        }
        self.update(number, now);
    }

    /// Handles expired timers: timeouts, and pauses that are over.
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
                    connection.apply(Response::invalid_message(reason), now);
                }
                None => {}
            }
            self.update(number, now);
        }
    }

    /// Restores the invariant after a change of the connection.
    fn update(&mut self, number: u64, now: Instant) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let unread = connection.unread();
        self.users
            .unread_changed(connection.account(), connection.charged, unread);
        connection.charged = unread;

        let (before, wants) = (connection.interest(), connection.wanted_interest(now));
        match self
            .epoll
            .change(connection.socket(), number, before, wants)
        {
            Ok(()) => connection.set_interest(wants, now),
            // Without epoll the connection would never be served again.
            Err(_) => connection.abort(),
        }
        if connection.is_ready(now) && !connection.queued {
            connection.queued = true;
            self.queue.push(connection.account(), number);
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
        self.users
            .disconnect(connection.account(), connection.charged);
        if let Some(at) = connection.timer {
            self.timers.remove(&(at, number));
        }
        // Closing the descriptor removes it from epoll; a number left in the queue matches no connection.
    }
}

/// Readable when there is work, besides [`Server::wake_at`].
impl AsFd for Server {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Sends the error to a refused connection, if its buffer has space.
fn reject(socket: &OwnedFd, error: &Error) {
    let _ = send(
        socket,
        &error_bytes(error),
        SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
    );
}
