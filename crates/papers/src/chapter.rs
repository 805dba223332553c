//! A part of a page, with its figures.

use std::ops::Range;

use shiftwork_model::{Instant, Span, TaskSet};

use crate::figure;
use crate::page::Page;
use crate::schedule::Schedule;

/// Markdown, and the pictures that it shows.
#[derive(Debug)]
pub(crate) struct Chapter {
    pub text: String,
    pub figures: Vec<Page>,
    /// Where the pictures are, from the folder of all papers.
    folder: &'static str,
}

impl Chapter {
    /// An empty one of a page in this folder.
    pub fn new(folder: &'static str) -> Self {
        Self {
            text: String::new(),
            figures: Vec::new(),
            folder,
        }
    }

    /// A paragraph, a table or a heading.
    pub fn say(&mut self, text: &str) {
        self.text += text.trim_end();
        self.text += "\n\n";
    }

    /// A picture in a file of this name.
    pub fn show(&mut self, name: &str, title: &str, svg: String) {
        self.say(&format!("![{title}]({name}.svg)"));
        self.figures.push(Page {
            path: format!("{}/{name}.svg", self.folder),
            text: svg,
        });
    }

    /// What a run did from one millisecond to another.
    pub fn draw(&mut self, name: &str, title: &str, drawn: (&TaskSet, &Schedule), ms: Range<u64>) {
        let (set, run) = drawn;
        let window = at(ms.start)..at(ms.end);
        self.show(name, title, figure::schedule(set, run, title, window));
    }

    /// A page of this name with all that is here, and the files of its pictures.
    pub fn into_pages(self, name: &str) -> Vec<Page> {
        let mut pages = self.figures;
        pages.push(Page {
            path: format!("{}/{name}.md", self.folder),
            text: self.text.trim_end().to_owned() + "\n",
        });
        pages
    }

    /// This one, then the other.
    pub fn append(&mut self, other: Self) {
        self.text += &other.text;
        self.figures.extend(other.figures);
    }
}

/// So many milliseconds into a run.
pub(crate) fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

/// Milliseconds, with as many places as they need.
pub(crate) fn ms(span: Span) -> String {
    let (whole, rest) = (span.as_ns() / 1_000_000, span.as_ns() % 1_000_000);
    let text = format!("{whole}.{rest:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Several, as a list.
pub(crate) fn list(spans: impl IntoIterator<Item = Span>) -> String {
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
