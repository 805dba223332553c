//! The windows of a job's subtasks, in exact integers.

use core::cmp::Reverse;

use shiftwork_model::{TaskId, Weight};

use crate::order::Subtask;

/// Where the subtasks of one job may be scheduled. A job of weight w = e/p that is seen in slot s has the
/// windows [s + floor((i-1)/w), s + ceil(i/w)) for its subtasks i = 1, 2, ..., one quantum each. There is
/// no last one: a job that needs more than e quanta goes on at the same rate.
///
/// Slots that are out of reach are `u64::MAX`. A cost without quanta counts as one, and no slots as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// The slot in which the first window begins.
    pub seen: u64,
    /// e and p.
    pub weight: Weight,
}

impl Windows {
    /// e and p, neither of them zero.
    fn parts(&self) -> (u128, u128) {
        let Weight { quanta, slots } = self.weight;
        (u128::from(quanta.max(1)), u128::from(slots.max(1)))
    }

    /// The slot, so many after the job was seen.
    fn slot(&self, after: u128) -> u64 {
        let after = u64::try_from(after).unwrap_or(u64::MAX);
        self.seen.saturating_add(after)
    }

    /// The slot in which the window of subtask `index`, from 1, begins.
    pub fn release(&self, index: u64) -> u64 {
        let (e, p) = self.parts();
        // Rounded down: the window begins as soon as a part of the slot is the subtask's.
        self.slot(u128::from(index.saturating_sub(1)) * p / e)
    }

    /// The slot before which its window ends.
    pub fn deadline(&self, index: u64) -> u64 {
        let (e, p) = self.parts();
        self.slot((u128::from(index) * p).div_ceil(e))
    }

    /// The b-bit: whether its window overlaps the next one.
    pub fn overlaps(&self, index: u64) -> bool {
        let (e, p) = self.parts();
        !(u128::from(index) * p).is_multiple_of(e)
    }

    /// The slot before which the cascade ends that begins if the subtask is scheduled in the last slot of its
    /// window: heavy tasks (w >= 1/2) have windows of two slots, each of which then has only its last one
    /// left, up to one that has a third or does not overlap the next. 0 for light tasks, `u64::MAX` for those
    /// that need every slot.
    ///
    /// # Source
    /// As [`SubtaskOrder`](crate::order::SubtaskOrder): the windows of weight 1 - w are where the task
    /// does not run, and the end of the one that holds the last slot of the subtask is what is looked for.
    pub fn group_deadline(&self, index: u64) -> u64 {
        let (e, p) = self.parts();
        if 2 * e < p {
            return 0;
        }
        if e >= p {
            return u64::MAX;
        }
        let deadline = (u128::from(index) * p).div_ceil(e);
        let deadline = deadline.min(u128::from(u64::MAX));
        let gaps = (deadline * (p - e)).div_ceil(p);
        self.slot((gaps * p).div_ceil(p - e))
    }

    /// What is compared of subtask `index`.
    pub fn subtask(&self, task: TaskId, index: u64) -> Subtask {
        let overlaps = self.overlaps(index);
        let group_deadline = match overlaps {
            true => self.group_deadline(index),
            false => 0,
        };
        Subtask {
            deadline: self.deadline(index),
            ends_apart: !overlaps,
            group_deadline: Reverse(group_deadline),
            release: self.release(index),
            task,
        }
    }

    /// The slot before which a job of e quanta is due, and the next job's windows begin at the earliest.
    pub fn end(&self) -> u64 {
        self.slot(self.parts().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;

    fn windows(quanta: u64, slots: u64, seen: u64) -> Windows {
        let weight = Weight { quanta, slots };
        Windows { seen, weight }
    }

    /// The cascade, followed window by window.
    fn cascade(windows: &Windows, index: u64) -> u64 {
        let mut at = index;
        loop {
            let next = at + 1;
            if !windows.overlaps(at) {
                return windows.deadline(at);
            }
            if windows.deadline(next) - windows.release(next) == 3 {
                return windows.deadline(at) + 1;
            }
            at = next;
        }
    }

    #[test]
    fn eight_elevenths_have_the_published_windows_and_group_deadlines() {
        let of = windows(8, 11, 0);
        let found: Vec<(u64, u64)> = (1..=8).map(|i| (of.release(i), of.deadline(i))).collect();
        let published = [
            (0, 2),
            (1, 3),
            (2, 5),
            (4, 6),
            (5, 7),
            (6, 9),
            (8, 10),
            (9, 11),
        ];
        assert_eq!(found, published);
        let groups: Vec<u64> = (1..=8).map(|i| of.group_deadline(i)).collect();
        assert_eq!(groups, [4, 4, 8, 8, 8, 11, 11, 11]);
        let bits: Vec<bool> = (1..=8).map(|i| of.overlaps(i)).collect();
        assert_eq!(bits, [true, true, true, true, true, true, true, false]);
    }

    #[test]
    fn the_closed_form_is_where_the_cascade_ends() {
        for p in 2..=40_u64 {
            for e in p.div_ceil(2)..p {
                for seen in [0, 7] {
                    let of = windows(e, p, seen);
                    for index in 1..=2 * e {
                        let at = format!("subtask {index} of {e}/{p}");
                        assert_eq!(of.group_deadline(index), cascade(&of, index), "{at}");
                    }
                }
            }
        }
    }

    #[test]
    fn windows_hold_their_share_and_meet_by_at_most_one_slot() {
        for p in 1..=24_u64 {
            for e in 1..=p {
                let of = windows(e, p, 3);
                for i in 1..=2 * e {
                    // The fluid schedule: release and deadline bracket where i-1 and i quanta are due.
                    let (r, d) = (of.release(i) - 3, of.deadline(i) - 3);
                    assert!(r * e <= (i - 1) * p && (r + 1) * e > (i - 1) * p);
                    assert!(d * e >= i * p && (d - 1) * e < i * p);
                    let overlap = of.deadline(i) - of.release(i + 1);
                    assert_eq!(overlap, u64::from(of.overlaps(i)));
                }
                assert_eq!(of.deadline(e), of.end());
            }
        }
    }

    #[test]
    fn light_tasks_have_no_group_deadline_and_whole_ones_no_end_of_it() {
        assert_eq!(windows(1, 3, 5).group_deadline(1), 0);
        assert_eq!(windows(3, 3, 5).group_deadline(2), u64::MAX);
        // A cascade that ends with the subtask's own window.
        assert_eq!(windows(1, 2, 5).group_deadline(1), 7);
    }

    #[test]
    fn any_weight_has_windows() {
        let most = u64::MAX;
        for quanta in [0, 1, 7, most] {
            for slots in [0, 1, 7, most] {
                for index in [0, 1, 2, most] {
                    let of = windows(quanta, slots, most - 5);
                    assert!(of.release(index) <= of.deadline(index));
                    of.subtask(TaskId::from_index(0), index);
                    of.end();
                }
            }
        }
    }
}
