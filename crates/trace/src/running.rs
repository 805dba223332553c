//! The running job of each CPU, compared between whole instants.

use shiftwork_model::{CpuId, JobId};

/// A CPU that runs another job after an instant than before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub cpu: CpuId,
    pub before: Option<JobId>,
    pub after: Option<JobId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// The job before the current instant.
    before: Option<JobId>,
    /// The job as of the last switch.
    after: Option<JobId>,
    touched: bool,
}

/// The job of every CPU, before the current instant and as of the last switch in it.
///
/// Several switches may occur at one instant; only their result when time advances counts. Invariant: a CPU is
/// `first` or in `others` exactly if its flag is set, and every other CPU has `before == after`; `others` is
/// empty if there is no `first`.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    cpus: Vec<Cpu>,
    /// The first CPU that was switched at this instant, usually the only one.
    first: Option<CpuId>,
    others: Vec<CpuId>,
}

impl Running {
    pub fn new(cpus: usize) -> Self {
        Self {
            cpus: vec![Cpu::default(); cpus],
            first: None,
            others: Vec::with_capacity(cpus),
        }
    }

    /// Number of CPUs.
    pub const fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Switches the CPU to `to`. Ignores a CPU that the machine does not have.
    #[inline]
    pub fn switch(&mut self, cpu: CpuId, to: Option<JobId>) {
        let Some(state) = self.cpus.get_mut(cpu.index()) else {
            return;
        };
        state.after = to;
        if !state.touched {
            state.touched = true;
            if self.first.is_none() {
                self.first = Some(cpu);
            } else {
                self.others.push(cpu);
            }
        }
    }

    /// The job of the CPU as of the last switch.
    #[inline]
    pub fn on(&self, cpu: CpuId) -> Option<JobId> {
        self.cpus.get(cpu.index())?.after
    }

    /// The job of the CPU after the last settled instant.
    pub fn before(&self, cpu: CpuId) -> Option<JobId> {
        self.cpus.get(cpu.index())?.before
    }

    /// Whether no CPU was switched since the last call of [`Running::settle`].
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.first.is_none()
    }

    /// The changes since the last call of [`Running::settle`].
    #[inline]
    pub fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        self.first.iter().chain(&self.others).filter_map(|&cpu| {
            let state = &self.cpus[cpu.index()];
            (state.before != state.after).then_some(Change {
                cpu,
                before: state.before,
                after: state.after,
            })
        })
    }

    /// Settles if exactly one CPU was switched, the most frequent case: cheaper than [`Running::changes`] and
    /// [`Running::settle`]. Returns its change; `None` if there were several or none.
    #[inline]
    pub fn settle_single(&mut self) -> Option<Change> {
        if !self.others.is_empty() {
            return None;
        }
        let cpu = self.first.take()?;
        let state = &mut self.cpus[cpu.index()];
        let before = std::mem::replace(&mut state.before, state.after);
        state.touched = false;
        Some(Change {
            cpu,
            before,
            after: state.after,
        })
    }

    /// Ends the instant: the current jobs become those before the next instant.
    #[inline]
    pub fn settle(&mut self) {
        for cpu in self.first.take().into_iter().chain(self.others.drain(..)) {
            let state = &mut self.cpus[cpu.index()];
            state.before = state.after;
            state.touched = false;
        }
    }
}
