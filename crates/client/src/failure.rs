//! Why a call failed, as the user is informed of it.

use core::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, ServiceError};
use crate::socket::{SOCKET_VARIABLE, TIMEOUT};

/// Why a call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The daemon returned an error.
    Agent(Error),
    /// The daemon does not implement the method.
    Service(ServiceError),
    /// No daemon listens at the socket.
    NoAgent {
        /// Its path.
        socket: PathBuf,
    },
    /// The caller has no permission to connect.
    NotPermitted {
        /// The path of the socket.
        socket: PathBuf,
        /// The group that has the permission, by name or else by number; absent if the folder of the socket is not
        /// accessible.
        group: Option<String>,
    },
    /// The daemon did not accept or answer the call within [`crate::Client::TIMEOUT`].
    Silent {
        /// The path of its socket.
        socket: PathBuf,
    },
    /// The connection broke; the call may have been carried out or not.
    Lost {
        /// The path of the socket.
        socket: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The reply is not valid for the call.
    Garbled {
        /// The path of the socket.
        socket: PathBuf,
        /// Why it is invalid.
        reason: String,
    },
    /// The task belongs to another thread; no call was made.
    OtherThread {
        /// The thread that it belongs to.
        thread: u32,
    },
}

impl Failure {
    /// The failure to connect to this socket.
    pub(crate) fn of_connecting(socket: &Path, error: io::Error) -> Self {
        let socket_path = socket.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::NoAgent {
                socket: socket_path,
            },
            io::ErrorKind::PermissionDenied => Self::NotPermitted {
                socket: socket_path,
                group: group_of(socket),
            },
            _ => Self::Lost {
                socket: socket_path,
                error,
            },
        }
    }
}

/// The name of the group of a file, its number if it has no name in `/etc/group`. `None` if the file is not accessible.
fn group_of(file: &Path) -> Option<String> {
    let group = file.metadata().ok()?.gid();
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    Some(name_in(&groups, group).unwrap_or_else(|| group.to_string()))
}

/// The name of a group in a text like `/etc/group`.
fn name_in(groups: &str, group: u32) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(group)).then(|| name.to_owned())
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Agent(error) => error.fmt(f),
            Self::Service(error) => write!(
                f,
                "the daemon {error}; is it of the same version as this program?"
            ),
            Self::NoAgent { socket } => write!(
                f,
                "no daemon listens at {}: start it with `systemctl start shiftwork` or `shiftwork daemon`, \
                 or name its socket in {SOCKET_VARIABLE}",
                socket.display()
            ),
            Self::NotPermitted {
                socket,
                group: Some(group),
            } => write!(
                f,
                "no permission for {}: it requires membership in group `{group}`; \
                 join it with `sudo usermod --append --groups {group} $USER` and log in again",
                socket.display()
            ),
            Self::NotPermitted {
                socket,
                group: None,
            } => write!(
                f,
                "no permission for the folder of {}; the administrator of the daemon can grant it",
                socket.display()
            ),
            Self::Silent { socket } => write!(
                f,
                "the daemon at {} has not answered for {} s; `systemctl status shiftwork` shows its state",
                socket.display(),
                TIMEOUT.as_secs()
            ),
            Self::Lost { socket, error } => write!(
                f,
                "the connection to the daemon at {} is lost: {error}; connect again and check the status, \
                 since the call may have been carried out",
                socket.display()
            ),
            Self::Garbled { socket, reason } => write!(
                f,
                "the service at {} is not a daemon of this version: {reason}",
                socket.display()
            ),
            Self::OtherThread { thread } => write!(
                f,
                "the task belongs to thread {thread} and only that thread may use it; each thread may have a task of its own"
            ),
        }
    }
}

impl core::error::Error for Failure {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Lost { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_group_is_found() {
        let groups = "root:x:0:\nshiftwork:x:987:ada,grace\n\nodd\n+::12:\n";
        assert_eq!(name_in(groups, 0).as_deref(), Some("root"));
        assert_eq!(name_in(groups, 987).as_deref(), Some("shiftwork"));
        assert_eq!(name_in(groups, 98), None);
    }

    #[test]
    fn messages_name_socket_and_remedy() {
        let socket = PathBuf::from("/run/x");
        let texts = [
            (
                Failure::of_connecting(&socket, io::ErrorKind::ConnectionRefused.into()),
                "no daemon listens at /run/x: start it with `systemctl start shiftwork` or \
                 `shiftwork daemon`, or name its socket in SHIFTWORK_SOCKET",
            ),
            (
                Failure::of_connecting(&socket, io::ErrorKind::PermissionDenied.into()),
                "no permission for the folder of /run/x; the administrator of the daemon can grant it",
            ),
            (
                Failure::NotPermitted {
                    socket: socket.clone(),
                    group: Some("rt".into()),
                },
                "no permission for /run/x: it requires membership in group `rt`; join it with \
                 `sudo usermod --append --groups rt $USER` and log in again",
            ),
            (
                Failure::Silent {
                    socket: socket.clone(),
                },
                "the daemon at /run/x has not answered for 10 s; `systemctl status shiftwork` shows its state",
            ),
            (
                Failure::Garbled {
                    socket,
                    reason: "EOF".into(),
                },
                "the service at /run/x is not a daemon of this version: EOF",
            ),
            (
                Failure::Agent(Error::Missing {
                    what: "task 7".into(),
                }),
                "there is no task 7",
            ),
            (
                Failure::OtherThread { thread: 7 },
                "the task belongs to thread 7 and only that thread may use it; each thread may have a task of its own",
            ),
        ];
        for (failure, text) in texts {
            assert_eq!(failure.to_string(), text);
        }
    }
}
