//! What keys and columns mean.

use ratatui::text::Line;

use super::text::{Theme, line, wrapped};

const KEYS: [(&str, &str); 11] = [
    (
        "Up Down, k j",
        "one row up or down; PgUp PgDn Home End likewise",
    ),
    ("Enter", "misses and causes of the selected thread"),
    (
        "/",
        "filter by a part of the name, the owner, or a PID or TID",
    ),
    ("< >", "sort by the column to the left or right"),
    ("r", "reverse the order"),
    ("c", "CPUs, capacity, and all that is wrong"),
    ("p", "pause, and go on"),
    ("Esc", "back; in the table: no filter"),
    ("?", "this page"),
    ("Ctrl-Z", "stop until the shell continues it"),
    ("q, Ctrl-C", "quit"),
];

const COLUMNS: [(&str, &str); 8] = [
    ("budget", "reserved CPU time / period"),
    (
        "used",
        "CPU time of the last second in percent of what is reserved; lost: the reservation is not in effect, and the \
         thread runs as ordinary work",
    ),
    (
        "jobs",
        "completed jobs; a job lasts from waking up to blocking",
    ),
    ("missed", "missed deadlines"),
    ("response", "maximum response time of a job / its deadline"),
    ("overruns", "exhausted budgets (on wide terminals)"),
    (
        "tardiness",
        "maximum tardiness of a job (on wide terminals)",
    ),
    ("on", "the CPU that runs it now (on wide terminals)"),
];

/// The page.
pub fn lines(width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = vec![line("keys", theme.strong())];
    lines.extend(table(&KEYS, width, theme));
    lines.push(line("", theme.faint()));
    lines.push(line("columns", theme.strong()));
    lines.extend(table(&COLUMNS, width, theme));
    lines
}

fn table(rows: &[(&str, &str)], width: usize, theme: Theme) -> Vec<Line<'static>> {
    /// Width of the first column.
    const FIRST: usize = 14;
    let mut lines = Vec::new();
    for (what, meaning) in rows {
        let rest = width.saturating_sub(FIRST);
        for (index, meaning) in wrapped(meaning, rest, theme.faint())
            .into_iter()
            .enumerate()
        {
            let what = if index == 0 { what } else { "" };
            let mut row = line(&format!("{what:FIRST$}"), theme.strong());
            row.spans.extend(meaning.spans);
            lines.push(row);
        }
    }
    lines
}
