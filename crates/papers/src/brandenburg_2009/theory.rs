//! Partitioned, clustered and global EDF with the overheads of the slides: what scheduling theory trades.

use shiftwork_study::Plan;

use super::study::SETS;
use crate::outcome::{Outcome, folder, read};

/// The policies, as the study of 2008 calls them.
const POLICIES: [&str; 3] = ["P-EDF", "C-EDF", "G-EDF"];

/// The study of 2008.
const FILE: &str = "rtss-2008.toml";

/// The share of the sets of a family of that study, over all caps, that each of the three is shown to schedule, in
/// thousandths: hard, then soft.
///
/// # Errors
/// In words, if the study cannot be read, or a set cannot be drawn.
pub fn means(family: &str) -> Result<Vec<[u64; 2]>, String> {
    let mut file = read(FILE)?;
    file.families.retain(|one| one.name == family);
    file.contenders
        .retain(|one| POLICIES.contains(&one.label.as_str()));
    let plan = Plan::new(file, &folder().join(FILE)).map_err(|error| error.to_string())?;
    let outcome = Outcome::of(plan, SETS)?;
    let of = |policy: &&str| {
        let [hard, soft] = ["hard", "soft"].map(|kind| outcome.series(family, policy, kind));
        Ok([hard?.permille(), soft?.permille()])
    };
    POLICIES.iter().map(of).collect()
}
