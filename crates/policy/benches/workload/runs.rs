//! Which runs there are, and which policies can be fed with which.

use std::collections::BTreeMap;
use std::rc::Rc;

use shiftwork_model::{Invariant, Placement, Preemption, Role, TaskSet};
use shiftwork_policy::registry::{Entry, POLICIES};

use super::recording::{Recording, record};
use super::sets::{Case, Shape};

/// Numbers of CPUs to measure at.
pub const SIZES: [usize; 6] = [4, 8, 24, 64, 256, 1024];

/// Events that are recorded.
pub const STEPS: usize = 50_000;

/// A task set and a stretch of a run of it.
pub struct Run {
    pub set: TaskSet,
    pub recording: Recording,
}

/// Makes each run once.
pub struct Library {
    warm_up: usize,
    steps: usize,
    runs: BTreeMap<(String, &'static str), Rc<Run>>,
}

impl Library {
    pub fn new() -> Self {
        Self {
            warm_up: 300_000,
            steps: STEPS,
            runs: BTreeMap::new(),
        }
    }

    /// For where everything is slow.
    pub fn short() -> Self {
        Self {
            warm_up: 30_000,
            steps: 3_000,
            ..Self::new()
        }
    }

    /// The run to feed to this policy. Policies that keep the strong invariant by the same order
    /// schedule the same jobs, so the fastest of them makes the run for all.
    pub fn get(&mut self, case: &Case, policy: &Entry) -> Rc<Run> {
        let recorder = recorder_for(case.shape, policy);
        let make = || {
            let set = case.task_set();
            let recording = record(&set, recorder, self.warm_up(case, policy), self.steps);
            Rc::new(Run { set, recording })
        };
        let key = (format!("{case:?}"), recorder.name);
        if !self.runs.contains_key(&key) {
            let run = make();
            self.runs.insert(key.clone(), run);
        }
        Rc::clone(&self.runs[&key])
    }

    /// Until the backlog of an overloaded set no longer grows. What weak placement does depends on
    /// all that went before, which is repeated for each measurement: it gets less.
    fn warm_up(&self, case: &Case, policy: &Entry) -> usize {
        let longest = match policy.traits.invariant {
            Invariant::Weak => self.warm_up.min(STEPS),
            _ => self.warm_up,
        };
        (100 * case.tasks).min(longest)
    }
}

fn recorder_for(shape: Shape, policy: &Entry) -> &Entry {
    if policy.traits.invariant != Invariant::Strong {
        return policy;
    }
    let placement = match shape {
        Shape::Global => Placement::Global,
        Shape::Arbitrary => Placement::Strong,
        _ => Placement::Hierarchical,
    };
    let is_recorder = |known: &&Entry| {
        let traits = &known.traits;
        (traits.order, traits.placement) == (policy.traits.order, placement)
            && (traits.preemption, traits.role) == (Preemption::AtEvents, Role::Reference)
    };
    let found = POLICIES.iter().find(is_recorder);
    found.expect("the registry has this policy")
}

/// Whether the policy takes task sets of this shape, decides at events, and is not too slow to be measured: the
/// published algorithms need milliseconds per event when thousands of jobs wait for 1024 CPUs.
pub fn is_measured(case: &Case, policy: &Entry) -> bool {
    if policy.traits.preemption.alignment().is_some() {
        return false;
    }
    let published = policy.traits.role == Role::Variant && policy.traits.structure.is_none();
    if published && case.load > 100 && case.cpus > 256 {
        return false;
    }
    if case.shape == Shape::Arbitrary {
        return matches!(policy.traits.placement, Placement::Strong | Placement::Weak);
    }
    Shape::usual_for(policy) == case.shape
}

/// All policies with the cases to measure them in: sizes, loads, shapes.
pub fn all(loads: &[u64]) -> Vec<(Case, &'static Entry)> {
    let shapes = [
        Shape::Global,
        Shape::Clustered,
        Shape::ThreeLevel,
        Shape::Arbitrary,
    ];
    let mut cases = Vec::new();
    for shape in shapes {
        for &load in loads {
            for cpus in SIZES {
                let case = Case::new(shape, cpus, load);
                let measured = POLICIES.iter().filter(|policy| is_measured(&case, policy));
                cases.extend(measured.map(|policy| (case, policy)));
            }
        }
    }
    cases
}
