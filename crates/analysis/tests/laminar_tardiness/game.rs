//! Adversaries that see everything and choose, unit by unit, which tasks release a job.

use std::collections::VecDeque;

use shiftwork_model::{CpuId, Instant, Job, Priority, RandomStream, TaskId};
use shiftwork_policy::{Event, Policy, Switches, registry};

use crate::system::{Deadlines, SHAPES, System, UNIT};
use crate::times_if_long;

/// A run in which releases are chosen as it goes.
pub struct Game<'a> {
    system: &'a System,
    policy: Box<dyn Policy>,
    switches: Switches,
    now: u64,
    /// Per task: unfinished jobs as release and remaining cost, and when the next may be released.
    pending: Vec<VecDeque<(u64, u64)>>,
    free_at: Vec<u64>,
    /// The longest response times so far; of unfinished jobs what they are at least.
    pub responses: Vec<u64>,
}

impl<'a> Game<'a> {
    pub fn new(system: &'a System, policy: &str) -> Self {
        let count = system.tasks.len();
        Self {
            policy: registry::find(policy)
                .unwrap()
                .build(&system.task_set())
                .unwrap(),
            system,
            switches: Switches::default(),
            now: 0,
            pending: vec![VecDeque::new(); count],
            free_at: vec![0; count],
            responses: vec![0; count],
        }
    }

    fn apply(&mut self, event: Event<'_>) {
        self.switches.clear();
        self.policy.on_event(event, &mut self.switches);
    }

    /// Takes a CPU from the policy, or gives it back.
    pub fn set_available(&mut self, cpu: usize, is_available: bool) {
        let cpu = CpuId::from_index(cpu);
        self.apply(match is_available {
            true => Event::CpuOnline(cpu),
            false => Event::CpuOffline(cpu),
        });
    }

    /// The CPUs that run a job.
    pub fn is_busy(&self, cpu: usize) -> bool {
        self.policy.assigned(CpuId::from_index(cpu)).is_some()
    }

    fn deadline(&self, task: usize) -> Option<u64> {
        let (release, _) = self.pending[task].front()?;
        Some(release + self.system.tasks[task].deadline)
    }

    fn wake(&mut self, task: usize) {
        if let Some(deadline) = self.deadline(task) {
            self.apply(Event::Wake(Job {
                task: TaskId::from_index(task),
                ready: Instant::from_ns(self.now),
                deadline: Instant::from_ns(deadline),
                priority: Priority::MOST_URGENT,
            }));
        }
    }

    /// Whether the task may release a job now.
    fn may(&self, task: usize) -> bool {
        self.free_at[task] <= self.now
    }

    pub fn release(&mut self, task: usize, cost: u64) {
        self.free_at[task] = self.now + self.system.tasks[task].period;
        self.pending[task].push_back((self.now, cost));
        if self.pending[task].len() == 1 {
            self.wake(task);
        }
    }

    /// Runs for one unit.
    pub fn step(&mut self) {
        let cpus = (0..self.system.cpus).map(CpuId::from_index);
        let running: Vec<usize> = cpus
            .filter_map(|cpu| self.policy.assigned(cpu))
            .map(TaskId::index)
            .collect();
        self.now += 1;
        let mut done = Vec::new();
        for task in running {
            let (release, left) = self.pending[task].front_mut().unwrap();
            *left -= 1;
            if *left == 0 {
                let response = self.now - *release;
                self.responses[task] = self.responses[task].max(response);
                done.push(task);
            }
        }
        for &task in &done {
            self.apply(Event::Complete(TaskId::from_index(task)));
            self.pending[task].pop_front();
        }
        done.into_iter().for_each(|task| self.wake(task));
        for (task, pending) in self.pending.iter().enumerate() {
            if let Some((release, left)) = pending.front() {
                let response = self.now + left - release;
                self.responses[task] = self.responses[task].max(response);
            }
        }
    }
}

/// The strategy of an adversary. Each has a victim and tries to make its job late.
#[derive(Clone, Copy, Debug)]
enum Strategy {
    /// All tasks as often as possible, from random offsets.
    Periodic,
    /// Each task with some probability.
    Chance,
    /// Only jobs that are due before the victim's, the victim at once.
    Beats,
    /// As before, but the victim waits until all other tasks are behind.
    Ambush,
    /// Alternately all tasks except those of the victim's affinity, and all tasks.
    Bursts,
    /// Each task has one of the other strategies.
    Mixed,
}

const STRATEGIES: [Strategy; 6] = [
    Strategy::Periodic,
    Strategy::Chance,
    Strategy::Beats,
    Strategy::Ambush,
    Strategy::Bursts,
    Strategy::Mixed,
];

struct Adversary {
    strategy: Strategy,
    strategies: Vec<Strategy>,
    victim: usize,
    offsets: Vec<u64>,
    chance: u64,
    /// Of 10 jobs so many are shorter than declared.
    short: u64,
    turn: u64,
}

impl Adversary {
    fn new(system: &System, stream: &mut RandomStream) -> Self {
        let count = system.tasks.len();
        let any = |stream: &mut RandomStream| STRATEGIES[stream.below(5) as usize];
        let short = [0, 0, 0, 1, 5][stream.below(5) as usize];
        Self {
            strategy: STRATEGIES[stream.below(6) as usize],
            strategies: (0..count).map(|_| any(stream)).collect(),
            victim: stream.below(count as u64) as usize,
            offsets: (0..count)
                .map(|_| stream.below(2) * stream.below(20))
                .collect(),
            chance: 1 + stream.below(9),
            short,
            turn: 5 + stream.below(60),
        }
    }

    fn releases(&self, game: &Game<'_>, task: usize, stream: &mut RandomStream) -> bool {
        let of = &game.system.tasks[task];
        let due = game.now + of.deadline;
        let victim_due = game.deadline(self.victim);
        let strategy = match self.strategy {
            Strategy::Mixed => self.strategies[task],
            strategy => strategy,
        };
        match strategy {
            Strategy::Periodic | Strategy::Mixed => game.now >= self.offsets[task],
            Strategy::Chance => stream.below(10) < self.chance,
            Strategy::Beats => task == self.victim || victim_due.is_none_or(|victim| due <= victim),
            Strategy::Ambush if task == self.victim => {
                let behind = game.pending.iter().filter(|jobs| jobs.len() > 1).count();
                behind as u64 * 10 >= game.pending.len() as u64 * self.chance / 2
            }
            Strategy::Ambush => victim_due.is_none_or(|victim| due <= victim),
            Strategy::Bursts => {
                let inside = of.mask & !game.system.tasks[self.victim].mask == 0;
                let first = (game.now / self.turn).is_multiple_of(2);
                inside != first || (!first && stream.below(10) < self.chance)
            }
        }
    }

    fn cost(&self, system: &System, task: usize, stream: &mut RandomStream) -> u64 {
        let cost = system.tasks[task].cost;
        match stream.below(10) < self.short {
            true => 1 + stream.below(cost),
            false => cost,
        }
    }
}

/// The longest responses that one adversary gets.
pub fn attack(system: &System, policy: &str, length: u64, stream: &mut RandomStream) -> Vec<u64> {
    attack_beside(system, policy, length, stream, |_, _| {})
}

/// Likewise; `others` may take CPUs before each unit.
pub fn attack_beside(
    system: &System,
    policy: &str,
    length: u64,
    stream: &mut RandomStream,
    mut others: impl FnMut(&mut Game<'_>, &mut RandomStream),
) -> Vec<u64> {
    let adversary = Adversary::new(system, stream);
    let mut game = Game::new(system, policy);
    for _ in 0..length {
        for task in 0..system.tasks.len() {
            if game.may(task) && adversary.releases(&game, task, stream) {
                game.release(task, adversary.cost(system, task, stream));
            }
        }
        others(&mut game, stream);
        game.step();
    }
    game.responses
}

/// What a campaign saw, per shape, in thousandths of what is allowed.
#[derive(Default)]
pub struct Seen {
    pub systems: u64,
    /// Response by bound of the worst task of each system.
    pub responses: Vec<u64>,
    /// Tardiness by bound on tardiness, where that is above zero.
    pub tardiness: Vec<u64>,
}

impl Seen {
    /// Adds a system, and panics if a bound was exceeded.
    pub fn add(&mut self, system: &System, bounds: &[u64], responses: &[u64], what: &str) {
        self.systems += 1;
        let (mut response, mut late) = (0, None);
        for (task, unit) in system.tasks.iter().enumerate() {
            let (bound, seen) = (bounds[task], responses[task] * UNIT);
            assert!(
                seen <= bound,
                "{what}: task {task} responds in {seen} ns, bound {bound}, of {system:?}"
            );
            response = response.max(seen * 1000 / bound);
            let due = unit.deadline * UNIT;
            if bound > due {
                late = late.max(Some(seen.saturating_sub(due) * 1000 / (bound - due)));
            }
        }
        self.responses.push(response);
        self.tardiness.extend(late);
    }

    pub fn print(&mut self, shape: &str) {
        self.responses.sort_unstable();
        self.tardiness.sort_unstable();
        let at = |sorted: &[u64], part: usize| {
            sorted
                .get((sorted.len() * part / 100).min(sorted.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0)
        };
        println!(
            "{shape:12} {:6} systems; response/bound median {:4} p90 {:4} max {:4}; tardiness/bound median {:4} p90 {:4} max {:4} (thousandths)",
            self.systems,
            at(&self.responses, 50),
            at(&self.responses, 90),
            at(&self.responses, 100),
            at(&self.tardiness, 50),
            at(&self.tardiness, 90),
            at(&self.tardiness, 100),
        );
    }
}

fn campaign(deadlines: Deadlines, policy: &str, systems: u64, attacks: u64) {
    for (cell, shape) in SHAPES.into_iter().enumerate() {
        let mut seen = Seen::default();
        for seed in 1..=systems {
            let mut stream = RandomStream::new(seed, cell as u64, deadlines as u64);
            let system = System::random(shape, deadlines, 6, &mut stream);
            let bounds = system.bounds();
            let mut worst = vec![0; system.tasks.len()];
            for _ in 0..attacks {
                let responses = attack(&system, policy, 300, &mut stream);
                for (worst, response) in worst.iter_mut().zip(responses) {
                    *worst = response.max(*worst);
                }
            }
            let what = format!("{shape}, {deadlines:?}, {policy}, seed {seed}");
            seen.add(&system, &bounds, &worst, &what);
        }
        seen.print(&format!("{shape} {deadlines:?}"));
    }
}

#[test]
fn no_adversary_makes_a_job_later_than_its_bound() {
    campaign(
        Deadlines::Implicit,
        "hpa-edf",
        times_if_long(12, 50),
        times_if_long(6, 10),
    );
}

#[test]
fn nor_with_other_deadlines() {
    campaign(
        Deadlines::Any,
        "hpa-edf",
        times_if_long(12, 50),
        times_if_long(6, 10),
    );
}

#[test]
fn nor_under_the_policy_for_any_affinities() {
    campaign(
        Deadlines::Any,
        "strong-edf",
        times_if_long(4, 50),
        times_if_long(4, 10),
    );
}
