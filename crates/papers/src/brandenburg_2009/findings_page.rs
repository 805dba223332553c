//! The page about the findings of 2009, with the overhead tables of 2008.

use shiftwork_analysis::verdicts::Criterion;
use shiftwork_model::{LinearCost, Overheads, Span};
use shiftwork_taskset::overheads::{self, OverheadFile, Use};

use super::derived::{Assumption, Contention, Delays, Derived};
use super::findings::{CRITERIA, FINDINGS, Question, Results, verdict};
use super::locks::{self, Holds, QUEUES, TASKS};
use super::study::{FAMILIES, SETS};
use super::theory;
use super::variants::{NAMES, Variant};
use super::{FOLDER, niagara};
use crate::chapter::Chapter;
use crate::page::{Page, table};
use crate::picture;

const HEAD: &str = "\
<!-- Written by `make papers`; changes here are lost. -->
# Brandenburg et al. 2008, 2009: global schedulers and what they cost

B. Brandenburg, J. Calandrino, J. Anderson, \"On the Scalability of Real-Time Scheduling Algorithms on Multicore Platforms: A Case
Study\", RTSS 2008; B. Brandenburg, J. Anderson, \"On the Implementation of Global Real-Time Schedulers\", RTSS 2009; both as far as
the slides of talks about them say. How overheads are charged to tasks is in [analyse.md](../../analyse.md), how the nine
implementations differ in [overheads.md](../../overheads.md).

Lock-hold times on this page are measured on the machine that writes it, so that figures differ a little from run to run.

## What was measured in 2008

Kernel overheads on a Sun UltraSPARC T1 (32 CPUs) in µs, with N tasks. The file is
[`niagara-2008.toml`](../../../examples/brandenburg-2008/niagara-2008.toml).
";

const DERIVED: &str = "\
## What each of the nine costs

The slides tabulate one of the nine, GEDF, which is CEm. The others' costs are derived from it:

- *Lock-hold times* of each queue are measured here, without contention (below).
- *Contention* comes from a simulated machine of 32 CPUs in which operations hold locks for so long, with simultaneous releases,
  merges, and quanta that begin together or staggered: the mean, and the longest with the highest 1% left out, as in the studies. For
  comparison the worst is also counted: every other CPU does the same once before (m - 1 times the longer of both operations; for
  a heap with a lock for each node the part of it for which the root is held).
- What the locks of an implementation cost is put in the place of what CEm's cost, by the *quotient* of both, so that the speed of neither
  machine matters. For averages it does a little: locks are slowed down until an average decision of CEm with 200 tasks takes what the slides say.
- How much of the slides' figures is locking is unknown. Everything is computed as if it were all of it, and as if it were half.
- Cache-related delays of quanta are unknown, except for those of PD2 (aligned) and S-PD2 (staggered). Everything is computed with
  G-EDF's for all, and with these for implementations in quanta.
- An interprocessor interrupt takes 10 µs, and for comparison nothing and 50 µs: no figure is public.
- What costs grow to with the tasks is a line, as in the slides: that of the least squares through 25, 50, 100, 200 and 400 tasks.

What comes of it, under the first of all assumptions, is the overhead file [`overheads.toml`](overheads.toml), with the hold times of
[`overheads-locks.csv`](overheads-locks.csv).
";

const TOML_HEAD: &str = "\
# What the nine implementations of global EDF cost on the machine of RTSS 2009, derived as overheads.md beside this file says, of the
# lock-hold times in overheads-locks.csv. Written by `make papers`; changes here are lost.
";

const STUDY: &str = "\
## Which task sets are schedulable

Tasks are drawn until the next would exceed the utilization cap; overheads are charged; *hard*: GFB, BCL or BAR shows that all deadlines
are met, with the worst overheads; *soft*: tardiness is bounded, with the average ones. The quantum is 1 ms. All of it is the study
[`rtss-2009.toml`](../../../studies/rtss-2009.toml), in a smaller size: 30 sets for each cap. Periods are short (3 to 33 ms), moderate (10 to
100 ms) or long (50 to 250 ms).
";

/// What is assumed, the first for the pictures.
const ASSUMED: [Assumption; 8] = [
    assume(100, Contention::Simulated, Delays::OfGedf, 10),
    assume(50, Contention::Simulated, Delays::OfGedf, 10),
    assume(100, Contention::Counted, Delays::OfGedf, 10),
    assume(50, Contention::Counted, Delays::OfGedf, 10),
    assume(100, Contention::Simulated, Delays::OfPfair, 10),
    assume(50, Contention::Simulated, Delays::OfPfair, 10),
    assume(100, Contention::Simulated, Delays::OfGedf, 0),
    assume(100, Contention::Simulated, Delays::OfGedf, 50),
];

const fn assume(locking: u64, contention: Contention, delays: Delays, ipi_us: u64) -> Assumption {
    Assumption {
        locking,
        contention,
        delays,
        ipi: Span::from_us(ipi_us),
    }
}

/// The page with its pictures.
///
/// # Errors
/// In words, if the slides' figures are not there, or a set cannot be drawn or run.
pub fn pages() -> Result<Vec<Page>, String> {
    let file = niagara()?;
    let mut page = Chapter::new(FOLDER);
    page.say(HEAD);
    for purpose in [Use::Worst, Use::Average] {
        page.say(match purpose {
            Use::Worst => "Worst case:",
            Use::Average => "Average:",
        });
        page.say(&slides(&file, purpose));
    }
    let variants = Variant::all()?;
    let holds = locks::measure();
    let derived = Derived::new(file.clone(), &variants, &holds, &[100, 50])?;
    page.say(DERIVED);
    page.say(&hold_table(&holds));
    page.say(&cost_table(&variants, &derived)?);
    let results = Results::new(&variants, &derived, &ASSUMED)?;
    page.say("## The findings");
    page.say(&findings(&results)?);
    page.say(SENSITIVE);
    page.say(&sensitivity(&results));
    page.say(STUDY);
    page.say("The share of all sets, in percent, hard and soft:");
    page.say(&means(&results)?);
    for finding in &FINDINGS {
        for criterion in CRITERIA {
            let at = Question {
                family: finding.family,
                criterion,
            };
            let of = FAMILIES[finding.family].name;
            let title = format!("{}, {of}: {}", word(criterion), finding.word);
            let name = format!("overheads-{}-{}", finding.word, word(criterion));
            let curves = plot(&title, &results, at, &finding.compares());
            page.show(&name, &title, curves);
        }
    }
    let mut pages = page.into_pages("overheads");
    pages.push(Page {
        path: format!("{FOLDER}/overheads.toml"),
        text: file_text(&derived.file(&variants, &ASSUMED[0])?),
    });
    pages.push(Page {
        path: format!("{FOLDER}/overheads-locks.csv"),
        text: locks::csv(&holds),
    });
    Ok(pages)
}

/// The overhead file of the nine.
///
/// # Errors
/// In words, if the slides' figures are not there, or a simulation is refused.
pub fn overhead_file(holds: &Holds) -> Result<String, String> {
    let variants = Variant::all()?;
    let derived = Derived::new(niagara()?, &variants, holds, &[ASSUMED[0].locking])?;
    Ok(file_text(&derived.file(&variants, &ASSUMED[0])?))
}

fn file_text(file: &OverheadFile) -> String {
    TOML_HEAD.to_owned() + &overheads::write(file)
}

const fn word(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::Hard => "hard",
        Criterion::Soft => "soft",
    }
}

fn slides(file: &OverheadFile, purpose: Use) -> String {
    let names = [
        ("PD2", "pd2"),
        ("S-PD2", "s-pd2"),
        ("GEDF", "g-edf"),
        ("CEDF", "c-edf"),
        ("PEDF", "p-edf"),
    ];
    let row = |(name, policy): &(&str, &str)| {
        let Overheads {
            tick,
            schedule,
            switch,
            release,
            preemption,
            migration,
            ..
        } = file.find(purpose, policy).cloned().unwrap_or_default();
        let mut row = vec![(*name).to_owned()];
        row.extend([tick, schedule, switch, release].map(linear));
        let refills = [preemption.first(), migration.first(), migration.get(1)];
        row.extend(refills.map(|cost| cost.copied().map_or_else(String::new, linear)));
        row
    };
    let rows: Vec<_> = names.iter().map(row).collect();
    table(
        &[
            "",
            "tick",
            "schedule",
            "context switch",
            "release",
            "preemption",
            "migration within a cluster",
            "between clusters",
        ],
        &rows,
    )
}

/// In us: `55.2 + 0.26 N`; empty for nothing.
fn linear(cost: LinearCost) -> String {
    match (cost.base.as_ns(), cost.per_task.as_ns()) {
        (0, 0) => String::new(),
        (_, 0) => us(cost.base),
        _ => format!("{} + {} N", us(cost.base), us(cost.per_task)),
    }
}

fn us(span: Span) -> String {
    let text = format!("{}.{:03}", span.as_ns() / 1_000, span.as_ns() % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn hold_table(holds: &Holds) -> String {
    let names = ["coarse-grained", "hierarchical", "fine-grained"];
    let tenths = |tenths: u64| format!("{}.{}", tenths / 10, tenths % 10);
    let row = |(place, name): (usize, &str)| {
        let mut row = vec![name.to_owned()];
        for tasks in TASKS {
            let hold = holds.get(&(place, tasks)).copied().unwrap_or_default();
            row.push(format!(
                "{} / {}",
                tenths(hold.enqueue),
                tenths(hold.dequeue)
            ));
        }
        row
    };
    let rows: Vec<_> = names
        .into_iter()
        .take(QUEUES.len())
        .enumerate()
        .map(row)
        .collect();
    let mut head = vec![String::from("hold times here (ns): enqueue / dequeue")];
    head.extend(TASKS.map(|tasks| format!("{tasks} tasks")));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table(&head, &rows)
}

/// What decisions and releases take with 100 tasks, if all of CEm's are locking.
fn cost_table(variants: &[Variant], derived: &Derived) -> Result<String, String> {
    let mut rows = Vec::new();
    for variant in variants {
        let mut row = vec![variant.name.to_owned()];
        row.extend(variant.words().map(str::to_owned));
        for criterion in CRITERIA {
            let overheads = derived.overheads(variant, criterion, &ASSUMED[0])?;
            for cost in [overheads.schedule, overheads.release] {
                // To a tenth of a microsecond.
                let tenths = cost.at(100).as_ns().div_ceil(100);
                row.push(format!("{}.{}", tenths / 10, tenths % 10));
            }
        }
        rows.push(row);
    }
    Ok(table(
        &[
            "",
            "ready queue",
            "scheduling",
            "interrupts",
            "schedule, worst (µs)",
            "release, worst",
            "schedule, average",
            "release, average",
        ],
        &rows,
    ))
}

fn percent(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

const SENSITIVE: &str = "\
The fine-grained queue depends on what its locks cost: to insert a job takes several of them, which with few tasks is more than all that a
coarse-grained insertion takes on the machine that measures it, so that releases cost more. With many light tasks it is the better one (last table).

A finding *agrees* if it follows whatever is assumed, *differs* if it never does, and is not decidable if that depends on what is assumed.
That something is better follows if it is so in more comparisons (each pair, hard and soft) than the opposite; that it is no worse, if it is worse
by more than 1% of all sets in fewer than half of them; a tie is nothing better. In how many comparisons the first of two is better, worse, and neither:
";

fn findings(results: &Results) -> Result<String, String> {
    let mut rows = Vec::new();
    for finding in &FINDINGS {
        let figure = |&(better, worse): &(&'static str, &'static str)| {
            let of = |name, criterion| {
                let at = Question {
                    family: finding.family,
                    criterion,
                };
                percent(results.mean(name, at, 0))
            };
            let [hard, soft] =
                CRITERIA.map(|one| format!("{} to {}", of(better, one), of(worse, one)));
            format!("{better} to {worse}: hard {hard}, soft {soft}")
        };
        let figures: Vec<String> = finding.pairs.iter().map(figure).collect();
        rows.push(vec![
            finding.claim.to_owned(),
            FAMILIES[finding.family].name.to_owned(),
            figures.join("; "),
            finding.verdict(results, ASSUMED.len()).to_owned(),
        ]);
    }
    rows.push(as_much_as_theory(results)?);
    rows.push(scales(results));
    Ok(table(&["the slides", "task sets", "here", ""], &rows))
}

/// How far the nine are apart, beside how far partitioned, clustered and global scheduling are.
fn as_much_as_theory(results: &Results) -> Result<Vec<String>, String> {
    let theory = theory::means("uniform-medium")?;
    let spread = |of: Vec<u64>| of.iter().max().unwrap_or(&0) - of.iter().min().unwrap_or(&0);
    let of_nine = |criterion, assumption| {
        let at = Question {
            family: 0,
            criterion,
        };
        spread(
            NAMES
                .iter()
                .map(|name| results.mean(name, at, assumption))
                .collect(),
        )
    };
    let of_theory = |place: usize| spread(theory.iter().map(|of| of[place]).collect());
    let holds = (0..ASSUMED.len()).map(|assumption| {
        let mut places = CRITERIA.into_iter().enumerate();
        places.any(|(place, criterion)| of_nine(criterion, assumption) >= of_theory(place))
    });
    let figures: Vec<String> = CRITERIA
        .into_iter()
        .enumerate()
        .map(|(place, criterion)| {
            let (nine, theory) = (of_nine(criterion, 0), of_theory(place));
            format!(
                "{}: the nine are {} apart; partitioned, clustered and global EDF {}",
                word(criterion),
                percent(nine),
                percent(theory)
            )
        })
        .collect();
    Ok(vec![
        "implementation choices can impact schedulability as much as scheduling-theoretic tradeoffs".to_owned(),
        FAMILIES[0].name.to_owned(),
        figures.join("; "),
        verdict(holds).to_owned(),
    ])
}

/// With the implementation that the slides recommend (FE1), half of the machine is usable unless there are very many tasks or
/// periods are very short, where less is.
fn scales(results: &Results) -> Vec<String> {
    let of = |family, assumption| {
        let at = Question {
            family,
            criterion: Criterion::Soft,
        };
        results.mean("FE1", at, assumption)
    };
    let holds = (0..ASSUMED.len()).map(|assumption| {
        let ordinary = of(0, assumption);
        ordinary >= 500 && of(1, assumption) < ordinary && of(3, assumption) < ordinary
    });
    let figures = [
        ("10 to 100 ms", 0),
        ("very many tasks", 1),
        ("3 to 33 ms", 3),
        ("both", 4),
    ];
    let figures = figures.map(|(name, family)| format!("{name}: {}", percent(of(family, 0))));
    vec![
        "unless task counts are very high or periods very short, G-EDF can scale to 32 processors"
            .to_owned(),
        "four families, soft, under FE1 (at least half of the first, and of the others fewer)"
            .to_owned(),
        figures.join("; "),
        verdict(holds).to_owned(),
    ]
}

fn sensitivity(results: &Results) -> String {
    let row = |(number, assumed): (usize, &Assumption)| {
        let delays = match assumed.delays {
            Delays::OfGedf => "G-EDF's",
            Delays::OfPfair => "PD2's and S-PD2's",
        };
        let contention = match assumed.contention {
            Contention::Simulated => "simulated",
            Contention::Counted => "counted",
        };
        let mut row = vec![
            format!("{}%", assumed.locking),
            contention.to_owned(),
            delays.to_owned(),
            us(assumed.ipi),
        ];
        row.extend(FINDINGS.iter().map(|finding| {
            let [better, worse] = finding.compared(results, number);
            let all = CRITERIA.len() * finding.pairs.len();
            format!("{better}, {worse}, {}", all - better - worse)
        }));
        row
    };
    let rows: Vec<_> = ASSUMED.iter().enumerate().map(row).collect();
    let mut head = vec!["locking", "at worst", "delays of quanta", "interrupt (µs)"];
    head.extend(FINDINGS.iter().map(|finding| finding.word));
    table(&head, &rows)
}

/// The shares of all families, hard and soft, with the confidence intervals of the least certain.
fn means(results: &Results) -> Result<String, String> {
    let outcome = results.first();
    let mut rows = Vec::new();
    let mut widest: f64 = 0.0;
    for family in outcome.families() {
        let mut row = vec![family.to_owned()];
        for name in NAMES {
            let mut both = Vec::new();
            for kind in CRITERIA.map(Criterion::name) {
                let share = outcome.series(family, name, kind)?.met();
                widest = widest.max(share.within);
                both.push(share.percent());
            }
            row.push(both.join(" / "));
        }
        rows.push(row);
    }
    let mut head = vec![""];
    head.extend(NAMES);
    let within = format!(
        "All are within {:.1} with a confidence of 95%.",
        widest * 100.0
    );
    Ok(table(&head, &rows) + "\n" + &within)
}

fn plot(title: &str, results: &Results, at: Question, names: &[&'static str]) -> String {
    let curve = |name: &&'static str| ((*name).to_owned(), results.series(name, at, 0));
    let all: Vec<_> = names.iter().map(curve).collect();
    picture::shares(title, &all)
}

const _: () = assert!(SETS == 30, "the page says so");
