//! Speeds computed from the records by their definition: the work of every task is added up piece by piece at the
//! speed that its CPU should have. A job may complete, and a budget be spent, only in the nanosecond in which the
//! sum reaches its work or budget.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use std::sync::{Arc, Mutex};

use common::{AT, NS, options, task};
use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuId, CpuSet, Frequency, Instant, Job, RandomStream,
    RecordKind, Recorder, Share, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry::traits::LINUX_REPAIRED;
use shiftwork_policy::{Event, Policy, PolicyError, Switches, registry};
use shiftwork_sim::Simulation;
use shiftwork_trace::check::{Checker, PolicyContract};

/// The observations of a run, in order.
enum Seen {
    Fact(Instant, RecordKind),
    /// The CPU with the run queue of each task, at the end of an instant.
    Queues(Vec<Option<CpuId>>),
}

type Log = Arc<Mutex<Vec<Seen>>>;

struct Listener(Log);

impl Recorder for Listener {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        self.0.lock().unwrap().push(Seen::Fact(at, kind.clone()));
    }
}

/// A policy that records its queues at the end of each instant.
struct Noted {
    policy: Box<dyn Policy>,
    tasks: usize,
    log: Log,
}

impl Policy for Noted {
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches) {
        self.policy.on_event(event, out);
    }
    fn succeed(&mut self, next: Job, out: &mut Switches) -> bool {
        self.policy.succeed(next, out)
    }
    fn end_instant(&mut self, out: &mut Switches) {
        self.policy.end_instant(out);
        let queue = |index| self.policy.queue_of(TaskId::from_index(index));
        let queues = (0..self.tasks).map(queue).collect();
        self.log.lock().unwrap().push(Seen::Queues(queues));
    }
    fn assigned(&self, cpu: CpuId) -> Option<TaskId> {
        self.policy.assigned(cpu)
    }
    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError> {
        self.policy.accepts(event)
    }
    fn queue_of(&self, task: TaskId) -> Option<CpuId> {
        self.policy.queue_of(task)
    }
}

/// A nanosecond of work at full speed.
const UNIT: i128 = 1 << 20;

/// A task, in units of work.
#[derive(Clone, Debug, Default)]
struct Account {
    cost: i128,
    period: i128,
    work: i128,
    bandwidth: i128,
    released: u64,
    finished: u64,
    /// Remaining budget, and its deadline.
    budget: i128,
    deadline: i128,
    /// Remaining work of the current job.
    left: i128,
    /// End of its activity after it blocked; `None` while it has a job.
    until: Option<i128>,
    queue: Option<CpuId>,
    on: Option<CpuId>,
}

impl Account {
    fn of(task: &Task) -> Self {
        let [cost, period] = [task.cost, task.period].map(|span| i128::from(span.as_ns()));
        let Work::Constant(work) = task.work else {
            panic!("the sets have constant work")
        };
        Self {
            cost,
            period,
            work: i128::from(work.as_ns()) * UNIT,
            bandwidth: (cost * UNIT + period - 1) / period,
            left: i128::from(work.as_ns()) * UNIT,
            until: Some(0),
            ..Self::default()
        }
    }

    /// Progress within a nanosecond of work; the budget in force at its end pays for all of it.
    fn begun(&self) -> i128 {
        (-self.left).rem_euclid(UNIT)
    }

    fn is_active(&self, now: i128) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

struct Book {
    accounts: Vec<Account>,
    capacities: Vec<i128>,
    are_scaled: bool,
    now: i128,
    /// Numbers of jobs and budgets that ended.
    ends: usize,
    name: String,
}

impl Book {
    fn speed(&self, cpu: CpuId) -> i128 {
        let capacity = self.capacities[cpu.index()];
        if !self.are_scaled {
            return capacity;
        }
        let here = |account: &&Account| account.queue == Some(cpu) && account.is_active(self.now);
        let sum: i128 = self.accounts.iter().filter(here).map(|a| a.bandwidth).sum();
        sum.clamp(1, capacity)
    }

    /// Adds up the work of all tasks until `to`.
    fn advance(&mut self, to: i128) {
        for account in &mut self.accounts {
            let has_job = account.released > account.finished;
            if has_job {
                account.until = None;
            } else if account.until.is_none() {
                let used = account.budget / UNIT * account.period / account.cost;
                account.until = Some(account.deadline - used);
            }
        }
        while self.now < to {
            let ends = self.accounts.iter().filter_map(|account| account.until);
            let next = ends.filter(|&end| end > self.now).min();
            let step = next.map_or(to, |next| next.min(to)) - self.now;
            for task in 0..self.accounts.len() {
                if let Some(cpu) = self.accounts[task].on {
                    let units = step * self.speed(cpu);
                    self.accounts[task].left -= units;
                    self.accounts[task].budget -= units;
                    self.is_running_on(task, cpu);
                }
            }
            self.now += step;
        }
    }

    /// Asserts that no task continues for a whole nanosecond after the end of its job or budget.
    fn is_running_on(&self, task: usize, cpu: CpuId) {
        let (account, speed) = (&self.accounts[task], self.speed(cpu));
        let least = account.left.min(account.budget);
        assert!(-speed < least, "{}: {account:?} at {}", self.name, self.now);
    }

    fn take(&mut self, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => self.account(job.task).released = job.number,
            RecordKind::Ready { job, deadline, .. } => {
                let account = self.account(job.task);
                let deadline = i128::from(deadline.as_ns());
                if account.deadline != deadline {
                    account.budget = account.cost * UNIT - account.begun();
                }
                account.deadline = deadline;
            }
            RecordKind::Replenished {
                task,
                budget,
                deadline,
            } => {
                let account = self.account(task);
                account.budget = i128::from(budget.as_ns()) * UNIT - account.begun();
                account.deadline = i128::from(deadline.as_ns());
            }
            RecordKind::Completed { job } => self.complete(job.task),
            RecordKind::BudgetSpent { job } => self.spend(job.task),
            RecordKind::Switched { cpu, from, to } => {
                if let Some(job) = from
                    && self.account(job.task).on == Some(cpu)
                {
                    self.account(job.task).on = None;
                }
                if let Some(job) = to {
                    self.account(job.task).on = Some(cpu);
                }
            }
            _ => {}
        }
    }

    /// Asserts what holds at any speed: affinities, one CPU per job, and no idle CPU while a job waits that may use
    /// it.
    fn check(&self, set: &TaskSet, horizon: u64, log: &Log) {
        let contract = PolicyContract::of(&LINUX_REPAIRED, None);
        let mut checker = Checker::new(set, contract);
        for seen in log.lock().unwrap().iter() {
            if let Seen::Fact(at, kind) = seen {
                checker.record(*at, kind);
            }
        }
        let found = checker.finish(AT(horizon));
        assert!(found.is_empty(), "{}: {found:#?}", self.name);
    }

    fn account(&mut self, task: TaskId) -> &mut Account {
        &mut self.accounts[task.index()]
    }

    /// The rest of a nanosecond in which a job or a budget ends is idle.
    fn complete(&mut self, task: TaskId) {
        self.ends += 1;
        let name = format!("{} at {}", self.name, self.now);
        let account = self.account(task);
        assert!(account.left <= 0, "{name}: finished early: {account:?}");
        account.budget -= account.left;
        account.finished += 1;
        account.left = account.work;
    }

    fn spend(&mut self, task: TaskId) {
        self.ends += 1;
        let name = format!("{} at {}", self.name, self.now);
        let account = self.account(task);
        assert!(account.budget <= 0, "{name}: spent early: {account:?}");
        account.left -= account.budget;
        account.budget = 0;
        assert!(account.left > 0, "{name}: finished as well: {account:?}");
    }
}

/// Checks a run of the set; returns the numbers of jobs and budgets that ended in it.
fn follow(set: &TaskSet, policy: &str, horizon: u64, name: String) -> usize {
    let log = Log::default();
    let entry = registry::find(policy).unwrap();
    let noted = Noted {
        policy: entry.build(set).unwrap(),
        tasks: set.tasks.len(),
        log: Arc::clone(&log),
    };
    let simulation = Simulation::new(set, Box::new(noted), &entry.traits, options(horizon));
    simulation.run(&mut Listener(Arc::clone(&log)));
    let units =
        |share: &Share| (i128::from(share.billionths()) * UNIT / i128::from(Share::WHOLE)).max(1);
    let mut capacities: Vec<i128> = set.platform.capacities.iter().map(units).collect();
    capacities.resize(set.platform.cpus, UNIT);
    let mut book = Book {
        accounts: set.tasks.iter().map(Account::of).collect(),
        capacities,
        are_scaled: set.platform.frequency == Frequency::GrubPa,
        now: 0,
        ends: 0,
        name,
    };
    for seen in log.lock().unwrap().iter() {
        match seen {
            Seen::Fact(at, kind) => {
                book.advance(i128::from(at.as_ns()));
                book.take(kind);
            }
            Seen::Queues(queues) => {
                for (account, queue) in book.accounts.iter_mut().zip(queues) {
                    account.queue = *queue;
                }
            }
        }
    }
    book.advance(i128::from(horizon));
    book.check(set, horizon, &log);
    book.ends
}

/// Tasks with any affinities and weights, with underruns and overruns, some of which change their affinity.
fn random_set(seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 11, 0);
    let cpus = 1 + random.below(4) as usize;
    let affinity = |random: &mut RandomStream| {
        let cpu = random.below(cpus as u64) as usize;
        let one = CpuSet::single(CpuId::from_index(cpu));
        let all = CpuSet::first(cpus);
        Affinity::new(if random.below(3) == 0 { one } else { all }).unwrap()
    };
    let tasks = (0..1 + random.below(7)).map(|index| {
        let period = 5 + random.below(60);
        let cost = 1 + random.below(period);
        let mut task = task(cpus, &format!("T{index}"), cost, period);
        task.affinity = affinity(&mut random);
        task.offset = NS(random.below(20));
        task.work = Work::Constant(NS(match random.below(4) {
            0 => 1 + random.below(2 * cost),
            1 => 1 + random.below(cost),
            _ => cost,
        }));
        if random.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        task
    });
    let mut set = TaskSet::new("random", cpus, tasks.collect());
    if random.below(2) == 0 {
        let share = |_| Share::from_billionths(1 + random.below(1_000_000_000) as u32).unwrap();
        set.platform.capacities = (0..cpus).map(share).collect();
    }
    if set.platform.capacities.is_empty() || random.below(2) == 0 {
        set.platform.frequency = Frequency::GrubPa;
    }
    set
}

/// Changes of affinity at random instants.
fn with_moves(mut set: TaskSet, seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 12, 0);
    let cpus = set.platform.cpus as u64;
    for _ in 0..random.below(6) {
        let task = TaskId::from_index(random.below(set.tasks.len() as u64) as usize);
        let cpu = CpuId::from_index(random.below(cpus) as usize);
        let to = Affinity::new(CpuSet::single(cpu)).unwrap();
        set.actions.push(Action {
            at: AT(random.below(600)),
            change: Change::SetAffinity(task, to),
        });
    }
    set.actions.sort_by_key(|action| action.at);
    set
}

#[test]
fn jobs_and_budgets_end_in_the_exact_nanosecond() {
    for policy in ["dl-linux", "dl-sp"] {
        let mut ends = 0;
        for seed in 1..=1_500 {
            let set = with_moves(random_set(seed), seed);
            ends += follow(&set, policy, 900, format!("{policy}, seed {seed}"));
        }
        assert!(ends > 40_000, "{policy}: only {ends} ends");
    }
}

#[test]
fn a_long_run_is_as_exact_as_a_short_one() {
    let mut ends = 0;
    for seed in 1..=20 {
        let set = random_set(seed);
        ends += follow(&set, "dl-linux", 100_000, format!("seed {seed}"));
    }
    assert!(ends > 40_000, "only {ends} ends");
}
