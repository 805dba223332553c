//! The calling thread as a task.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use rustix::thread::{current_timer_slack, gettid, set_current_timer_slack};
use shiftwork_model::Instant;

use crate::call::Admitted;
use crate::client::{Client, socket_path};
use crate::clock::{now, sleep_until};
use crate::error::Error;
use crate::failure::Failure;
use crate::releases::Releases;
use crate::reservation::Reservation;

/// The thread that admitted it, as a task of the agent: it has its reservation until this is dropped, or the
/// thread ends.
///
/// A job is what the thread does between waking up and going to sleep. The first begins when the thread is
/// admitted; [`Self::wait_next`] ends one and sleeps until the next is released, a whole number of periods after
/// that. Whatever else the thread waits for (a lock, a page of a file, an answer) also ends a job for the agent,
/// which sees no more than that: budgets hold all the same, and a job that sleeps half-way is counted as two.
///
/// It is of its thread alone: every other gets [`Failure::OtherThread`], and so does a child after `fork`. What
/// another thread drops is not dismissed; the reservation ends with its own thread then.
///
/// No privilege is needed but that of the [socket](socket_path).
#[derive(Debug)]
pub struct OwnTask {
    socket: PathBuf,
    client: Client,
    number: u32,
    guarantee: String,
    thread: u32,
    releases: Releases,
    /// What the thread had before, in nanoseconds; absent if it could not be had.
    slack_before: Option<NonZeroU64>,
    is_dismissed: bool,
}

impl OwnTask {
    /// The calling thread has the reservation from now on, at the agent of this machine ([`socket_path`]). `name`
    /// is for people: 1 to 64 bytes on one line.
    ///
    /// # Errors
    /// If there is no room, or no agent.
    pub fn admit(name: &str, reservation: &Reservation) -> Result<Self, Failure> {
        Self::admit_at(socket_path(), name, reservation)
    }

    /// The same, at the agent that listens there.
    ///
    /// # Errors
    /// As of [`Self::admit`].
    pub fn admit_at(
        socket: impl AsRef<Path>,
        name: &str,
        reservation: &Reservation,
    ) -> Result<Self, Failure> {
        let socket = socket.as_ref().to_owned();
        let thread = calling_thread();
        let mut client = Client::connect(&socket)?;
        let Admitted { task, guarantee } = client.admit(name, Some(thread), reservation)?;
        Ok(Self {
            socket,
            client,
            number: task,
            guarantee,
            thread,
            releases: Releases::from(now(), reservation.period),
            slack_before: minimize_timer_slack(),
            is_dismissed: false,
        })
    }

    /// The thread has another reservation, from its next job on. Its next release is the new period after the last.
    ///
    /// The thread waits for the agent's answer, which ends the job for the agent.
    ///
    /// # Errors
    /// If there is no room, or no agent; the reservation is as before then. [`Error::Missing`] if the thread has none
    /// any more.
    pub fn change(&mut self, reservation: &Reservation) -> Result<(), Failure> {
        self.check_thread()?;
        self.guarantee = self.call(|client, number| client.change(number, reservation))?;
        self.releases.set_period(reservation.period);
        Ok(())
    }

    /// Ends the job, and sleeps until the next release that is still ahead. Returns how many there were since the
    /// last one that are past by now: 0 as long as jobs end before the next is released. Signals do not
    /// shorten the sleep.
    ///
    /// The instant is absolute: what jobs take and how late they wake up does not add up. If the release comes while
    /// the thread falls asleep it does not sleep, and the agent sees this job and the next as one.
    ///
    /// # Errors
    /// Only [`Failure::OtherThread`].
    pub fn wait_next(&mut self) -> Result<u64, Failure> {
        let missed = self.wait_next_while(|| true)?;
        Ok(missed.unwrap_or(0))
    }

    /// The same, for whoever has to see to signals: `keep_waiting` is asked whenever a handler has run meanwhile, by
    /// the same thread. `None` says that it said no; the release is still to be waited for then.
    ///
    /// # Errors
    /// Only [`Failure::OtherThread`].
    pub fn wait_next_while(
        &mut self,
        mut keep_waiting: impl FnMut() -> bool,
    ) -> Result<Option<u64>, Failure> {
        self.check_thread()?;
        let release = self.releases.next_after(now());
        if !sleep_until(release.at, &mut keep_waiting) {
            return Ok(None);
        }
        self.releases.pass(release);
        Ok(Some(release.missed))
    }

    /// Ends the reservation, and says whether that went well; dropping it does the same silently. The thread goes
    /// on as ordinary work.
    ///
    /// # Errors
    /// If the agent does not answer, or the thread has no reservation any more.
    pub fn dismiss(mut self) -> Result<(), Failure> {
        self.check_thread()?;
        self.end()
    }

    /// The number of the task, as `shiftwork status` shows it; that of a moment ago if the agent has been started
    /// again since.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// What was guaranteed last, in the words of `shiftwork analyze`.
    pub fn guarantee(&self) -> &str {
        &self.guarantee
    }

    /// When the present job was released, on the monotonic clock. It is due the reservation's deadline later.
    pub const fn release(&self) -> Instant {
        self.releases.last()
    }

    /// Whether the calling thread is the task's.
    ///
    /// # Errors
    /// [`Failure::OtherThread`] if it is not.
    pub fn check_thread(&self) -> Result<(), Failure> {
        let thread = self.thread;
        match calling_thread() == thread {
            true => Ok(()),
            false => Err(Failure::OtherThread { thread }),
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.is_dismissed = true;
        if self.slack_before.is_some() {
            // Nobody depends on it: it may be a little late from now on.
            let _ = set_current_timer_slack(self.slack_before);
        }
        self.call(|client, number| client.dismiss(number))
    }

    /// Asks about this task; once more where the connection broke, as when the agent was started again.
    fn call<A>(
        &mut self,
        mut method: impl FnMut(&mut Client, u32) -> Result<A, Failure>,
    ) -> Result<A, Failure> {
        match method(&mut self.client, self.number) {
            Err(Failure::Lost { .. }) => {}
            answer => return answer,
        }
        self.client = Client::connect(&self.socket)?;
        // Another agent has other numbers.
        self.number = self.find_number()?;
        method(&mut self.client, self.number)
    }

    fn find_number(&mut self) -> Result<u32, Failure> {
        let thread = self.thread;
        let tasks = self.client.status()?.tasks;
        let own = tasks.iter().find(|task| task.thread == thread);
        own.map(|task| task.task).ok_or_else(|| {
            Failure::Agent(Error::Missing {
                what: format!("task of thread {thread} any more"),
            })
        })
    }
}

impl Drop for OwnTask {
    fn drop(&mut self) {
        if !self.is_dismissed && self.check_thread().is_ok() {
            // There is nobody to tell; it ends with the thread at the latest.
            let _ = self.end();
        }
    }
}

/// The number of the calling thread. No other has it, in no process, as long as this one goes on.
pub fn calling_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The kernel wakes ordinary threads up to 50 us late, in order to save wake-ups, and this one as soon as it can from
/// now on. Returns what was so before.
fn minimize_timer_slack() -> Option<NonZeroU64> {
    let before = NonZeroU64::new(current_timer_slack().ok()?)?;
    set_current_timer_slack(NonZeroU64::new(1)).ok()?;
    Some(before)
}
