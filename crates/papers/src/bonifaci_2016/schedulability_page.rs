//! The page about which of the evaluation's task sets are schedulable under weak, strong and hierarchical affinities.

use super::FOLDER;
use crate::chapter::Chapter;
use crate::outcome::{Outcome, Series, plan};
use crate::page::{Page, table};
use crate::picture;

/// The file of the study.
const FILE: &str = "hpa-2016.toml";
/// Its only family.
const FAMILY: &str = "n-is-10m";
/// How many task sets of each load the page has.
const SETS: u64 = 40;

/// All contenders.
const ALL: [&str; 6] = [
    "EDF, affinities ignored",
    "hierarchical EDF",
    "strong EDF",
    "weak EDF",
    "hierarchical FP",
    "weak FP",
];

/// By what a set counts: the word in results, the heading, what it means.
const KINDS: [(&str, &str, &str); 3] = [
    (
        "simulated",
        "Deadlines in a simulation",
        "No job misses its deadline in two seconds in which all tasks begin together: an upper bound, since what is not late \
         then may be late some other time. A set that misses is not schedulable.",
    ),
    (
        "soft",
        "Bounded tardiness",
        "A test shows that tardiness is bounded. Under the strong invariant, hierarchical or not, that is so exactly if the set is \
         feasible, so that these two curves are the share of feasible sets.",
    ),
    (
        "hard",
        "Deadlines, by tests",
        "A test shows that all deadlines are met.",
    ),
];

const HEAD: &str = "\
<!-- Written by `make papers`; changes here are lost. -->
# Bonifaci et al. 2016: what affinities allow

V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, \"Multiprocessor Real-Time Scheduling with Hierarchical
Processor Affinities\", ECRTS 2016, proposes the strong invariant for hierarchical affinities, and measures what it costs; how many
task sets it schedules that the weak one does not is not in the paper. Here it is, for the largest sets of its evaluation.

The study is [`hpa-2016.toml`](../../../studies/hpa-2016.toml), here with 40 sets for each load instead of 10000: 24 CPUs in two sockets,
240 tasks, periods log-uniform from 1 ms to 1 s, each task global, bound to a socket or bound to a CPU. Sets are taken as they
come, feasible or not. Nothing but jobs takes time. All answers are in [`schedulability.csv`](schedulability.csv).
";

/// The page with its pictures and all answers.
///
/// # Errors
/// In words, if the study cannot be read, or a set cannot be drawn.
pub fn pages() -> Result<Vec<Page>, String> {
    let outcome = Outcome::of(plan(FILE)?, SETS)?;
    let mut page = Chapter::new(FOLDER);
    page.say(HEAD);
    page.say(
        "The share of all sets in percent, each load counting as much as any other, with 95% confidence intervals:",
    );
    page.say(&means(&outcome)?);
    for (kind, title, meaning) in KINDS {
        page.say(&format!("## {title}"));
        page.say(meaning);
        let name = format!("schedulability-{kind}");
        page.show(
            &name,
            title,
            picture::shares(title, &series(&outcome, kind)?),
        );
    }
    let mut pages = page.into_pages("schedulability");
    pages.push(Page {
        path: format!("{FOLDER}/schedulability.csv"),
        text: outcome.csv(),
    });
    Ok(pages)
}

fn series(outcome: &Outcome, kind: &str) -> Result<Vec<(String, Series)>, String> {
    let of = |label: &&str| Ok(((*label).to_owned(), outcome.series(FAMILY, label, kind)?));
    ALL.iter().map(of).collect()
}

fn means(outcome: &Outcome) -> Result<String, String> {
    let mut rows = Vec::new();
    for label in ALL {
        let mut row = vec![label.to_owned()];
        for (kind, _, _) in KINDS {
            let share = outcome.series(FAMILY, label, kind)?.met();
            row.push(share.with_interval());
        }
        rows.push(row);
    }
    let mut head = vec![""];
    head.extend(KINDS.map(|(kind, _, _)| kind));
    Ok(table(&head, &rows))
}

const _: () = assert!(SETS == 40, "the page says so");
