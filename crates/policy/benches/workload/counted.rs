//! What instructions are counted of. The numbers in the names of gungraun's files are positions
//! in [`counted`].

use shiftwork_policy::registry::{self, Entry};

use super::runs;
use super::sets::{Case, Shape};

/// Events of the kind that are counted.
pub const EVENTS: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Wake,
    Complete,
}

/// One count.
#[derive(Clone, Copy)]
pub struct Counted {
    pub case: Case,
    pub policy: &'static Entry,
    pub kind: Kind,
}

/// Every policy where it is measured at 75%, one size with long backlogs, and what the growth of
/// `hpa-edf` is read from.
pub fn counted() -> Vec<Counted> {
    let mut cases = runs::all(&[75]);
    cases.retain(|(case, policy)| policy.name != "strong-fp-emsoft21" || case.cpus <= 256);
    let backlogged = runs::all(&[150]);
    cases.extend(backlogged.into_iter().filter(|(case, _)| case.cpus == 64));
    let hpa = registry::find("hpa-edf").expect("the registry has this policy");
    cases.extend(growth().into_iter().map(|case| (case, hpa)));
    let both =
        |(case, policy)| [Kind::Wake, Kind::Complete].map(|kind| Counted { case, policy, kind });
    cases.into_iter().flat_map(both).collect()
}

/// Height alone, tasks alone, CPUs alone.
pub fn growth() -> Vec<Case> {
    let heights = [2, 3, 5, 8].map(|levels| Case::new(Shape::Levels(levels), 128, 75));
    let tasks = [5, 10, 20, 40, 80].map(|per_cpu| Case {
        tasks: 128 * per_cpu,
        ..Case::new(Shape::ThreeLevel, 128, 75)
    });
    let cpus = [8, 24, 64, 256, 1024].map(|cpus| Case {
        tasks: 10_240,
        ..Case::new(Shape::ThreeLevel, cpus, 75)
    });
    [&heights[..], &tasks[..], &cpus[..]].concat()
}
