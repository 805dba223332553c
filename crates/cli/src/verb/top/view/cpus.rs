//! The CPUs, the capacity, and all that is wrong.

use ratatui::text::Line;
use shiftwork_model::Instant;

use super::super::state::State;
use super::header::alerts;
use super::text::{Theme, line, wrapped};
use crate::verb::status::cpus::{cpus, rooms};

/// The page.
pub fn lines(state: &State, now: Instant, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for alert in alerts(state, now) {
        lines.extend(wrapped(&format!("! {alert}"), width, theme.alert()));
    }
    if !lines.is_empty() {
        lines.push(line("", theme.faint()));
    }
    for table in [cpus(&state.status, width), rooms(&state.status, width)] {
        for (index, row) in table.lines().enumerate() {
            let style = match index {
                0 => theme.strong(),
                _ => theme.plain(),
            };
            lines.push(line(row, style));
        }
        lines.push(line("", theme.faint()));
    }
    lines.pop();
    lines
}
