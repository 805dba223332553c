//! Messages from the runner inside to the runner outside: lines that begin with a control
//! character. The output of tests passes through between them.

use std::io::{self, Write};
use std::time::Duration;

/// No test writes it at the beginning of a line by accident.
const MARK: char = '\u{1}';

/// One step of the runner inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A test begins.
    Begun(String),
    /// It is over; the milliseconds are those of the guest.
    Ended { passed: bool, took_ms: u64 },
    /// A line that the test wrote, or why it failed.
    Said(String),
}

/// Reports that a test begins.
pub fn begin(name: &str) {
    write_line(&format!("{MARK}begin {name}"));
}

/// Reports how it ended.
pub fn end(passed: bool, took: Duration) {
    let word = if passed { "ok" } else { "FAILED" };
    write_line(&format!("{MARK}end {word} {}", took.as_millis()));
}

/// Passes on what a test wrote.
pub fn say(text: &str) {
    for line in text.lines() {
        write_line(line.trim_start_matches(MARK));
    }
}

fn write_line(line: &str) {
    let mut out = io::stdout().lock();
    // If the reader is gone, the error cannot be reported either.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Puts the guest's output together again and hands it on step by step.
pub struct Reader<F: FnMut(Step)> {
    step: F,
    line: Vec<u8>,
}

impl<F: FnMut(Step)> Reader<F> {
    /// Calls `step` for everything that comes.
    pub fn new(step: F) -> Self {
        Self {
            step,
            line: Vec::new(),
        }
    }
}

impl<F: FnMut(Step)> Write for Reader<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if *byte == b'\n' {
                let line = String::from_utf8_lossy(&self.line).into_owned();
                self.line.clear();
                (self.step)(parse(line));
            } else {
                self.line.push(*byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn parse(line: String) -> Step {
    let Some(marked) = line.strip_prefix(MARK) else {
        return Step::Said(line);
    };
    let words: Vec<&str> = marked.split(' ').collect();
    match words[..] {
        ["begin", name] => Step::Begun(name.to_owned()),
        ["end", word, took_ms] => Step::Ended {
            passed: word == "ok",
            took_ms: took_ms.parse().unwrap_or(0),
        },
        _ => Step::Said(line),
    }
}
