//! A channel for events between two threads: non-blocking and without allocation. Events that find no
//! room are dropped and counted.

use shiftwork_model::Span;

use crate::event::{Event, Kind};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Padded};
use crate::sys::clock::monotonic_ns;

/// A ring of events between two threads.
///
/// `head` counts the events that have been taken, `tail` those that have been sent; both only grow, and
/// `head <= tail <= head + capacity` always holds. Event number `n` is in entry `n % capacity`:
///
/// ```text
///           head          tail
///            v              v
///   | free | full | full | free |
/// ```
///
/// Only the sender writes `tail` and the entries from there up to `head + capacity`, only the receiver
/// writes `head` and reads the entries below `tail`.
#[derive(Debug)]
struct Ring {
    entries: Box<[Entry]>,
    head: Padded<AtomicU64>,
    tail: Padded<AtomicU64>,
    lost: Padded<AtomicU64>,
}

/// An event as words. They are atomic because that needs no `unsafe`, and costs the same.
#[derive(Debug, Default)]
struct Entry([AtomicU64; 3]);

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sender(Arc<Ring>);

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver(Arc<Ring>);

/// A channel for `capacity` events, rounded up to a power of two.
pub(crate) fn channel(capacity: usize) -> (Sender, Receiver) {
    let count = capacity.next_power_of_two();
    let ring = Arc::new(Ring {
        entries: (0..count).map(|_| Entry::default()).collect(),
        head: Padded(AtomicU64::new(0)),
        tail: Padded(AtomicU64::new(0)),
        lost: Padded(AtomicU64::new(0)),
    });
    (Sender(Arc::clone(&ring)), Receiver(ring))
}

/// The measured cost of sending an event, with the reading of the clock that dates it.
pub(crate) fn sending_cost() -> Span {
    const PROBES: u64 = 64;
    let (sender, _receiver) = channel(PROBES as usize);
    let before_ns = monotonic_ns();
    for _ in 0..PROBES {
        sender.send(Event {
            at: monotonic_ns(),
            value: 0,
            task: 0,
            cpu: None,
            kind: Kind::Probe,
        });
    }
    Span::from_ns((monotonic_ns() - before_ns).div_ceil(PROBES))
}

impl Sender {
    /// Sends the event. `false` if there was no room: the event is dropped, and counted.
    ///
    /// Only one thread may send at a time. Concurrent senders would lose events that are not counted.
    pub(crate) fn send(&self, event: Event) -> bool {
        let ring = &*self.0;
        let tail = ring.tail.0.load(Ordering::Relaxed);
        // Pairs with the release in `take`: the receiver has read the entry by then.
        let head = ring.head.0.load(Ordering::Acquire);
        if tail - head == ring.entries.len() as u64 {
            // Only the sender writes this, and the receiver needs no order with other memory.
            let lost = ring.lost.0.load(Ordering::Relaxed);
            ring.lost.0.store(lost + 1, Ordering::Relaxed);
            return false;
        }
        ring.entry(tail).write(event);
        // Pairs with the acquire in `take`: a receiver that sees the new tail sees the event.
        ring.tail.0.store(tail + 1, Ordering::Release);
        true
    }
}

impl Receiver {
    /// Appends the events that were there at the call, in the order of sending; at most the channel's capacity.
    ///
    /// Allocates only if `events` has too little room.
    pub(crate) fn take(&self, events: &mut Vec<Event>) {
        let ring = &*self.0;
        let head = ring.head.0.load(Ordering::Relaxed);
        let tail = ring.tail.0.load(Ordering::Acquire);
        events.extend((head..tail).filter_map(|number| ring.entry(number).read()));
        ring.head.0.store(tail, Ordering::Release);
    }

    /// Whether there is no event to take.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let ring = &*self.0;
        ring.head.0.load(Ordering::Relaxed) == ring.tail.0.load(Ordering::Acquire)
    }

    /// Number of events that found no room so far.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.0.load(Ordering::Relaxed)
    }
}

impl Ring {
    fn entry(&self, number: u64) -> &Entry {
        // The remainder is below the length, whatever the width of `usize`.
        &self.entries[(number % self.entries.len() as u64) as usize]
    }
}

impl Entry {
    fn write(&self, event: Event) {
        let cpu = event.cpu.unwrap_or(NO_CPU);
        let rest =
            u64::from(event.task) | u64::from(cpu) << 32 | u64::from(event.kind as u16) << 48;
        for (word, value) in self.0.iter().zip([event.at, event.value, rest]) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// `None` if the words are no event, which would be a bug.
    fn read(&self) -> Option<Event> {
        let [at, value, rest] = [0, 1, 2].map(|word| self.0[word].load(Ordering::Relaxed));
        let cpu = (rest >> 32) as u16;
        Some(Event {
            at,
            value,
            task: rest as u32,
            cpu: (cpu != NO_CPU).then_some(cpu),
            kind: Kind::from_number((rest >> 48) as u16)?,
        })
    }
}

const NO_CPU: u16 = u16::MAX;

#[cfg(test)]
fn event(at: u64) -> Event {
    Event {
        at,
        value: at.wrapping_mul(3),
        task: at as u32,
        cpu: (!at.is_multiple_of(3)).then_some(at as u16 & 63),
        kind: Kind::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ALL;

    fn taken(receiver: &Receiver) -> Vec<Event> {
        let mut events = Vec::new();
        receiver.take(&mut events);
        events
    }

    #[test]
    fn channel_delivers_events_unchanged() {
        let (sender, receiver) = channel(ALL.len());
        let all = ALL.iter().zip([0, 1, 7, u64::MAX].into_iter().cycle());
        let all: Vec<_> = all
            .map(|(&(kind, _), at)| Event {
                kind,
                task: (at >> 7) as u32,
                ..event(at)
            })
            .collect();
        assert!(receiver.is_empty());
        assert!(all.iter().all(|&event| sender.send(event)));
        assert!(!receiver.is_empty());
        assert_eq!(taken(&receiver), all);
        assert_eq!(taken(&receiver), []);
    }

    #[test]
    fn full_channel_drops_and_counts_events() {
        let (sender, receiver) = channel(3);
        for round in 0..5 {
            let all = [0, 1, 2, 3].map(|step| event(10 * round + step));
            assert!(all.iter().all(|&event| sender.send(event)));
            assert!(!sender.send(event(99)) && !sender.send(event(99)));
            assert_eq!(receiver.lost(), 2 * (round + 1));
            assert_eq!(taken(&receiver), all);
        }
    }

    #[test]
    fn take_into_sufficient_capacity_does_not_allocate() {
        let (sender, receiver) = channel(4);
        let mut events = Vec::with_capacity(8);
        let room = events.as_ptr();
        for at in 0..8 {
            assert!(sender.send(event(at)));
            receiver.take(&mut events);
        }
        assert_eq!(events.as_ptr(), room);
        assert_eq!(events.capacity(), 8);
    }

    #[test]
    fn receiver_sees_events_of_other_thread_in_order() {
        const COUNT: u64 = 200_000;
        let (sender, receiver) = channel(64);
        let sending = std::thread::spawn(move || {
            for at in 0..COUNT {
                while !sender.send(event(at)) {
                    std::thread::yield_now();
                }
            }
        });
        let (mut events, mut expected) = (Vec::new(), 0);
        while expected < COUNT {
            receiver.take(&mut events);
            for sent in events.drain(..) {
                assert_eq!(sent, event(expected));
                expected += 1;
            }
            std::thread::yield_now();
        }
        sending.join().unwrap();
        assert!(receiver.is_empty());
    }
}

/// All interleavings of the two threads under the C11 memory model.
#[cfg(all(test, loom))]
mod models {
    use super::*;

    #[test]
    fn received_events_are_those_sent_in_order() {
        loom::model(|| {
            let (sender, receiver) = channel(2);
            let sending =
                loom::thread::spawn(move || (0..3).filter(|&at| sender.send(event(at))).count());
            let mut events = Vec::new();
            receiver.take(&mut events);
            receiver.take(&mut events);
            let sent = sending.join().unwrap();
            receiver.take(&mut events);
            assert_eq!(events.len(), sent);
            assert_eq!(sent as u64 + receiver.lost(), 3);
            assert!(events.is_sorted_by(|left, right| left.at < right.at));
            assert!(events.iter().all(|&taken| taken == event(taken.at)));
        });
    }
}
