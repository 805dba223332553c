//! Servers that follow releases: the core and the servers of simulated tasks in lockstep, with timers
//! that are exact or late.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "../../policy/tests/definition/oracle.rs"]
#[allow(dead_code, reason = "only the greedy set is used here")]
mod oracle;

use shiftwork_kernel_core::{Core, TaskNumber, TaskState};
use shiftwork_machine::{Admission, Server, ServerParameters, ServerRule, Spent};
use shiftwork_model::{CpuId, CpuSet, Instant, Order, Priority, RandomStream, Span, TaskId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Blocked,
    Ready,
    Throttled(Instant),
    Unreleased(Instant),
}

/// A task as in the simulator, with its server.
#[derive(Debug)]
struct Simulated {
    server: Server,
    parameters: ServerParameters,
    is_enforced: bool,
    stage: Stage,
    deadline: Instant,
    ready: Instant,
    awake: bool,
    begun: bool,
    throttled: u64,
    replenished: u64,
    mask: u64,
    priority: u32,
}

impl Simulated {
    /// Applies the server's answer to a job that is to become ready at `since`.
    fn go_on(&mut self, admission: Admission, since: Instant) {
        match admission {
            Admission::Throttled(until) => {
                self.throttled += 1;
                self.stage = Stage::Throttled(until);
                return;
            }
            Admission::Replenished(deadline) => {
                self.replenished += 1;
                self.deadline = deadline;
            }
            Admission::Ready(deadline) => self.deadline = deadline,
        }
        self.stage = Stage::Blocked;
        if self.awake {
            self.stage = Stage::Ready;
            self.ready = since;
        }
    }

    fn begin(&mut self, release: Instant, now: Instant, since: Instant) {
        self.begun = true;
        let admission = if self.is_enforced {
            self.server.begin(release, now, self.parameters)
        } else {
            Admission::Ready(release + self.parameters.deadline)
        };
        self.go_on(admission, since);
    }

    /// If the previous job completed in time and only this call is late, the job is ready since its release.
    fn next_job(&mut self, release: Instant, now: Instant) {
        let since = match self.stage {
            Stage::Unreleased(_) => release,
            _ => now,
        };
        if release > now {
            self.stage = Stage::Unreleased(release);
        } else {
            self.begin(release, now, since);
        }
    }

    fn wake(&mut self, now: Instant) {
        self.awake = true;
        if self.stage == Stage::Blocked && self.begun {
            let admission = if self.is_enforced {
                self.server.resume(now)
            } else {
                Admission::Ready(self.deadline)
            };
            self.go_on(admission, now);
        }
    }

    fn sleep(&mut self) {
        self.awake = false;
        if self.stage == Stage::Ready {
            self.stage = Stage::Blocked;
        }
    }

    fn charge(&mut self, ran: Span, now: Instant) {
        self.spend(ran);
        if !self.is_enforced || self.stage != Stage::Ready || !self.server.left().is_zero() {
            return;
        }
        match self.server.spent(now) {
            Spent::Throttled(until) => {
                self.throttled += 1;
                self.stage = Stage::Throttled(until);
            }
            Spent::Replenished(deadline) => {
                self.replenished += 1;
                self.deadline = deadline;
            }
        }
    }

    fn spend(&mut self, ran: Span) {
        if self.is_enforced {
            self.server.consume(ran);
        }
    }

    fn timer(&self) -> Option<Instant> {
        match self.stage {
            Stage::Throttled(until) | Stage::Unreleased(until) if until != Instant::NEVER => {
                Some(until)
            }
            _ => None,
        }
    }

    fn end_timer(&mut self) {
        match self.stage {
            Stage::Throttled(until) => {
                let deadline = self.server.replenish(Instant::ZERO);
                self.go_on(Admission::Replenished(deadline), until);
            }
            Stage::Unreleased(release) => self.begin(release, release, release),
            Stage::Blocked | Stage::Ready => {}
        }
    }

    /// The expected view of the core: state, whether the task is awake, the remaining budget, and how often it
    /// was throttled and replenished.
    fn facts(&self) -> (TaskState, bool, i64, u64, u64) {
        let state = match self.stage {
            Stage::Blocked => TaskState::Blocked,
            Stage::Ready => TaskState::Ready,
            Stage::Throttled(_) => TaskState::Throttled,
            Stage::Unreleased(_) => TaskState::Unreleased,
        };
        let left = self.server.left().as_ns() as i64 - self.server.overdrawn().as_ns() as i64;
        (state, self.awake, left, self.throttled, self.replenished)
    }
}

struct Lockstep {
    core: Core,
    tasks: Vec<Simulated>,
    order: Order,
    cpus: usize,
    now: Instant,
    /// Spans are multiples of this, some of them plus or minus 1 ns.
    unit: u64,
}

fn number(index: usize) -> TaskNumber {
    TaskNumber::of(TaskId::from_index(index)).unwrap()
}

/// Drawn from few values, so that instants coincide; some deadlines are longer than the period.
fn parameters(random: &mut RandomStream, unit: u64) -> ServerParameters {
    let mut upto = |most: u64| 1 + random.below(most);
    let period = 1 + upto(12);
    let deadline = if upto(2) == 1 { period } else { upto(16) };
    let span = |length| Span::from_ns(length * unit);
    ServerParameters {
        cost: span(upto(deadline)),
        period: span(period),
        deadline: span(deadline),
    }
}

impl Lockstep {
    fn new(random: &mut RandomStream, order: Order) -> Self {
        let cpus = 1 + random.below(4) as usize;
        let core = Core::new(order, (1 << cpus) - 1);
        let unit = [1, 1_000_000_007, 1 << 44][random.below(3) as usize];
        let mut beside = Self {
            core,
            tasks: Vec::new(),
            order,
            cpus,
            now: Instant::from_ns(1_000),
            unit,
        };
        for index in 0..1 + random.below(9) as usize {
            let mask = 1 + random.below((1 << cpus) - 1);
            let priority = 1 + random.below(4) as u32;
            let task = Simulated {
                server: Server::new(parameters(random, unit), ServerRule::Releases),
                parameters: parameters(random, unit),
                is_enforced: random.below(5) > 0,
                stage: Stage::Blocked,
                deadline: Instant::ZERO,
                ready: Instant::ZERO,
                awake: false,
                begun: false,
                throttled: 0,
                replenished: 0,
                mask,
                priority,
            };
            beside.core.enter(number(index), mask, None);
            let priority = Priority::new(priority).unwrap();
            beside.core.set_priority(number(index), priority);
            beside.core.follow(number(index));
            beside.tasks.push(task);
            beside.set_server(index);
        }
        beside
    }

    fn set_server(&mut self, index: usize) {
        let task = &self.tasks[index];
        let ServerParameters {
            cost,
            period,
            deadline,
        } = task.parameters;
        let budget = if task.is_enforced { cost } else { Span::ZERO };
        self.core
            .set_server(number(index), budget, period, deadline)
            .unwrap();
    }

    fn running(&self) -> Vec<usize> {
        let cpus = (0..self.cpus).map(CpuId::from_index);
        let mut running: Vec<usize> = cpus
            .filter_map(|cpu| Some(self.core.runner(cpu)?.task().index()))
            .collect();
        running.sort_unstable();
        running
    }

    fn greedy(&self) -> Vec<usize> {
        let mut ready: Vec<usize> = (0..self.tasks.len())
            .filter(|&index| self.tasks[index].stage == Stage::Ready)
            .collect();
        ready.sort_by_key(|&index| {
            let task = &self.tasks[index];
            let rank = match self.order {
                Order::Edf => task.deadline.as_ns(),
                _ => u64::from(task.priority),
            };
            (rank, task.ready, index)
        });
        let job = |(rank, &task): (usize, &usize)| oracle::Ready {
            task,
            rank: rank as u64,
            cpus: CpuSet::from_bits(self.tasks[task].mask),
        };
        oracle::greedy_set(&ready.iter().enumerate().map(job).collect::<Vec<_>>())
    }

    fn compare(&mut self, replay: &str) {
        for (index, task) in self.tasks.iter().enumerate() {
            let view = self.core.view(number(index));
            let found = (
                view.state,
                view.awake,
                view.left_ns,
                view.throttled,
                view.replenished,
            );
            let what = format!("{replay}: task {index} {task:?}");
            assert_eq!(found, task.facts(), "{what}");
            assert_eq!(view.deadline, task.deadline, "{what}");
        }
        assert_eq!(self.running(), self.greedy(), "{replay}: {:?}", self.tasks);
        let next = self.tasks.iter().filter_map(Simulated::timer).min();
        let found = self.core.next_replenishment();
        assert_eq!(found, next.unwrap_or(Instant::NEVER), "{replay}");
    }

    /// Time advances: at most until the next budget end or timer, or somewhat beyond.
    fn pass(&mut self, random: &mut RandomStream) {
        let mut next = self.now + Span::from_ns(self.unit * random.below(6));
        let running = self.running();
        let timers = self.tasks.iter().filter_map(Simulated::timer);
        let ends = running.iter().filter_map(|&index| {
            let task = &self.tasks[index];
            task.is_enforced.then(|| self.now + task.server.left())
        });
        let soonest = timers.chain(ends).min();
        if let (Some(soonest), true) = (soonest, random.below(3) > 0) {
            let late = [0, 0, 1, self.unit * random.below(40)];
            next = soonest.max(self.now) + Span::from_ns(late[random.below(4) as usize]);
        }
        let ran = next.since(self.now).unwrap();
        self.now = next;
        for index in running {
            let id = number(index);
            if random.below(3) == 0 {
                self.core.spend(id, ran);
                self.tasks[index].spend(ran);
                self.finish(index, random);
            } else {
                self.core.charge(id, ran, self.now);
                self.tasks[index].charge(ran, self.now);
            }
        }
        while self.core.next_replenishment() <= self.now {
            self.core.replenish_next(self.now);
        }
        for task in &mut self.tasks {
            while task.timer().is_some_and(|timer| timer <= self.now) {
                task.end_timer();
            }
        }
    }

    fn act(&mut self, random: &mut RandomStream) {
        let index = random.below(self.tasks.len() as u64) as usize;
        let (id, now) = (number(index), self.now);
        match random.below(12) {
            0..4 => {
                self.tasks[index].wake(now);
                self.core.wake(id, now);
            }
            4 => {
                self.tasks[index].sleep();
                self.core.sleep(id);
            }
            5..10 => self.finish(index, random),
            10 => {
                let mask = 1 + random.below((1 << self.cpus) - 1);
                self.tasks[index].mask = mask;
                self.core.set_affinity(id, mask);
            }
            _ => {
                let priority = 1 + random.below(4) as u32;
                self.tasks[index].priority = priority;
                let priority = Priority::new(priority).unwrap();
                self.core.set_priority(id, priority);
            }
        }
    }

    fn finish(&mut self, index: usize, random: &mut RandomStream) {
        let task = &mut self.tasks[index];
        if random.below(8) == 0 {
            task.parameters = parameters(random, self.unit);
            self.set_server(index);
        }
        let ago = self.unit * random.below(20);
        let release = match random.below(20) {
            0 => Instant::NEVER,
            1..8 => Instant::from_ns(self.now.as_ns().saturating_sub(ago)),
            _ => self.now + Span::from_ns(ago),
        };
        self.tasks[index].next_job(release, self.now);
        self.core.next_job(number(index), release, self.now);
    }
}

#[test]
fn server_that_follows_releases_equals_the_simulated_one() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        20_000
    } else {
        1_000
    };
    let (mut throttled, mut replenished) = (0, 0);
    for seed in 1..=seeds {
        let mut random = RandomStream::new(seed, 0, 0);
        let order = [Order::Edf, Order::FixedPriority][seed as usize % 2];
        let mut beside = Lockstep::new(&mut random, order);
        for step in 0..200 {
            let replay = format!("{order:?}, seed {seed}, step {step}");
            beside.pass(&mut random);
            beside.compare(&replay);
            beside.act(&mut random);
            beside.compare(&replay);
            assert_eq!(beside.core.fault(), None, "{replay}");
        }
        throttled += beside.tasks.iter().map(|task| task.throttled).sum::<u64>();
        replenished += beside.tasks.iter().map(|t| t.replenished).sum::<u64>();
    }
    assert!(throttled > 10 * seeds && replenished > throttled / 2);
}

const AT: fn(u64) -> Instant = Instant::from_ns;
const NS: fn(u64) -> Span = Span::from_ns;

/// A core with tasks of budget 2, period 10, and these relative deadlines, on one CPU.
fn followers(order: Order, deadlines: &[u64]) -> Core {
    let mut core = Core::new(order, 1);
    for (index, &deadline) in deadlines.iter().enumerate() {
        let task = number(index);
        core.enter(task, 1, None);
        core.set_priority(task, Priority::new(deadline as u32).unwrap());
        core.set_server(task, NS(2), NS(10), NS(deadline)).unwrap();
        core.follow(task);
        core.wake(task, AT(0));
    }
    core
}

fn runner(core: &Core) -> Option<usize> {
    Some(core.runner(CpuId::from_index(0))?.task().index())
}

#[test]
fn jobs_released_at_one_instant_start_in_order_of_urgency() {
    for order in [Order::Edf, Order::FixedPriority] {
        let mut core = followers(order, &[9, 7, 5, 8]);
        for index in 0..4 {
            core.next_job(number(index), AT(20), AT(1));
        }
        let mut came = Vec::new();
        while core.next_replenishment() <= AT(20) {
            core.replenish_next(AT(20));
            let ready = |index: &usize| core.view(number(*index)).state == TaskState::Ready;
            came.push((0..4).filter(ready).count());
            assert_eq!(runner(&core), Some(2), "{order:?}");
        }
        assert_eq!(came, [1, 2, 3, 4]);
    }
}

#[test]
fn priority_changed_before_the_release_counts_at_the_release() {
    let mut core = followers(Order::FixedPriority, &[4, 6]);
    core.next_job(number(0), AT(20), AT(1));
    core.next_job(number(1), AT(20), AT(1));
    core.set_priority(number(1), Priority::MOST_URGENT);
    core.replenish_next(AT(20));
    assert_eq!(runner(&core), Some(1));
}

#[test]
fn late_job_begins_at_once_with_its_own_deadline() {
    let mut core = followers(Order::Edf, &[10]);
    core.next_job(number(0), AT(0), AT(0));
    core.charge(number(0), NS(1), AT(12));
    // Released at 10, begun at 12, due at 20; it keeps its CPU.
    assert_eq!(core.next_job(number(0), AT(10), AT(12)), 0);
    let view = core.view(number(0));
    assert_eq!((view.deadline, view.left_ns), (AT(20), 2));
    assert_eq!(runner(&core), Some(0));
}

#[test]
fn job_after_an_overrun_waits_for_the_end_of_the_used_period() {
    let mut core = followers(Order::Edf, &[10]);
    core.next_job(number(0), AT(0), AT(0));
    core.charge(number(0), NS(2), AT(2));
    core.replenish_next(AT(10));
    // The job completes exactly when its second budget is used up; the job released at 11 has none.
    core.spend(number(0), NS(2));
    core.next_job(number(0), AT(11), AT(12));
    assert_eq!(core.view(number(0)).state, TaskState::Throttled);
    assert_eq!(core.next_replenishment(), AT(20));
    core.replenish_next(AT(20));
    assert_eq!(core.view(number(0)).deadline, AT(30));
}

#[test]
fn task_without_a_job_stays_blocked_until_a_release() {
    let mut core = followers(Order::Edf, &[10]);
    assert_eq!(core.view(number(0)).state, TaskState::Blocked);
    assert_eq!(core.next_job(number(0), Instant::NEVER, AT(3)), 0);
    assert_eq!(core.view(number(0)).state, TaskState::Unreleased);
    assert_eq!(core.next_replenishment(), Instant::NEVER);
    assert_eq!(core.next_job(number(0), AT(5), AT(4)), 0);
    assert_eq!(core.next_replenishment(), AT(5));
    assert_eq!(core.replenish_next(AT(6)), 1);
    assert_eq!(core.view(number(0)).deadline, AT(15));
}

#[test]
fn entering_again_ends_the_following_of_releases() {
    let mut core = followers(Order::Edf, &[10]);
    core.next_job(number(0), AT(0), AT(0));
    core.enter(number(0), 1, None);
    core.set_server(number(0), NS(2), NS(10), NS(10)).unwrap();
    assert_eq!(core.next_job(number(0), AT(1), AT(1)), 0);
    assert_eq!(core.view(number(0)).state, TaskState::Blocked);
    core.wake(number(0), AT(3));
    assert_eq!(core.view(number(0)).deadline, AT(13));
}
