//! `shiftwork-papers [DIR [LIVE]]`: computes again what papers publish, and writes a page about each into DIR, which
//! is docs/papers unless named. LIVE is a file with what the live tests printed of overheads.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use shiftwork_papers::pages;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments
        .next()
        .unwrap_or_else(|| PathBuf::from("docs/papers"));
    match write(&folder, arguments.next().as_deref()) {
        Ok(count) => {
            println!("{count} files in {}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("shiftwork-papers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path, live: Option<&Path>) -> Result<usize, String> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let live = live.map(read).transpose()?;
    // What is measured comes first, while nothing else has warmed anything up.
    let mut all = pages::measured(live.as_deref())?;
    all.extend(pages::quick()?);
    all.extend(pages::slow()?);
    for page in &all {
        page.write(folder)
            .map_err(|error| format!("{}: {error}", folder.join(&page.path).display()))?;
    }
    Ok(all.len())
}
