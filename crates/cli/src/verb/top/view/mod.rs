//! Draws the state: a header, one of the screens, and the keys. All texts go through [`text::line`].

mod cpus;
mod header;
mod help;
mod keys;
mod text;
mod thread;
mod threads;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget as _;
use shiftwork_model::Instant;

use super::state::{Screen, State, Visible};
use text::Theme;

/// From these heights on the header has all its lines, and two of them.
const HEIGHT_WHOLE: u16 = 16;
const HEIGHT_HALF: u16 = 10;

/// Draws the state as of now; returns how much of it is visible.
pub fn draw(frame: &mut Frame<'_>, state: &State, now: Instant, has_color: bool) -> Visible {
    let area = frame.area();
    let theme = Theme { has_color };
    let buffer = frame.buffer_mut();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut head = header::lines(&state.status, width, theme);
    match (state.screen, area.height) {
        (Screen::Threads, HEIGHT_WHOLE..) => {}
        (Screen::Threads, HEIGHT_HALF..) => head.truncate(2),
        // The others need the room themselves.
        _ => head.truncate(1),
    }
    let alerts_max = match state.screen {
        // It has all of them.
        Screen::Cpus => 0,
        _ => (height / 6).clamp(1, 4),
    };
    head.extend(header::alert_lines(state, now, alerts_max, width, theme));
    // Two lines remain for the screen and one for keys, as far as there are lines.
    head.truncate(height.saturating_sub(3));
    let foot = u16::from(area.height > 1);
    let body = Rect {
        y: area.y + head.len() as u16,
        height: area.height - head.len() as u16 - foot,
        ..area
    };
    put(buffer, area, head);
    let keys = Rect {
        y: body.bottom(),
        height: foot,
        ..area
    };
    put(buffer, keys, vec![keys::line(state, width, theme)]);
    let lines = match state.screen {
        Screen::Threads => return threads::draw(buffer, body, state, theme),
        Screen::Thread => thread::lines(state, now, width, theme),
        Screen::Cpus => cpus::lines(state, now, width, theme),
        Screen::Help => help::lines(width, theme),
    };
    let page = usize::from(body.height);
    let mut scroll = state.lines;
    scroll.set(lines.len(), page);
    let length = lines.len();
    let shown = lines.into_iter().skip(scroll.first()).take(page);
    put(buffer, body, shown.collect());
    if scroll.has_more() && body.height > 0 {
        let below = length - scroll.first() - page;
        let more = text::line(&format!("v {below} more"), theme.faint());
        let at = Rect {
            x: body.right().saturating_sub(more.width() as u16).max(body.x),
            y: body.bottom() - 1,
            width: (more.width() as u16).min(body.width),
            height: 1,
        };
        put(buffer, at, vec![more]);
    }
    Visible {
        lines: (length, page),
        ..Visible::default()
    }
}

/// Writes lines from the top of the area; those that have no room are left out.
fn put(buffer: &mut Buffer, area: Rect, lines: Vec<Line<'_>>) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

#[cfg(test)]
mod tests;
