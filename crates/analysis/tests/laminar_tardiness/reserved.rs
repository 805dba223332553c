//! CPUs that background work takes now and then: adversaries that choose when, as far as the supply
//! allows, and the reserve of the simulator.

use shiftwork_analysis::affinity::Unavailable;
use shiftwork_model::{Arrival, Instant, RandomStream, Share, Span, Task, TaskSet};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

use crate::climb::Responses;
use crate::game::{Game, Seen, attack_beside};
use crate::system::{Deadlines, SHAPES, System, UNIT};
use crate::times_if_long;

/// In any interval of L units a CPU may be taken for `burst` + L / `parts`: a bucket that holds so much
/// and fills at that rate.
struct Outages {
    parts: u64,
    burst: u64,
    /// By CPU, in parts of a unit.
    credit: Vec<u64>,
    is_out: Vec<bool>,
    style: Style,
}

/// When CPUs are taken.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// All together, for as long as possible, when all have their burst.
    Together,
    /// Each as soon as it has its burst and runs a job.
    WhenBusy,
    /// Each at random, and for a random time.
    Random,
    /// Each for as short as possible, as often as possible.
    Steadily,
}

impl Outages {
    fn new(cpus: usize, parts: u64, burst: u64, stream: &mut RandomStream) -> Self {
        let styles = [
            Style::Together,
            Style::WhenBusy,
            Style::Random,
            Style::Steadily,
        ];
        Self {
            parts,
            burst,
            credit: vec![burst * parts; cpus],
            is_out: vec![false; cpus],
            style: styles[stream.below(4) as usize],
        }
    }

    fn unavailable(&self) -> Unavailable {
        let share = Share::WHOLE / self.parts as u32;
        Unavailable {
            share: Share::from_billionths(share).unwrap(),
            burst: Span::from_ns(self.burst * UNIT),
        }
    }

    /// Takes CPUs for the unit that begins.
    fn step(&mut self, game: &mut Game<'_>, stream: &mut RandomStream) {
        let full = self.burst * self.parts;
        let all_full = self.credit.iter().all(|&credit| credit == full);
        for cpu in 0..self.credit.len() {
            // One part is gained in each unit, `parts` are one unit.
            let can = self.credit[cpu] + 1 >= self.parts;
            let begins = match self.style {
                Style::Together => all_full && stream.below(3) == 0,
                Style::WhenBusy => self.credit[cpu] == full && game.is_busy(cpu),
                Style::Random => stream.below(8) == 0,
                Style::Steadily => true,
            };
            let goes_on = match self.style {
                Style::Random => stream.below(4) > 0,
                _ => true,
            };
            let is_out = can && if self.is_out[cpu] { goes_on } else { begins };
            if is_out != self.is_out[cpu] {
                game.set_available(cpu, !is_out);
                self.is_out[cpu] = is_out;
            }
            self.credit[cpu] = match is_out {
                true => self.credit[cpu] + 1 - self.parts,
                false => (self.credit[cpu] + 1).min(full),
            };
        }
    }
}

/// A system that needs no more than CPUs supply.
fn system(shape: &str, deadlines: Deadlines, parts: u64, stream: &mut RandomStream) -> System {
    let mut system = System::random(shape, deadlines, 5, stream);
    for task in &mut system.tasks {
        let is_implicit = task.deadline == task.period;
        task.period = (task.period * parts).div_ceil(parts - 1);
        if is_implicit {
            task.deadline = task.period;
        }
    }
    system
}

#[test]
fn no_outages_make_a_job_later_than_its_bound() {
    let (mut found, mut all) = (0, 0);
    for (cell, shape) in SHAPES.into_iter().enumerate() {
        for (place, policy) in (0..).zip(["hpa-edf", "strong-edf"]) {
            let mut seen = Seen::default();
            for seed in 1..=times_if_long(10, 50) {
                let mut stream = RandomStream::new(seed, 400 + cell as u64, place);
                let deadlines = [Deadlines::Implicit, Deadlines::Any][seed as usize % 2];
                let parts = [4, 5, 10, 20][stream.below(4) as usize];
                let burst = 1 + stream.below(12);
                let system = system(shape, deadlines, parts, &mut stream);
                let outages =
                    |stream: &mut RandomStream| Outages::new(system.cpus, parts, burst, stream);
                let unavailable = outages(&mut stream).unavailable();
                all += 1;
                let Some(bounds) = system.bounds_beside(unavailable) else {
                    continue;
                };
                found += 1;
                let mut worst = vec![0; system.tasks.len()];
                for _ in 0..times_if_long(6, 10) {
                    let mut outages = outages(&mut stream);
                    let others = |game: &mut Game<'_>, stream: &mut RandomStream| {
                        outages.step(game, stream);
                    };
                    let responses = attack_beside(&system, policy, 300, &mut stream, others);
                    for (worst, response) in worst.iter_mut().zip(responses) {
                        *worst = response.max(*worst);
                    }
                }
                let what =
                    format!("{shape}, {deadlines:?}, {policy}, seed {seed}, 1/{parts}, {burst}");
                seen.add(&system, &bounds, &worst, &what);
            }
            seen.print(&format!("{shape} beside"));
        }
    }
    println!("{found} of {all} systems have bounds");
    assert!(found * 2 > all, "{found} of {all} systems have bounds");
}

/// Tasks of some ms with nested affinities that need up to 0.94 of each CPU.
fn in_ms(shape: u64, stream: &mut RandomStream) -> System {
    let masks: &[u64] = [
        &[0b11, 0b1, 0b10][..],
        &[0b1111, 0b11, 0b1100],
        &[0b1111, 0b11, 0b1100, 0b1, 0b10, 0b100, 0b1000],
        &[0b111, 0b11, 0b1],
    ][shape as usize];
    let cpus = masks[0].count_ones() as usize;
    let mut system = System {
        cpus,
        tasks: Vec::new(),
    };
    let load = |system: &System, mask: u64| -> f64 {
        let below = system.tasks.iter().filter(|task| task.mask & !mask == 0);
        below
            .map(|task| task.cost as f64 / task.period as f64)
            .sum()
    };
    for _ in 0..60 {
        let period = 5 + stream.below(60);
        let deadline = period;
        let cost = 1 + stream.below(period.div_ceil(2));
        let mask = masks[stream.below(masks.len() as u64) as usize];
        let unit = crate::system::Unit {
            cost,
            period,
            deadline,
            mask,
        };
        system.tasks.push(unit);
        let fits = |&mask: &u64| load(&system, mask) <= 0.94 * f64::from(mask.count_ones());
        if !masks.iter().all(fits) {
            system.tasks.pop();
        }
    }
    system
}

/// Milliseconds instead of units.
fn simulated(system: &System, policy: &str, seed: u64) -> Vec<u64> {
    let tasks = system.task_set().tasks.into_iter().zip(&system.tasks);
    let tasks = tasks.map(|(task, unit)| Task {
        cost: Span::from_ms(unit.cost),
        period: Span::from_ms(unit.period),
        deadline: Span::from_ms(unit.deadline),
        arrival: match seed % 2 {
            0 => Arrival::Periodic,
            _ => Arrival::Sporadic,
        },
        ..task
    });
    let set = TaskSet::new("reserved", system.cpus, tasks.collect());
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed,
        horizon: Instant::from_ns(60_000_000_000),
        overheads: None,
        reserve_server: true,
    };
    let mut responses = Responses::of(set.tasks.len());
    Simulation::new(&set, entry.build(&set).unwrap(), &entry.traits, options).run(&mut responses);
    responses.longest
}

/// With the reserve of the simulator, jobs are later than the bound without it allows, and no later than
/// the one with it.
#[test]
fn simulated_reserve_makes_no_job_later_than_its_bound() {
    let reserve = Share::DEFAULT_RESERVE;
    let unavailable = Unavailable::by_reserve(reserve, Span::from_s(1));
    let mut later = 0;
    for seed in 1..=times_if_long(8, 25) {
        let mut stream = RandomStream::new(seed, 500, 0);
        let system = in_ms(seed % 4, &mut stream);
        let in_ns = |system: &System| {
            let mut system = system.clone();
            for task in &mut system.tasks {
                for time in [&mut task.cost, &mut task.period, &mut task.deadline] {
                    *time *= 1_000_000 / UNIT;
                }
            }
            system
        };
        let Some(bounds) = in_ns(&system).bounds_beside(unavailable) else {
            continue;
        };
        let without = in_ns(&system).bounds();
        let policy = ["hpa-edf", "strong-edf"][seed as usize / 4 % 2];
        for (task, response) in simulated(&system, policy, seed).into_iter().enumerate() {
            let (bound, without) = (bounds[task], without[task]);
            assert!(
                response <= bound,
                "seed {seed}, {policy}, task {task}: {response} ns, bound {bound}, of {system:?}"
            );
            later += u64::from(response > without);
        }
    }
    assert!(later > 0, "the reserve never mattered");
}
