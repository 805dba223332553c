//! `shiftwork man` and `shiftwork completions`: man pages and shell completions, made from the one
//! definition of the command line.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Answer, Failure};
use crate::output::Console;

/// Prints one man page, or writes all of them into a folder.
pub fn man(args: &ManArgs, console: &mut Console) -> Result<Answer, Failure> {
    let mut command = Cli::command();
    command.build();
    if let Some(folder) = &args.out_dir {
        let pages = pages(&command)?;
        write_all(folder, pages, console)?;
        return Ok(Answer::Yes);
    }
    let Some(verb) = &args.verb else {
        console.text(&page(&command)?)?;
        return Ok(Answer::Yes);
    };
    let Some(subcommand) = visible(&command).find(|sub| sub.get_name() == verb) else {
        let known: Vec<&str> = visible(&command).map(Command::get_name).collect();
        return Err(Failure::input(format_args!(
            "there is no verb `{verb}`; the verbs are {}",
            known.join(" ")
        )));
    };
    console.text(&page(subcommand)?)?;
    Ok(Answer::Yes)
}

/// Prints the completions for one shell, or writes those for all into a folder.
pub fn completions(args: &CompletionsArgs, console: &mut Console) -> Result<Answer, Failure> {
    let generate = |shell: Shell| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "shiftwork", &mut script);
        String::from_utf8(script).expect("completion scripts are text")
    };
    if let Some(folder) = &args.out_dir {
        let scripts = [
            ("shiftwork.bash", Shell::Bash),
            ("_shiftwork", Shell::Zsh),
            ("shiftwork.fish", Shell::Fish),
        ];
        let files = scripts.map(|(name, shell)| (name.to_owned(), generate(shell)));
        write_all(folder, files.to_vec(), console)?;
    } else if let Some(shell) = args.shell {
        console.text(&generate(shell))?;
    }
    Ok(Answer::Yes)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

/// The man pages of a command and of all verbs below it, with their file names.
fn pages(command: &Command) -> Result<Vec<(String, String)>, Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut pages = vec![(format!("{name}.1"), page(command)?)];
    for sub in visible(command) {
        pages.extend(self::pages(sub)?);
    }
    Ok(pages)
}

fn page(command: &Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Failure::writing("the man page", &error))?;
    Ok(String::from_utf8(page).expect("man pages are text"))
}

fn write_all(
    folder: &Path,
    files: Vec<(String, String)>,
    console: &mut Console,
) -> Result<(), Failure> {
    let failed = |path: &PathBuf, error| Failure::writing(&path.display().to_string(), &error);
    fs::create_dir_all(folder).map_err(|error| failed(&folder.to_owned(), error))?;
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
        if console.json {
            console.json_line(&path)?;
        } else {
            console.line(path.display().to_string())?;
        }
    }
    Ok(())
}
