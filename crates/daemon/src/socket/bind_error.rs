//! Why the agent cannot listen, in words for whoever starts it.

use core::fmt;
use std::io;
use std::path::PathBuf;

/// The most bytes that the path of the agent's socket may have: the address of a socket has 107, and its
/// file is called something longer at first.
pub(super) const PATH_MAX: usize = 103;

/// Why the agent cannot listen.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// Another agent lives.
    InUse {
        /// Where it listens.
        path: PathBuf,
    },
    /// There is something else than a socket.
    NotASocket {
        /// Where.
        path: PathBuf,
    },
    /// Addresses of sockets are shorter.
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// What systemd handed over is not one Unix socket that listens.
    Inherited {
        /// What is wrong with it.
        error: io::Error,
    },
    /// The system does not let us.
    System {
        /// What could not be done, as "cannot …".
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::InUse { path } => write!(
                f,
                "an agent listens at {} already; `shiftwork status` shows it, and it ends by \
                 `systemctl stop shiftwork` or Ctrl-C",
                path.display()
            ),
            Self::NotASocket { path } => write!(
                f,
                "{} is something else than a socket; move it away or name another path",
                path.display()
            ),
            Self::PathTooLong { path } => write!(
                f,
                "{} is longer than the {PATH_MAX} bytes that the path of a socket may have",
                path.display()
            ),
            Self::Inherited { error } => write!(
                f,
                "what systemd handed over is not one Unix stream socket that listens ({error}): \
                 shiftwork.socket needs one `ListenStream=`"
            ),
            Self::System { what, path, error } => {
                write!(f, "cannot {what} {}: {error}", path.display())
            }
        }
    }
}

impl core::error::Error for BindError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Inherited { error } | Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
