//! How threads hear what the programs in the kernel say, and are woken by each other meanwhile.

use std::cell::RefCell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use libbpf_rs::{MapCore, MapHandle, RingBuffer, RingBufferBuilder};
use rustix::event::{PollFd, PollFlags, poll};

use crate::sys::clock::{monotonic_ns, pause, timespec};

/// What wakes the thread that calls `tick`.
#[derive(Clone, Debug)]
pub(crate) struct Alarm {
    pub(super) map: Arc<MapHandle>,
    pub(super) bell: Arc<OwnedFd>,
}

impl Alarm {
    /// Makes whoever listens return at once.
    pub(crate) fn ring(&self) {
        // It fails only where the bell has been rung 2^64 times already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }

    /// The ear, for one thread.
    ///
    /// # Errors
    /// What libbpf said.
    pub(crate) fn listen(&self) -> io::Result<Listener> {
        let mut builder = RingBufferBuilder::new();
        builder.add(&*self.map, |_| 0).map_err(io::Error::other)?;
        Ok(Listener {
            ring: builder.build().map_err(io::Error::other)?,
            bell: Arc::clone(&self.bell),
        })
    }
}

/// The ring of events, before some thread makes it its own.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    pub(super) map: Arc<MapHandle>,
    pub(super) bell: Arc<OwnedFd>,
}

impl Reports {
    /// Makes whoever hears return from waiting at once.
    pub(crate) fn ring(&self) {
        // It fails only where the bell has been rung 2^64 times already.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }

    /// The ear, for one thread.
    ///
    /// # Errors
    /// What libbpf said.
    pub(crate) fn hear(&self) -> io::Result<Hearing> {
        let events = Rc::new(RefCell::new(Vec::with_capacity(HEARD_BYTES)));
        let ring = ring(&*self.map, Rc::clone(&events)).map_err(io::Error::other)?;
        Ok(Hearing {
            ring,
            events,
            bell: Arc::clone(&self.bell),
        })
    }
}

/// Room for a thousand events between two looks: no more is allocated unless there are more.
const HEARD_BYTES: usize = 24 << 10;

/// Hears [`Reports`]. Looking takes no system call.
pub(crate) struct Hearing {
    ring: RingBuffer<'static>,
    events: Rc<RefCell<Vec<u8>>>,
    bell: Arc<OwnedFd>,
}

impl Hearing {
    /// Calls `take` with the events since the last call, one after the other, as bytes.
    ///
    /// # Errors
    /// What libbpf said.
    pub(crate) fn take(&mut self, take: impl FnOnce(&[u8])) -> io::Result<()> {
        self.ring.consume().map_err(io::Error::other)?;
        let mut events = self.events.borrow_mut();
        take(&events);
        events.clear();
        Ok(())
    }

    /// Whether there is nothing to take. It fetches what there is.
    pub(crate) fn is_empty(&self) -> bool {
        // What libbpf says of a failure, it says again to whoever takes.
        let _ = self.ring.consume();
        self.events.borrow().is_empty()
    }

    /// Returns at this instant of the monotonic clock, with a report, or when the bell rings.
    pub(crate) fn wait_until(&self, at_ns: u64) {
        wait_for(&[&self.ring], &[&self.bell], at_ns);
        let mut count = [0; 8];
        // Nobody may have rung.
        let _ = rustix::io::read(&*self.bell, &mut count);
    }
}

/// Hears an [`Alarm`].
pub(crate) struct Listener {
    ring: RingBuffer<'static>,
    bell: Arc<OwnedFd>,
}

impl Listener {
    /// Returns at this instant of the monotonic clock, or when the alarm goes off.
    pub(crate) fn wait_until(&self, at_ns: u64) {
        wait_for(&[&self.ring], &[&self.bell], at_ns);
        // What was said does not matter, only that something was.
        let _ = self.ring.consume();
    }
}

/// Returns at this instant of the monotonic clock, or when one of these has something to say.
pub(super) fn wait_for(rings: &[&RingBuffer<'static>], bells: &[&OwnedFd], at_ns: u64) {
    let timeout = timespec(at_ns.saturating_sub(monotonic_ns()));
    let rings = rings
        .iter()
        .map(|ring| PollFd::from_borrowed_fd(ear(ring), PollFlags::IN));
    let bells = bells.iter().map(|bell| PollFd::new(*bell, PollFlags::IN));
    let mut ears: Vec<PollFd<'_>> = rings.chain(bells).collect();
    // A signal only makes it return early.
    let _ = poll(&mut ears, Some(&timeout));
}

/// What can be read from when the ring has something to say.
pub(super) fn ear<'a>(ring: &'a RingBuffer<'static>) -> BorrowedFd<'a> {
    let number = ring.epoll_fd();
    #[expect(unsafe_code, reason = "libbpf gives a number")]
    // SAFETY: the ring keeps its descriptor open for as long as it is borrowed here.
    unsafe {
        BorrowedFd::borrow_raw(number)
    }
}

/// The trace's ring, emptied into `events`.
pub(super) fn ring(
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
