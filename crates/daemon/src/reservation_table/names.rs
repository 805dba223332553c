//! Names of tasks in what admission says: a user sees those of its own tasks.

use shiftwork_model::TaskId;

use super::ReservationTable;
use crate::reservation::OTHER;

/// What comes before the number of a task in the name that admission knows it by, which stands between two [`QUOTE`]s.
const MARK: char = '#';
const QUOTE: char = '`';

/// The name by which admission knows the task.
pub(super) fn placeholder(task: TaskId) -> String {
    format!("{MARK}{}", task.index())
}

impl ReservationTable {
    /// A text of admission with the names of the tasks that this user may see; root may see all. `requested` is the name of
    /// the task that is not admitted, if the text is about one.
    pub fn with_names(&self, text: &str, user: u32, requested: Option<&str>) -> String {
        let mut named = String::with_capacity(text.len());
        // Parts at odd places stand between quotes.
        for (place, part) in text.split(QUOTE).enumerate() {
            let number = part.strip_prefix(MARK).filter(|_| place % 2 == 1);
            let task = number.and_then(|number| number.parse().ok());
            match task.map(TaskId::from_index) {
                Some(task) => named.push_str(&self.name_for(task, user, requested)),
                None if place % 2 == 1 => {
                    named.extend([&QUOTE.to_string(), part, &QUOTE.to_string()])
                }
                None => named.push_str(part),
            }
        }
        named
    }

    fn name_for(&self, task: TaskId, user: u32, requested: Option<&str>) -> String {
        let quoted = |name: &str| format!("{QUOTE}{name}{QUOTE}");
        if let Some(reserved) = self.tasks.get(&task) {
            return match user == 0 || reserved.owner.user == user {
                true => quoted(&reserved.name),
                false => OTHER.to_owned(),
            };
        }
        if let Some(name) = self.shares.get(&task) {
            return quoted(name);
        }
        match self.unavailable_numbers.contains(&task) {
            true => "(ended)".to_owned(),
            false => requested.map_or_else(|| "(new)".to_owned(), quoted),
        }
    }
}
