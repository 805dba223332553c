//! The flight recorder: the facts of the last seconds, and what they say of a miss.
//!
//! [`Recorder`] remembers, [`Recording`] is what it remembered at some instant, by itself, [`Tale`] what that tells.
//! [`Clerk`] explains misses and keeps them in files, in a thread of its own: nothing of it may delay an answer, and it
//! must never touch the scheduler.

mod analysis;
mod checkpoint;
mod explainer;
mod folder;
mod incarnations;
mod lines;
mod recording;
mod story;
mod words;

use std::collections::{BTreeMap, VecDeque};

use shiftwork_live::standing::{Fact, FactKind};
use shiftwork_model::{CpuSet, Instant, Span, TaskId};

use crate::reservation::Reservation;
use crate::statistics::Miss;
pub use analysis::{Tale, Told};
use checkpoint::Remains;
pub use explainer::Clerk;
pub use folder::{Folder, list};
use incarnations::Lives;
pub use incarnations::{Life, Terms};
pub use lines::{Head, LinesError, utc};
pub use recording::{Missed, Noted, Own, Recording};

/// However many happen: about 40 MB.
const FACTS_MAX: usize = 500_000;

/// So long after its deadline a job that is not finished is explained as far as it came.
const PATIENCE: Span = Span::from_s(1);

/// Of one task not more often is explained what was missed: it is mostly the same.
const EXPLAINED_EVERY: Span = Span::from_s(1);

/// How many tasks may wait for an explanation; later ones are only counted.
const WAITING_MAX: usize = 8;

/// Who does not look for so long was away. Otherwise the agent looks at least every 50 ms.
const AWAY_MIN: Span = Span::from_ms(200);

/// How many misses are told in a recording, the newest: about 1 MB as text.
const MISSES_MAX: usize = 10_000;

/// Remembers facts for some time.
#[derive(Debug)]
pub struct Recorder {
    span: Span,
    policy: String,
    cpus: CpuSet,
    remains: Remains,
    facts: VecDeque<Noted>,
    lives: Lives,
    misses: VecDeque<Missed>,
    own: VecDeque<Own>,
    /// Misses to be explained.
    waiting: VecDeque<Waiting>,
    /// When a miss of this life was explained last, in ns.
    explained: BTreeMap<u32, u64>,
    /// How many facts were lost until now.
    lost: u64,
    /// When it was looked last, and from when on everything is remembered.
    looked: Instant,
    since: Instant,
}

/// A miss that is to be explained.
#[derive(Debug)]
struct Waiting {
    missed: Missed,
    /// The job is finished: there is nothing to wait for.
    is_over: bool,
}

impl Recorder {
    /// Remembers nothing yet, for this long at most; `cpus` are the agent's, which decides by `policy`.
    pub fn new(span: Span, cpus: CpuSet, policy: &str, now: Instant) -> Self {
        Self {
            span,
            policy: policy.to_owned(),
            cpus,
            remains: Remains::default(),
            facts: VecDeque::new(),
            lives: Lives::default(),
            misses: VecDeque::new(),
            own: VecDeque::new(),
            waiting: VecDeque::new(),
            explained: BTreeMap::new(),
            lost: 0,
            looked: now,
            since: now,
        }
    }

    /// The task is there from now on, or has another reservation than before.
    pub fn know(&mut self, task: TaskId, name: &str, reservation: &Reservation, now: Instant) {
        let terms = Terms::of(reservation, now.as_ns());
        self.lives.know(task, name, terms);
    }

    /// The task is gone.
    pub fn forget(&mut self, task: TaskId, now: Instant) {
        let life = self.lives.of(task);
        let last = self.facts.back();
        // If that it left is what was told last, it was gone by then.
        let left = last.filter(|last| last.life == life && last.fact.what == FactKind::Left);
        let gone_ns = left.map_or(now.as_ns(), |left| left.fact.at_ns);
        self.lives.forget(task, gone_ns);
    }

    /// Something happened; facts come in the order of their instants.
    pub fn tell(&mut self, fact: Fact) {
        if self.span.is_zero() {
            return;
        }
        let life = self.lives.meant_by(&fact);
        if self.facts.len() == FACTS_MAX
            && let Some(old) = self.facts.pop_front()
        {
            self.since = Instant::from_ns(old.fact.at_ns);
            self.remains.take(&old);
        }
        let noted = Noted { fact, life };
        for waiting in &mut self.waiting {
            waiting.is_over |= ends(&noted, &waiting.missed);
        }
        self.facts.push_back(noted);
    }

    /// It is now so late, and so many facts were lost so far: what is older than is to be remembered is forgotten.
    pub fn advance(&mut self, now: Instant, lost: u64) {
        let now_ns = now.as_ns();
        if now.late_since(self.looked) >= AWAY_MIN {
            self.own.push_back(Own::Away {
                since_ns: self.looked.as_ns(),
                until_ns: now_ns,
            });
        }
        self.looked = now;
        if let Some(facts) = lost.checked_sub(self.lost).filter(|&facts| facts > 0) {
            self.own.push_back(Own::Lost {
                at_ns: now_ns,
                facts,
            });
        }
        self.lost = lost;
        let oldest_ns = now_ns.saturating_sub(self.span.as_ns());
        self.since = self.since.max(Instant::from_ns(oldest_ns));
        let old = self
            .facts
            .partition_point(|noted| noted.fact.at_ns < oldest_ns);
        for noted in self.facts.drain(..old) {
            self.remains.take(&noted);
        }
        while self.own.front().is_some_and(|own| own.at_ns() < oldest_ns) {
            self.own.pop_front();
        }
        while self.misses.front().is_some_and(|it| it.due_ns < oldest_ns) {
            self.misses.pop_front();
        }
        self.explained
            .retain(|_, at_ns| *at_ns + EXPLAINED_EVERY.as_ns() > now_ns);
        self.lives.expire(oldest_ns);
    }

    /// A deadline was missed.
    pub fn missed(&mut self, miss: &Miss) {
        let Some(life) = self.lives.of(miss.task) else {
            return;
        };
        let missed = Missed {
            life,
            began_ns: miss.began_ns,
            due_ns: miss.due_ns,
        };
        if self.span.is_zero() {
            return;
        }
        if self.misses.len() == MISSES_MAX {
            self.misses.pop_front();
        }
        self.misses.push_back(missed);
        let waits = self.waiting.iter().any(|it| it.missed.life == life);
        if waits || self.waiting.len() == WAITING_MAX || self.explained.contains_key(&life) {
            return;
        }
        let since = self.facts.iter().rev();
        let mut since = since.take_while(|noted| noted.fact.at_ns > missed.began_ns);
        let is_over = since.any(|noted| ends(noted, &missed));
        self.waiting.push_back(Waiting { missed, is_over });
    }

    /// The next miss that is to be explained: one of a job that is finished, or has not been for a second.
    pub fn take_missed(&mut self, now: Instant) -> Option<Missed> {
        let is_due = |it: &Waiting| {
            it.is_over || now.as_ns() >= it.missed.due_ns.saturating_add(PATIENCE.as_ns())
        };
        // Of what is over and too old nobody knows any more how it began; there will be others.
        let since_ns = self.since.as_ns();
        self.waiting
            .retain(|it| !it.is_over || it.missed.began_ns >= since_ns);
        let index = self.waiting.iter().position(is_due)?;
        let Waiting { missed, .. } = self.waiting.remove(index)?;
        self.explained.insert(missed.life, now.as_ns());
        Some(missed)
    }

    /// What is remembered since then; of more than about so many bytes as text, the newest. `unix_ns` is now by the
    /// world's clock.
    ///
    /// # Cost
    /// O(n) for n facts, some nanoseconds for each.
    pub fn recording(&self, since: Instant, bytes_max: usize, unix_ns: u64) -> Recording {
        let mut first = self
            .facts
            .partition_point(|noted| noted.fact.at_ns < since.as_ns());
        let mut since = since.max(self.since);
        let mut bytes = 0;
        let newest = self.facts.iter().enumerate().skip(first).rev();
        for (index, noted) in newest {
            bytes += self.length(noted);
            if bytes > bytes_max {
                first = index + 1;
                since = since.max(Instant::from_ns(noted.fact.at_ns));
                break;
            }
        }
        let mut remains = self.remains.clone();
        for noted in self.facts.iter().take(first) {
            remains.take(noted);
        }
        let mut facts = remains.facts();
        facts.extend(self.facts.iter().skip(first));
        let since_ns = since.min(self.looked).as_ns();
        Recording {
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.policy.clone(),
            cpus: self.cpus,
            since_ns,
            until_ns: self.looked.as_ns(),
            unix_ns,
            missed: None,
            lives: self.lives.all().clone(),
            facts,
            misses: self
                .misses
                .iter()
                .filter(|it| it.due_ns >= since_ns)
                .copied()
                .collect(),
            own: self
                .own
                .iter()
                .filter(|own| own.at_ns() >= since_ns)
                .copied()
                .collect(),
        }
    }

    /// At most, as text.
    fn length(&self, noted: &Noted) -> usize {
        let life = noted.life.and_then(|life| self.lives.all().get(&life));
        // A character that has to be escaped takes two.
        lines::LINE_MAX + life.map_or(0, |it| 2 * it.name.len())
    }
}

/// Whether the missed job is over by this.
fn ends(noted: &Noted, missed: &Missed) -> bool {
    let is_end = matches!(
        noted.fact.what,
        FactKind::Blocked | FactKind::Yielded | FactKind::Left | FactKind::Demoted { .. }
    );
    is_end && noted.life == Some(missed.life) && noted.fact.at_ns > missed.began_ns
}

#[cfg(test)]
mod tests;
