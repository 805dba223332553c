//! Why the daemon cannot listen.

use core::fmt;
use std::io;
use std::path::PathBuf;

/// Maximum length of the path of the socket, in bytes: an address has room for 107, and the file has a longer temporary
/// name at first.
pub(super) const PATH_MAX: usize = 103;

/// Why the daemon cannot listen.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// Another daemon listens there.
    InUse {
        /// The path of its socket.
        path: PathBuf,
    },
    /// The file exists and is not a socket.
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The path is too long for the address of a socket.
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// The descriptors from systemd are not exactly one listening Unix socket.
    Inherited {
        /// Why.
        error: io::Error,
    },
    /// A system call failed.
    System {
        /// The operation, as in "cannot …".
        what: &'static str,
        /// The file.
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
                "another daemon listens at {}; `shiftwork status` shows it, and `systemctl stop shiftwork` or \
                 Ctrl-C stops it",
                path.display()
            ),
            Self::NotASocket { path } => write!(
                f,
                "{} is not a socket; move it away or name another path",
                path.display()
            ),
            Self::PathTooLong { path } => write!(
                f,
                "{} is longer than {PATH_MAX} bytes, which is the maximum of the path of a socket",
                path.display()
            ),
            Self::Inherited { error } => write!(
                f,
                "systemd did not pass exactly one listening Unix stream socket ({error}): \
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
