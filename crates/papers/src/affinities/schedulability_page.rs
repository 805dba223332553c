//! The page about affinities under overheads.

use super::paid::paid;
use super::{FILE, FOLDER, SETS};
use crate::chapter::Chapter;
use crate::outcome::{Outcome, Series, Share, plan};
use crate::page::{Page, table};
use crate::picture;

/// The schedulers.
const SCHEDULERS: [&str; 6] = [
    "partitioned",
    "clustered",
    "global",
    "weak",
    "strong",
    "hierarchical",
];

/// How many of them, from the first, choose where tasks run.
const CHOOSING: usize = 3;

/// What scheduling costs: in the study, and in words.
const PRICES: [(&str, &str); 3] = [
    ("free", "nothing"),
    ("alike", "the same for all"),
    ("own", "to each its own"),
];

/// The page with its pictures and all answers.
///
/// # Errors
/// In words, if the study cannot be read, or a set cannot be drawn or run.
pub fn pages() -> Result<Vec<Page>, String> {
    let outcome = Outcome::of(plan(FILE)?, SETS)?;
    let mut page = Chapter::new(FOLDER);
    page.say(HEAD);
    page.say("## What comes out");
    page.say(&conclusions(&outcome)?);
    page.say("## In simulations");
    page.say(SIMULATED);
    page.say(&simulated(&outcome)?);
    for (price, words) in PRICES {
        for family in outcome.families() {
            let title = format!("no deadline missed, {family}, overheads: {words}");
            let name = format!("schedulability-simulated-{price}-{family}");
            let curves = series(&outcome, family, price, "simulated", &SCHEDULERS)?;
            page.show(&name, &title, picture::shares(&title, &curves));
        }
    }
    page.say("## By tests");
    page.say(SHOWN);
    page.say(&shown(&outcome)?);
    page.say("## What runs pay for");
    page.say(PAID);
    page.say(&counts(&outcome)?);
    let mut pages = page.into_pages("schedulability");
    pages.push(Page {
        path: format!("{FOLDER}/schedulability.csv"),
        text: outcome.csv(),
    });
    Ok(pages)
}

const HEAD: &str = "\
<!-- Written by `make papers`; changes here are lost. -->
# Affinities under overheads

What are processor affinities worth once scheduling is not free? Papers compare global, clustered and partitioned scheduling with
overheads, and weak, strong and hierarchical affinities without. Here are all six, on the same task sets and under the same overheads.

The study is [`affinities.toml`](../../../studies/affinities.toml), here with 30 sets for each of 24 cells instead of 1000; all answers
are in [`schedulability.csv`](schedulability.csv).

- 32 CPUs in clusters of four, three distributions of utilizations, periods uniform from 10 to 100 ms in whole ms, caps of 4 to 32.
- Each task is, as likely, allowed everywhere, in one cluster or on one CPU, and which one is drawn, *whether or not the
  rest fits then*. `weak-edf`, `strong-edf` and `hpa-edf` are bound by that. Partitioned, clustered and global EDF (`p-edf`, `c-edf`, `g-edf`)
  ignore it and choose for themselves: they say what the same tasks could have had.
- Overheads are those of the [Niagara of 2008](../../../examples/brandenburg-2008/niagara-2008.toml). *Nothing*: none. *The same for
  all*: the table of C-EDF for every scheduler, so that the schedulers alone differ. *To each its own*: the table measured for each
  scheduler, and that of G-EDF for the three by affinity, which share one queue as G-EDF does.
- Shares are of all task sets in percent, each cap counting as much as any other, with 95% confidence intervals.
";

const SIMULATED: &str = "\
Half a second of each set in which all tasks begin together, with the worst overheads: no deadline is missed. That is an upper bound. A
set that misses is not schedulable; one that does not may still not be. A release interrupts the CPU on which its task last ran, and
before that the lowest that it may use: where hundreds of tasks may run everywhere and begin together, all interrupts come to one CPU at first, and
the job that runs there is delayed. Bindings spread them. That is why global EDF has so little of the light tasks.
";

const SHOWN: &str = "\
*Hard*: a test shows that all deadlines are met; *soft*: that tardiness is bounded. Soft and without overheads, the share of the strong
invariant, hierarchical or not, is that of all sets that are feasible. Hard counts the worst overheads and soft the average ones.

Empty: under affinities that differ there is no accounting, so nothing is claimed. Why not? Elsewhere each job pays for the preemptions that *it*
causes. A shift delays the job that is moved, which may be more urgent than the one that made it move; so each job would have to pay
for every job that may push it aside while it is pending, which is each that arrives with a smaller affinity. At a cap of 8, a job of a
global task with a period of 55 ms sees about 60 such arrivals of other `uniform-medium` tasks; at 167 µs for the caches and 21 µs for decision and switch
that is some 11 ms, as much as the job itself takes. In runs, a job is shifted far less often than once (last table). An accounting that is sound
and not in vain remains to be found.
";

const PAID: &str = "\
For each 100 jobs, at two caps, with overheads that are the same for all: five sets of each cell. Shifts are migrations, too.
";

/// What is concluded, in words, each with the numbers that decide.
fn conclusions(outcome: &Outcome) -> Result<String, String> {
    let of = |family: &str, scheduler: &str, price: &str, kind: &str| {
        share(outcome, family, scheduler, price, kind)
    };
    let mut rows = Vec::new();
    let mut conclude = |question: &str, answer: &str, figures: Vec<String>| {
        rows.push(vec![
            question.to_owned(),
            answer.to_owned(),
            figures.join("; "),
        ]);
    };
    let families: Vec<&str> = outcome.families().collect();
    let mut figures = Vec::new();
    let (mut pays, mut eaten) = (Vec::new(), Vec::new());
    for &family in &families {
        let gain = |price| -> Result<(f64, f64), String> {
            let strong = of(family, "strong", price, "simulated")?;
            let weak = of(family, "weak", price, "simulated")?;
            Ok((strong.mean - weak.mean, strong.within + weak.within))
        };
        let (free, (alike, within)) = (gain("free")?, gain("alike")?);
        if alike > within {
            pays.push(family);
        }
        if alike < free.0 - free.1 {
            eaten.push(family);
        }
        figures.push(format!(
            "{family}: {:.1} more with overheads, {:.1} without",
            alike * 100.0,
            free.0 * 100.0
        ));
    }
    conclude(
        "Do shifts pay, although each costs something?",
        &named("yes", &pays, "no"),
        figures.clone(),
    );
    conclude(
        "Do overheads take away what shifts gain?",
        &named("yes", &eaten, "no"),
        figures,
    );
    let (mut apart, mut figures) = (Vec::new(), Vec::new());
    for &family in &families {
        let strong = of(family, "strong", "own", "simulated")?;
        let hierarchical = of(family, "hierarchical", "own", "simulated")?;
        if (strong.mean - hierarchical.mean).abs() > strong.within {
            apart.push(family);
        }
        figures.push(format!(
            "{family}: {} and {}",
            strong.percent(),
            hierarchical.percent()
        ));
    }
    conclude(
        "Does it matter to deadlines which of the two strong schedulers runs, the one for any affinities or the one for nested ones?",
        &named(
            "yes",
            &apart,
            "no: both run the same jobs, and differ in the jobs that they shift",
        ),
        figures,
    );
    let (mut bound, mut figures) = (Vec::new(), Vec::new());
    for &family in &families {
        let feasible = of(family, "strong", "free", "soft")?;
        let strong = of(family, "strong", "alike", "simulated")?;
        let global = of(family, "global", "free", "soft")?;
        if global.mean - feasible.mean > feasible.mean - strong.mean {
            bound.push(family);
        }
        figures.push(format!(
            "{family}: {} are feasible, {} meet deadlines under the strong invariant with overheads",
            feasible.percent(),
            strong.percent()
        ));
    }
    conclude(
        "Do bindings that are drawn at random lose more sets than schedulers and overheads do?",
        &named("yes", &bound, "no"),
        figures,
    );
    let (mut helped, mut figures) = (Vec::new(), Vec::new());
    for &family in &families {
        let strong = of(family, "strong", "own", "simulated")?;
        let global = of(family, "global", "own", "simulated")?;
        if strong.mean - strong.within > global.mean + global.within {
            helped.push(family);
        }
        figures.push(format!(
            "{family}: strong {}, global {}",
            strong.percent(),
            global.percent()
        ));
    }
    conclude(
        "Do bindings ever gain sets over global scheduling at the same costs (G-EDF's)?",
        &named("yes", &helped, "no"),
        figures,
    );
    let mut figures = Vec::new();
    let mut winners = Vec::new();
    for &family in &families {
        let mut best = (0.0, "none");
        for scheduler in SCHEDULERS {
            let share = of(family, scheduler, "own", "simulated")?;
            if share.mean > best.0 {
                best = (share.mean, scheduler);
            }
        }
        winners.push(best.1);
        figures.push(format!("{family}: {} with {:.1}", best.1, best.0 * 100.0));
    }
    winners.dedup();
    conclude(
        "Which scheduler meets the deadlines of most sets, each at its own costs (the first of equals)?",
        &winners.join(", "),
        figures,
    );
    let (mut far, mut figures) = (Vec::new(), Vec::new());
    for &family in &families {
        let tested = of(family, "strong", "free", "hard")?;
        let run = of(family, "strong", "free", "simulated")?;
        if tested.mean < run.mean / 2.0 {
            far.push(family);
        }
        figures.push(format!(
            "{family}: {} are shown, {} may be schedulable",
            tested.percent(),
            run.percent()
        ));
    }
    conclude(
        "Do tests of strong affinities leave open more than half of what may be schedulable, even without overheads?",
        &named("yes", &far, "no"),
        figures,
    );
    Ok(table(&["question", "answer", "numbers"], &rows))
}

/// `yes` with the families of which it is so, unless there are none.
fn named(yes: &str, families: &[&str], no: &str) -> String {
    match families.is_empty() {
        true => no.to_owned(),
        false => format!("{yes}: {}", families.join(", ")),
    }
}

fn label(scheduler: &str, price: &str) -> String {
    format!("{scheduler}, {price}")
}

fn series(
    outcome: &Outcome,
    family: &str,
    price: &str,
    kind: &str,
    schedulers: &[&str],
) -> Result<Vec<(String, Series)>, String> {
    let of = |&scheduler: &&str| {
        let series = outcome.series(family, &label(scheduler, price), kind)?;
        Ok((scheduler.to_owned(), series))
    };
    schedulers.iter().map(of).collect()
}

fn share(
    outcome: &Outcome,
    family: &str,
    scheduler: &str,
    price: &str,
    kind: &str,
) -> Result<Share, String> {
    let series = outcome.series(family, &label(scheduler, price), kind)?;
    Ok(series.met())
}

fn simulated(outcome: &Outcome) -> Result<String, String> {
    let mut rows = Vec::new();
    for family in outcome.families() {
        for (price, words) in PRICES {
            let mut row = vec![family.to_owned(), words.to_owned()];
            for scheduler in SCHEDULERS {
                let share = share(outcome, family, scheduler, price, "simulated")?;
                row.push(share.with_interval());
            }
            rows.push(row);
        }
    }
    let mut head = vec!["", "overheads"];
    head.extend(SCHEDULERS);
    Ok(table(&head, &rows))
}

fn shown(outcome: &Outcome) -> Result<String, String> {
    let mut rows = Vec::new();
    for family in outcome.families() {
        for (price, words) in PRICES {
            for kind in ["hard", "soft"] {
                let mut row = vec![family.to_owned(), words.to_owned(), kind.to_owned()];
                for (place, scheduler) in SCHEDULERS.into_iter().enumerate() {
                    row.push(match price == "free" || place < CHOOSING {
                        true => share(outcome, family, scheduler, price, kind)?.with_interval(),
                        false => String::new(),
                    });
                }
                rows.push(row);
            }
        }
    }
    let mut head = vec!["", "overheads", ""];
    head.extend(SCHEDULERS);
    Ok(table(&head, &rows))
}

/// How many sets of a cell are counted.
const COUNTED: u64 = 5;

fn counts(outcome: &Outcome) -> Result<String, String> {
    let mut rows = Vec::new();
    for cap in [16_000, 24_000] {
        for family in outcome.families() {
            let cells = outcome.plan.cells.iter();
            let cell = cells
                .filter(|cell| outcome.plan.family(cell).name == family)
                .find(|cell| cell.load.cap(cell.cpus) == cap)
                .ok_or_else(|| format!("{family} has no cap {cap}"))?;
            for scheduler in &SCHEDULERS[CHOOSING - 1..] {
                let paid = paid(
                    &outcome.plan,
                    cell.number,
                    &label(scheduler, "alike"),
                    COUNTED,
                )?;
                let mut row = vec![
                    family.to_owned(),
                    (cap / 1_000).to_string(),
                    (*scheduler).to_owned(),
                ];
                row.extend(paid.per_100_jobs());
                rows.push(row);
            }
        }
    }
    Ok(table(
        &["", "cap", "", "preemptions", "migrations", "shifts"],
        &rows,
    ))
}

const _: () = assert!(SETS == 30, "the page says so");
