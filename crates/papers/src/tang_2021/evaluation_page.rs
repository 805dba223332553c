//! The page about Section 6.

use super::FOLDER;
use super::evaluation::{CPUS, LENGTH, Outcome, POLICIES, SETS, TASKS, run, set, using};
use crate::chapter::{Chapter, ms};
use crate::page::{Claim, Page, claims, table};
use shiftwork_model::{Span, TaskSet};
use shiftwork_report::plot::{Axes, Bars, histogram};

const HEAD: &str = "\
<!-- Written by `make papers`; changes here are lost. -->
# Tang, Anderson, Abeni 2021: the evaluation

Section 6 of the paper measures Linux with and without its patch on one socket of eight CPUs. Here both are simulated:
`dl-linux`, where admission is off as soon as a task is bound to a CPU, and `dl-sp`.

- Ten task sets of 16 tasks and ten of 40, with a total utilization of 7.52, uniform among all ways to share it
  (Stafford's randfixedsum, which taskgen uses, too).
- Periods from 10 to 100 ms in steps of 1 ms, log-uniform. The paper does not say which it had; the script that comes
  with taskgen draws such ones.
- Tasks are packed onto CPUs by worst fit, in their order, each CPU having room for 0.95, which is what condition (2) of the
  patched admission allows. A task that fits on no CPU migrates.
- Jobs are released periodically, all tasks beginning together, and use the whole of their budgets, which are the costs.
- Each set runs for ten minutes. Nothing takes time but jobs: no overheads.
";

const NOT_COMPARABLE: &str = "\
The sets differ a lot (last table). Of means that are so close it depends on the sets drawn which one is lower; with others of 16
tasks forced throttles and moves were of the same order, too, sometimes one more and sometimes the other.

The paper also measures how long a forced throttle lasts (44 µs on average with 16 tasks, 34 µs with 40), and that pushes
take about 1 µs longer. These are costs of a timer and of run-queue locks on that machine; the simulation has none of them: a forced
throttle ends in the instant in which it begins. Costs of a machine can be given to `simulate` with `--overheads`.
Pushes are counted in the paper whether they move anything or not; here only what moved from one CPU to another counts, by a
push or a pull.
";

/// What came out of one set under the two policies.
struct Row {
    tasks: usize,
    index: u64,
    migrating: usize,
    outcomes: [Outcome; 2],
}

/// The page with its figures: the results of all sets.
///
/// # Errors
/// In words, if a set cannot be drawn or run.
pub fn pages() -> Result<Vec<Page>, String> {
    let mut rows = Vec::new();
    for tasks in TASKS {
        for index in 0..SETS {
            rows.push(row(tasks, index)?);
        }
    }
    let sums = TASKS.map(|tasks| {
        let of_size = rows.iter().filter(|row| row.tasks == tasks);
        of_size.fold([Outcome::default(), Outcome::default()], |mut sums, row| {
            for (sum, outcome) in sums.iter_mut().zip(&row.outcomes) {
                sum.add(outcome);
            }
            sums
        })
    });
    let mut page = Chapter::new(FOLDER);
    page.say(HEAD);
    page.say("## What the paper says");
    page.say(&claims(&compared(&sums)));
    page.say(NOT_COMPARABLE);
    page.say("## Tardiness");
    page.say("Divided by the period, over all jobs of ten sets.");
    page.say(&tardiness(&sums));
    for (tasks, sums) in TASKS.into_iter().zip(&sums) {
        let title = format!("{tasks} tasks: by how much the late jobs were late");
        page.show(
            &format!("evaluation-{tasks}"),
            &title,
            late_jobs(&title, sums),
        );
    }
    page.say("## Counts");
    page.say(
        "*Late replenishments*: a job ends when its server's deadline is over, and the next budget begins at once. With \
         the patch each of them is a forced throttle; Linux goes on. *Moves*: a task runs on another CPU than it last \
         ran on, between jobs or within one (a migration). *ARPI*: affinity-related priority inversions, in which a job waits that only a \
         shift of running jobs would let run.",
    );
    page.say(&counts(&sums));
    page.say("## Jobs that use less than their budgets");
    page.say(
        "The paper does not say how much of their budgets its jobs used. A minute of each set with the patch, every job using \
         this share: with some to spare moves outnumber forced throttles with 16 tasks, too.",
    );
    page.say(&lighter()?);
    page.say("## Each set");
    let lines: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    let both = |what: &str| format!("{what}: `{}`, `{}`", POLICIES[0], POLICIES[1]);
    let (late, moves, mean) = (
        both("late replenishments"),
        both("moves"),
        both("mean tardiness"),
    );
    page.say(&table(
        &["tasks", "set", "migrating", &late, &moves, &mean],
        &lines,
    ));
    Ok(page.into_pages("evaluation"))
}

/// The line of one set in the last table, as it is on the page.
///
/// # Errors
/// In words, if the set cannot be drawn or run.
pub fn line(tasks: usize, index: u64) -> Result<String, String> {
    Ok(format!("| {} |", row(tasks, index)?.cells().join(" | ")))
}

fn row(tasks: usize, index: u64) -> Result<Row, String> {
    let set = set(tasks, index)?;
    let [linux, repaired] = POLICIES;
    Ok(Row {
        tasks,
        index,
        migrating: migrating(&set),
        outcomes: [run(&set, linux, LENGTH)?, run(&set, repaired, LENGTH)?],
    })
}

fn migrating(set: &TaskSet) -> usize {
    let migrates = |task: &&shiftwork_model::Task| task.affinity.cpus().len() == CPUS;
    set.tasks.iter().filter(migrates).count()
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let both = |figure: fn(&Outcome) -> String| self.outcomes.each_ref().map(figure).join(", ");
        vec![
            self.tasks.to_string(),
            (self.index + 1).to_string(),
            self.migrating.to_string(),
            both(|outcome| outcome.counts.late_replenishments.to_string()),
            both(|outcome| outcome.counts.moves().to_string()),
            both(mean),
        ]
    }
}

/// Millionths as a percentage.
fn mean(outcome: &Outcome) -> String {
    let millionths = outcome.counts.mean();
    format!("{}.{:04}%", millionths / 10_000, millionths % 10_000)
}

fn compared(sums: &[[Outcome; 2]; 2]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (tasks, [linux, repaired]) in TASKS.into_iter().zip(sums) {
        let (throttles, moves) = (repaired.counts.late_replenishments, repaired.counts.moves());
        let ours = match throttles.saturating_mul(2) < moves {
            true => "pushes vastly outnumber forced throttles",
            false => "they do not",
        };
        let what = format!("{tasks} tasks: {throttles} forced throttles, {moves} moves");
        let claim = Claim::new(&what, "pushes vastly outnumber forced throttles", ours);
        claims.push(claim.because(
            "its pushes (Fig. 10) are those of 40 tasks; here every job uses its whole budget, and of few large tasks a \
             third of the jobs are late (below: jobs that use less)",
        ));
        let what = format!(
            "{tasks} tasks: mean tardiness {} and {}",
            mean(linux),
            mean(repaired)
        );
        let [before, after] = [linux, repaired].map(|outcome| outcome.counts.mean());
        let (less, is_small) = (after < before, after.abs_diff(before) * 20 < before);
        let ours = match (less, is_small) {
            (true, true) => "negligibly lower with the patch",
            (false, true) => "negligibly higher with the patch",
            (true, false) => "lower with the patch",
            (false, false) => "higher with the patch",
        };
        let claim = Claim::new(&what, "negligibly lower with the patch", ours);
        claims.push(
            claim.because("either way by less than 5%, and of ten sets some gain and some lose"),
        );
    }
    claims
}

fn tardiness(sums: &[[Outcome; 2]; 2]) -> String {
    let mut rows = Vec::new();
    for (tasks, outcomes) in TASKS.into_iter().zip(sums) {
        for (policy, outcome) in POLICIES.into_iter().zip(outcomes) {
            let counts = &outcome.counts;
            let late = counts.completed - counts.in_time();
            let mut row = vec![
                tasks.to_string(),
                format!("`{policy}`"),
                counts.completed.to_string(),
                percent(late * 1_000 / counts.completed.max(1)),
                mean(outcome),
            ];
            row.extend(
                [500, 900, 990, 999, 1_000].map(|permille| percent(counts.percentile(permille))),
            );
            rows.push(row);
        }
    }
    let head = [
        "tasks", "", "jobs", "late", "mean", "median", "90%", "99%", "99.9%", "largest",
    ];
    table(&head, &rows)
}

/// Thousandths as a percentage.
fn percent(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

fn counts(sums: &[[Outcome; 2]; 2]) -> String {
    let mut rows = Vec::new();
    for (tasks, outcomes) in TASKS.into_iter().zip(sums) {
        for (policy, outcome) in POLICIES.into_iter().zip(outcomes) {
            let counts = &outcome.counts;
            let length = outcome.inverted_ns / outcome.inversions.max(1);
            rows.push(vec![
                tasks.to_string(),
                format!("`{policy}`"),
                counts.late_replenishments.to_string(),
                counts.moves_between_jobs.to_string(),
                counts.moves_within_jobs.to_string(),
                outcome.preemptions.to_string(),
                outcome.inversions.to_string(),
                ms(Span::from_us(length / 1_000)),
                ms(Span::from_us(outcome.inverted_longest_ns / 1_000)),
            ]);
        }
    }
    let head = [
        "tasks",
        "",
        "late replenishments",
        "moves between jobs",
        "migrations",
        "preemptions",
        "ARPIs",
        "mean ARPI (ms)",
        "longest (ms)",
    ];
    table(&head, &rows)
}

/// What happens where jobs use a part of their budgets.
fn lighter() -> Result<String, String> {
    let mut rows = Vec::new();
    for tasks in TASKS {
        for percent in [100, 99, 97, 95, 90] {
            let mut sum = Outcome::default();
            for index in 0..SETS {
                let set = using(percent, set(tasks, index)?);
                sum.add(&run(&set, POLICIES[1], Span::from_s(60))?);
            }
            rows.push(vec![
                tasks.to_string(),
                format!("{percent}%"),
                sum.counts.late_replenishments.to_string(),
                sum.counts.moves().to_string(),
                mean(&sum),
            ]);
        }
    }
    let head = [
        "tasks",
        "used",
        "forced throttles",
        "moves",
        "mean tardiness",
    ];
    Ok(table(&head, &rows))
}

/// How the tardiness of late jobs is distributed, as in Fig. 11.
fn late_jobs(title: &str, outcomes: &[Outcome; 2]) -> String {
    // Thousandths of a period; the last class has everything beyond.
    const EDGES: [usize; 12] = [
        0, 50, 100, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000,
    ];
    let label = |permille: usize| format!("{}.{:02}", permille / 1_000, permille % 1_000 / 10);
    let mut labels: Vec<String> = EDGES[1..]
        .iter()
        .map(|&to| format!("to {}", label(to)))
        .collect();
    labels.push("more".to_owned());
    let bars = POLICIES.into_iter().zip(outcomes).map(|(policy, outcome)| {
        let counts = &outcome.counts;
        let late = (counts.completed - counts.in_time()).max(1);
        let to = EDGES[1..].iter().copied().chain([usize::MAX - 1]);
        let classes = EDGES.into_iter().zip(to);
        Bars {
            name: policy.to_owned(),
            permille: classes
                .map(|(from, to)| counts.between(from, to) * 1_000 / late)
                .collect(),
        }
    });
    let axes = Axes {
        x: "tardiness divided by the period",
        y: "share of the late jobs",
    };
    histogram(title, axes, &labels, &bars.collect::<Vec<_>>())
}
