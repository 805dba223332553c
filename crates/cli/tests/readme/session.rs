//! Pages whose commands are run one after the other, as a reader would type them, and whose outputs are compared.
//!
//! In a page of this kind
//!
//! - a `toml` block is a file if the line before it names one: ``the file `robot.toml`:``;
//! - each line of a `console` block that begins with `$ ` is a command of the shell, and the lines up to the next one are
//!   what it prints, on stdout and stderr; `...` stands for any text, over several lines, too;
//! - a command ends with status 0, or with that of an answer (1 no, 4 undecided), or the next one is `echo $?`;
//! - the commands of a `text` block are only shown;
//! - all other blocks are only text.
//!
//! Commands run in a folder of their own, in which `crates`, `examples`, `studies` and `tests` are those of the repository.
//! `PAGES=overwrite cargo test -p shiftwork-cli --test readme` writes outputs anew that differ; read the difference.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::root;

/// What a page asks its reader to do.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    File {
        name: &'a str,
        text: &'a str,
    },
    Command {
        line: &'a str,
        /// Where in the page the output is.
        output: Range<usize>,
    },
}

/// What came of a command.
struct Outcome {
    printed: String,
    status: i32,
}

/// A block of a page: its language, where its text is, and the line before it.
struct Block<'a> {
    language: &'a str,
    range: Range<usize>,
    before: &'a str,
}

/// The blocks of a page between lines of three backticks.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    let (mut at, mut before) = (0, "");
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(language) = line.strip_prefix("```").map(str::trim_end) {
            match open.take() {
                Some(block) => blocks.push(Block {
                    range: block.range.start..at,
                    ..block
                }),
                None => {
                    open = Some(Block {
                        language,
                        range: next..next,
                        before,
                    });
                }
            }
        } else if !line.trim().is_empty() {
            before = line;
        }
        at = next;
    }
    blocks
}

/// The steps of a page.
fn steps(text: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for block in blocks(text) {
        let file = block.before.split('`').find(|it| it.ends_with(".toml"));
        match (block.language, file) {
            ("toml", Some(name)) => steps.push(Step::File {
                name,
                text: &text[block.range],
            }),
            ("console", _) => commands(text, block.range, &mut steps),
            _ => {}
        }
    }
    steps
}

/// The commands of a page that are only shown, in `text` blocks: they need a machine, or another one.
pub fn shown_commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = blocks(&text);
    let shown = blocks.iter().filter(|it| it.language == "text");
    let lines = shown.flat_map(|it| text[it.range.clone()].lines());
    let commands = lines.filter_map(|line| line.strip_prefix("$ "));
    commands.map(str::to_owned).collect()
}

/// The commands of a block.
fn commands<'a>(text: &'a str, block: Range<usize>, steps: &mut Vec<Step<'a>>) {
    let mut at = block.start;
    for line in text[block].split_inclusive('\n') {
        let end = at + line.len();
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step::Command {
                line: command.trim_end(),
                output: end..end,
            }),
            (None, Some(Step::Command { output, .. })) => output.end = end,
            (None, _) => panic!("a block begins with an output: {line}"),
        }
        at = end;
    }
}

/// Whether a text is the expected one, in which `...` stands for any.
fn is_as_expected(expected: &str, found: &str) -> bool {
    let mut pieces = expected.split("...");
    let Some(mut rest) = found.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// The commands among the steps: each line, and where its output is.
fn commands_of<'a>(steps: &'a [Step<'_>]) -> impl Iterator<Item = (&'a str, Range<usize>)> {
    steps.iter().filter_map(|step| match step {
        Step::Command { line, output } => Some((*line, output.clone())),
        Step::File { .. } => None,
    })
}

/// Fails if a command did not print what the page says, and writes the page anew if that is wanted.
fn compare(page: &str, text: &str, steps: &[Step<'_>], outcomes: &[Outcome]) {
    let (mut rewritten, mut copied) = (String::new(), 0);
    let mut differences = String::new();
    for (Outcome { printed, .. }, (line, output)) in outcomes.iter().zip(commands_of(steps)) {
        let expected = &text[output.clone()];
        if !is_as_expected(expected, printed) {
            differences += &format!("$ {line}\nprints:\n{printed}\ninstead of:\n{expected}\n");
            rewritten += &text[copied..output.start];
            rewritten += printed;
            copied = output.end;
        }
    }
    rewritten += &text[copied..];
    if std::env::var_os("PAGES").is_some_and(|it| it == "overwrite") {
        fs::write(root().join(page), rewritten).unwrap();
    }
    assert!(differences.is_empty(), "{page}:\n{differences}");
    assert!(!outcomes.is_empty(), "{page} has no commands");
}

/// A folder in which a page is followed.
pub struct Session {
    folder: PathBuf,
    socket: PathBuf,
}

impl Session {
    /// Without a daemon.
    pub fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("pages")
            .join(name);
        let _ = fs::remove_dir_all(&folder);
        for bin in ["bin", "target/release"] {
            let bin = folder.join(bin);
            fs::create_dir_all(&bin).unwrap();
            symlink(env!("CARGO_BIN_EXE_shiftwork"), bin.join("shiftwork")).unwrap();
        }
        for shared in ["crates", "examples", "studies", "tests"] {
            symlink(root().join(shared), folder.join(shared)).unwrap();
        }
        Self {
            socket: folder.join("missing.sock"),
            folder,
        }
    }

    /// With the daemon behind this socket.
    pub fn with_daemon(self, socket: PathBuf) -> Self {
        Self { socket, ..self }
    }

    /// Follows a page of the repository. Fails if a command prints something else, or ends with another status.
    pub fn follow(&self, page: &str) {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let steps = steps(&text);
        let outcomes = self.run(&steps);
        compare(page, &text, &steps, &outcomes);
        let lines: Vec<&str> = commands_of(&steps).map(|(line, _)| line).collect();
        for (index, outcome) in outcomes.iter().enumerate() {
            let is_shown = lines.get(index + 1) == Some(&"echo $?");
            assert!(
                [0, 1, 4].contains(&outcome.status) || is_shown,
                "{page}: `{}` ends with status {}:\n{}",
                lines[index],
                outcome.status,
                outcome.printed
            );
        }
    }

    /// Runs the command with these words in the folder of the page.
    pub fn shiftwork(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
        command.args(words).current_dir(&self.folder);
        command.output().unwrap()
    }

    /// Runs only those commands of a page whose outputs it shows, and compares these.
    pub fn compare_outputs(&self, page: &str) {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let mut steps = steps(&text);
        steps.retain(|it| matches!(it, Step::Command { output, .. } if !output.is_empty()));
        let outcomes = self.run(&steps);
        compare(page, &text, &steps, &outcomes);
    }

    /// Carries steps out in one shell; returns what came of each command.
    fn run(&self, steps: &[Step<'_>]) -> Vec<Outcome> {
        const END: &str = "== end of a command:";
        let mut script = "exec 2>&1\n".to_owned();
        for step in steps {
            match step {
                Step::File { name, text } => {
                    script +=
                        &format!("cat >'{name}' <<'== end of a file'\n{text}== end of a file\n");
                }
                // The status is still there for the next command.
                Step::Command { line, .. } => {
                    script += &format!("{line}\ns=$?; echo '{END}' $s; (exit $s)\n");
                }
            }
        }
        fs::write(self.folder.join("script"), script).unwrap();
        let bin = self.folder.join("bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        // A file, since a pipe would not end before the programs that the page starts.
        let printed = self.folder.join("printed");
        let mut shell = Command::new("sh")
            .arg("script")
            .current_dir(&self.folder)
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env("SHIFTWORK_SOCKET", &self.socket)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&printed).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_child(&shell);
        shell.wait().unwrap();
        // What still runs.
        let _ = kill_process_group(group, Signal::KILL);
        let printed = fs::read_to_string(&printed).unwrap();
        let mut outcomes = Vec::new();
        let mut output = String::new();
        for line in printed.split_inclusive('\n') {
            // Where a program ends without a new line the mark is behind its last words.
            let (words, status) = line.split_once(END).unwrap_or((line, ""));
            output += words;
            if !status.is_empty() {
                outcomes.push(Outcome {
                    printed: std::mem::take(&mut output),
                    status: status.trim().parse().unwrap(),
                });
            }
        }
        let count = commands_of(steps).count();
        assert_eq!(outcomes.len(), count, "the shell ended early: {printed}");
        outcomes
    }
}

#[test]
fn page_is_files_and_commands() {
    let text = "A file `a.toml`:\n\n```toml\nx = 1\n```\n\n```toml\nno = 1\n```\n\
                ```console\n$ a  # b\n$ b\nout\n\nmore\n$ c\n```\nlast\n";
    let output = text.find("out\n").unwrap();
    let command = |line, output| Step::Command { line, output };
    let found = steps(text);
    let file = Step::File {
        name: "a.toml",
        text: "x = 1\n",
    };
    assert_eq!(found[0], file);
    let Step::Command { line, output: none } = &found[1] else {
        panic!("{found:?}");
    };
    assert_eq!((*line, none.len()), ("a  # b", 0));
    assert_eq!(found[2], command("b", output..output + 10));
    assert!(matches!(&found[3], Step::Command { line: "c", .. }));
    assert_eq!(found.len(), 4);
}

#[test]
fn dots_stand_for_any_text() {
    for (expected, found, is_same) in [
        ("a\n", "a\n", true),
        ("a\n", "a\nb\n", false),
        ("a\n...\n", "a\nb\nc\n", true),
        ("a ... c\n", "a b c\n", true),
        ("...c\n", "a b c\n", true),
        ("a...b...c", "abc", true),
        ("a...b...c", "acb", false),
        ("ab...b", "ab", false),
        ("", "a", false),
    ] {
        assert_eq!(
            is_as_expected(expected, found),
            is_same,
            "{expected:?} {found:?}"
        );
    }
}
