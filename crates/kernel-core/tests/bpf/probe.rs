//! One event of the core as plain numbers: `struct probe` of probe.h.

use shiftwork_kernel_core::{Core, TaskNumber};
use shiftwork_model::{CpuId, Instant, Order, Priority, Span, TaskId};

use crate::machine::Machine;

/// `enum probe_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    Init,
    Enter,
    Leave,
    SetServer,
    Follow,
    NextJob,
    Wake,
    Sleep,
    Spend,
    Charge,
    Yield,
    Replenish,
    SetAffinity,
    Narrow,
    CpuLeave,
    CpuJoin,
    SetPriority,
    SetDeadline,
    Arrive,
    Depart,
}

/// `struct probe`: the meaning of each number depends on the event.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub event: Event,
    pub task: u32,
    pub cpu: u32,
    pub priority: u32,
    pub now: u64,
    pub span: u64,
    pub mask: u64,
}

/// Offsets of the result and of the state, after the probe.
const RESULT: usize = 40;
const STATE: usize = 48;

impl Probe {
    /// An event of a task, all other numbers zero.
    pub fn of(event: Event, task: TaskId) -> Self {
        Self {
            event,
            task: task.index() as u32 + 1,
            cpu: 0,
            priority: 1,
            now: 0,
            span: 0,
            mask: 0,
        }
    }

    /// Applies it in BPF; returns the CPUs whose assignment may have changed.
    pub fn run(&self, machine: &mut Machine) -> u64 {
        let words = [self.event as u32, self.task, self.cpu, self.priority];
        let doubles = [self.now, self.span, self.mask];
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        let doubles = doubles.iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> = words.chain(doubles).collect();
        machine.variable("shared")[..RESULT].copy_from_slice(&bytes);
        machine.run("step");
        let result = &machine.variable("shared")[RESULT..STATE];
        u64::from_le_bytes(result.try_into().unwrap())
    }

    /// Applies it natively.
    pub fn apply(&self, core: &mut Core) -> u64 {
        let task = TaskNumber::of(TaskId::from_index(self.task as usize - 1)).unwrap();
        let cpu = CpuId::from_index(self.cpu as usize);
        let (now, span) = (Instant::from_ns(self.now), Span::from_ns(self.span));
        let priority = Priority::new(self.priority.max(1)).unwrap();
        match self.event {
            Event::Init => {
                let order = [Order::Edf, Order::FixedPriority][self.priority as usize];
                *core = Core::new(order, self.mask);
            }
            Event::Enter => {
                let start = self.cpu.checked_sub(1);
                let start = start.map(|cpu| CpuId::from_index(cpu as usize));
                return core.enter(task, self.mask, start);
            }
            Event::Leave => return core.leave(task),
            Event::SetServer => {
                let (period, relative) = (Span::from_ns(self.now), Span::from_ns(self.mask));
                return core
                    .set_server(task, span, period, relative)
                    .is_err()
                    .into();
            }
            Event::Follow => core.follow(task),
            Event::NextJob => return core.next_job(task, Instant::from_ns(self.span), now),
            Event::Wake => return core.wake(task, now),
            Event::Sleep => return core.sleep(task),
            Event::Spend => core.spend(task, span),
            Event::Charge => return core.charge(task, span, now),
            Event::Yield => return core.yield_job(task, now),
            Event::Replenish => return core.replenish_next(now),
            Event::SetAffinity => return core.set_affinity(task, self.mask),
            Event::Narrow => return core.narrow(task, self.mask),
            Event::CpuLeave => return core.cpu_leave(cpu),
            Event::CpuJoin => return core.cpu_join(cpu),
            Event::SetPriority => return core.set_priority(task, priority),
            Event::SetDeadline => return core.set_deadline(task, now),
            Event::Arrive => {
                return core.arrive(task, now, Instant::from_ns(self.span), priority);
            }
            Event::Depart => return core.depart(task),
        }
        0
    }
}

/// The state of the core in BPF.
pub fn state(machine: &mut Machine) -> &[u8] {
    &machine.variable("shared")[STATE..][..Core::STATE_BYTES]
}
