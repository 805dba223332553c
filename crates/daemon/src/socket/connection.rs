//! One connection: its input, its output, and the events that it waits for.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use shiftwork_client::{Error, MessageBuffer, MessageTooLong, Response, error_bytes};
use shiftwork_live::{PeerCredentials, receive_from};
use shiftwork_model::Instant;

use super::peer::Peer;
use super::rate_limits::SocketLimits;

/// Maximum number of unread bytes of replies with which the next call is accepted. A single reply may be longer.
const UNREAD_BEFORE_NEXT: usize = 64 << 10;

/// A timeout of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    /// An incoming message was not completed.
    Message,
    /// The peer did not read its replies.
    Reply,
}

/// A connection, from being accepted to being closed.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    credentials: PeerCredentials,
    /// The user that is charged for it.
    account: u32,
    /// The group of the process that sent the first part of its input.
    sender_group: Option<u32>,
    /// It may have input from before the daemon asked for credentials.
    is_early: bool,
    /// The control group of the peer when it connected.
    group: String,
    receive_buffer: MessageBuffer,
    /// When the incomplete incoming message began.
    unfinished_since: Option<Instant>,
    send_buffer: Vec<u8>,
    /// Number of bytes of `send_buffer` that are sent.
    sent: usize,
    /// Since when no byte of `send_buffer` was sent.
    send_blocked_since: Option<Instant>,
    /// No message is read or answered until then.
    paused_until: Option<Instant>,
    /// No more input: the peer has closed its side, or the server has closed the input.
    input_closed: bool,
    /// No more output: the connection broke or was aborted.
    broken: bool,
    /// Events that epoll watches.
    interest: EventFlags,
    /// Whether it is in the queue; maintained by the server.
    pub(super) queued: bool,
    /// Number of unread bytes that are charged to its user; maintained by the server.
    pub(super) charged: usize,
    /// Its entry among the timers; maintained by the server.
    pub(super) timer: Option<Instant>,
}

impl Connection {
    pub(super) fn new(
        socket: OwnedFd,
        credentials: PeerCredentials,
        account: u32,
        group: String,
        limits: &SocketLimits,
    ) -> Self {
        Self {
            socket,
            credentials,
            account,
            sender_group: None,
            is_early: false,
            group,
            receive_buffer: MessageBuffer::new(limits.message),
            unfinished_since: None,
            send_buffer: Vec::new(),
            sent: 0,
            send_blocked_since: None,
            paused_until: None,
            input_closed: false,
            broken: false,
            interest: EventFlags::empty(),
            queued: false,
            charged: 0,
            timer: None,
        }
    }

    /// The connection was made before the daemon started, and its first input may have no credentials.
    pub(super) fn made_early(self) -> Self {
        Self {
            is_early: true,
            ..self
        }
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn peer(&self) -> Peer<'_> {
        Peer::new(self.credentials, Some(self.socket.as_fd()))
    }

    pub(super) fn account(&self) -> u32 {
        self.account
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// Number of bytes of replies that the peer has not read.
    pub(super) fn unread(&self) -> usize {
        self.send_buffer.len() - self.sent
    }

    /// Reads a part of the input. Epoll is level-triggered and reports the rest again.
    pub(super) fn receive(&mut self, now: Instant) {
        let mut buffer = [0; 16 << 10];
        match receive_from(&self.socket, &mut buffer) {
            Ok((0, _)) => self.input_closed = true,
            Ok((length, sender)) if self.accepts(sender) => {
                self.receive_buffer.push(&buffer[..length]);
                self.note_unfinished(now);
            }
            Ok(_) => {
                let user = self.credentials.user;
                let error = Error::Forbidden {
                    reason: format!(
                        "user {user} made this connection, and a process of another user or group has called; make one \
                         connection for each process"
                    ),
                };
                let response = Response {
                    reply: Some(error_bytes(&error)),
                    closes: true,
                };
                self.apply(response, now);
            }
            Err(error)
                if matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::AGAIN | Errno::INTR)
                ) => {}
            // All input before the error has been read.
            Err(_) => self.input_closed = true,
        }
    }

    /// Whether a process with these credentials may call: one of the user that made the connection, and always of the same
    /// group. They are those at the time of the call, so that a process which gave up privileges, or got the connection
    /// from another one, does not keep them.
    fn accepts(&mut self, sender: Option<PeerCredentials>) -> bool {
        /// As which user the kernel shows a sender without credentials.
        const UNKNOWN: u32 = 65_534;
        sender.is_some_and(|sender| {
            if self.is_early && sender.process.is_none() && sender.user == UNKNOWN {
                return true;
            }
            self.is_early = false;
            let group = *self.sender_group.get_or_insert(sender.group);
            sender.user == self.credentials.user && sender.group == group
        })
    }

    /// The next message, if it may be answered now.
    ///
    /// # Errors
    /// If the message is too long.
    pub(super) fn next_message(
        &mut self,
        now: Instant,
        limits: &SocketLimits,
    ) -> Result<Option<Vec<u8>>, MessageTooLong> {
        if !self.may_be_answered(now) {
            return Ok(None);
        }
        let message = self.receive_buffer.next_message()?.map(Vec::from);
        if self.receive_buffer.held() == 0 {
            self.receive_buffer = MessageBuffer::new(limits.message);
        }
        self.unfinished_since = None;
        self.note_unfinished(now);
        Ok(message)
    }

    fn note_unfinished(&mut self, now: Instant) {
        if !self.receive_buffer.has_partial() {
            self.unfinished_since = None;
        } else if self.unfinished_since.is_none() {
            self.unfinished_since = Some(now);
        }
    }

    /// Queues the reply to a message, and closes the input if the response ends the connection.
    pub(super) fn apply(&mut self, response: Response, now: Instant) {
        if let Some(reply) = response.reply {
            if self.send_buffer.is_empty() {
                self.send_buffer = reply;
            } else {
                self.send_buffer.extend_from_slice(&reply);
            }
            self.send_blocked_since.get_or_insert(now);
            self.send(now);
        }
        if response.closes {
            self.close_input();
        }
    }

    /// Sends as much as the socket accepts.
    pub(super) fn send(&mut self, now: Instant) {
        while self.unread() > 0 && !self.broken {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&self.socket, &self.send_buffer[self.sent..], flags) {
                Ok(length) => {
                    self.sent += length;
                    self.send_blocked_since = Some(now);
                }
                Err(Errno::INTR) => {}
                // The kernel is out of memory: retried later, as for a slow peer.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return,
                Err(_) => self.broken = true,
            }
        }
        if self.unread() == 0 {
            // Idle connections keep no buffers.
            self.send_buffer = Vec::new();
            self.sent = 0;
            self.send_blocked_since = None;
        } else if self.sent > self.unread() {
            // Amortized O(1): at most one byte is moved for each byte sent.
            self.send_buffer.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Reads and answers nothing until then.
    pub(super) fn pause(&mut self, until: Instant) {
        self.paused_until = Some(until);
    }

    /// Sends nothing more, and drops unsent replies.
    pub(super) fn abort(&mut self) {
        self.broken = true;
    }

    /// Reads nothing more and drops unanswered input. Queued replies are still sent.
    fn close_input(&mut self) {
        self.input_closed = true;
        self.receive_buffer = MessageBuffer::new(0);
        self.unfinished_since = None;
    }

    /// Whether there is a message that may be answered now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.may_be_answered(now) && self.receive_buffer.has_message()
    }

    fn may_be_answered(&self, now: Instant) -> bool {
        let paused = self.paused_until.is_some_and(|until| until > now);
        !paused && !self.broken && self.unread() < UNREAD_BEFORE_NEXT
    }

    /// Events that epoll should watch. Nothing is read while there is a message to answer, so that at most one message and
    /// one part of another are buffered.
    pub(super) fn wanted_interest(&self, now: Instant) -> EventFlags {
        let mut wanted = EventFlags::empty();
        let may_read =
            !self.input_closed && !self.receive_buffer.has_message() && self.may_be_answered(now);
        wanted.set(EventFlags::IN, may_read);
        wanted.set(EventFlags::OUT, self.unread() > 0);
        wanted
    }

    /// Events that epoll watches.
    pub(super) fn interest(&self) -> EventFlags {
        self.interest
    }

    /// Epoll watches these events from now on.
    pub(super) fn set_interest(&mut self, interest: EventFlags, now: Instant) {
        if (interest - self.interest).contains(EventFlags::IN) {
            // Reading was suspended: the timeout of the message begins anew.
            self.unfinished_since = self.unfinished_since.map(|_| now);
        }
        self.interest = interest;
    }

    /// Whether it has to be closed.
    pub(super) fn is_over(&self) -> bool {
        self.broken || self.input_closed && !self.receive_buffer.has_message() && self.unread() == 0
    }

    /// When its next timeout or pause ends.
    pub(super) fn next_timeout(&self, limits: &SocketLimits) -> Option<Instant> {
        let unfinished = self
            .unfinished_since
            .map(|since| since + limits.message_timeout);
        let send = self
            .send_blocked_since
            .map(|since| since + limits.send_timeout);
        [unfinished, send, self.paused_until]
            .into_iter()
            .flatten()
            .min()
    }

    /// The timeout that has expired at `now`. Also ends a pause that is over.
    pub(super) fn expire(&mut self, now: Instant, limits: &SocketLimits) -> Option<Timeout> {
        self.paused_until = self.paused_until.filter(|&until| until > now);
        let past = |since: Option<Instant>, span| since.is_some_and(|since| since + span <= now);
        if past(self.send_blocked_since, limits.send_timeout) {
            // Epoll reports free space only once most of the send buffer is free; a slow reader may have freed some.
            self.send(now);
        }
        if past(self.send_blocked_since, limits.send_timeout) {
            return Some(Timeout::Reply);
        }
        if !self.interest.contains(EventFlags::IN) {
            // Reading is suspended: the rest of the message may have arrived already.
            self.unfinished_since = self.unfinished_since.map(|_| now);
        }
        past(self.unfinished_since, limits.message_timeout).then_some(Timeout::Message)
    }
}
