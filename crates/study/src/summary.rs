//! The summary of results: up to which load each contender passes.

use crate::results::{Results, Row};

/// One contender in one family, over all loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The family of the task sets.
    pub family: String,
    /// How many CPUs there are.
    pub cpus: u64,
    /// What the contender is called.
    pub label: String,
    /// `hard`, `soft` or `simulated`.
    pub criterion: String,
    /// How many task sets were asked about.
    pub sets: u64,
    /// The share of them for which the criterion was met; `None` without any.
    pub share: Option<f64>,
    /// The load from which on less than half of the task sets meet it, in CPUs, interpolated between the loads that were
    /// looked at; `None` if that does not happen.
    pub half: Option<f64>,
}

/// One for each family, number of CPUs, contender and criterion, in the order of the study.
pub fn summaries(results: &Results) -> Vec<Summary> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in &results.rows {
        let is_same = |group: &&mut Vec<&Row>| {
            let first = group[0];
            (&first.family, first.cpus) == (&row.family, row.cpus)
                && (&first.label, &first.criterion) == (&row.label, &row.criterion)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let summary = |mut rows: Vec<&Row>| {
        rows.sort_by(|one, other| one.cap.total_cmp(&other.cap));
        let sets: u64 = rows.iter().map(|row| row.sets).sum();
        let met: u64 = rows.iter().map(|row| row.met).sum();
        Summary {
            family: rows[0].family.clone(),
            cpus: rows[0].cpus,
            label: rows[0].label.clone(),
            criterion: rows[0].criterion.clone(),
            sets,
            share: (sets > 0).then(|| met as f64 / sets as f64),
            half: half(&rows),
        }
    };
    groups.into_iter().map(summary).collect()
}

/// Behind the last load at which half of the sets or more meet the criterion: where the line to the next crosses one half.
fn half(rows: &[&Row]) -> Option<f64> {
    let known: Vec<(f64, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.cap, row.ratio()?)))
        .collect();
    let below = known
        .iter()
        .rposition(|&(_, ratio)| ratio >= 0.5)
        .map_or(0, |last| last + 1);
    let &(x, y) = known.get(below)?;
    let Some(&(before, above)) = below.checked_sub(1).and_then(|last| known.get(last)) else {
        return Some(x);
    };
    Some(before + (above - 0.5) / (above - y) * (x - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(shares: &[(f64, u64, u64)]) -> Results {
        let row = |&(cap, sets, met): &(f64, u64, u64)| Row {
            family: "light".to_owned(),
            cpus: 4,
            cap,
            policy: "g-edf".to_owned(),
            label: "G".to_owned(),
            criterion: "hard".to_owned(),
            overheads: None,
            sets,
            met,
            refuted: 0,
            bounded: 0,
            tardiness_mean_ns: None,
            tardiness_max_ns: None,
        };
        Results {
            name: String::new(),
            digest: String::new(),
            rows: shares.iter().map(row).collect(),
        }
    }

    fn half(shares: &[(f64, u64, u64)]) -> Option<f64> {
        summaries(&results(shares))[0].half
    }

    #[test]
    fn the_share_counts_every_task_set_alike() {
        let all = summaries(&results(&[(1.0, 10, 10), (2.0, 30, 0)]));
        assert_eq!((all.len(), all[0].sets, all[0].share), (1, 40, Some(0.25)));
        assert_eq!(summaries(&results(&[(1.0, 0, 0)]))[0].share, None);
    }

    #[test]
    fn curves_fall_below_one_half_once_and_for_all() {
        assert_eq!(
            half(&[(1.0, 10, 10), (2.0, 10, 5), (3.0, 10, 0)]),
            Some(2.0)
        );
        assert_eq!(half(&[(1.0, 10, 10), (2.0, 10, 0)]), Some(1.5));
        assert_eq!(
            half(&[(2.0, 10, 0), (1.0, 10, 10)]),
            Some(1.5),
            "in any order"
        );
        assert_eq!(
            half(&[(1.0, 4, 0), (2.0, 4, 4), (3.0, 4, 1)]),
            Some(2.0 + 2.0 / 3.0)
        );
        assert_eq!(
            half(&[(1.0, 4, 1), (2.0, 4, 0)]),
            Some(1.0),
            "from the first load"
        );
        assert_eq!(half(&[(1.0, 4, 4), (2.0, 4, 3)]), None);
        assert_eq!(half(&[(1.0, 0, 0)]), None);
    }
}
