//! `shiftwork calibrate`: measures what scheduling costs on this machine.
//!
//! `shown.rs` is what of it is printed; the measuring itself is `shiftwork-calibrate`.

mod shown;

use std::fs;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use shiftwork_calibrate::{
    Aim, Calibration, Kind, Part, Plan, absent, calibrate, live_cpus, page, tables,
};
use shiftwork_live::host::{System, obstacle_to_fifo, obstacles};
use shiftwork_live::probe::usable_cpus;
use shiftwork_live::{Attention, host};
use shiftwork_model::CpuSet;
use shiftwork_policy::registry::Entry;
use shiftwork_taskset::overheads::{self, OverheadFile};

use crate::args::{self, CalibrateArgs, CalibratedMachine};
use crate::catalogue;
use crate::failure::{Answer, Failure};
use crate::input::Input;
use crate::output::Console;
use crate::output_files::{self, OutputFile};
use crate::verb::chosen;
use crate::verb::watch::{catch_interrupts, is_interrupted};

pub use shown::CalibrateOutput;

/// Measures, shows, writes and compares.
pub fn run(args: &CalibrateArgs, console: &mut Console) -> Result<Answer, Failure> {
    // What is wrong with files is said before minutes pass.
    let outputs = [
        OutputFile::of("--output", args.output.as_ref()),
        OutputFile::of("--report", args.report.as_ref()),
    ];
    output_files::check(args.check.as_deref(), outputs.into_iter().flatten())?;
    let earlier = match &args.check {
        Some(path) => Some(read_earlier(path)?),
        None => None,
    };
    for path in [&args.output, &args.report].into_iter().flatten() {
        create(path)?;
    }
    let plan = plan(args, console)?;
    let done = measure(&plan, console);
    let working_set = Some(args.working_set).filter(|&bytes| bytes > 0);
    let file = tables(&plan, &done, working_set, &host_name());
    for note in &done.notes {
        console.note(format!("note: {note}"));
    }
    if args.output.is_some() {
        note_what_is_absent(&plan, &done, &file, console);
    }
    let output = CalibrateOutput::new(&plan, &done, earlier.as_ref());
    if console.json {
        console.json_line(&output)?;
    } else {
        output.show(console)?;
    }
    console.flush()?;
    if let Some(path) = &args.output {
        write(path, &overheads::write(&file))?;
    }
    if let Some(path) = &args.report {
        write(path, &page("What scheduling costs on this machine", &done))?;
    }
    Ok(match done.is_interrupted {
        true => Answer::Interrupted,
        false => Answer::from_truth(output.agrees()),
    })
}

/// Says what the overhead file does not cover: its readers would take that for zero.
fn note_what_is_absent(plan: &Plan, done: &Calibration, file: &OverheadFile, console: &Console) {
    let absent: Vec<&str> = absent(plan, done).into_iter().map(Kind::name).collect();
    if !absent.is_empty() {
        console.note(format!(
            "note: not measured, and so not in the overhead file: {}",
            absent.join(" ")
        ));
    }
    if file.tables.is_empty() {
        console.note(
            "note: the overhead file has no table; one needs `decide`, for a live machine `live`, and for an \
             implementation of global EDF that is one of nine `queues`",
        );
    }
}

/// What to measure, as far as this machine can.
fn plan(args: &CalibrateArgs, console: &Console) -> Result<Plan, Failure> {
    let usable = usable_cpus();
    let cpus = args.cpus.unwrap_or(usable);
    let missing = cpus - usable;
    if !missing.is_empty() {
        return Err(Failure::input(format_args!(
            "--cpus {cpus}: this process may not use CPUs {missing}, only {usable}"
        )));
    }
    let (rounds, budget) = Plan::size(args.quick);
    let plan = Plan {
        cpus,
        aim: Aim::InKernel,
        policies: policies(&args.policies)?,
        parts: parts(&args.measure),
        rounds,
        budget: args.budget.unwrap_or(budget),
        // Larger ones take seconds each.
        largest_set: args.largest_set.or(args.quick.then_some(QUICK_SET_MAX)),
    };
    let aim = aim(args, &plan, console)?;
    Ok(Plan { aim, ..plan })
}

/// Which machine is described: the one that is asked for, or the first that can be measured.
fn aim(args: &CalibrateArgs, plan: &Plan, console: &Console) -> Result<Aim, Failure> {
    let attention = match args.agent {
        args::Attention::Dedicated => Attention::Dedicated,
        args::Attention::Shared => Attention::Shared,
    };
    let (agent, fifo) = (Aim::Agent(attention), Aim::Fifo(attention));
    match args.machine {
        CalibratedMachine::InKernel => return Ok(Aim::InKernel),
        CalibratedMachine::Agent => return can(plan, agent).map_err(Failure::Machine),
        CalibratedMachine::Fifo => return can(plan, fifo).map_err(Failure::Machine),
        CalibratedMachine::Auto => {}
    }
    let mut in_the_way = Vec::new();
    for (name, aim) in [("agent", agent), ("fifo", fifo)] {
        match can(plan, aim) {
            Ok(aim) => return Ok(aim),
            Err(why) => in_the_way.push(format!("{name}: {why}")),
        }
    }
    console.note(format!(
        "note: no live machine can be measured here, so the overheads are those of a scheduler inside the \
         kernel; {}",
        in_the_way.join("; ")
    ));
    Ok(Aim::InKernel)
}

/// The live machine if it can be measured here, or what is in the way and what to do about it.
fn can(plan: &Plan, aim: Aim) -> Result<Aim, String> {
    let system = System::this();
    let obstacle: Option<host::Obstacle> = match aim {
        Aim::InKernel => None,
        Aim::Agent(_) => obstacles(&system).into_iter().next(),
        Aim::Fifo(_) => obstacle_to_fifo(&system),
    };
    if let Some(obstacle) = obstacle {
        return Err(obstacle.to_string());
    }
    let plan = Plan {
        aim,
        ..plan.clone()
    };
    match live_cpus(&plan) {
        Some(_) => Ok(aim),
        None => Err(format!(
            "an agent needs a CPU of its own beside CPUs {}, and there is no other; `--machine in-kernel` \
             needs none",
            plan.cpus
        )),
    }
}

/// The parts of these names, or all.
fn parts(names: &[String]) -> Vec<Part> {
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|other| other == name);
    let parts = Part::ALL.into_iter().filter(|(_, name)| is_wanted(name));
    parts.map(|(part, _)| part).collect()
}

/// Those that are named, or all.
fn policies(names: &[String]) -> Result<Vec<&'static Entry>, Failure> {
    if names.is_empty() {
        // Live runs are made under the first, and this one takes any affinities.
        let all = || catalogue::policies();
        let first = all().filter(|entry| entry.name == DEFAULT);
        return Ok(first
            .chain(all().filter(|entry| entry.name != DEFAULT))
            .collect());
    }
    chosen::named(names)
}

/// The largest working set of a quick calibration.
const QUICK_SET_MAX: u64 = 1 << 20;

const DEFAULT: &str = "strong-edf";

/// Measures until it is done or Ctrl-C is pressed.
fn measure(plan: &Plan, console: &Console) -> Calibration {
    const PARTS: u64 = 1_000;
    catch_interrupts();
    let bar = if console.shows_progress() {
        ProgressBar::new(PARTS).with_style(
            ProgressStyle::with_template("{msg:28} {wide_bar} {percent:>3}%")
                .expect("the template is a constant that a test draws"),
        )
    } else {
        console.note(format!(
            "measuring on CPUs {} for about {}",
            plan.cpus, plan.budget
        ));
        ProgressBar::hidden()
    };
    let done = calibrate(plan, &mut |_, name, share| {
        bar.set_message(name);
        bar.set_position((share * PARTS as f64) as u64);
        !is_interrupted()
    });
    bar.finish_and_clear();
    if done.is_interrupted {
        console.note("note: interrupted; what follows is what was measured until then");
    }
    done
}

/// What this machine is called, and what its processor is.
fn host_name() -> String {
    let first_line = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        text.lines().next().map(|line| line.trim().to_owned())
    };
    let name = first_line("/proc/sys/kernel/hostname").unwrap_or_default();
    let model = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    match model {
        Some(model) => format!("{name} ({model})"),
        None => name,
    }
}

fn read_earlier(path: &str) -> Result<CalibrateOutput, Failure> {
    let input = Input::read(path)?;
    serde_json::from_str(&input.text).map_err(|error| {
        Failure::in_file(
            path,
            format_args!("{error}; what `calibrate --json` printed is expected"),
        )
    })
}

fn create(path: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::writing(&path.display().to_string(), &error);
    fs::File::options()
        .append(true)
        .create(true)
        .open(path)
        .map(drop)
        .map_err(failed)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::writing(&path.display().to_string(), &error))
}

/// The CPUs as a list, for JSON.
fn list(cpus: &CpuSet) -> Vec<usize> {
    cpus.iter().map(|cpu| cpu.index()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_sound() {
        assert!(ProgressStyle::with_template("{msg:28} {wide_bar} {percent:>3}%").is_ok());
    }

    #[test]
    fn all_policies_are_calibrated_unless_some_are_named() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            policies(&names).map(|all| all.iter().map(|entry| entry.name).collect::<Vec<_>>())
        };
        let all = named(&[]).unwrap();
        assert_eq!(
            (all[0], all.len()),
            (DEFAULT, catalogue::policies().count())
        );
        assert_eq!(
            named(&["G-EDF", "p-fp", "g-edf"]),
            Ok(vec!["g-edf", "p-fp"])
        );
        assert!(named(&["x"]).is_err());
    }
}
