//! Why a call brought no answer, in words for whoever made it.

use core::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::client::SOCKET_VARIABLE;
use crate::error::{Error, ServiceError};

/// Why a call brought no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The agent said no.
    Agent(Error),
    /// The agent does not have the method, or not this way.
    Service(ServiceError),
    /// Nobody listens.
    NoAgent {
        /// Where.
        socket: PathBuf,
    },
    /// The socket is for others.
    NotPermitted {
        /// Which.
        socket: PathBuf,
        /// The group that may, by name or else by number; absent if the folder of the socket cannot
        /// be looked into.
        group: Option<String>,
    },
    /// The agent did not take the call, or answer it, within [`crate::Client::TIMEOUT`].
    Silent {
        /// Where.
        socket: PathBuf,
    },
    /// The connection broke; the call may have been carried out or not.
    Lost {
        /// With whom.
        socket: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// What came back is no answer to what was asked.
    Garbled {
        /// From whom.
        socket: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The task is another thread's; nothing was asked.
    OtherThread {
        /// Whose.
        thread: u32,
    },
}

impl Failure {
    /// Why this socket could not be connected to.
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

/// The name of the group that a file belongs to, its number if it has no name in `/etc/group`. `None`
/// if the file cannot be looked at.
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
                "the agent {error}; is it of the same version as this program?"
            ),
            Self::NoAgent { socket } => write!(
                f,
                "no agent listens at {}: start it with `systemctl start shiftwork` or `shiftwork agent`, \
                 or name its socket in {SOCKET_VARIABLE}",
                socket.display()
            ),
            Self::NotPermitted {
                socket,
                group: Some(group),
            } => write!(
                f,
                "no permission for {}: it is for members of group `{group}`; \
                 become one with `sudo usermod --append --groups {group} $USER` and log in again",
                socket.display()
            ),
            Self::NotPermitted {
                socket,
                group: None,
            } => write!(
                f,
                "no permission for the folder of {}; whoever runs the agent may open it",
                socket.display()
            ),
            Self::Silent { socket } => write!(
                f,
                "the agent at {} has not answered for {} s; `systemctl status shiftwork` tells how it is",
                socket.display(),
                crate::Client::TIMEOUT.as_secs()
            ),
            Self::Lost { socket, error } => write!(
                f,
                "the connection to the agent at {} is lost: {error}; connect again and ask for the status, \
                 since the call may have been carried out",
                socket.display()
            ),
            Self::Garbled { socket, reason } => write!(
                f,
                "what answers at {} is not an agent of this version: {reason}",
                socket.display()
            ),
            Self::OtherThread { thread } => write!(
                f,
                "the task is thread {thread}'s, which alone may use it; each thread may be a task of its own"
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
    fn groups_have_their_names() {
        let groups = "root:x:0:\nshiftwork:x:987:ada,grace\n\nodd\n+::12:\n";
        assert_eq!(name_in(groups, 0).as_deref(), Some("root"));
        assert_eq!(name_in(groups, 987).as_deref(), Some("shiftwork"));
        assert_eq!(name_in(groups, 98), None);
    }

    #[test]
    fn each_says_where_and_what_to_do() {
        let socket = PathBuf::from("/run/x");
        let texts = [
            (
                Failure::of_connecting(&socket, io::ErrorKind::ConnectionRefused.into()),
                "no agent listens at /run/x: start it with `systemctl start shiftwork` or \
                 `shiftwork agent`, or name its socket in SHIFTWORK_SOCKET",
            ),
            (
                Failure::of_connecting(&socket, io::ErrorKind::PermissionDenied.into()),
                "no permission for the folder of /run/x; whoever runs the agent may open it",
            ),
            (
                Failure::NotPermitted {
                    socket: socket.clone(),
                    group: Some("rt".into()),
                },
                "no permission for /run/x: it is for members of group `rt`; become one with \
                 `sudo usermod --append --groups rt $USER` and log in again",
            ),
            (
                Failure::Silent {
                    socket: socket.clone(),
                },
                "the agent at /run/x has not answered for 10 s; `systemctl status shiftwork` tells \
                 how it is",
            ),
            (
                Failure::Garbled {
                    socket,
                    reason: "EOF".into(),
                },
                "what answers at /run/x is not an agent of this version: EOF",
            ),
            (
                Failure::Agent(Error::Missing {
                    what: "task 7".into(),
                }),
                "there is no task 7",
            ),
            (
                Failure::OtherThread { thread: 7 },
                "the task is thread 7's, which alone may use it; each thread may be a task of its own",
            ),
        ];
        for (failure, text) in texts {
            assert_eq!(failure.to_string(), text);
        }
    }
}
