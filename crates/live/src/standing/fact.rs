//! What a standing machine tells, for whoever keeps accounts.

use shiftwork_model::{CpuId, CpuSet, Priority, Span, TaskId};

use crate::event::{Event, Kind, why};

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When: of the monotonic clock, in nanoseconds.
    pub at_ns: u64,
    /// To whom; `None` where it is about a CPU alone.
    pub task: Option<TaskId>,
    /// Where, in the machine's numbers; `None` where that does not matter.
    pub cpu: Option<CpuId>,
    /// What.
    pub what: FactKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactKind {
    /// The task's thread woke up: its job begins.
    Woken,
    /// It went to sleep: its job is finished.
    Blocked,
    /// It gave up what was left of its budget: its job is finished, and the next begins with its next period.
    Yielded,
    /// Its budget is used up, and it waits for the next period.
    Spent,
    /// Its budget is full again.
    Replenished {
        /// Of the new period; of the monotonic clock, in ns.
        deadline_ns: u64,
    },
    /// It has run for longer than its cost, and is not throttled.
    Overrun,
    /// Its job may run.
    Ready {
        /// By which it is ranked under EDF; of the monotonic clock, in ns.
        deadline_ns: u64,
    },
    /// Decided: the CPU should run the task, or none.
    Assigned,
    /// Done: the CPU runs the task.
    Running,
    /// Done: the CPU runs the task no more, or no more as a task.
    Stopped {
        /// For how long it did.
        ran: Span,
    },
    /// The task takes part.
    Entered {
        /// The CPUs that it may use.
        cpus: CpuSet,
    },
    /// It takes no part any more: its thread has ended, or it was dismissed. The last that is told of it. A
    /// thread that changes to a higher scheduling class is [blocked](Self::Blocked) until it is back.
    Left,
    /// It may use other CPUs.
    Affinity {
        /// Which.
        cpus: CpuSet,
    },
    /// It asked for CPUs that it was not admitted for, and runs in the background until it is admitted for
    /// these. It may ask again.
    Demoted {
        /// Which it asked for.
        asked: CpuSet,
    },
    /// The kernel holds it on some CPUs for a while.
    Narrowed {
        /// On which; `None`: it does no more.
        cpus: Option<CpuSet>,
    },
    /// It has another priority.
    Prioritized {
        /// Which.
        priority: Priority,
    },
    /// The CPU is gone for this reason.
    CpuLost {
        /// For which.
        why: Absence,
    },
    /// The reason is no more. The CPU is back when there is no other.
    CpuBack {
        /// Which.
        why: Absence,
    },
}

/// Why tasks cannot have a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Absence {
    /// It is offline.
    Offline,
    /// A thread of a higher scheduling class has it.
    Taken,
    /// Background work has waited for long enough, and has it for as long as the reserve says.
    Background,
}

impl Absence {
    fn of(value: u64) -> Option<Self> {
        match value {
            why::OFFLINE => Some(Self::Offline),
            why::TAKEN => Some(Self::Taken),
            why::BACKGROUND => Some(Self::Background),
            _ => None,
        }
    }
}

impl Fact {
    /// `None` for what no keeper of accounts needs.
    fn of(event: &Event) -> Option<Self> {
        let number = usize::try_from(event.task).unwrap_or(usize::MAX);
        Some(Self {
            at_ns: event.at,
            task: number.checked_sub(1).map(TaskId::from_index),
            cpu: event.cpu.map(|cpu| CpuId::from_index(usize::from(cpu))),
            what: FactKind::of(event)?,
        })
    }
}

impl FactKind {
    fn of(event: &Event) -> Option<Self> {
        let value = event.value;
        let cpus = CpuSet::from_bits(value);
        Some(match event.kind {
            Kind::Woken => Self::Woken,
            Kind::Blocked => Self::Blocked,
            Kind::Yielded => Self::Yielded,
            Kind::Spent => Self::Spent,
            Kind::Replenished => Self::Replenished { deadline_ns: value },
            Kind::Overrun => Self::Overrun,
            Kind::Ready => Self::Ready { deadline_ns: value },
            Kind::Assigned => Self::Assigned,
            Kind::Running => Self::Running,
            Kind::Stopped => Self::Stopped {
                ran: Span::from_ns(value),
            },
            Kind::Entered => Self::Entered { cpus },
            Kind::Left => Self::Left,
            Kind::Affinity => Self::Affinity { cpus },
            Kind::Demoted => Self::Demoted { asked: cpus },
            Kind::Narrowed => Self::Narrowed {
                cpus: (value != 0).then_some(cpus),
            },
            Kind::Priority => Self::Prioritized {
                priority: Priority::new(u32::try_from(value).ok()?)?,
            },
            Kind::CpuLost => Self::CpuLost {
                why: Absence::of(value)?,
            },
            Kind::CpuBack => Self::CpuBack {
                why: Absence::of(value)?,
            },
            // Releases are not told to this machine, and no agent decides.
            Kind::NextJob
            | Kind::LastJob
            | Kind::Told
            | Kind::Dispatched
            | Kind::Decided
            | Kind::Concluded
            | Kind::Probe
            | Kind::Ran => return None,
        })
    }
}

/// Puts facts in the order of their instants.
#[derive(Debug, Default)]
pub(super) struct Arranged {
    /// Of what was told last.
    latest_ns: u64,
}

impl Arranged {
    /// The facts of these events. All but [`FactKind::Running`], and those of observed threads, come in order; where one comes so late that later
    /// ones have been told, its instant is theirs.
    pub(super) fn arrange(&mut self, events: &[Event]) -> Vec<Fact> {
        let mut facts: Vec<Fact> = events.iter().filter_map(Fact::of).collect();
        facts.sort_by_key(|fact| fact.at_ns);
        for fact in &mut facts {
            fact.at_ns = fact.at_ns.max(self.latest_ns);
        }
        self.latest_ns = facts.last().map_or(self.latest_ns, |last| last.at_ns);
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ALL;

    fn event(kind: Kind, at: u64, value: u64) -> Event {
        Event {
            at,
            value,
            task: 3,
            cpu: Some(2),
            kind,
        }
    }

    #[test]
    fn every_event_of_the_core_is_a_fact() {
        for &(kind, name) in ALL {
            // A value that means something to everybody.
            let fact = Fact::of(&event(kind, 5, 1));
            let is_an_agents = kind as u16 >= Kind::Told as u16;
            let is_of_releases = matches!(kind, Kind::NextJob | Kind::LastJob);
            assert_eq!(fact.is_none(), is_an_agents || is_of_releases, "{name}");
        }
    }

    #[test]
    fn a_fact_says_what_the_event_says() {
        let what = |kind, value| Fact::of(&event(kind, 5, value)).map(|fact| fact.what);
        let cpus = CpuSet::from_bits(6);
        for (kind, value, said) in [
            (Kind::Ready, 9, FactKind::Ready { deadline_ns: 9 }),
            (
                Kind::Replenished,
                9,
                FactKind::Replenished { deadline_ns: 9 },
            ),
            (
                Kind::Stopped,
                9,
                FactKind::Stopped {
                    ran: Span::from_ns(9),
                },
            ),
            (Kind::Entered, 6, FactKind::Entered { cpus }),
            (Kind::Affinity, 6, FactKind::Affinity { cpus }),
            (Kind::Demoted, 6, FactKind::Demoted { asked: cpus }),
            (Kind::Narrowed, 6, FactKind::Narrowed { cpus: Some(cpus) }),
            (Kind::Narrowed, 0, FactKind::Narrowed { cpus: None }),
        ] {
            assert_eq!(what(kind, value), Some(said));
        }
        for (value, why) in [
            (1, Absence::Offline),
            (2, Absence::Taken),
            (4, Absence::Background),
        ] {
            assert_eq!(what(Kind::CpuLost, value), Some(FactKind::CpuLost { why }));
            assert_eq!(what(Kind::CpuBack, value), Some(FactKind::CpuBack { why }));
        }
        assert_eq!(what(Kind::CpuLost, 3), None);
        assert_eq!(what(Kind::Priority, 0), None);
        let fact = Fact::of(&event(Kind::Woken, 5, 0)).unwrap();
        assert_eq!(fact.at_ns, 5);
        assert_eq!(fact.task, Some(TaskId::from_index(2)));
        assert_eq!(fact.cpu, Some(CpuId::from_index(2)));
        let nobody = Event {
            task: 0,
            cpu: None,
            ..event(Kind::Assigned, 5, 0)
        };
        let fact = Fact::of(&nobody).unwrap();
        assert_eq!((fact.task, fact.cpu), (None, None));
    }

    #[test]
    fn instants_never_go_back() {
        let mut told = Arranged::default();
        let take = |told: &mut Arranged, events: &[Event]| {
            let facts = told.arrange(events);
            facts
                .iter()
                .map(|fact| (fact.at_ns, fact.what))
                .collect::<Vec<_>>()
        };
        let first = [
            event(Kind::Woken, 10, 0),
            event(Kind::Blocked, 12, 0),
            event(Kind::Running, 11, 0),
        ];
        assert_eq!(
            take(&mut told, &first),
            [
                (10, FactKind::Woken),
                (11, FactKind::Running),
                (12, FactKind::Blocked)
            ]
        );
        assert_eq!(take(&mut told, &[]), []);
        let late = [event(Kind::Yielded, 13, 0), event(Kind::Running, 9, 0)];
        assert_eq!(
            take(&mut told, &late),
            [(12, FactKind::Running), (13, FactKind::Yielded)]
        );
    }
}
