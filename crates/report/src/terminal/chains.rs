//! The table of cause-effect chains.

use shiftwork_model::Span;
use shiftwork_trace::{EndToEnd, RunSummary};

use super::Look;
use super::grid::{Align, Cell, Grid, Tone};
use super::tables::{column, maybe, time};

/// The longest reaction times, data ages and, where tasks trigger one another, end-to-end latencies of the chains of a
/// task set in runs under these policies, one row per run and chain; empty without chains.
///
/// One that is longer than wanted is marked with `!`. A `>` says that the longest had not ended by the horizon.
pub fn chains(runs: &[(&str, &RunSummary)], look: impl Into<Look>) -> String {
    let mut columns = vec![column("", "chain", Align::Left)];
    let several = runs.len() > 1;
    columns.extend(several.then(|| column("", "policy", Align::Left)));
    let mut all = runs.iter().flat_map(|(_, summary)| &summary.chains);
    let has_latencies = all.any(|chain| chain.latency.is_some());
    for group in ["reaction", "age", "latency"] {
        if group == "latency" && !has_latencies {
            continue;
        }
        let titles = [("wanted", 1), ("max", 0), ("samples", 2)];
        let titled = |(title, rank)| column(group, title, Align::Right).rank(rank);
        columns.extend(titles.map(titled));
    }
    let mut grid = Grid::new(columns);
    let (mut is_empty, mut any_pending) = (true, false);
    for (policy, summary) in runs {
        for chain in &summary.chains {
            let mut cells = vec![Cell::new(&chain.name)];
            cells.extend(several.then(|| Cell::new(policy)));
            for times in [chain.reaction, chain.age] {
                cells.extend(row(times));
                any_pending |= is_pending(times);
            }
            if let Some(latency) = chain.latency {
                cells.extend(row(latency));
                any_pending |= is_pending(latency);
            } else if has_latencies {
                cells.extend([maybe(None), maybe(None), maybe(None)]);
            }
            grid.row(cells);
            is_empty = false;
        }
    }
    if is_empty {
        return String::new();
    }
    let note = match any_pending {
        true => "> had not ended by the horizon\n",
        false => "",
    };
    grid.render(look) + note
}

/// Whether the longest had not ended.
fn is_pending(times: EndToEnd) -> bool {
    times.pending > times.max
}

fn row(times: EndToEnd) -> [Cell; 3] {
    let (mark, tone) = match times.is_met() {
        Some(false) => (" !", Tone::Bad),
        _ => ("", Tone::Plain),
    };
    let longest = times.max.max(times.pending).map(Span::as_ns);
    let from = if is_pending(times) { "> " } else { "" };
    let longest = longest.map(|ns| Cell::toned(format!("{from}{}{mark}", time(ns)), tone));
    [
        maybe(times.wanted.map(Span::as_ns)),
        longest.unwrap_or_else(|| maybe(None)),
        Cell::new(times.samples.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Colour;
    use shiftwork_model::{Instant, TaskSet};
    use shiftwork_trace::{ChainSummary, Counters};

    fn summary(chains: Vec<ChainSummary>) -> RunSummary {
        let counters = Counters::new(&TaskSet::new("", 1, Vec::new()), 1);
        RunSummary {
            chains,
            ..counters.finish(Instant::ZERO + Span::from_s(1))
        }
    }

    #[test]
    fn chain_longer_than_wanted_or_not_ended_is_marked() {
        let ms = |ms| Some(Span::from_ms(ms));
        let chain = ChainSummary {
            name: "perception".into(),
            reaction: EndToEnd {
                samples: 7,
                max: ms(120),
                pending: ms(3),
                wanted: ms(100),
            },
            age: EndToEnd {
                samples: 0,
                max: None,
                pending: ms(9),
                wanted: None,
            },
            latency: None,
        };
        let text = chains(&[("g-edf", &summary(vec![chain]))], Colour::Never);
        let expected = "            ------- reaction --------  --------- age ---------\n\
                        chain       wanted       max  samples  wanted     max  samples\n\
                        perception  100 ms  120 ms !        7       -  > 9 ms        0\n\
                        > had not ended by the horizon\n";
        assert_eq!(text, expected);
        assert_eq!(
            chains(&[("g-edf", &summary(Vec::new()))], Colour::Never),
            ""
        );
    }
}
