//! `shiftwork export`: a task set as files that run without shiftwork.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_model::TaskSet;
use shiftwork_taskset::export::{Exported, ExportedFile, PolicyUse, chrt, rt_app, systemd};
use shiftwork_trace::SCHEMA_VERSION;

use crate::args::{ExportArgs, ExportFormat};
use crate::catalogue;
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
use crate::output::Console;
use crate::output_files::{self, OutputFile};

/// What `export --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportOutput {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// The format that was written: `systemd`, `chrt` or `rt-app`.
    pub format: &'static str,
    /// What the task set says and the files do not.
    pub left_out: Vec<String>,
    /// The files, in the order of the tasks.
    pub files: Vec<FileOutput>,
}

/// One file of an export.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileOutput {
    /// The name of the unit; null for formats that prescribe no name.
    pub name: Option<String>,
    /// Where the file was written; null without `--output`.
    pub file: Option<String>,
    /// What is in it; null with `--output`.
    pub text: Option<String>,
}

/// Exports one task set.
pub fn run(args: &ExportArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let mut set = input::task_set(&input, console)?;
    make_paths_absolute(&input, &mut set)?;
    let entry = match (&args.policy, &set.scheduler.policy) {
        (Some(name), _) => Some(catalogue::find(name).map_err(Failure::input)?),
        (None, Some(name)) => {
            let refused = |error| Failure::in_file(&input.path, error);
            Some(catalogue::find(name).map_err(refused)?)
        }
        (None, None) => None,
    };
    let policy = entry.map(|entry| PolicyUse {
        name: entry.name,
        traits: &entry.traits,
    });
    let (format, exported) = match args.format {
        ExportFormat::Systemd => ("systemd", systemd(&set, policy)),
        ExportFormat::Chrt => ("chrt", chrt(&set, policy)),
        ExportFormat::RtApp => ("rt-app", rt_app(&set, policy)),
    };
    for left_out in &exported.left_out {
        console.note(format!("note: {}: left out: {left_out}", input.path));
    }
    if args.strict && !exported.left_out.is_empty() {
        return Err(Failure::in_file(
            &input.path,
            format_args!(
                "{} things cannot be carried over, and --strict accepts no loss: {}",
                exported.left_out.len(),
                exported.left_out.join("; ")
            ),
        ));
    }
    let Exported { files, left_out } = exported;
    let files = match &args.output {
        Some(path) => {
            let targets = files.iter().map(|file| target(path, file));
            let targets = targets.filter_map(|path| OutputFile::of("--output", Some(path)));
            output_files::check([args.file.as_str()], targets)?;
            written(path, args.format, files)?
        }
        None => files.into_iter().map(shown).collect(),
    };
    if console.json {
        console.json_line(&ExportOutput {
            schema_version: SCHEMA_VERSION,
            format,
            left_out,
            files,
        })?;
    } else {
        for file in files {
            if let (Some(name), Some(_)) = (&file.name, &file.text) {
                console.line(format!("# {name}"))?;
            }
            console.text(&file.text.unwrap_or_default())?;
        }
    }
    Ok(Answer::Yes)
}

/// The files of an export are read elsewhere than beside the task-set file.
fn make_paths_absolute(input: &Input, set: &mut TaskSet) -> Result<(), Failure> {
    input.locate_programs(set);
    let programs = set
        .tasks
        .iter_mut()
        .filter_map(|task| task.command.first_mut());
    for program in programs.filter(|program| program.contains('/')) {
        let absolute = std::path::absolute(&*program);
        *program = absolute
            .map_err(|error| Failure::reading(program, &error))?
            .display()
            .to_string();
    }
    Ok(())
}

fn shown(file: ExportedFile) -> FileOutput {
    FileOutput {
        name: file.name,
        file: None,
        text: Some(file.text),
    }
}

/// Where a file of an export goes.
fn target(path: &str, file: &ExportedFile) -> String {
    match &file.name {
        Some(name) => Path::new(path).join(name).display().to_string(),
        None => path.to_owned(),
    }
}

/// Writes the files: units into a folder, anything else to one path.
fn written(
    path: &str,
    format: ExportFormat,
    files: Vec<ExportedFile>,
) -> Result<Vec<FileOutput>, Failure> {
    if format == ExportFormat::Systemd {
        fs::create_dir_all(path).map_err(|error| Failure::writing(path, &error))?;
    }
    let write = |file: ExportedFile| {
        let target = target(path, &file);
        fs::write(&target, &file.text).map_err(|error| Failure::writing(&target, &error))?;
        Ok(FileOutput {
            name: file.name,
            file: Some(target),
            text: None,
        })
    };
    files.into_iter().map(write).collect()
}
