//! The keys that `top` knows.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// To the left.
    Left,
    /// To the right.
    Right,
    /// One screen up.
    PageUp,
    /// One screen down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// Enter.
    Enter,
    /// Esc.
    Escape,
    /// Deletes the last character.
    Backspace,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

impl Key {
    /// The key of an event of the terminal; `None` if it means nothing here.
    pub fn of(event: KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        if event.modifiers.contains(KeyModifiers::CONTROL) {
            return match event.code {
                KeyCode::Char('c') => Some(Self::Interrupt),
                KeyCode::Char('z') => Some(Self::Suspend),
                KeyCode::Char('h') => Some(Self::Backspace),
                _ => None,
            };
        }
        match event.code {
            KeyCode::Char(char) => Some(Self::Char(char)),
            KeyCode::Up => Some(Self::Up),
            KeyCode::Down => Some(Self::Down),
            KeyCode::Left => Some(Self::Left),
            KeyCode::Right => Some(Self::Right),
            KeyCode::PageUp => Some(Self::PageUp),
            KeyCode::PageDown => Some(Self::PageDown),
            KeyCode::Home => Some(Self::Home),
            KeyCode::End => Some(Self::End),
            KeyCode::Enter => Some(Self::Enter),
            KeyCode::Esc => Some(Self::Escape),
            KeyCode::Backspace => Some(Self::Backspace),
            _ => None,
        }
    }
}
