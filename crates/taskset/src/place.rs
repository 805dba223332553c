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
    /// O(length of `text`), so it is meant for one error and not for every value of a file.
    pub fn of(text: &str, offset: usize) -> Self {
        Lines::new(text).place(offset)
    }
}

/// Finds the places of many bytes of a text, in any order.
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// Where each line begins, in bytes.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Looks for the lines of a text, once.
    pub(crate) fn new(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = core::iter::once(0).chain(ends.map(|(at, _)| at + 1));
        Self {
            text,
            starts: starts.collect(),
        }
    }

    /// The place of the character that holds the byte at `offset`; past the end, the place after the last character.
    ///
    /// # Cost
    /// O(log lines + length of the line).
    pub(crate) fn place(&self, offset: usize) -> Place {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let before = self.text[start..offset].chars().count();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Place {
            line: number(line),
            column: number(before).saturating_add(1),
        }
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
    }
}
