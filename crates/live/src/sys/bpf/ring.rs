//! Waiting for events of the BPF programs in threads, which can also be woken by other threads.

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use libbpf_rs::{MapCore, MapHandle, RingBuffer, RingBufferBuilder};
use rustix::event::{PollFd, PollFlags, poll};

use crate::sys::clock::{monotonic_ns, pause, timespec};

/// Notifies the thread that calls `tick`.
#[derive(Clone, Debug)]
pub(crate) struct TickNotifier {
    pub(super) map: Arc<MapHandle>,
    pub(super) wakeup: Arc<OwnedFd>,
}

impl TickNotifier {
    /// Makes the waiting thread return at once.
    pub(crate) fn notify(&self) {
        // It fails only if the counter of the eventfd overflows.
        let _ = rustix::io::write(&*self.wakeup, &1_u64.to_ne_bytes());
    }

    /// The waiting side, for one thread.
    ///
    /// # Errors
    /// The error of libbpf.
    pub(crate) fn waiter(&self) -> io::Result<TickWaiter> {
        let mut builder = RingBufferBuilder::new();
        builder.add(&*self.map, |_| 0).map_err(io::Error::other)?;
        Ok(TickWaiter {
            ring: builder.build().map_err(io::Error::other)?,
            wakeup: Arc::clone(&self.wakeup),
        })
    }
}

/// The ring of events, before a thread becomes its reader.
#[derive(Clone, Debug)]
pub(crate) struct EventRing {
    pub(super) map: Arc<MapHandle>,
    pub(super) wakeup: Arc<OwnedFd>,
}

impl EventRing {
    /// Makes the reader return from waiting at once.
    pub(crate) fn wake_reader(&self) {
        // It fails only if the counter of the eventfd overflows.
        let _ = rustix::io::write(&*self.wakeup, &1_u64.to_ne_bytes());
    }

    /// The reader, for one thread.
    ///
    /// # Errors
    /// The error of libbpf.
    pub(crate) fn reader(&self) -> io::Result<EventReader> {
        let events = Rc::new(RefCell::new(Vec::with_capacity(READ_BYTES)));
        let ring = open_ring(&*self.map, Rc::clone(&events)).map_err(io::Error::other)?;
        Ok(EventReader {
            ring,
            events,
            wakeup: Arc::clone(&self.wakeup),
        })
    }
}

/// Room for a thousand events between two reads: only more events make it allocate.
const READ_BYTES: usize = 24 << 10;

/// The reader of an [`EventRing`]. Reading takes no system call.
pub(crate) struct EventReader {
    ring: RingBuffer<'static>,
    events: Rc<RefCell<Vec<u8>>>,
    wakeup: Arc<OwnedFd>,
}

impl EventReader {
    /// Calls `take` with the events since the last call, one after the other, as bytes.
    ///
    /// # Errors
    /// The error of libbpf.
    pub(crate) fn take(&mut self, take: impl FnOnce(&[u8])) -> io::Result<()> {
        self.ring.consume().map_err(io::Error::other)?;
        let mut events = self.events.borrow_mut();
        take(&events);
        events.clear();
        Ok(())
    }

    /// Whether there is no event to take. Fetches the events that there are.
    pub(crate) fn is_empty(&self) -> bool {
        // `take` returns the error of libbpf.
        let _ = self.ring.consume();
        self.events.borrow().is_empty()
    }

    /// Returns at this instant of the monotonic clock, with an event, or when another thread wakes the reader.
    pub(crate) fn wait_until(&self, at_ns: u64) {
        wait_for(&[&self.ring], &[&self.wakeup], at_ns);
        let mut count = [0; 8];
        // The counter is unreadable if no thread woke the reader.
        let _ = rustix::io::read(&*self.wakeup, &mut count);
    }
}

/// The waiting side of a [`TickNotifier`].
pub(crate) struct TickWaiter {
    ring: RingBuffer<'static>,
    wakeup: Arc<OwnedFd>,
}

impl TickWaiter {
    /// Returns at this instant of the monotonic clock, or with a notification.
    pub(crate) fn wait_until(&self, at_ns: u64) {
        wait_for(&[&self.ring], &[&self.wakeup], at_ns);
        // Only that a notification came matters.
        let _ = self.ring.consume();
    }
}

/// Returns at this instant of the monotonic clock, or when one of these is readable.
pub(super) fn wait_for(rings: &[&RingBuffer<'static>], wakeups: &[&OwnedFd], at_ns: u64) {
    let timeout = timespec(at_ns.saturating_sub(monotonic_ns()));
    let rings = rings
        .iter()
        .map(|ring| PollFd::from_borrowed_fd(poll_fd(ring), PollFlags::IN));
    let wakeups = wakeups
        .iter()
        .map(|wakeup| PollFd::new(*wakeup, PollFlags::IN));
    let mut polled: Vec<PollFd<'_>> = rings.chain(wakeups).collect();
    // A signal only makes it return early.
    let _ = poll(&mut polled, Some(&timeout));
}

/// The descriptor that is readable when the ring has events.
pub(super) fn poll_fd<'a>(ring: &'a RingBuffer<'static>) -> BorrowedFd<'a> {
    let number = ring.epoll_fd();
    #[expect(unsafe_code, reason = "libbpf returns a raw descriptor")]
    // SAFETY: the ring keeps its descriptor open for as long as it is borrowed here.
    unsafe {
        BorrowedFd::borrow_raw(number)
    }
}

/// Opens the ring of events; consuming it appends to `events`.
pub(super) fn open_ring(
    map: &dyn MapCore,
    events: Rc<RefCell<Vec<u8>>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder.add(map, move |bytes| {
        events.borrow_mut().extend_from_slice(bytes);
        pause();
        0
    })?;
    builder.build()
}
