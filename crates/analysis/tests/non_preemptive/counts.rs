//! How many random task sets the tests accept, beside those that the exact search of one hyperperiod accepts and those
//! of which a simulated schedule is late.

use shiftwork_analysis::global_edf::{np_density, np_rta};
use shiftwork_analysis::schedule_abstraction::{PeriodicRange, np_periodic};
use shiftwork_analysis::uniprocessor::{np_edf, np_fp_rta};
use shiftwork_analysis::{Outcome, Ranked, Sporadic, Steps, global_fp};
use shiftwork_model::{Order, Priority, RandomStream, Span};

use crate::sets::{passes, plain};

/// Of so many sets.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sets: usize,
    /// By test: those on one CPU, density and response times.
    exact: usize,
    density: usize,
    response: usize,
    /// Shown of tasks that are released together, periodically.
    search: usize,
    /// Refuted by a schedule.
    late: usize,
}

/// Tasks of periods that divide 1200, by UUniFast, each with its rank by deadline as priority.
fn drawn(seed: u64, cpus: u64) -> Vec<Ranked> {
    const PERIODS: [u64; 10] = [20, 24, 30, 40, 50, 60, 80, 100, 120, 200];
    let mut stream = RandomStream::new(seed, 94, cpus);
    let count = (2 * cpus + 1 + stream.below(3)) as usize;
    let mut left = (200 + 50 * stream.below(15)) * cpus;
    let mut tasks: Vec<Sporadic> = (0..count)
        .map(|place| {
            let rest = (count - place) as u64;
            let share = match rest {
                1 => left,
                _ => stream.below(2 * left / rest + 1),
            };
            left -= share;
            let period = PERIODS[stream.below(PERIODS.len() as u64) as usize];
            let cost = (period * share / 1000).clamp(1, period);
            let deadline = match seed % 2 {
                0 => period,
                _ => cost + (period - cost) / 2 + stream.below((period - cost) / 2 + 1),
            };
            let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ns);
            Sporadic {
                cost,
                period,
                deadline,
            }
        })
        .collect();
    tasks.sort_by_key(|task| task.deadline);
    let ranked = (1..).zip(tasks).map(|(number, task)| Ranked {
        task,
        priority: Priority::new(number).unwrap(),
    });
    ranked.collect()
}

/// Whether a job is late in one of these schedules: together, or the most costly task one unit before the others.
fn is_late(tasks: &[Ranked], order: Order, cpus: usize, seed: u64) -> bool {
    let mut stream = RandomStream::new(seed, 95, 0);
    let longest = (0..tasks.len()).max_by_key(|&place| tasks[place].task.cost);
    (0..12).any(|round| {
        let offsets: Vec<u64> = (0..tasks.len())
            .map(|place| match round {
                0 => 0,
                1 => u64::from(longest != Some(place)),
                2..6 => stream.below(2),
                _ => stream.below(tasks[place].task.period.as_ns()),
            })
            .collect();
        crate::abstraction::a_job_is_late(tasks, &offsets, order, cpus)
    })
}

fn count(cpus: u64, order: Order, sets: u64) -> Counts {
    let mut counts = Counts::default();
    for seed in 0..sets {
        let tasks = drawn(seed, cpus);
        let m = cpus as usize;
        let mut steps = Steps::ordinary();
        let (exact, density, response) = match order {
            Order::Edf => (
                m == 1 && passes(&np_edf(&plain(&tasks), &mut steps)),
                passes(&np_density(&plain(&tasks), m, &mut steps)),
                passes(&np_rta(&plain(&tasks), m, &mut steps)),
            ),
            _ => (
                m == 1 && passes(&np_fp_rta(&tasks, &mut steps)),
                false,
                passes(&global_fp::np_rta(&tasks, m, &mut steps)),
            ),
        };
        let ranges: Vec<PeriodicRange> = tasks
            .iter()
            .map(|&ranked| PeriodicRange {
                ranked,
                offset: Span::ZERO,
                jitter: Span::ZERO,
                least: ranked.task.cost,
            })
            .collect();
        let search = np_periodic(&ranges, order, m, &mut Steps::at_most(2_000_000));
        let search = matches!(search, Outcome::Pass(_));
        let late = is_late(&tasks, order, m, seed);
        let shown = exact || density || response;
        assert!(
            !(shown && late),
            "seed {seed}, {order:?} on {cpus}: {tasks:?}"
        );
        // What is shown of sporadic tasks holds of these releases.
        assert!(
            search || !shown,
            "seed {seed}, {order:?} on {cpus}: {tasks:?}"
        );
        assert!(
            exact || m > 1 || !(density || response),
            "seed {seed}, {order:?}: {tasks:?}"
        );
        counts.sets += 1;
        counts.exact += usize::from(exact);
        counts.density += usize::from(density);
        counts.response += usize::from(response);
        counts.search += usize::from(search);
        counts.late += usize::from(late);
    }
    counts
}

#[test]
fn no_accepted_set_is_refuted() {
    let sets = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 1_000,
        None => 60,
    };
    for cpus in [1, 2, 3, 4] {
        for order in [Order::Edf, Order::FixedPriority] {
            let counts = count(cpus, order, sets);
            println!("{cpus} CPUs, {order:?}: {counts:?}");
            let shown = counts.exact.max(counts.response);
            assert!(
                shown > 0 && counts.late > 0,
                "{cpus} CPUs, {order:?}: {counts:?}"
            );
        }
    }
}
