//! The calling thread as a task.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use rustix::thread::{current_timer_slack, gettid, set_current_timer_slack};
use shiftwork_model::Instant;

use crate::call::Admitted;
use crate::client::Client;
use crate::clock::{now, sleep_until};
use crate::error::Error;
use crate::failure::Failure;
use crate::releases::Releases;
use crate::reservation::Reservation;
use crate::socket::socket_path;

/// The thread that created it, as a task of the daemon. The reservation lasts until this is dropped or the thread ends.
///
/// A job lasts from waking up to going to sleep. The first begins when the thread is admitted; [`Self::wait_next`] ends one
/// and sleeps until the next release, a whole number of periods after the admission. Any other wait (for a lock, a page of a
/// file, a reply) also ends a job for the daemon, which observes only sleeping and waking: budgets are enforced all the
/// same, and a job that sleeps in the middle counts as two.
///
/// Only its own thread may use it: any other gets [`Failure::OtherThread`], and so does a child after `fork`. If another
/// thread drops it, the reservation is not dismissed and ends with its own thread.
///
/// Requires only the permission to connect to the [socket](socket_path).
#[derive(Debug)]
pub struct OwnTask {
    socket: PathBuf,
    client: Client,
    number: u32,
    guarantee: String,
    thread: u32,
    releases: Releases,
    /// The timer slack before, in nanoseconds; `None` if it was not changed.
    slack_before: Option<NonZeroU64>,
    is_dismissed: bool,
}

impl OwnTask {
    /// Reserves CPU time for the calling thread at the daemon of this machine ([`socket_path`]). `name` is 1 to 64 bytes on one
    /// line, for output only.
    ///
    /// # Errors
    /// If it is not admitted, or there is no daemon.
    pub fn admit(name: &str, reservation: &Reservation) -> Result<Self, Failure> {
        Self::admit_at(socket_path(), name, reservation)
    }

    /// As [`Self::admit`], at the daemon that listens at this path.
    ///
    /// # Errors
    /// As for [`Self::admit`].
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

    /// Replaces the reservation, from the next job on. The next release is the new period after the last one.
    ///
    /// Waiting for the reply ends the current job for the daemon.
    ///
    /// # Errors
    /// If it is not admitted, or there is no daemon; then the reservation is unchanged. [`Error::Missing`] if the thread no
    /// longer has a reservation.
    pub fn change(&mut self, reservation: &Reservation) -> Result<(), Failure> {
        self.check_thread()?;
        self.guarantee = self.call(|client, number| client.change(number, reservation))?;
        self.releases.set_period(reservation.period);
        Ok(())
    }

    /// Ends the job, and sleeps until the first release in the future. Returns the number of skipped releases, those since the
    /// last one that are already past: 0 while each job ends before the next release. Signals do not shorten the sleep.
    ///
    /// The instant is absolute: execution times and wake-up latencies do not accumulate. If the release comes while the
    /// thread goes to sleep, the thread does not sleep, and the daemon sees this job and the next as one.
    ///
    /// # Errors
    /// Only [`Failure::OtherThread`].
    pub fn wait_next(&mut self) -> Result<u64, Failure> {
        let missed = self.wait_next_while(|| true)?;
        Ok(missed.unwrap_or(0))
    }

    /// As [`Self::wait_next`], for callers that react to signals: `keep_waiting` is called by the same thread after each
    /// signal handler that ran meanwhile. If it returns false the result is `None`, and the release is still to be waited for.
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

    /// Ends the reservation. Dropping does the same without reporting errors. The thread continues as ordinary work.
    ///
    /// # Errors
    /// If the daemon does not answer, or the thread no longer has a reservation.
    pub fn dismiss(mut self) -> Result<(), Failure> {
        self.check_thread()?;
        self.end()
    }

    /// The number of the task, as `shiftwork status` shows it; outdated if the daemon was restarted since the last call.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The last known guarantee, as `shiftwork analyze` names it.
    pub fn guarantee(&self) -> &str {
        &self.guarantee
    }

    /// Release of the current job, on the monotonic clock. Its deadline is the reservation's relative deadline later.
    pub const fn release(&self) -> Instant {
        self.releases.last()
    }

    /// Checks that the task belongs to the calling thread.
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
            // On an error the thread keeps the smaller slack, which is harmless.
            let _ = set_current_timer_slack(self.slack_before);
        }
        self.call(|client, number| client.dismiss(number))
    }

    /// Calls a method with this task's number; reconnects and retries once if the connection broke, as after a restart of the
    /// daemon.
    fn call<A>(
        &mut self,
        mut method: impl FnMut(&mut Client, u32) -> Result<A, Failure>,
    ) -> Result<A, Failure> {
        match method(&mut self.client, self.number) {
            Err(Failure::Lost { .. }) => {}
            answer => return answer,
        }
        self.client = Client::connect(&self.socket)?;
        // A restarted daemon assigns new numbers.
        self.number = self.find_number()?;
        method(&mut self.client, self.number)
    }

    fn find_number(&mut self) -> Result<u32, Failure> {
        let thread = self.thread;
        let tasks = self.client.status()?.tasks;
        let own = tasks.iter().find(|task| task.thread == thread);
        own.map(|task| task.task).ok_or_else(|| {
            Failure::Agent(Error::Missing {
                what: format!("task of thread {thread}"),
            })
        })
    }
}

impl Drop for OwnTask {
    fn drop(&mut self) {
        if !self.is_dismissed && self.check_thread().is_ok() {
            // Errors cannot be reported here; the reservation ends with the thread at the latest.
            let _ = self.end();
        }
    }
}

/// The ID of the calling thread, which is unique among all processes while the thread lives.
pub fn calling_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Sets the timer slack of the calling thread to the minimum: by default the kernel may wake ordinary threads up to 50 us
/// late to combine wake-ups. Returns the former slack.
fn minimize_timer_slack() -> Option<NonZeroU64> {
    let before = NonZeroU64::new(current_timer_slack().ok()?)?;
    set_current_timer_slack(NonZeroU64::new(1)).ok()?;
    Some(before)
}
