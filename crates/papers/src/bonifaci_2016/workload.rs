//! The task sets of Section V.

use shiftwork_model::{Affinity, Span, TaskSet};
use shiftwork_taskset::generate::{self, Key, Periods, Shape, Spread, Utilizations};

/// How many CPUs: two sockets.
pub const CPUS: usize = 24;
/// How many CPUs a socket has.
pub const SOCKET: usize = 12;
/// How many tasks a set has: 2m to 10m in steps of 2m.
pub const TASKS: [usize; 5] = [48, 96, 144, 192, 240];
/// Total utilization in percent of all CPUs.
pub const LOADS: [u64; 2] = [75, 85];
/// How many sets there are for each number of tasks and each load: 100 in all.
pub const SETS: u64 = 10;

/// A set of the evaluation: randfixedsum, periods log-uniform from 1 ms to 1 s, costs of at least 500 us, each task as
/// likely global, bound to a socket or bound to a CPU; feasible; rate-monotonic priorities.
///
/// # Errors
/// In words, if no such set could be drawn.
pub fn set(tasks: usize, load: u64, index: u64) -> Result<TaskSet, String> {
    let options = generate::Options {
        cpus: CPUS,
        utilizations: Utilizations::RandFixedSum {
            tasks,
            total: CPUS as f64 * load as f64 / 100.0,
        },
        periods: Periods {
            shortest: Span::from_ms(1),
            longest: Span::from_ms(1_000),
            granularity: Span::from_us(1),
            spread: Spread::LogUniform,
        },
        shape: Shape::ThreeLevel(SOCKET),
        min_cost: Span::from_us(500),
        feasible: true,
        ..generate::Options::default()
    };
    let key = Key {
        seed: 2016,
        cell: load * 1_000 + tasks as u64,
        index,
    };
    // Deadlines are periods, and priorities deadline-monotonic where none are given.
    generate::generate(&options, key).map_err(|error| error.to_string())
}

/// The same tasks without their affinities, as the global baseline ran them.
pub fn without_affinities(mut set: TaskSet) -> TaskSet {
    let all = Affinity::new(set.platform.all());
    for task in &mut set.tasks {
        task.affinity = all.unwrap_or(task.affinity);
    }
    set
}
