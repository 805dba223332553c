//! A process and those that it started: launchers (`timeout`, shells, `ros2 run`) leave the work to others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use crate::error::ObserveError;
use crate::event::Thread;
use crate::process::{Stat, check_process, process_ids, process_of, stat, thread, thread_ids};

/// A process, those that it started, those that these started, and so on. A process that was found once belongs to it until it
/// ends, also when the one that started it has ended before.
#[derive(Debug)]
pub struct ProcessTree {
    /// The process of which the others descend.
    root: u32,
    /// Whether it belongs to the tree itself.
    has_root: bool,
    /// The first process of the tree; `None` as long as there is none.
    main: Option<u32>,
    /// Those that were alive at the last look: when each began, which tells it from a later one with its number.
    alive: BTreeMap<u32, u64>,
    /// The latest names of all that were found: another program may be executed meanwhile.
    names: BTreeMap<u32, String>,
}

impl ProcessTree {
    /// This process, and those below it.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn of(process: u32) -> Result<Self, ObserveError> {
        check_process(process)?;
        let mut tree = Self::new(process, true);
        tree.update();
        Ok(tree)
    }

    /// The process of this thread, and those below it.
    ///
    /// # Errors
    /// If there is no such thread.
    pub fn of_thread(thread: u32) -> Result<Self, ObserveError> {
        let missing = ObserveError::NoProcess { process: thread };
        Self::of(process_of(thread).ok_or(missing)?)
    }

    /// What the calling process starts from now on. As a subreaper it has also what these leave behind at their end.
    pub fn below_this_process() -> Self {
        Self::new(std::process::id(), false)
    }

    fn new(root: u32, has_root: bool) -> Self {
        Self {
            root,
            has_root,
            main: has_root.then_some(root),
            alive: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// The first process, of which the others are children; that from which they descend if none was found yet.
    pub fn main(&self) -> u32 {
        self.main.unwrap_or(self.root)
    }

    /// The numbers that a trace has to follow so that nothing is missed which is started from now on.
    pub(crate) fn followed(&self) -> Vec<u32> {
        thread_ids(self.root)
    }

    /// Looks for what was started meanwhile, and returns all threads that have not ended, with their processes.
    ///
    /// # Cost
    /// Reads a small file of each process and of each thread; without CONFIG_PROC_CHILDREN one of each process of the machine.
    pub fn threads(&mut self) -> BTreeMap<u32, u32> {
        self.update();
        let processes = self.alive.keys();
        processes
            .flat_map(|&process| thread_ids(process).into_iter().map(move |id| (id, process)))
            .collect()
    }

    /// Whether there was a process at the last look.
    pub fn has_processes(&self) -> bool {
        !self.alive.is_empty()
    }

    /// What is known of this thread; `None` if it has ended.
    pub fn thread(&self, process: u32, id: u32) -> Option<Thread> {
        let facts = thread(process, id)?;
        Some(Thread {
            process,
            process_name: self.name(process).to_owned(),
            name: facts.name,
            affinity: facts.affinity,
            cpu_time: None,
            started: facts.started,
            has_ended: false,
        })
    }

    /// The name of a process of the tree, that of its main thread; empty if it was never seen.
    pub fn name(&self, process: u32) -> &str {
        self.names.get(&process).map_or("", String::as_str)
    }

    fn update(&mut self) {
        let mut children = Children::default();
        let mut open: Vec<u32> = self.alive.keys().copied().collect();
        match self.has_root {
            // Later processes may have its number.
            true if self.names.contains_key(&self.root) => {}
            true => open.push(self.root),
            false => open.extend(children.of(self.root)),
        }
        let known = std::mem::take(&mut self.alive);
        let mut seen = BTreeSet::new();
        while let Some(process) = open.pop() {
            if !seen.insert(process) {
                continue;
            }
            let Some(Stat { name, started, .. }) = stat(process) else {
                continue;
            };
            if known.get(&process).is_some_and(|before| *before != started) {
                continue;
            }
            open.extend(children.of(process));
            self.alive.insert(process, started);
            self.names.insert(process, name);
        }
        let first = self
            .alive
            .iter()
            .min_by_key(|(id, started)| (**started, **id));
        self.main = self.main.or(first.map(|(id, _)| *id));
    }
}

/// Finds the children of processes.
#[derive(Default)]
struct Children {
    /// The children of each, where the kernel does not say it process by process.
    all: Option<BTreeMap<u32, Vec<u32>>>,
}

impl Children {
    fn of(&mut self, process: u32) -> Vec<u32> {
        match self.all.is_none().then(|| listed(process)) {
            Some(Some(children)) => children,
            _ => {
                let all = self.all.get_or_insert_with(by_parent);
                all.get(&process).cloned().unwrap_or_default()
            }
        }
    }
}

/// The children that the kernel lists for the threads of a process; `None` if it has no such lists.
fn listed(process: u32) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    for thread in thread_ids(process) {
        match fs::read_to_string(format!("/proc/{process}/task/{thread}/children")) {
            Ok(text) => children.extend(
                text.split_whitespace()
                    .filter_map(|it| it.parse::<u32>().ok()),
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Without the lists, or the thread has ended.
                if thread == process && stat(process).is_some() {
                    return None;
                }
            }
            // It has just ended.
            Err(_) => {}
        }
    }
    Some(children)
}

/// All processes of the machine, by parent.
fn by_parent() -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for process in process_ids() {
        if let Some(stat) = stat(process) {
            all.entry(stat.parent).or_default().push(process);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that starts another one, which starts `sleep`, and says so once all are there; ended when dropped.
    struct Launcher(Child);

    impl Launcher {
        fn start() -> Self {
            let script = "sh -c 'sleep 1000 & echo started; wait' & wait";
            let mut child = Command::new("sh")
                .args(["-c", script])
                .stdout(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap();
            let mut line = String::new();
            let mut said = BufReader::new(child.stdout.take().unwrap());
            said.read_line(&mut line).unwrap();
            assert_eq!(line, "started\n");
            Self(child)
        }
    }

    impl Drop for Launcher {
        fn drop(&mut self) {
            // The whole group, found by the tree or not; it may have ended.
            let group = format!("-{}", self.0.id());
            let kill = Command::new("kill").args(["-9", "--", &group]).output();
            assert!(kill.is_ok());
            self.0.wait().unwrap();
        }
    }

    /// The threads, once the processes have these names: another program is executed a moment after its process is there.
    fn look_until(tree: &mut ProcessTree, expected: &[&str]) -> BTreeMap<u32, u32> {
        let mut names: Vec<String> = Vec::new();
        for _ in 0..10_000 {
            let threads = tree.threads();
            names = threads
                .values()
                .map(|it| tree.name(*it).to_owned())
                .collect();
            names.sort_unstable();
            if names == expected {
                return threads;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("{names:?} instead of {expected:?}");
    }

    #[test]
    fn processes_that_a_process_started_belong_to_its_tree() {
        let launcher = Launcher::start();
        let process = launcher.0.id();
        let mut tree = ProcessTree::of(process).unwrap();
        let threads = look_until(&mut tree, &["sh", "sh", "sleep"]);
        assert_eq!((threads.len(), tree.main()), (3, process));
        let mut below = ProcessTree::below_this_process();
        assert_eq!(below.main(), std::process::id());
        let found = below.threads();
        // Other tests start processes meanwhile.
        assert!(tree.threads().keys().all(|id| found.contains_key(id)));
        assert!(!found.contains_key(&std::process::id()));
        assert!(found.contains_key(&below.main()));
    }

    #[test]
    fn process_stays_in_the_tree_when_its_parent_has_ended() {
        let launcher = Launcher::start();
        let mut tree = ProcessTree::of(launcher.0.id()).unwrap();
        let threads = look_until(&mut tree, &["sh", "sh", "sleep"]);
        let sleep = *threads
            .keys()
            .find(|id| tree.name(**id) == "sleep")
            .unwrap();
        let between = threads.into_keys();
        let between: Vec<u32> = between
            .filter(|id| ![sleep, launcher.0.id()].contains(id))
            .collect();
        let kill = |id: u32| Command::new("kill").args(["-9", &id.to_string()]).status();
        between
            .iter()
            .for_each(|id| assert!(kill(*id).unwrap().success()));
        while between.iter().any(|id| stat(*id).is_some()) {
            std::thread::yield_now();
        }
        let left = tree.threads();
        assert_eq!(left.get(&sleep), Some(&sleep), "{left:?}");
        assert!(between.iter().all(|id| !left.contains_key(id)));
        kill(sleep).unwrap();
    }

    #[test]
    fn lists_of_children_and_search_by_parent_agree() {
        let launcher = Launcher::start();
        let process = launcher.0.id();
        let found = by_parent().remove(&process).unwrap();
        assert_eq!(found.len(), 1);
        // A kernel without lists has none to be compared.
        assert_eq!(listed(process).unwrap_or_else(|| found.clone()), found);
        let mut children = Children {
            all: Some(BTreeMap::from([(process, vec![7])])),
        };
        assert_eq!(children.of(process), [7]);
    }
}
