//! Where the agent listens: the file of the socket, whose it is, and what a dead agent left behind.

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

use super::bind_error::{BindError, PATH_MAX};

/// How many may wait to be let in; the kernel takes less than that if it is told to
/// (`net.core.somaxconn`).
const WAITING: i32 = 4_096;

/// Who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The permissions of the file: whoever may write to it may connect.
    pub mode: u32,
    /// The group of the file; `None` is that of this process.
    pub group: Option<u32>,
}

/// A socket that listens. When it is dropped, its file goes with it if it has made one.
#[derive(Debug)]
pub(super) struct Listener {
    socket: OwnedFd,
    file: Option<Named>,
}

/// The file of a socket.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    /// Which file it was when it was made.
    inode: u64,
    /// Locked as long as this agent lives, however it dies.
    _lock: File,
}

impl Listener {
    /// Listens there, in place of a dead agent if there was one.
    ///
    /// The file appears with its final permissions, and at once: it is made under another name.
    pub(super) fn bind(path: &Path, access: Access) -> Result<Self, BindError> {
        if path.as_os_str().as_bytes().len() > PATH_MAX {
            return Err(BindError::PathTooLong { path: path.into() });
        }
        let lock = lock(path)?;
        refuse_living(path)?;
        let temporary = with_suffix(path, TEMPORARY);
        // Nobody else uses the name as long as the lock is held.
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

    /// The socket that systemd listens at for the agent, if it started it that way.
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
        Ok(Some(Self {
            socket: listener.into(),
            file: None,
        }))
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Whoever is next, `None` if nobody waits.
    ///
    /// # Errors
    /// If this process has no room for more.
    pub(super) fn accept(&self) -> io::Result<Option<OwnedFd>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match accept_with(&self.socket, flags) {
            Ok(socket) => Ok(Some(socket)),
            // Somebody came and went: whoever is behind them is told by the kernel again.
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        // Whoever replaced the file may keep it.
        if fs::symlink_metadata(&file.path).is_ok_and(|now| now.ino() == file.inode) {
            let _ = fs::remove_file(&file.path);
        }
    }
}

/// What the file of a socket is called until it may be seen; see [`PATH_MAX`].
const TEMPORARY: &str = ".new";

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes sure that no other agent listens there, nor begins to. The file of the lock stays: whoever
/// removed it might let two in.
fn lock(path: &Path) -> Result<File, BindError> {
    let lock_path = with_suffix(path, ".lock");
    let lock = File::create(&lock_path).map_err(system("make", &lock_path))?;
    match flock(lock.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(BindError::InUse { path: path.into() }),
        Err(error) => Err(system("lock", &lock_path)(error.into())),
    }
}

/// Whoever listens without our lock, as systemd may on an agent's behalf, keeps the socket.
fn refuse_living(path: &Path) -> Result<(), BindError> {
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
        Err(error) => Err(system("find out who listens at", path)(error)),
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
    // Only now can anybody connect, by whichever name.
    listen(&socket, WAITING).map_err(|error| system("listen at", path)(error.into()))?;
    Ok(socket)
}

fn system(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BindError {
    let path = path.to_owned();
    move |error| BindError::System { what, path, error }
}
