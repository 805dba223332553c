//! The scheduler, held by this process, and its records.

use rustix::process::Pid;
use shiftwork_live::standing::{Activity, Observed, Reservation, Settings, Standing};
use shiftwork_model::{
    CpuSet, OnOverrun, Order, Priority, Record, RecordKind, Share, Span, TaskId,
};

use super::worker::Worker;
use crate::faults::{all_is_well, wait_for};

/// The CPUs of tasks, as bits: 1, 2 and 3.
pub const ALL: u64 = 0b1110;

/// What the worker is to have of these CPUs: 2 ms in each 20.
pub fn wish(worker: &Worker, cpus: u64) -> Reservation {
    wish_of(worker.id, cpus)
}

pub fn wish_of(thread: Pid, cpus: u64) -> Reservation {
    Reservation {
        thread,
        cpus: CpuSet::from_bits(cpus),
        cost: Span::from_ms(2),
        period: Span::from_ms(20),
        deadline: Span::from_ms(20),
        on_overrun: OnOverrun::Throttle,
        priority: Priority::MOST_URGENT,
    }
}

pub const fn task(index: usize) -> TaskId {
    TaskId::from_index(index)
}

/// The task that the record is about: the one that begins to run, or else the one that stops.
pub fn task_of(kind: &RecordKind) -> Option<TaskId> {
    let mut kind = kind.clone();
    let [one, other] = kind.tasks_mut();
    other.or(one).map(|task| *task)
}

/// A job of a task begins or goes on to run.
pub const fn runs(kind: &RecordKind) -> bool {
    matches!(kind, RecordKind::Switched { to: Some(_), .. })
}

/// A job's budget is used up.
pub const fn is_spent(kind: &RecordKind) -> bool {
    matches!(kind, RecordKind::BudgetSpent { .. })
}

/// A job ends.
pub const fn completes(kind: &RecordKind) -> bool {
    matches!(kind, RecordKind::Completed { .. })
}

pub const fn leaves(kind: &RecordKind) -> bool {
    matches!(kind, RecordKind::Left { .. })
}

pub const fn enters(kind: &RecordKind) -> bool {
    matches!(kind, RecordKind::Entered { .. })
}

pub const fn is_demoted(kind: &RecordKind) -> bool {
    matches!(kind, RecordKind::Demoted { .. })
}

/// The scheduler, all its records, and what observed threads did.
pub struct Stage {
    pub standing: Standing,
    pub records: Vec<Record>,
    pub observed: Vec<Observed>,
}

impl Stage {
    pub fn load() -> Result<Self, String> {
        Self::load_ordered(Order::Edf)
    }

    pub fn load_ordered(order: Order) -> Result<Self, String> {
        Self::load_on(order, ALL, 4 << 20)
    }

    /// On these CPUs, with so many bytes for events that wait to be taken.
    pub fn load_on(order: Order, cpus: u64, trace_bytes: u32) -> Result<Self, String> {
        let settings = Settings {
            cpus: CpuSet::from_bits(cpus),
            order,
            reserve: Share::from_billionths(50_000_000).unwrap(),
            trace_bytes,
        };
        let standing = Standing::load(&settings).map_err(|error| error.to_string())?;
        Ok(Self {
            standing,
            records: Vec::new(),
            observed: Vec::new(),
        })
    }

    /// Binds the worker and admits it.
    pub fn admit(&mut self, index: usize, of: &Reservation) -> Result<bool, String> {
        let bound = self.standing.bind(of.thread, &of.cpus);
        let admitted = bound.and_then(|()| self.standing.admit(task(index), of));
        admitted.map_err(|error| error.to_string())
    }

    pub fn must_admit(&mut self, index: usize, of: &Reservation) -> Result<(), String> {
        match self.admit(index, of)? {
            true => Ok(()),
            false => Err(format!("{of:?} is not admitted")),
        }
    }

    pub fn dismiss(&mut self, index: usize) -> Result<(), String> {
        let dismissed = self.standing.dismiss(task(index));
        dismissed.map_err(|error| error.to_string())
    }

    pub fn take(&mut self) -> Result<&[Record], String> {
        let begin = self.records.len();
        let more = self.standing.take_records(usize::MAX);
        self.records
            .extend(more.map_err(|error| error.to_string())?);
        self.observed.extend(self.standing.take_observed());
        match self.standing.unloaded() {
            None => Ok(&self.records[begin..]),
            Some(reason) => {
                let last = self.records.len().saturating_sub(40);
                let recorded = &self.records[last..];
                Err(format!(
                    "the scheduler was unloaded: {reason}; recorded were {recorded:#?}"
                ))
            }
        }
    }

    /// How many records there are so far.
    pub fn mark(&mut self) -> Result<usize, String> {
        self.take()?;
        Ok(self.records.len())
    }

    /// All records after so many.
    pub fn records_since(&mut self, mark: usize) -> Result<&[Record], String> {
        self.take()?;
        Ok(&self.records[mark..])
    }

    /// Waits for such a record from now on.
    pub fn wait_for(&mut self, what: &str, is: impl Fn(&Record) -> bool) -> Result<(), String> {
        wait_for(what, || match self.take() {
            Ok(records) => records.iter().any(&is).then_some(Ok(())),
            Err(why) => Some(Err(why)),
        })?
    }

    /// Waits for such a record about the task, after so many of all.
    pub fn hear(
        &mut self,
        after: usize,
        index: usize,
        is: impl Fn(&RecordKind) -> bool,
    ) -> Result<Record, String> {
        let asked = std::any::type_name_of_val(&is);
        let heard = wait_for(asked, || {
            if let Err(why) = self.take() {
                return Some(Err(why));
            }
            let mut records = self.records.iter().skip(after);
            let found = records.find(|it| task_of(&it.kind) == Some(task(index)) && is(&it.kind));
            found.cloned().map(Ok)
        });
        let last = self.records.len().saturating_sub(20).max(after);
        heard.map_err(|why| format!("{why}; recorded were {:#?}", &self.records[last..]))?
    }

    /// How many such records are about the task, after so many of all.
    pub fn count(&self, after: usize, index: usize, is: impl Fn(&RecordKind) -> bool) -> usize {
        let records = self.records.iter().skip(after);
        records
            .filter(|it| task_of(&it.kind) == Some(task(index)) && is(&it.kind))
            .count()
    }

    /// What the thread observed by this number did, after so many of all.
    pub fn did(&self, after: usize, index: usize) -> impl Iterator<Item = Activity> + '_ {
        let all = self.observed.iter().skip(after);
        all.filter(move |it| it.task == task(index))
            .map(|it| it.activity)
    }

    /// Waits until the observed thread does this.
    pub fn wait_until_it(
        &mut self,
        after: usize,
        index: usize,
        activity: Activity,
    ) -> Result<(), String> {
        wait_for(&format!("{activity:?}"), || match self.take() {
            Ok(_) => self
                .did(after, index)
                .any(|it| it == activity)
                .then_some(Ok(())),
            Err(why) => Some(Err(why)),
        })?
    }

    /// That nothing is wrong, and that nothing was lost.
    pub fn is_sound(&mut self) -> Result<(), String> {
        self.take()?;
        let ordered = self.records.is_sorted_by_key(|record| record.at);
        match (
            self.standing.state().1,
            self.standing.events_lost(),
            ordered,
        ) {
            (None, 0, true) => Ok(()),
            found => Err(format!("fault, lost events, in order: {found:?}")),
        }
    }

    /// The scheduler goes, and all is as before.
    pub fn end(mut self) -> Result<(), String> {
        self.is_sound()?;
        stretches_are_whole(&self.records)?;
        drop(self.standing);
        all_is_well()
    }
}

/// A job stops where it ran before another task runs there, and for no part of that time the CPU was not its own: the
/// emulator's clock stands still in between.
pub fn stretches_are_whole(records: &[Record]) -> Result<(), String> {
    let mut runs = [None; 64];
    for record in records {
        match record.kind {
            RecordKind::Switched { cpu, from, to } => {
                let before = std::mem::replace(&mut runs[cpu.index()], to);
                let other = |(from, to): (shiftwork_model::JobId, shiftwork_model::JobId)| {
                    from.task != to.task
                };
                if before != from || from.zip(to).is_some_and(other) {
                    return Err(format!("{before:?} ran before {record:?}"));
                }
            }
            RecordKind::Interrupted { .. } => return Err(format!("{record:?}")),
            _ => {}
        }
    }
    Ok(())
}
