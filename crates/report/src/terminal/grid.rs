//! Rows of cells, aligned.

use super::{Colour, Look};

/// The meaning of a cell, displayed as its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Faint,
    Strong,
    Bad,
    Good,
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        let text = printable(text.as_ref());
        Self { text, tone }
    }
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// One column; adjacent columns with the same `group` share a heading above theirs.
#[derive(Clone)]
pub(super) struct Column {
    pub group: String,
    pub title: &'static str,
    pub align: Align,
    /// Columns with a higher rank are left out first, of equal ones the last; those of rank 0 never.
    pub rank: u8,
}

impl Column {
    /// The same, left out where there is no room.
    pub fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// A table under construction.
pub(super) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Option<Vec<Cell>>>,
}

/// Longer cells are cut, with an ellipsis.
const WIDTH_MAX: usize = 40;

impl Grid {
    pub fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "one cell for each column");
        self.rows.push(Some(cells));
    }

    /// Adds a line between rows.
    pub fn rule(&mut self) {
        self.rows.push(None);
    }

    /// The table as lines, each ending in a newline and without spaces before it. If it is wider than it may be, without
    /// its least important columns, and with a line that names them.
    pub fn render(&self, look: impl Into<Look>) -> String {
        let look: Look = look.into();
        let left_out = self.left_out(look.width);
        if left_out.is_empty() {
            return self.lines(look.colour);
        }
        let narrower = self.without(&left_out);
        let names = left_out.iter().map(|&it| {
            let column = &self.columns[it];
            match column.group.is_empty() {
                true => column.title.to_owned(),
                false => format!("{} {}", column.group, column.title),
            }
        });
        let names: Vec<String> = names.collect();
        let mut text = narrower.lines(look.colour);
        for line in note(&names, look.width.unwrap_or(usize::MAX)) {
            text += &paint(&line, Tone::Faint, look.colour);
            text.push('\n');
        }
        text
    }

    /// The width of the whole table.
    pub fn width(&self) -> usize {
        total(&self.widths())
    }

    /// Indices of the columns that are left out so that the others fit, if they can; ascending.
    fn left_out(&self, width: Option<usize>) -> Vec<usize> {
        let Some(width) = width else {
            return Vec::new();
        };
        let mut candidates: Vec<usize> = (0..self.columns.len()).collect();
        candidates.retain(|&index| self.columns[index].rank > 0);
        candidates.sort_by_key(|&index| (self.columns[index].rank, index));
        let mut left_out = Vec::new();
        while self.without(&left_out).width() > width
            && let Some(index) = candidates.pop()
        {
            left_out.push(index);
        }
        left_out.sort_unstable();
        left_out
    }

    /// The table without these columns.
    fn without(&self, columns: &[usize]) -> Self {
        let is_shown = |index: &usize| !columns.contains(index);
        let shown: Vec<usize> = (0..self.columns.len()).filter(is_shown).collect();
        let of_row = |row: &Option<Vec<Cell>>| {
            let cells = row.as_ref()?;
            Some(shown.iter().map(|&index| cells[index].clone()).collect())
        };
        Self {
            columns: shown
                .iter()
                .map(|&index| self.columns[index].clone())
                .collect(),
            rows: self.rows.iter().map(of_row).collect(),
        }
    }

    fn lines(&self, colour: Colour) -> String {
        let widths = self.widths();
        let mut text = String::new();
        if self.columns.iter().any(|column| !column.group.is_empty()) {
            text += &paint(&self.groups(&widths), Tone::Faint, colour);
            text.push('\n');
        }
        let titles = self
            .columns
            .iter()
            .map(|column| Cell::toned(column.title, Tone::Strong));
        let titles: Vec<Cell> = titles.collect();
        self.line(&mut text, &titles, &widths, colour);
        for row in &self.rows {
            match row {
                Some(cells) => self.line(&mut text, cells, &widths, colour),
                None => {
                    text += &paint(&"-".repeat(total(&widths)), Tone::Faint, colour);
                    text.push('\n');
                }
            }
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .map(|column| column.title.len())
            .collect();
        for cells in self.rows.iter().flatten() {
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        self.widen_for_groups(&mut widths);
        widths
    }

    /// Makes the last column of a group wide enough for the group's heading.
    fn widen_for_groups(&self, widths: &mut [usize]) {
        for (first, last) in self.group_ranges() {
            let needed = self.columns[first].group.chars().count();
            let have = widths[first..=last].iter().sum::<usize>() + 2 * (last - first);
            widths[last] += needed.saturating_sub(have);
        }
    }

    /// First and last column of each group, ungrouped columns one by one.
    fn group_ranges(&self) -> Vec<(usize, usize)> {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            match ranges.last_mut() {
                Some((first, last))
                    if !column.group.is_empty() && self.columns[*first].group == column.group =>
                {
                    *last = index;
                }
                _ => ranges.push((index, index)),
            }
        }
        ranges
    }

    fn groups(&self, widths: &[usize]) -> String {
        let mut line = String::new();
        for (first, last) in self.group_ranges() {
            let width = widths[first..=last].iter().sum::<usize>() + 2 * (last - first);
            let title = &self.columns[first].group;
            let dashes = width - title.chars().count();
            match (title.is_empty(), dashes) {
                (true, _) => line += &" ".repeat(width),
                (false, 0..4) => line += &format!("{title:>width$}"),
                (false, _) => {
                    let (left, right) = ((dashes - 2) / 2, (dashes - 2).div_ceil(2));
                    line += &format!("{} {title} {}", "-".repeat(left), "-".repeat(right));
                }
            }
            line += "  ";
        }
        line.trim_end().to_string()
    }

    fn line(&self, text: &mut String, cells: &[Cell], widths: &[usize], colour: Colour) {
        let mut gap = 0;
        for ((cell, column), width) in cells.iter().zip(&self.columns).zip(widths) {
            let blank = width - cell.text.chars().count();
            let before = match column.align {
                Align::Left => 0,
                Align::Right => blank,
            };
            // No trailing spaces.
            let shown = cell.text.trim_end();
            if shown.is_empty() {
                gap += width + 2;
                continue;
            }
            text.push_str(&" ".repeat(gap + before));
            text.push_str(&paint(shown, cell.tone, colour));
            gap = width - before - shown.chars().count() + 2;
        }
        text.push('\n');
    }
}

/// The width of columns with what is between them.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * (widths.len().max(1) - 1)
}

/// Says which columns are left out, in lines of at most this width.
fn note(names: &[String], width: usize) -> Vec<String> {
    let mut lines = vec!["no room for:".to_owned()];
    for (place, name) in names.iter().enumerate() {
        let comma = if place + 1 < names.len() { "," } else { "" };
        let last = lines.last_mut().expect("there is a line");
        match last.chars().count() + 1 + name.chars().count() + comma.len() <= width {
            true => last.push_str(&format!(" {name}{comma}")),
            false => lines.push(format!("{name}{comma}")),
        }
    }
    lines
}

/// Wraps `text` in the escape sequence for `tone`.
pub(super) fn paint(text: &str, tone: Tone, colour: Colour) -> String {
    let code = match (colour, tone) {
        (Colour::Never, _) | (_, Tone::Plain) => return text.to_string(),
        (_, Tone::Faint) => "2",
        (_, Tone::Strong) => "1",
        (_, Tone::Bad) => "1;31",
        (_, Tone::Good) => "32",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Replaces control characters in a name from a file, which could move the cursor or break the table.
pub(super) fn printable(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character.is_control() {
            true => safe.extend(character.escape_default()),
            false => safe.push(character),
        }
    }
    if safe.chars().count() > WIDTH_MAX {
        safe = safe.chars().take(WIDTH_MAX - 1).chain(['…']).collect();
    }
    safe
}
