//! Lines of text, and how they look.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Piece};
use unicode_width::UnicodeWidthStr as _;

use crate::table::printable;

/// How things look: by colour if that is wanted, and always also without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether there are colours.
    pub has_color: bool,
}

impl Theme {
    /// What is wrong.
    pub fn alert(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What may become wrong.
    pub fn warning(self) -> Style {
        self.colored(Color::Yellow)
    }

    /// Titles and keys.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The heading of the column of the order.
    pub fn sorted(self) -> Style {
        self.strong().add_modifier(Modifier::UNDERLINED)
    }

    /// Everything else.
    pub fn plain(self) -> Style {
        Style::new()
    }

    /// What is beside the point.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is selected.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn colored(self, color: Color) -> Style {
        match self.has_color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }
}

/// A line of text without control characters.
pub fn line(text: &str, style: Style) -> Line<'static> {
    Line::from(piece(text, style))
}

/// A part of a line, likewise.
pub fn piece(text: &str, style: Style) -> Piece<'static> {
    Piece::styled(printable(text), style)
}

/// The text in lines of at most this width, broken between words; lines after a break are indented as the first is.
pub fn wrapped(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let lines = text.lines().flat_map(|line| wrap(&printable(line), width));
    lines.map(|text| line(&text, style)).collect()
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let indent: String = text.chars().take_while(|&it| it == ' ').collect();
    if text.width() <= width || indent.len() >= width {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = indent.clone();
    for word in text.trim_start_matches(' ').split_inclusive(' ') {
        let is_empty = line.len() == indent.len();
        if !is_empty && line.width() + word.trim_end().width() > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
        }
        for char in word.chars() {
            let mut bytes = [0; 4];
            let char = char.encode_utf8(&mut bytes);
            if line.width() + char.width() > width && line.len() > indent.len() {
                // Spaces at the end of a line need no room.
                if char == " " {
                    continue;
                }
                lines.push(std::mem::replace(&mut line, indent.clone()));
            }
            line.push_str(char);
        }
    }
    lines.push(line);
    lines
}

/// How much of a whole something is: `[####......]`.
pub fn bar(fraction: f64, width: usize) -> String {
    // A cast of what is negative saturates.
    let full = ((fraction * width as f64).round() as usize).min(width);
    format!("[{}{}]", "#".repeat(full), ".".repeat(width - full))
}

#[cfg(test)]
mod tests {
    use shiftwork_model::RandomStream;

    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        for (text, width, expected) in [
            ("one two three", 7, &["one two", "three"][..]),
            ("  one two three", 7, &["  one", "  two", "  three"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("日本語 b", 4, &["日本", "語 b"]),
            ("", 5, &[""]),
        ] {
            let wrapped = wrap(text, width);
            let trimmed: Vec<&str> = wrapped.iter().map(|it| it.trim_end()).collect();
            assert_eq!(trimmed, expected, "{text}");
        }
    }

    #[test]
    fn wrapped_text_fits_and_is_complete() {
        const PIECES: [&str; 6] = ["a", "日", "é", " ", "-long-", "  "];
        for seed in 1..=500 {
            let mut random = RandomStream::new(seed, 0, 0);
            let pieces = (0..random.below(40)).map(|_| PIECES[random.below(6) as usize]);
            let text: String = pieces.collect();
            let width = 2 + random.below(20) as usize;
            let lines = wrap(&text, width);
            let indent = text.len() - text.trim_start_matches(' ').len();
            for line in lines.iter().filter(|_| indent + 2 <= width) {
                assert!(
                    line.width() <= width,
                    "seed {seed}: {line:?}, width {width}"
                );
            }
            let without = |text: &str| text.replace(' ', "");
            assert_eq!(without(&lines.concat()), without(&text), "seed {seed}");
        }
    }

    #[test]
    fn bar_is_full_above_one() {
        assert_eq!(bar(0.5, 4), "[##..]");
        assert_eq!(bar(7.0, 4), "[####]");
        assert_eq!([bar(f64::NAN, 2), bar(-1.0, 2)], ["[..]", "[..]"]);
    }
}
