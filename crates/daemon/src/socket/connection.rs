//! One connection: what came in, what has to go out, and what it waits for.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use shiftwork_client::{Inbox, Reaction, TooLong};
use shiftwork_live::PeerCredentials;
use shiftwork_model::Instant;

use super::peer::Peer;
use super::rate_limits::SocketLimits;

/// How many bytes of answers may be unread before the next call is taken. One answer may be longer: it
/// is the only one then.
const UNREAD_BEFORE_NEXT: usize = 64 << 10;

/// What has taken too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    /// The message that comes in.
    Message,
    /// The peer, to take its answers.
    Reply,
}

/// A connection, from being let in to being closed.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    credentials: PeerCredentials,
    /// The control group of who connected, as it was then.
    group: String,
    inbox: Inbox,
    /// Since when the message that comes in is unfinished.
    unfinished_since: Option<Instant>,
    outbox: Vec<u8>,
    /// How much of `outbox` is gone.
    sent: usize,
    /// Since when nothing of `outbox` went.
    send_blocked_since: Option<Instant>,
    /// Until when nothing is heard.
    paused_until: Option<Instant>,
    /// Nothing comes in any more: the peer has said all, or is not heard any more.
    input_closed: bool,
    /// The peer cannot be reached, or may not any more.
    broken: bool,
    /// What the server waits for.
    interest: EventFlags,
    /// Whether it waits for its turn; the server keeps this up to date.
    pub(super) queued: bool,
    /// How many unread bytes the server has charged its user; it keeps this up to date.
    pub(super) charged: usize,
    /// When the server looks at it next whatever happens; it keeps this up to date.
    pub(super) timer: Option<Instant>,
}

impl Connection {
    pub(super) fn new(
        socket: OwnedFd,
        credentials: PeerCredentials,
        group: String,
        limits: &SocketLimits,
    ) -> Self {
        Self {
            socket,
            credentials,
            group,
            inbox: Inbox::new(limits.message),
            unfinished_since: None,
            outbox: Vec::new(),
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

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn peer(&self) -> Peer<'_> {
        Peer::new(self.credentials, Some(self.socket.as_fd()))
    }

    pub(super) fn user(&self) -> u32 {
        self.credentials.user
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// Bytes of answers that the peer has not taken.
    pub(super) fn unread(&self) -> usize {
        self.outbox.len() - self.sent
    }

    /// Takes what has come in, one piece of it: as long as there is more, the kernel will say so.
    pub(super) fn receive(&mut self, now: Instant) {
        let mut piece = [0; 16 << 10];
        match recv(&self.socket, &mut piece, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.input_closed = true,
            Ok((length, _)) => {
                self.inbox.push(&piece[..length]);
                self.note_unfinished(now);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // What it sent before it broke has been read.
            Err(_) => self.input_closed = true,
        }
    }

    /// The next message if it may be answered now.
    ///
    /// # Errors
    /// If it is too long.
    pub(super) fn next_message(
        &mut self,
        now: Instant,
        limits: &SocketLimits,
    ) -> Result<Option<Vec<u8>>, TooLong> {
        if !self.may_be_answered(now) {
            return Ok(None);
        }
        let message = self.inbox.next_message()?.map(Vec::from);
        if self.inbox.held() == 0 {
            self.inbox = Inbox::new(limits.message);
        }
        self.unfinished_since = None;
        self.note_unfinished(now);
        Ok(message)
    }

    fn note_unfinished(&mut self, now: Instant) {
        if !self.inbox.has_partial() {
            self.unfinished_since = None;
        } else if self.unfinished_since.is_none() {
            self.unfinished_since = Some(now);
        }
    }

    /// Does what follows from a message: its reply goes out as soon as the peer takes it.
    pub(super) fn apply(&mut self, reaction: Reaction, now: Instant) {
        if let Some(reply) = reaction.reply {
            if self.outbox.is_empty() {
                self.outbox = reply;
            } else {
                self.outbox.extend_from_slice(&reply);
            }
            self.send_blocked_since.get_or_insert(now);
            self.send(now);
        }
        if reaction.ends {
            self.close_input();
        }
    }

    /// Sends what the peer takes.
    pub(super) fn send(&mut self, now: Instant) {
        while self.unread() > 0 && !self.broken {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&self.socket, &self.outbox[self.sent..], flags) {
                Ok(length) => {
                    self.sent += length;
                    self.send_blocked_since = Some(now);
                }
                Err(Errno::INTR) => {}
                // The kernel is out of memory for this: later, as if the peer were slow.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return,
                Err(_) => self.broken = true,
            }
        }
        if self.unread() == 0 {
            // Connections keep no memory for what they may want later.
            self.outbox = Vec::new();
            self.sent = 0;
            self.send_blocked_since = None;
        } else if self.sent > self.unread() {
            // Each byte moves once at most for each that went.
            self.outbox.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Nothing is heard until then.
    pub(super) fn pause(&mut self, until: Instant) {
        self.paused_until = Some(until);
    }

    /// Nothing is sent any more, whatever the peer missed.
    pub(super) fn abort(&mut self) {
        self.broken = true;
    }

    /// Nothing is heard any more, and what came in is forgotten; what has to go out goes.
    fn close_input(&mut self) {
        self.input_closed = true;
        self.inbox = Inbox::new(0);
        self.unfinished_since = None;
    }

    /// Whether there is a message that may be answered now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.may_be_answered(now) && self.inbox.has_message()
    }

    fn may_be_answered(&self, now: Instant) -> bool {
        let paused = self.paused_until.is_some_and(|until| until > now);
        !paused && !self.broken && self.unread() < UNREAD_BEFORE_NEXT
    }

    /// What the server has to wait for. Nothing is read while there is a message to answer, so that
    /// what is kept is one message and one piece at most.
    pub(super) fn wanted_interest(&self, now: Instant) -> EventFlags {
        let mut wants = EventFlags::empty();
        let hears = !self.input_closed && !self.inbox.has_message() && self.may_be_answered(now);
        wants.set(EventFlags::IN, hears);
        wants.set(EventFlags::OUT, self.unread() > 0);
        wants
    }

    /// What the server waits for now.
    pub(super) fn interest(&self) -> EventFlags {
        self.interest
    }

    /// The server waits for this from now on.
    pub(super) fn set_interest(&mut self, interest: EventFlags, now: Instant) {
        if (interest - self.interest).contains(EventFlags::IN) {
            // Whoever was not heard has the whole time to go on.
            self.unfinished_since = self.unfinished_since.map(|_| now);
        }
        self.interest = interest;
    }

    /// Whether it has to be closed.
    pub(super) fn is_over(&self) -> bool {
        self.broken || self.input_closed && !self.inbox.has_message() && self.unread() == 0
    }

    /// When it has to be looked at whatever happens.
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

    /// What has taken too long by now. Resting ends by itself.
    pub(super) fn expire(&mut self, now: Instant, limits: &SocketLimits) -> Option<Timeout> {
        self.paused_until = self.paused_until.filter(|&until| until > now);
        let past = |since: Option<Instant>, span| since.is_some_and(|since| since + span <= now);
        if past(self.send_blocked_since, limits.send_timeout) {
            // The kernel tells of room once most of its buffer is free: a slow reader may have made some.
            self.send(now);
        }
        if past(self.send_blocked_since, limits.send_timeout) {
            return Some(Timeout::Reply);
        }
        if !self.interest.contains(EventFlags::IN) {
            // The rest of the message may be there, and was not looked at.
            self.unfinished_since = self.unfinished_since.map(|_| now);
        }
        past(self.unfinished_since, limits.message_timeout).then_some(Timeout::Message)
    }
}
