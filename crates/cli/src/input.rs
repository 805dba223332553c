//! Reading what the user names: task-set files, rt-app files, overhead files, scenarios.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};
use shiftwork_model::TaskSet;
use shiftwork_taskset::{TasksetError, import, read_in};

use crate::catalogue;
use crate::failure::Failure;
use crate::output::Console;

/// No file of ours is larger; a disk that is piped in by mistake is refused.
const BYTES_MAX: u64 = 256 << 20;

/// A text and where it comes from.
#[derive(Clone, Debug)]
pub struct Input {
    /// As the user named it; `<stdin>` for `-`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl Input {
    /// Reads a file, or stdin for `-`.
    ///
    /// # Errors
    /// If it cannot be read, is too large or is no text.
    pub fn read(path: &str) -> Result<Self, Failure> {
        let (path, bytes) = read_bytes(path)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::in_file(
                &path,
                format_args!("byte {at} is no UTF-8; a text file is expected"),
            )
        })?;
        // Some editors begin a file with a byte order mark; no format of ours knows one.
        let text = text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text);
        Ok(Self { path, text })
    }

    /// The failure of a reader on this text, with all mistakes.
    pub fn refused(&self, error: &TasksetError) -> Failure {
        Failure::refused(&self.path, &self.text, error)
    }

    /// A fingerprint of the text, to compare two texts by.
    pub fn hash(&self) -> String {
        fingerprint(self.text.as_bytes())
    }

    /// Makes the paths of the programs of tasks relative to the folder of this file. A program name
    /// without a slash is looked up in `PATH`, as a shell does.
    pub fn locate_programs(&self, set: &mut TaskSet) {
        for program in set
            .tasks
            .iter_mut()
            .filter_map(|task| task.command.first_mut())
        {
            if program.contains('/') {
                *program = self.beside(program);
            }
        }
    }

    /// The path of a file that this one names, relative to where this one is.
    pub fn beside(&self, name: &str) -> String {
        let folder = Path::new(&self.path).parent();
        match folder.filter(|_| self.path != STDIN) {
            Some(folder) => folder.join(name).display().to_string(),
            None => name.to_owned(),
        }
    }
}

/// How stdin is shown in messages.
pub const STDIN: &str = "<stdin>";

/// Reads the bytes of a file, or of stdin for `-`; the path is returned as messages show it.
///
/// # Errors
/// If it cannot be read or is too large.
pub fn read_bytes(path: &str) -> Result<(String, Vec<u8>), Failure> {
    let shown = if path == "-" { STDIN } else { path };
    let mut bytes = Vec::new();
    let read = if path == "-" {
        read_some(&mut io::stdin().lock(), &mut bytes)
    } else {
        File::open(path).and_then(|mut file| read_some(&mut file, &mut bytes))
    };
    read.map_err(|error| Failure::reading(shown, &error))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::in_file(
            shown,
            format_args!("is larger than {} MiB", BYTES_MAX >> 20),
        ));
    }
    Ok((shown.to_owned(), bytes))
}

fn read_some(from: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<usize> {
    from.take(BYTES_MAX + 1).read_to_end(bytes)
}

/// `sha256:` and the digest in hexadecimal.
pub fn fingerprint(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Reads a task set: our own format, or an rt-app file, which is converted on the way. What cannot
/// be carried over is noted.
///
/// # Errors
/// All mistakes in the text, each with its place; of an rt-app file the first. A set without tasks is one: every
/// answer about it would be a good one.
pub fn task_set(input: &Input, console: &Console) -> Result<TaskSet, Failure> {
    let set = match looks_like_json(input) {
        true => rt_app(input, console)?,
        false => read_in(&input.text, &catalogue::environment())
            .map_err(|error| input.refused(&error))?,
    };
    match set.tasks.is_empty() {
        false => Ok(set),
        true => Err(Failure::in_file(
            &input.path,
            "has no tasks, so there is nothing to schedule; write at least one [[task]] with `name`, `cost` and `period`",
        )),
    }
}

fn rt_app(input: &Input, console: &Console) -> Result<TaskSet, Failure> {
    let imported = import::rt_app::read(&input.text).map_err(|error| input.refused(&error))?;
    for left_out in &imported.left_out {
        console.note(format!("note: {}: left out: {left_out}", input.path));
    }
    Ok(named_after(input, imported.set))
}

/// Files of other tools have no name inside; the file's own serves.
pub fn named_after(input: &Input, set: TaskSet) -> TaskSet {
    if !set.name.is_empty() || input.path == STDIN {
        return set;
    }
    let stem = Path::new(&input.path).file_stem();
    let name = stem
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    TaskSet { name, ..set }
}

/// Whether a text is meant as JSON: by its name, or because it begins with a brace (after comments,
/// with which rt-app files like to begin; a task-set file cannot).
fn looks_like_json(input: &Input) -> bool {
    input.path.ends_with(".json") || input.text.trim_start().starts_with(['{', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(path: &str, text: &str) -> Input {
        Input {
            path: path.into(),
            text: text.into(),
        }
    }

    #[test]
    fn files_are_found_beside_the_file_that_names_them() {
        assert_eq!(input("sets/a.toml", "").beside("o.toml"), "sets/o.toml");
        assert_eq!(input("a.toml", "").beside("o.toml"), "o.toml");
        assert_eq!(input("a.toml", "").beside("/etc/o.toml"), "/etc/o.toml");
        assert_eq!(input(STDIN, "").beside("o.toml"), "o.toml");
    }

    #[test]
    fn program_with_a_slash_is_beside_the_file_and_another_in_path() {
        let program = |path: &str, command: &str| {
            let text = format!(
                "platform.cpus = 1\n[[task]]\nname = \"a\"\ncost = \"1ms\"\nperiod = \"2ms\"\ncommand = [\"{command}\", \"./x\"]"
            );
            let mut set = shiftwork_taskset::read(&text).unwrap();
            input(path, "").locate_programs(&mut set);
            set.tasks[0].command.join(" ")
        };
        assert_eq!(program("sets/a.toml", "./imu"), "sets/./imu ./x");
        assert_eq!(program("sets/a.toml", "bin/imu"), "sets/bin/imu ./x");
        assert_eq!(program("sets/a.toml", "imu"), "imu ./x");
        assert_eq!(program("sets/a.toml", "/bin/imu"), "/bin/imu ./x");
        assert_eq!(program("a.toml", "./imu"), "./imu ./x");
        assert_eq!(program(STDIN, "./imu"), "./imu ./x");
    }

    #[test]
    fn json_is_recognized_by_file_name_or_first_character() {
        assert!(looks_like_json(&input("a.json", "")));
        assert!(looks_like_json(&input("-", "/* x */ {")));
        assert!(looks_like_json(&input("-", "\n {")));
        assert!(!looks_like_json(&input("a.toml", "# x\n[platform]")));
    }

    #[test]
    fn the_fingerprint_is_the_standard_one() {
        assert_eq!(
            fingerprint(b"abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
