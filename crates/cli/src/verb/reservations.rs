//! Which reservations the user names.

use shiftwork_client::Task;

use crate::failure::Failure;
use crate::verb::apply::task_name;

/// So many candidates are named in an error.
const SHOWN_MAX: usize = 12;

/// The reservations of the thread or of the threads of the process with this number, or the one with this name; the name of a
/// task may stand without that of its set if no other one has it.
///
/// # Errors
/// If there is none, or several have the name: which ones there are.
pub fn find<'a>(which: &str, tasks: &'a [Task]) -> Result<Vec<&'a Task>, Failure> {
    if let Ok(number) = which.parse::<u32>() {
        let of = |it: &&Task| it.thread == number || it.process == number;
        let found: Vec<&Task> = tasks.iter().filter(of).collect();
        return match found.is_empty() {
            false => Ok(found),
            true => Err(Failure::input(format_args!(
                "no thread of process {number} has a reservation that you may release or change; `shiftwork status` lists them"
            ))),
        };
    }
    let is_named = |it: &&Task| it.name == which;
    let mut found: Vec<&Task> = tasks.iter().filter(is_named).collect();
    if found.is_empty() {
        let is_short = |it: &&Task| {
            let set = it.name.split_once('/').map_or("", |(set, _)| set);
            task_name(set, &it.name) == Some(which)
        };
        found = tasks.iter().filter(is_short).collect();
    }
    match found.as_slice() {
        [_] => Ok(found),
        [] => Err(Failure::input(match tasks.is_empty() {
            true => {
                format!("there is no reservation named `{which}`, nor any other one that is yours")
            }
            false => format!(
                "there is no reservation named `{which}`; there are {}",
                list(tasks.iter())
            ),
        })),
        several => Err(Failure::input(format_args!(
            "several reservations are named `{which}`: {}; give the number of the thread",
            list(several.iter().copied())
        ))),
    }
}

/// The first of them, and how many more.
pub fn list<'a>(tasks: impl ExactSizeIterator<Item = &'a Task>) -> String {
    let more = tasks.len().saturating_sub(SHOWN_MAX);
    let shown = tasks.take(SHOWN_MAX);
    let shown: Vec<String> = shown
        .map(|it| format!("`{}` (thread {})", it.name, it.thread))
        .collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_client::{Reservation, State};
    use shiftwork_model::Span;

    use super::*;

    fn task(number: u32, name: &str, process: u32, thread: u32) -> Task {
        Task {
            task: number,
            name: name.to_owned(),
            process,
            thread,
            user: 0,
            cgroup: String::new(),
            reservation: Reservation::new(Span::from_ms(1), Span::from_ms(9)),
            state: State::Admitted,
            guarantee: "hard".to_owned(),
            cpu: None,
            jobs: 0,
            misses: 0,
            overruns: 0,
            tardiness_max: Span::ZERO,
            response_max: Span::ZERO,
            ran: Span::ZERO,
            load: 0.0,
        }
    }

    #[test]
    fn reservations_are_found_by_number_and_by_name() {
        let tasks = [
            task(1, "rover/camera", 40, 41),
            task(2, "rover/control", 40, 42),
            task(3, "drone/camera", 50, 50),
            task(4, "control", 60, 60),
            task(5, "twice", 61, 61),
            task(6, "twice", 62, 62),
        ];
        let numbers = |which: &str| -> Vec<u32> {
            find(which, &tasks)
                .unwrap()
                .iter()
                .map(|it| it.task)
                .collect()
        };
        assert_eq!(numbers("41"), [1]);
        assert_eq!(numbers("40"), [1, 2]);
        assert_eq!(numbers("rover/camera"), [1]);
        // The whole name comes first.
        assert_eq!(numbers("control"), [4]);
        let says = |which: &str| find(which, &tasks).unwrap_err().render(false);
        assert_eq!(
            says("camera"),
            "error: several reservations are named `camera`: `rover/camera` (thread 41), `drone/camera` (thread 50); give the \
             number of the thread"
        );
        assert!(says("twice").contains("(thread 61), `twice` (thread 62)"));
        assert!(
            says("lidar")
                .contains("there is no reservation named `lidar`; there are `rover/camera`")
        );
        assert!(says("7").contains("no thread of process 7 has a reservation"));
        let none = find("lidar", &[]).unwrap_err().render(false);
        assert!(none.contains("nor any other one"), "{none}");
        let many: Vec<Task> = (0..14)
            .map(|number| task(number, "a", number, number))
            .collect();
        let list = list(many.iter());
        assert!(list.ends_with("(thread 11) and 2 more"), "{list}");
    }
}
