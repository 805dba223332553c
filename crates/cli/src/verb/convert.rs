//! `shiftwork convert`: task sets of other tools into our format.

use std::fs;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_taskset::import::{Imported, Options, rt_app, schedcat, simso};
use shiftwork_taskset::{TasksetError, write};
use shiftwork_trace::SCHEMA_VERSION;

use crate::args::{ConvertArgs, ConvertFrom};
use crate::failure::{Answer, Failure};
use crate::input::{Input, named_after};
use crate::output::Console;
use crate::output_files::{self, OutputFile};

/// What `convert --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConvertedOutput {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// The format that was read: `rt-app`, `simso` or `schedcat`.
    pub from: &'static str,
    /// What could not be carried over.
    pub left_out: Vec<String>,
    /// Where the task set was written; null without `--output`.
    pub file: Option<String>,
    /// The task-set file; null with `--output`.
    pub toml: Option<String>,
}

/// A format that can be read: its name, and its reader.
type Format = (
    &'static str,
    fn(&str, &Options) -> Result<Imported, TasksetError>,
);

const RT_APP: Format = ("rt-app", rt_app::read_with);
/// SimSo's files say everything.
const SIMSO: Format = ("simso", |text, _| simso::read(text));
const SCHEDCAT: Format = ("schedcat", schedcat::read_with);

/// Converts one file.
pub fn run(args: &ConvertArgs, console: &mut Console) -> Result<Answer, Failure> {
    let output = OutputFile::of("--output", args.output.as_ref());
    output_files::check([args.file.as_str()], output)?;
    let input = Input::read(&args.file)?;
    let (from, read) = match args.from {
        ConvertFrom::RtApp => RT_APP,
        ConvertFrom::Simso => SIMSO,
        ConvertFrom::Schedcat => SCHEDCAT,
        ConvertFrom::Auto => recognize(&input)?,
    };
    let options = Options {
        cpus: args.cpus.map(usize::from),
        unit: args.unit,
    };
    let imported = read(&input.text, &options).map_err(|error| input.refused(&error))?;
    for left_out in &imported.left_out {
        console.note(format!("note: {}: left out: {left_out}", input.path));
    }
    if args.strict && !imported.left_out.is_empty() {
        return Err(Failure::in_file(
            &input.path,
            format_args!(
                "{} things cannot be carried over, and --strict accepts no loss: {}",
                imported.left_out.len(),
                imported.left_out.join("; ")
            ),
        ));
    }
    let toml = write(&named_after(&input, imported.set));
    if let Some(path) = &args.output {
        fs::write(path, &toml).map_err(|error| Failure::writing(path, &error))?;
    }
    if console.json {
        console.json_line(&ConvertedOutput {
            schema_version: SCHEMA_VERSION,
            from,
            left_out: imported.left_out,
            file: args.output.clone(),
            toml: args.output.is_none().then_some(toml),
        })?;
    } else if args.output.is_none() {
        console.text(&toml)?;
    }
    Ok(Answer::Yes)
}

/// Recognises the format by how the text begins: JSON is rt-app's; of the two XML formats, the
/// name of the outermost element decides.
fn recognize(input: &Input) -> Result<Format, Failure> {
    let text = input.text.trim_start();
    if !text.starts_with('<') {
        if looks_like_toml(text) {
            return Err(Failure::in_file(
                &input.path,
                "is a task-set file already; rt-app, SimSo and SchedCAT files can be converted",
            ));
        }
        return Ok(RT_APP);
    }
    match outermost_element(text) {
        Some("simulation") => Ok(SIMSO),
        Some("taskset") => Ok(SCHEDCAT),
        found => Err(Failure::in_file(
            &input.path,
            format_args!(
                "begins with the element <{}>; SimSo's files begin with <simulation>, SchedCAT's \
                 with <taskset>; --from names the format",
                found.unwrap_or_default()
            ),
        )),
    }
}

/// rt-app's files begin with a brace or a comment of C, ours with neither.
fn looks_like_toml(text: &str) -> bool {
    text.starts_with(['#', '[']) || text.lines().next().is_some_and(|line| line.contains(" = "))
}

/// The name of the first element, after declarations and comments.
fn outermost_element(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start().strip_prefix('<')?;
        let end = if rest.starts_with("!--") {
            "-->"
        } else if rest.starts_with(['?', '!']) {
            ">"
        } else {
            let name = rest
                .split(|c: char| !c.is_alphanumeric() && !"_-:.".contains(c))
                .next();
            return name.filter(|name| !name.is_empty());
        };
        rest = &rest[rest.find(end)? + end.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_of(text: &str) -> Result<&'static str, String> {
        let input = Input {
            path: "f".into(),
            text: text.into(),
        };
        recognize(&input)
            .map(|(name, _)| name)
            .map_err(|failure| failure.render(false))
    }

    #[test]
    fn formats_are_recognized_by_content() {
        assert_eq!(format_of("/* c */ { \"tasks\" : {} }"), Ok("rt-app"));
        assert_eq!(
            format_of("<?xml version=\"1.0\"?>\n<!-- x -->\n<simulation a='1'>"),
            Ok("simso")
        );
        assert_eq!(format_of("<taskset>"), Ok("schedcat"));
    }

    #[test]
    fn what_is_no_known_format_is_named() {
        let found = format_of("<html>").unwrap_err();
        assert!(
            found.contains("<html>") && found.contains("<simulation>"),
            "{found}"
        );
        assert!(format_of("name = \"x\"\n").unwrap_err().contains("already"));
        assert!(format_of("<!-- never closed").unwrap_err().contains("<>"));
    }
}
