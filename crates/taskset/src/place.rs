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
        let before = text
            .char_indices()
            .take_while(|&(at, _)| at < offset)
            .map(|(_, character)| character);
        let start = Self { line: 1, column: 1 };
        before.fold(start, |place, character| match character {
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
        assert_eq!(place(999), "line 3, column 1");
    }
}
