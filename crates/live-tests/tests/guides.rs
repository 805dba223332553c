//! What the pages of docs/ run as root: on a real kernel it does what the pages say.

use std::fs;
use std::process::Command;

use crate::command::folder;
use crate::service::both;

const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");

/// The task set of the tutorial keeps the guarantee that the tutorial speaks of, and does as its policy decides.
pub fn run_of_the_tutorial_keeps_its_guarantee() -> Result<(), String> {
    let folder = folder();
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let set = TUTORIAL.split("```toml\n").nth(1);
    let set = set.and_then(|it| it.split("```").next());
    let set = set.ok_or("the tutorial has no task set")?;
    fs::write(folder.join("robot.toml"), set).map_err(|error| error.to_string())?;
    let mut runs = TUTORIAL
        .lines()
        .filter_map(|line| line.strip_prefix("$ sudo shiftwork "));
    let run = runs.next().ok_or("the tutorial runs nothing")?;
    let output = Command::new("shiftwork")
        // A part of the time is enough.
        .args(
            run.split(' ')
                .map(|it| if it == "10s" { "300ms" } else { it }),
        )
        // CPU 0 is left to the test process.
        .args(["--on-cpus", "1-2", "--strict"])
        .current_dir(&folder)
        .output()
        .map_err(|error| error.to_string())?;
    let printed = both(&output);
    println!("{printed}");
    if !output.status.success() {
        return Err(format!("it ended by {}", output.status));
    }
    for expected in ["guarantee hard", "the run agrees with strong-edf"] {
        if !printed.contains(expected) {
            return Err(format!("it does not say: {expected}"));
        }
    }
    let page = fs::read(folder.join("measured.html")).map_err(|error| error.to_string())?;
    match page.starts_with(b"<!DOCTYPE html>") {
        true => Ok(()),
        false => Err("the report is no page".to_owned()),
    }
}
