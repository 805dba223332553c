//! The core and the reference implementation in lockstep: the same switches after every event, and
//! the invariants of the core's state.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use shiftwork_kernel_core::KernelPolicy;
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Job, Order, Priority, RandomStream, Span, Task, TaskId,
    TaskSet,
};
use shiftwork_policy::registry::find;
use shiftwork_policy::{Event, Policy, Switch, Switches};

/// How the masks of a task set are drawn.
#[derive(Clone, Copy, Debug)]
enum Masks {
    /// Any CPU with a probability drawn per mask.
    Arbitrary,
    /// One to three CPUs: long chains.
    Sparse,
    /// A CPU and the next: the longest chains.
    Chain,
    /// One CPU or all.
    Bilevel,
}

fn mask(random: &mut RandomStream, masks: Masks, cpus: usize) -> CpuSet {
    let mut any = || CpuId::from_index(random.below(cpus as u64) as usize);
    let first = any();
    let mut mask = CpuSet::single(first);
    match masks {
        Masks::Arbitrary => {
            let share = 1 + random.below(4);
            let drawn = CpuSet::first(cpus);
            mask = mask | drawn.iter().filter(|_| random.below(4) < share).collect();
        }
        Masks::Sparse => mask = mask | [any(), any()].into_iter().collect(),
        Masks::Chain => mask.insert(CpuId::from_index((first.index() + 1) % cpus)),
        Masks::Bilevel if random.below(2) == 0 => mask = CpuSet::first(cpus),
        Masks::Bilevel => {}
    }
    mask
}

fn task_set(random: &mut RandomStream, masks: Masks, cpus: usize, tasks: usize) -> TaskSet {
    let task = |index| {
        let affinity = Affinity::new(mask(random, masks, cpus)).unwrap();
        let (cost, period) = (Span::from_ms(1), Span::from_ms(10));
        let mut task = Task::periodic(&format!("t{index}"), cost, period, affinity);
        if random.below(3) == 0 {
            task.start_cpu = Some(CpuId::from_index(random.below(cpus as u64) as usize));
        }
        task
    };
    let mut set = TaskSet::new("test", cpus, (0..tasks).map(task).collect());
    if random.below(2) == 0 {
        let half: CpuSet = (0..cpus / 2).map(CpuId::from_index).collect();
        set.platform.caches = vec![half, CpuSet::first(cpus) - half];
    }
    set
}

struct Pair {
    core: KernelPolicy,
    reference: Box<dyn Policy>,
    outs: [Switches; 2],
    present: Vec<bool>,
    priorities: Vec<Priority>,
    now: u64,
}

impl Pair {
    fn new(set: &TaskSet, order: Order) -> Self {
        let (name, reference) = match order {
            Order::Edf => ("strong-edf-kernel", "strong-edf"),
            _ => ("strong-fp-kernel", "strong-fp"),
        };
        Self {
            core: KernelPolicy::new(name, order, set).unwrap(),
            reference: find(reference).unwrap().build(set).unwrap(),
            outs: [Switches::new(), Switches::new()],
            present: vec![true; set.tasks.len()],
            priorities: set.priorities(),
            now: 0,
        }
    }

    /// Applies the event to both. Returns the number of shifts that it caused.
    fn apply(&mut self, event: Event<'_>, replay: &str) -> usize {
        self.outs.iter_mut().for_each(Vec::clear);
        self.core.on_event(event, &mut self.outs[0]);
        self.reference.on_event(event, &mut self.outs[1]);
        for out in &mut self.outs {
            out.sort_by_key(|switch| switch.cpu);
        }
        assert_eq!(self.outs[0], self.outs[1], "{replay}: {event:?}");
        let fault = self.core.core().fault();
        assert_eq!(fault, None, "{replay}: {event:?}");
        shifts(&self.outs[0])
    }

    fn step(
        &mut self,
        random: &mut RandomStream,
        masks: Masks,
        set: &TaskSet,
        replay: &str,
    ) -> usize {
        self.now += random.below(2);
        let cpus = set.platform.cpus;
        let index = random.below(set.tasks.len() as u64) as usize;
        let id = TaskId::from_index(index);
        let deadline = Instant::from_ns(self.now + random.below(20));
        let priority = Priority::new(1 + random.below(12) as u32).unwrap();
        let drawn = Affinity::new(mask(random, masks, cpus)).unwrap();
        let cpu = CpuId::from_index(random.below(cpus as u64) as usize);
        let event = match random.below(40) {
            0 | 1 => Event::SetDeadline(id, deadline),
            2 => {
                self.priorities[index] = priority;
                Event::SetPriority(id, priority)
            }
            3..6 if self.present[index] => Event::SetAffinity(id, &drawn),
            6 => Event::CpuOffline(cpu),
            7 | 8 => Event::CpuOnline(cpu),
            9 => {
                self.present[index] = false;
                Event::Leave(id)
            }
            10..13 if !self.present[index] => {
                self.present[index] = true;
                Event::Enter(id, &set.tasks[index])
            }
            13..20 => Event::Complete(id),
            20..23 => Event::Block(id),
            _ if self.present[index] => Event::Wake(Job {
                task: id,
                ready: Instant::from_ns(self.now),
                deadline,
                priority: self.priorities[index],
            }),
            _ => Event::Tick { cpu, quantum: 0 },
        };
        self.apply(event, replay)
    }
}

fn shifts(out: &[Switch]) -> usize {
    let came =
        |switch: &&Switch| switch.to.is_some() && out.iter().any(|other| other.from == switch.to);
    out.iter().filter(came).count()
}

#[test]
fn core_makes_the_same_switches_as_the_reference() {
    let factor = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        10
    } else {
        1
    };
    let mut moved = 0;
    for (cpus_max, tasks_max, seeds, steps) in
        [(5, 12, 250, 200), (20, 60, 40, 500), (64, 500, 4, 2000)]
    {
        for seed in 1..=seeds * factor {
            let masks = [
                Masks::Arbitrary,
                Masks::Sparse,
                Masks::Chain,
                Masks::Bilevel,
            ];
            let masks = masks[seed as usize % 4];
            for order in [Order::Edf, Order::FixedPriority] {
                let mut random = RandomStream::new(seed, cpus_max, 0);
                let cpus = 2 + random.below(cpus_max - 1) as usize;
                let tasks = 1 + random.below(tasks_max) as usize;
                let set = task_set(&mut random, masks, cpus, tasks);
                let mut pair = Pair::new(&set, order);
                for step in 0..steps {
                    let replay =
                        format!("{order:?} {masks:?} {cpus_max} CPUs seed {seed} step {step}");
                    moved += pair.step(&mut random, masks, &set, &replay);
                }
            }
        }
    }
    assert!(moved > 1000, "hardly anything moved: {moved}");
}

#[test]
fn longest_chain_of_shifts_moves_every_runner() {
    let pinned = |bits| Affinity::new(CpuSet::from_bits(bits)).unwrap();
    let task =
        |name: &str, affinity| Task::periodic(name, Span::from_ms(1), Span::from_ms(9), affinity);
    // Task i of 63 may use CPUs i and i + 1 and is assigned to i; the last is bound to CPU 0.
    let mut tasks: Vec<Task> = (0..63).map(|i| task("chain", pinned(0b11 << i))).collect();
    tasks.push(task("bound", pinned(1)));
    let set = TaskSet::new("chain", 64, tasks);
    let mut pair = Pair::new(&set, Order::Edf);
    let wake = |index| {
        Event::Wake(Job {
            task: TaskId::from_index(index),
            ready: Instant::ZERO,
            deadline: Instant::from_ns(9),
            priority: Priority::MOST_URGENT,
        })
    };
    for index in 0..63 {
        assert_eq!(pair.apply(wake(index), "chain"), 0);
    }
    assert_eq!(pair.apply(wake(63), "bound"), 63);
}
