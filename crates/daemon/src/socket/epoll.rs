//! An epoll instance.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// The empty set of events.
pub(super) const NO_EVENTS: EventFlags = EventFlags::empty();

/// Many sockets behind one descriptor, which is readable while one of them has a watched event.
///
/// A socket without watched events is not registered: the kernel would report a hang-up again and again.
#[derive(Debug)]
pub(super) struct Epoll {
    epoll: OwnedFd,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Watches the socket with this number for `after` instead of `before`.
    ///
    /// # Errors
    /// If the kernel lacks memory. Then nothing has changed.
    pub(super) fn change(
        &self,
        socket: &OwnedFd,
        number: u64,
        before: EventFlags,
        after: EventFlags,
    ) -> io::Result<()> {
        let data = EventData::new_u64(number);
        match (before.is_empty(), after.is_empty()) {
            _ if before == after => Ok(()),
            (true, _) => Ok(epoll::add(&self.epoll, socket, data, after)?),
            (false, true) => Ok(epoll::delete(&self.epoll, socket)?),
            (false, false) => Ok(epoll::modify(&self.epoll, socket, data, after)?),
        }
    }

    /// The pending events of at most `most` sockets; the kernel reports the others at the next call. Never blocks.
    pub(super) fn poll(
        &self,
        most: usize,
    ) -> io::Result<impl Iterator<Item = (u64, EventFlags)> + use<>> {
        let mut events: Vec<Event> = Vec::with_capacity(most);
        let at_once = Timespec::default();
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |event: Event| (event.data.u64(), event.flags);
        Ok(events.into_iter().map(ready))
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
