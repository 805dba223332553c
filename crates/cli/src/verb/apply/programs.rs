//! The programs of tasks with a `command`.
//!
//! A program is started as ordinary work, and its main thread gets its reservation when it first sleeps: what it does to begin
//! is no job. Until all of them have their reservations they belong to this command, which ends them if anything fails.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use shiftwork_client::calling_thread;
use shiftwork_observe::is_asleep;

use crate::verb::watch::is_interrupted;

/// A program that has not slept by then gets its reservation all the same.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// How often it is looked whether programs sleep.
const LOOK: Duration = Duration::from_millis(1);

/// How long programs have to end before they are killed.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Threads of this process in place of the programs, to ask what would be admitted: they have the same user and control group.
pub struct StandIns {
    threads: Vec<u32>,
    /// Each thread ends with its own.
    _ends: Vec<Sender<()>>,
}

impl StandIns {
    /// So many.
    ///
    /// # Errors
    /// If a thread cannot be created.
    pub fn start(count: usize) -> io::Result<Self> {
        let (mut threads, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (number, began) = channel();
            let (end, ended) = channel::<()>();
            thread::Builder::new().spawn(move || {
                // Fails only if nothing waits for it any more.
                let _ = number.send(calling_thread());
                let _ = ended.recv();
            })?;
            threads.extend(began.recv());
            ends.push(end);
        }
        Ok(Self {
            threads,
            _ends: ends,
        })
    }

    /// Their numbers.
    pub fn threads(&self) -> &[u32] {
        &self.threads
    }
}

/// How programs began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// All have slept, but for these, by their places.
    Begun(Vec<usize>),
    /// This one has ended, and how.
    Ended(usize, String),
    /// Ctrl-C or SIGTERM came first.
    Interrupted,
}

/// Programs that were started. They are ended when this is dropped, unless they are [left](Self::leave) to themselves.
#[derive(Default)]
pub struct Programs {
    children: Vec<Child>,
}

impl Programs {
    /// Starts a program with its arguments. It reads no input, its output goes to stderr, since stdout is for results, and it has
    /// a process group of its own, so that it gets no Ctrl-C that is meant for another program.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, command: &[String]) -> io::Result<()> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let output = io::stderr().as_fd().try_clone_to_owned()?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output)
            .process_group(0)
            .spawn()?;
        self.children.push(child);
        Ok(())
    }

    /// The main threads, in the order in which they were started.
    pub fn threads(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Waits until each main thread has been seen asleep, or has had a while for that.
    pub fn wait_until_begun(&mut self) -> Beginning {
        self.wait_until_begun_within(STARTS_WITHIN)
    }

    fn wait_until_begun_within(&mut self, patience: Duration) -> Beginning {
        let mut waited = Duration::ZERO;
        let mut open: Vec<usize> = (0..self.children.len()).collect();
        loop {
            for (place, child) in self.children.iter_mut().enumerate() {
                match child.try_wait() {
                    Ok(None) => {}
                    Ok(Some(status)) => return Beginning::Ended(place, status.to_string()),
                    Err(error) => return Beginning::Ended(place, error.to_string()),
                }
            }
            open.retain(|&place| is_asleep(self.children[place].id()) != Some(true));
            if open.is_empty() || waited >= patience {
                return Beginning::Begun(open);
            }
            if is_interrupted() {
                return Beginning::Interrupted;
            }
            thread::sleep(LOOK);
            waited += LOOK;
        }
    }

    /// They go on by themselves.
    pub fn leave(mut self) {
        self.children.clear();
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let signal = |child: &Child, signal| {
            // Fails only if all of them have ended.
            let _ = kill_process_group(Pid::from_child(child), signal);
        };
        for child in &self.children {
            signal(child, Signal::TERM);
        }
        let mut waited = Duration::ZERO;
        let mut open = std::mem::take(&mut self.children);
        while !open.is_empty() && waited < ENDS_WITHIN {
            open.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
            thread::sleep(LOOK);
            waited += LOOK;
        }
        for mut child in open {
            signal(&child, Signal::KILL);
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Programs {
        let mut programs = Programs::default();
        let command = ["sh", "-c", script].map(str::to_owned);
        programs.start(&command).unwrap();
        programs
    }

    #[test]
    fn program_has_begun_when_it_first_sleeps() {
        let mut programs = start("k=0; while [ $k -lt 20000 ]; do k=$((k+1)); done; sleep 1000");
        let thread = programs.threads()[0];
        assert_eq!(programs.wait_until_begun(), Beginning::Begun(Vec::new()));
        let used = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap();
        let used_ns: u64 = used.split(' ').next().unwrap().parse().unwrap();
        assert!(used_ns > 1_000_000, "it counted first: {used_ns} ns");
        drop(programs);
        assert_eq!(is_asleep(thread), None, "it is ended");
    }

    #[test]
    fn program_that_never_sleeps_or_ends_is_named() {
        let mut programs = start("while :; do :; done");
        let patience = Duration::from_millis(30);
        let begun = programs.wait_until_begun_within(patience);
        assert_eq!(begun, Beginning::Begun(vec![0]));
        let mut programs = start("exit 3");
        let Beginning::Ended(0, how) = programs.wait_until_begun() else {
            panic!("it has ended");
        };
        assert!(how.contains('3'), "{how}");
        let missing = ["/no/such/program".to_owned()];
        let error = programs.start(&missing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn program_that_ignores_the_signal_is_killed_and_one_that_is_left_goes_on() {
        let mut programs = start("trap '' TERM; while :; do sleep 0.01; done");
        let thread = programs.threads()[0];
        programs.wait_until_begun();
        drop(programs);
        assert_eq!(is_asleep(thread), None);
        let mut programs = start("exec sleep 1000");
        let thread = programs.threads()[0];
        programs.wait_until_begun();
        programs.leave();
        assert_eq!(is_asleep(thread), Some(true));
        let pid = Pid::from_raw(i32::try_from(thread).unwrap()).unwrap();
        kill_process_group(pid, Signal::KILL).unwrap();
    }

    #[test]
    fn stand_ins_are_threads_of_this_process_until_they_are_dropped() {
        let stand_ins = StandIns::start(3).unwrap();
        let mut threads = stand_ins.threads().to_vec();
        let folder = format!("/proc/{}/task", std::process::id());
        for thread in &threads {
            assert!(std::path::Path::new(&format!("{folder}/{thread}")).exists());
        }
        threads.dedup();
        assert_eq!(threads.len(), 3);
    }
}
