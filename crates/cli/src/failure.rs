//! Why a verb could not do its work, and how that is shown.

use std::fmt;
use std::io;

use shiftwork_taskset::TasksetError;

/// How a verb ended when nothing failed. The exit status of the process says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, or done: exit status 0.
    Yes,
    /// No: missed under `--strict` or `run`, or an expectation was not met: exit status 1.
    No,
    /// Neither was shown: exit status 4.
    Undecided,
    /// Ctrl-C or SIGTERM came first: exit status 130. What there was until then has been written.
    Interrupted,
    /// What a program that was to be run would have ended with.
    Status(u8),
}

impl Answer {
    /// Yes if it holds.
    pub const fn from_truth(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    /// The exit status of the process.
    pub const fn status(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Undecided => 4,
            Self::Interrupted => 130,
            Self::Status(status) => status,
        }
    }
}

/// Why a verb could not do its work. The message of an inner crate is passed on as it is; this
/// only adds the path and shows the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Bad usage or input: exit status 2. At least one mistake, in the order in which they are shown.
    Input(Vec<Mistake>),
    /// This machine cannot: exit status 3.
    Machine(String),
    /// This machine can, but not now: exit status 1, after which a service manager starts the daemon again.
    Temporary(String),
}

/// Something that is wrong with the usage or the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong, and what would be accepted.
    message: String,
    /// The line that is wrong, drawn; empty if there is none to show.
    excerpt: String,
}

impl Failure {
    /// Wrong usage, or input without a place to point at.
    pub fn input(message: impl fmt::Display) -> Self {
        Self::Input(vec![Mistake {
            message: message.to_string(),
            excerpt: String::new(),
        }])
    }

    /// Something is wrong with the file at `path`.
    pub fn in_file(path: &str, message: impl fmt::Display) -> Self {
        Self::input(format_args!("{path}: {message}"))
    }

    /// Several things, at least one, are wrong with the file at `path`.
    pub fn in_file_each(path: &str, messages: &[impl fmt::Display]) -> Self {
        let mistake = |message| Mistake {
            message: format!("{path}: {message}"),
            excerpt: String::new(),
        };
        Self::Input(messages.iter().map(mistake).collect())
    }

    /// Something is wrong in the file at `path` with this `text`, at a line and column that count
    /// from 1.
    pub fn at(
        path: &str,
        text: &str,
        (line, column): (u32, u32),
        message: impl fmt::Display,
    ) -> Self {
        Self::Input(vec![Mistake {
            message: format!("{path}: {message}"),
            excerpt: excerpt(text, line as usize, column as usize),
        }])
    }

    /// All mistakes of the file at `path` with this `text`.
    pub fn refused(path: &str, text: &str, error: &TasksetError) -> Self {
        let mistake = |mistake: &TasksetError| Mistake {
            message: format!("{path}: {mistake}"),
            excerpt: mistake.place().map_or_else(String::new, |place| {
                excerpt(text, place.line as usize, place.column as usize)
            }),
        };
        Self::Input(error.mistakes().iter().map(mistake).collect())
    }

    /// A file could not be read.
    pub fn reading(path: &str, error: &io::Error) -> Self {
        Self::in_file(path, format_args!("cannot be read: {error}"))
    }

    /// A file could not be written: a wrong name is the user's mistake, a full disk the machine's.
    pub fn writing(path: &str, error: &io::Error) -> Self {
        let message = format!("{path}: cannot be written: {error}");
        match Self::is_the_users(error) {
            true => Self::input(message),
            false => Self::Machine(message),
        }
    }

    /// Whether the name is wrong, rather than the machine unable to write.
    pub fn is_the_users(error: &io::Error) -> bool {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::AlreadyExists
                | io::ErrorKind::PermissionDenied
        )
    }

    /// The exit status of the process.
    pub const fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Machine(_) => 3,
            Self::Temporary(_) => 1,
        }
    }

    /// The failure as people see it.
    pub fn render(&self, color: bool) -> String {
        let error = if color {
            "\x1b[1;31merror:\x1b[0m"
        } else {
            "error:"
        };
        match self {
            Self::Machine(message) | Self::Temporary(message) => format!("{error} {message}"),
            Self::Input(mistakes) => {
                let each = mistakes.iter().take(MISTAKES_SHOWN_MAX);
                let mut shown: Vec<String> = each
                    .map(|Mistake { message, excerpt }| format!("{error} {message}{excerpt}"))
                    .collect();
                match mistakes.len().saturating_sub(MISTAKES_SHOWN_MAX) {
                    0 => {}
                    more => shown.push(format!("{error} and {more} more")),
                }
                shown.join("\n")
            }
        }
    }
}

/// So many mistakes are shown; a file with more is mostly not the one that was meant.
const MISTAKES_SHOWN_MAX: usize = 10;

/// Lines longer than this are not shown: no place can be found in them.
const LINE_SHOWN_MAX: usize = 160;

/// The line with its number, and what is wrong in it underlined; empty if there is nothing to see.
fn excerpt(text: &str, line: usize, column: usize) -> String {
    let Some(shown) = text.lines().nth(line.saturating_sub(1)) else {
        return String::new();
    };
    let shown = shown.replace('\t', " ");
    if shown.trim().is_empty() || shown.chars().count() > LINE_SHOWN_MAX {
        return String::new();
    }
    let before = column.saturating_sub(1);
    let wrong = shown.chars().skip(before);
    let marks = "^".repeat(token_length(wrong).max(1));
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let indent = " ".repeat(before);
    format!("\n {margin} |\n {number} | {shown}\n {margin} | {indent}{marks}")
}

/// How many characters belong together at the start: a quoted text, or what has no space in it.
fn token_length(mut text: impl Iterator<Item = char>) -> usize {
    match text.next() {
        None => 0,
        Some(quote @ ('"' | '\'')) => {
            let rest: Vec<char> = text.collect();
            match rest.iter().position(|&c| c == quote) {
                Some(end) => end + 2,
                None => rest.len() + 1,
            }
        }
        Some(_) => {
            1 + text
                .take_while(|c| !c.is_whitespace() && !",]}".contains(*c))
                .count()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_underlined() {
        let text = "name = \"x\"\n[[task]]\nperod = \"2 ms\"\n";
        let failure = Failure::at("a.toml", text, (3, 1), "line 3, column 1: no key `perod`");
        assert_eq!(
            failure.render(false),
            "error: a.toml: line 3, column 1: no key `perod`\n   |\n 3 | perod = \"2 ms\"\n   | ^^^^^"
        );
        assert_eq!(
            excerpt(text, 3, 9),
            "\n   |\n 3 | perod = \"2 ms\"\n   |         ^^^^^^"
        );
    }

    #[test]
    fn more_than_ten_mistakes_are_counted() {
        let rendered = |count: usize| {
            let messages: Vec<String> = (0..count).map(|it| format!("m{it}")).collect();
            Failure::in_file_each("f", &messages).render(false)
        };
        assert_eq!(rendered(10).lines().last(), Some("error: f: m9"));
        assert_eq!(rendered(10).lines().count(), 10);
        assert!(rendered(12).ends_with("error: f: m9\nerror: and 2 more"));
    }

    #[test]
    fn a_place_past_the_end_is_not_drawn_and_does_not_panic() {
        assert_eq!(excerpt("a\n", 9, 1), "");
        assert_eq!(excerpt("", 1, 1), "");
        assert_eq!(excerpt("ab", 1, 99).lines().count(), 4);
        assert_eq!(excerpt("\"open", 1, 1).lines().last(), Some("   | ^^^^^"));
    }

    #[test]
    fn a_wrong_name_is_the_users_and_a_full_disk_the_machines() {
        let status = |kind: io::ErrorKind| Failure::writing("x", &kind.into()).status();
        assert_eq!(status(io::ErrorKind::NotFound), 2);
        assert_eq!(status(io::ErrorKind::StorageFull), 3);
    }
}
