//! Tasks as sentences name them.

use shiftwork_model::TaskId;

/// So many names are written out.
const NAMES: usize = 8;

/// The name of a task in quotes, or its number if the name is unknown.
pub(crate) fn quoted(task: TaskId, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("`{name}`"),
        None => format!("{task:?}"),
    }
}

/// `task a`, `tasks a, b and c`, or the first few and how many more; `of` names each.
pub(crate) fn list(tasks: &[TaskId], of: impl Fn(TaskId) -> String) -> String {
    let shown: Vec<String> = tasks.iter().take(NAMES).map(|&task| of(task)).collect();
    match (shown.as_slice(), tasks.len().saturating_sub(NAMES)) {
        ([], _) => "no task".to_owned(),
        ([only], 0) => format!("task {only}"),
        ([first @ .., last], 0) => format!("tasks {} and {last}", first.join(", ")),
        (_, more) => format!("tasks {} and {more} more", shown.join(", ")),
    }
}
