//! All short sequences of events on two CPUs.

use shiftwork_model::{Repairs, TaskId};
use shiftwork_policy::Ties;

use crate::all_rules;
use crate::drive::{Spec, Step, System, apply, apply_to_oracle, carry_out, compare};
use crate::oracle::Oracle;

/// When everything happens: some deadlines are over, some are due, some are to come.
const NOW: u64 = 2;

const TASKS: usize = 3;

struct Search {
    system: System,
    deadlines: &'static [u64],
    steps: Vec<Step>,
    sequences: u64,
}

impl Search {
    /// Everything that does not contradict what is known.
    fn possible(&self, oracle: &Oracle) -> Vec<Step> {
        let mut steps = Vec::new();
        for task in 0..TASKS {
            if !oracle.is_ready(task) {
                let wake = |&deadline: &u64| Step::Wake(task, NOW, deadline);
                steps.extend(self.deadlines.iter().map(wake));
                continue;
            }
            steps.extend([Step::Complete(task), Step::BudgetSpent(task)]);
            if (0..self.system.cpus).any(|cpu| oracle.running(cpu) == Some(task)) {
                let succeed = |&deadline: &u64| Step::Succeed(task, NOW, deadline);
                steps.extend(self.deadlines.iter().map(succeed));
            }
        }
        if oracle.has_undecided() {
            steps.push(Step::EndInstant);
        }
        steps
    }

    /// Policies cannot be copied: the steps so far are played again, and the last one is compared.
    fn go(&mut self, oracle: &Oracle, depth: usize) {
        for step in self.possible(oracle) {
            let mut next = oracle.clone();
            apply_to_oracle(&mut next, &step);
            self.steps.push(step);
            self.sequences += 1;
            let replay = self.replay(&next);
            assert_eq!(replay, Ok(()), "{:?}, steps {:?}", self.system, self.steps);
            if depth > 1 {
                self.go(&next, depth - 1);
            }
            self.steps.pop();
        }
    }

    fn replay(&self, oracle: &Oracle) -> Result<(), String> {
        let mut policy = self.system.policy();
        let mut running = vec![None::<TaskId>; self.system.cpus];
        let mut out = Vec::new();
        for step in &self.steps {
            out.clear();
            apply(&mut policy, step, &mut out);
            carry_out(&out, &mut running)?;
        }
        compare(&policy, oracle, &running)
    }
}

/// Three tasks with every choice of affinities, but for the order of the tasks.
fn affinities() -> Vec<[u64; TASKS]> {
    let mut all = Vec::new();
    for first in 1..=3 {
        for second in first..=3 {
            all.extend((second..=3).map(|third| [first, second, third]));
        }
    }
    all
}

fn search(repairs: Repairs, ties: Ties, deadlines: &'static [u64], depth: usize) -> u64 {
    let mut sequences = 0;
    for affinities in affinities() {
        let system = System {
            cpus: 2,
            clusters: vec![0b11],
            capacities: Vec::new(),
            tasks: affinities.map(Spec::on).to_vec(),
            repairs,
            ties,
        };
        let oracle = system.oracle();
        let mut search = Search {
            system,
            deadlines,
            steps: Vec::new(),
            sequences: 0,
        };
        search.go(&oracle, depth);
        sequences += search.sequences;
    }
    sequences
}

/// How many steps more than by default.
fn deeper() -> usize {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 1,
        None => 0,
    }
}

#[test]
fn every_short_sequence_with_three_deadlines_goes_as_defined() {
    for (repairs, ties) in all_rules() {
        let sequences = search(repairs, ties, &[1, 2, 3], 4 + deeper());
        assert!(sequences > 10_000, "{sequences}");
    }
}

#[test]
fn every_longer_sequence_with_two_deadlines_goes_as_defined() {
    for (repairs, ties) in all_rules() {
        let sequences = search(repairs, ties, &[1, 3], 5 + deeper());
        assert!(sequences > 10_000, "{sequences}");
    }
}
