//! Where a verb's results and remarks go: results to stdout, everything else to stderr.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use ratatui::crossterm::terminal::size;
use serde::Serialize;
use shiftwork_report::{Colour, Look};

use crate::args::{Common, When};
use crate::failure::Failure;

/// What every verb gets: where to write, and how.
pub struct Console {
    out: BufWriter<UntilClosed<Stdout>>,
    /// Whether results may be coloured.
    pub color: bool,
    /// Whether results are to be JSON.
    pub json: bool,
    quiet: bool,
}

impl Console {
    /// The console that the command line asks for.
    pub fn new(common: &Common) -> Self {
        Self {
            out: BufWriter::new(UntilClosed(io::stdout())),
            color: wants_color(common.color, &io::stdout()),
            json: common.json,
            quiet: common.quiet,
        }
    }

    /// Writes a line of results.
    ///
    /// # Errors
    /// If stdout cannot be written; a closed pipe is no error.
    pub fn line(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        writeln!(self.out, "{}", text.as_ref()).map_err(|error| Failure::writing("stdout", &error))
    }

    /// Writes results as they are.
    ///
    /// # Errors
    /// If stdout cannot be written; a closed pipe is no error.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out
            .write_all(text.as_bytes())
            .map_err(|error| Failure::writing("stdout", &error))
    }

    /// Writes a value as one line of JSON.
    ///
    /// # Errors
    /// If stdout cannot be written; a closed pipe is no error.
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).expect("our outputs have string keys only");
        self.line(text)
    }

    /// Prints to stderr what is no result. `--quiet` leaves it out.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            tell(text.as_ref());
        }
    }

    /// Whether tables may be coloured.
    pub fn colour(&self) -> Colour {
        match self.color {
            true => Colour::Always,
            false => Colour::Never,
        }
    }

    /// How tables may look: as wide as the terminal, or of any width where there is none.
    pub fn look(&self) -> Look {
        Look {
            colour: self.colour(),
            width: terminal_width(),
        }
    }

    /// Whether a progress bar is of use: stderr is a terminal and `--quiet` was not given.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Writes out what is still buffered.
    ///
    /// # Errors
    /// If stdout cannot be written; a closed pipe is no error.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out
            .flush()
            .map_err(|error| Failure::writing("stdout", &error))
    }
}

/// Prints a line to stderr; an error, as of a closed pipe, is ignored.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether to colour what goes to `stream`.
pub fn wants_color(when: When, stream: &impl IsTerminal) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            !refused && stream.is_terminal()
        }
    }
}

/// Swallows what a closed pipe does not take: `shiftwork … | head -1` is no failure, and the exit
/// status stays the answer.
struct UntilClosed<W>(W);

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

/// The number of characters in a line of the terminal; `None` if stdout is none.
pub fn terminal_width() -> Option<usize> {
    let terminal = match io::stdout().is_terminal() {
        true => size().ok(),
        false => None,
    };
    let columns = terminal.map(|(columns, _)| usize::from(columns));
    columns.filter(|&it| it > 0)
}

/// Rows as columns two spaces apart, without spaces at the ends of lines.
pub fn columns(rows: &[Vec<String>]) -> String {
    let width = |text: &String| text.chars().count();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(width)
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Words in lines of at most so many characters, as far as no word is longer.
pub fn wrapped<'a>(words: impl IntoIterator<Item = &'a str>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `1 task`, `2 tasks`.
pub fn plural(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let mut out = BufWriter::with_capacity(4, UntilClosed(Closed));
        out.write_all(b"more than fits the buffer").unwrap();
        out.flush().unwrap();
    }

    #[test]
    fn columns_line_up_and_lines_end_without_spaces() {
        let rows = [
            vec!["a".into(), "bb".into()],
            vec!["ccc".into(), "d".into()],
        ];
        assert_eq!(columns(&rows), "a    bb\nccc  d\n");
    }
}
