//! The events that the programs in the kernel and agents report; the same as in `bpf/shared.h`.

use shiftwork_kernel_core::UNLOCKS_MAX;
use shiftwork_machine::Taken;
use shiftwork_model::{ResourceId, TaskId};

/// What an event says. What its value means stands in `bpf/shared.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Ready = 1,
    NextJob,
    LastJob,
    Woken,
    Blocked,
    Yielded,
    Spent,
    Replenished,
    Overrun,
    Assigned,
    Running,
    Stopped,
    Entered,
    Left,
    Affinity,
    Demoted,
    Narrowed,
    Priority,
    CpuLost,
    CpuBack,
    SlotFilled,
    Dispatched,
    Decided,
    Concluded,
    Probe,
    Ran,
    Triggered,
    Locked,
    Unlocked,
    AwaitsMutex,
    Spins,
    RankPriority,
    RankDeadline,
    LockRequested,
    UnlockRequested,
}

/// All kinds, in the order of their numbers, with their names in `bpf/shared.h`.
pub(crate) const ALL: &[(Kind, &str)] = &[
    (Kind::Ready, "SW_E_READY"),
    (Kind::NextJob, "SW_E_NEXT_JOB"),
    (Kind::LastJob, "SW_E_LAST_JOB"),
    (Kind::Woken, "SW_E_WOKEN"),
    (Kind::Blocked, "SW_E_BLOCKED"),
    (Kind::Yielded, "SW_E_YIELDED"),
    (Kind::Spent, "SW_E_SPENT"),
    (Kind::Replenished, "SW_E_REPLENISHED"),
    (Kind::Overrun, "SW_E_OVERRUN"),
    (Kind::Assigned, "SW_E_ASSIGNED"),
    (Kind::Running, "SW_E_RUNNING"),
    (Kind::Stopped, "SW_E_STOPPED"),
    (Kind::Entered, "SW_E_ENTERED"),
    (Kind::Left, "SW_E_LEFT"),
    (Kind::Affinity, "SW_E_AFFINITY"),
    (Kind::Demoted, "SW_E_DEMOTED"),
    (Kind::Narrowed, "SW_E_NARROWED"),
    (Kind::Priority, "SW_E_PRIORITY"),
    (Kind::CpuLost, "SW_E_CPU_LOST"),
    (Kind::CpuBack, "SW_E_CPU_BACK"),
    (Kind::SlotFilled, "SW_E_SLOT_FILLED"),
    (Kind::Dispatched, "SW_E_DISPATCHED"),
    (Kind::Decided, "SW_E_DECIDED"),
    (Kind::Concluded, "SW_E_CONCLUDED"),
    (Kind::Probe, "SW_E_PROBE"),
    (Kind::Ran, "SW_E_RAN"),
    (Kind::Triggered, "SW_E_TRIGGERED"),
    (Kind::Locked, "SW_E_LOCKED"),
    (Kind::Unlocked, "SW_E_UNLOCKED"),
    (Kind::AwaitsMutex, "SW_E_AWAITS_MUTEX"),
    (Kind::Spins, "SW_E_SPINS"),
    (Kind::RankPriority, "SW_E_RANK_PRIORITY"),
    (Kind::RankDeadline, "SW_E_RANK_DEADLINE"),
    (Kind::LockRequested, "SW_E_LOCK_REQUESTED"),
    (Kind::UnlockRequested, "SW_E_UNLOCK_REQUESTED"),
];

impl Kind {
    pub(crate) fn from_number(number: u16) -> Option<Self> {
        let index = usize::from(number).checked_sub(1)?;
        ALL.get(index).map(|&(kind, _)| kind)
    }
}

/// The value of [`Kind::Triggered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TriggerValue {
    /// The task that triggers.
    pub(crate) source: TaskId,
    /// Whether the job of the source ended by that.
    pub(crate) at_completion: bool,
    /// What became of it; before an agent has decided that, it counts as lost.
    pub(crate) taken: Taken,
}

impl TriggerValue {
    const TAKEN_SHIFT: u32 = 32;
    const AT_COMPLETION_SHIFT: u32 = 40;

    /// From the value of an event; `None` if it names no task, which is a bug of ours.
    pub(crate) fn read(value: u64) -> Option<Self> {
        let index = usize::try_from(value & 0xffff_ffff).ok()?.checked_sub(1)?;
        Some(Self {
            source: TaskId::from_index(index),
            at_completion: value >> Self::AT_COMPLETION_SHIFT & 1 != 0,
            taken: match value >> Self::TAKEN_SHIFT & 3 {
                0 => Taken::Lost,
                1 => Taken::Waits,
                _ => Taken::Releases,
            },
        })
    }

    /// As the value of an event.
    pub(crate) fn word(self) -> u64 {
        let taken = match self.taken {
            Taken::Lost => 0,
            Taken::Waits => 1,
            Taken::Releases => 2,
        };
        (self.source.index() as u64 + 1)
            | taken << Self::TAKEN_SHIFT
            | u64::from(self.at_completion) << Self::AT_COMPLETION_SHIFT
    }
}

/// The value of [`Kind::UnlockRequested`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnlockValue {
    /// The numbers of the mutexes, 0 after the last.
    numbers: [u16; UNLOCKS_MAX],
    /// Whether the job ends by that.
    pub(crate) at_completion: bool,
}

impl UnlockValue {
    const BITS: usize = 12;
    const AT_COMPLETION_SHIFT: usize = 63;

    /// Of these mutexes. More than `UNLOCKS_MAX`, and numbers that find no room, have been refused before.
    pub(crate) fn new(mutexes: &[ResourceId], at_completion: bool) -> Self {
        let mut numbers = [0; UNLOCKS_MAX];
        for (number, mutex) in numbers.iter_mut().zip(mutexes) {
            *number = u16::try_from(mutex.index() + 1).unwrap_or(0);
        }
        Self {
            numbers,
            at_completion,
        }
    }

    /// From the value of an event.
    pub(crate) fn read(value: u64) -> Self {
        let number = |at: usize| (value >> (at * Self::BITS)) as u16 & ((1 << Self::BITS) - 1);
        Self {
            numbers: std::array::from_fn(number),
            at_completion: value >> Self::AT_COMPLETION_SHIFT != 0,
        }
    }

    /// As the value of an event.
    pub(crate) fn word(self) -> u64 {
        let numbers = self.numbers.iter().enumerate();
        numbers.fold(
            u64::from(self.at_completion) << Self::AT_COMPLETION_SHIFT,
            |word, (at, number)| word | u64::from(*number) << (at * Self::BITS),
        )
    }

    /// The mutexes, in the order of their unlocks.
    pub(crate) fn mutexes(self) -> impl Iterator<Item = ResourceId> {
        let numbers = self.numbers.into_iter().filter(|&number| number > 0);
        numbers.map(|number| ResourceId::from_index(usize::from(number) - 1))
    }
}

const _: () = assert!(UnlockValue::BITS * UNLOCKS_MAX <= UnlockValue::AT_COMPLETION_SHIFT);

/// Why a CPU is gone: the bits of `enum sw_why`.
pub(crate) mod why {
    pub(crate) const OFFLINE: u64 = 1;
    pub(crate) const TAKEN: u64 = 2;
    pub(crate) const BACKGROUND: u64 = 4;
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Of the monotonic clock, in ns.
    pub(crate) at: u64,
    pub(crate) value: u64,
    /// The core's number of the task; 0: none.
    pub(crate) task: u32,
    /// The machine's number of a CPU.
    pub(crate) cpu: Option<u16>,
    pub(crate) kind: Kind,
}

/// `sizeof(struct sw_event)`.
pub(crate) const BYTES: usize = 24;

impl Event {
    /// The events in these bytes of the ring. What cannot be read, which is a bug of ours, is left out.
    pub(crate) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        let (events, _) = bytes.as_chunks::<BYTES>();
        events.iter().filter_map(Self::read)
    }

    fn read(bytes: &[u8; BYTES]) -> Option<Self> {
        let word = |at: usize| {
            let (words, _) = bytes[at..].split_first_chunk()?;
            Some(u64::from_ne_bytes(*words))
        };
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        const NO_CPU: u16 = 0xffff;
        Some(Self {
            at: word(0)?,
            value: word(8)?,
            task: u32::from_ne_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]),
            cpu: (half(20) != NO_CPU).then(|| half(20)),
            kind: Kind::from_number(half(22))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: &str = include_str!("../bpf/shared.h");

    /// The names of an enum of the header, in order.
    fn enumerators(prefix: &str) -> Vec<String> {
        let names = SHARED.lines().filter_map(|line| {
            let name = line.strip_prefix('\t')?.split([' ', ',']).next()?;
            name.starts_with(prefix).then(|| name.to_owned())
        });
        names.collect()
    }

    #[test]
    fn the_kinds_are_those_of_the_header() {
        let names: Vec<_> = ALL.iter().map(|&(_, name)| name.to_owned()).collect();
        assert_eq!(enumerators("SW_E_"), names);
        for (number, &(kind, _)) in (1..).zip(ALL) {
            assert_eq!(kind as u16, number);
            assert_eq!(Kind::from_number(number), Some(kind));
        }
        assert_eq!(Kind::from_number(0), None);
        assert_eq!(Kind::from_number(ALL.len() as u16 + 1), None);
    }

    #[test]
    fn values_of_triggers_are_those_of_the_header() {
        for (name, shift) in [
            ("TAKEN", TriggerValue::TAKEN_SHIFT),
            ("AT_COMPLETION", TriggerValue::AT_COMPLETION_SHIFT),
        ] {
            assert!(
                SHARED.contains(&format!("SW_TRIGGER_{name}_SHIFT = {shift},")),
                "{name}"
            );
        }
        for taken in [Taken::Lost, Taken::Waits, Taken::Releases] {
            for at_completion in [false, true] {
                let source = TaskId::from_index(6);
                let value = TriggerValue {
                    source,
                    at_completion,
                    taken,
                };
                assert_eq!(TriggerValue::read(value.word()), Some(value));
            }
        }
        assert_eq!(TriggerValue::read(0), None);
    }

    #[test]
    fn unlock_values_are_read_as_they_were_written() {
        let ids = [0, 255, 7, 254].map(ResourceId::from_index);
        for count in 0..=UNLOCKS_MAX {
            for at_completion in [false, true] {
                let value = UnlockValue::new(&ids[..count], at_completion);
                assert_eq!(UnlockValue::read(value.word()), value);
                assert!(value.mutexes().eq(ids[..count].iter().copied()));
            }
        }
    }

    #[test]
    fn the_reasons_are_those_of_the_header() {
        for (name, bit) in [
            ("OFFLINE", why::OFFLINE),
            ("TAKEN", why::TAKEN),
            ("BACKGROUND", why::BACKGROUND),
        ] {
            assert!(
                SHARED.contains(&format!("SW_WHY_{name} = {bit},")),
                "{name}"
            );
        }
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        bytes.extend(5_u64.to_ne_bytes());
        bytes.extend(7_u64.to_ne_bytes());
        bytes.extend(3_u32.to_ne_bytes());
        bytes.extend(2_u16.to_ne_bytes());
        bytes.extend((Kind::Running as u16).to_ne_bytes());
        let event = Event {
            at: 5,
            value: 7,
            task: 3,
            cpu: Some(2),
            kind: Kind::Running,
        };
        let twice = bytes.repeat(2);
        assert_eq!(Event::all(&twice).collect::<Vec<_>>(), [event, event]);
        // Neither a torn event nor an unknown kind is made up for.
        assert_eq!(Event::all(&bytes[..23]).count(), 0);
        bytes[22] = 99;
        assert_eq!(Event::all(&bytes).count(), 0);
    }
}
