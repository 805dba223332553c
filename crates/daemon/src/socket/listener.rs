//! The listening socket and its file: ownership, permissions, and replacement of the file of a dead daemon.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use shiftwork_live::ask_for_credentials;

use super::bind_error::{BindError, PATH_MAX};

/// Maximum number of connections that wait to be accepted; the kernel limits it to `net.core.somaxconn`.
const BACKLOG: i32 = 4_096;

/// Permissions of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The mode of the file: to connect takes write permission.
    pub mode: u32,
    /// The group of the file; `None`: that of this process.
    pub group: Option<u32>,
}

/// A listening socket. Dropping it removes its file if it created one.
#[derive(Debug)]
pub(super) struct Listener {
    socket: OwnedFd,
    file: Option<Named>,
}

/// The file of a socket.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    /// The inode of the file when it was created.
    inode: u64,
    /// Locked until this process ends, in whatever way.
    _lock: File,
}

impl Listener {
    /// Listens at this path, and replaces the file of a dead daemon.
    ///
    /// The file appears atomically with its final permissions: it is created under a temporary name.
    pub(super) fn bind(path: &Path, access: Access) -> Result<Self, BindError> {
        if path.as_os_str().as_bytes().len() > PATH_MAX {
            return Err(BindError::PathTooLong { path: path.into() });
        }
        let lock = lock(path)?;
        check_not_listening(path)?;
        let temporary = with_suffix(path, TEMPORARY);
        // The lock guards the temporary name too.
        let _ = fs::remove_file(&temporary);
        let made = listen_at(&temporary, access).and_then(|socket| {
            let inode = fs::metadata(&temporary)
                .map_err(system("look at", &temporary))?
                .ino();
            fs::rename(&temporary, path).map_err(system("make", path))?;
            Ok((socket, inode))
        });
        if made.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        let (socket, inode) = made?;
        let file = Some(Named {
            path: path.into(),
            inode,
            _lock: lock,
        });
        Ok(Self { socket, file })
    }

    /// The listening socket from systemd, if the daemon was started by socket activation.
    pub(super) fn inherited() -> Result<Option<Self>, BindError> {
        let mut handed = listenfd::ListenFd::from_env();
        if handed.len() == 0 {
            return Ok(None);
        }
        let error = |error| BindError::Inherited { error };
        if handed.len() > 1 {
            let many = format!("there are {}", handed.len());
            return Err(error(io::Error::other(many)));
        }
        let taken = handed.take_unix_listener(0).map_err(error)?;
        let listener = taken.ok_or_else(|| error(io::ErrorKind::NotFound.into()))?;
        listener.set_nonblocking(true).map_err(error)?;
        ask_for_credentials(&listener).map_err(error)?;
        Ok(Some(Self {
            socket: listener.into(),
            file: None,
        }))
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Accepts the next connection, `None` if there is none.
    ///
    /// # Errors
    /// If this process or the system lacks descriptors or memory.
    pub(super) fn accept(&self) -> io::Result<Option<OwnedFd>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match accept_with(&self.socket, flags) {
            Ok(socket) => Ok(Some(socket)),
            // An aborted connection; epoll reports the next one again.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        // A file of another process at this path stays.
        if fs::symlink_metadata(&file.path).is_ok_and(|now| now.ino() == file.inode) {
            let _ = fs::remove_file(&file.path);
        }
    }
}

/// Suffix of the temporary name of the file; see [`PATH_MAX`].
const TEMPORARY: &str = ".new";

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Excludes other daemons from this path. The lock file is never removed: otherwise two daemons could each lock a file of
/// that name.
fn lock(path: &Path) -> Result<File, BindError> {
    let lock_path = with_suffix(path, ".lock");
    let lock = File::create(&lock_path).map_err(system("make", &lock_path))?;
    match flock(lock.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(BindError::InUse { path: path.into() }),
        Err(error) => Err(system("lock", &lock_path)(error.into())),
    }
}

/// Fails if a process listens there without the lock, as systemd does for socket activation.
fn check_not_listening(path: &Path) -> Result<(), BindError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system("look at", path)(error)),
    };
    if !found.file_type().is_socket() {
        return Err(BindError::NotASocket { path: path.into() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Ok(_) => Err(BindError::InUse { path: path.into() }),
        Err(error) => Err(system("connect to", path)(error)),
    }
}

fn listen_at(path: &Path, access: Access) -> Result<OwnedFd, BindError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let make = || {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    };
    let socket = make().map_err(|error: Errno| system("make", path)(error.into()))?;
    if access.group.is_some() {
        std::os::unix::fs::lchown(path, None, access.group)
            .map_err(system("change the group of", path))?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(access.mode))
        .map_err(system("change the permissions of", path))?;
    ask_for_credentials(&socket).map_err(system("ask for credentials of callers at", path))?;
    // No peer can connect before, under either name.
    listen(&socket, BACKLOG).map_err(|error| system("listen at", path)(error.into()))?;
    Ok(socket)
}

fn system(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BindError {
    let path = path.to_owned();
    move |error| BindError::System { what, path, error }
}
