//! Task sets per second of CPU time, one thread, beside those of SchedCAT; exit status 1 if what is
//! wanted is missed.
//!
//! `cargo bench -p shiftwork-analysis --bench tests [NAME]` measures the rows whose name contains NAME.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that cannot go on fails"
)]

use std::hint::black_box;
use std::process::ExitCode;

use rustix::time::{ClockId, clock_gettime};
use shiftwork_analysis::{Outcome, Ranked, Sporadic, Steps};
use shiftwork_analysis::{global_edf, global_fp, response};
use shiftwork_model::{
    CpuSet, Heuristic, Parcel, Priority, RandomStream, Span, Utilization, pack_by,
};
use shiftwork_taskset::generate;

const CPUS: usize = 32;

/// How the task sets of a row are drawn: utilizations uniform in thousandths, whole milliseconds
/// uniform from 10 to 100 as periods.
#[derive(Clone, Copy)]
struct Shape {
    tasks: usize,
    utilization: (u64, u64),
    /// Whether deadlines are uniform from half the period, or the cost if that is more, to the period;
    /// otherwise they are equal to it.
    constrained: bool,
}

const MEDIUM: Shape = Shape {
    tasks: 70,
    utilization: (100, 400),
    constrained: false,
};

/// Half the load, so that more tests pass and have to look at everything.
const FEWER: Shape = Shape {
    tasks: 35,
    ..MEDIUM
};

const LIGHT: Shape = Shape {
    tasks: 600,
    utilization: (1, 100),
    constrained: false,
};

const fn constrained(shape: Shape) -> Shape {
    Shape {
        constrained: true,
        ..shape
    }
}

/// What a test says of a task set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Yes,
    No,
    StepLimit,
}

impl<Failure, Proof> From<Outcome<Failure, Proof>> for Said {
    fn from(outcome: Outcome<Failure, Proof>) -> Self {
        match outcome {
            Outcome::Pass(_) => Self::Yes,
            Outcome::Fail(_) => Self::No,
            Outcome::StepLimit => Self::StepLimit,
        }
    }
}

/// One row of the table.
struct Row {
    name: &'static str,
    shape: Shape,
    /// Task sets per CPU second of the reference.
    reference: Option<f64>,
    /// How many times as many are wanted, if any number is.
    wanted: Option<f64>,
    run: fn(&[Sporadic]) -> Said,
}

const fn row(
    name: &'static str,
    shape: Shape,
    reference: Option<f64>,
    wanted: Option<f64>,
    run: fn(&[Sporadic]) -> Said,
) -> Row {
    Row {
        name,
        shape,
        reference,
        wanted,
        run,
    }
}

/// Whatever else is measured in task sets per second is one more line.
const ROWS: &[Row] = &[
    row("gfb", MEDIUM, Some(35_600.0), Some(50.0), |tasks| {
        global_edf::gfb(tasks, CPUS, &mut Steps::ordinary()).into()
    }),
    row("bak", MEDIUM, None, None, |tasks| {
        global_edf::bak(tasks, CPUS, &mut Steps::ordinary()).into()
    }),
    row("bcl", MEDIUM, Some(25_000.0), None, |tasks| {
        global_edf::bcl(tasks, CPUS, &mut Steps::ordinary()).into()
    }),
    row("bcli", MEDIUM, None, None, |tasks| {
        global_edf::bcli(tasks, CPUS, &mut Steps::ordinary()).into()
    }),
    row("rta", MEDIUM, Some(36.0), Some(20.0), RTA),
    row("bar", MEDIUM, Some(1_180.0), Some(20.0), BAR),
    row("load", MEDIUM, Some(26_300.0), None, LOAD),
    row("ffdbf", MEDIUM, Some(16.5), Some(20.0), FFDBF),
    row("rta", LIGHT, Some(8.4), Some(20.0), RTA),
    row("bar", LIGHT, Some(0.18), Some(20.0), BAR),
    row("rta", FEWER, None, None, RTA),
    row("bar", FEWER, None, None, BAR),
    row("rta, D < T", constrained(FEWER), None, None, RTA),
    row("bar, D < T", constrained(FEWER), None, None, BAR),
    row("load, D < T", constrained(FEWER), None, None, LOAD),
    row("ffdbf, D < T", constrained(FEWER), None, None, FFDBF),
    row("bar, D < T", constrained(LIGHT), None, None, BAR),
    row("ffdbf, D < T", constrained(LIGHT), None, None, FFDBF),
    row(
        "devi-anderson",
        MEDIUM,
        Some(17_000.0),
        Some(20.0),
        |tasks| response::devi_anderson(tasks, CPUS, &mut Steps::ordinary()).into(),
    ),
    row("devi-a. np", MEDIUM, None, None, |tasks| {
        response::devi_anderson_non_preemptive(tasks, CPUS, &mut Steps::ordinary()).into()
    }),
    row("gel", MEDIUM, Some(453.0), Some(20.0), GEL),
    row("gel", LIGHT, Some(3.4), Some(20.0), GEL),
    row("guan", FEWER, None, None, GUAN),
    row("ffd", MEDIUM, Some(11_600.0), Some(20.0), FFD),
    row("randfixedsum", MEDIUM, Some(402.0), Some(50.0), generated),
];

const RTA: fn(&[Sporadic]) -> Said =
    |tasks| global_edf::rta(tasks, CPUS, &mut Steps::ordinary()).into();
const BAR: fn(&[Sporadic]) -> Said =
    |tasks| global_edf::bar(tasks, CPUS, &mut Steps::ordinary()).into();
const LOAD: fn(&[Sporadic]) -> Said =
    |tasks| global_edf::load(tasks, CPUS, &mut Steps::ordinary()).into();
const FFDBF: fn(&[Sporadic]) -> Said =
    |tasks| global_edf::ffdbf(tasks, CPUS, &mut Steps::ordinary()).into();

const GEL: fn(&[Sporadic]) -> Said =
    |tasks| response::gel(tasks, CPUS, &mut Steps::ordinary()).into();
const GUAN: fn(&[Sporadic]) -> Said =
    |tasks| global_fp::guan(&by_deadline(tasks), CPUS, &mut Steps::ordinary()).into();

/// First-fit decreasing, by utilization.
const FFD: fn(&[Sporadic]) -> Said = |tasks| {
    let cpus = CpuSet::from_bits((1 << CPUS) - 1);
    let parcels = tasks.iter().filter_map(|task| {
        Some(Parcel {
            utilization: Utilization::new(task.cost, task.period)?,
            cpus: &cpus,
        })
    });
    match pack_by(Heuristic::FFD, parcels, &SINGLE_CPUS).fits() {
        true => Said::Yes,
        false => Said::No,
    }
};

static SINGLE_CPUS: [CpuSet; CPUS] = {
    let mut sets = [CpuSet::EMPTY; CPUS];
    let mut cpu = 0;
    while cpu < CPUS {
        sets[cpu] = CpuSet::from_bits(1 << cpu);
        cpu += 1;
    }
    sets
};

/// Deadline-monotonic, equals by their place.
fn by_deadline(tasks: &[Sporadic]) -> Vec<Ranked> {
    let mut order: Vec<&Sporadic> = tasks.iter().collect();
    order.sort_by_key(|task| task.deadline);
    let ranked = |(&task, rank)| Ranked {
        task,
        priority: Priority::new(rank).unwrap(),
    };
    order.into_iter().zip(1..).map(ranked).collect()
}

/// Generates a whole task set with as many tasks. Each has a sum of utilizations of its own, so that
/// nothing of one set serves the next.
fn generated(tasks: &[Sporadic]) -> Said {
    let index = tasks[0].cost.as_ns();
    let total = tasks.len() as f64 * (1 + index % 997) as f64 / 1_000.0;
    let options = generate::Options {
        cpus: CPUS,
        utilizations: generate::Utilizations::RandFixedSum {
            tasks: tasks.len(),
            total,
        },
        ..generate::Options::default()
    };
    let key = generate::Key {
        seed: 1,
        cell: 0,
        index,
    };
    match generate::generate(&options, key) {
        Ok(set) => {
            black_box(set);
            Said::Yes
        }
        Err(_) => Said::No,
    }
}

/// The task set of this number.
fn task_set(shape: Shape, number: u64) -> Vec<Sporadic> {
    let mut stream = RandomStream::new(number, 63, shape.tasks as u64);
    let (low, high) = shape.utilization;
    (0..shape.tasks)
        .map(|_| {
            let period = Span::from_ms(10 + stream.below(91));
            // In millionths of the period.
            let share = low * 1_000 + stream.below((high - low) * 1_000 + 1);
            let cost = Span::from_ns((period.as_ns() / 1_000_000 * share).max(1));
            let deadline = match shape.constrained {
                true => stream.span(cost.max(Span::from_ns(period.as_ns() / 2)), period),
                false => period,
            };
            Sporadic {
                cost,
                period,
                deadline,
            }
        })
        .collect()
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// What was found of a row.
struct Measured {
    /// Task sets per second, the best of the turns.
    rate: f64,
    /// Which part of them passed and which was given up.
    passed: f64,
    given_up: f64,
}

/// All task sets of a row in turn, again and again, for half a second each turn.
fn measure(row: &Row) -> Measured {
    const SETS: u64 = 200;
    const TURNS: usize = 5;
    let sets: Vec<Vec<Sporadic>> = (0..SETS)
        .map(|number| task_set(row.shape, number))
        .collect();
    let said: Vec<Said> = sets.iter().map(|set| (row.run)(set)).collect();
    let part = |what: Said| said.iter().filter(|&&one| one == what).count() as f64 / SETS as f64;
    let turn = || {
        let (start, mut done) = (cpu_seconds(), 0);
        loop {
            sets.iter().for_each(|set| {
                black_box((row.run)(black_box(set)));
            });
            done += sets.len();
            let spent = cpu_seconds() - start;
            if spent > 0.3 {
                return done as f64 / spent;
            }
        }
    };
    Measured {
        rate: (0..TURNS).map(|_| turn()).fold(0.0, f64::max),
        passed: part(Said::Yes),
        given_up: part(Said::StepLimit),
    }
}

/// Prints a row; whether it is as wanted.
fn report(row: &Row) -> bool {
    let Measured {
        rate,
        passed,
        given_up,
    } = measure(row);
    let ratio = row.reference.map(|reference| rate / reference);
    let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".into());
    let verdict = match (ratio, row.wanted) {
        (Some(ratio), Some(wanted)) if ratio < wanted => "MISSED",
        (Some(_), Some(_)) => "kept",
        _ => "",
    };
    println!(
        "{:<14} {:>5} {rate:>12.1} {:>10} {:>8} {:>7} {:>6.0}% {:>6.0}%  {verdict}",
        row.name,
        row.shape.tasks,
        or_dash(row.reference.map(|reference| reference.to_string())),
        or_dash(ratio.map(|ratio| format!("{ratio:.1}x"))),
        or_dash(row.wanted.map(|wanted| format!("{wanted}x"))),
        100.0 * passed,
        100.0 * given_up,
    );
    verdict != "MISSED"
}

fn main() -> ExitCode {
    let name = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    println!("Task sets per CPU second, m = {CPUS}, one thread, best of five turns");
    println!(
        "{:<14} {:>5} {:>12} {:>10} {:>8} {:>7} {:>7} {:>7}",
        "test", "n", "sets/s", "reference", "ratio", "wanted", "passed", "limit"
    );
    let rows = ROWS
        .iter()
        .filter(|row| name.as_ref().is_none_or(|name| row.name.contains(name)));
    let kept = rows.fold(true, |kept, row| report(row) & kept);
    match kept {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
