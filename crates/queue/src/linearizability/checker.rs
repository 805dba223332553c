//! Whether a history of overlapping calls is explained by a sequential queue.

use std::collections::BTreeSet;

/// A call of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// With all jobs that were inserted at that moment.
    Insert(Vec<u64>),
    Take,
    TakeIfBefore(u64),
}

/// A call, its result, its start and its end.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) call: Call,
    pub(crate) taken: Option<u64>,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Whether the history is linearizable: the calls, each at one moment between its start and its end, could
/// have been made to a sequential queue that holds `keys` at first.
///
/// Tries all orders; the content of the queue depends on the set of calls made so far alone, so each set
/// is tried once.
///
/// # Source
/// J. Wing, C. Gong, "Testing and Verifying Concurrent Objects", JPDC 17, 1993; the memory of sets is
/// G. Lowe's, "Testing for Linearizability", 2017.
pub(crate) fn explained(keys: &[u64], events: &[Event]) -> bool {
    assert!(
        events.len() < 64,
        "the set of calls made so far is one word"
    );
    let mut search = Search {
        events,
        tried: BTreeSet::new(),
        queue: keys.iter().copied().collect(),
    };
    search.goes_on(0)
}

struct Search<'a> {
    events: &'a [Event],
    tried: BTreeSet<u64>,
    queue: BTreeSet<u64>,
}

impl Search<'_> {
    fn goes_on(&mut self, made: u64) -> bool {
        let open = |index: &usize| made >> index & 1 == 0;
        let events = self.events;
        let Some(first_end) = (0..events.len())
            .filter(open)
            .map(|index| events[index].end)
            .min()
        else {
            return true;
        };
        if !self.tried.insert(made) {
            return false;
        }
        // A call that began after the end of another comes after it.
        (0..events.len())
            .filter(open)
            .filter(|&index| events[index].start < first_end)
            .any(|index| {
                self.makes(&events[index]) && {
                    let found = self.goes_on(made | 1 << index);
                    self.unmakes(&events[index]);
                    found
                }
            })
    }

    fn makes(&mut self, event: &Event) -> bool {
        let first = self.queue.first().copied();
        match &event.call {
            Call::Insert(keys) => {
                self.queue.extend(keys);
                return true;
            }
            Call::Take if event.taken != first => return false,
            Call::TakeIfBefore(limit) if event.taken != first.filter(|first| first < limit) => {
                return false;
            }
            Call::Take | Call::TakeIfBefore(_) => {}
        }
        event.taken.is_none_or(|key| self.queue.remove(&key))
    }

    fn unmakes(&mut self, event: &Event) {
        if let Call::Insert(keys) = &event.call {
            self.queue.retain(|key| !keys.contains(key));
        }
        self.queue.extend(event.taken);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn event(start: u64, end: u64, call: Call, taken: Option<u64>) -> Event {
        Event {
            call,
            taken,
            start,
            end,
        }
    }

    #[test]
    fn sequential_history_has_one_explanation() {
        let events = |taken| {
            [
                event(0, 1, Call::Insert(vec![4, 2]), None),
                event(2, 3, Call::TakeIfBefore(2), None),
                event(4, 5, Call::TakeIfBefore(3), Some(taken)),
                event(6, 7, Call::Take, Some(6 - taken)),
                event(8, 9, Call::Take, None),
            ]
        };
        assert!(explained(&[], &events(2)));
        assert!(!explained(&[], &events(4)));
        assert!(!explained(&[1], &events(2)));
    }

    #[test]
    fn overlapping_calls_may_have_any_order() {
        let taken = |taken| {
            [
                event(0, 5, Call::Insert(vec![1]), None),
                event(2, 3, Call::Take, taken),
            ]
        };
        assert!(explained(&[7], &taken(Some(1))));
        assert!(explained(&[7], &taken(Some(7))));
        assert!(!explained(&[7], &taken(None)));
        assert!(!explained(&[7], &taken(Some(3))));
    }

    /// A history of Hunt's heap as published: 5 is taken while another call holds 2.
    #[test]
    fn history_that_passes_over_a_job_is_rejected() {
        let events = [
            event(0, 9, Call::Take, Some(7)),
            event(1, 2, Call::Take, Some(1)),
            event(3, 4, Call::Take, Some(5)),
            event(10, 11, Call::Take, Some(2)),
        ];
        assert!(!explained(&[1, 2, 5, 7], &events));
    }

    #[test]
    fn history_with_a_job_taken_twice_or_before_its_insertion_is_rejected() {
        let twice = [
            event(0, 3, Call::Take, Some(1)),
            event(1, 4, Call::Take, Some(1)),
        ];
        assert!(!explained(&[1], &twice));
        let early = [
            event(0, 1, Call::Take, Some(1)),
            event(2, 3, Call::Insert(vec![1]), None),
        ];
        assert!(!explained(&[], &early));
    }
}
