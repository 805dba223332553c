//! A part of the page, with its figures.

use std::ops::Range;

use shiftwork_model::{Instant, Span, TaskSet};

use crate::figure;
use crate::page::Page;
use crate::schedule::Schedule;

/// The folder of this paper's pages.
pub(super) const FOLDER: &str = "tang-2021";

/// Markdown, and the pictures that it shows.
#[derive(Debug, Default)]
pub(super) struct Chapter {
    pub text: String,
    pub figures: Vec<Page>,
}

impl Chapter {
    /// A paragraph, a table or a heading.
    pub fn say(&mut self, text: &str) {
        self.text += text.trim_end();
        self.text += "\n\n";
    }

    /// A picture in a file of this name.
    pub fn show(&mut self, name: &str, title: &str, svg: String) {
        self.say(&format!("![{title}]({name}.svg)"));
        self.figures.push(Page {
            path: format!("{FOLDER}/{name}.svg"),
            text: svg,
        });
    }

    /// What a run did from one millisecond to another.
    pub fn draw(&mut self, name: &str, title: &str, drawn: (&TaskSet, &Schedule), ms: Range<u64>) {
        let (set, run) = drawn;
        let window = at(ms.start)..at(ms.end);
        self.show(name, title, figure::schedule(set, run, title, window));
    }

    /// This one, then the other.
    pub fn append(&mut self, other: Self) {
        self.text += &other.text;
        self.figures.extend(other.figures);
    }
}

/// So many milliseconds into a run.
pub(super) fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// Milliseconds, with as many places as they need.
pub(super) fn ms(span: Span) -> String {
    let (whole, rest) = (span.as_ns() / 1_000_000, span.as_ns() % 1_000_000);
    let text = format!("{whole}.{rest:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Several, as a list.
pub(super) fn list(spans: impl IntoIterator<Item = Span>) -> String {
    let texts: Vec<String> = spans.into_iter().map(ms).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_the_places_that_they_need() {
        let spans = [0, 26_000_000, 126_001_000, 500, 10_000_000].map(Span::from_ns);
        assert_eq!(list(spans), "0, 26, 126.001, 0.0005, 10");
    }
}
