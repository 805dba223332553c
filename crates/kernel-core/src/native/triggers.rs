//! The triggers of a task.

use shiftwork_model::Instant;

/// Maximum number of sources of a task that all have to trigger it, and of tasks that one triggers at a time: `SW_SOURCES` of
/// `core/trigger.h`.
pub const SOURCES_MAX: usize = 8;

/// Maximum number of jobs of a triggered task that have arrived and not begun: `SW_ARRIVALS` of `core/trigger.h`.
pub const ARRIVALS_MAX: usize = 32;

/// `struct sw_triggers` of `core/trigger.h`.
#[repr(C)]
#[derive(Debug, Default)]
struct TriggerState {
    arrivals: [u64; ARRIVALS_MAX],
    accepted: [u32; SOURCES_MAX],
    numbers: [u32; 4],
}

const _: () = assert!(size_of::<TriggerState>() == 304);

unsafe extern "C" {
    fn sw_native_init_triggers(q: *mut TriggerState, places: u32, limit: u32);
    fn sw_native_take_trigger(q: *mut TriggerState, place: u32, is_idle: u32, now: u64) -> u32;
    fn sw_native_next_arrival(q: *mut TriggerState) -> u64;
}

/// The triggers of one task that wait for others, and the arrivals of its jobs that have not begun, as the scheduler in the
/// kernel keeps them.
#[derive(Debug)]
pub struct CoreTriggers(TriggerState);

impl CoreTriggers {
    /// No triggers, of sources with so many places, of which each may have so many that wait.
    pub fn new(places: u32, limit: u32) -> Self {
        let mut triggers = TriggerState::default();
        // SAFETY: the pointer is to a `struct sw_triggers`, which nothing else uses meanwhile, and of which nothing is kept.
        unsafe { sw_native_init_triggers(&raw mut triggers, places, limit) };
        Self(triggers)
    }

    /// Takes a trigger by the source of this place. `is_idle`: the task has no unfinished job. The answer is that of
    /// `enum sw_taken`.
    pub fn take(&mut self, place: u32, is_idle: bool, now: Instant) -> u32 {
        let triggers = &raw mut self.0;
        // SAFETY: as in `new`; the function masks every index.
        unsafe { sw_native_take_trigger(triggers, place, is_idle.into(), now.as_ns()) }
    }

    /// The arrival of the next job, which begins; [`Instant::NEVER`] if none has been released.
    pub fn next_arrival(&mut self) -> Instant {
        // SAFETY: as in `new`; the function masks every index.
        Instant::from_ns(unsafe { sw_native_next_arrival(&raw mut self.0) })
    }
}
