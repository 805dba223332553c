//! From a seed to a plan.

use shiftwork_model::{OnOverrun, Order, RandomStream};

use super::plan::{Action, Episode, Machine, Ordinary, Plan, Reserved, Step, Task, Work};

/// How long turns of the emulator may be. The lengths have few common multiples.
const TURNS_US: [u64; 8] = [10, 13, 17, 25, 40, 61, 110, 200];
/// Simultaneous tasks.
pub const TASKS_MAX: usize = 6;
/// Events for one page: they are lost in most episodes.
const SMALL_BYTES: u32 = 4 << 10;
/// None may be lost.
pub const USUAL_BYTES: u32 = 4 << 20;
/// CPUs of the guest.
const CPUS_MIN: u64 = 3;
const CPUS_MAX: u64 = 5;

/// The plan of this seed, with so many episodes, on its own machine or on another one.
pub fn draw(seed: u64, episodes: usize, other: Option<Machine>) -> Plan {
    // What a seed is for has a stream of its own: with more episodes the first ones stay as they are.
    let mut random = RandomStream::new(seed, 0, 0);
    let own = machine(&mut random);
    let machine = other.unwrap_or(own);
    let platform = (1 << machine.cpus) - 2;
    Plan {
        seed,
        order: if random.below(2) == 0 {
            Order::Edf
        } else {
            Order::FixedPriority
        },
        trace_bytes: if random.below(8) == 0 {
            SMALL_BYTES
        } else {
            USUAL_BYTES
        },
        is_bound: random.below(3) > 0,
        episodes: (0..episodes)
            .map(|number| Draw::new(seed, number, platform).episode())
            .collect(),
        machine,
    }
}

fn machine(random: &mut RandomStream) -> Machine {
    let mut turn_us = || TURNS_US[random.below(TURNS_US.len() as u64) as usize];
    let (turn_us, second_us) = (turn_us(), turn_us());
    Machine {
        cpus: (CPUS_MIN + random.below(CPUS_MAX - CPUS_MIN + 1)) as u16,
        turn_us,
        second_turn_us: (second_us != turn_us).then_some(second_us),
        random_seed: random.below(1 << 31) as u32,
    }
}

/// How the affinities of an episode are drawn.
#[derive(Clone, Copy)]
enum Affinities {
    Nested,
    Any,
    /// Most tasks want the same CPU.
    Crowded,
}

struct Draw {
    random: RandomStream,
    number: usize,
    /// Bits.
    platform: u64,
    period_us: u64,
    rounds: u64,
}

impl Draw {
    fn new(seed: u64, number: usize, platform: u64) -> Self {
        let mut random = RandomStream::new(seed, 1, number as u64);
        let period_us = 6_000 + 2_000 * random.below(8);
        Self {
            number,
            platform,
            period_us,
            rounds: 2 + random.below(2),
            random,
        }
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn among<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.random.below(items.len() as u64) as usize]
    }

    fn episode(mut self) -> Episode {
        let tasks = self.tasks();
        let ordinary = self.ordinary();
        let steps = self.steps(&tasks);
        Episode {
            number: self.number,
            period_us: self.period_us,
            rounds: self.rounds,
            tasks,
            ordinary,
            steps,
        }
    }

    fn tasks(&mut self) -> Vec<Task> {
        let count = 2 + self.random.below(TASKS_MAX as u64 - 1) as usize;
        let style = self.among(&[Affinities::Nested, Affinities::Any, Affinities::Crowded]);
        let masks = self.masks(style);
        let mut ranks: Vec<u64> = (0..count as u64).collect();
        self.random.shuffle(&mut ranks);
        let mut wakes: Vec<u64> = (0..count as u64).collect();
        self.random.shuffle(&mut wakes);
        // Releases within one interrupt, or some microseconds apart.
        let apart_ns = self.among(&[0, 1_000, 1_000, 1_000, 10_000]);
        (0..count)
            .map(|number| {
                let first_ns = apart_ns * wakes[number] + self.random.below(apart_ns / 2 + 300);
                let work = self.work(first_ns);
                let cpus = self.among(&masks);
                let reserved = self.reserved(work, cpus, ranks[number]);
                Task {
                    number,
                    reserved,
                    work,
                }
            })
            .collect()
    }

    fn masks(&mut self, style: Affinities) -> Vec<u64> {
        let all = self.platform;
        match style {
            Affinities::Any => (1..=all >> 1).map(|bits| bits << 1).collect(),
            Affinities::Crowded => vec![0b10, 0b10, 0b100, all],
            Affinities::Nested => {
                let mut masks = vec![all];
                let mut next = 0;
                while let Some(&mask) = masks.get(next) {
                    next += 1;
                    let part = mask & self.random.bits();
                    if mask.count_ones() > 1 && part != 0 && part != mask {
                        masks.extend([part, mask & !part]);
                    }
                }
                masks
            }
        }
    }

    fn work(&mut self, first_ns: u64) -> Work {
        match self.random.below(20) {
            0..=1 => Work::Naps,
            2..=3 => Work::Hogs,
            4 => Work::Yields,
            5 if self.number.is_multiple_of(3) => Work::Program {
                run_us: 100 + self.random.below(1_000),
                sleep_us: 500 + self.random.below(4_000),
            },
            _ => {
                let (least, more) =
                    self.among(&[(20, 60), (100, 400), (500, 3_000), (1_000, 3_000)]);
                let run_us = least + self.random.below(more);
                let locked_us = if self.one_in(4) { run_us / 2 } else { 0 };
                Work::Jobs {
                    first_ns,
                    run_us,
                    locked_us,
                }
            }
        }
    }

    fn reserved(&mut self, work: Work, cpus: u64, rank: u64) -> Reserved {
        let (needed_us, period_us) = match work {
            Work::Jobs { run_us, .. } => (run_us, self.period_us),
            Work::Program { run_us, sleep_us } => (run_us, run_us + sleep_us),
            Work::Naps | Work::Yields => (300, 3_000),
            Work::Hogs => (1_000, 4_000),
        };
        let cost_us = match self.one_in(3) {
            true => needed_us * (10 + self.random.below(80)) / 100,
            false => needed_us + 500,
        };
        let deadline_us = period_us - 100 * (TASKS_MAX as u64 - rank);
        Reserved {
            cpus,
            cost_us: cost_us.clamp(5, deadline_us),
            period_us,
            deadline_us,
            on_overrun: self.among(&[OnOverrun::Continue, OnOverrun::Throttle, OnOverrun::Signal]),
            priority: 1 + rank as u32,
        }
    }

    fn ordinary(&mut self) -> Vec<Ordinary> {
        let count = if self.one_in(2) {
            0
        } else {
            self.random.below(4) as usize
        };
        (0..count)
            .map(|number| Ordinary {
                number,
                cpus: if self.one_in(2) { 0 } else { self.cpu_bit() },
                sleeps: self.one_in(2),
            })
            .collect()
    }

    /// A CPU of the platform.
    fn cpu(&mut self) -> u64 {
        1 + self.random.below(u64::from(self.platform.count_ones()))
    }

    fn cpu_bit(&mut self) -> u64 {
        1 << self.cpu()
    }

    fn steps(&mut self, tasks: &[Task]) -> Vec<Step> {
        let count = if self.one_in(3) {
            0
        } else {
            1 + self.random.below(5) as usize
        };
        let mut steps: Vec<Step> = (0..count)
            .map(|number| {
                let at_us = self.instant(tasks);
                let task = &tasks[self.random.below(tasks.len() as u64) as usize];
                Step {
                    number,
                    at_us,
                    for_us: 100 + self.random.below(4_000),
                    action: self.action(task),
                }
            })
            .collect();
        steps.sort_by_key(|step| step.at_us);
        steps
    }

    /// Half of all things happen when something is released, or just after.
    fn instant(&mut self, tasks: &[Task]) -> u64 {
        let round = self.random.below(self.rounds);
        let within_us = match (self.one_in(2), tasks[0].work) {
            (true, Work::Jobs { first_ns, .. }) => first_ns / 1_000 + self.random.below(200),
            _ => self.random.below(self.period_us),
        };
        round * self.period_us + within_us
    }

    fn action(&mut self, task: &Task) -> Action {
        let number = task.number;
        let can_stop = matches!(task.work, Work::Program { .. });
        match self.random.below(16) {
            0..=2 => {
                let (of, rank) = (&task.reserved, u64::from(task.reserved.priority) - 1);
                let changed = self.reserved(task.work, of.cpus, rank);
                Action::Change(number, changed)
            }
            3 => Action::Bind(number, self.platform, false),
            4 => Action::Bind(number, self.some_cpus(), true),
            5 => Action::Bind(number, self.some_cpus(), false),
            6 => Action::BindsItself(number, self.some_cpus()),
            7 => Action::Dismiss(number),
            8 => Action::Admit(number),
            9 => Action::End(number),
            10 if can_stop => Action::Stop(number),
            10..=11 => Action::Boost(number),
            12 => Action::Fifo(number),
            13 if self.number % 4 == 1 => Action::Offline(self.cpu()),
            13..=14 => Action::Hog(self.cpu()),
            _ => Action::Burst(self.some_cpus()),
        }
    }

    fn some_cpus(&mut self) -> u64 {
        (1 + self.random.below(self.platform >> 1)) << 1
    }
}
