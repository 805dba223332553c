//! The text of every message. One function for each subject, so that what is said alike stays alike.

use shiftwork_model::{CpuSet, ParseCpuSetError, Span, nearest_name};

use super::TasksetError as Error;

/// The message without the place.
pub(super) fn of(error: &Error) -> String {
    about_keys(error)
        .or_else(|| about_values(error))
        .or_else(|| about_durations(error))
        .or_else(|| about_tasks(error))
        .or_else(|| about_chains(error))
        .or_else(|| about_cpus(error))
        .or_else(|| about_files(error))
        .expect("every variant has a message in one of these functions; a test makes each")
}

/// Keys that should or should not be there, and text that is no file at all.
fn about_keys(error: &Error) -> Option<String> {
    Some(match error {
        Error::Syntax {
            format, problem, ..
        } => {
            format!("this is no {format}: {}", short(problem))
        }
        Error::OtherFormat { format, tools, .. } => {
            format!(
                "this is {format}, and TOML is expected; `shiftwork convert` makes task-set files of those of {tools}"
            )
        }
        Error::UnknownKey {
            key,
            within,
            accepted,
            ..
        } => {
            let meant = did_you_mean(key, accepted);
            let (key, within) = (short(key), short(within));
            let accepted = accepted.join(", ");
            format!("{within} has no key `{key}`; {meant}accepted: {accepted}")
        }
        Error::MissingKey {
            key,
            within,
            example,
            ..
        } => {
            let within = short(within);
            format!("{within} lacks `{key}`; write for instance `{example}`")
        }
        Error::NotExactlyOne {
            within,
            found,
            accepted,
            ..
        } if found.is_empty() => {
            let (within, accepted) = (short(within), any_of(accepted));
            format!("{within} says nothing; write one of {accepted}")
        }
        Error::NotExactlyOne { within, found, .. } => {
            let found: Vec<String> = found.iter().map(|key| format!("`{key}`")).collect();
            let (within, found) = (short(within), found.join(" and "));
            format!("{within} has {found}; keep one of them")
        }
        _ => return None,
    })
}

/// Values that are not what their key takes.
fn about_values(error: &Error) -> Option<String> {
    Some(match error {
        Error::WrongKind {
            key,
            found,
            accepted,
            ..
        } => {
            format!("`{}` is {}; write {accepted}", short(key), short(found))
        }
        Error::OutOfRange {
            key,
            found,
            accepted,
            ..
        } => {
            format!("`{}` is {}; write {accepted}", short(key), short(found))
        }
        Error::NotOneOf {
            key,
            found,
            accepted,
            ..
        } => {
            let (meant, accepted) = (did_you_mean(found, accepted), any_of(accepted));
            format!(
                "`{}` is \"{}\"; {meant}write {accepted}",
                short(key),
                short(found)
            )
        }
        Error::Zero { key, .. } => format!("`{}` is zero; write more than zero", short(key)),
        Error::Empty { key, accepted, .. } => {
            format!("`{}` is empty; write {accepted}", short(key))
        }
        Error::Impossible { what, accepted } => format!("{what}; {accepted}"),
        _ => return None,
    })
}

/// Texts and numbers that are no durations.
fn about_durations(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoUnit { key, number, .. } => {
            let (key, number) = (short(key), short(number));
            format!(
                "`{key}` is the number {number} without a unit; write a duration like \"500us\" \
                 or \"2ms\""
            )
        }
        Error::NoDuration {
            key, text, problem, ..
        } => {
            let (key, text, problem) = (short(key), short(text), short(problem));
            format!(
                "`{key}` is \"{text}\", which is no duration ({problem}); write a whole number of \
                 nanoseconds in any unit, like \"500us\" or \"2.5ms\""
            )
        }
        Error::TooLong { key, text, .. } => {
            let (key, text, most) = (short(key), short(text), Span::MAX.as_ns());
            format!("`{key}` is \"{text}\", which is too long; write at most {most}ns (146 years)")
        }
        Error::ReleaseTooEarly {
            release, earliest, ..
        } => format!(
            "a release at {release} comes too early; releases ascend and are at least a period \
             apart: write {earliest} or later, or lower `period`"
        ),
        _ => return None,
    })
}

/// Tasks that cannot be, or that are not there.
fn about_tasks(error: &Error) -> Option<String> {
    Some(match error {
        Error::CostAboveDeadline {
            task,
            cost,
            deadline,
            ..
        } => {
            let task = short(task);
            format!(
                "task `{task}` costs {cost} but is due after {deadline}; lower `cost` or raise \
                 `deadline`"
            )
        }
        Error::CostAbovePeriod {
            task,
            cost,
            period,
            raise,
            ..
        } => {
            let task = short(task);
            format!(
                "task `{task}` costs {cost} in each period of {period}, more than one CPU can give it; lower `cost` or raise \
                 {raise}"
            )
        }
        Error::DuplicateTask { task, first, .. } => {
            let task = short(task);
            format!("task `{task}` is there already ({first}); give each task its own `name`")
        }
        Error::UnknownTask {
            key, task, known, ..
        } => {
            let meant = did_you_mean(task, known);
            let (key, task, known) = (short(key), short(task), there_are("tasks", known));
            format!("`{key}` names the task `{task}`, which does not exist; {meant}{known}")
        }
        Error::UnknownResource {
            key,
            resource,
            known,
            ..
        } => {
            let meant = did_you_mean(resource, known);
            let known = there_are("resources", known);
            let (key, resource) = (short(key), short(resource));
            format!("`{key}` names the resource `{resource}`, which does not exist; {meant}{known}")
        }
        Error::Deadlock { locks, .. } => {
            let locks: Vec<String> = locks
                .iter()
                .map(|it| {
                    let (task, locked, held) =
                        (short(&it.task), short(&it.locked), short(&it.held));
                    format!("task `{task}` locks `{locked}` while it holds `{held}`")
                })
                .collect();
            format!(
                "{}: they may wait for each other for ever; lock in the same order in all tasks",
                locks.join(", ")
            )
        }
        Error::ThrottledWithLocks {
            task,
            longest,
            cost,
            ..
        } => format!(
            "task `{}` locks mutexes and runs for {longest}, and would be throttled after its cost of {cost}, perhaps \
             while it holds one; write cost = \"{longest}\" or on-overrun = \"continue\"",
            short(task)
        ),
        _ => return None,
    })
}

/// Chains of tasks that are no chains, and tasks that trigger others.
fn about_chains(error: &Error) -> Option<String> {
    Some(match error {
        Error::TriggerCircle { tasks, .. } => {
            let tasks: Vec<String> = tasks
                .iter()
                .map(|task| format!("`{}`", short(task)))
                .collect();
            match tasks.as_slice() {
                [task] => format!("task {task} triggers itself; let it arrive by a period"),
                all => format!(
                    "tasks {} trigger one another in a circle; let one of them arrive by a period",
                    all.join(", ")
                ),
            }
        }
        Error::NotTriggeredBy { source, target, .. } => {
            let (source, target) = (short(source), short(target));
            format!(
                "task `{source}` triggers `{target}` in its phases, which does not say so; write triggered-by = \
                 \"{source}\" in task `{target}`"
            )
        }
        Error::DuplicateChain { chain, first, .. } => {
            let chain = short(chain);
            format!("chain `{chain}` is there already ({first}); give each chain its own `name`")
        }
        Error::ChainRepeatsTask { chain, task, .. } => {
            let (chain, task) = (short(chain), short(task));
            format!("chain `{chain}` names task `{task}` twice; name each task once")
        }
        Error::ChainNotTriggered { chain, .. } => {
            let chain = short(chain);
            format!(
                "chain `{chain}` wants a `latency`, and not each of its tasks triggers the next; write `triggered-by` in each \
                 but the first, or want a `reaction` or an `age`"
            )
        }
        Error::ChainTooShort { chain, .. } => {
            let chain = short(chain);
            format!(
                "chain `{chain}` has fewer than two tasks; name at least two in the order in which data pass \
                 through them"
            )
        }
        _ => return None,
    })
}

/// CPUs that do not exist, or that are grouped in a way that cannot be.
fn about_cpus(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoCpuList { key, problem, .. } => {
            format!("`{}`: {}", short(key), short_problem(problem))
        }
        Error::UnknownSet {
            key, set, known, ..
        } => {
            let meant = did_you_mean(set, known);
            let (key, set, known) = (short(key), short(set), there_are("sets", known));
            format!(
                "`{key}` is \"{set}\", which is neither a CPU list nor a named set; {meant}{known}"
            )
        }
        Error::NoCpus { key, .. } => {
            let key = short(key);
            format!("`{key}` has no CPU; name at least one, like \"0\" or \"0-3\"")
        }
        Error::CpusBeyondPlatform {
            key,
            cpus,
            platform,
            ..
        } => {
            let (key, all) = (short(key), CpuSet::first(*platform));
            format!(
                "`{key}` names CPU {cpus}, which the platform does not have; its CPUs are {all}"
            )
        }
        Error::ClustersOverlap { cpu, .. } => {
            format!("CPU {cpu} is in two clusters; put every CPU into exactly one")
        }
        Error::ClustersLeaveOut { cpus, .. } => {
            format!("CPU {cpus} is in no cluster; put every CPU into exactly one")
        }
        Error::Host { problem, .. } => {
            let problem = short(problem);
            format!("`cpus` is \"host\", but {problem}; write the number of CPUs, like `cpus = 4`")
        }
        _ => return None,
    })
}

/// Files as a whole, and names that others know.
fn about_files(error: &Error) -> Option<String> {
    Some(match error {
        Error::OtherKind { found, wanted, .. } => {
            format!(
                "this is {found}, and {wanted} is expected; {}",
                found.usage()
            )
        }
        Error::Refused { problem, .. } => cut(problem, PROBLEM_MAX),
        Error::Several { mistakes } => mistakes.first().map(of).unwrap_or_default(),
        _ => return None,
    })
}

/// The known name that `found` seems to mean, as the beginning of what would be accepted; empty without one.
fn did_you_mean(found: &str, known: &[impl AsRef<str>]) -> String {
    match nearest_name(found, known.iter().map(AsRef::as_ref)) {
        Some(meant) => format!("did you mean `{}`? ", short(meant)),
        None => String::new(),
    }
}

/// The most characters of a file that a message repeats.
const QUOTED_MAX: usize = 160;

/// The most characters of what others say about a name in a file: there are lists of all tests.
const PROBLEM_MAX: usize = 2_000;

/// What a file says, fit for a message on one line.
fn short(found: &str) -> String {
    cut(found, QUOTED_MAX)
}

/// A text that is cut if it is long, and without control characters, which would act on a terminal.
fn cut(found: &str, most: usize) -> String {
    let mut out = String::new();
    for (count, character) in found.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        match character.is_control() {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
}

/// As [`short`], for the text that could not be read as CPUs.
fn short_problem(problem: &ParseCpuSetError) -> String {
    let cut = match problem {
        ParseCpuSetError::Part(part) => ParseCpuSetError::Part(short(part)),
        ParseCpuSetError::Range(part) => ParseCpuSetError::Range(short(part)),
        ParseCpuSetError::TooLarge(part) => ParseCpuSetError::TooLarge(short(part)),
        ParseCpuSetError::Mask(text) => ParseCpuSetError::Mask(short(text)),
        other => other.clone(),
    };
    cut.to_string()
}

/// `a`, `b` or `c`.
fn any_of<T: AsRef<str>>(words: &[T]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("`{}`", word.as_ref()))
        .collect();
    match quoted.as_slice() {
        [] => "nothing".to_string(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// At most this many names are listed in a message.
const NAMES_SHOWN: usize = 12;

/// A short list of names that exist.
fn there_are(kind: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("there are no {kind}");
    }
    let shown = &known[..known.len().min(NAMES_SHOWN)];
    let quoted: Vec<String> = shown
        .iter()
        .map(|name| format!("`{}`", short(name)))
        .collect();
    let more = match known.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the {kind} are {}{more}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_is_cut_and_acts_on_no_terminal() {
        assert_eq!(short("a\u{1b}[2J\n"), "a\\u{1b}[2J\\n");
        assert_eq!(short(&"x".repeat(500)).chars().count(), QUOTED_MAX + 1);
    }

    #[test]
    fn lists_of_names_stay_short() {
        let names: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
        assert!(there_are("tasks", &names).ends_with("`t11` and 8 more"));
        assert_eq!(there_are("sets", &[]), "there are no sets");
        assert_eq!(any_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
