//! Events from one thread to another: nobody waits, nothing is allocated, and what finds no room is
//! counted.

use shiftwork_model::Span;

use crate::event::{Event, Kind};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Padded};
use crate::sys::clock::monotonic_ns;

/// A ring of events between two threads.
///
/// `head` is how many events have been taken, `tail` how many have been put in; both only grow, and
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

/// An event, in words. They are atomic because that needs no `unsafe`, and cost the same.
#[derive(Debug, Default)]
struct Entry([AtomicU64; 3]);

/// The end where events are put in.
#[derive(Debug)]
pub(crate) struct Sender(Arc<Ring>);

/// The end where they are taken out.
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

/// What it takes here to put an event in, with the clock that it is dated by.
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
    /// Puts the event in. `false` if there was no room: the event is lost, and counted.
    ///
    /// Only one thread may send at a time. If two do, events get lost that nobody counts.
    pub(crate) fn send(&self, event: Event) -> bool {
        let ring = &*self.0;
        let tail = ring.tail.0.load(Ordering::Relaxed);
        // The entry is free once the receiver, who read it, has said so.
        let head = ring.head.0.load(Ordering::Acquire);
        if tail - head == ring.entries.len() as u64 {
            // Nobody else writes this; whoever reads it wants no more than the number.
            let lost = ring.lost.0.load(Ordering::Relaxed);
            ring.lost.0.store(lost + 1, Ordering::Relaxed);
            return false;
        }
        ring.entry(tail).write(event);
        // Whoever sees the new number sees the event, too.
        ring.tail.0.store(tail + 1, Ordering::Release);
        true
    }
}

impl Receiver {
    /// Appends what was there at the call, in the order of sending; at most the channel's capacity.
    ///
    /// Allocates only if `events` has too little room.
    pub(crate) fn take(&self, events: &mut Vec<Event>) {
        let ring = &*self.0;
        let head = ring.head.0.load(Ordering::Relaxed);
        let tail = ring.tail.0.load(Ordering::Acquire);
        events.extend((head..tail).filter_map(|number| ring.entry(number).read()));
        ring.head.0.store(tail, Ordering::Release);
    }

    /// Whether there is nothing to take.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let ring = &*self.0;
        ring.head.0.load(Ordering::Relaxed) == ring.tail.0.load(Ordering::Acquire)
    }

    /// How many events found no room so far.
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

    /// `None` for what nobody wrote, which would be a bug of ours.
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
    fn every_event_arrives_as_it_was_sent() {
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
    fn what_finds_no_room_is_counted() {
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
    fn taking_into_enough_room_allocates_nothing() {
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
    fn two_threads_see_one_sequence() {
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

/// Every order of what the two threads do, as far as the C11 memory model lets them see each other.
#[cfg(all(test, loom))]
mod models {
    use super::*;

    #[test]
    fn what_is_taken_is_what_was_sent_in_its_order() {
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
