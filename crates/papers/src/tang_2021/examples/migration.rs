//! Sections 4 and 5: how jobs migrate, without the patch and with it.

use shiftwork_model::{Lagging, Repairs, Span};
use shiftwork_policy::Ties;

use super::{T1, T2, T3, T4, after, run, run_finish, where_it_ran};
use crate::chapter::{Chapter, at, list, ms};
use crate::page::{Claim, claims, table};
use crate::schedule::Schedule;
use crate::tang_2021::FOLDER;
use crate::tang_2021::{example, lateness_by_occurrence, simulate};
use shiftwork_report::plot::{Axes, Curve, curves};

/// Example 5.
pub(super) fn bypassing() -> Result<Chapter, String> {
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 5 (Figs. 5 and 6): bypassing the throttled state\n\n\
         A job that ends late is followed by the next one of its task at once and on the same CPU, although that keeps a \
         task from running that is bound to this CPU, and another CPU is free. For the pattern to repeat t1, t3 and t5 have to be \
         released when the others are late enough, with separations that grow with the lateness; released \
         periodically, no task is late by more than 4 ms.",
    );
    chapter.append(as_the_paper_draws_it()?);
    chapter.append(as_linux_breaks_ties()?);
    chapter.append(traces()?);
    Ok(chapter)
}

fn as_the_paper_draws_it() -> Result<Chapter, String> {
    let set = example("example-5-paper")?;
    let linux = simulate(&set, Repairs::NONE, Ties::Running, at(4_100))?;
    let repaired = simulate(&set, Repairs::ALL, Ties::Running, at(4_100))?;
    let late = lateness_by_occurrence(&linux);
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "**As the paper draws it.** Its ties: a job that is replenished goes on against an equal deadline, unless its \
         new deadline is due already.",
    );
    let largest = |pair: &[Span; 2]| pair[0].max(pair[1]);
    let rises: Vec<String> = late
        .windows(2)
        .take(4)
        .map(|pair| ms(largest(&pair[1]) - largest(&pair[0])))
        .collect();
    let of_both = |task: usize| list(late.iter().take(10).map(|pair| pair[task]));
    chapter.say(&claims(&[
        Claim::new("t2 runs on", "CPU 0 [0, 6), CPU 1 [6, 12)", where_it_ran(&linux, T2, 12)),
        Claim::new("t4 runs on", "CPU 2 [0, 6), CPU 2 [8, 18)", where_it_ran(&linux, T4, 18)),
        Claim::new("tardiness after 8 ms of t2, t4 (ms)", "0, 2", list(late[0])),
        Claim::new("tardiness after 20 ms of t2, t4 (ms)", "2, 2", list(late[1])),
        Claim::new(
            "with each occurrence the larger tardiness of both increases by (ms)",
            "2, 2, 2, 2",
            rises.join(", "),
        )
        .because("the two take turns: the larger one rises at every second occurrence, the sum by 2 at each"),
        Claim::new("tardiness of t2 after each occurrence (ms) †", "0, 2, 2, 4, 4, 6, 6, 8, 8, 10", of_both(0)),
        Claim::new("tardiness of t4 after each occurrence (ms) †", "2, 2, 4, 4, 6, 6, 8, 8, 10, 10", of_both(1)),
        Claim::new("after 60 occurrences (ms) †", "60, 60", list(late[59])),
        Claim::new("with the patch t2 moves at 2 ms to", "CPU 1 [2, 8)", after(&repaired, T2, 2, 8)),
        Claim::new("with the patch t1 runs on", "CPU 0 [2, 4)", where_it_ran(&repaired, T1, 12)),
        Claim::new("largest tardiness with the patch (ms)", 0, ms(repaired.worst())),
    ]));
    chapter.draw(
        "example-5-paper",
        "Example 5 under Linux's rules, ties as in the paper",
        (&set, &linux),
        0..24,
    );
    chapter.draw(
        "example-5-paper-repaired",
        "Example 5 with the patch, ties as in the paper",
        (&set, &repaired),
        0..24,
    );
    Ok(chapter)
}

fn as_linux_breaks_ties() -> Result<Chapter, String> {
    let set = example("example-5")?;
    let mut reset = set.clone();
    reset.scheduler.lagging = Lagging::Reset;
    let linux = run(&set, "dl-linux", 4_100)?;
    let lagging = run(&reset, "dl-linux", 4_100)?;
    let late = lateness_by_occurrence(&linux);
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "**With the ties of Linux**: of equal deadlines the job queued first runs first, and a job that is replenished is \
         queued anew. The releases are others, the lateness is the same. Policies that shift running jobs are \
         never late.",
    );
    let of_both = |task: usize| list(late.iter().take(10).map(|pair| pair[task]));
    let mut rows = vec![
        Claim::new(
            "tardiness of t2 after each occurrence (ms) †",
            "0, 2, 2, 4, 4, 6, 6, 8, 8, 10",
            of_both(0),
        ),
        Claim::new(
            "tardiness of t4 after each occurrence (ms) †",
            "2, 2, 4, 4, 6, 6, 8, 8, 10, 10",
            of_both(1),
        ),
        Claim::new("after 60 occurrences (ms) †", "60, 60", list(late[59])),
    ];
    let others = ["dl-sp", "strong-edf", "hpa-edf"];
    for policy in others {
        let what = format!("largest tardiness under `{policy}` (ms)");
        rows.push(Claim::new(&what, 0, ms(run(&set, policy, 4_100)?.worst())));
    }
    chapter.say(&claims(&rows));
    for policy in ["dl-linux", "dl-sp", "strong-edf", "hpa-edf"] {
        let title = format!("Example 5 under {policy}");
        let name = format!("example-5-{policy}");
        chapter.draw(&name, &title, (&set, &run(&set, policy, 4_100)?), 0..24);
    }
    let mut plotted = Vec::new();
    for (run, text) in [(&linux, "dl-linux"), (&lagging, "dl-linux with reset")] {
        for (index, task) in ["t2", "t4"].into_iter().enumerate() {
            let late = lateness_by_occurrence(run)
                .into_iter()
                .map(|pair| pair[index]);
            plotted.push(curve(format!("{task}, {text}"), late, index == 1));
        }
    }
    let mut worst = vec![Span::ZERO; late.len()];
    for policy in others {
        let pairs = lateness_by_occurrence(&run(&set, policy, 4_100)?);
        for (worst, [t2, t4]) in worst.iter_mut().zip(pairs) {
            *worst = t2.max(t4).max(*worst);
        }
    }
    plotted.push(curve(others.join(", "), worst.into_iter(), false));
    let axes = Axes {
        x: "occurrence",
        y: "tardiness so far (ms)",
    };
    let title = "Example 5: tardiness against the occurrence";
    chapter.show("example-5-tardiness", title, curves(title, axes, &plotted));
    chapter.say(
        "`lagging = \"reset\"` is what Linux really does with a server whose new deadline is over, too: it starts \
         from now (\"DL replenish lagged too much\"). With these releases, which are made for the other rule, \
         tardiness then stays at a few milliseconds; that does not show that it is bounded. Tardiness is that of jobs, whose \
         deadline is their release plus the period, whatever their server forgets.",
    );
    Ok(chapter)
}

fn curve(name: String, late: impl Iterator<Item = Span>, is_dashed: bool) -> Curve {
    let points = late
        .enumerate()
        .map(|(at, late)| (at as u64 + 1, late.as_ns() / 1_000_000));
    Curve {
        name,
        points: points.collect(),
        is_dashed,
    }
}

/// Fig. 6.
fn traces() -> Result<Chapter, String> {
    let set = example("example-5")?;
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "**Fig. 6** has the traces of such a workload: with the patch a migrating task tries to migrate whenever a job \
         of it ends, without it the task stays where it is unless it is preempted.",
    );
    let mut rows = Vec::new();
    for policy in ["dl-linux", "dl-sp"] {
        let run = run(&set, policy, 4_100)?;
        let measure = run.measure(&set);
        for (task, counts) in [T2, T4].map(|id| (id, measure.of_tasks().nth(id.index()))) {
            let Some(counts) = counts else { continue };
            let tries = if policy == "dl-sp" {
                counts.late_replenishments
            } else {
                0
            };
            rows.push(vec![
                format!("`{policy}`"),
                set.tasks[task.index()].name.clone(),
                counts.completed.to_string(),
                tries.to_string(),
                counts.moves_between_jobs.to_string(),
                counts.moves_within_jobs.to_string(),
            ]);
        }
        let name = format!("figure-6-{policy}");
        chapter.draw(&name, &format!("Fig. 6: {policy}"), (&set, &run), 60..92);
    }
    let head = [
        "",
        "task",
        "jobs",
        "tries to migrate as a job ends",
        "moves between jobs",
        "moves within a job",
    ];
    chapter.say(&table(&head, &rows));
    chapter.say(
        "Under `dl-linux` each move is a preemption: t1, t3 or t5 takes the CPU just as a job ends. With the patch \
         most tries leave the task where it is: one that is alone in its run queue is not pushed.",
    );
    Ok(chapter)
}

/// Example 6.
pub(super) fn pushing() -> Result<Chapter, String> {
    let set = example("example-6")?;
    let [linux, repaired] = [run(&set, "dl-linux", 70)?, run(&set, "dl-sp", 70)?];
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 6 (Fig. 7): pushing to the CPU with the latest deadline\n\n\
         At 10 ms t3 wakes on CPU 0. Linux counts it already when it compares the deadlines of the CPUs, so that its own \
         CPU never seems to be the latest: t3 goes to CPU 1 and preempts t2, though t1 is due later.",
    );
    let inverted = |run: &Schedule| {
        let found = run
            .summary(&set)
            .inversions
            .map_or(0, |found| found.all.total_ns);
        ms(Span::from_ns(found))
    };
    chapter.say(&claims(&[
        Claim::new(
            "t3 runs on",
            "CPU 0 [0, 5), CPU 1 [10, 15)",
            where_it_ran(&linux, T3, 20),
        ),
        Claim::new(
            "with the patch on",
            "CPU 0 [0, 5), CPU 0 [10, 15)",
            where_it_ran(&repaired, T3, 20),
        ),
        Claim::new("t1 and t2 finish at (ms) †", "17, 22", finishes(&linux)),
        Claim::new("with the patch at (ms) †", "22, 17", finishes(&repaired)),
        Claim::new("priority inversions, in all (ms) †", 5, inverted(&linux)),
        Claim::new("with the patch (ms) †", 0, inverted(&repaired)),
    ]));
    chapter.draw(
        "example-6-dl-linux",
        "Example 6 under dl-linux",
        (&set, &linux),
        0..30,
    );
    chapter.draw(
        "example-6-dl-sp",
        "Example 6 under dl-sp",
        (&set, &repaired),
        0..30,
    );
    Ok(chapter)
}

fn finishes(run: &Schedule) -> String {
    [T1, T2].map(|task| run_finish(run, task, 0)).join(", ")
}

/// Example 7.
pub(super) fn dynamic_affinities() -> Result<Chapter, String> {
    let set = example("example-7")?;
    let linux = simulate(&set, Repairs::NONE, Ties::Running, at(40))?;
    let fifo = run(&set, "dl-linux", 40)?;
    let repaired = simulate(&set, Repairs::ALL, Ties::Running, at(40))?;
    let unchanged = Repairs {
        no_changes: true,
        ..Repairs::NONE
    };
    let refused = simulate(&set, unchanged, Ties::Running, at(40))?;
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 7 (Fig. 8): a task that follows another from CPU to CPU\n\n\
         Whenever t1 could preempt t2 and t2 gives way to the other CPU, t1 asks for that one. It is late, and so the change \
         gives it a new period with a later deadline than that of t2: it never runs.",
    );
    chapter.say(&claims(&[
        Claim::new(
            "t1 has run after 40 ms for (ms)",
            0,
            ms(linux.executed(T1, at(40))),
        ),
        Claim::new(
            "changes of affinity that are refused",
            0,
            linux.refusals().len(),
        ),
        Claim::new(
            "changes that are refused with the patch",
            set.actions
                .iter()
                .filter(|action| action.at < at(40))
                .count(),
            repaired.refusals().len(),
        ),
        Claim::new(
            "where they are refused, t1 runs first on †",
            "CPU 0 [2, 3)",
            where_it_ran(&refused, T1, 3),
        ),
    ]));
    chapter.draw(
        "example-7-dl-linux",
        "Example 7 under Linux's rules, ties as in the paper",
        (&set, &linux),
        0..12,
    );
    chapter.draw(
        "example-7-dl-sp",
        "Example 7 with the patch, ties as in the paper",
        (&set, &repaired),
        0..12,
    );
    chapter.say(&format!(
        "Both have the ties of the paper. With the whole patch t1 begins at 1 ms already: there the job of t2 ends late, and \
         the next one is queued anew behind the equal deadline of t1. With the ties of Linux that is so without a patch, too: under `dl-linux` t1 has run for {} ms after 40 ms.",
        ms(fifo.executed(T1, at(40)))
    ));
    Ok(chapter)
}

/// Example 8.
pub(super) fn transient_inversion() -> Result<Chapter, String> {
    let set = example("example-8")?;
    let [repaired, strong] = [run(&set, "dl-sp", 40)?, run(&set, "strong-edf", 40)?];
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 8: inversions that pass\n\n\
         t1 waits for t2, which may move, while t3 runs, which is due later than t1: an affinity-related priority \
         inversion (ARPI). With the patch it ends with the job of t2 at the latest, since the next one is pushed to where t3 \
         runs. Policies that shift running jobs have none. The paper has no numbers here; these are ours, chosen to \
         show it.",
    );
    let longest = |run: &Schedule| {
        let found = run.summary(&set).inversions;
        let found = found.and_then(|found| found.affinity_related.longest_ns);
        ms(Span::from_ns(found.unwrap_or(0)))
    };
    chapter.say(&claims(&[
        Claim::new(
            "t2 runs on †",
            "CPU 0 [0, 6), CPU 1 [8, 14)",
            where_it_ran(&repaired, T2, 14),
        ),
        Claim::new(
            "t1 runs on †",
            "CPU 0 [6, 9)",
            where_it_ran(&repaired, T1, 9),
        ),
        Claim::new(
            "the longest ARPI; the cost of t2 is 6 (ms) †",
            5,
            longest(&repaired),
        ),
        Claim::new("the same under `strong-edf` (ms)", 0, longest(&strong)),
    ]));
    chapter.draw(
        "example-8-dl-sp",
        "Example 8 under dl-sp",
        (&set, &repaired),
        0..24,
    );
    chapter.draw(
        "example-8-strong-edf",
        "Example 8 under strong-edf",
        (&set, &strong),
        0..24,
    );
    Ok(chapter)
}
