//! The table of threads.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use shiftwork_client::Task;

use super::super::state::{State, Visible};
use super::put;
use super::text::{Theme, line, piece, wrapped};
use crate::output::plural;
use crate::table::{Layout, cut, headings};
use crate::verb::status::columns::{COLUMNS, Look, look, row, shapes};

/// Below this height there is no line above the table.
const HEIGHT_MIN: u16 = 4;

/// Draws what fits.
pub fn draw(buffer: &mut Buffer, area: Rect, state: &State, theme: Theme) -> Visible {
    let width = usize::from(area.width);
    let mut lines = Vec::new();
    if state.rows().len() == 0 {
        let text = match state.filter.is_empty() {
            true => "no thread has a reservation that you may see; `shiftwork exec` makes one"
                .to_owned(),
            false => format!("no thread matches `{}`; Esc shows all", state.filter),
        };
        put(buffer, area, wrapped(&text, width, theme.plain()));
        return Visible::default();
    }
    let mut selection = state.threads;
    let above = if area.height < HEIGHT_MIN { 1 } else { 2 };
    let page = usize::from(area.height.saturating_sub(above));
    selection.set_page(page);
    if above > 1 {
        let last = (selection.first() + page).min(state.rows().len());
        lines.push(title(state, (selection.first() + 1, last), width, theme));
    }
    // All threads, not only the visible ones: columns stay where they are when the table is scrolled or filtered.
    let rows: Vec<Vec<String>> = state
        .status
        .tasks
        .iter()
        .map(|task| row(task, &state.users))
        .collect();
    let shapes = shapes();
    let layout = Layout::new(&shapes, &rows, width);
    lines.push(heading(&layout, state.sorted_by, theme));
    let visible = state.rows().enumerate().skip(selection.first()).take(page);
    for (index, task) in visible {
        let is_selected = index == selection.at();
        let mut row = task_line(&layout, task, &row(task, &state.users), theme);
        if is_selected {
            let filling = width.saturating_sub(row.width());
            row.spans.push(piece(&" ".repeat(filling), theme.plain()));
            row = row.patch_style(theme.selected());
        }
        lines.push(row);
    }
    put(buffer, area, lines);
    Visible {
        rows: page,
        ..Visible::default()
    }
}

/// The order, and which of the threads are visible.
fn title(
    state: &State,
    (first, last): (usize, usize),
    width: usize,
    theme: Theme,
) -> Line<'static> {
    let column = &COLUMNS[state.sorted_by];
    let order = match column.is_largest_first == state.is_reversed {
        true => "smallest first",
        false => "largest first",
    };
    let filter = match state.filter.is_empty() {
        true => String::new(),
        false => format!(" of {} with `{}`", state.status.tasks.len(), state.filter),
    };
    let shown = state.rows().len();
    let text = format!(
        "{first}-{last} of {}{filter}, by {}, {order}",
        plural(shown, "thread"),
        column.shape.heading
    );
    line(&cut(&text, width), theme.faint())
}

fn heading(layout: &Layout, sorted_by: usize, theme: Theme) -> Line<'static> {
    let cells = layout.cells(&headings(&shapes()));
    let pieces = layout.columns().zip(cells).enumerate();
    let mut line = Line::default();
    for (place, (column, cell)) in pieces {
        if place > 0 {
            line.push_span(piece(&layout.gap(), theme.plain()));
        }
        let style = match column == sorted_by {
            true => theme.sorted(),
            false => theme.strong(),
        };
        line.push_span(piece(&cell, style));
    }
    line
}

fn task_line(layout: &Layout, task: &Task, row: &[String], theme: Theme) -> Line<'static> {
    let cells = layout.cells(row);
    let mut line = Line::default();
    for (place, (column, cell)) in layout.columns().zip(cells).enumerate() {
        if place > 0 {
            line.push_span(piece(&layout.gap(), theme.plain()));
        }
        line.push_span(piece(&cell, style(look(column, task), theme)));
    }
    line
}

fn style(look: Look, theme: Theme) -> Style {
    match look {
        Look::Plain => theme.plain(),
        Look::Warning => theme.warning(),
        Look::Alert => theme.alert(),
    }
}
