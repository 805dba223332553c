//! What a live run yields beyond its records, and the simulation of the same beside it.

use serde_json::{Value, json};
use shiftwork_live::Overheads;
use shiftwork_model::{Record, Span};
use shiftwork_policy::registry::Entry;
use shiftwork_report::{Judged, side_by_side};
use shiftwork_trace::comparison::{Comparison as Finishes, compare};
use shiftwork_trace::replay::Verdict;
use shiftwork_trace::{Counters, ReactionStatistics, Reactions, RunSummary};
use shiftwork_verbs::replay::{Decider, Judgement, Measured as ToJudge, judge};

use super::simulation;
use crate::failure::Failure;
use crate::output::Console;
use crate::verb::outputs::{Finished, Recording};

/// What a live run yields beyond its records. All absent if it was simulated.
#[derive(Default)]
pub struct Measured {
    /// From decisions to the jobs running.
    pub reaction: Option<ReactionStatistics>,
    /// From nominal releases to the kernel knowing of them.
    pub lateness: Option<ReactionStatistics>,
    /// How many records were lost on the way.
    pub lost: Option<u64>,
    /// How many running jobs the scheduler decided to move. A CPU takes its time to switch, so a real
    /// machine's records show no two of them at one instant.
    pub shifts: Option<u64>,
    /// Why the kernel took the scheduler away before the end.
    pub unloaded: Option<String>,
    /// What is wrong with the state that the scheduler left, which is a bug of ours.
    pub fault: Option<&'static str>,
    /// What else is to be printed.
    pub notes: Vec<String>,
    /// What scheduling itself took, where an agent decided.
    pub overheads: Option<Overheads>,
    /// The simulation of the same.
    pub comparison: Option<Comparison>,
    /// Whether the machine did as the policy decides; `None` if it was not asked, or records were lost.
    pub judgement: Option<Judgement>,
}

/// The simulation of the same task set, seed and time.
pub struct Comparison {
    simulated: RunSummary,
    events: u64,
    /// The finishes of both; `None` if records were lost, or where programs run: their work is
    /// unknown.
    finishes: Option<Finishes>,
}

impl Measured {
    /// Simulates as much as was run.
    ///
    /// # Errors
    /// If the policy refuses the task set, which it did not before the run.
    pub fn compare(&mut self, recording: &Recording<'_>, run: &Finished) -> Result<(), Failure> {
        let refused = |error| Failure::in_file(&recording.input.path, error);
        let policy = run.entry.build(recording.set).map_err(refused)?;
        let reached = run.summary.horizon;
        let counters = Counters::new(recording.set, recording.set.platform.cpus);
        let mut recorder = (counters, Vec::<Record>::new());
        let simulation = simulation(recording, run.entry, policy);
        let (outcome, _) = simulation.run_while(&mut recorder, |now| now < reached);
        let (counters, reference) = recorder;
        let measured = run.records.as_deref().unwrap_or_default();
        let mut tasks = recording.set.tasks.iter();
        let programs = tasks.any(|task| !task.command.is_empty());
        if programs {
            self.notes.push(String::from(
                "what programs do is not in the file: the simulation beside them only shows what was \
                 declared",
            ));
        }
        let is_whole = self.lost == Some(0);
        let finishes =
            (is_whole && !programs).then(|| compare(recording.set, reached, &reference, measured));
        self.comparison = Some(Comparison {
            simulated: counters.finish(reached),
            events: outcome.events,
            finishes,
        });
        Ok(())
    }

    /// Replays what was measured through the policy.
    ///
    /// # Errors
    /// If the policy refuses the task set, which it did not before the run.
    pub fn judge(
        &mut self,
        recording: &Recording<'_>,
        run: &Finished,
        decider: Decider<'_>,
        window: Span,
    ) -> Result<(), Failure> {
        if self.lost != Some(0) {
            self.notes.push(String::from(
                "records were lost: whether the machine did as the policy decides is not known",
            ));
            return Ok(());
        }
        let run = ToJudge {
            set: recording.set,
            entry: run.entry,
            decider,
            records: run.records.as_deref().unwrap_or_default(),
            window,
            horizon: run.summary.horizon,
        };
        let refused = |error| Failure::in_file(&recording.input.path, error);
        self.judgement = Some(judge(&run).map_err(refused)?);
        Ok(())
    }

    /// What the replay found.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.judgement.as_ref().map(|it| &it.verdict)
    }

    /// Whether the machine is known not to have done as the policy decides.
    pub fn disagrees(&self) -> bool {
        self.verdict().is_some_and(|verdict| !verdict.holds())
    }

    /// Prints to stderr what is no result.
    pub fn note(&self, console: &Console) {
        for note in &self.notes {
            console.note(format!("note: {note}"));
        }
    }

    /// Why the run is not what it was to be; what was measured until then is shown before.
    pub fn failure(&self) -> Option<Failure> {
        if let Some(reason) = &self.unloaded {
            return Some(Failure::Machine(format!(
                "the kernel took the scheduler away before the end: {reason}; all tasks went on under \
                 the kernel's own scheduler, and what is shown ends there"
            )));
        }
        self.fault.map(|fault| {
            Failure::Machine(format!(
                "the scheduler's state is not as it should be: {fault}; please report this"
            ))
        })
    }

    /// Adds the keys of `run --json`. `objection`: what is bad about the run, whatever the replay finds.
    pub fn add_to(&self, value: &mut Value, entry: &Entry, objection: Option<&str>) {
        if let Some(lost) = self.lost {
            value["lost_records"] = lost.into();
        }
        if let Some(shifts) = self.shifts {
            value["decided_shifts"] = shifts.into();
        }
        if let Some(reaction) = &self.reaction {
            value["reaction_ns"] = reaction.to_json();
        }
        if let Some(lateness) = &self.lateness {
            value["lateness_ns"] = lateness.to_json();
        }
        if let Some(overheads) = &self.overheads {
            for (name, it) in parts(overheads) {
                value["overheads_ns"][name] = it.to_json();
            }
            value["overheads_ns"]["record"] = overheads.record.as_ns().into();
        }
        if let Some(reason) = &self.unloaded {
            value["unloaded"] = reason.as_str().into();
        }
        let finishes = self.comparison.as_ref().and_then(|it| it.finishes.as_ref());
        if let Some(judgement) = &self.judgement {
            value["agreement"] = finishes.map_or_else(|| json!({}), Finishes::to_json);
            value["agreement"]["holds"] = (judgement.verdict.holds() && objection.is_none()).into();
            value["replay"] = judgement.to_json();
        }
        let Some(comparison) = &self.comparison else {
            return;
        };
        value["simulated"] = comparison.simulated.to_json(entry.name, comparison.events);
    }

    /// The same for people.
    pub fn show(
        &self,
        console: &mut Console,
        recording: &Recording<'_>,
        run: &Finished,
        objection: Option<&str>,
    ) -> Result<(), Failure> {
        if let Some(it) = &self.lateness {
            console.line(format!("timers: {}", percentiles(it)))?;
        }
        for (name, it) in self.overheads.iter().flat_map(parts) {
            console.line(format!("{name}: {}", percentiles(&it)))?;
        }
        if let Some(overheads) = &self.overheads {
            console.line(format!("each record of these: {}", overheads.record))?;
        }
        let colour = console.colour();
        if let (None, Some(it)) = (&self.judgement, &self.reaction) {
            console.line(format!("reactions: {}", percentiles(it)))?;
        }
        if let Some(comparison) = &self.comparison {
            console.line("")?;
            let table = side_by_side(
                recording.set,
                &comparison.simulated,
                &run.summary,
                console.look(),
            );
            console.text(&table)?;
        }
        let Some(judgement) = &self.judgement else {
            return Ok(());
        };
        let finishes = self.comparison.as_ref().and_then(|it| it.finishes.as_ref());
        let judged = Judged {
            policy: run.entry.name,
            verdict: &judgement.verdict,
            objection,
            alike: &judgement.alike,
            distinguished: &judgement.distinguished,
            finishes,
        };
        console.text(&shiftwork_report::judged(
            &judged,
            self.reaction.as_ref(),
            colour,
        ))
    }
}

/// The parts of a decision's way that were measured, by name.
fn parts(overheads: &Overheads) -> Vec<(&'static str, ReactionStatistics)> {
    let all = [
        ("report", &overheads.report),
        ("decide", &overheads.decide),
        ("kick", &overheads.kick),
        ("switch", &overheads.switch),
        ("scheduling", &overheads.scheduling),
        ("dispatch", &overheads.dispatch),
    ];
    let statistics = |(name, spans): (_, &Vec<Span>)| {
        let mut reactions = Reactions::default();
        spans.iter().for_each(|&span| reactions.add(span));
        reactions.statistics().map(|it| (name, it))
    };
    all.into_iter().filter_map(statistics).collect()
}

/// As the report says it of reactions; exact values are in JSON.
fn percentiles(it: &ReactionStatistics) -> String {
    let micros = |ns: u64| format!("{:.1} us", ns as f64 / 1e3);
    format!(
        "p50 {}, p99 {}, p99.9 {}, max {} ({} samples)",
        micros(it.p50_ns),
        micros(it.p99_ns),
        micros(it.p99_9_ns),
        micros(it.max_ns),
        it.samples
    )
}
