//! What `top` shows, as a function of keys and answers. It reads no clock and no terminal.

use shiftwork_client::{Miss, Status, Task};
use shiftwork_model::{Instant, Span};

use super::key::Key;
use super::scroll::{Scroll, Selection};
use crate::table::printable;
use crate::verb::status::columns::COLUMNS;
use crate::verb::status::users::Users;

/// A question without an answer for this long is shown.
const SLOW: Span = Span::from_ms(1_500);

/// After a failure the next question is asked not earlier than this.
const RETRY: Span = Span::from_ms(500);

/// Maximum length of a filter in characters.
const FILTER_MAX: usize = 64;

/// The column by which threads are sorted at first: the missed deadlines.
const SORTED_AT_FIRST: usize = 9;

/// What is asked of the daemon at once: the status, and the explained misses of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The task whose misses are wanted.
    pub misses_of: Option<u32>,
}

/// The misses of a task, or why they are not known.
pub type Misses = Result<Vec<Miss>, String>;

/// What became of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The daemon answered.
    Answered {
        /// Its status.
        status: Box<Status>,
        /// The misses of the task in the question.
        misses: Option<(u32, Misses)>,
    },
    /// It did not, for this reason.
    Failed(String),
}

/// What is on the screen below the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// The table of threads.
    Threads,
    /// One thread.
    Thread,
    /// The CPUs and the capacity.
    Cpus,
    /// The keys.
    Help,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Continue,
    /// Stop the process until it is continued (Ctrl-Z).
    Suspend,
    /// End.
    Quit,
}

/// A thread whose misses are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// As it was when it was last in a status.
    pub task: Task,
    /// Whether it is in the last status.
    pub is_present: bool,
    /// Its misses; `None`: not known yet.
    pub misses: Option<Misses>,
}

/// What was visible when it was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// Rows of the table of threads.
    pub rows: usize,
    /// Length of the text of the other screens, and how many lines of it.
    pub lines: (usize, usize),
}

/// All that is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The last status.
    pub status: Status,
    /// The names of users.
    pub users: Users,
    /// What is shown below the header.
    pub screen: Screen,
    /// The thread of [`Screen::Thread`].
    pub opened: Option<Opened>,
    /// Whether answers are kept back.
    pub is_paused: bool,
    /// Index of the column of the order.
    pub sorted_by: usize,
    /// Whether that order is reversed.
    pub is_reversed: bool,
    /// Only threads with this in their names, owners or numbers are shown.
    pub filter: String,
    /// Whether keys edit the filter.
    pub is_typing: bool,
    /// Since when questions fail, and why the last did.
    pub lost: Option<(Instant, String)>,
    /// The selected row of [`Screen::Threads`].
    pub threads: Selection,
    /// The visible lines of the other screens.
    pub lines: Scroll,
    /// The threads that are shown, as indices of tasks in the status.
    order: Vec<usize>,
    /// The selected thread.
    selected: Option<u32>,
    /// How long from an answer to the next question.
    interval: Span,
    /// When to ask next.
    ask_at: Instant,
    /// When the question without an answer was asked.
    asked_at: Option<Instant>,
    /// When an answer last came.
    now: Instant,
}

impl State {
    /// After the first answer.
    pub fn new(status: Status, users: Users, interval: Span, now: Instant) -> Self {
        let mut state = Self {
            status,
            users,
            screen: Screen::Threads,
            opened: None,
            is_paused: false,
            sorted_by: SORTED_AT_FIRST,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            lost: None,
            threads: Selection::default(),
            lines: Scroll::default(),
            order: Vec::new(),
            selected: None,
            interval,
            ask_at: now + interval,
            asked_at: None,
            now,
        };
        state.sort();
        state
    }

    /// The threads that are shown, in their order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &Task> {
        self.order.iter().map(|&index| &self.status.tasks[index])
    }

    /// The selected thread; `None` if none is shown.
    pub fn selected(&self) -> Option<&Task> {
        let index = self.order.get(self.threads.at())?;
        self.status.tasks.get(*index)
    }

    /// It was drawn.
    pub fn fit(&mut self, visible: Visible) {
        match self.screen {
            Screen::Threads => self.threads.set_page(visible.rows),
            _ => self.lines.set(visible.lines.0, visible.lines.1),
        }
    }

    /// What to ask now; `None`: nothing. Each question must be answered before the next.
    pub fn question(&mut self, now: Instant) -> Option<Question> {
        let is_due = now >= self.ask_at && (!self.is_paused || self.wants_misses());
        if self.asked_at.is_some() || !is_due {
            return None;
        }
        self.asked_at = Some(now);
        let opened = self.opened.as_ref().filter(|it| it.is_present);
        Some(Question {
            misses_of: opened.map(|it| it.task.task),
        })
    }

    /// Whether a thread was opened whose misses are not known yet.
    fn wants_misses(&self) -> bool {
        let opened = self.opened.as_ref();
        opened.is_some_and(|it| it.is_present && it.misses.is_none())
    }

    /// The question was answered.
    pub fn take(&mut self, answer: Answer, now: Instant) {
        self.asked_at = None;
        self.ask_at = now + self.interval;
        self.now = now;
        match answer {
            Answer::Failed(reason) => {
                let since = self.lost.as_ref().map_or(now, |&(since, _)| since);
                self.lost = Some((since, reason));
                self.ask_at = now + self.interval.max(RETRY);
            }
            Answer::Answered { status, misses } => {
                self.lost = None;
                if !self.is_paused {
                    self.status = *status;
                    self.sort();
                }
                self.take_opened(misses);
                // A thread was opened after the question.
                if self.wants_misses() {
                    self.ask_at = now;
                }
            }
        }
    }

    fn take_opened(&mut self, misses: Option<(u32, Misses)>) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        if !self.is_paused {
            let mut tasks = self.status.tasks.iter();
            let present = tasks.find(|it| it.thread == opened.task.thread);
            opened.is_present = present.is_some();
            if let Some(present) = present {
                opened.task = present.clone();
            }
        }
        if let Some((_, misses)) = misses.filter(|&(task, _)| task == opened.task.task) {
            opened.misses = Some(misses);
        }
    }

    /// How long the daemon has not answered, if that is long.
    pub fn waiting(&self, now: Instant) -> Option<Span> {
        let waited = now.late_since(self.asked_at?);
        (waited >= SLOW).then_some(waited)
    }

    /// A key was pressed.
    pub fn press(&mut self, key: Key) -> Next {
        match key {
            Key::Interrupt => return Next::Quit,
            Key::Suspend => return Next::Suspend,
            _ if self.is_typing => self.type_filter(key),
            Key::Char('q') => return Next::Quit,
            Key::Char('p') => self.pause(),
            Key::Char('?' | 'h') => self.show(Screen::Help),
            Key::Char('c') => self.show(Screen::Cpus),
            Key::Escape | Key::Backspace => self.back(),
            _ if self.screen == Screen::Threads => self.press_in_threads(key),
            Key::Enter => self.back(),
            _ => self.lines.press(key),
        }
        Next::Continue
    }

    fn press_in_threads(&mut self, key: Key) {
        match key {
            Key::Char('/') => self.is_typing = true,
            Key::Char('r') => {
                self.is_reversed = !self.is_reversed;
                self.sort();
            }
            Key::Left | Key::Char('<') => self.sort_by(COLUMNS.len() - 1),
            Key::Right | Key::Char('>') => self.sort_by(1),
            Key::Enter => self.open(),
            _ => {
                self.threads.press(key);
                self.selected = self.selected().map(|it| it.thread);
            }
        }
    }

    fn sort_by(&mut self, steps: usize) {
        self.sorted_by = (self.sorted_by + steps) % COLUMNS.len();
        self.is_reversed = false;
        self.sort();
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.is_typing = self.filter.pop().is_some();
            }
            Key::Char(char) => {
                if self.filter.chars().count() < FILTER_MAX {
                    self.filter.push_str(&printable(&char.to_string()));
                }
            }
            _ => {
                self.threads.press(key);
                self.selected = self.selected().map(|it| it.thread);
            }
        }
        self.sort();
    }

    fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        if !self.is_paused {
            self.ask_at = self.now;
        }
    }

    fn show(&mut self, screen: Screen) {
        match self.screen == screen {
            true => self.back(),
            false => {
                self.screen = screen;
                self.opened = None;
                self.lines = Scroll::default();
            }
        }
    }

    fn open(&mut self) {
        if let Some(task) = self.selected().cloned() {
            self.show(Screen::Thread);
            self.opened = Some(Opened {
                task,
                is_present: true,
                misses: None,
            });
            self.ask_at = self.now;
        }
    }

    /// Back to the table; there the filter ends.
    fn back(&mut self) {
        match self.screen {
            Screen::Threads => {
                self.filter.clear();
                self.sort();
            }
            _ => {
                self.screen = Screen::Threads;
                self.opened = None;
            }
        }
    }

    /// Filters and sorts the threads. The selected one stays selected; if it is gone, the one in its place is.
    fn sort(&mut self) {
        let tasks = &self.status.tasks;
        let wanted = self.filter.to_lowercase();
        let mut order: Vec<usize> = (0..tasks.len())
            .filter(|&index| matches(&tasks[index], &self.users, &wanted))
            .collect();
        let column = &COLUMNS[self.sorted_by % COLUMNS.len()];
        let is_descending = column.is_largest_first != self.is_reversed;
        order.sort_by(|&a, &b| {
            let (a, b) = (&tasks[a], &tasks[b]);
            let ordering = (column.order)(a, b);
            let ordering = match is_descending {
                true => ordering.reverse(),
                false => ordering,
            };
            // Threads that are equal keep their places whatever the daemon lists first.
            ordering.then(a.thread.cmp(&b.thread))
        });
        let of = |&index: &usize| Some(tasks[index].thread) == self.selected;
        let place = order.iter().position(of);
        self.order = order;
        self.threads.set_length(self.order.len());
        if let Some(place) = place {
            self.threads.go_to(place);
        }
        self.selected = self.selected().map(|it| it.thread);
    }
}

/// Whether the text is part of the thread's name, its owner's, or begins one of its numbers.
fn matches(task: &Task, users: &Users, wanted: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(wanted);
    let numbers = [task.process, task.thread];
    wanted.is_empty()
        || has(&printable(&task.name))
        || has(&users.name(task.user))
        || numbers.iter().any(|it| it.to_string().starts_with(wanted))
}
