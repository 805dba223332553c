//! chrt(1) and taskset(1): a POSIX shell script that starts the program of every task.

use shiftwork_model::{Span, Task, TaskSet};

use super::{
    Class, Exported, ExportedFile, PolicyUse, class_of, deadline_refusal, fifo_priorities,
    losses_of_program, losses_of_set, lost_overrun, on_one_line, words_of,
};

/// Writes a shell script that starts every task that has a `command`, with its CPUs and its class, and waits for
/// all of them. Under policies by deadlines that is SCHED_DEADLINE, else SCHED_FIFO.
///
/// Programs are named as the task set names them; a relative path is relative to where the script is started.
/// A task that cannot be started is a comment that says why, and named in `left_out`.
pub fn chrt(set: &TaskSet, policy: Option<PolicyUse<'_>>) -> Exported {
    let mut left_out = Vec::new();
    let class = class_of(set, policy, &mut left_out);
    losses_of_set(set, &mut left_out);
    let priorities = match class {
        Class::Fifo => fifo_priorities(set, &mut left_out),
        Class::Deadline => vec![0; set.tasks.len()],
    };
    let mut text = format!("#!/bin/sh\n# The tasks of {}.\n", on_one_line(&set.name));
    text += &match class {
        Class::Fifo => "# SCHED_FIFO needs CAP_SYS_NICE or a limit (ulimit -r).\n".to_string(),
        Class::Deadline => format!(
            "# SCHED_DEADLINE needs CAP_SYS_NICE. Tasks may use all CPUs there are, which have to be CPUs {}.\n",
            set.platform.all()
        ),
    };
    for (task, priority) in set.tasks.iter().zip(priorities) {
        let refused = match class {
            Class::Deadline => deadline_refusal(task, set),
            Class::Fifo => None,
        };
        let line = match (words_of(task), refused) {
            (Err(reason), _) => Err(reason.to_string()),
            (Ok(_), Some(reason)) => Err(reason),
            (Ok(words), None) => Ok(words),
        };
        let name = on_one_line(&task.name);
        match line {
            Err(reason) => {
                left_out.push(format!("task `{}`: {reason}", task.name));
                text += &format!("\n# Task {name} is not started: {reason}.\n");
            }
            Ok(words) => {
                losses_of_program(task, &mut left_out);
                if let Some(lost) = lost_overrun(task, class) {
                    left_out.push(format!("task `{}`: {lost}", task.name));
                }
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let prefix = prefix(task, class, priority);
                text += &format!("\n# Task {name}\n{prefix} {} &\n", words.join(" "));
            }
        }
    }
    text += "\nwait\n";
    let files = vec![ExportedFile { name: None, text }];
    Exported { files, left_out }
}

/// What a command line begins with to run under the class.
fn prefix(task: &Task, class: Class, priority: u32) -> String {
    match class {
        Class::Fifo => format!("taskset -c {} chrt --fifo {priority}", task.affinity),
        Class::Deadline => {
            let ns = Span::as_ns;
            format!(
                "chrt --deadline --sched-runtime {} --sched-deadline {} --sched-period {} 0",
                ns(task.cost),
                ns(task.deadline),
                ns(task.period)
            )
        }
    }
}

/// The word as a POSIX shell reads it back: in single quotes, where nothing but a single quote is special.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
