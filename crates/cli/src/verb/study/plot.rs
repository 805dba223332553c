//! `shiftwork study plot`: pictures of what came of a study.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_study::{PARTIAL, RESULTS, Results, figures, page};
use shiftwork_trace::SCHEMA_VERSION;

use super::failure;
use crate::args::StudyPlotArgs;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::output_files::{self, OutputFile};

/// The page with all figures.
const INDEX: &str = "index.html";

/// What `study plot --json` prints, one line for each figure.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlotOutput<'a> {
    schema_version: u64,
    /// What is drawn.
    title: &'a str,
    /// The picture.
    svg: String,
    /// What is drawn, as a table.
    csv: String,
}

/// Draws all figures, with their data beside them and one page with all.
pub fn run(args: &StudyPlotArgs, console: &mut Console) -> Result<Answer, Failure> {
    let source = source(&args.results)?;
    if source.file_name().is_some_and(|name| name == PARTIAL) {
        console.note(format!(
            "note: {}: the study is not complete",
            source.display()
        ));
    }
    let results = Results::read(&source).map_err(failure)?;
    let usual = || source.parent().unwrap_or(Path::new("")).to_owned();
    let folder = args.out.clone().unwrap_or_else(usual);
    fs::create_dir_all(&folder).map_err(|error| not_written(&folder, &error))?;
    let figures = figures(&results);
    let stems = figures.iter().map(|figure| figure.stem.as_str());
    let pictures = stems.flat_map(|stem| [format!("{stem}.svg"), format!("{stem}.csv")]);
    let names = pictures.chain([INDEX.to_owned()]);
    let outputs = names.filter_map(|name| OutputFile::of("study plot", Some(folder.join(name))));
    output_files::check([source.display().to_string().as_str()], outputs)?;
    for figure in &figures {
        let svg = write(&folder, &format!("{}.svg", figure.stem), &figure.svg)?;
        let csv = write(&folder, &format!("{}.csv", figure.stem), &figure.csv)?;
        match console.json {
            true => console.json_line(&PlotOutput {
                schema_version: SCHEMA_VERSION,
                title: &figure.title,
                svg,
                csv,
            })?,
            false => console.line(svg)?,
        }
    }
    let index = write(&folder, INDEX, &page(&results, &figures))?;
    console.flush()?;
    console.note(format!("all figures on one page: {index}"));
    Ok(Answer::Yes)
}

/// The file with the results: the one that is named, or that of a folder.
fn source(named: &Path) -> Result<PathBuf, Failure> {
    if !named.is_dir() {
        return Ok(named.to_owned());
    }
    let files = [RESULTS, PARTIAL].map(|name| named.join(name));
    files.into_iter().find(|file| file.exists()).ok_or_else(|| {
        Failure::in_file(
            &named.display().to_string(),
            format_args!("there is no {RESULTS}; `shiftwork study run` writes one"),
        )
    })
}

fn write(folder: &Path, name: &str, text: &str) -> Result<String, Failure> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| not_written(&path, &error))?;
    Ok(path.display().to_string())
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::writing(&path.display().to_string(), error)
}
