//! The speeds of CPUs: capacities, and frequencies that follow the load (GRUB-PA).
//!
//! Only under the policies that model Linux's `SCHED_DEADLINE` CPUs may run below full speed. On a
//! CPU at half speed a job executes half a nanosecond of its work in a nanosecond, and uses up half a
//! nanosecond of its budget: costs are given for full speed (`dl_scaled_delta_exec`).
//!
//! - *Capacity*: the file's `capacities` are the maximum speeds of the CPUs.
//! - *GRUB-PA* (`frequency = "grub-pa"`): the speed of a CPU is the total C/T of the active tasks in its run
//!   queue (`running_bw`), limited by its capacity. A task is active from its wake-up until its 0-lag time
//!   after it blocked, which is d - q T/C for a server with remaining budget q and deadline d. A throttled task
//!   is active, also one that is throttled at the beginning of a job. A task that is pushed or pulled counts
//!   on its new CPU. A task that leaves counts until its 0-lag time, as if it had blocked. Entering does not
//!   make a task active: its first release does.
//!
//! Speeds are set after all events of an instant, before CPUs switch. C/T is rounded up to units of 2^-20, so
//! that rounding never makes a task late that is alone; the kernel rounds down. Frequencies change
//! at once and in steps of those units; governors with few steps, delays or margins are not modelled.
//!
//! *Rounding of time.* Work is counted in units of 2^-20 ns. A job that is preempted, or whose CPU changes its
//! speed, keeps its progress within a nanosecond, also on another CPU; the budget in force when that nanosecond
//! ends pays for it. Only if a stretch of work or a budget ends within a nanosecond, the CPU idles until the
//! end of that nanosecond. So the CPU time of a job, weighted by speed, is its work plus less than a nanosecond
//! for each such end.
//!
//! M-GRUB (`SCHED_FLAG_RECLAIM`), which lets tasks use bandwidth that others leave, is not modelled: it is
//! incompatible with GRUB-PA and frequency scaling, Tang et al. leave it out for that reason, and it has not
//! been proven to keep tardiness bounded.
//!
//! # Source
//! C. Scordino, L. Abeni, J. Lelli, "Energy-Aware Real-Time Scheduling in the Linux Kernel", SAC 2018;
//! `kernel/sched/deadline.c` of Linux (`task_contending`, `task_non_contending`) and `cpufreq_schedutil.c`,
//! as described in Section 3.1 of S. Tang, J. H. Anderson, L. Abeni, RTNS 2021. Both together as in Linux: the
//! sum of C/T is compared with the capacity, not multiplied by it.

use shiftwork_machine::{Server, ServerParameters};
use shiftwork_model::{Budgets, CpuId, Frequency, Instant, Recorder, Span, TaskId, TaskSet};
use shiftwork_policy::Policy;

use super::Engine;
use crate::speed::{BITS, Begun, Speed};
use crate::state::{Plan, Stage, TaskState};

/// The speeds of CPUs, in runs in which they are not always full.
pub(crate) struct Speeds {
    /// By CPU: its maximum speed.
    capacities: Vec<Speed>,
    /// Whether frequencies follow the load.
    are_scaled: bool,
    /// By CPU: total bandwidth of its active tasks, in units of 2^-20.
    active: Vec<u64>,
    tasks: Vec<Activity>,
    /// The next 0-lag time at which a task stops being active.
    next: Instant,
}

/// The bandwidth of a task, which counts on the CPU with its run queue.
struct Activity {
    /// The attributes from which `bandwidth` was computed.
    attributes: ServerParameters,
    /// C/T in units of 2^-20, rounded up.
    bandwidth: u64,
    /// The server's deadline, as of the last time that the task was ready.
    deadline: Instant,
    /// End of the activity; never while the task is ready or throttled.
    until: Instant,
    /// Progress of the job within a nanosecond, while it does not run.
    begun: Begun,
}

impl Speeds {
    /// `None` if every CPU is always at full speed, or the policy does not model speeds.
    pub(crate) fn new(set: &TaskSet, budgets: Budgets, tasks: &[TaskState]) -> Option<Self> {
        let platform = &set.platform;
        let are_scaled = platform.frequency == Frequency::GrubPa;
        let mut capacities: Vec<Speed> = platform
            .capacities
            .iter()
            .map(|&capacity| Speed::of_capacity(capacity))
            .collect();
        capacities.resize(platform.cpus, Speed::FULL);
        let is_slow = capacities.iter().any(|&capacity| capacity < Speed::FULL);
        if budgets == Budgets::OfJobs || !(are_scaled || is_slow) {
            return None;
        }
        let activity = |state: &TaskState| Activity {
            attributes: state.attributes,
            bandwidth: bandwidth(&state.attributes),
            deadline: Instant::ZERO,
            until: Instant::ZERO,
            begun: 0,
        };
        Some(Self {
            active: vec![0; capacities.len()],
            capacities,
            are_scaled,
            tasks: tasks.iter().map(activity).collect(),
            next: Instant::NEVER,
        })
    }

    /// The next instant at which speeds may change without another event.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// The initial speed of the CPU, which is constant if frequencies do not follow the load.
    pub(crate) fn capacity(&self, cpu: CpuId) -> Speed {
        self.capacities[cpu.index()]
    }

    /// Takes the progress of the task's job, which starts on a CPU.
    pub(crate) fn take_begun(&mut self, id: TaskId) -> Begun {
        core::mem::take(&mut self.tasks[id.index()].begun)
    }

    /// Saves the progress of the task's job, which was preempted.
    pub(crate) fn put_aside(&mut self, id: TaskId, begun: Begun) {
        self.tasks[id.index()].begun = begun;
    }

    /// Adds up the active bandwidth of each CPU after all events of this instant. One step per task.
    fn add_up(&mut self, now: Instant, tasks: &[TaskState], plans: &[Plan], policy: &dyn Policy) {
        self.active.fill(0);
        self.next = Instant::NEVER;
        for (index, activity) in self.tasks.iter_mut().enumerate() {
            activity.follow(&tasks[index], plans[index].server.as_ref());
            if activity.until <= now {
                continue;
            }
            self.next = self.next.min(activity.until);
            if let Some(cpu) = policy.queue_of(TaskId::from_index(index)) {
                self.active[cpu.index()] += activity.bandwidth;
            }
        }
    }
}

impl Activity {
    /// Updates the activity to the state of the task at this instant.
    fn follow(&mut self, state: &TaskState, server: Option<&Server>) {
        if self.attributes != state.attributes {
            self.attributes = state.attributes;
            self.bandwidth = bandwidth(&state.attributes);
        }
        match state.stage {
            Stage::Ready | Stage::Spinning => {
                self.deadline = state.deadline;
                self.until = Instant::NEVER;
            }
            Stage::Throttled => self.until = Instant::NEVER,
            Stage::Idle | Stage::Suspended | Stage::Blocked | Stage::Absent => {
                if self.until == Instant::NEVER {
                    self.until = self.zero_lag(server.map_or(Span::ZERO, Server::left));
                }
            }
        }
    }

    /// The 0-lag time of a task that blocks with the remaining budget `left`: d - q T/C.
    fn zero_lag(&self, left: Span) -> Instant {
        let cost = u128::from(self.attributes.cost.as_ns().max(1));
        let ns = u128::from(left.as_ns()) * u128::from(self.attributes.period.as_ns()) / cost;
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        Instant::from_ns(self.deadline.as_ns().saturating_sub(ns))
    }
}

/// C/T in units of 2^-20, rounded up.
fn bandwidth(attributes: &ServerParameters) -> u64 {
    let period = u128::from(attributes.period.as_ns().max(1));
    let units = (u128::from(attributes.cost.as_ns()) << BITS).div_ceil(period);
    // A task may ask for more than one CPU; it does not get it.
    u64::try_from(units).map_or(1 << 40, |units| units.min(1 << 40))
}

impl<R: Recorder> Engine<'_, R> {
    /// Sets the speeds of all CPUs after all events of this instant, before the switches.
    #[inline(never)]
    pub(crate) fn follow_load(&mut self, now: Instant) {
        let Some(speeds) = self.speeds.as_mut().filter(|speeds| speeds.are_scaled) else {
            return;
        };
        let next = speeds.next;
        speeds.add_up(now, &self.tasks, &self.plans, self.policy.as_ref());
        let is_other = speeds.next != next;
        for index in 0..self.cpus.len() {
            let Some(speeds) = &self.speeds else { return };
            let speed = Speed::of(speeds.active[index], speeds.capacities[index]);
            if speed != self.cpus[index].speed {
                self.change_speed(now, CpuId::from_index(index), speed);
            }
        }
        if is_other {
            self.plan_rare();
        }
    }

    /// Changes the speed of the CPU. Its job is charged at the old speed, and its stop is recomputed with the new
    /// one.
    fn change_speed(&mut self, now: Instant, cpu: CpuId, speed: Speed) {
        let state = &self.cpus[cpu.index()];
        let is_here = |id: &TaskId| self.tasks[id.index()].cpu == Some(cpu);
        let running = state.running.map(|job| job.task).filter(is_here);
        if let Some(id) = running {
            self.charge_so_far(now, id);
        }
        let state = &mut self.cpus[cpu.index()];
        state.speed = speed;
        if running.is_some() {
            state.stop = now.max(state.free_at) + speed.lasts(state.granted, state.begun);
            self.stops.set(cpu.index(), state.stop);
        }
    }

    /// Work that the CPU's job has executed and has not been charged for. Reduces the granted work by it.
    pub(crate) fn take_done(&mut self, now: Instant, cpu: CpuId) -> Span {
        let state = &mut self.cpus[cpu.index()];
        let undone = state.stop.late_since(now.max(state.free_at));
        let done = if self.speeds.is_none() {
            state.granted.saturating_sub(undone)
        } else {
            let done;
            (done, state.begun) = state.speed.done(state.granted, state.begun, undone);
            done
        };
        state.granted -= done;
        done
    }

    /// Time that the CPU needs for the work that the task's job is granted.
    pub(crate) fn lasts(&mut self, cpu: CpuId, id: TaskId, granted: Span) -> Span {
        let Some(speeds) = &mut self.speeds else {
            return granted;
        };
        let state = &mut self.cpus[cpu.index()];
        state.begun = speeds.take_begun(id);
        state.speed.lasts(granted, state.begun)
    }

    /// Notes that the task is about to leave. Its remaining budget determines its 0-lag time; its progress
    /// within a nanosecond is dropped.
    pub(crate) fn note_leaving(&mut self, now: Instant, id: TaskId) {
        if self.speeds.is_none() {
            return;
        }
        self.charge_so_far(now, id);
        if let Some(speeds) = &mut self.speeds {
            speeds.put_aside(id, 0);
        }
    }
}
