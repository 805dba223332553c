//! Who sees to it that a machine whose agent has died does not stay as the agent left it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use shiftwork_model::CpuSet;

use super::blocker::MUSTER_MAX;
use super::shared_state::Floor;
use super::{WATCH_LEVEL, refused};
use crate::LiveError;
use crate::sync::Word;
use crate::sys::clock::monotonic_ns;
use crate::sys::thread::{Class, affinity, set_affinity, set_class};

/// How often the watch looks at the agent's beat.
const LOOK_NS: u64 = 50_000_000;

/// A thread above the agent, outside the platform as long as there is such a CPU. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Watch {
    post: Arc<Word>,
    thread: Option<JoinHandle<()>>,
}

const ON: u32 = 0;
const OFF: u32 = 1;

impl Watch {
    /// Begins to watch over the agent of this platform.
    ///
    /// # Errors
    /// If the kernel refuses a thread or its level.
    pub(super) fn begin(floor: &Arc<Floor>, platform: &CpuSet) -> Result<Self, LiveError> {
        let doing = "put a thread above the agent";
        let cpus = elsewhere(platform).map_err(LiveError::system(doing))?;
        let (floor, post) = (Arc::clone(floor), Arc::new(Word::new(ON)));
        let (sender, ready) = channel();
        let own = Arc::clone(&post);
        let thread = std::thread::Builder::new()
            .name(String::from("watch"))
            .spawn(move || live(&floor, &own, &cpus, &sender))
            .map_err(LiveError::system(doing))?;
        let watch = Self {
            post,
            thread: Some(thread),
        };
        let prepared = ready.recv_timeout(MUSTER_MAX).map_err(io::Error::other);
        let prepared = prepared.and_then(|prepared| prepared);
        prepared.map_err(|error| refused(error, doing.to_owned()))?;
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.post.set(OFF);
        if let Some(thread) = self.thread.take() {
            // Had it panicked, it would be as gone.
            let _ = thread.join();
        }
    }
}

/// The calling thread's CPUs outside the platform; all of its CPUs if there is none.
fn elsewhere(platform: &CpuSet) -> io::Result<CpuSet> {
    let all = affinity(None)?;
    let outside: CpuSet = all.iter().filter(|&cpu| !platform.contains(cpu)).collect();
    Ok(if outside.is_empty() { all } else { outside })
}

fn live(floor: &Floor, post: &Word, cpus: &CpuSet, ready: &Sender<io::Result<()>>) {
    let level = Class::Fifo(WATCH_LEVEL);
    let prepared = set_affinity(None, cpus).and_then(|()| set_class(None, level));
    let failed = prepared.is_err();
    // If nobody listens any more, the word says that this is to end.
    let _ = ready.send(prepared);
    let mut due_ns = monotonic_ns() + LOOK_NS;
    while !failed && post.get() == ON {
        post.wait_until(ON, due_ns);
        let now_ns = monotonic_ns();
        // Who comes late itself was stopped with everybody else, as by a debugger: that is no silence.
        if now_ns.saturating_sub(due_ns) < LOOK_NS {
            look(floor, now_ns);
        }
        due_ns = now_ns + LOOK_NS;
    }
}

/// Takes the machine away from an agent that has fallen silent, again with every look: it might still be
/// in the middle of something.
fn look(floor: &Floor, now_ns: u64) {
    if let Some(silence_ns) = floor.silence(now_ns)
        && floor.failed().is_none()
    {
        let ms = silence_ns / 1_000_000;
        floor.fail(format!("the agent has said nothing for {ms} ms"));
    }
    if floor.failed().is_some() {
        floor.end_blockers();
        floor.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::shared_state::{ENDED, SILENCE_NS};

    #[test]
    fn an_agent_that_falls_silent_loses_the_machine() {
        let (floor, _) = Floor::new(&CpuSet::first(2), 1);
        look(&floor, 1);
        floor.beat(1_000);
        look(&floor, 1_000 + SILENCE_NS);
        assert_eq!(floor.failed(), None);
        look(&floor, 1_000 + SILENCE_NS + 1_000_000);
        let why = floor.failed();
        assert_eq!(why, Some("the agent has said nothing for 201 ms"));
        assert!(floor.posts.iter().all(|post| post.word.get() == ENDED));
    }

    #[test]
    fn the_watch_stays_off_the_platform_where_it_can() {
        let all = affinity(None).unwrap();
        assert_eq!(elsewhere(&all).unwrap(), all);
        assert_eq!(elsewhere(&CpuSet::EMPTY).unwrap(), all);
        if all.len() > 1 {
            let lowest = CpuSet::single(all.lowest().unwrap());
            assert!(!elsewhere(&lowest).unwrap().intersects(&lowest));
        }
    }
}
