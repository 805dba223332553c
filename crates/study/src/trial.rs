//! One task set: drawing it, and asking all questions about it.

use shiftwork_analysis::overheads::{Structure, inflate_for_pfair};
use shiftwork_analysis::verdicts::{Answer, Criterion, Question, decide};
use shiftwork_model::{Affinity, Instant, Span, TaskSet};
use shiftwork_sim::{Options, Simulation};
use shiftwork_taskset::generate::{Key, clusters_of, generate};
use shiftwork_taskset::study::Family;
use shiftwork_trace::Counters;

use crate::binding::bindings;
use crate::error::StudyError;
use crate::plan::{Cell, Contender, Plan, QuestionKind};
use crate::tally::Reply;

impl Plan {
    /// The task set of this index in a cell.
    ///
    /// # Errors
    /// If none can be drawn.
    pub fn draw(&self, cell: &Cell, index: u64) -> Result<TaskSet, StudyError> {
        let family = self.family(cell);
        let key = Key {
            seed: self.file.seed,
            cell: cell.number as u64,
            index,
        };
        let drawn = generate(&family.options(cell.cpus, cell.load), key);
        let set = drawn.map_err(|error| StudyError::Draw {
            cell: self.name_of(cell),
            error,
        })?;
        Ok(self.finished(family, cell.cpus, set))
    }

    /// A task set of a family with what the study says of its platform and scheduler.
    pub(crate) fn finished(&self, family: &Family, cpus: usize, mut set: TaskSet) -> TaskSet {
        if let Some(size) = family.cluster {
            let clusters = clusters_of(size, cpus);
            set.platform.caches.clone_from(&clusters);
            set.platform.clusters = clusters;
        }
        set.scheduler.quantum = self.file.quantum;
        set
    }

    /// What is known of the task set of this index, question by question, as [`Cell::asked`] lists them.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn trial(&self, cell: &Cell, index: u64) -> Result<Vec<Reply>, StudyError> {
        let replies = self.trial_while(cell, index, &|| true)?;
        Ok(replies.expect("it was not stopped"))
    }

    /// As [`trial`](Self::trial), but `None` as soon as `goes_on` says no while the set is simulated.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn trial_while(
        &self,
        cell: &Cell,
        index: u64,
        goes_on: &impl Fn() -> bool,
    ) -> Result<Option<Vec<Reply>>, StudyError> {
        let set = self.draw(cell, index)?;
        let mut replies = Vec::with_capacity(cell.asked.len());
        for (place, contender) in self.contenders.iter().enumerate() {
            let asked = cell.asked.iter().map(|&asked| self.questions[asked]);
            let kinds = asked.filter(|question| question.contender == place);
            let kinds: Vec<QuestionKind> = kinds.map(|question| question.kind).collect();
            if !kinds.is_empty() {
                let asked = (contender, &kinds[..], self.family(cell).tardiness);
                let Some(more) = self.ask(asked, &set, index, goes_on) else {
                    return Ok(None);
                };
                replies.extend(more);
            }
        }
        Ok(Some(replies))
    }

    /// What is known under one contender, with bounds on tardiness if they are wanted; `None` if it was given up.
    fn ask(
        &self,
        (contender, kinds, bounds): (&Contender, &[QuestionKind], bool),
        set: &TaskSet,
        index: u64,
        goes_on: &impl Fn() -> bool,
    ) -> Option<Vec<Reply>> {
        let set = &*contender.given(set);
        let reply = |&kind: &QuestionKind| {
            // A policy that does not take the set guarantees nothing about it.
            let mut reply = Reply::default();
            for (place, bound) in bindings(contender, kind, set).into_iter().enumerate() {
                let before = reply;
                reply = match kind {
                    QuestionKind::Shown(criterion) => {
                        shown((contender, criterion, bounds), set, &bound, self.file.steps)
                    }
                    QuestionKind::Simulated(length) => {
                        simulated((contender, length), set, &bound, index, goes_on)?
                    }
                };
                if reply.is_met {
                    break;
                }
                // It is not met for sure only if that is so in every way.
                reply.is_refuted &= place == 0 || before.is_refuted;
            }
            Some(reply)
        };
        kinds.iter().map(reply).collect()
    }
}

/// Whether tests show the criterion, and how tardy jobs can be if that is `bounds`.
fn shown(
    (contender, criterion, bounds): (&Contender, Criterion, bool),
    set: &TaskSet,
    bound: &[Affinity],
    steps: u64,
) -> Reply {
    let structure = Structure::of(&contender.entry.traits, set);
    let overheads = contender.overheads(QuestionKind::Shown(criterion));
    let tests: Vec<&str> = contender.file.tests.iter().map(String::as_str).collect();
    let decision = decide(
        set,
        &Question {
            price: overheads.map(|overheads| (&structure, overheads)),
            only: (!tests.is_empty()).then_some(&tests),
            tardiness: bounds && criterion == Criterion::Soft,
            ..Question::new(contender.entry.traits, bound, criterion, steps)
        },
    );
    Reply {
        is_met: decision.answer == Answer::Schedulable,
        is_refuted: decision.answer == Answer::Unschedulable,
        tardiness: decision.tardiness,
    }
}

/// Whether no deadline is missed in a simulation of this length, released as the set says; `None` if it was given
/// up.
fn simulated(
    (contender, length): (&Contender, Span),
    set: &TaskSet,
    bound: &[Affinity],
    seed: u64,
    goes_on: &impl Fn() -> bool,
) -> Option<Reply> {
    let mut set = set.clone();
    let overheads = contender.worst.clone();
    for (task, &bound) in set.tasks.iter_mut().zip(bound) {
        task.affinity = bound;
    }
    let inflated = overheads
        .as_ref()
        .and_then(|overheads| inflate_for_pfair(&set, &contender.entry.traits, bound, overheads));
    let Ok(policy) = contender.entry.build(inflated.as_ref().unwrap_or(&set)) else {
        return Some(Reply::default());
    };
    let horizon = Instant::ZERO + length;
    let options = Options {
        seed,
        horizon,
        overheads,
        reserve_server: false,
    };
    let mut counters = Counters::new(&set, set.platform.cpus);
    let simulation = Simulation::new(&set, policy, &contender.entry.traits, options);
    let (_, reached) = simulation.run_while(&mut counters, |_| goes_on());
    if reached < horizon {
        return None;
    }
    let misses = counters.finish(horizon).deadline_misses;
    Some(Reply {
        is_met: misses == 0,
        // A miss here refutes schedulability: the simulation never overcharges overheads.
        is_refuted: misses > 0,
        tardiness: None,
    })
}
