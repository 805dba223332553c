//! The page with every figure of the talk of 2008, and its findings.

use super::findings::{FAMILIES, FINDINGS, MEASURED, Shares};
use super::{FILE, FOLDER, SETS};
use crate::chapter::Chapter;
use crate::outcome::{Outcome, Series, plan};
use crate::page::{Page, table};
use crate::picture;

/// All contenders of the study, in the order of the slides.
const ALL: [&str; 8] = [
    "PD2", "S-PD2", "C-PD2", "CS-PD2", "G-EDF", "NP-G-EDF", "C-EDF", "P-EDF",
];

/// What else is in the tables: partitions and clusters that are packed otherwise.
const EVEN: [&str; 2] = ["C-EDF, worst fit", "P-EDF, worst fit"];

/// The family of the slides' picture of tardiness.
const TARDY: &str = "uniform-medium";

/// The policies with bounds on tardiness that are not trivially zero.
const LATE: [&str; 4] = ["G-EDF", "NP-G-EDF", "C-EDF", "S-PD2"];

/// Both criteria, as they are called in results and on the slides.
const CRITERIA: [(&str, &str); 2] = [("hard", "HRT"), ("soft", "SRT")];

const HEAD: &str = "\
<!-- Written by `make papers`; changes here are lost. -->
# Brandenburg et al. 2008: which schedulers scale

B. Brandenburg, J. Calandrino, J. Anderson, \"On the Scalability of Real-Time Scheduling Algorithms on Multicore Platforms: A Case
Study\", RTSS 2008, as far as the slides of a talk about it say (S. Gopalakrishnan). Their figures are pictures without numbers;
what can be compared is what they conclude.

The study is [`rtss-2008.toml`](../../../studies/rtss-2008.toml), here in a smaller size: 100 task sets for each of 192 cells
instead of 44271, which makes 8.5 million as in the paper. All answers are in [`schedulability.csv`](schedulability.csv).

- 32 CPUs in clusters of four. Tasks are drawn until the next would exceed the utilization cap (1 to 32); periods are
  uniform, 10 to 100 ms in whole ms, deadlines are periods, the quantum is 1 ms.
- Overheads are those of the slides ([`niagara-2008.toml`](../../../examples/brandenburg-2008/niagara-2008.toml)), charged
  to tasks as [analyse.md](../../analyse.md#where-scheduling-is-not-free) says; N counts the tasks of the CPU under P-EDF, of the cluster
  under C-EDF, C-PD2 and CS-PD2, and all others'.
- *Hard* (HRT): with the worst overheads some test shows that all deadlines are met. *Soft* (SRT): with the average ones tardiness
  is bounded.
- The slides do not say how tasks are packed. Here the largest go first, each onto the first CPU or cluster that has room for it, overheads
  included. That fills some clusters to the brim, where no test of global EDF passes; so C-EDF may also load all alike (worst fit). The
  tables have what both make of worst fit alone, which knows no overheads.
- C-PD2 and CS-PD2, about which the talk speculates, were not measured. Quanta that begin on all 32 CPUs together are what
  makes caches slow to refill under PD2, so C-PD2 takes its table, and CS-PD2, which staggers them, that of S-PD2.
- That NP-G-EDF meets deadlines is shown by tests which are younger than the study.
";

const TARDINESS: &str = "\
## Tardiness

The slides have one such picture, of `uniform-medium`: how late jobs may be at most, by the best bound that is known. Of each task set the
largest bound of its tasks; the mean of all sets that have bounds, where there are any.
";

/// The page with its pictures and all answers.
///
/// # Errors
/// In words, if the study cannot be read, or a set cannot be drawn.
pub fn pages() -> Result<Vec<Page>, String> {
    let outcome = Outcome::of(plan(FILE)?, SETS)?;
    let mut page = Chapter::new(FOLDER);
    page.say(HEAD);
    page.say("## What the slides conclude");
    page.say(
        "The *share* of a family is the part of its task sets that were shown to be schedulable, each cap counting as much \
         as any other: the area under the curve, in percent. *Most* families are four of the six at least.",
    );
    page.say(&findings(&shares(&outcome)?));
    for (kind, name) in CRITERIA {
        page.say(&format!("## {name}"));
        page.say("Shares in percent, with 95% confidence intervals:");
        page.say(&means(&outcome, kind)?);
        for family in FAMILIES {
            let title = format!("{name}, {family}");
            let curves = series(&outcome, family, &ALL, kind)?;
            let name = format!("schedulability-{kind}-{family}");
            page.show(&name, &title, picture::shares(&title, &curves));
        }
    }
    page.say(TARDINESS);
    let title = format!("SRT tardiness, {TARDY}");
    let late = picture::tardiness(&title, &series(&outcome, TARDY, &LATE, "soft")?);
    page.show("schedulability-tardiness", &title, late);
    let mut pages = page.into_pages("schedulability");
    pages.push(Page {
        path: format!("{FOLDER}/schedulability.csv"),
        text: outcome.csv(),
    });
    Ok(pages)
}

fn series(
    outcome: &Outcome,
    family: &str,
    labels: &[&str],
    kind: &str,
) -> Result<Vec<(String, Series)>, String> {
    let of = |label: &&str| Ok(((*label).to_owned(), outcome.series(family, label, kind)?));
    labels.iter().map(of).collect()
}

fn shares(outcome: &Outcome) -> Result<Shares, String> {
    let mut shares = Shares::default();
    for family in FAMILIES {
        for policy in MEASURED {
            for (kind, _) in CRITERIA {
                let share = outcome.series(family, policy, kind)?.met();
                shares.note(family, policy, kind, share.mean);
            }
        }
    }
    Ok(shares)
}

fn means(outcome: &Outcome, kind: &str) -> Result<String, String> {
    let mut rows = Vec::new();
    for family in FAMILIES {
        let mut row = vec![family.to_owned()];
        for label in ALL.into_iter().chain(EVEN) {
            let share = outcome.series(family, label, kind)?.met();
            row.push(share.with_interval());
        }
        rows.push(row);
    }
    let mut head = vec![""];
    head.extend(ALL);
    head.extend(EVEN);
    Ok(table(&head, &rows))
}

fn findings(shares: &Shares) -> String {
    let row = |finding: &super::findings::Finding| {
        let decided = (finding.decide)(shares);
        let verdict = match (decided.holds, finding.why) {
            (true, _) => "agrees".to_owned(),
            (false, "") => "**differs**".to_owned(),
            (false, why) => format!("differs: {why}"),
        };
        let [claim, meaning] = [finding.claim, finding.meaning].map(str::to_owned);
        vec![claim, meaning, decided.figures, verdict]
    };
    let rows: Vec<_> = FINDINGS.iter().map(row).collect();
    table(&["the slides", "taken to mean", "here", ""], &rows)
}

const _: () = assert!(SETS == 100, "the page says so");
