//! systemd: one service unit for the program of every task.

use shiftwork_model::{Task, TaskSet};

use super::{
    Class, Exported, ExportedFile, PolicyUse, class_of, fifo_priorities, losses_of_program,
    losses_of_set, lost_overrun, on_one_line, words_of,
};

/// Writes a service unit for every task that has a `command`, under SCHED_FIFO: units know no SCHED_DEADLINE.
///
/// systemd takes programs by their absolute path or by a name without a slash; the caller makes paths absolute.
/// A task without a unit is named in `left_out`.
pub fn systemd(set: &TaskSet, policy: Option<PolicyUse<'_>>) -> Exported {
    let mut left_out = Vec::new();
    if class_of(set, policy, &mut left_out) == Class::Deadline {
        left_out.push(
            "the order by deadline; units know no SCHED_DEADLINE, and SCHED_FIFO with fixed priorities is written"
                .to_string(),
        );
    }
    losses_of_set(set, &mut left_out);
    let priorities = fifo_priorities(set, &mut left_out);
    let mut files = Vec::new();
    for (task, priority) in set.tasks.iter().zip(priorities) {
        let unit = exec_start(task).and_then(|line| Ok((unit_name(&set.name, &task.name)?, line)));
        let (unit, line) = match unit {
            Ok(unit) => unit,
            Err(reason) => {
                left_out.push(format!("task `{}`: {reason}", task.name));
                continue;
            }
        };
        losses_of_program(task, &mut left_out);
        if let Some(lost) = lost_overrun(task, Class::Fifo) {
            left_out.push(format!("task `{}`: {lost}", task.name));
        }
        let description = on_one_line(&task.name).replace('%', "%%");
        let set_name = on_one_line(&set.name).replace('%', "%%");
        let cpus = task.affinity;
        let text = format!(
            "[Unit]\nDescription=Task {description} of {set_name}\n\n[Service]\nExecStart={line}\n\
             CPUAffinity={cpus}\nCPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}\n\n\
             [Install]\nWantedBy=multi-user.target\n"
        );
        let name = Some(unit);
        files.push(ExportedFile { name, text });
    }
    Exported { files, left_out }
}

/// The value of `ExecStart=`, or why the program cannot be one.
///
/// # Source
/// systemd.service(5), "Command lines": the program is no place for `$`, and special characters before it
/// are flags.
fn exec_start(task: &Task) -> Result<String, &'static str> {
    let words = words_of(task)?;
    let program = &words[0];
    if program.starts_with(['-', '@', ':', '+', '!', '|']) {
        return Err("systemd takes the first character of its program as a flag");
    }
    if program.contains('$') {
        return Err("systemd has no way to write `$` in the name of a program");
    }
    if program.contains('/') && !program.starts_with('/') {
        return Err("systemd takes no relative path of a program");
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    Ok(words.join(" "))
}

/// The word as systemd reads it back in a command line: quoted, with `%` and `$` doubled.
fn quoted(word: &str) -> String {
    let mut text = String::from('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' | '$' => text.extend([c, c]),
            '\n' => text.push_str("\\n"),
            c if c.is_ascii_control() => text += &format!("\\x{:02x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// The name of the unit of a task of a set, different for different tasks: what systemd takes in names, and each
/// other byte as `\\xNN`, as systemd-escape(1) writes it. The error says why there is none.
fn unit_name(set: &str, task: &str) -> Result<String, &'static str> {
    if task.is_empty() {
        return Err("it has no name");
    }
    let whole = match set {
        "" => task.to_string(),
        set => format!("{set}-{task}"),
    };
    let mut name = String::new();
    for (at, byte) in whole.bytes().enumerate() {
        match byte {
            b'.' if at == 0 => name += "\\x2e",
            b'-' | b':' | b'_' | b'.' => name.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            _ => name += &format!("\\x{byte:02x}"),
        }
    }
    name += ".service";
    match name.len() <= UNIT_NAME_MAX {
        true => Ok(name),
        false => Err("its name is too long for a unit"),
    }
}

/// The longest name that systemd takes, in bytes.
const UNIT_NAME_MAX: usize = 255;
