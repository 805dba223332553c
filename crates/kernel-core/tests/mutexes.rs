//! Mutexes of the core beside their definition: who holds each, and what each job is scheduled by.
//!
//! Random jobs arrive, lock, unlock, sleep and complete, threads end, and CPUs come and go. The definition computes each rank anew from all that is held and
//! awaited; the core's own check says whether the right jobs have CPUs by these ranks and masks.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use shiftwork_kernel_core::{Core, CoreMutexes, MutexNumber, TaskNumber, TaskState, UNLOCKS_MAX};
use shiftwork_model::{
    CpuId, Instant, Order, Priority, Protocol, RandomStream, ResourceId, Span, TaskId,
};

const PROTOCOLS: [Protocol; 5] = [
    Protocol::None,
    Protocol::Inheritance,
    Protocol::Ceiling,
    Protocol::NonPreemptive,
    Protocol::Spin,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    None,
    Goes,
    Sleeps,
    Waits(usize),
    Spins(usize),
}

#[derive(Clone, Debug)]
struct Task {
    affinity: u64,
    relative: u64,
    /// Its own priority or deadline.
    own: u64,
    job: Job,
    /// Whether its thread is awake while the job waits.
    is_awake: bool,
    held: Vec<usize>,
    /// The CPU that it keeps.
    kept: Option<CpuId>,
    /// Handed over, and not yet running with it.
    given: Option<usize>,
}

#[derive(Clone, Debug)]
struct Mutex {
    protocol: Protocol,
    holder: Option<usize>,
    waiters: Vec<usize>,
    /// Of all that use it: all tasks.
    ceiling: (u64, u64),
    rank: u64,
}

struct World {
    order: Order,
    core: Core,
    mutexes: CoreMutexes,
    cpus: u64,
    offline: Option<CpuId>,
    tasks: Vec<Task>,
    all: Vec<Mutex>,
    now: u64,
}

fn number(task: usize) -> TaskNumber {
    TaskNumber::of(TaskId::from_index(task)).unwrap()
}

fn mutex_number(mutex: usize) -> MutexNumber {
    MutexNumber::of(ResourceId::from_index(mutex)).unwrap()
}

/// A task without a job.
fn enter(core: &mut Core, index: usize, task: &Task, order: Order) {
    core.enter(number(index), task.affinity, None);
    core.follow(number(index));
    let span = Span::from_ns(task.relative);
    core.set_server(number(index), Span::ZERO, span, span)
        .unwrap();
    if order.is_by_priority() {
        let priority = Priority::new(task.own as u32).unwrap();
        core.set_priority(number(index), priority);
    }
}

impl World {
    fn new(order: Order, random: &mut RandomStream) -> Self {
        let cpus = 1 + random.below(4);
        let mut core = Core::new(order, (1 << cpus) - 1);
        let mut mutexes = CoreMutexes::default();
        let count = 3 + random.below(6) as usize;
        let tasks: Vec<Task> = (0..count)
            .map(|index| {
                let affinity = 1 + random.below((1 << cpus) - 1);
                let priority = 1 + random.below(count as u64);
                let task = Task {
                    affinity,
                    relative: 100 * (1 + random.below(40)),
                    own: if order.is_by_priority() { priority } else { 0 },
                    job: Job::None,
                    is_awake: false,
                    held: Vec::new(),
                    kept: None,
                    given: None,
                };
                enter(&mut core, index, &task, order);
                task
            })
            .collect();
        let all = (0..2 + random.below(4) as usize).map(|index| {
            let protocol = PROTOCOLS[random.below(5) as usize];
            let number = CoreMutexes::number_of(protocol).unwrap();
            let ceiling = (1, tasks.iter().map(|task| task.relative).min().unwrap());
            let most = Priority::MOST_URGENT;
            mutexes.set(
                mutex_number(index),
                number,
                (most, Span::from_ns(ceiling.1)),
            );
            Mutex {
                protocol,
                holder: None,
                waiters: Vec::new(),
                ceiling,
                rank: u64::MAX,
            }
        });
        let all = all.collect();
        Self {
            order,
            core,
            mutexes,
            cpus,
            offline: None,
            tasks,
            all,
            now: 1_000,
        }
    }

    /// By the definition: the least ranks that satisfy all protocols.
    fn ranks(&self) -> Vec<u64> {
        let mut ranks: Vec<u64> = self.tasks.iter().map(|task| task.own).collect();
        for (rank, task) in ranks.iter_mut().zip(&self.tasks) {
            let ceilings = task.held.iter().map(|mutex| self.all[*mutex].rank);
            *rank = ceilings.fold(*rank, u64::min);
            if task.kept.is_some() {
                *rank = 0;
            }
        }
        loop {
            let before = ranks.clone();
            for mutex in &self.all {
                if mutex.protocol == Protocol::Inheritance
                    && let Some(holder) = mutex.holder
                {
                    let waiters = mutex.waiters.iter().map(|waiter| before[*waiter]);
                    ranks[holder] = waiters.fold(ranks[holder], u64::min);
                }
            }
            if ranks == before {
                return ranks;
            }
        }
    }

    fn take(&mut self, task: usize, mutex: usize) {
        let now = self.now;
        let is_by_priority = self.order.is_by_priority();
        let of = &mut self.all[mutex];
        of.holder = Some(task);
        of.rank = match (of.protocol, is_by_priority) {
            (Protocol::Ceiling, true) => of.ceiling.0,
            (Protocol::Ceiling, false) => now + of.ceiling.1,
            _ => u64::MAX,
        };
        self.tasks[task].held.push(mutex);
    }

    fn lock(&mut self, task: usize, mutex: usize, on: CpuId) {
        let of = &self.all[mutex];
        let is_kept = of.protocol.is_non_preemptive();
        let waits = of.holder.is_some_and(|holder| holder != task);
        // One that was kept here, and slept, could not come back.
        let is_here = |holder: usize| self.tasks[holder].kept == Some(on);
        let spins = waits && of.protocol == Protocol::Spin && !of.holder.is_some_and(is_here);
        if is_kept && (spins || !waits) {
            self.tasks[task].kept.get_or_insert(on);
        }
        self.tasks[task].given = None;
        if !waits {
            if self.all[mutex].holder.is_none() {
                self.take(task, mutex);
            }
            return;
        }
        self.all[mutex].waiters.push(task);
        self.tasks[task].job = match spins {
            true => Job::Spins(mutex),
            false => Job::Waits(mutex),
        };
    }

    /// What the task unlocks is free, and passes on by ranks that count afterwards.
    fn unlock(&mut self, task: usize, mutexes: &[usize]) {
        for mutex in mutexes {
            self.all[*mutex].holder = None;
            self.tasks[task].held.retain(|held| held != mutex);
        }
        let mut held = self.tasks[task].held.iter();
        if !held.any(|mutex| self.all[*mutex].protocol.is_non_preemptive()) {
            self.tasks[task].kept = None;
        }
        for mutex in mutexes {
            let ranks = self.ranks();
            let waiters = &self.all[*mutex].waiters;
            let Some(&next) = waiters.iter().min_by_key(|waiter| ranks[**waiter]) else {
                continue;
            };
            self.all[*mutex].waiters.retain(|waiter| *waiter != next);
            self.take(next, *mutex);
            let of = &mut self.tasks[next];
            if of.job == Job::Waits(*mutex) {
                of.given = Some(*mutex);
                of.job = if of.is_awake { Job::Goes } else { Job::Sleeps };
            } else {
                of.job = Job::Goes;
            }
        }
    }

    /// Some event; its name.
    fn step(&mut self, random: &mut RandomStream) -> &'static str {
        self.now += random.below(30);
        let now = Instant::from_ns(self.now);
        match random.below(150) {
            0 => return self.change_cpus(random),
            1 => return self.end_thread(random),
            _ => {}
        }
        let task = random.below(self.tasks.len() as u64) as usize;
        let on = self.core.view(number(task)).on;
        let held = self.tasks[task].held.clone();
        match (self.tasks[task].job, on) {
            (Job::None, _) => {
                if !self.order.is_by_priority() {
                    self.tasks[task].own = self.now + self.tasks[task].relative;
                }
                self.tasks[task].job = Job::Goes;
                self.core.next_job(number(task), now, now);
                if !self.core.view(number(task)).awake {
                    self.core.wake(number(task), now);
                }
                "arrives"
            }
            (Job::Sleeps, _) => {
                self.core.wake(number(task), now);
                self.tasks[task].job = Job::Goes;
                "wakes"
            }
            (Job::Waits(_), _) if self.tasks[task].is_awake => {
                self.core.sleep(number(task));
                self.tasks[task].is_awake = false;
                "sleeps while it waits"
            }
            (Job::Waits(_), _) => {
                self.core.wake(number(task), now);
                self.tasks[task].is_awake = true;
                "wakes while it waits"
            }
            (Job::Goes, Some(_)) if random.below(8) == 0 => {
                // It had been given its mutex already.
                self.core.sleep(number(task));
                self.tasks[task].job = Job::Sleeps;
                "sleeps, with a mutex or without"
            }
            (Job::Goes, Some(on)) => self.go_on(task, on, &held, random),
            (Job::Goes, None) => {
                let mutex = random.below(self.all.len() as u64) as usize;
                let number = number(task);
                self.mutexes
                    .lock(&mut self.core, number, mutex_number(mutex), now);
                "requests a mutex without a CPU"
            }
            _ => "nothing",
        }
    }

    /// A CPU goes, or that which is gone comes back.
    fn change_cpus(&mut self, random: &mut RandomStream) -> &'static str {
        if let Some(cpu) = self.offline.take() {
            self.core.cpu_join(cpu);
            return "a CPU comes back";
        }
        let cpu = CpuId::from_index(random.below(self.cpus) as usize);
        self.core.cpu_leave(cpu);
        self.offline = Some(cpu);
        "a CPU goes"
    }

    /// A thread ends, and a new one takes its place.
    fn end_thread(&mut self, random: &mut RandomStream) -> &'static str {
        let task = random.below(self.tasks.len() as u64) as usize;
        let now = Instant::from_ns(self.now);
        for mutex in &mut self.all {
            mutex.waiters.retain(|waiter| *waiter != task);
        }
        self.core.leave(number(task));
        self.mutexes.end(&mut self.core, number(task), now);
        let mut held = std::mem::take(&mut self.tasks[task].held);
        // In this order the core frees them, each before the next.
        held.reverse();
        self.tasks[task].kept = None;
        self.tasks[task].job = Job::None;
        self.tasks[task].given = None;
        for mutex in held {
            self.unlock(task, &[mutex]);
        }
        enter(&mut self.core, task, &self.tasks[task], self.order);
        "a thread ends"
    }

    fn go_on(
        &mut self,
        task: usize,
        on: CpuId,
        held: &[usize],
        random: &mut RandomStream,
    ) -> &'static str {
        let now = Instant::from_ns(self.now);
        if let Some(mutex) = self.tasks[task].given {
            self.lock(task, mutex, on);
            let number = number(task);
            self.mutexes
                .lock(&mut self.core, number, mutex_number(mutex), now);
            return "runs with what passed to it";
        }
        // In one order, so that nobody waits for ever.
        let first = held.iter().max().map_or(0, |last| last + 1);
        let count = self.all.len();
        match random.below(4) {
            0 | 1 if first < count => {
                let mutex = first + random.below((count - first) as u64) as usize;
                let is_kept = self.tasks[task].kept.is_some();
                if is_kept && self.all[mutex].protocol != Protocol::Spin {
                    return "nothing";
                }
                self.lock(task, mutex, on);
                self.tasks[task].is_awake = true;
                let number = number(task);
                self.mutexes
                    .lock(&mut self.core, number, mutex_number(mutex), now);
                "locks"
            }
            2 if !held.is_empty() => {
                let count = 1 + random.below(held.len().min(UNLOCKS_MAX) as u64) as usize;
                let mutexes: Vec<usize> = held.iter().rev().take(count).copied().collect();
                self.unlock(task, &mutexes);
                let numbers: Vec<_> = mutexes.iter().map(|mutex| mutex_number(*mutex)).collect();
                self.mutexes
                    .unlock(&mut self.core, number(task), &numbers, now);
                "unlocks"
            }
            _ if held.len() <= UNLOCKS_MAX => {
                let is_next = random.below(2) == 0;
                let numbers: Vec<_> = held.iter().map(|mutex| mutex_number(*mutex)).collect();
                let release = Instant::from_ns(self.now + if is_next { 0 } else { 1_000_000 });
                self.tasks[task].job = Job::None;
                self.unlock_and_complete(task, held, is_next);
                self.mutexes
                    .complete(&mut self.core, number(task), &numbers, release, now);
                match is_next {
                    true => "completes and goes on",
                    false => "completes",
                }
            }
            _ => "nothing",
        }
    }

    fn unlock_and_complete(&mut self, task: usize, held: &[usize], is_next: bool) {
        self.unlock(task, held);
        if is_next {
            self.tasks[task].job = Job::Goes;
            if !self.order.is_by_priority() {
                self.tasks[task].own = self.now + self.tasks[task].relative;
            }
        }
    }

    fn compare(&mut self) -> Result<(), String> {
        if let Some(fault) = self.core.fault() {
            return Err(fault.to_owned());
        }
        for (index, mutex) in self.all.iter().enumerate() {
            let holder = self.mutexes.holder(mutex_number(index));
            if holder != mutex.holder.map(number) {
                return Err(format!("mutex {index} is {holder:?}'s, not {mutex:?}"));
            }
        }
        let ranks = self.ranks();
        for (index, task) in self.tasks.iter().enumerate() {
            let view = self.core.view(number(index));
            let is_ready = matches!(task.job, Job::Goes | Job::Spins(_));
            if is_ready != (view.state == TaskState::Ready) {
                return Err(format!("task {index} is {view:?}, not {task:?}"));
            }
            let rank = match self.order.is_by_priority() {
                true => view.priority.into(),
                false => view.deadline.as_ns(),
            };
            let mask = task.kept.map_or(task.affinity, |cpu| 1 << cpu.index());
            let is_there = task.job == Job::None || rank == ranks[index];
            // Of several that were kept on one CPU, and slept, one is there.
            let is_where_kept = task.kept.is_none_or(|cpu| {
                let runner = self.core.runner(cpu).map(|it| it.task().index());
                let is_kept = runner.is_some_and(|it| self.tasks[it].kept == Some(cpu));
                !is_ready || is_kept || self.offline == Some(cpu)
            });
            if !is_there || view.mask != mask || !is_where_kept {
                return Err(format!(
                    "task {index} is {view:?}, and its rank not {} of {task:?}",
                    ranks[index]
                ));
            }
        }
        Ok(())
    }
}

/// How often each event happened.
fn run(order: Order, seed: u64, steps: u32) -> std::collections::BTreeMap<&'static str, u32> {
    let mut random = RandomStream::new(seed, 3, 0);
    let mut world = World::new(order, &mut random);
    let mut events = std::collections::BTreeMap::new();
    for step in 0..steps {
        let what = world.step(&mut random);
        *events.entry(what).or_default() += 1;
        if let Err(why) = world.compare() {
            panic!("{order:?}, seed {seed}, step {step}, {what}: {why}");
        }
    }
    events
}

#[test]
fn mutexes_follow_their_definition() {
    let mut events = std::collections::BTreeMap::new();
    for order in [Order::Edf, Order::FixedPriority] {
        for seed in 0..1_500 {
            for (what, count) in run(order, seed, 200) {
                *events.entry(what).or_insert(0) += count;
            }
        }
    }
    println!("{events:?}");
    assert!(events.values().all(|count| *count > 500), "{events:?}");
}

/// Three tasks on CPUs 0 and 1 with priorities 1 to 3, each with a job, and a mutex of this protocol.
fn three(protocol: Protocol) -> (Core, CoreMutexes) {
    let mut core = Core::new(Order::FixedPriority, 0b11);
    let mut mutexes = CoreMutexes::default();
    let protocol = CoreMutexes::number_of(protocol).unwrap();
    mutexes.set(
        mutex_number(0),
        protocol,
        (Priority::MOST_URGENT, Span::from_ns(9)),
    );
    for task in 0..3 {
        add(&mut core, task);
    }
    (core, mutexes)
}

fn add(core: &mut Core, task: usize) {
    let at = Instant::from_ns(1);
    let priority = Priority::new(task as u32 + 1).unwrap();
    core.enter(number(task), 0b11, None);
    core.follow(number(task));
    core.set_server(number(task), Span::ZERO, Span::from_ns(9), Span::from_ns(9))
        .unwrap();
    core.set_priority(number(task), priority);
    core.wake(number(task), at);
    core.next_job(number(task), at, at);
}

#[test]
fn tasks_that_take_no_part_are_not_scheduled_by_mutexes_nor_others_by_theirs() {
    let at = Instant::from_ns(2);
    let (mut core, mut mutexes) = three(Protocol::Inheritance);
    let mutex = mutex_number(0);
    mutexes.lock(&mut core, number(1), mutex, at);
    core.leave(number(0));
    // The most urgent of all waits, and takes no part.
    mutexes.lock(&mut core, number(0), mutex, at);
    assert_eq!(core.view(number(1)).priority, 2);
    mutexes.lock(&mut core, number(2), mutex, at);
    mutexes.unlock(&mut core, number(1), &[mutex], at);
    assert_eq!(mutexes.holder(mutex), Some(number(2)));
    mutexes.unlock(&mut core, number(2), &[mutex], at);
    assert_eq!(mutexes.holder(mutex), Some(number(0)));
    // It may have it when it takes part again, too.
    add(&mut core, 0);
    mutexes.lock(&mut core, number(0), mutex, at);
    mutexes.unlock(&mut core, number(0), &[mutex], at);
    let priorities = [0, 1, 2].map(|task| core.view(number(task)).priority);
    assert_eq!((mutexes.holder(mutex), priorities), (None, [1, 2, 3]));
    assert_eq!(core.fault(), None);
}

#[test]
fn task_that_spins_and_takes_no_part_keeps_its_rank() {
    let at = Instant::from_ns(2);
    let (mut core, mut mutexes) = three(Protocol::Spin);
    mutexes.lock(&mut core, number(1), mutex_number(0), at);
    core.leave(number(0));
    mutexes.lock(&mut core, number(0), mutex_number(0), at);
    mutexes.unlock(&mut core, number(1), &[mutex_number(0)], at);
    assert_eq!(mutexes.holder(mutex_number(0)), Some(number(0)));
    mutexes.unlock(&mut core, number(0), &[mutex_number(0)], at);
    assert_eq!(core.view(number(0)).priority, 1);
}

#[test]
fn task_that_left_while_it_waited_waits_again_when_it_is_back() {
    let at = Instant::from_ns(2);
    let (mut core, mut mutexes) = three(Protocol::None);
    let mutex = mutex_number(0);
    mutexes.lock(&mut core, number(1), mutex, at);
    mutexes.lock(&mut core, number(0), mutex, at);
    core.leave(number(0));
    add(&mut core, 0);
    assert_eq!(core.view(number(0)).state, TaskState::Ready);
    mutexes.lock(&mut core, number(0), mutex, at);
    assert_eq!(core.view(number(0)).state, TaskState::Blocked);
    mutexes.unlock(&mut core, number(1), &[mutex], at);
    assert_eq!(mutexes.holder(mutex), Some(number(0)));
    assert_eq!(core.view(number(0)).state, TaskState::Ready);
    mutexes.unlock(&mut core, number(0), &[mutex], at);
    assert_eq!(mutexes.holder(mutex), None);
}

#[test]
fn task_is_not_kept_where_the_kernel_or_its_affinity_does_not_let_it_be() {
    let at = Instant::from_ns(2);
    let (mut core, mut mutexes) = three(Protocol::NonPreemptive);
    mutexes.lock(&mut core, number(0), mutex_number(0), at);
    let on = core.view(number(0)).on.unwrap().index();
    assert_eq!(core.view(number(0)).mask, 1 << on);
    core.narrow(number(0), 0b10 >> on);
    assert_eq!(core.view(number(0)).mask, 0b10 >> on);
    core.narrow(number(0), 0);
    assert_eq!(core.view(number(0)).mask, 1 << on);
    core.set_affinity(number(0), 0b10 >> on);
    assert_eq!(core.view(number(0)).mask, 0b10 >> on);
    assert_eq!(core.fault(), None);
}
