//! The files that a verb reads and writes: none of them may be the same one.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::input::STDIN;

/// So many symbolic links are followed, as in Linux.
const LINKS_MAX: usize = 40;

/// A file that is to be written, and the option that names it.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// As on the command line, with its dashes.
    pub option: &'static str,
    /// Where the file goes.
    pub path: PathBuf,
}

impl OutputFile {
    /// The file that this option names, if the option was given.
    pub fn of(option: &'static str, path: Option<impl AsRef<Path>>) -> Option<Self> {
        path.map(|path| Self {
            option,
            path: path.as_ref().to_owned(),
        })
    }
}

/// Refuses to write over a file that is read, or to write a file twice, before anything is computed. Files are compared
/// by what they are, not by how they are called. Pipes, terminals and devices can be read and written at once.
///
/// # Errors
/// The first file that would be overwritten.
pub fn check<'a>(
    inputs: impl IntoIterator<Item = &'a str>,
    outputs: impl IntoIterator<Item = OutputFile>,
) -> Result<(), Failure> {
    let identified = |path: &'a str| Some((path, Identity::of(read_from(path))?));
    let inputs: Vec<(&str, Identity)> = inputs.into_iter().filter_map(identified).collect();
    let mut taken: Vec<(OutputFile, Identity)> = Vec::new();
    for output in outputs {
        let Some(identity) = Identity::of(&output.path) else {
            continue;
        };
        if let Some((input, _)) = inputs.iter().find(|(_, other)| *other == identity) {
            return Err(overwrites_input(&output, input));
        }
        if let Some((other, _)) = taken.iter().find(|(_, other)| *other == identity) {
            return Err(written_twice(other, &output));
        }
        taken.push((output, identity));
    }
    Ok(())
}

fn read_from(path: &str) -> &Path {
    match path {
        "-" | STDIN => Path::new("/dev/stdin"),
        path => Path::new(path),
    }
}

fn overwrites_input(output: &OutputFile, input: &str) -> Failure {
    let OutputFile { option, path } = output;
    let shown = path.display();
    let same = match input {
        "-" | STDIN => String::from("the file that is stdin, "),
        input if path == Path::new(input) => String::new(),
        input => format!("the same file as {input}, "),
    };
    Failure::input(format_args!(
        "{option} would overwrite {shown}, {same}which is read; write to another file"
    ))
}

fn written_twice(first: &OutputFile, second: &OutputFile) -> Failure {
    let (one, other) = (first.path.display(), second.path.display());
    let same = match first.path == second.path {
        true => String::new(),
        false => format!("the same file as {one}, "),
    };
    Failure::input(format_args!(
        "{} and {} would both write {other}, {same}and the second would overwrite the first; name two files",
        first.option, second.option
    ))
}

/// What a file is, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    /// A file that exists: its device and its number there, equal for all hard links.
    Existing(u64, u64),
    /// A file that would be created: its path without symbolic links.
    New(PathBuf),
}

impl Identity {
    /// The file at this path. `None` for what is no regular file, and for what can be neither read nor created: the
    /// attempt gives the better message.
    fn of(path: &Path) -> Option<Self> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            if let Ok(found) = fs::metadata(&path) {
                return found
                    .is_file()
                    .then(|| Self::Existing(found.dev(), found.ino()));
            }
            let folder = match path.parent()? {
                folder if folder.as_os_str().is_empty() => Path::new("."),
                folder => folder,
            };
            // A symbolic link to what does not exist yet: writing creates what it names.
            let Ok(target) = fs::read_link(&path) else {
                return Some(Self::New(
                    folder.canonicalize().ok()?.join(path.file_name()?),
                ));
            };
            path = folder.join(target);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// An empty folder, and a file in it.
    fn folder(name: &str) -> (PathBuf, String) {
        let folder = std::env::temp_dir().join(format!("shiftwork-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("set.toml");
        fs::write(&file, "x").unwrap();
        (folder, file.display().to_string())
    }

    /// The message of a refusal.
    fn refusal(inputs: &[&str], outputs: &[(&'static str, &Path)]) -> Option<String> {
        let outputs = outputs
            .iter()
            .map(|(option, path)| OutputFile::of(option, Some(path)).unwrap());
        let checked = check(inputs.iter().copied(), outputs);
        checked.err().map(|failure| failure.render(false))
    }

    #[test]
    fn input_under_any_name_is_not_overwritten() {
        let (folder, file) = folder("input");
        let (link, hard, detour) = (
            folder.join("link"),
            folder.join("hard"),
            folder.join("../").join(folder.file_name().unwrap()),
        );
        symlink("set.toml", &link).unwrap();
        fs::hard_link(&file, &hard).unwrap();
        assert_eq!(
            refusal(&[&file], &[("--report", Path::new(&file))]).unwrap(),
            format!("error: --report would overwrite {file}, which is read; write to another file")
        );
        for other in [link, hard, detour.join("set.toml")] {
            assert_eq!(
                refusal(&["-", &file], &[("-o", &other)]).unwrap(),
                format!(
                    "error: -o would overwrite {}, the same file as {file}, which is read; write to another file",
                    other.display()
                )
            );
        }
        assert_eq!(refusal(&[&file], &[("-o", &folder.join("new"))]), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_that_do_not_exist_are_compared_without_symbolic_links() {
        let (folder, _) = folder("twice");
        let (new, link, other) = (folder.join("new"), folder.join("l"), folder.join("other"));
        symlink("./new", &link).unwrap();
        assert_eq!(
            refusal(&[], &[("--jobs", &new), ("--report", &new)]).unwrap(),
            format!(
                "error: --jobs and --report would both write {}, and the second would overwrite the first; name two files",
                new.display()
            )
        );
        let by_link = refusal(&[], &[("--jobs", &new), ("--report", &link)]).unwrap();
        assert!(by_link.contains("the same file as"), "{by_link}");
        assert_eq!(refusal(&[], &[("--jobs", &new), ("-o", &other)]), None);
        // What cannot be created is reported by the attempt.
        let nowhere = folder.join("no/file");
        assert_eq!(
            refusal(&[], &[("--jobs", &nowhere), ("-o", &nowhere)]),
            None
        );
        let circle = folder.join("circle");
        symlink("circle", &circle).unwrap();
        assert_eq!(refusal(&[], &[("--jobs", &circle), ("-o", &circle)]), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn devices_may_be_written_twice_and_while_they_are_read() {
        let null = Path::new("/dev/null");
        let outputs = [("--jobs", null), ("--trace", null)];
        assert_eq!(refusal(&["/dev/null"], &outputs), None);
    }
}
