//! Positions in lists and texts of which a part is visible.

use super::key::Key;

/// A selected row of a list, and the visible part around it.
///
/// Invariant: the row is below the length, or both are 0; the visible part contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    length: usize,
    /// How many rows are visible.
    page: usize,
    at: usize,
    first: usize,
}

impl Selection {
    /// The selected row.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The first visible row.
    pub const fn first(&self) -> usize {
        self.first
    }

    /// The list has this length from now on.
    pub fn set_length(&mut self, length: usize) {
        self.length = length;
        self.go_to(self.at);
    }

    /// So many rows are visible from now on.
    pub fn set_page(&mut self, page: usize) {
        self.page = page;
        self.go_to(self.at);
    }

    /// To this row, or the last one.
    pub fn go_to(&mut self, row: usize) {
        self.at = row.min(self.length.saturating_sub(1));
        let page = self.page.max(1);
        self.first = self
            .first
            .min(self.length.saturating_sub(page))
            .clamp((self.at + 1).saturating_sub(page), self.at);
    }

    /// Moves by this key, if it is one for that.
    pub fn press(&mut self, key: Key) {
        if let Some(row) = target(key, self.at, self.page) {
            self.go_to(row);
        }
    }
}

/// The visible part of a text.
///
/// Invariant: it has no room for more lines than there are, unless all are visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scroll {
    length: usize,
    page: usize,
    first: usize,
}

impl Scroll {
    /// The first visible line.
    pub const fn first(&self) -> usize {
        self.first
    }

    /// The text has this length from now on, of which so many lines are visible.
    pub fn set(&mut self, length: usize, page: usize) {
        (self.length, self.page) = (length, page);
        self.first = self.first.min(length.saturating_sub(page));
    }

    /// Whether there are lines below the visible ones.
    pub const fn has_more(&self) -> bool {
        self.first + self.page < self.length
    }

    /// Moves by this key, if it is one for that.
    pub fn press(&mut self, key: Key) {
        if let Some(line) = target(key, self.first, self.page) {
            self.first = line.min(self.length.saturating_sub(self.page));
        }
    }
}

/// Where the key moves to from here; `None`: it is no key for that.
fn target(key: Key, at: usize, page: usize) -> Option<usize> {
    let page = page.max(1);
    match key {
        Key::Up | Key::Char('k') => Some(at.saturating_sub(1)),
        Key::Down | Key::Char('j') => Some(at.saturating_add(1)),
        Key::PageUp => Some(at.saturating_sub(page)),
        Key::PageDown | Key::Char(' ') => Some(at.saturating_add(page)),
        Key::Home | Key::Char('g') => Some(0),
        Key::End | Key::Char('G') => Some(usize::MAX),
        _ => None,
    }
}
