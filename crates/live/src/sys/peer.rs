//! Who is at the other end of a Unix socket, as the kernel saw them connect.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};

/// Who connected, and when: what they are since then does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The process; `None` if it lives where this process cannot see it (another PID namespace).
    pub process: Option<u32>,
    /// Its effective user.
    pub user: u32,
    /// Its effective group.
    pub group: u32,
}

/// Who connected to this socket.
///
/// # Errors
/// If it is no connected Unix socket.
pub fn peer_credentials(socket: impl AsFd) -> io::Result<PeerCredentials> {
    // rustix has this, too, but takes it for granted that the process is visible.
    let found: libc::ucred = option(socket, libc::SO_PEERCRED)?;
    Ok(PeerCredentials {
        process: u32::try_from(found.pid).ok().filter(|&process| process > 0),
        user: found.uid,
        group: found.gid,
    })
}

/// A descriptor of the process that connected to this socket: it stands for that process even if
/// another one gets its number. It can be read (as poll(2) has it) once the process has ended.
///
/// # Errors
/// If it is no connected Unix socket, if the process is gone and forgotten, or if the kernel is older
/// than 6.5.
pub fn peer_process(socket: impl AsFd) -> io::Result<OwnedFd> {
    let raw: RawFd = option(socket, libc::SO_PEERPIDFD)?;
    #[expect(unsafe_code, reason = "the kernel says by number what it gives")]
    // SAFETY: SO_PEERPIDFD has just made this descriptor for the caller; nobody else knows of it.
    let process = unsafe { OwnedFd::from_raw_fd(raw) };
    // Kernels do this by themselves; it costs little not to rely on it.
    fcntl_setfd(&process, FdFlags::CLOEXEC)?;
    Ok(process)
}

/// Values of socket options that are plain numbers, any bits of which are a value.
trait Plain: Copy {}
impl Plain for libc::ucred {}
impl Plain for RawFd {}

#[expect(unsafe_code, reason = "rustix does not know these options")]
fn option<T: Plain>(socket: impl AsFd, name: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let size = size_of::<T>() as libc::socklen_t;
    let mut length = size;
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has as many, and how many these
    // were to `length`; the descriptor is open as long as `socket` is borrowed.
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
    // SAFETY: all bytes were zeroed, and `Plain` types take any bits.
    Ok(unsafe { value.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_kernel_knows_who_connected() {
        let (one, _other) = UnixStream::pair().unwrap();
        let found = peer_credentials(&one).unwrap();
        assert_eq!(found.process, Some(std::process::id()));
        assert_eq!(found.user, rustix::process::geteuid().as_raw());
        assert_eq!(found.group, rustix::process::getegid().as_raw());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(peer_credentials(&file).is_err());
    }

    #[test]
    fn the_descriptor_stands_for_a_living_process() {
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
