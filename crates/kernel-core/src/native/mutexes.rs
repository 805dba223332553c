//! Mutexes and their protocols.

use alloc::boxed::Box;
use core::fmt;

use shiftwork_model::{Instant, Priority, Protocol, ResourceId, Span};

use super::{Core, State};
use crate::task::TaskNumber;

/// Maximum number of mutexes: `SW_MUTEXES` of `core/base.h`.
pub const MUTEXES_MAX: usize = 256;

/// Maximum number of mutexes that a job unlocks at one instant: `SW_UNLOCKS` of `core/base.h`.
pub const UNLOCKS_MAX: usize = 4;

/// `struct sw_mutex` of `core/mutex.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MutexState {
    words: [u64; 2],
    ceiling: u32,
    holder: u16,
    first: u16,
    last: u16,
    next: u16,
    bytes: [u8; 4],
}

/// `struct sw_mutexes` of `core/mutex.h`.
#[repr(C)]
struct MutexesState {
    mutexes: [MutexState; MUTEXES_MAX],
    tasks: [[u64; 2]; crate::TASKS_MAX],
    unlocked: [u16; UNLOCKS_MAX],
}

const _: () = assert!(size_of::<MutexesState>() == 24_584);

unsafe extern "C" {
    fn sw_native_set_mutex(
        x: *mut MutexesState,
        number: u32,
        protocol: u32,
        ceiling: u32,
        floor: u64,
    );
    fn sw_native_lock(s: *mut State, x: *mut MutexesState, i: u32, number: u32, now: u64) -> u64;
    fn sw_native_unlock(s: *mut State, x: *mut MutexesState, i: u32, now: u64) -> u64;
    fn sw_native_end_locks(s: *mut State, x: *mut MutexesState, i: u32, now: u64) -> u64;
    fn sw_native_complete(
        s: *mut State,
        x: *mut MutexesState,
        i: u32,
        release: u64,
        now: u64,
    ) -> u64;
}

/// The core's number of a mutex: 1 to [`MUTEXES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MutexNumber(u16);

impl MutexNumber {
    /// The number of this mutex, one more than its index; `None` beyond [`MUTEXES_MAX`].
    pub fn of(resource: ResourceId) -> Option<Self> {
        (resource.index() < MUTEXES_MAX).then(|| Self(resource.index() as u16 + 1))
    }

    /// The number itself.
    pub const fn get(self) -> u16 {
        self.0
    }

    const fn index(self) -> usize {
        self.0 as usize % MUTEXES_MAX
    }
}

/// All mutexes beside a core, as the scheduler in the kernel keeps them.
///
/// Events return the set of CPUs whose assignment may have changed, as those of [`Core`] do.
pub struct CoreMutexes {
    state: Box<MutexesState>,
}

impl fmt::Debug for CoreMutexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.state.mutexes.iter().filter(|it| it.holder != 0);
        f.debug_list().entries(held.map(|it| it.holder)).finish()
    }
}

impl Default for CoreMutexes {
    fn default() -> Self {
        Self {
            state: Box::new(MutexesState {
                mutexes: [MutexState::default(); MUTEXES_MAX],
                tasks: [[0; 2]; crate::TASKS_MAX],
                unlocked: [0; UNLOCKS_MAX],
            }),
        }
    }
}

impl CoreMutexes {
    /// The number of a protocol, `enum sw_protocol` of `core/mutex.h`; `None` of those that lend CPUs, have a queue, or boost, which the core has not.
    pub const fn number_of(protocol: Protocol) -> Option<u8> {
        match protocol {
            Protocol::None => Some(0),
            Protocol::Inheritance => Some(1),
            Protocol::Migratory
            | Protocol::Omlp
            | Protocol::Fmlp
            | Protocol::Mpcp
            | Protocol::Dpcp(_) => None,
            Protocol::Ceiling => Some(2),
            Protocol::NonPreemptive => Some(3),
            Protocol::Spin => Some(4),
        }
    }

    /// The protocol of a free mutex, by its [number](Self::number_of), the most urgent priority and the shortest relative
    /// deadline of the tasks that use it.
    pub fn set(&mut self, mutex: MutexNumber, protocol: u8, ceiling: (Priority, Span)) {
        let (priority, floor) = ceiling;
        let number = mutex.0.into();
        // SAFETY: the pointer is to a `struct sw_mutexes`, which nothing else uses meanwhile, and of which nothing is kept;
        // the function masks every index.
        unsafe {
            sw_native_set_mutex(
                &raw mut *self.state,
                number,
                protocol.into(),
                priority.number(),
                floor.as_ns(),
            );
        }
    }

    /// The task that holds the mutex.
    pub fn holder(&self, mutex: MutexNumber) -> Option<TaskNumber> {
        let holder = self.state.mutexes[mutex.index()].holder;
        (holder != 0).then(|| TaskNumber(holder.into()))
    }

    /// The job of the task requests the mutex, or runs with it after it has passed to it. Without a CPU it does not.
    pub fn lock(
        &mut self,
        core: &mut Core,
        task: TaskNumber,
        mutex: MutexNumber,
        now: Instant,
    ) -> u64 {
        // SAFETY: as in `set`; the state of the core is another `struct`.
        unsafe {
            sw_native_lock(
                &raw mut *core.state,
                &raw mut *self.state,
                task.0,
                mutex.0.into(),
                now.as_ns(),
            )
        }
    }

    /// The job of the task unlocks these mutexes at one instant, and goes on.
    ///
    /// # Panics
    /// If there are more than [`UNLOCKS_MAX`].
    pub fn unlock(
        &mut self,
        core: &mut Core,
        task: TaskNumber,
        mutexes: &[MutexNumber],
        now: Instant,
    ) -> u64 {
        self.unlocks(mutexes);
        // SAFETY: as in `lock`.
        unsafe {
            sw_native_unlock(
                &raw mut *core.state,
                &raw mut *self.state,
                task.0,
                now.as_ns(),
            )
        }
    }

    /// The job of the task unlocks these mutexes, which are all that it holds, and completes: the same as [`Core::next_job`].
    ///
    /// # Panics
    /// As [`unlock`](Self::unlock).
    pub fn complete(
        &mut self,
        core: &mut Core,
        task: TaskNumber,
        mutexes: &[MutexNumber],
        release: Instant,
        now: Instant,
    ) -> u64 {
        self.unlocks(mutexes);
        // SAFETY: as in `lock`.
        unsafe {
            sw_native_complete(
                &raw mut *core.state,
                &raw mut *self.state,
                task.0,
                release.as_ns(),
                now.as_ns(),
            )
        }
    }

    /// The thread of the task, which has left, has ended: what it holds passes on, and it waits for nothing.
    pub fn end(&mut self, core: &mut Core, task: TaskNumber, now: Instant) -> u64 {
        // SAFETY: as in `lock`.
        unsafe {
            sw_native_end_locks(
                &raw mut *core.state,
                &raw mut *self.state,
                task.0,
                now.as_ns(),
            )
        }
    }

    fn unlocks(&mut self, mutexes: &[MutexNumber]) {
        assert!(mutexes.len() <= UNLOCKS_MAX, "no room for more");
        self.state.unlocked = [0; UNLOCKS_MAX];
        for (place, mutex) in self.state.unlocked.iter_mut().zip(mutexes) {
            *place = mutex.0;
        }
    }
}
