//! Section 3: features that break admission, or make tardiness worse.

use shiftwork_model::{Frequency, Instant, Span};

use super::{T1, T2, T3, T4, T5, after, first, run, run_finish};
use crate::chapter::{Chapter, at, list, ms};
use crate::page::{Claim, claims, table};
use crate::schedule::Schedule;
use crate::tang_2021::FOLDER;
use crate::tang_2021::example;

/// Example 1.
pub(super) fn dynamic_tasks() -> Result<Chapter, String> {
    let set = example("example-1")?;
    let [linux, repaired] = [run(&set, "dl-linux", 1_900)?, run(&set, "dl-sp", 1_900)?];
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 1 (Fig. 2): tasks that take turns with a large budget\n\n\
         Two tasks on one CPU ask for 94 of 100 ms around each of their replenishments, and for 1 ms otherwise. \
         Admission never sees more than 0.95, and both get 94 of 100 ms again and again.",
    );
    let mut turns = linux.stretches.iter().take(20).enumerate();
    let take_turns = turns
        .all(|(index, of)| of.job.task == [T1, T2][index % 2] && of.start == at(94 * index as u64));
    let order = match take_turns {
        true => "t1, t2, t1, t2, ... for 94 ms each",
        false => "others",
    };
    let second = run_finish(&linux, T2, 0);
    chapter.say(&claims(&[
        Claim::new("requests that Linux refuses", 0, linux.refusals().len()),
        Claim::new(
            "order of execution †",
            "t1, t2, t1, t2, ... for 94 ms each",
            order,
        ),
        Claim::new("t2 is replenished late, at (ms)", 188, second),
        Claim::new(
            "tardiness of t1 (ms) †",
            "0, 82, 170, 258, 346",
            first(&linux, T1, 5),
        ),
        Claim::new(
            "tardiness of t2 (ms) †",
            "78, 166, 254, 342, 430",
            first(&linux, T2, 5),
        ),
        Claim::new(
            "largest tardiness under `dl-sp` (ms)",
            0,
            ms(repaired.worst()),
        ),
    ]));
    chapter.draw(
        "example-1",
        "Example 1 under dl-linux",
        (&set, &linux),
        0..600,
    );
    let refused = repaired.refusals();
    if let [.., (_, last)] = refused[..] {
        let enters = refused.iter().find(|(when, _)| *when == at(10));
        let entering = enters.map_or(String::new(), |(_, reason)| {
            format!("At 10 ms: \"{reason}\". ")
        });
        chapter.say(&format!(
            "`dl-sp` refuses {} of the {} requests, among them that t2 enters. {entering}The last one: \"{last}\".",
            refused.len(),
            set.actions.len()
        ));
    }
    Ok(chapter)
}

/// Example 2.
pub(super) fn frequencies() -> Result<Chapter, String> {
    const LENGTH_MS: u64 = 20_000;
    let mut set = example("example-2")?;
    let scaled = run(&set, "dl-linux", LENGTH_MS)?;
    set.platform.frequency = Frequency::Fixed;
    let fixed = run(&set, "dl-linux", LENGTH_MS)?;
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 2: frequencies that follow the load\n\n\
         Under GRUB-PA a CPU is as fast as the tasks in its run queue need together. With three tasks of 63 in \
         100 ms on two CPUs one CPU has one of them and runs at 0.63 of its speed; the other cannot be faster than \
         1 to make up for it.",
    );
    // Of three jobs at the end it is not known how much is done.
    let done = |run: &Schedule| {
        let jobs = run
            .fates
            .values()
            .filter(|fate| fate.finish.is_some())
            .count() as u64;
        let hundredths = (jobs * 63 * 100 + LENGTH_MS / 2) / LENGTH_MS;
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    };
    let worst_of = |run: &Schedule, until: u64| {
        let worst = |task| run.worst_of_releases_before(task, at(until));
        [T1, T2, T3]
            .map(worst)
            .into_iter()
            .max()
            .unwrap_or(Span::ZERO)
    };
    let is_bounded = |run: &Schedule| {
        let grows = worst_of(run, LENGTH_MS / 2) > worst_of(run, LENGTH_MS / 4);
        if grows {
            "grows without bound"
        } else {
            "is bounded"
        }
    };
    chapter.say(&claims(&[
        Claim::new(
            "work done per unit of time, of 1.89 that is asked for",
            "1.63",
            done(&scaled),
        ),
        Claim::new("tardiness", "grows without bound", is_bounded(&scaled)),
        Claim::new(
            "the same at full speed (Mitigation 2)",
            "is bounded",
            is_bounded(&fixed),
        ),
    ]));
    let lateness: Vec<Vec<String>> = [1_000, 5_000, 10_000]
        .iter()
        .map(|&until| {
            let late = [&scaled, &fixed].map(|run| ms(worst_of(run, until)));
            [vec![until.to_string()], late.to_vec()].concat()
        })
        .collect();
    chapter.say("The largest tardiness of jobs released before:");
    chapter.say(&table(
        &["ms", "GRUB-PA (ms)", "full speed (ms)"],
        &lateness,
    ));
    chapter.draw(
        "example-2",
        "Example 2 under dl-linux with GRUB-PA",
        (&set, &scaled),
        0..700,
    );
    Ok(chapter)
}

/// Example 3.
pub(super) fn between_cpusets() -> Result<Chapter, String> {
    let set = example("example-3")?;
    let moved = run(&set, "dl-linux", 1_000)?;
    let mut stays = set.clone();
    stays.actions.clear();
    let stayed = run(&stays, "dl-linux", 1_000)?;
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 3 (Fig. 3): a move to another cpuset\n\n\
         At 92 ms t4 moves to the cpuset of CPU 0 with the deadline and the budget that it has, and makes t5 late, \
         which never was.",
    );
    let of_t5 = |run: &Schedule| list(run.tardiness(T5).into_iter().skip(10).take(5));
    chapter.say(&claims(&[
        Claim::new("requests that are refused", 0, moved.refusals().len()),
        Claim::new(
            "t4 runs after the move on †",
            "CPU 0 [92, 140)",
            after(&moved, T4, 92, 140),
        ),
        Claim::new(
            "tardiness of t5 from its 11th job on (ms) †",
            "32, 24, 16, 8, 0",
            of_t5(&moved),
        ),
        Claim::new(
            "the same without the move (ms)",
            "0, 0, 0, 0, 0",
            of_t5(&stayed),
        ),
        Claim::new(
            "tardiness of the first job of t4 (ms) †",
            40,
            first(&moved, T4, 1),
        ),
    ]));
    chapter.draw(
        "example-3",
        "Example 3 under dl-linux",
        (&set, &moved),
        60..180,
    );
    Ok(chapter)
}

/// Example 4, in two variants.
pub(super) fn suspensions() -> Result<Chapter, String> {
    let [set, periodic] = [example("example-4")?, example("example-4-periodic")?];
    let [linux, strict] = [
        run(&set, "dl-linux", 1_200)?,
        run(&periodic, "dl-linux", 1_200)?,
    ];
    let mut chapter = Chapter::new(FOLDER);
    chapter.say(
        "### Example 4 (Fig. 4): suspensions make periods longer\n\n\
         Each job of t3 ends with a sleep of a microsecond. The first one is late, so that its server's deadline is \
         over when it wakes, and Linux starts a new period *then*. With t1 and t2 released together with each of those \
         (the pattern of Fig. 4a, repeated) that happens to every job of t3.",
    );
    let finished: Vec<Instant> = linux.of_task(T3).filter_map(|fate| fate.finish).collect();
    let gap = finished[1].late_since(finished[0]);
    let finishes = |run: &Schedule| [0, 1, 2].map(|job| run_finish(run, T3, job)).join(", ");
    chapter.say(&claims(&[
        Claim::new("t3 runs for 63 in each (ms)", "around 120", ms(gap))
            .because("63 ms of waiting and 63 ms of running, each time; the paper rounds"),
        Claim::new(
            "t3 finishes at (ms) †",
            "126.001, 252.002, 378.003",
            finishes(&linux),
        ),
        Claim::new(
            "tardiness of t3 (ms) †",
            "26.001, 52.002, 78.003, 104.004",
            first(&linux, T3, 4),
        ),
        Claim::new(
            "t3 finishes at, with t1 and t2 strictly periodic (ms) †",
            "126.001, 226.001, 326.001",
            finishes(&strict),
        ),
        Claim::new(
            "tardiness of t3 then (ms) †",
            "26.001, 26.001, 26.001, 26.001",
            first(&strict, T3, 4),
        ),
    ]));
    chapter.draw(
        "example-4",
        "Example 4 under dl-linux, the pattern repeated",
        (&set, &linux),
        0..400,
    );
    chapter.say(
        "If t1 and t2 are strictly periodic, only the first period is long: the pattern has to be repeated to \
         starve t3.",
    );
    chapter.draw(
        "example-4-periodic",
        "Example 4 under dl-linux, t1 and t2 strictly periodic",
        (&periodic, &strict),
        0..400,
    );
    Ok(chapter)
}
