//! Policies by laxity against their definitions, one unit of time after the other.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Job, Priority, RandomStream, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::{Event, Policy, Switches, registry};

const QUANTUM: u64 = 4;

/// A ready job.
#[derive(Clone, Copy, Debug)]
struct Ready {
    ready: u64,
    deadline: u64,
    left: u64,
}

impl Ready {
    fn latest_start(&self) -> u64 {
        self.deadline.saturating_sub(self.left)
    }
}

/// The key by which the definition ranks a ready job, and whether it is compared at every instant.
struct Definition {
    policy: &'static str,
    key: fn(&Ready, now: u64, runs: bool) -> (u64, u64),
    always: bool,
}

const DEFINITIONS: [Definition; 2] = [
    Definition {
        policy: "edzl",
        key: |job, now, _| (u64::from(job.latest_start() > now), job.deadline),
        always: true,
    },
    Definition {
        policy: "llf",
        key: |job, _, runs| (job.latest_start(), u64::from(!runs)),
        always: false,
    },
];

struct World {
    policy: Box<dyn Policy>,
    jobs: Vec<Option<Ready>>,
    online: Vec<bool>,
    /// The tasks whose jobs run, by CPU.
    machine: Vec<Option<usize>>,
    now: u64,
}

impl World {
    fn new(policy: &str, cpus: usize, tasks: usize) -> Self {
        let all = Affinity::new(CpuSet::first(cpus)).unwrap();
        let task = |index: usize| {
            Task::periodic(
                &format!("t{index}"),
                Span::from_ns(1),
                Span::from_ns(9),
                all,
            )
        };
        let mut set = TaskSet::new("test", cpus, (0..tasks).map(task).collect());
        set.scheduler.quantum = Some(Span::from_ns(QUANTUM));
        Self {
            policy: registry::find(policy).unwrap().build(&set).unwrap(),
            jobs: vec![None; tasks],
            online: vec![true; cpus],
            machine: vec![None; cpus],
            now: 0,
        }
    }

    fn send(&mut self, event: Event<'_>) {
        let mut out = Switches::new();
        self.policy.on_event(event, &mut out);
        self.follow(&out);
    }

    fn follow(&mut self, out: &Switches) {
        for switch in out {
            let runs = &mut self.machine[switch.cpu.index()];
            assert_eq!(*runs, switch.from.map(TaskId::index), "{out:?}");
            *runs = switch.to.map(TaskId::index);
        }
        for (cpu, runs) in self.machine.iter().enumerate() {
            let assigned = self.policy.assigned(CpuId::from_index(cpu));
            assert_eq!(*runs, assigned.map(TaskId::index), "{out:?}");
        }
    }

    /// A job becomes ready or completes, or a CPU goes or comes back.
    fn change(&mut self, random: &mut RandomStream) {
        let index = random.below(self.jobs.len() as u64) as usize;
        let task = TaskId::from_index(index);
        if random.below(12) == 0 {
            let place = random.below(self.online.len() as u64) as usize;
            let cpu = CpuId::from_index(place);
            self.online[place] = !self.online[place];
            return match self.online[place] {
                true => self.send(Event::CpuOnline(cpu)),
                false => self.send(Event::CpuOffline(cpu)),
            };
        }
        if self.jobs[index].take().is_some() {
            return self.send(Event::Complete(task));
        }
        let left = 1 + random.below(9);
        let job = Ready {
            ready: self.now,
            deadline: self.now + left + random.below(12),
            left,
        };
        self.jobs[index] = Some(job);
        self.send(Event::Wake(Job {
            task,
            ready: Instant::from_ns(job.ready),
            deadline: Instant::from_ns(job.deadline),
            priority: Priority::LEAST_URGENT,
        }));
    }

    /// The tasks whose jobs are to run if it is decided now, sorted.
    fn chosen(&self, of: &Definition) -> Vec<usize> {
        let jobs = self.jobs.iter().enumerate();
        let mut ready: Vec<_> = jobs
            .filter_map(|(task, job)| {
                let job = (*job)?;
                let runs = self.machine.contains(&Some(task));
                Some(((of.key)(&job, self.now, runs), job.ready, task))
            })
            .collect();
        ready.sort_unstable();
        let room = self.online.iter().filter(|online| **online).count();
        let mut chosen: Vec<usize> = ready.iter().take(room).map(|job| job.2).collect();
        chosen.sort_unstable();
        chosen
    }

    fn running(&self) -> Vec<usize> {
        let mut running: Vec<usize> = self.machine.iter().flatten().copied().collect();
        running.sort_unstable();
        running
    }

    fn end_instant(&mut self) {
        let starts: Vec<(TaskId, Instant)> = self
            .jobs
            .iter()
            .enumerate()
            .filter_map(|(task, job)| {
                let start = Instant::from_ns((*job)?.latest_start());
                Some((TaskId::from_index(task), start))
            })
            .collect();
        self.send(Event::LatestStarts(Instant::from_ns(self.now), &starts));
        let mut out = Switches::new();
        self.policy.end_instant(&mut out);
        self.follow(&out);
    }

    /// A unit of time passes.
    fn pass(&mut self) {
        for task in self.machine.iter().flatten() {
            let job = self.jobs[*task].as_mut().unwrap();
            job.left = job.left.saturating_sub(1);
        }
        self.now += 1;
    }
}

/// Events at random instants. Between them the policy is called only where it asks for it, and at every instant
/// at which the definition compares laxities its running jobs are those of the definition.
#[test]
fn policies_by_laxity_run_their_definitions() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 600,
    };
    for definition in &DEFINITIONS {
        let mut between = 0;
        for seed in 1..=seeds {
            let mut random = RandomStream::new(seed, 0, 0);
            let cpus = 1 + random.below(3) as usize;
            let tasks = cpus + 1 + random.below(4) as usize;
            let mut world = World::new(definition.policy, cpus, tasks);
            for _ in 0..120 {
                let happens = random.below(3) == 0;
                if happens {
                    for _ in 0..1 + random.below(3) {
                        world.change(&mut random);
                    }
                }
                let is_compared = happens || definition.always || world.now.is_multiple_of(QUANTUM);
                let chosen = world.chosen(definition);
                let asked = world.policy.next_decision() == Some(Instant::from_ns(world.now));
                if happens || asked {
                    between += u64::from(!happens && chosen != world.running());
                    world.end_instant();
                }
                let what = (definition.policy, seed, world.now);
                if is_compared {
                    assert_eq!(world.running(), chosen, "{what:?}: {:?}", world.jobs);
                }
                let next = world.policy.next_decision().unwrap();
                assert!(next.as_ns() > world.now, "{what:?}");
                world.pass();
            }
        }
        assert!(between > seeds, "{}: {between}", definition.policy);
    }
}

#[test]
fn at_equal_laxity_the_running_job_keeps_its_cpu() {
    let mut world = World::new("llf", 1, 2);
    for (task, deadline) in [(0, 12), (1, 12)] {
        let job = Ready {
            ready: 0,
            deadline,
            left: 6,
        };
        world.jobs[task] = Some(job);
        world.send(Event::Wake(Job {
            task: TaskId::from_index(task),
            ready: Instant::ZERO,
            deadline: Instant::from_ns(deadline),
            priority: Priority::LEAST_URGENT,
        }));
    }
    let mut ran = Vec::new();
    for _ in 0..12 {
        if world.now == 8 {
            // The same deadline: a reason to decide.
            let (task, deadline) = (TaskId::from_index(0), Instant::from_ns(12));
            world.send(Event::SetDeadline(task, deadline));
        }
        if [0, 8].contains(&world.now)
            || world.policy.next_decision() == Some(Instant::from_ns(world.now))
        {
            world.end_instant();
        }
        ran.push(world.machine[0].unwrap());
        world.pass();
    }
    // At 4 job 0 has the later latest start, 10 instead of 6; at 8 both have 10. No job completes here.
    assert_eq!(ran, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
}
