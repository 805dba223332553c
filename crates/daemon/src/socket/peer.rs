//! The peer of a connection, and the service that answers its calls.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use shiftwork_client::{Answer, Call, Error};
use shiftwork_live::{PeerCredentials, peer_process};

/// Answers calls.
pub trait Service {
    /// Carries out the call of the peer. Must not block.
    ///
    /// # Errors
    /// Any error of the interface.
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error>;
}

/// The process that connected, with its credentials at that time. It may have passed its connection to another process, or
/// have ended; code that acts on its behalf uses [`Self::descriptor`].
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// Process ID; `None` if it is in another PID namespace and has no ID here.
    pub process: Option<u32>,
    /// Effective user ID.
    pub user: u32,
    /// Effective group ID.
    pub group: u32,
    socket: Option<BorrowedFd<'a>>,
}

impl<'a> Peer<'a> {
    /// The peer with these credentials; without its socket [`Self::descriptor`] fails.
    pub const fn new(credentials: PeerCredentials, socket: Option<BorrowedFd<'a>>) -> Self {
        Self {
            process: credentials.process,
            user: credentials.user,
            group: credentials.group,
            socket,
        }
    }

    /// A pidfd of the process, valid even if its ID is reused. It is readable (poll(2)) once the process has ended, and then
    /// `/proc` may describe another process: read `/proc` first and poll the pidfd afterwards.
    ///
    /// # Errors
    /// If the process has ended and was reaped, or the kernel is older than 6.5.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        peer_process(self.socket.ok_or(io::ErrorKind::NotConnected)?)
    }
}
