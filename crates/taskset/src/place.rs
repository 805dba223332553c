//! Where in a text something is.

use core::fmt;

/// A place in a text, for people: both numbers count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Place {
    /// The place of the byte at `offset`; past the end, the place after the last character.
    ///
    /// O(`offset`), so it is meant for errors and not for every value of a file.
    pub fn of(text: &str, offset: usize) -> Self {
        Cursor::new(text).place(offset)
    }

    /// The place after `text`, which begins here.
    fn after(self, text: &str) -> Self {
        text.chars().fold(self, |place, character| match character {
            '\n' => Self {
                line: place.line.saturating_add(1),
                column: 1,
            },
            _ => Self {
                column: place.column.saturating_add(1),
                ..place
            },
        })
    }
}

/// Finds the places of many bytes of a text, fast if they are asked for in ascending order.
pub(crate) struct Cursor<'t> {
    text: &'t str,
    offset: usize,
    place: Place,
}

impl<'t> Cursor<'t> {
    /// At the start of the text.
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            offset: 0,
            place: Place { line: 1, column: 1 },
        }
    }

    /// The place of the character that holds the byte at `offset`.
    pub(crate) fn place(&mut self, offset: usize) -> Place {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        if offset < self.offset {
            *self = Self::new(self.text);
        }
        self.place = self.place.after(&self.text[self.offset..offset]);
        self.offset = offset;
        self.place
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "ab\nµx\n";
        let place = |offset| Place::of(text, offset).to_string();
        assert_eq!(place(0), "line 1, column 1");
        assert_eq!(place(2), "line 1, column 3");
        assert_eq!(place(3), "line 2, column 1");
        assert_eq!(place(5), "line 2, column 2");
        assert_eq!(place(4), "line 2, column 1", "the middle of a character");
        assert_eq!(place(999), "line 3, column 1");
        let mut cursor = Cursor::new(text);
        for offset in [5, 6, 0, 3] {
            assert_eq!(cursor.place(offset), Place::of(text, offset));
        }
    }
}
