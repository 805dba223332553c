//! The safe wrapper of the native core: all foreign functions and all `unsafe` of this crate.
//!
//! The calls rely on these facts: the state consists of integers without pointers and is all zero at the
//! start; the core masks every index, so that no access leaves the state; the core keeps no reference and
//! calls no function outside.
#![allow(unsafe_code, reason = "the only module that calls C")]

mod mutexes;
mod triggers;

pub use mutexes::{CoreMutexes, MUTEXES_MAX, MutexNumber, UNLOCKS_MAX};
pub use triggers::{ARRIVALS_MAX, CoreTriggers, SOURCES_MAX};

use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use shiftwork_model::{CpuId, Instant, Order, Priority, Span};

use crate::task::{ServerRefused, TASKS_MAX, TaskNumber, TaskState, TaskView};

/// Maximum number of CPUs.
pub const CPUS_MAX: usize = 64;

const NUMBER_MAX: u32 = TASKS_MAX as u32;

/// `struct sw_core` of `core/state.h`.
#[repr(C)]
struct State {
    words: [u64; 4],
    numbers: [u32; 6],
    shifts: u64,
    preemptions: u64,
    runner: [u32; CPUS_MAX],
    rest: [u64; 23_168],
}

const _: () = assert!(size_of::<State>() == 185_672 && core::mem::offset_of!(State, runner) == 72);

/// `struct sw_view` of `core/native.c`.
#[repr(C)]
#[derive(Default)]
struct View {
    mask: u64,
    deadline: u64,
    left: i64,
    throttled: u64,
    replenished: u64,
    priority: u32,
    state: u8,
    on: u8,
    last: u8,
    awake: u8,
}

const _: () = assert!(size_of::<View>() == 48);

unsafe extern "C" {
    fn sw_native_init(s: *mut State, order: u32, online: u64);
    fn sw_native_set_mates(s: *mut State, cpu: u32, mates: u64);
    fn sw_native_enter(s: *mut State, i: u32, affinity: u64, start: u32) -> u64;
    fn sw_native_enter_again(s: *mut State, i: u32, affinity: u64, start: u32) -> u64;
    fn sw_native_leave(s: *mut State, i: u32) -> u64;
    fn sw_native_arrive(s: *mut State, i: u32, ready: u64, deadline: u64, priority: u32) -> u64;
    fn sw_native_depart(s: *mut State, i: u32) -> u64;
    fn sw_native_set_affinity(s: *mut State, i: u32, affinity: u64) -> u64;
    fn sw_native_narrow(s: *mut State, i: u32, cpus: u64) -> u64;
    fn sw_native_set_priority(s: *mut State, i: u32, priority: u32) -> u64;
    fn sw_native_set_deadline(s: *mut State, i: u32, deadline: u64) -> u64;
    fn sw_native_cpu_leave(s: *mut State, cpu: u32) -> u64;
    fn sw_native_cpu_join(s: *mut State, cpu: u32) -> u64;
    fn sw_native_set_server(s: *mut State, i: u32, budget: u64, period: u64, relative: u64) -> u32;
    fn sw_native_follow(s: *mut State, i: u32);
    fn sw_native_next_job(s: *mut State, i: u32, release: u64, now: u64) -> u64;
    fn sw_native_wake(s: *mut State, i: u32, now: u64) -> u64;
    fn sw_native_sleep(s: *mut State, i: u32) -> u64;
    fn sw_native_charge(s: *mut State, i: u32, ran: u64, now: u64) -> u64;
    fn sw_native_spend(s: *mut State, i: u32, ran: u64);
    fn sw_native_yield(s: *mut State, i: u32, now: u64) -> u64;
    fn sw_native_replenish_next(s: *mut State, now: u64) -> u64;
    fn sw_native_next_replenishment(s: *mut State) -> u64;
    fn sw_native_budget_end(s: *mut State, i: u32, now: u64) -> u64;
    fn sw_native_would_precede(s: *mut State, a: u32, b: u32, now: u64) -> u32;
    fn sw_native_check(s: *mut State) -> u32;
    fn sw_native_view(s: *mut State, i: u32, view: *mut View);
    #[cfg(test)]
    fn sw_native_layout(layout: *mut [u64; 3]);
}

/// The state of a core.
///
/// Events return the set of CPUs whose assignment may have changed, one bit each; [`Core::runner`]
/// is the task that a CPU should run. Events that contradict the state change nothing. Nothing allocates
/// after [`Core::new`].
pub struct Core {
    state: Box<State>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = (0..CPUS_MAX).filter_map(|cpu| {
            let cpu = CpuId::from_index(cpu);
            Some((cpu, self.runner(cpu)?))
        });
        f.debug_map().entries(running).finish()
    }
}

/// Calls a function of the core on its state.
macro_rules! call {
    ($self:ident, $function:ident $(, $argument:expr)*) => {
        // SAFETY: `state` is a valid, exclusively borrowed `struct sw_core` (the layout test and the
        // assertions on both sides). The function accesses nothing else: it masks every index.
        unsafe { $function(&raw mut *$self.state $(, $argument)*) }
    };
}

impl Core {
    /// Length of a snapshot of the state.
    pub const STATE_BYTES: usize = size_of::<State>();

    /// A core for these CPUs, one bit each, without tasks.
    pub fn new(order: Order, online: u64) -> Self {
        let layout = Layout::new::<State>();
        // SAFETY: the layout is not of size zero.
        let state = unsafe { alloc_zeroed(layout) };
        if state.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: allocated by the global allocator with the layout of `State`. Its fields are integers,
        // for which all zero is a valid value.
        let state = unsafe { Box::from_raw(state.cast::<State>()) };
        let mut core = Self { state };
        call!(core, sw_native_init, Self::number_of(order), online);
        core
    }

    /// `enum sw_order` of `core/state.h`. The core knows these two, and is asked to rank by no other.
    pub const fn number_of(order: Order) -> u32 {
        matches!(order, Order::FixedPriority) as u32
    }

    /// A copy of another core for inspection; `None` unless it is [`Core::STATE_BYTES`] long. The bytes are
    /// not trusted; [`Core::fault`] checks them.
    pub fn from_snapshot(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::STATE_BYTES {
            return None;
        }
        let mut core = Self::new(Order::Edf, 0);
        let state = (&raw mut *core.state).cast::<u8>();
        // SAFETY: the state is as long as `bytes`, which cannot overlap it: it was just allocated.
        // Its fields are integers, for which any bytes are a valid value.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), state, bytes.len()) };
        Some(core)
    }

    /// A copy of the state's bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        let state = (&raw const *self.state).cast::<u8>();
        // SAFETY: the state is so long and consists of integers without padding between them; the
        // borrow ends with this function.
        unsafe { core::slice::from_raw_parts(state, Self::STATE_BYTES) }.to_vec()
    }

    /// Sets the CPUs that share a cache with `cpu`: the last preference when a CPU is chosen.
    pub fn set_cache_mates(&mut self, cpu: CpuId, mates: u64) {
        call!(self, sw_native_set_mates, cpu_number(cpu), mates);
    }

    /// The task that the CPU should run.
    pub fn runner(&self, cpu: CpuId) -> Option<TaskNumber> {
        match self.state.runner.get(cpu.index()) {
            Some(&number @ 1..=NUMBER_MAX) => Some(TaskNumber(number)),
            _ => None,
        }
    }

    /// Number of running jobs that were moved to another CPU so far: shifts.
    pub fn shifts(&self) -> u64 {
        self.state.shifts
    }

    /// The task enters, with no ready job and no server. A task that is present leaves first.
    pub fn enter(&mut self, task: TaskNumber, affinity: u64, start: Option<CpuId>) -> u64 {
        let start = start.map_or(0, |cpu| cpu_number(cpu) + 1);
        call!(self, sw_native_enter, task.0, affinity, start)
    }

    /// As [`enter`](Self::enter) for a task that was present before: its budget and its deadline are kept, so
    /// that a task gains no budget by leaving and entering again.
    pub fn enter_again(&mut self, task: TaskNumber, affinity: u64, start: Option<CpuId>) -> u64 {
        let start = start.map_or(0, |cpu| cpu_number(cpu) + 1);
        call!(self, sw_native_enter_again, task.0, affinity, start)
    }

    /// The task leaves.
    pub fn leave(&mut self, task: TaskNumber) -> u64 {
        call!(self, sw_native_leave, task.0)
    }

    /// A job becomes ready, ranked by this deadline and priority, without regard to a server.
    pub fn arrive(
        &mut self,
        task: TaskNumber,
        ready: Instant,
        deadline: Instant,
        priority: Priority,
    ) -> u64 {
        let (ready, deadline) = (ready.as_ns(), deadline.as_ns());
        call!(
            self,
            sw_native_arrive,
            task.0,
            ready,
            deadline,
            priority.number()
        )
    }

    /// The job is no longer ready.
    pub fn depart(&mut self, task: TaskNumber) -> u64 {
        call!(self, sw_native_depart, task.0)
    }

    /// Changes the affinity of the task: one event, with the fewest shifts from the previous assignment.
    pub fn set_affinity(&mut self, task: TaskNumber, affinity: u64) -> u64 {
        call!(self, sw_native_set_affinity, task.0, affinity)
    }

    /// Restricts the task to these CPUs, independent of its affinity, until this is called with 0.
    pub fn narrow(&mut self, task: TaskNumber, cpus: u64) -> u64 {
        call!(self, sw_native_narrow, task.0, cpus)
    }

    /// Changes the priority of the task's ready job and of its later jobs.
    pub fn set_priority(&mut self, task: TaskNumber, priority: Priority) -> u64 {
        call!(self, sw_native_set_priority, task.0, priority.number())
    }

    /// Changes the deadline of the task's ready job.
    pub fn set_deadline(&mut self, task: TaskNumber, deadline: Instant) -> u64 {
        call!(self, sw_native_set_deadline, task.0, deadline.as_ns())
    }

    /// The CPU is no longer available.
    pub fn cpu_leave(&mut self, cpu: CpuId) -> u64 {
        call!(self, sw_native_cpu_leave, cpu_number(cpu))
    }

    /// The CPU is available again.
    pub fn cpu_join(&mut self, cpu: CpuId) -> u64 {
        call!(self, sw_native_cpu_join, cpu_number(cpu))
    }

    /// Sets the server of the task; remaining budget and deadline are kept. A budget of zero is not
    /// enforced.
    ///
    /// # Errors
    /// Unless budget <= relative deadline <= period. The deadline of a server that follows releases may be
    /// longer than its period.
    pub fn set_server(
        &mut self,
        task: TaskNumber,
        budget: Span,
        period: Span,
        relative: Span,
    ) -> Result<(), ServerRefused> {
        let (budget, period, relative) = (budget.as_ns(), period.as_ns(), relative.as_ns());
        match call!(self, sw_native_set_server, task.0, budget, period, relative) {
            0 => Ok(()),
            _ => Err(ServerRefused),
        }
    }

    /// Makes the server follow the releases given to [`Core::next_job`], as a simulated one does, until the
    /// task enters again. Other servers go by the rules of `SCHED_DEADLINE`.
    ///
    /// To be called after [`Core::set_server`], or before it if the deadline is longer than the period.
    pub fn follow(&mut self, task: TaskNumber) {
        call!(self, sw_native_follow, task.0);
    }

    /// Completes the current job, if there is one, whose execution has been [spent](Core::spend). The next job
    /// is released at `release`, past or future, or [`Instant::NEVER`] if that is not known yet. Until
    /// it may run, [`Core::next_replenishment`] includes its start.
    ///
    /// A job of a task that is not awake, by [`Core::wake`] and [`Core::sleep`], begins suspended. Does
    /// nothing for a server that does not follow releases. Parameters that change with the job must be set
    /// just before.
    pub fn next_job(&mut self, task: TaskNumber, release: Instant, now: Instant) -> u64 {
        let (release, now) = (release.as_ns(), now.as_ns());
        call!(self, sw_native_next_job, task.0, release, now)
    }

    /// The task wakes: its server sets the deadline, or throttles it.
    pub fn wake(&mut self, task: TaskNumber, now: Instant) -> u64 {
        call!(self, sw_native_wake, task.0, now.as_ns())
    }

    /// The task blocks. Its execution must have been charged.
    pub fn sleep(&mut self, task: TaskNumber) -> u64 {
        call!(self, sw_native_sleep, task.0)
    }

    /// Charges execution since the last charge of a job that completes or suspends itself:
    /// [`Core::next_job`] or [`Core::sleep`] follows at the same instant. With a server that follows
    /// releases, a budget used up at that instant must not be replenished for the completed job.
    pub fn spend(&mut self, task: TaskNumber, ran: Span) {
        call!(self, sw_native_spend, task.0, ran.as_ns());
    }

    /// Charges execution since the last charge of a job that would continue.
    pub fn charge(&mut self, task: TaskNumber, ran: Span, now: Instant) -> u64 {
        call!(self, sw_native_charge, task.0, ran.as_ns(), now.as_ns())
    }

    /// Completes the job; the next one begins with the task's next period. Does nothing for a server that
    /// follows releases.
    pub fn yield_job(&mut self, task: TaskNumber, now: Instant) -> u64 {
        call!(self, sw_native_yield, task.0, now.as_ns())
    }

    /// Expires the first timer that is due, if there is one: replenishes a throttled task, or begins a
    /// released job. To be called until [`Core::next_replenishment`] is later than `now`.
    pub fn replenish_next(&mut self, now: Instant) -> u64 {
        call!(self, sw_native_replenish_next, now.as_ns())
    }

    /// The next replenishment or release; [`Instant::NEVER`] if no task waits for one.
    pub fn next_replenishment(&mut self) -> Instant {
        Instant::from_ns(call!(self, sw_native_next_replenishment))
    }

    /// The instant at which the budget is used up if the task runs from `now` on; [`Instant::NEVER`] without a
    /// budget.
    pub fn budget_end(&mut self, task: TaskNumber, now: Instant) -> Instant {
        Instant::from_ns(call!(self, sw_native_budget_end, task.0, now.as_ns()))
    }

    /// Whether one task goes before the other, or would if those of them that are blocked woke up at `now`; a throttled one is
    /// last, and of equal ones the lower number is first. For servers that go by wake-ups.
    pub fn would_precede(&mut self, one: TaskNumber, other: TaskNumber, now: Instant) -> bool {
        call!(self, sw_native_would_precede, one.0, other.0, now.as_ns()) != 0
    }

    /// The state of a task.
    pub fn view(&mut self, task: TaskNumber) -> TaskView {
        let mut view = View::default();
        call!(self, sw_native_view, task.0, &raw mut view);
        TaskView {
            state: match view.state {
                0 => TaskState::Absent,
                1 => TaskState::Blocked,
                2 => TaskState::Ready,
                3 => TaskState::Throttled,
                _ => TaskState::Unreleased,
            },
            on: (view.on > 0).then(|| CpuId::from_index(usize::from(view.on) - 1)),
            mask: view.mask,
            deadline: Instant::from_ns(view.deadline),
            priority: view.priority,
            left_ns: view.left,
            awake: view.awake != 0,
            throttled: view.throttled,
            replenished: view.replenished,
        }
    }

    /// The first violated invariant of `core/state.h`, including the strong invariant; `None` if all hold.
    /// Slow; for tests and snapshots.
    pub fn fault(&mut self) -> Option<&'static str> {
        const FAULTS: [&str; 8] = [
            "a CPU and its runner are inconsistent",
            "the set of idle CPUs is not that of online CPUs without a runner",
            "a task is on a CPU that does not run it",
            "a mask and its class are inconsistent",
            "a heap of waiting tasks is invalid",
            "the list of waiting classes is wrong",
            "the heap of timers is invalid",
            "strong invariant violated: a waiting task could run",
        ];
        match call!(self, sw_native_check) {
            0 => None,
            fault => FAULTS.get(fault as usize - 1).copied().or(Some("unknown")),
        }
    }
}

/// The core's number of a CPU.
fn cpu_number(cpu: CpuId) -> u32 {
    assert!(cpu.index() < CPUS_MAX, "the core knows CPUs 0 to 63");
    cpu.index() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_equals_that_of_the_c_compiler() {
        let mut layout = [0; 3];
        // SAFETY: the function writes the three words of `layout`.
        unsafe { sw_native_layout(&raw mut layout) };
        let here = [
            size_of::<State>(),
            size_of::<View>(),
            core::mem::offset_of!(State, runner),
        ];
        assert_eq!(layout.map(|size| size as usize), here);
    }

    #[test]
    fn corrupted_state_has_a_fault() {
        let mut core = Core::new(Order::Edf, 0b11);
        let task = TaskNumber(1);
        core.enter(task, 0b01, None);
        core.wake(task, Instant::ZERO);
        assert_eq!(core.fault(), None);
        core.state.runner.swap(0, 1);
        assert_eq!(
            core.fault(),
            Some("the set of idle CPUs is not that of online CPUs without a runner")
        );
        core.state.runner.swap(0, 1);
        core.state.runner[0] = 9;
        assert_eq!(core.fault(), Some("a CPU and its runner are inconsistent"));
    }

    #[test]
    fn server_with_budget_above_deadline_is_refused() {
        let mut core = Core::new(Order::Edf, 1);
        let task = TaskNumber(1);
        let ns = Span::from_ns;
        assert_eq!(core.set_server(task, ns(3), ns(9), ns(5)), Ok(()));
        for (budget, period, relative) in [(6, 9, 5), (3, 4, 5), (0, 4, 0), (1, 1 << 61, 5)] {
            let refused = core.set_server(task, ns(budget), ns(period), ns(relative));
            assert_eq!(refused, Err(ServerRefused), "{budget} {period} {relative}");
        }
        assert_eq!(
            ServerRefused.to_string(),
            "a budget server needs cost <= deadline <= period"
        );
    }

    /// A core with running, waiting and throttled tasks.
    fn busy(random: &mut RandomStream) -> Core {
        let mut core = Core::new(Order::Edf, 0xff);
        for index in 1..=60 {
            let task = TaskNumber(index);
            core.enter(task, 1 + random.below(255), None);
            let budget = Span::from_ns(1 + random.below(9));
            core.set_server(task, budget, Span::from_ns(20), Span::from_ns(20))
                .unwrap();
            core.wake(task, Instant::from_ns(random.below(9)));
            if index % 5 == 0 {
                core.yield_job(task, Instant::from_ns(9));
            }
        }
        core
    }

    #[test]
    fn core_from_snapshot_equals_the_original() {
        let mut core = busy(&mut RandomStream::new(1, 0, 0));
        let bytes = core.snapshot();
        let mut copy = Core::from_snapshot(&bytes).unwrap();
        assert_eq!((core.fault(), copy.fault()), (None, None));
        let now = Instant::from_ns(20);
        for index in 1..=60 {
            let task = TaskNumber(index);
            assert_eq!(core.yield_job(task, now), copy.yield_job(task, now));
        }
        assert!(core.snapshot() == copy.snapshot());
        assert!(Core::from_snapshot(&bytes[1..]).is_none());
    }

    #[test]
    fn corrupted_snapshot_never_leads_outside_the_state() {
        for seed in 1..=300 {
            let mut random = RandomStream::new(seed, 0, 0);
            let mut bytes = busy(&mut random).snapshot();
            for _ in 0..1 + random.below(40) {
                let place = random.below(bytes.len() as u64) as usize;
                bytes[place] = random.below(256) as u8;
            }
            let mut core = Core::from_snapshot(&bytes).unwrap();
            core.fault();
            for index in 1..=60 {
                let (task, now) = (TaskNumber(index), Instant::from_ns(random.below(99)));
                core.yield_job(task, now);
                core.follow(task);
                core.next_job(task, Instant::from_ns(random.below(99)), now);
                core.replenish_next(now);
                core.set_affinity(task, random.below(256));
                core.enter(task, 1 + random.below(255), None);
                core.wake(task, now);
            }
            core.fault();
        }
    }

    use alloc::string::ToString;
    use shiftwork_model::RandomStream;
}
