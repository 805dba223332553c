//! What each repair is for, the defects, and the policies side by side.

use shiftwork_model::{Repairs, Span, TaskId, TaskSet};
use shiftwork_policy::Ties;

use super::FOLDER;
use super::{POLICIES, all_but, example, simulate};
use crate::chapter::{Chapter, at, ms};
use crate::page::table;
use crate::schedule::Schedule;

/// A repair, and the run that needs it.
struct Need {
    repair: &'static str,
    example: &'static str,
    length_ms: u64,
    /// What to look at, and how.
    what: &'static str,
    look: fn(&TaskSet, &Schedule) -> Span,
}

const NEEDS: [Need; 5] = [
    Need {
        repair: "no-bypass",
        example: "example-5",
        length_ms: 4_100,
        what: "largest tardiness after 60 occurrences",
        look: |_, run| run.worst(),
    },
    Need {
        repair: "push-without-itself",
        example: "example-6",
        length_ms: 30,
        what: "total duration of deadline inversions",
        look: |set, run| {
            let found = run.summary(set).inversions;
            Span::from_ns(found.map_or(0, |found| found.all.total_ns))
        },
    },
    Need {
        repair: "admission",
        example: "section-4-3",
        length_ms: 2_000,
        what: "largest tardiness in 2 s",
        look: |_, run| run.worst(),
    },
    Need {
        repair: "no-changes",
        example: "example-1",
        length_ms: 1_900,
        what: "largest tardiness in 1.9 s",
        look: |_, run| run.worst(),
    },
    Need {
        repair: "no-changes",
        example: "example-7",
        length_ms: 40,
        what: "how long t1 has run in 40 ms",
        look: |_, run| run.executed(TaskId::from_index(0), at(40)),
    },
];

/// The four repairs, each left out alone.
pub(super) fn left_out() -> Result<Chapter, String> {
    let mut rows = Vec::new();
    for need in NEEDS {
        let set = example(need.example)?;
        let without = all_but(need.repair).ok_or("no such repair")?;
        let mut row = vec![
            format!("`{}`", need.repair),
            format!("[{0}](../../../examples/tang-2021/{0}.toml)", need.example),
            need.what.to_owned(),
        ];
        for repairs in [Repairs::ALL, without, Repairs::NONE] {
            let ties = if need.example == "example-7" {
                Ties::Running
            } else {
                Ties::Fifo
            };
            let run = simulate(&set, repairs, ties, at(need.length_ms))?;
            row.push(ms((need.look)(&set, &run)));
        }
        rows.push(row);
    }
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "## Each repair left out alone\n\n\
         `repairs = [...]` under `[scheduler]` of a task-set file chooses those that `dl-sp` has. In milliseconds:",
    );
    let head = [
        "repair",
        "where it matters",
        "what",
        "with all four",
        "without it",
        "without any",
    ];
    chapter.say(&table(&head, &rows));
    chapter.say(
        "In Example 7 the other repairs let t1 run already: with `no-bypass` a job of t2 that follows a late one is queued \
         anew, and loses the tie.",
    );
    Ok(chapter)
}

/// Defects 1 to 3 and observations 1 and 2.
pub(super) fn defects() -> Result<Chapter, String> {
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "## Defects and observations\n\n\
         | | what breaks | shown by | what mitigates it | shiftwork |\n\
         |---|---|---|---|---|\n\
         | Defect 1 | parameters change at once, budgets and deadlines only at the next replenishment: \
         admission looks at the wrong moment | [Example 1](example-1.svg) | parameters stay; to change them, leave \
         and enter again | `dl-linux` grants the requests, `dl-sp` refuses them (repair `no-changes`) |\n\
         | Defect 2 | a CPU is slowed down to what its own run queue needs, while another one is overloaded | \
         [Example 2](example-2.svg) | full speed | `frequency = \"grub-pa\"` simulates it under `dl-*`; by default CPUs \
         run at full speed |\n\
         | Defect 3 | admission adds up capacities, but no task runs on two CPUs at once | \
         [below](defect-3.svg) | CPUs that are alike | `capacities` simulates it under `dl-*` |\n\
         | Observation 1 | a task takes its old deadline and budget to another cpuset | [Example 3](example-3.svg) | \
         none: tardiness is larger, but stays bounded | `move` in a task-set file does it |\n\
         | Observation 2 | a task that wakes late gets a period that starts then, also in the middle of a job | \
         [Example 4](example-4.svg) | none | `dl-*` do so; the servers of all other policies keep to releases, and \
         tardiness is always that of jobs |",
    );
    let set = example("defect-3")?;
    let run = Schedule::simulate(&set, "dl-linux", at(10_000))?;
    chapter.draw(
        "defect-3",
        "Defect 3: two tasks of 0.7 on CPUs of speed 1, 0.25, 0.25",
        (&set, &run),
        0..1_000,
    );
    let worst = |until: u64| {
        let of = |(id, _)| run.worst_of_releases_before(id, at(until));
        ms(set.iter().map(of).max().unwrap_or(Span::ZERO))
    };
    chapter.say(&format!(
        "The tasks ask for 1.4 of 1.5, which leaves more than 5%. The two fastest CPUs together have 1.25, and Linux leaves t2 on \
         a slow one. The largest \
         tardiness of jobs released in the first second is {} ms, in the first two {} ms, in the first four {} ms.",
        worst(1_000),
        worst(2_000),
        worst(4_000)
    ));
    Ok(chapter)
}

/// Each example under four policies.
pub(super) fn compared() -> Result<Chapter, String> {
    const LENGTHS: [(&str, u64); 9] = [
        ("example-1", 1_900),
        ("example-2", 2_000),
        ("example-3", 1_000),
        ("example-4", 1_200),
        ("example-4-periodic", 1_200),
        ("example-5", 4_100),
        ("example-6", 70),
        ("example-7", 40),
        ("example-8", 40),
    ];
    let mut rows = Vec::new();
    for (name, length) in LENGTHS {
        let set = example(name)?;
        for policy in POLICIES {
            rows.push(compare(&set, name, policy, length)?);
        }
    }
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "## The examples under four policies\n\n\
         With the ties of Linux for `dl-*`, and those of shiftwork for the others: the earlier release, then the lower \
         task. *Direct* inversions: a job waits while a CPU that it may use is free or runs a later deadline. \
         *ARPI*: the same, but running jobs would have to shift. Refused: requests of the file; only `dl-*` have \
         cpusets, so that the others refuse the `move` of Example 3, and only they run at other speeds than full (Example 2). Under the others the cost of a job is \
         that at its release, so that in Example 1 most jobs get 1 ms of the 94 ms that they ask for. Tardiness is that \
         of finished jobs.",
    );
    let head = [
        "",
        "",
        "misses",
        "largest tardiness (ms)",
        "migrations",
        "shifts",
        "direct (ms)",
        "ARPI (ms)",
        "refused",
    ];
    chapter.say(&table(&head, &rows));
    Ok(chapter)
}

fn compare(set: &TaskSet, name: &str, policy: &str, length: u64) -> Result<Vec<String>, String> {
    let run = Schedule::simulate(set, policy, at(length))?;
    let summary = run.summary(set);
    let found = summary
        .inversions
        .ok_or("the summary of a schedule has inversions")?;
    let length_of = |total_ns| ms(Span::from_ns(total_ns));
    Ok(vec![
        name.to_owned(),
        format!("`{policy}`"),
        summary.deadline_misses.to_string(),
        ms(run.worst()),
        summary.migrations.to_string(),
        summary.shifts.to_string(),
        length_of(found.direct.total_ns),
        length_of(found.affinity_related.total_ns),
        run.refusals().len().to_string(),
    ])
}
