//! `shiftwork study run`: works off what is missing of a study.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use shiftwork_study::{Options, Outcome, Plan, Progress, run as run_study};

use super::failure;
use super::output::show;
use crate::args::StudyRunArgs;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::verb::watch::{catch_interrupts, is_interrupted};

/// Runs the study, and shows what is known then.
pub fn run(args: &StudyRunArgs, console: &mut Console) -> Result<Answer, Failure> {
    let mut plan = Plan::load(&args.file).map_err(failure)?;
    if let Some(sets) = args.sets {
        plan.file.sets = sets;
    }
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => usual_folder(&args.file)?,
    };
    let options = Options {
        threads: args.threads.unwrap_or(0),
        shard: args.shard,
    };
    let outcome = watched(&plan, &folder, options, console).map_err(failure)?;
    for remark in &outcome.remarks {
        console.note(format!("note: {}: {remark}", folder.display()));
    }
    show(&outcome.results, console)?;
    console.flush()?;
    console.note(in_words(args, &outcome));
    Ok(match outcome.missing_here {
        0 => Answer::Yes,
        _ if is_interrupted() => Answer::Interrupted,
        _ => Answer::No,
    })
}

/// `studies/a.toml` is kept in `studies/a`.
fn usual_folder(file: &Path) -> Result<PathBuf, Failure> {
    match file.extension() {
        Some(_) => Ok(file.with_extension("")),
        None => Err(Failure::input(format_args!(
            "{}: the folder of a study is called like its file without `.toml`, which this one has not; say with \
             --out DIR where to keep it",
            file.display()
        ))),
    }
}

fn watched(
    plan: &Plan,
    folder: &Path,
    options: Options,
    console: &Console,
) -> Result<Outcome, shiftwork_study::StudyError> {
    catch_interrupts();
    let bar = match console.shows_progress() {
        true => ProgressBar::new(0).with_style(
            ProgressStyle::with_template(TEMPLATE)
                .expect("the template is a constant that a test draws"),
        ),
        false => ProgressBar::hidden(),
    };
    let outcome = run_study(plan, folder, options, &mut |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        bar.set_message(time_left(progress));
        !is_interrupted()
    });
    bar.finish_and_clear();
    outcome
}

const TEMPLATE: &str = "{wide_bar} {percent:>3}%  {pos} of {len} task sets  {msg}";

fn time_left(progress: &Progress) -> String {
    match progress.left {
        Some(left) => {
            let left = humantime::format_duration(Duration::from_secs(left.as_secs() + 1));
            // Two units are exact enough.
            let words: Vec<String> = left
                .to_string()
                .split(' ')
                .take(2)
                .map(str::to_owned)
                .collect();
            format!("{} left", words.join(" "))
        }
        None => String::new(),
    }
}

/// How far the study is, and how to go on.
fn in_words(args: &StudyRunArgs, outcome: &Outcome) -> String {
    let path = outcome.path.display();
    let (kept, parts) = outcome.kept;
    let have = format!(
        "{} task sets in this run, {kept} in {parts} parts altogether",
        outcome.added
    );
    match (outcome.missing_here, outcome.missing) {
        (_, 0) => format!("{have}: complete; the results are in {path}"),
        (0, missing) => format!(
            "{have}: share {} is complete, {missing} of other shares are not there; the results so far are in {path}",
            args.shard
        ),
        (missing, _) => format!(
            "{have}: stopped with {missing} to go; the same command goes on, the results so far are in {path}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_sound() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }

    #[test]
    fn the_time_left_has_two_units() {
        let text = |left| {
            time_left(&Progress {
                done: 1,
                total: 2,
                elapsed: Duration::ZERO,
                left,
            })
        };
        assert_eq!(
            text(Some(Duration::from_secs(3 * 3_600 + 61))),
            "3h 1m left"
        );
        assert_eq!(text(Some(Duration::ZERO)), "1s left");
        assert_eq!(text(None), "");
    }

    #[test]
    fn the_folder_is_called_like_the_file() {
        assert_eq!(
            usual_folder(Path::new("a/b.toml")).unwrap(),
            Path::new("a/b")
        );
        assert!(usual_folder(Path::new("a.d/b")).is_err());
    }
}
