//! The last line: which keys there are, or the filter while it is typed.

use ratatui::text::Line;

use super::super::state::{Screen, State};
use super::text::{Theme, piece};
use crate::table::cut;

/// The keys of the screen, as many as fit.
fn line_of(keys: &[(&str, &str)], width: usize, theme: Theme) -> Line<'static> {
    let mut pieces = Vec::new();
    let mut left = width + 2;
    for (key, what) in keys {
        let needed = key.chars().count() + 1 + what.chars().count() + 2;
        if needed > left {
            break;
        }
        left -= needed;
        pieces.push(piece(key, theme.strong()));
        pieces.push(piece(&format!(" {what}  "), theme.faint()));
    }
    Line::from(pieces)
}

/// The last line.
pub fn line(state: &State, width: usize, theme: Theme) -> Line<'static> {
    if state.is_typing {
        let typed = format!("filter: {}_  (Enter keeps it, Esc clears it)", state.filter);
        return super::text::line(&cut(&typed, width), theme.strong());
    }
    let keys: &[(&str, &str)] = match state.screen {
        Screen::Threads => &[
            ("q", "quit"),
            ("?", "help"),
            ("Enter", "misses"),
            ("/", "filter"),
            ("< >", "sort"),
            ("r", "reverse"),
            ("c", "CPUs"),
            ("p", "pause"),
        ],
        _ => &[
            ("Esc", "back"),
            ("q", "quit"),
            ("Up Down", "scroll"),
            ("p", "pause"),
            ("?", "help"),
        ],
    };
    line_of(keys, width, theme)
}
