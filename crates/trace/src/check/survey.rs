//! The waiting jobs that could get a CPU, directly or by a shift chain.

use shiftwork_model::{Affinity, CpuSet, Instant, Invariant, Order, RecordKind, TaskId};

use super::state::State;
use super::{Findings, PolicyContract};
use crate::shift_chain::{Key, Reach, Reached, extremes, key};

/// The most urgent waiting job of a mask, and the CPUs that it could get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    pub waiting: TaskId,
    pub key: Key,
    /// An idle CPU, or one with a job that would have to stop for it.
    pub reach: Reach,
}

/// Examines, after each instant, the most urgent waiting job of each mask.
///
/// Under the strong invariant a waiting job that is more urgent than one on a CPU it reaches by a shift chain, or
/// that reaches an idle CPU, violates the invariant; under the others only the CPUs of its affinity count.
///
/// CPUs that a more urgent waiting job has reached are skipped for the others, with everything beyond
/// them: a job that runs there is either at least as urgent as that job, hence as the others, or causes a
/// violation that is reported for that job.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    order: Order,
    shifts: bool,
    /// Under [`Invariant::Packed`], the known bindings of tasks.
    packing: Option<Packing>,
    /// Per mask the most urgent waiting job, valid only for the masks in `waiting`.
    best: Vec<Option<(Key, TaskId)>>,
    waiting: Vec<usize>,
    /// The waiting jobs that may violate the invariant, with their masks; empty between instants.
    urgent: Vec<(Key, TaskId, usize)>,
    fronts: Vec<Front>,
}

/// The binding of tasks by a partitioned or clustered policy.
#[derive(Clone, Debug)]
struct Packing {
    blocks: Vec<CpuSet>,
    /// Per task its mask; `None` after records that make it unknown, until the task runs.
    bound: Vec<Option<usize>>,
}

impl Survey {
    pub fn new(contract: &PolicyContract, state: &mut State) -> Self {
        let packed = contract.invariant == Invariant::Packed;
        let packing = contract.packing.as_ref().filter(|_| packed);
        Self {
            order: contract.order,
            shifts: contract.invariant == Invariant::Strong,
            packing: packing.map(|packing| Packing::new(packing, state)),
            best: Vec::new(),
            waiting: Vec::new(),
            urgent: Vec::new(),
            fronts: Vec::new(),
        }
    }

    /// Takes a record of the current instant.
    pub fn take(&mut self, state: &State, kind: &RecordKind) {
        let Some(packing) = &mut self.packing else {
            return;
        };
        match *kind {
            RecordKind::AffinitySet { task, .. } => packing.forget(task),
            // Tasks that are known from the start are packed already.
            RecordKind::Entered { task } if state.now() > Instant::ZERO => packing.forget(task),
            // For a policy a CPU is offline, whatever uses it.
            RecordKind::CpuOffline { .. }
            | RecordKind::CpuOnline { .. }
            | RecordKind::CpuTaken { .. }
            | RecordKind::CpuReturned { .. } => packing.bound.fill(None),
            _ => {}
        }
    }

    /// The result of the last [`Survey::look`]: the waiting jobs that violate the invariant, at most one
    /// per mask, the most urgent first.
    pub fn fronts(&self) -> &[Front] {
        &self.fronts
    }

    /// Examines the state after the instant.
    pub fn look(&mut self, state: &mut State, found: &mut Findings) {
        if let Some(packing) = &mut self.packing {
            packing.learn(state, found);
        }
        self.fronts.clear();
        self.find_waiting(state);
        if self.waiting.is_empty() {
            return;
        }
        let available = state.available();
        let (idle, threshold) = extremes(self.order, state, &available);
        // Most instants end here: no CPU is idle, and no running job is less urgent.
        let Self {
            best,
            waiting,
            urgent,
            ..
        } = self;
        let candidates = waiting.drain(..).filter_map(|mask| {
            let (key, task) = best[mask].take()?;
            (idle || key < threshold).then_some((key, task, mask))
        });
        urgent.extend(candidates);
        if self.urgent.is_empty() {
            return;
        }
        self.urgent.sort_unstable();
        let mut reached = Reached::new(state.cpus(), &available);
        let mut urgent = std::mem::take(&mut self.urgent);
        for &(key, waiting, mask) in &urgent {
            reached.add(&state.masks[mask]);
            let reach = Reach::explore(self.order, self.shifts, state, &mut reached);
            if reach.is_open_to(key) {
                self.fronts.push(Front {
                    waiting,
                    key,
                    reach,
                });
            }
        }
        urgent.clear();
        self.urgent = urgent;
    }

    /// Per mask the most urgent waiting job.
    fn find_waiting(&mut self, state: &State) {
        self.best.resize(state.masks.len(), None);
        for &id in &state.ready {
            let task = &state.tasks[id.index()];
            if !task.waits() {
                continue;
            }
            let mask = match &self.packing {
                Some(packing) => packing.bound[id.index()],
                None => Some(task.mask),
            };
            let Some(mask) = mask else { continue };
            let candidate = (key(self.order, task), id);
            match &mut self.best[mask] {
                Some(best) => *best = candidate.min(*best),
                none => {
                    *none = Some(candidate);
                    self.waiting.push(mask);
                }
            }
        }
    }
}

impl Packing {
    fn new(packing: &[Affinity], state: &mut State) -> Self {
        let mut blocks: Vec<CpuSet> = packing.iter().map(|block| *block.cpus()).collect();
        let mut bound: Vec<_> = blocks
            .iter()
            .map(|&block| Some(state.intern(block)))
            .collect();
        bound.resize(state.tasks.len(), None);
        blocks.sort_unstable();
        blocks.dedup();
        Self { blocks, bound }
    }

    fn forget(&mut self, task: TaskId) {
        if let Some(bound) = self.bound.get_mut(task.index()) {
            *bound = None;
        }
    }

    /// A task with an unknown binding is bound to the block in which it starts to run; a task with a known
    /// binding must start inside it.
    fn learn(&mut self, state: &mut State, found: &mut Findings) {
        let started: Vec<_> = state
            .changes()
            .filter_map(|change| Some((change.after?, change.cpu)))
            .filter(|(job, _)| job.task.index() < self.bound.len())
            .collect();
        for (job, cpu) in started {
            match self.bound[job.task.index()] {
                None => {
                    let block = self
                        .blocks
                        .iter()
                        .find(|block| block.contains(cpu))
                        .copied();
                    let block = block.unwrap_or(CpuSet::single(cpu));
                    self.bound[job.task.index()] = Some(state.intern(block));
                }
                Some(mask) if !state.masks[mask].contains(cpu) => found.add(state.now(), || {
                    let block = state.masks[mask];
                    format!(
                        "{} runs on CPU {cpu}, and is packed onto {{{block}}}",
                        state.name(job)
                    )
                }),
                Some(_) => {}
            }
        }
    }
}
