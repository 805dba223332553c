//! The agent's one thread: waits for callers and facts, and sees to both.

use std::io;
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use shiftwork_live::LiveError;
use shiftwork_model::{Instant, Span};

use crate::agent::{Agent, News};
use crate::config::Config;
use crate::reports::Reports;
use crate::socket::Server;

/// Whoever is late is noticed so soon, and signals are heard.
const LOOK: Span = Span::from_ms(50);

/// What the agent's owner has to say, and is told.
pub trait Owner {
    /// Whether the agent is to end.
    fn is_over(&mut self) -> bool;

    /// Another configuration; `None`: nothing new.
    fn reloaded(&mut self) -> Option<Config>;

    /// Something that people should know of, a sentence.
    fn say(&mut self, what: &str);

    /// The agent is alive.
    fn lives(&mut self);
}

/// How the agent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Because its owner said so.
    Stopped,
    /// The kernel unloaded the scheduler, for this reason.
    Unloaded(String),
}

/// This instant of the monotonic clock.
pub fn now() -> Instant {
    Instant::from_ns(ns_of(ClockId::Monotonic))
}

/// The time of the world's clock: ns since 1970, for people only.
pub fn unix_ns() -> u64 {
    ns_of(ClockId::Realtime)
}

fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// The processor time of the calling thread so far.
fn used() -> Span {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    Span::from_ns(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
}

/// This process may have as many descriptors as the system lets it: each connection takes one.
pub fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where that fails fewer are let in, and told so.
    let _ = setrlimit(Resource::Nofile, all);
}

/// Serves until the owner says that it is over.
///
/// # Errors
/// If the kernel tells nothing any more, or the state cannot be saved. All threads go on as ordinary work then.
pub fn run(
    agent: &mut Agent,
    server: &mut Server,
    owner: &mut dyn Owner,
) -> Result<Ended, LiveError> {
    let mut reports = Reports::default();
    loop {
        let news = agent.look(now())?;
        tell(agent, &news, &mut reports, owner);
        agent.mind_own_time(now(), used());
        if let Some(reason) = news.unloaded {
            return Ok(Ended::Unloaded(reason));
        }
        if owner.is_over() {
            return Ok(Ended::Stopped);
        }
        if let Some(config) = owner.reloaded() {
            let (of_user, of_cgroup) = (config.pace_of_user, config.pace_of_cgroup);
            match agent.reload(config) {
                Ok(()) => {
                    server.set_paces(of_user, of_cgroup);
                    owner.say("the configuration was read again");
                }
                Err(why) => owner.say(&format!("the configuration stays as it was: {why}")),
            }
        }
        owner.lives();
        let served = server.serve(now(), agent);
        agent.mind_own_time(now(), used());
        let waited = served.and_then(|()| wait(agent, server));
        waited.map_err(|error| LiveError::System {
            doing: "wait for callers".to_owned(),
            error,
        })?;
    }
}

/// Until there is something to do.
fn wait(agent: &Agent, server: &Server) -> io::Result<()> {
    let now = now();
    let until = server.wake_at().min(now + LOOK);
    let span = until.late_since(now);
    let timeout = Timespec {
        tv_sec: 0,
        // At most what is looked after, well below a second.
        tv_nsec: span.min(LOOK).as_ns() as _,
    };
    let mut descriptors = [
        PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(agent.standing().as_fd(), PollFlags::IN),
    ];
    match poll(&mut descriptors, Some(&timeout)) {
        Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn tell(agent: &Agent, news: &News, reports: &mut Reports, owner: &mut dyn Owner) {
    let now = now();
    for trouble in &news.troubles {
        owner.say(trouble);
    }
    for turn in &news.turns {
        if reports.may_tell(turn.task, now) {
            owner.say(&format!("task {}: {}", turn.task.index(), turn.what));
        }
    }
    for miss in &news.misses {
        if reports.may_tell(miss.task, now) {
            let holder = agent.holder(miss.task);
            let name = holder.map_or("?", |holder| holder.name.as_str());
            let task = miss.task.index();
            owner.say(&format!("task {task} ({name}) missed its deadline"));
        }
    }
    for (task, count) in reports.left_out(now) {
        owner.say(&format!(
            "task {}: {count} more such reports left out",
            task.index()
        ));
    }
}
