//! Tables that fit a given width: less important columns are left out, long cells are cut.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Width of tables whose output is no terminal.
pub const WIDTH: usize = 80;

/// Columns from this rank on are extra: they are shown only while no other cell is cut to less than twice the narrowest width
/// of its column.
pub const EXTRA: u8 = 9;

/// Stands for what was cut off.
const ELLIPSIS: char = '…';

/// On which side of a column its cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Above the cells.
    pub heading: &'static str,
    /// Where the cells are.
    pub side: Side,
    /// Columns with a larger rank are left out first.
    pub rank: u8,
    /// Cells may be cut to this width; `None`: never.
    pub narrowest: Option<usize>,
}

impl Shape {
    /// A column with these properties.
    pub const fn new(
        heading: &'static str,
        side: Side,
        rank: u8,
        narrowest: Option<usize>,
    ) -> Self {
        Self {
            heading,
            side,
            rank,
            narrowest,
        }
    }
}

/// Which columns of a table are shown, and how wide they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Indices of the shown columns, with their sides and widths, from the left.
    shown: Vec<(usize, Side, usize)>,
    gap: usize,
}

impl Layout {
    /// Fits the columns with these cells into the width. Columns are two spaces apart, or one if that shows more
    /// of them, or more without cut cells. At least one column is shown, however narrow that is.
    pub fn new(shapes: &[Shape], rows: &[Vec<String>], width: usize) -> Self {
        let full: Vec<usize> = shapes
            .iter()
            .enumerate()
            .map(|(column, shape)| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
                widest.max(shape.heading.width())
            })
            .collect();
        let wide = Self::with_gap(shapes, &full, width, 2);
        if wide.shown.len() == shapes.len() {
            return wide;
        }
        let narrow = Self::with_gap(shapes, &full, width, 1);
        let columns = |layout: &Self| {
            let shown = layout.shown.iter();
            let whole = shown.filter(|&&(column, _, width)| width == full[column]);
            (layout.shown.len(), whole.count())
        };
        match columns(&narrow) > columns(&wide) {
            true => narrow,
            false => wide,
        }
    }

    fn with_gap(shapes: &[Shape], full: &[usize], width: usize, gap: usize) -> Self {
        let least = |column: usize, has_extra: bool| {
            let factor = if has_extra { 2 } else { 1 };
            let narrowest = shapes[column]
                .narrowest
                .map_or(usize::MAX, |it| it * factor);
            full[column].min(narrowest.max(shapes[column].heading.width()))
        };
        let mut by_rank: Vec<usize> = (0..shapes.len()).collect();
        by_rank.sort_by_key(|&column| shapes[column].rank);
        let has_extra = |count: usize| shapes[by_rank[count - 1]].rank >= EXTRA;
        let needed = |count: usize| -> usize {
            let columns = by_rank[..count].iter();
            columns
                .map(|&column| least(column, has_extra(count)) + gap)
                .sum()
        };
        let fitting = (2..=shapes.len()).take_while(|&count| needed(count) <= width + gap);
        let count = fitting.last().unwrap_or(1);
        let mut left = (width + gap).saturating_sub(needed(count));
        let mut widths = vec![None; shapes.len()];
        for &column in &by_rank[..count] {
            let least = least(column, has_extra(count));
            let more = (full[column] - least).min(left);
            left -= more;
            widths[column] = Some((least + more).min(width));
        }
        let shown = widths.iter().zip(shapes).enumerate();
        let shown =
            shown.filter_map(|(column, (width, shape))| Some((column, shape.side, (*width)?)));
        Self {
            shown: shown.collect(),
            gap,
        }
    }

    /// Indices of the shown columns, from the left.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.shown.iter().map(|&(column, ..)| column)
    }

    /// The shown cells of a row, each filled up or cut to the width of its column.
    pub fn cells(&self, row: &[String]) -> Vec<String> {
        let shown = self.shown.iter();
        let cell = |&(column, side, width): &(usize, Side, usize)| {
            let cell = cut(row.get(column).map_or("", String::as_str), width);
            let filling = " ".repeat(width - cell.width().min(width));
            match side {
                Side::Left => cell + &filling,
                Side::Right => filling + &cell,
            }
        };
        shown.map(cell).collect()
    }

    /// What is between two columns.
    pub fn gap(&self) -> String {
        " ".repeat(self.gap)
    }

    /// The row as a line, without spaces at its end.
    pub fn line(&self, row: &[String]) -> String {
        let line = self.cells(row).join(&self.gap());
        line.trim_end().to_owned()
    }
}

/// The headings of the columns as a row.
pub fn headings(shapes: &[Shape]) -> Vec<String> {
    let headings = shapes.iter().map(|shape| shape.heading.to_owned());
    headings.collect()
}

/// The table as text, with its headings.
pub fn text(shapes: &[Shape], rows: &[Vec<String>], width: usize) -> String {
    let layout = Layout::new(shapes, rows, width);
    let mut text = layout.line(&headings(shapes)) + "\n";
    for row in rows {
        text.push_str(&layout.line(row));
        text.push('\n');
    }
    text
}

/// The text if it is not wider than this, or else its beginning and an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut left = width.saturating_sub(1);
    for char in text.chars() {
        let needed = char.width().unwrap_or(0);
        if needed > left {
            break;
        }
        left -= needed;
        cut.push(char);
    }
    if width > 0 {
        cut.push(ELLIPSIS);
    }
    cut
}

/// The text with a question mark for each character that a terminal would not show as one: control characters, and those
/// that reorder or hide others.
pub fn printable(text: &str) -> String {
    let visible = text.chars().map(|char| match char {
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '?',
        char if char.is_control() => '?',
        char => char,
    });
    visible.collect()
}

#[cfg(test)]
mod tests {
    use shiftwork_model::RandomStream;

    use super::*;

    const SHAPES: [Shape; 4] = [
        Shape::new("PID", Side::Right, 1, None),
        Shape::new("name", Side::Left, 0, Some(6)),
        Shape::new("CPUs", Side::Left, 3, Some(4)),
        Shape::new("jobs", Side::Right, 2, None),
    ];

    fn row(cells: [&str; 4]) -> Vec<String> {
        cells.map(str::to_owned).to_vec()
    }

    #[test]
    fn table_fits_width_and_keeps_important_columns() {
        let rows = [
            row(["4711", "rover/camera", "0-3", "12"]),
            row(["9", "kamera日本", "0,2,4,6,8", "123456"]),
        ];
        for (width, expected) in [
            (
                80,
                [
                    " PID  name          CPUs         jobs",
                    "4711  rover/camera  0-3            12",
                    "   9  kamera日本    0,2,4,6,8  123456",
                ],
            ),
            (
                32,
                [
                    " PID  name          CPUs    jobs",
                    "4711  rover/camera  0-3       12",
                    "   9  kamera日本    0,2…  123456",
                ],
            ),
            (
                23,
                [
                    " PID name   CPUs   jobs",
                    "4711 rover… 0-3      12",
                    "   9 kamer… 0,2… 123456",
                ],
            ),
            (13, [" PID  name", "4711  rover/…", "   9  kamera…"]),
            (3, ["na…", "ro…", "ka…"]),
        ] {
            let shown = text(&SHAPES, &rows, width);
            let lines: Vec<&str> = shown.lines().collect();
            assert_eq!(lines, expected, "width {width}");
        }
        // With an extra column, names keep twice their narrowest width.
        let mut shapes = SHAPES;
        shapes[2].rank = EXTRA;
        let columns = |width| Layout::new(&shapes, &rows, width).columns().count();
        assert_eq!([columns(32), columns(33)], [3, 4]);
    }

    /// By definition: no line is wider than the table, and no column is shown while a more important one is not.
    #[test]
    fn random_tables_fit() {
        const PIECES: [&str; 6] = ["a", "日", "é", "-", "\u{301}", "xyz"];
        for seed in 1..=300 {
            let mut random = RandomStream::new(seed, 0, 0);
            let mut cell = || -> String {
                let pieces = (0..random.below(9)).map(|_| PIECES[random.below(6) as usize]);
                pieces.collect()
            };
            let rows: Vec<Vec<String>> = (0..5).map(|_| (0..4).map(|_| cell()).collect()).collect();
            let mut before = 0;
            for width in 1..=80 {
                let layout = Layout::new(&SHAPES, &rows, width);
                let shown: Vec<usize> = layout.columns().collect();
                let worst = shown.iter().map(|&it| SHAPES[it].rank).max().unwrap();
                assert_eq!(
                    usize::from(worst) + 1,
                    shown.len(),
                    "seed {seed}: {shown:?}"
                );
                assert!(shown.len() >= before, "seed {seed}, width {width}");
                before = shown.len();
                for line in text(&SHAPES, &rows, width).lines() {
                    assert!(
                        line.width() <= width,
                        "seed {seed}, width {width}: {line:?}"
                    );
                }
            }
            assert_eq!(before, 4, "seed {seed}");
        }
    }

    #[test]
    fn text_is_cut_between_characters() {
        for (whole, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("abc", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(cut(whole, width), expected, "{whole} to {width}");
        }
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            printable("a\x1b[31m\n\u{9b}b\u{202e}c\u{200d}日"),
            "a?[31m??b?c?日"
        );
    }
}
