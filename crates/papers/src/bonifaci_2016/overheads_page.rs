//! The page about Fig. 1: what scheduling takes.

use super::live::{Line, lines};
use super::replay::{Decisions, replay};
use super::workload::{CPUS, LOADS, SETS, TASKS, set, without_affinities};
use super::{FOLDER, POLICIES};
use crate::chapter::Chapter;
use crate::page::{Page, table};
use shiftwork_model::Span;

/// What the paper says in words about the 99.9th percentile of the scheduling processor's overhead, in ns: under the global
/// baseline, and under its own scheduler.
const PAPER_P99_9_NS: [u64; 2] = [5_790, 10_620];

const HEAD: &str = "\
<!-- Written by `make papers`; changes here are lost. -->
# Bonifaci et al. 2016: overheads (Fig. 1)

V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, \"Multiprocessor Real-Time Scheduling with Hierarchical
Processor Affinities\", ECRTS 2016, Section V. In the paper one processor decides for all others, under a global scheduler, and under
the hierarchical one, and Fig. 1 says how long a decision takes there, and how long the dispatchers of the others take to carry it out.

The figures here are measured: every run of `make papers` writes others, and another machine has others altogether. What may be
compared are the ratios of a table's rows. The table of Fig. 1 itself is a picture; its text gives one pair of numbers, used below.

- 100 task sets: 48, 96, 144, 192 and 240 tasks on 24 CPUs in two sockets of 12, using 75% or 85% of them, ten sets each.
- Utilizations by randfixedsum, periods log-uniform from 1 to 1000 ms, costs of at least 500 µs.
- Each task is, as likely, global, bound to a socket, or bound to a CPU. Every set is feasible. Rate-monotonic priorities.
- Under `g-fp` the same tasks may use every CPU, as under the paper's baseline.
";

const NATIVE: &str = "\
## Decisions at 24 CPUs

The policies of this crate, driven by the simulator through so many seconds of each set: a clock is read before and after each event
(a release or a completion), and what reading it takes is subtracted. In the paper's terms this is the work of Algorithms 3, 5 and 6 on
the scheduling processor, without the interrupts and messages around it. In ns; the longest is what interrupts make of it.
";

const LIVE: &str = "\
## Live, on four CPUs in the emulator

The same kind of sets, for four CPUs: one decides, three run the jobs. *Scheduling* is the time from the agent's receipt of an event until it
has notified all CPUs concerned, *dispatch* the time that a CPU's dispatcher takes to find what to run. The emulator's clock counts instructions, one
nanosecond each, so caches and real interrupts play no part. In ns.
";

/// The page. `live` is what the live test printed; `None` if it did not run.
///
/// # Errors
/// In words, if a set cannot be drawn or run, or if `live` is not what the test prints.
pub fn pages(length: Span, live: Option<&str>) -> Result<Vec<Page>, String> {
    let mut page = Chapter::new(FOLDER);
    page.say(HEAD);
    page.say(NATIVE);
    let decisions = decisions(length)?;
    let rows: Vec<Vec<String>> = POLICIES
        .iter()
        .zip(&decisions)
        .map(|(name, of)| native_row(name, of))
        .collect();
    page.say(&table(
        &[
            "policy", "events", "mean", "median", "95%", "99%", "99.9%", "longest",
        ],
        &rows,
    ));
    page.say(&format!(
        "{} of each of the {} sets.",
        seconds(length),
        TASKS.len() * LOADS.len() * SETS as usize
    ));
    page.say("## Beside the paper");
    page.say(&compared(&decisions));
    page.say(LIVE);
    match live {
        Some(text) => page.say(&live_table(&lines(text)?)),
        None => page.say("Not measured: there was no emulator."),
    }
    Ok(page.into_pages("overheads"))
}

/// What the events of all sets took, by policy.
fn decisions(length: Span) -> Result<Vec<Decisions>, String> {
    let mut all = vec![Decisions::default(); POLICIES.len()];
    for tasks in TASKS {
        for load in LOADS {
            for index in 0..SETS {
                let nested = set(tasks, load, index)?;
                let global = without_affinities(nested.clone());
                // In turns, so that whatever disturbs the machine disturbs all of them.
                for (policy, decisions) in POLICIES.into_iter().zip(&mut all) {
                    let set = if policy == "g-fp" { &global } else { &nested };
                    replay(set, policy, length, decisions)?;
                }
            }
        }
    }
    Ok(all)
}

fn native_row(name: &str, of: &Decisions) -> Vec<String> {
    let mut row = vec![format!("`{name}`"), of.count.to_string()];
    row.push(of.spans.mean_ns(of.count).to_string());
    row.extend([500, 950, 990, 999].map(|permille| percentile_ns(of, permille).to_string()));
    row.push(of.spans.max_ns().to_string());
    row
}

/// The shortest span that so many of 1000 do not exceed.
fn percentile_ns(of: &Decisions, permille: u64) -> u64 {
    let rank = (of.count * permille).div_ceil(1_000);
    of.spans.ranked_ns(rank).unwrap_or(0)
}

/// The one comparison that the paper's text allows: how much longer the 99.9th percentile is.
fn compared(decisions: &[Decisions]) -> String {
    let of = |place: usize| percentile_ns(&decisions[place], 999).max(1);
    let ratio = |ns: [u64; 2]| format!("{}.{:02}", ns[1] / ns[0], ns[1] * 100 / ns[0] % 100);
    let rows = [
        (
            "the paper, on its processor, interrupts and messages included",
            PAPER_P99_9_NS,
        ),
        ("`hpa-fp-ecrts16` (its algorithms)", [of(0), of(2)]),
        ("`hpa-fp` (ours)", [of(0), of(1)]),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(what, ns)| {
            vec![
                what.to_owned(),
                ns[0].to_string(),
                ns[1].to_string(),
                ratio(ns),
            ]
        })
        .collect();
    table(
        &["99.9th percentile (ns)", "global", "hierarchical", "ratio"],
        &rows,
    )
}

fn live_table(all: &[Line]) -> String {
    let row = |line: &Line| {
        let mut row = vec![format!("`{}`", line.policy), line.what.clone()];
        row.extend(line.figures.iter().map(u64::to_string));
        row
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table(
        &[
            "policy", "", "samples", "mean", "median", "95%", "99%", "99.9%", "longest",
        ],
        &rows,
    )
}

fn seconds(length: Span) -> String {
    format!("{} seconds", length.as_ns() / 1_000_000_000)
}

const _: () = assert!(CPUS == 24, "the page says so");
