//! The CPUs that a waiting job could get, directly or over a chain of shifts.

use shiftwork_model::{
    Affinity, CPUS_MAX, CpuId, CpuSet, Instant, Invariant, Order, RecordKind, TaskId,
};

use super::state::{State, TaskState};
use super::{Findings, PolicyContract};

const WORDS: usize = CPUS_MAX / 64;

/// The urgency of a job; the smaller key is the more urgent one. Only a strictly more urgent waiting job is a
/// violation, not a tie.
pub(crate) type Key = u64;

/// The key of the ready job of a task.
pub(crate) fn key(order: Order, task: &TaskState) -> Key {
    order.rank(task.deadline, task.priority)
}

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
/// Under the strong invariant a job reaches the CPUs of its affinity, and from a CPU that it
/// reaches all CPUs of the job running there: that job could shift. A waiting job that is more
/// urgent than one on a CPU it reaches, or that reaches an idle CPU, violates the invariant (Bonifaci et al.
/// 2016, Def. II.2; the definition's alternating path is such a chain).
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

/// Whether one of these CPUs is idle, and the key of the least urgent job that runs on them.
pub(crate) fn extremes(order: Order, state: &State, available: &CpuSet) -> (bool, Key) {
    let mut threshold = 0;
    for cpu in available.iter() {
        match state
            .on(cpu)
            .and_then(|job| state.tasks.get(job.task.index()))
        {
            Some(task) => threshold = threshold.max(key(order, task)),
            None => return (true, Key::MAX),
        }
    }
    (false, threshold)
}

/// The best of the reached CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// The first idle CPU.
    pub idle: Option<CpuId>,
    /// The least urgent job that runs on one of them, and its CPU.
    pub least_urgent: Option<(Key, TaskId, CpuId)>,
}

impl Reach {
    /// Examines the reached CPUs; if jobs may shift (`shifts`), also those reachable over any chain of shifts.
    pub fn explore(order: Order, shifts: bool, state: &State, reached: &mut Reached) -> Self {
        let mut reach = Self::default();
        while let Some(cpu) = reached.next() {
            let Some(job) = state.on(cpu) else {
                reach.idle = reach.idle.or(Some(cpu));
                continue;
            };
            let Some(task) = state.tasks.get(job.task.index()) else {
                continue;
            };
            let candidate = (key(order, task), job.task, cpu);
            reach.least_urgent = reach.least_urgent.max(Some(candidate));
            if shifts {
                reached.add(&state.masks[task.mask]);
            }
        }
        reach
    }

    /// Whether a waiting job of this key could get one of the CPUs: one that is idle or runs a less urgent job.
    pub fn is_open_to(&self, key: Key) -> bool {
        self.idle.is_some() || self.least_urgent.is_some_and(|(least, ..)| key < least)
    }
}

/// A set of CPUs that grows while it is traversed, each CPU once. Uses only as many words as the machine has
/// CPUs, which makes small machines fast.
pub(crate) struct Reached {
    words: usize,
    /// CPUs that may still be added.
    unseen: [u64; WORDS],
    todo: [u64; WORDS],
}

impl Reached {
    pub fn new(cpus: usize, available: &CpuSet) -> Self {
        Self {
            words: cpus.div_ceil(64),
            unseen: *available.words(),
            todo: [0; WORDS],
        }
    }

    pub fn add(&mut self, cpus: &CpuSet) {
        for word in 0..self.words {
            let fresh = cpus.words()[word] & self.unseen[word];
            self.unseen[word] &= !fresh;
            self.todo[word] |= fresh;
        }
    }

    fn next(&mut self) -> Option<CpuId> {
        let word = self.todo[..self.words].iter().position(|&word| word != 0)?;
        let bit = self.todo[word].trailing_zeros() as usize;
        self.todo[word] &= self.todo[word] - 1;
        CpuId::new(word * 64 + bit)
    }
}
