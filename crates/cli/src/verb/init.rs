//! `shiftwork init`: a first task-set file, an example or what is measured of a running program.

mod output;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use shiftwork_live::host::System;
use shiftwork_model::{CpuSet, Span};
use shiftwork_observe::{
    Measurement, ObserveError, Options, ProcessTree, Proposal, Sampling, Selection, TraceSession,
    check_names, measure, propose, summary,
};

use crate::args::InitArgs;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::verb::watch::{catch_interrupts, is_interrupted};

pub use output::{CostOutput, InitOutput, PeriodOutput};

/// A task-set file for all who have none.
const EXAMPLE: &str = include_str!("init/example.toml");

/// How often the kernel's trace is read.
const TRACE_INTERVAL: Span = Span::from_ms(20);

/// Writes the example, or measures a process and writes what is proposed.
pub fn run(args: &InitArgs, console: &mut Console) -> Result<Answer, Failure> {
    if let Some(path) = &args.output
        && !args.force
        && Path::new(path).symlink_metadata().is_ok()
    {
        return Err(exists(path));
    }
    match args.pid {
        Some(process) => propose_for(process, args, console),
        None => {
            deliver(EXAMPLE, args, console, |file| {
                InitOutput::example(file, EXAMPLE)
            })?;
            Ok(Answer::Yes)
        }
    }
}

fn propose_for(process: u32, args: &InitArgs, console: &mut Console) -> Result<Answer, Failure> {
    let options = options(args);
    catch_interrupts();
    let measured = match args.sampled {
        true => sample(process, args, &options),
        false => trace(process, args, &options),
    };
    let (measurement, has_ended) = measured.map_err(|error| failure_of_trace(&error))?;
    let proposal = propose(&measurement, &options).map_err(|error| failure(&error))?;
    say(&measurement, has_ended, args, console);
    let has_tasks = !proposal.set.tasks.is_empty();
    if has_tasks {
        let toml = proposal.to_toml();
        deliver(&toml, args, console, |file| {
            InitOutput::measured(&measurement, &proposal, file, Some(&toml))
        })?;
    } else {
        console.note(no_tasks(&measurement, &proposal));
        if console.json {
            console.json_line(&InitOutput::measured(&measurement, &proposal, None, None))?;
        }
    }
    Ok(match is_interrupted() {
        true => Answer::Interrupted,
        false => Answer::from_truth(has_tasks),
    })
}

fn options(args: &InitArgs) -> Options {
    let online = System::this().online();
    Options {
        selection: match args.threads.is_empty() {
            false => Selection::Named(args.threads.clone()),
            true if args.all_threads => Selection::All,
            true => Selection::Regular,
        },
        margin_percent: args.margin,
        percentile: args.percentile,
        online: online.unwrap_or_else(|| CpuSet::first(1)),
    }
}

/// Measures by the kernel's trace; also returns whether the process ended before the time was over.
fn trace(
    process: u32,
    args: &InitArgs,
    options: &Options,
) -> Result<(Measurement, bool), ObserveError> {
    let mut session = TraceSession::begin(ProcessTree::of(process)?)?;
    check_names(session.names(), &args.threads)?;
    let mut is_there = true;
    while is_there && session.elapsed() < args.duration && !is_interrupted() {
        pause(TRACE_INTERVAL, session.elapsed(), args.duration);
        is_there = session.poll()?;
    }
    let recording = session.finish()?;
    Ok((measure(&recording, options.percentile), !is_there))
}

/// The same by counters.
fn sample(
    process: u32,
    args: &InitArgs,
    options: &Options,
) -> Result<(Measurement, bool), ObserveError> {
    let mut sampling = Sampling::begin(ProcessTree::of(process)?)?;
    if let Selection::Named(names) = &options.selection {
        check_names(sampling.names(), names)?;
    }
    let mut is_there = true;
    while is_there && sampling.elapsed() < args.duration && !is_interrupted() {
        pause(sampling.interval(), sampling.elapsed(), args.duration);
        is_there = sampling.poll();
    }
    Ok((sampling.finish(), !is_there))
}

/// Sleeps so long, but not beyond the end.
fn pause(interval: Span, elapsed: Span, duration: Span) {
    let left = duration.saturating_sub(elapsed);
    thread::sleep(Duration::from_nanos(interval.min(left).as_ns()));
}

/// Says on stderr what was seen, and what was not.
fn say(measurement: &Measurement, has_ended: bool, args: &InitArgs, console: &Console) {
    let span = |span: Span| shiftwork_report::span(span.as_ns());
    let process = measurement.process;
    if has_ended {
        console.note(format!(
            "note: process {process} ended after {}; what was measured until then is proposed",
            span(measurement.length)
        ));
    } else if is_interrupted() {
        console.note(format!(
            "note: interrupted after {} of {}; what was measured until then is proposed",
            span(measurement.length),
            args.duration
        ));
    }
    if measurement.gaps > 0 {
        console.note(format!(
            "note: the kernel lost events {} times; jobs at these times are left out",
            measurement.gaps
        ));
    }
    if measurement.unreadable > 0 {
        console.note(format!(
            "note: {} lines of the kernel's trace could not be read",
            measurement.unreadable
        ));
    }
    if args.sampled {
        console.note(
            "note: by counters alone: costs and periods are mean values, and triggers are not seen; as root, without \
             --sampled, each job is measured",
        );
    }
    console.note(summary(measurement));
}

fn no_tasks(measurement: &Measurement, proposal: &Proposal) -> String {
    let reasons = proposal.left_out.iter().filter_map(|it| {
        let thread = measurement.find(it.id)?;
        Some(format!(
            "\n  `{}` (thread {}): {}",
            thread.label(measurement),
            it.id,
            it.reason
        ))
    });
    format!(
        "no task set is proposed, since no thread of process {} or of what it started has enough jobs in {}; --for measures longer:{}",
        measurement.process,
        shiftwork_report::span(measurement.length.as_ns()),
        reasons.collect::<String>()
    )
}

/// Writes the file, or prints it.
fn deliver(
    toml: &str,
    args: &InitArgs,
    console: &mut Console,
    output: impl FnOnce(Option<&str>) -> InitOutput,
) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        create(path, toml, args.force)?;
    }
    if console.json {
        console.json_line(&output(args.output.as_deref()))
    } else if let Some(path) = &args.output {
        console.note(format!(
            "{path}: written; `shiftwork analyze {path}` says what is guaranteed"
        ));
        Ok(())
    } else {
        console.text(toml)
    }
}

fn create(path: &str, toml: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    match force {
        true => options.write(true).create(true).truncate(true),
        // Another file may be there by now.
        false => options.write(true).create_new(true),
    };
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(toml.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::writing(path, &error),
    })
}

fn exists(path: &str) -> Failure {
    Failure::in_file(
        path,
        "exists already; name another file, or overwrite it with --force",
    )
}

/// The failure of a measurement.
pub fn failure(error: &ObserveError) -> Failure {
    match error.is_input() {
        true => Failure::input(error),
        false => Failure::Machine(error.to_string()),
    }
}

/// The same where counters may be asked for instead.
fn failure_of_trace(error: &ObserveError) -> Failure {
    match error.leaves_counters() {
        true => Failure::Machine(format!(
            "{error}; `--sampled` needs no trace, but finds mean values only and no triggers"
        )),
        false => failure(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_is_a_task_set_with_something_of_everything() {
        let set = shiftwork_taskset::read(EXAMPLE).unwrap();
        assert_eq!((set.tasks.len(), set.chains.len()), (3, 1));
        assert!(set.first_triggered().is_some());
        assert!(EXAMPLE.lines().all(|line| line.len() <= 100));
    }
}
