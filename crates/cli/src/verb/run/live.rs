//! Running a task set for real.

use shiftwork_live::{
    Attention, Backend, Ended, LiveError, Options, Plan, Progress, Report, run_while,
};
use shiftwork_model::{CpuId, CpuSet};
use shiftwork_trace::Reactions;
use shiftwork_verbs::replay::Decider;

use super::choice::Chosen;
use super::measured::Measured;
use super::view::View;
use super::{Ending, Start, admission};
use crate::args;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::verb::outputs::{Finished, Outputs};
use crate::verb::watch::{catch_interrupts, is_interrupted};

/// Runs it to the end, or as far as it goes, and compares it with the simulation.
pub fn run(start: Start<'_>, console: &mut Console) -> Result<Answer, Failure> {
    let Start {
        args,
        ref recording,
        entry,
        ..
    } = start;
    let set = recording.set;
    let plan = Plan {
        set,
        traits: entry.traits,
        bound: start.bound(),
        cpus: machine_cpus(args.on_cpus.as_ref(), set.platform.cpus)?,
    };
    let options = Options {
        horizon: args.recording.horizon,
        seed: args.recording.seed,
        reserve: set.scheduler.reserve,
        trace_bytes: args.trace_buffer << 10,
        pin: args.pin.clone(),
    };
    let mut outputs = Outputs::create(recording, entry, false)?;
    if !args.no_compare {
        outputs.keep_records();
    }
    if let Some(why) = &start.why {
        console.note(why);
    }
    admission::announce(&start.admission, console)?;
    catch_interrupts();
    let view = View::new(console, set, recording.wanted());
    let mut recorder = (&mut outputs, view.recorder());
    let admitted = admission::online(&start.admission, entry, set, &plan.bound);
    let backend = backend(&start)?;
    let mut go_on = |progress: &Progress<'_>| {
        view.draw(progress);
        !is_interrupted()
    };
    let report = run_while(
        &plan,
        &options,
        backend,
        admitted,
        &mut recorder,
        &mut go_on,
    );
    view.finish();
    let report = report.map_err(|error| failure(&start, &error))?;
    let finished = outputs.finish(entry, start.policy.packing(), report.events, report.reached);
    let mut measured = measured(report);
    if !args.no_compare {
        look_back(&start, &finished, &mut measured)?;
    }
    let ending = Ending {
        args,
        recording,
        admission: &start.admission,
    };
    ending.conclude(finished, &measured, console)
}

/// Judges what was measured by the policy, and simulates the same.
fn look_back(
    start: &Start<'_>,
    finished: &Finished,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let bound = start.bound();
    let decider = match start.chosen {
        Chosen::Kernel => Decider::Core(&bound),
        Chosen::Agent | Chosen::Fifo | Chosen::Sim => Decider::Policy,
    };
    measured.judge(&start.recording, finished, decider, start.args.window)?;
    measured.compare(&start.recording, finished)
}

/// What decides, and what carries it out.
fn backend(start: &Start<'_>) -> Result<Backend, Failure> {
    let recording = &start.recording;
    let policy = || {
        let built = start.entry.build(recording.set);
        built.map_err(|error| Failure::in_file(&recording.input.path, error))
    };
    let attention = match start.args.agent {
        args::Attention::Dedicated => Attention::Dedicated,
        args::Attention::Shared => Attention::Shared,
    };
    Ok(match start.chosen {
        Chosen::Agent => Backend::Agent(policy()?, attention),
        Chosen::Fifo => Backend::Fifo(policy()?, attention),
        Chosen::Kernel | Chosen::Sim => Backend::Kernel,
    })
}

/// What the machine said of itself.
fn measured(report: Report) -> Measured {
    let statistics = |spans: &[_]| {
        let mut reactions = Reactions::default();
        spans.iter().for_each(|&span| reactions.add(span));
        reactions.statistics()
    };
    Measured {
        reaction: statistics(&report.reaction),
        lateness: statistics(&report.lateness),
        lost: Some(report.lost),
        shifts: Some(report.shifts),
        unloaded: match report.ended {
            Ended::Unloaded { reason } => Some(reason),
            Ended::Horizon | Ended::Stopped => None,
        },
        fault: report.fault,
        notes: report.notes,
        overheads: report.overheads,
        comparison: None,
        judgement: None,
    }
}

/// The machine's CPU for each of the file.
fn machine_cpus(on: Option<&CpuSet>, wanted: usize) -> Result<Vec<CpuId>, Failure> {
    let Some(on) = on else {
        return Ok((0..wanted).map(CpuId::from_index).collect());
    };
    if on.len() != wanted {
        return Err(Failure::input(format_args!(
            "--on-cpus {on} names {} of the machine's CPUs, and the task set is for {wanted}; name as many",
            on.len()
        )));
    }
    Ok(on.iter().collect())
}

/// The words of the machine, and where the fault lies.
fn failure(start: &Start<'_>, error: &LiveError) -> Failure {
    match error {
        LiveError::TaskSet(_) | LiveError::Program { .. } => {
            Failure::in_file(&start.recording.input.path, error)
        }
        LiveError::Machine { .. } if start.args.machine == args::MachineName::Auto => {
            Failure::Machine(format!(
                "{error}\nwithout that, `--machine sim` simulates the same, and `shiftwork doctor` \
                 says all that this machine lacks"
            ))
        }
        _ => Failure::Machine(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_the_file_are_those_of_the_list_in_turn() {
        let numbers = |on: Option<&str>, wanted| {
            let on = on.map(|list| list.parse::<CpuSet>().unwrap());
            machine_cpus(on.as_ref(), wanted)
                .map(|cpus| cpus.iter().map(|cpu| cpu.index()).collect::<Vec<_>>())
        };
        assert_eq!(numbers(None, 3), Ok(vec![0, 1, 2]));
        assert_eq!(numbers(Some("5,2-3"), 3), Ok(vec![2, 3, 5]));
        let refused = numbers(Some("1"), 2).unwrap_err().render(false);
        assert_eq!(
            refused,
            "error: --on-cpus 1 names 1 of the machine's CPUs, and the task set is for 2; name as many"
        );
    }
}
