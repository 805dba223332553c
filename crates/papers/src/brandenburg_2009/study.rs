//! Which task sets can be shown to be schedulable, overheads and all: the study `studies/rtss-2009.toml`.

use shiftwork_study::Plan;
use shiftwork_taskset::overheads::{OverheadFile, Use};

use crate::outcome::{Outcome, folder, read};

/// How many task sets are drawn for each utilization cap.
pub const SETS: u64 = 30;

/// The file of the study.
const FILE: &str = "rtss-2009.toml";

/// The task sets of one picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// For people.
    pub name: &'static str,
    /// In the study.
    pub study: &'static str,
}

/// The task sets of the pictures on the slides, and two more, for "very high task counts" and "very short periods".
pub const FAMILIES: [Family; 5] = [
    Family {
        name: "utilizations in [0.1, 0.4], periods 10 to 100 ms",
        study: "uniform-medium-moderate",
    },
    Family {
        name: "utilizations in [0.001, 0.1], periods 10 to 100 ms",
        study: "uniform-light-moderate",
    },
    Family {
        name: "utilizations in [0.5, 0.9], periods 10 to 100 ms",
        study: "uniform-heavy-moderate",
    },
    Family {
        name: "utilizations in [0.1, 0.4], periods 3 to 33 ms",
        study: "uniform-medium-short",
    },
    Family {
        name: "utilizations in [0.001, 0.1], periods 3 to 33 ms",
        study: "uniform-light-short",
    },
];

/// What the study finds with these overheads: of all families, or of those in [`FAMILIES`] alone.
///
/// # Errors
/// In words, if the study cannot be read, or a set cannot be drawn.
pub fn outcome(overheads: &OverheadFile, pictured: bool) -> Result<Outcome, String> {
    let mut file = read(FILE)?;
    // What the file names was derived when the page was last written.
    file.overheads = None;
    if pictured {
        file.families
            .retain(|one| FAMILIES.iter().any(|family| family.study == one.name));
    }
    let plan = Plan::new(file, &folder().join(FILE));
    let mut plan = plan.map_err(|error| error.to_string())?;
    for contender in &mut plan.contenders {
        let of = |purpose| overheads.find(purpose, contender.entry.name).cloned();
        (contender.worst, contender.average) = (of(Use::Worst), of(Use::Average));
    }
    Outcome::of(plan, SETS)
}
