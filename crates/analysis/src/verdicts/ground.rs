//! What is found out about one part of a task set.

use shiftwork_model::Span;

use super::Found;
use super::ask::{Shown, ask};
use super::case::{Case, utilization};
use super::catalogue::{Criterion, Test};
use crate::affinity::Groups;
use crate::exact::whole;
use crate::{Steps, Witness};

/// What is found out about one part, or about the whole.
pub(super) struct Ground {
    pub case: Case,
    /// What a test that passes for this part shows: by criterion, the first.
    shown: [Option<&'static str>; 2],
    /// The tests whose bounds together show that all deadlines are met here; empty if none do.
    in_time: Vec<&'static str>,
    /// What proves that this part misses deadlines.
    pub refuted: Option<(&'static str, Witness)>,
    /// That a test may take here.
    pub steps: u64,
}

impl Ground {
    /// Nothing is known yet.
    pub const fn new(case: Case, steps: u64) -> Self {
        Self {
            case,
            shown: [None; 2],
            in_time: Vec::new(),
            refuted: None,
            steps,
        }
    }

    /// Asks a test that takes this part about it.
    pub fn ask(&self, test: &Test) -> Shown {
        let mut steps = Steps::at_most(self.steps);
        ask(test.asked.question(), &self.case, &mut steps)
    }

    /// Notes what follows from what the test has shown here; `keep` gets the bounds on response times.
    pub fn learn(
        &mut self,
        test: &Test,
        shown: &Shown,
        keep: impl FnOnce(&Case, &[Span]),
    ) -> Found {
        match shown {
            Shown::StepLimit => Found::StepLimit,
            Shown::Fail(witness) => {
                if let Some(witness) = witness {
                    self.refuted = Some((test.name, witness.clone()));
                }
                Found::Fail
            }
            Shown::Pass(bounds) => {
                if let Some(bounds) = bounds {
                    keep(&self.case, bounds);
                }
                if !test.is_for_times() {
                    self.note(test);
                }
                Found::Pass
            }
        }
    }

    /// Notes that a test passes.
    pub fn note(&mut self, test: &Test) {
        let [hard, soft] = &mut self.shown;
        let shown = match test.criterion {
            Criterion::Hard => hard,
            Criterion::Soft => soft,
        };
        shown.get_or_insert(test.name);
    }

    /// Notes the tests whose bounds together show that all deadlines are met, if there are some.
    pub fn note_in_time(&mut self, by: Vec<&'static str>) {
        if self.in_time.is_empty() {
            self.in_time = by;
        }
    }

    /// Whether the criterion is shown here.
    pub fn is_shown(&self, criterion: Criterion) -> bool {
        self.by(criterion).is_some()
    }

    /// The test that shows the criterion, or the first of those that do together. A part that meets all
    /// deadlines has bounded tardiness, too.
    pub fn by(&self, criterion: Criterion) -> Option<&'static str> {
        let [hard, soft] = self.shown;
        let hard = hard.or(self.in_time.first().copied());
        match criterion {
            Criterion::Hard => hard,
            Criterion::Soft => soft.or(hard),
        }
    }

    /// All tests that it takes to show the criterion.
    pub fn all_by(&self, criterion: Criterion) -> Vec<&'static str> {
        let first = self.by(criterion);
        match first == self.in_time.first().copied() && !self.shown.contains(&first) {
            true => self.in_time.clone(),
            false => first.into_iter().collect(),
        }
    }
}

/// Tasks that need more than the CPUs to which they are bound, if any.
pub(super) fn overload(grounds: &[Ground]) -> Option<Witness> {
    grounds.iter().find_map(|ground| {
        let demanding = ground.case.demanding();
        let mut tasks = ground.case.ids.iter().zip(demanding.iter());
        let alone = tasks.find_map(|(&task, times)| {
            let needed = utilization(times).filter(|rate| rate.exceeds_one())?;
            Some(Witness::Alone { task, needed })
        });
        let crowd = || {
            let groups: Groups = ground.case.groups_of(&demanding, utilization)?;
            let (crowd, _) = groups.shortage(whole());
            crowd.map(|crowd| groups.witness(&crowd, whole()))
        };
        alone.or_else(crowd)
    })
}
