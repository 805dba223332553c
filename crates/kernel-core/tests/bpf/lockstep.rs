//! Random events for the BPF build and the native build of the core: after each event the bytes of both
//! states are equal.

use shiftwork_kernel_core::Core;
use shiftwork_model::{Order, RandomStream, TaskId};

use crate::machine::Machine;
use crate::probe::{Event, Probe, state};

/// The events after all tasks have entered, listed in proportion to their frequency.
const USUAL: [Event; 32] = [
    Event::Wake,
    Event::Wake,
    Event::Wake,
    Event::Wake,
    Event::Wake,
    Event::Wake,
    Event::Sleep,
    Event::Sleep,
    Event::Sleep,
    Event::Charge,
    Event::Charge,
    Event::Spend,
    Event::Yield,
    Event::NextJob,
    Event::NextJob,
    Event::NextJob,
    Event::NextJob,
    Event::Replenish,
    Event::Replenish,
    Event::Replenish,
    Event::SetAffinity,
    Event::CpuJoin,
    Event::CpuJoin,
    Event::CpuLeave,
    Event::Narrow,
    Event::SetPriority,
    Event::SetDeadline,
    Event::Arrive,
    Event::Depart,
    Event::Leave,
    Event::Enter,
    Event::Follow,
];

struct Sequence {
    random: RandomStream,
    cpus: u64,
    tasks: u64,
    all: u64,
    now: u64,
}

impl Sequence {
    fn event(&mut self, step: u64, core: &Core) -> Probe {
        let tasks = self.tasks;
        let random = &mut self.random;
        let cpu = random.below(self.cpus);
        self.now += random.below(1_000);
        let task = match step {
            0 => 0,
            step if step <= 3 * tasks => (step - 1) % tasks,
            _ => random.below(tasks),
        };
        let mut probe = Probe {
            event: USUAL[random.below(USUAL.len() as u64) as usize],
            cpu: cpu as u32,
            priority: 1 + random.below(20) as u32,
            now: self.now,
            span: random.below(30_000),
            mask: 1 + random.below(self.all),
            ..Probe::of(Event::Init, TaskId::from_index(task as usize))
        };
        if random.below(3) == 0 {
            probe.mask = 1 << cpu;
        }
        match step.div_ceil(tasks) {
            0 => {
                probe.event = Event::Init;
                (probe.priority, probe.mask) = (random.below(2) as u32, self.all);
            }
            1 => probe.event = Event::Enter,
            2 => {
                probe.event = Event::SetServer;
                probe.now = 20_000 + random.below(100_000);
                probe.mask = 10_000 + random.below(10_000);
                probe.span = 1 + random.below(probe.mask);
            }
            3 => probe.event = [Event::Follow, Event::Wake][random.below(2) as usize],
            _ => self.aim(&mut probe, core),
        }
        probe
    }

    /// Mostly changes the probe to an event that the state allows.
    fn aim(&mut self, probe: &mut Probe, core: &Core) {
        let cpu = shiftwork_model::CpuId::from_index(probe.cpu as usize);
        let aims = probe.event != Event::Wake && self.random.below(2) == 0;
        if let (Some(runner), true) = (core.runner(cpu), aims) {
            probe.task = runner.task().index() as u32 + 1;
        }
        match probe.event {
            Event::Narrow if self.random.below(2) == 0 => probe.mask = 0,
            Event::NextJob => probe.span += self.now.saturating_sub(10_000),
            Event::Arrive => probe.span += self.now,
            _ => {}
        }
    }
}

/// Runs one random sequence on a machine that has the probe loaded.
pub fn play(machine: &mut Machine, name: &str, seed: u64, steps: u64) {
    let mut random = RandomStream::new(seed, 0, 0);
    let (cpus, tasks) = (2 + random.below(63), 1 + random.below(200));
    let all = u64::MAX >> (64 - cpus);
    let mut sequence = Sequence {
        random,
        cpus,
        tasks,
        all,
        now: 0,
    };
    let mut core = Core::new(Order::Edf, 0);
    machine.variable("shared").fill(0);
    for step in 0..steps {
        let probe = sequence.event(step, &core);
        let replay = format!("{name}, seed {seed}, step {step}: {probe:?}");
        assert_eq!(probe.run(machine), probe.apply(&mut core), "{replay}");
        assert!(state(machine) == core.snapshot(), "{replay}: states differ");
    }
    assert_eq!(core.fault(), None, "{name}, seed {seed}");
}
