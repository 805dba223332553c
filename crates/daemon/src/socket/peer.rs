//! Who makes a call, and what answers it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use shiftwork_client::{Answer, Call, Error};
use shiftwork_live::{PeerCredentials, peer_process};

/// What answers calls.
pub trait Service {
    /// Does what the peer asks, or says why not. Must not wait for anything.
    ///
    /// # Errors
    /// Whatever the interface has for what is wrong.
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error>;
}

/// Who makes a call: the process that connected, as it was when it did. It may have given its
/// connection to another one, or have ended; whoever acts on its behalf asks for [`Self::descriptor`].
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The process; `None` if it lives in another PID namespace, where nobody here can tell it.
    pub process: Option<u32>,
    /// Its effective user.
    pub user: u32,
    /// Its effective group.
    pub group: u32,
    socket: Option<BorrowedFd<'a>>,
}

impl<'a> Peer<'a> {
    /// Who connected to this socket; without one, there is nobody to have a descriptor of.
    pub const fn new(credentials: PeerCredentials, socket: Option<BorrowedFd<'a>>) -> Self {
        Self {
            process: credentials.process,
            user: credentials.user,
            group: credentials.group,
            socket,
        }
    }

    /// A descriptor that stands for the process even once another one has its number. It can be read
    /// (as poll(2) has it) once the process has ended: then what `/proc` says of the number is of no
    /// use, so look there first and here afterwards.
    ///
    /// # Errors
    /// If the process is gone and forgotten, or the kernel is older than 6.5.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        peer_process(self.socket.ok_or(io::ErrorKind::NotConnected)?)
    }
}
