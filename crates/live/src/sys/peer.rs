//! The peer of a Unix socket, as the kernel recorded it at the connection.

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};

/// Credentials of the process that connected, at the time of the connection; later changes do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The process; `None` if it is not visible to this process (another PID namespace).
    pub process: Option<u32>,
    /// Its effective user.
    pub user: u32,
    /// Its effective group.
    pub group: u32,
}

impl PeerCredentials {
    fn of(found: libc::ucred) -> Self {
        Self {
            process: u32::try_from(found.pid).ok().filter(|&process| process > 0),
            user: found.uid,
            group: found.gid,
        }
    }
}

/// Credentials of the process that connected to this socket.
///
/// # Errors
/// If it is not a connected Unix socket.
pub fn peer_credentials(socket: impl AsFd) -> io::Result<PeerCredentials> {
    // rustix has this, too, but assumes that the process is visible.
    let found: libc::ucred = option(socket, libc::SO_PEERCRED)?;
    Ok(PeerCredentials::of(found))
}

/// A pidfd of the process that connected to this socket: it refers to that process even if another one gets its
/// number. It is readable, as poll(2) defines it, once the process has ended.
///
/// # Errors
/// If it is not a connected Unix socket, if the process has been reaped, or if the kernel is older than 6.5.
pub fn peer_process(socket: impl AsFd) -> io::Result<OwnedFd> {
    let raw: RawFd = option(socket, libc::SO_PEERPIDFD)?;
    #[expect(unsafe_code, reason = "the kernel returns a raw descriptor")]
    // SAFETY: SO_PEERPIDFD has just created this descriptor for the caller; nothing else owns it.
    let process = unsafe { OwnedFd::from_raw_fd(raw) };
    // The kernel sets this itself; not to rely on that costs little.
    fcntl_setfd(&process, FdFlags::CLOEXEC)?;
    Ok(process)
}

/// Receives bytes from this socket without waiting, and the credentials of the process that sent them: its real user and
/// group. Bytes of senders with different credentials are not received together. Descriptors that were sent along are
/// dropped.
///
/// `None`: the socket does not [ask for credentials](ask_for_credentials), or the other end is closed.
///
/// # Errors
/// Those of recvmsg(2).
#[expect(unsafe_code, reason = "rustix assumes that the sender is visible")]
pub fn receive_from(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<PeerCredentials>)> {
    // In words for its alignment.
    let mut control = [0_u64; 8];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all fields of a `msghdr` are pointers and numbers, for which zero is valid.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    // Enough for credentials alone: the kernel closes descriptors that find no room.
    // SAFETY: CMSG_SPACE only computes a number, which is 32 here.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<libc::ucred>() as u32) } as _;
    assert!(header.msg_controllen as usize <= size_of_val(&control));
    // SAFETY: the header names a buffer and a control area with their lengths; both outlive the call.
    let length = unsafe {
        libc::recvmsg(
            socket.as_fd().as_raw_fd(),
            &raw mut header,
            libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC,
        )
    };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has set the length of the control area, which is still there.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    // SAFETY: null, or a header within the control area, which is aligned for it.
    let is_credentials = unsafe { first.as_ref() }.is_some_and(|it| {
        // SAFETY: CMSG_LEN only computes a number.
        let whole = unsafe { libc::CMSG_LEN(size_of::<libc::ucred>() as u32) };
        it.cmsg_level == libc::SOL_SOCKET
            && it.cmsg_type == libc::SCM_CREDENTIALS
            && it.cmsg_len >= whole as usize
    });
    let sender = is_credentials.then(|| {
        // SAFETY: the header is one of the control area, with data behind it.
        let data = unsafe { libc::CMSG_DATA(first) }.cast::<libc::ucred>();
        // SAFETY: the kernel wrote a whole `ucred` there, as its length says; any bytes are valid in it.
        let found = unsafe { data.read_unaligned() };
        PeerCredentials::of(found)
    });
    Ok((length, sender))
}

/// Each part that is received from connections of this listening socket has the credentials of its sender.
///
/// # Errors
/// If it is not a socket.
pub fn ask_for_credentials(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_passcred(socket, true)?)
}

/// Values of socket options that are plain numbers: every bit pattern is valid.
trait Plain: Copy {}
impl Plain for libc::ucred {}
impl Plain for RawFd {}

#[expect(unsafe_code, reason = "rustix does not know these options")]
fn option<T: Plain>(socket: impl AsFd, name: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let size = size_of::<T>() as libc::socklen_t;
    let mut length = size;
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has as many, and their number to
    // `length`; the descriptor is open as long as `socket` is borrowed.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            value.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    if length != size {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: all bytes were zeroed, and every bit pattern of a `Plain` type is valid.
    Ok(unsafe { value.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::os::unix::net::UnixStream;

    #[test]
    fn peer_credentials_are_those_of_the_connecting_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let found = peer_credentials(&one).unwrap();
        assert_eq!(found.process, Some(std::process::id()));
        assert_eq!(found.user, rustix::process::geteuid().as_raw());
        assert_eq!(found.group, rustix::process::getegid().as_raw());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(peer_credentials(&file).is_err());
    }

    #[test]
    fn received_bytes_have_credentials_of_their_sender() {
        use std::io::Write as _;
        let (one, mut other) = UnixStream::pair().unwrap();
        let mut buffer = [0; 8];
        let empty = receive_from(&one, &mut buffer).unwrap_err();
        assert_eq!(empty.kind(), std::io::ErrorKind::WouldBlock);
        ask_for_credentials(&one).unwrap();
        other.write_all(b"abc").unwrap();
        let (length, sender) = receive_from(&one, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"abc");
        let own = PeerCredentials {
            process: Some(std::process::id()),
            user: rustix::process::getuid().as_raw(),
            group: rustix::process::getgid().as_raw(),
        };
        assert_eq!(sender, Some(own));
        drop(other);
        assert_eq!(receive_from(&one, &mut buffer).unwrap().0, 0);
    }

    #[test]
    fn peer_descriptor_refers_to_a_living_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let process = match peer_process(&one) {
            // Kernels before 6.5.
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => return,
            found => found.unwrap(),
        };
        let at_once = Timespec::default();
        let mut polled = [PollFd::new(&process, PollFlags::IN)];
        assert_eq!(
            poll(&mut polled, Some(&at_once)).unwrap(),
            0,
            "it has not ended"
        );
        let information = format!("/proc/self/fdinfo/{}", process.as_raw_fd());
        let information = std::fs::read_to_string(information).unwrap();
        let own = format!("Pid:\t{}\n", std::process::id());
        assert!(information.contains(&own), "{information}");
    }
}
