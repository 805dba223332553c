//! Which running thread a task of the file means.

use std::collections::BTreeSet;

use shiftwork_model::ThreadName;
use shiftwork_observe::RunningThread;

/// So many candidates are named in an error.
const SHOWN_MAX: usize = 12;

/// Of which processes threads are taken.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// Only of this user's; root may take all.
    pub user: u32,
    /// Only of these; empty: of all.
    pub processes: &'a [u32],
}

impl Choice<'_> {
    fn permits(&self, thread: &RunningThread) -> bool {
        let is_own = self.user == 0 || thread.user == self.user;
        is_own && (self.processes.is_empty() || self.processes.contains(&thread.process))
    }
}

/// The one thread that the names mean.
///
/// # Errors
/// If none or several match: which ones there are, and what would choose one.
pub fn find<'a>(
    wanted: &ThreadName,
    threads: &'a [RunningThread],
    choice: Choice<'_>,
) -> Result<&'a RunningThread, String> {
    let is_in_process = |it: &&RunningThread| it.process_name == wanted.process;
    let named: Vec<&RunningThread> = threads.iter().filter(is_in_process).collect();
    let permitted = named.iter().copied().filter(|it| choice.permits(it));
    let permitted: Vec<&RunningThread> = permitted.collect();
    if permitted.is_empty() {
        return Err(no_process(&wanted.process, &named, choice));
    }
    let is_meant = |it: &&RunningThread| match &wanted.name {
        None => it.id == it.process,
        Some(name) => it.name == *name,
    };
    let mut matches: Vec<&RunningThread> = permitted.iter().copied().filter(is_meant).collect();
    matches.sort_by_key(|it| (it.id != it.process, it.started, it.id));
    let processes = processes_of(&matches);
    if processes.is_empty() {
        return Err(no_thread(wanted, &permitted));
    }
    if processes.len() > 1 {
        let numbers = list(processes.iter().map(u32::to_string));
        return Err(format!(
            "several processes are named `{}`: {numbers}; choose one by `--pid`",
            wanted.process
        ));
    }
    let place = wanted.number.map(|number| number as usize - 1);
    match (place, matches.as_slice()) {
        (None, [one]) => Ok(one),
        (None, several) => Err(format!(
            "{} are named `{}`: {}, the oldest first; choose one by `number = 1`",
            count(wanted, several),
            wanted.name.as_deref().unwrap_or_default(),
            list(several.iter().map(|it| it.id.to_string()))
        )),
        (Some(place), all) => all.get(place).copied().ok_or_else(|| {
            format!(
                "`number = {}`, but {} named `{}`: {}",
                place + 1,
                match all.len() {
                    1 => format!("one thread of process `{}` is", wanted.process),
                    _ => format!("{} are", count(wanted, all)),
                },
                wanted.name.as_deref().unwrap_or_default(),
                list(all.iter().map(|it| it.id.to_string()))
            )
        }),
    }
}

fn count(wanted: &ThreadName, threads: &[&RunningThread]) -> String {
    format!("{} threads of process `{}`", threads.len(), wanted.process)
}

fn processes_of(threads: &[&RunningThread]) -> BTreeSet<u32> {
    threads.iter().map(|it| it.process).collect()
}

/// Why no process with this name may be taken; `named` are the threads of those that there are.
fn no_process(name: &str, named: &[&RunningThread], choice: Choice<'_>) -> String {
    let there: BTreeSet<(u32, u32)> = named.iter().map(|it| (it.process, it.user)).collect();
    let numbers = || list(there.iter().map(|(process, _)| process.to_string()));
    if there.is_empty() {
        return format!(
            "there is no process named `{name}`; start the program, or write the name that `ps -e -o pid,comm` shows"
        );
    }
    let own = |it: &(u32, u32)| choice.user == 0 || it.1 == choice.user;
    if !there.iter().any(own) {
        return format!(
            "process `{name}` ({}) does not belong to user {}; only root reserves for threads of others",
            numbers(),
            choice.user
        );
    }
    format!(
        "none of the processes of `--pid` is named `{name}`; named so: {}",
        numbers()
    )
}

/// That no thread of these processes has the name.
fn no_thread(wanted: &ThreadName, permitted: &[&RunningThread]) -> String {
    let numbers = list(processes_of(permitted).iter().map(u32::to_string));
    let process = format!("process `{}` ({numbers})", wanted.process);
    let Some(name) = &wanted.name else {
        return format!("the main thread of {process} has ended; name another one by `name`");
    };
    let names: BTreeSet<&str> = permitted.iter().map(|it| it.name.as_str()).collect();
    format!(
        "{process} has no thread named `{name}`; it has {}",
        list(names.iter().map(|name| format!("`{name}`")))
    )
}

/// The first of them, and how many more.
fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(SHOWN_MAX);
    let shown: Vec<String> = items.take(SHOWN_MAX).collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use shiftwork_model::RandomStream;

    use super::*;

    pub fn thread(process: (u32, &str), id: u32, name: &str) -> RunningThread {
        RunningThread {
            process: process.0,
            process_name: process.1.to_owned(),
            id,
            name: name.to_owned(),
            started: u64::from(id),
            user: 1_000,
        }
    }

    pub fn named(process: &str, name: Option<&str>, number: Option<u32>) -> ThreadName {
        ThreadName {
            process: process.to_owned(),
            name: name.map(str::to_owned),
            number,
        }
    }

    const ANY: Choice<'_> = Choice {
        user: 1_000,
        processes: &[],
    };

    /// The definition: there is one process with a thread of this name, in which so many threads of the name are older.
    fn is_the_thread(
        it: &RunningThread,
        wanted: &ThreadName,
        all: &[RunningThread],
        choice: Choice<'_>,
    ) -> bool {
        let fits = |it: &RunningThread| {
            let is_own = choice.user == 0 || it.user == choice.user;
            let is_chosen = choice.processes.is_empty() || choice.processes.contains(&it.process);
            let name = wanted.name.as_ref();
            let is_named = name.map_or(it.id == it.process, |name| it.name == *name);
            is_own && is_chosen && it.process_name == wanted.process && is_named
        };
        let is_older = |other: &RunningThread| {
            let is_main = other.id == other.process;
            let began = (other.started, other.id) < (it.started, it.id);
            other.id != it.id && it.id != it.process && (is_main || began)
        };
        let alike: Vec<&RunningThread> = all.iter().filter(|other| fits(other)).collect();
        let older = alike.iter().filter(|other| is_older(other)).count();
        fits(it)
            && alike.iter().all(|other| other.process == it.process)
            && match wanted.number {
                None => alike.len() == 1,
                Some(number) => older + 1 == number as usize,
            }
    }

    #[test]
    fn found_thread_is_that_of_the_definition() {
        let (mut found, mut refused) = (0, 0);
        for seed in 1..=3_000 {
            let mut random = RandomStream::new(seed, 95, 0);
            let mut of = |texts: &[&'static str]| texts[random.below(texts.len() as u64) as usize];
            let mut all = Vec::new();
            for process in 1..=3 {
                let process_name = of(&["rover", "drone"]);
                for index in 0..4 {
                    let name = of(&["rover", "worker", "camera"]);
                    let mut it = thread((process * 10, process_name), process * 10 + index, name);
                    it.started = [5, 6, 7][(seed as usize + index as usize * 7) % 3];
                    it.user = 1_000 + u32::from(of(&["", "x", "x", "x"]).is_empty());
                    all.push(it);
                }
            }
            let name = [None, Some(of(&["worker", "camera"]))][of(&["", "x", "x"]).len()];
            let number = [None, Some(1), Some(2), Some(3)][random.below(4) as usize];
            let wanted = named("rover", name, number.filter(|_| name.is_some()));
            let processes: [&[u32]; 3] = [&[], &[10], &[10, 20]];
            let choice = Choice {
                user: [0, 1_000][random.below(2) as usize],
                processes: processes[random.below(3) as usize],
            };
            let expected: Vec<&RunningThread> = all
                .iter()
                .filter(|it| is_the_thread(it, &wanted, &all, choice))
                .collect();
            match find(&wanted, &all, choice) {
                Ok(it) => assert_eq!(vec![it], expected, "seed {seed}: {wanted:?} in {all:?}"),
                Err(why) => assert!(
                    expected.is_empty(),
                    "seed {seed}: {wanted:?} in {all:?}: {why}"
                ),
            }
            found += u32::from(!expected.is_empty());
            refused += u32::from(expected.is_empty());
        }
        assert!(found > 500 && refused > 500, "{found} {refused}");
    }

    #[test]
    fn errors_list_candidates_and_what_chooses_one() {
        let rover = (40, "rover");
        let all = [
            thread(rover, 40, "rover"),
            thread(rover, 41, "worker"),
            thread(rover, 42, "worker"),
            thread(rover, 43, "camera"),
            thread((50, "sh"), 50, "sh"),
            thread((51, "sh"), 51, "sh"),
        ];
        let error = |wanted: &ThreadName, choice| find(wanted, &all, choice).unwrap_err();
        let only = |processes| Choice { processes, ..ANY };
        for (wanted, choice, says) in [
            (
                named("rober", None, None),
                ANY,
                "there is no process named `rober`; start the program, or write the name that `ps -e -o pid,comm` shows",
            ),
            (
                named("rover", Some("lidar"), None),
                ANY,
                "process `rover` (40) has no thread named `lidar`; it has `camera`, `rover`, `worker`",
            ),
            (
                named("rover", Some("worker"), None),
                ANY,
                "2 threads of process `rover` are named `worker`: 41, 42, the oldest first; choose one by `number = 1`",
            ),
            (
                named("rover", Some("worker"), Some(3)),
                ANY,
                "`number = 3`, but 2 threads of process `rover` are named `worker`: 41, 42",
            ),
            (
                named("rover", Some("camera"), Some(2)),
                ANY,
                "`number = 2`, but one thread of process `rover` is named `camera`: 43",
            ),
            (
                named("sh", None, None),
                ANY,
                "several processes are named `sh`: 50, 51; choose one by `--pid`",
            ),
            (
                named("sh", None, None),
                only(&[40]),
                "none of the processes of `--pid` is named `sh`; named so: 50, 51",
            ),
            (
                named("sh", None, None),
                Choice { user: 7, ..ANY },
                "process `sh` (50, 51) does not belong to user 7; only root reserves for threads of others",
            ),
        ] {
            assert_eq!(error(&wanted, choice), says);
        }
        let found = |wanted: &ThreadName, choice| find(wanted, &all, choice).map(|it| it.id);
        assert_eq!(found(&named("sh", None, None), only(&[51])), Ok(51));
        assert_eq!(found(&named("rover", Some("worker"), Some(2)), ANY), Ok(42));
        assert_eq!(found(&named("rover", None, None), ANY), Ok(40));
        let many: Vec<_> = (0..14).map(|id| thread((id, "sh"), id, "sh")).collect();
        let error = find(&named("sh", None, None), &many, ANY).unwrap_err();
        assert!(error.contains("11 and 2 more"), "{error}");
    }
}
