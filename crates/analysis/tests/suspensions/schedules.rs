//! Schedules of tasks whose jobs suspend themselves at any times, executed one unit of time after the other. Releases,
//! suspensions, execution times and the order among equals are drawn.

use shiftwork_model::RandomStream;

use super::Plain;

const HORIZON: u64 = 160;

/// Which of the ready jobs is the most urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Priority,
    Deadline,
}

/// The longest response of each task that is found in so many schedules; of a job that is not complete at the end, its age.
pub fn longest_responses(
    tasks: &[Plain],
    order: Order,
    stream: &mut RandomStream,
    runs: u64,
) -> Vec<u64> {
    longest_responses_on(&vec![1; tasks.len()], (tasks, order), stream, runs)
}

/// The same with these CPUs for each task, as bits.
pub fn longest_responses_on(
    cpus: &[u64],
    (tasks, order): (&[Plain], Order),
    stream: &mut RandomStream,
    runs: u64,
) -> Vec<u64> {
    let mut longest = vec![0; tasks.len()];
    for _ in 0..runs {
        let mut run = Run::new(cpus, (tasks, order), stream);
        for now in 0..HORIZON {
            run.step(now, stream);
        }
        for (longest, state) in longest.iter_mut().zip(&run.states) {
            let age = state.job.as_ref().map_or(0, |job| HORIZON - job.release);
            *longest = state.longest.max(age).max(*longest);
        }
    }
    longest
}

/// A job of a script, which executes for the whole cost.
pub struct Release {
    pub task: usize,
    pub at: u64,
    /// After how many executed units it is suspended, and for how long.
    pub stops: Vec<(u64, u64)>,
}

/// The longest response of each task where these jobs are released, until this time.
pub fn scripted(tasks: &[Plain], releases: &[Release], end: u64) -> Vec<u64> {
    let cpus = vec![1; tasks.len()];
    let stream = &mut RandomStream::new(0, 0, 0);
    let mut run = Run::new(&cpus, (tasks, Order::Priority), stream);
    for now in 0..end {
        for release in releases.iter().filter(|release| release.at == now) {
            let state = &mut run.states[release.task];
            let task = &tasks[release.task];
            assert!(state.job.is_none() && now >= state.last.map_or(0, |last| last + task.period));
            let mut stops = vec![0; task.cost as usize + 1];
            for &(executed, suspended) in &release.stops {
                stops[executed as usize] += suspended;
            }
            assert!(stops.iter().sum::<u64>() <= task.suspension);
            state.last = Some(now);
            state.job = Some(Job {
                release: now,
                executed: 0,
                cost: task.cost,
                stops,
            });
        }
        run.execute(now, |ready| ready[0]);
    }
    assert!(run.states.iter().all(|state| state.job.is_none()));
    run.states.iter().map(|state| state.longest).collect()
}

/// When a task releases its jobs, and when these suspend themselves; drawn for a run.
#[derive(Clone, Copy)]
struct Habit {
    /// Of 8 units in which it may release a job it does in so many.
    eager: u64,
    stops: Stops,
}

/// When jobs suspend themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stops {
    AtOnce,
    BeforeLast,
    AtEnd,
    Anywhere,
    Mixed,
}

impl Stops {
    const ALL: [Self; 5] = [
        Self::AtOnce,
        Self::BeforeLast,
        Self::AtEnd,
        Self::Anywhere,
        Self::Mixed,
    ];

    fn draw(stream: &mut RandomStream, among: usize) -> Self {
        Self::ALL[stream.below(among as u64) as usize]
    }
}

struct Job {
    release: u64,
    executed: u64,
    cost: u64,
    /// By what is executed, for how long it is still suspended before the next unit.
    stops: Vec<u64>,
}

impl Job {
    fn new(task: &Plain, release: u64, habit: Habit, stream: &mut RandomStream) -> Self {
        let cost = match stream.below(8) {
            0 => 1 + stream.below(task.cost),
            _ => task.cost,
        };
        let mut stops = vec![0; cost as usize + 1];
        let kind = match habit.stops {
            Stops::Mixed => Stops::draw(stream, 4),
            kind => kind,
        };
        match kind {
            Stops::AtOnce => stops[0] = task.suspension,
            Stops::BeforeLast => stops[cost as usize - 1] = task.suspension,
            Stops::AtEnd => stops[cost as usize] = task.suspension,
            Stops::Anywhere | Stops::Mixed => {
                for _ in 0..task.suspension {
                    stops[stream.below(cost + 1) as usize] += 1;
                }
            }
        }
        Self {
            release,
            executed: 0,
            cost,
            stops,
        }
    }

    fn is_suspended(&self) -> bool {
        self.stops[self.executed as usize] > 0
    }

    fn is_complete(&self) -> bool {
        self.executed == self.cost && !self.is_suspended()
    }
}

struct State {
    habit: Habit,
    job: Option<Job>,
    /// From then on it may release a job.
    next: u64,
    /// When a script has released its last job.
    last: Option<u64>,
    longest: u64,
}

struct Run<'a> {
    /// Of each task, as bits.
    cpus: &'a [u64],
    tasks: &'a [Plain],
    order: Order,
    states: Vec<State>,
}

impl<'a> Run<'a> {
    fn new(
        cpus: &'a [u64],
        (tasks, order): (&'a [Plain], Order),
        stream: &mut RandomStream,
    ) -> Self {
        let mut state = |task: &Plain| {
            let eager = [8, 8, 2, 1][stream.below(4) as usize];
            let stops = Stops::draw(stream, 5);
            State {
                habit: Habit { eager, stops },
                job: None,
                next: stream.below(2 * task.period),
                last: None,
                longest: 0,
            }
        };
        Self {
            cpus,
            tasks,
            order,
            states: tasks.iter().map(&mut state).collect(),
        }
    }

    fn step(&mut self, now: u64, stream: &mut RandomStream) {
        for (task, state) in self.tasks.iter().zip(&mut self.states) {
            let may_release = state.job.is_none() && now >= state.next;
            if may_release && stream.below(8) < state.habit.eager {
                state.job = Some(Job::new(task, now, state.habit, stream));
                state.next = now + task.period;
            }
        }
        self.execute(now, |ready| {
            ready[stream.below(ready.len() as u64) as usize]
        });
    }

    /// One unit of time, in which the most urgent ready jobs execute that can together: the definition of the strong invariant, which
    /// takes from the most urgent on, the chosen one first of several equal ones, each that fits with those before it.
    fn execute(&mut self, now: u64, mut choose: impl FnMut(&[usize]) -> usize) {
        let mut ready: Vec<usize> = Vec::new();
        for (place, state) in self.states.iter_mut().enumerate() {
            match &mut state.job {
                Some(job) if job.is_suspended() => job.stops[job.executed as usize] -= 1,
                Some(_) => ready.push(place),
                None => {}
            }
        }
        let rank = |place: usize| match (self.order, &self.states[place].job) {
            (Order::Deadline, Some(job)) => job.release + self.tasks[place].deadline,
            _ => self.tasks[place].priority.into(),
        };
        let all = self.cpus.iter().fold(0, |all, cpus| all | cpus);
        let mut running: Vec<usize> = Vec::new();
        while running.len() < all.count_ones() as usize
            && let Some(most_urgent) = ready.iter().map(|&place| rank(place)).min()
        {
            let equals = ready.iter().copied();
            let equals: Vec<usize> = equals.filter(|&it| rank(it) == most_urgent).collect();
            let chosen = choose(&equals);
            ready.retain(|&place| place != chosen);
            running.push(chosen);
            if !self.fit(&running) {
                running.pop();
            }
        }
        for place in running {
            self.states[place].job.as_mut().unwrap().executed += 1;
        }
        for state in &mut self.states {
            if let Some(job) = state.job.take_if(|job| job.is_complete()) {
                state.longest = state.longest.max(now + 1 - job.release);
            }
        }
    }

    /// Whether each of these can have a CPU of its own, by Hall's theorem.
    fn fit(&self, running: &[usize]) -> bool {
        (1_u32..1 << running.len()).all(|subset| {
            let chosen = (0..running.len()).filter(|place| subset >> place & 1 == 1);
            let cpus = chosen.fold(0, |cpus, place| cpus | self.cpus[running[place]]);
            cpus.count_ones() >= subset.count_ones()
        })
    }
}
