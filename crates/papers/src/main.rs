//! `shiftwork-papers [DIR]`: computes again what papers publish, and writes a page about each into DIR, which
//! is docs/papers unless named.

use std::path::PathBuf;
use std::process::ExitCode;

use shiftwork_papers::pages;

fn main() -> ExitCode {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("docs/papers"), PathBuf::from);
    match write(&folder) {
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

fn write(folder: &std::path::Path) -> Result<usize, String> {
    let mut all = pages::quick()?;
    all.extend(pages::slow()?);
    for page in &all {
        page.write(folder)
            .map_err(|error| format!("{}: {error}", folder.join(&page.path).display()))?;
    }
    Ok(all.len())
}
