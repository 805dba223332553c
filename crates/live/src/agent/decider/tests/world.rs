//! An ideal machine: time is a number, threads do exactly what [`Jobs`] gives, and nothing takes any time.
//!
//! It reports what the programs in `bpf/` report, in their order, and enacts slots as they do. Only its reports
//! may be late or lost on their way to the decider, by [`Trouble`].

mod agent;
mod changes;
mod threads;

use std::collections::{BTreeSet, VecDeque};

use rustix::thread::Pid;
use shiftwork_machine::{ServerRule, Step, Taken, may_be_throttled};
use shiftwork_model::{
    Affinity, Change, CpuId, CpuSet, Instant, OnOverrun, Priority, RandomStream, Record,
    ResourceId, Span, TaskId, TaskSet,
};
use shiftwork_policy::registry::Entry;

use super::super::Decider;
use super::sets::{GRACE, HORIZON};
use crate::Plan;
use crate::agent::{Slot, TaskSnapshot};
use crate::event::{Event, Kind, TriggerValue, UnlockValue, why};
use crate::machine::{Excess, Parameters};
use crate::translate::EventTranslator;
use crate::work::{Jobs, ON_TRIGGER_NS};

/// When the decider is created, and when the run begins, on the monotonic clock.
const BASE_NS: u64 = 5_000_000;
const ORIGIN_NS: u64 = 72_000_000;

/// Limit of the rounds at one instant; more would be an endless loop.
const ROUNDS_MAX: usize = 10_000;

/// Properties in which machines differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// Threads sleep until their release and wake up by themselves, as under sched_ext; otherwise they
    /// wait until they are started.
    pub(super) sleeps: bool,
    /// A thread leaves its CPU after each job, even if its next job is ready.
    pub(super) always_stops: bool,
    /// Changed affinities are reported by the kernel, instead of requested from the agent.
    pub(super) reports_affinities: bool,
}

impl Habits {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = RandomStream::new(seed, 12, 0);
        let mut coin = || random.below(2) == 0;
        Self {
            sleeps: coin(),
            always_stops: coin(),
            reports_affinities: coin(),
        }
    }
}

/// Delay and loss of reports.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) random: RandomStream,
    pub(super) delay_ns_max: u64,
    /// How many of a thousand reports are lost, from the first instant of the run to the second.
    pub(super) lost: u64,
    pub(super) between: (Instant, Instant),
}

/// A job to do.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// `None` if a trigger releases it.
    release: Option<Instant>,
    run: Span,
    /// The rest of the job is dropped at this instant.
    until: Instant,
}

impl Job {
    /// Its release as threads report it.
    fn release_ns(&self) -> u64 {
        let release = self.release.map(|release| ORIGIN_NS + release.as_ns());
        release.unwrap_or(ON_TRIGGER_NS)
    }
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    /// It has not started its job.
    Waits,
    Computes,
    /// Suspended within a job, until then.
    Sleeps(u64),
    /// It has requested this mutex, or unlocked some, and waits for the answer on its CPU as long as it has one.
    Requests(Option<ResourceId>),
    Ended,
}

struct Thread {
    jobs: Jobs,
    doing: Doing,
    /// The job that it waits for or does.
    job: Job,
    left_ns: u64,
    rests: VecDeque<(Step, Span)>,
    /// The CPU that has it in its slot.
    on: Option<usize>,
    snapshot: TaskSnapshot,
    jobs_done: u64,
}

#[derive(Clone, Copy, Default)]
struct Cpu {
    slot: Option<TaskId>,
    current: Option<TaskId>,
    since_ns: u64,
    gone: bool,
}

pub(super) struct World<'a> {
    pub(super) name: String,
    set: &'a TaskSet,
    habits: Habits,
    trouble: Option<Trouble>,
    pub(super) decider: Decider,
    translator: EventTranslator,
    pub(super) records: Vec<Record>,
    threads: Vec<Option<Thread>>,
    cpus: Vec<Cpu>,
    bound: Vec<Affinity>,
    attributes: Vec<[Span; 3]>,
    priorities: Vec<Priority>,
    refused: BTreeSet<usize>,
    done_actions: usize,
    now_ns: u64,
    /// Reports in flight, and when they arrive.
    in_flight: VecDeque<(u64, Event)>,
    lost: u64,
    lost_before: u64,
    slots: Vec<Slot>,
    /// The threads that go on with a mutex.
    holders: Vec<Option<TaskId>>,
    /// Number of allocations in reports and decisions.
    pub(super) allocated: u64,
    /// From this instant on the simulator gives changes of the set another meaning.
    pub(super) differs_from: Instant,
    /// When the decider was last set to the state of the machine because reports were lost.
    pub(super) synced: Option<Instant>,
}

/// The machine's number of a CPU of the platform.
fn machine_cpu(index: usize) -> CpuId {
    CpuId::from_index(2 * index + 1)
}

fn on_machine(cpus: &CpuSet) -> CpuSet {
    cpus.iter().map(|cpu| machine_cpu(cpu.index())).collect()
}

fn next(jobs: &mut Jobs, now: Instant) -> Option<Job> {
    let next = jobs.next(now)?;
    let (release, run, until) = (next.release, next.run, next.until);
    Some(Job {
        release,
        run,
        until,
    })
}

fn number(id: TaskId) -> u32 {
    id.index() as u32 + 1
}

impl<'a> World<'a> {
    /// `refused`: the actions of the set that are not made.
    pub(super) fn new(
        entry: &Entry,
        set: &'a TaskSet,
        seed: u64,
        habits: Habits,
        refused: BTreeSet<usize>,
    ) -> Self {
        let policy = entry.build(set).unwrap();
        let own = set.tasks.iter().map(|task| task.affinity).collect();
        let plan = Plan {
            set,
            traits: entry.traits,
            bound: policy.packing().unwrap_or(own),
            cpus: (0..set.platform.cpus).map(machine_cpu).collect(),
        };
        let jobs = |id| Jobs::new(set, id, seed, HORIZON);
        let all = set.iter().map(|(id, _)| Some(jobs(id))).collect();
        let span = (HORIZON + Span::from_s(100)).since(Instant::ZERO).unwrap();
        let mut translator = EventTranslator::planned(&plan, all, HORIZON);
        translator.begin(ORIGIN_NS);
        let thread = |(id, _)| {
            let mut jobs = jobs(id);
            let first = next(&mut jobs, Instant::ZERO)?;
            Some(Thread {
                jobs,
                doing: Doing::Waits,
                job: first,
                left_ns: 0,
                rests: VecDeque::new(),
                on: None,
                snapshot: TaskSnapshot::default(),
                jobs_done: 0,
            })
        };
        Self {
            name: format!("{} seed {seed} {habits:?}", entry.name),
            set,
            habits,
            trouble: None,
            decider: Decider::new(&plan, policy, BASE_NS, span).without_grace(),
            translator,
            records: Vec::new(),
            threads: set.iter().map(thread).collect(),
            cpus: vec![Cpu::default(); set.platform.cpus],
            bound: plan.bound,
            attributes: set
                .tasks
                .iter()
                .map(|task| [task.cost, task.period, task.deadline])
                .collect(),
            priorities: set.priorities(),
            refused,
            done_actions: 0,
            now_ns: BASE_NS + 1,
            in_flight: VecDeque::new(),
            lost: 0,
            lost_before: 0,
            slots: Vec::with_capacity(64),
            holders: vec![None; set.resources.len()],
            allocated: 0,
            differs_from: Instant::NEVER,
            synced: None,
        }
    }

    pub(super) fn with_trouble(mut self, trouble: Trouble) -> Self {
        self.name = format!("{} {trouble:?}", self.name);
        self.trouble = Some(trouble);
        self
    }

    /// The time of the run.
    fn now(&self) -> Instant {
        self.instant(self.now_ns)
    }

    fn instant(&self, at_ns: u64) -> Instant {
        Instant::from_ns(at_ns.saturating_sub(ORIGIN_NS))
    }

    fn thread(&mut self, id: TaskId) -> &mut Thread {
        self.threads[id.index()].as_mut().unwrap()
    }

    /// Admits all tasks and runs to the horizon.
    pub(super) fn run(&mut self) {
        self.admit_all();
        loop {
            let next_ns = self.next_ns();
            if self.instant(next_ns) >= HORIZON {
                break;
            }
            self.advance(next_ns);
            self.live_through();
        }
        let end_ns = ORIGIN_NS + HORIZON.as_ns();
        self.advance(end_ns);
        self.finish_stretches();
        self.deliver_reports();
        self.translate_events();
        self.translator.advance(end_ns, &mut self.records);
    }

    /// Admits all tasks and runs until all jobs are done.
    pub(super) fn run_out(&mut self) {
        self.admit_all();
        for _ in 0..1_000_000 {
            let next_ns = self.next_ns();
            if next_ns == u64::MAX || self.is_over() {
                return;
            }
            self.advance(next_ns);
            self.live_through();
            self.check_slots();
        }
        panic!("{}: it does not end", self.name);
    }

    fn is_over(&self) -> bool {
        let ended = |thread: &Thread| matches!(thread.doing, Doing::Ended);
        self.in_flight.is_empty() && self.threads.iter().flatten().all(ended)
    }

    /// Number of finished jobs of each task.
    pub(super) fn jobs_done(&self) -> Vec<u64> {
        let of = |thread: &Option<Thread>| thread.as_ref().map_or(0, |thread| thread.jobs_done);
        self.threads.iter().map(of).collect()
    }

    fn admit_all(&mut self) {
        for (id, _) in self.set.iter() {
            if self.threads[id.index()].is_some() && !self.set.enters_later(id) {
                self.now_ns += 1;
                self.admit(id);
            }
        }
        for (id, _) in self.set.iter() {
            let Some(thread) = &self.threads[id.index()] else {
                continue;
            };
            if !self.set.enters_later(id) {
                let release_ns = thread.job.release_ns();
                self.now_ns += 1;
                self.decider.first_job(self.now_ns, id, release_ns);
            }
        }
        self.advance(ORIGIN_NS);
        for (id, _) in self.set.iter() {
            if self.threads[id.index()].is_some() && !self.thread(id).snapshot.awake {
                self.wake(id);
            }
        }
        self.live_through();
    }

    fn parameters(&self, id: TaskId) -> Parameters {
        let task = &self.set.tasks[id.index()];
        let [cost, period, deadline] = self.attributes[id.index()];
        let is_linux = self.decider.rule != ServerRule::Releases;
        // Priority points follow from the cost as it is.
        let is_by_cost = self.decider.order.is_by_cost();
        let on_overrun = match task.on_overrun {
            // Linux's servers enforce every budget.
            _ if is_linux => OnOverrun::Throttle,
            OnOverrun::Throttle if !may_be_throttled(self.set, id) => OnOverrun::Continue,
            other => other,
        };
        Parameters {
            thread: Pid::from_raw(1).unwrap(),
            cpus: on_machine(self.bound[id.index()].cpus()),
            cost: if is_linux || is_by_cost {
                cost
            } else {
                cost.saturating_sub(GRACE)
            },
            period,
            deadline,
            on_overrun,
            excess: Excess::in_run(on_overrun, false),
            priority: self.priorities[id.index()],
            follows: true,
            start: None,
        }
    }

    fn admit(&mut self, id: TaskId) {
        let (of, sleeps) = (self.parameters(id), self.habits.sleeps);
        let thread = self.thread(id);
        // Before its release a thread sleeps, or waits where it can be started.
        let awake = !sleeps;
        thread.snapshot = TaskSnapshot {
            awake,
            present: true,
            ..TaskSnapshot::default()
        };
        // The translator takes a job that is released just when the task enters for one of before.
        self.now_ns -= 1;
        self.report(Kind::Entered, Some(id), None, 0);
        self.now_ns += 1;
        let admitted = self.decider.admit(self.now_ns, id, &of, awake);
        admitted.unwrap_or_else(|reason| panic!("{}: {id:?} is refused: {reason}", self.name));
        self.deliver_reports();
    }

    fn next_ns(&self) -> u64 {
        let mut next = self.decider.next_ns().max(self.now_ns);
        if let Some(&action) = self.actions().get(self.done_actions) {
            next = next.min(ORIGIN_NS + self.set.actions[action].at.as_ns());
        }
        if let Some(&(arrives_ns, _)) = self.in_flight.front() {
            next = next.min(arrives_ns);
        }
        for cpu in &self.cpus {
            if let Some(id) = cpu.current {
                let thread = self.threads[id.index()].as_ref().unwrap();
                if !matches!(thread.doing, Doing::Requests(_)) {
                    next = next.min(self.now_ns + thread.left_ns);
                }
            }
        }
        for thread in self.threads.iter().flatten() {
            match &thread.doing {
                Doing::Sleeps(until_ns) => next = next.min(*until_ns),
                Doing::Waits if !thread.snapshot.awake => {
                    next = next.min(thread.job.release_ns());
                }
                _ => {}
            }
        }
        next.max(self.now_ns)
    }

    /// The actions that are made, in the order of time.
    fn actions(&self) -> Vec<usize> {
        (0..self.set.actions.len())
            .filter(|action| !self.refused.contains(action))
            .collect()
    }

    fn advance(&mut self, to_ns: u64) {
        let ran = to_ns - self.now_ns;
        for cpu in 0..self.cpus.len() {
            if let Some(id) = self.cpus[cpu].current {
                let thread = self.thread(id);
                if !matches!(thread.doing, Doing::Requests(_)) {
                    thread.left_ns = thread.left_ns.checked_sub(ran).unwrap();
                }
            }
        }
        self.now_ns = to_ns;
    }

    /// Everything that happens at one instant, in the simulator's order.
    fn live_through(&mut self) {
        self.finish_stretches();
        self.deliver_reports();
        self.act();
        self.wake_sleepers();
        for _ in 0..ROUNDS_MAX {
            self.poll();
            if !self.switch() {
                self.translate_events();
                return;
            }
        }
        panic!("{} at {}: it does not settle", self.name, self.now());
    }

    fn report(&mut self, kind: Kind, id: Option<TaskId>, cpu: Option<usize>, value: u64) {
        let event = Event {
            at: self.now_ns,
            value,
            task: id.map_or(0, number),
            cpu: cpu.map(|cpu| machine_cpu(cpu).index() as u16),
            kind,
        };
        let now = self.now();
        let mut arrives_ns = self.now_ns;
        if let Some(trouble) = &mut self.trouble {
            let (from, to) = trouble.between;
            let may_be_lost = !matches!(
                kind,
                Kind::CpuLost
                    | Kind::CpuBack
                    | Kind::Affinity
                    | Kind::LockRequested
                    | Kind::UnlockRequested
            );
            if may_be_lost && from <= now && now < to && trouble.random.below(1000) < trouble.lost {
                self.lost += 1;
                self.translate_events();
                self.translator.take(event, &mut self.records);
                return;
            }
            arrives_ns += trouble.random.below(trouble.delay_ns_max + 1);
        }
        let last = self
            .in_flight
            .back()
            .map_or(0, |&(arrives_ns, _)| arrives_ns);
        self.in_flight.push_back((arrives_ns.max(last), event));
    }

    fn translate_events(&mut self) {
        for &event in &self.decider.events {
            self.translator.take(event, &mut self.records);
        }
        self.decider.events.clear();
    }
}
