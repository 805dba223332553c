//! What has to be true after every step, whatever the members do.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Duration;

use shiftwork_client::{Reservation, Status};

use super::execute::World;
use super::{ANNA, ENDED_PPM, FOLDERS, NAMESPACE, SHARE_PPM};
use crate::faults::state;
use crate::kernel::is_realtime;
use crate::standing::excess::timed;
use crate::standing::periodic::now_ns;

/// A rename of root may wait for ordinary work that holds the lock of the folder, and that for its share of a CPU on which little
/// is left beside reservations. What was throttled within the kernel held it for a minute.
const RENAME: Duration = Duration::from_secs(3);
/// The daemon has a part of a CPU, and what ordinary work has when that is used up by the calls of others: turns of all callers. With
/// `PREEMPT_RT` the thread that is the scheduler's timer takes a third of that CPU, in the emulator.
const STATUS: Duration = Duration::from_secs(2);
const STATUS_WITH_TICKER: Duration = Duration::from_secs(8);
/// A killed process ends when each of its threads has had a turn.
const KILL: Duration = Duration::from_secs(1);

/// How long what root does took at most.
#[derive(Default)]
pub struct Longest {
    rename: Duration,
    status: Duration,
    kill: Duration,
}

/// What users have given back and still may use, by the account that is charged.
#[derive(Default)]
pub struct Quota {
    /// Until when, which account, and how much, in millionths of a CPU.
    ended: Vec<(u64, u32, u64)>,
    most: BTreeMap<u32, u64>,
}

fn share_ppm(of: &Reservation) -> u64 {
    of.cost.as_ns() * 1_000_000 / of.period.as_ns().max(1)
}

/// The user that quotas charge.
fn account_of(user: u32) -> u32 {
    match (NAMESPACE..NAMESPACE + 10).contains(&user) {
        true => ANNA,
        false => user,
    }
}

impl Quota {
    /// A reservation has ended: it counts for a period more at least.
    pub fn note_end(&mut self, account: u32, of: &Reservation) {
        let until = now_ns() + of.period.as_ns();
        self.ended.push((until, account, share_ppm(of)));
    }

    /// A reservation that was admitted so often, and given back each time: in each period no more than the quotas together.
    pub fn judge_loop(
        &mut self,
        account: u32,
        admitted: u64,
        of: &Reservation,
        took: Duration,
    ) -> Result<(), String> {
        let periods = took.as_nanos() as u64 / of.period.as_ns().max(1) + 2;
        let most = (SHARE_PPM + ENDED_PPM) / share_ppm(of).max(1) * periods;
        match admitted <= most {
            true => Ok(()),
            false => Err(format!(
                "user {account} was admitted {admitted} times within {took:?}, and {most} times fit its quotas"
            )),
        }
    }

    fn judge(&mut self, status: &Status) -> Result<(), String> {
        let now = now_ns();
        self.ended.retain(|(until, ..)| *until > now);
        let mut held = BTreeMap::<u32, u64>::new();
        for task in &status.tasks {
            *held.entry(account_of(task.user)).or_default() += share_ppm(&task.reservation);
        }
        let mut all = held.clone();
        for (_, account, share) in &self.ended {
            *all.entry(*account).or_default() += share;
        }
        for (account, share) in all {
            let held = held.get(&account).copied().unwrap_or(0);
            let most = self.most.entry(account).or_default();
            *most = share.max(*most);
            if held > SHARE_PPM || share > SHARE_PPM + ENDED_PPM {
                return Err(format!(
                    "user {account} has {held} millionths of a CPU, and {share} with what has just ended"
                ));
            }
        }
        Ok(())
    }
}

impl Longest {
    pub fn note_kill(&mut self, took: Duration) -> Result<(), String> {
        self.kill = self.kill.max(took);
        is_within("the end of a killed process", took, KILL)
    }
}

impl fmt::Display for Longest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rename,
            status,
            kill,
        } = self;
        write!(
            f,
            "at most {rename:?} for a rename, {status:?} for a status, {kill:?} for a kill"
        )
    }
}

fn is_within(what: &str, took: Duration, bound: Duration) -> Result<(), String> {
    match took <= bound {
        true => Ok(()),
        false => Err(format!("{what} took {took:?}")),
    }
}

impl World {
    pub fn judge(&mut self) -> Result<(), String> {
        let [one, other] = FOLDERS.map(|folder| format!("{folder}/root"));
        let (renamed, took) =
            timed(|| fs::rename(&one, &other).and_then(|()| fs::rename(&other, &one)));
        renamed.map_err(|error| format!("a rename: {error}"))?;
        self.longest.rename = took.max(self.longest.rename);
        is_within("two renames", took, RENAME)?;
        let (status, took) = timed(|| self.client()?.status().map_err(|error| error.to_string()));
        let status = status?;
        self.longest.status = took.max(self.longest.status);
        let most = match is_realtime()? {
            true => STATUS_WITH_TICKER,
            false => STATUS,
        };
        is_within("a status", took, most)?;
        self.most_tasks = status.tasks.len().max(self.most_tasks);
        for victim in &self.victims {
            victim.judge(&status)?;
        }
        self.quota.judge(&status)?;
        match state().as_str() {
            "enabled" => Ok(()),
            other => Err(format!("sched_ext is {other}: {}", self.daemon.log())),
        }
    }
}
