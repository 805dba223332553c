//! Every schedule that sporadic tasks may lead to without preemption, by exploring all states that can be reached,
//! one unit of time after the other.

use std::collections::BTreeSet;

use shiftwork_analysis::Ranked;
use shiftwork_model::Order;

/// A task as far as its future depends on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    /// The time since the last release, or the period if that is shorter.
    since: u8,
    /// How long ago the unfinished jobs were released, the first first.
    ages: Vec<u8>,
    /// What the first of them has left, if it runs; else zero.
    left: u8,
}

/// Tasks of small times on CPUs without preemption.
pub struct Rules<'a> {
    pub tasks: &'a [Ranked],
    pub cpus: usize,
    pub order: Order,
    /// Whether jobs may be done earlier than after their cost.
    pub early: bool,
}

impl Rules<'_> {
    /// The longest response time of each task, over all schedules; `None` if a job takes longer than `limit` or there
    /// are more than `most` states.
    pub fn responses(&self, limit: u8, most: usize) -> Option<Vec<u64>> {
        let mut longest = vec![0; self.tasks.len()];
        let idle = |ranked: &Ranked| State {
            since: period(ranked),
            ages: Vec::new(),
            left: 0,
        };
        let first: Vec<State> = self.tasks.iter().map(idle).collect();
        let mut known = BTreeSet::from([first.clone()]);
        let mut open = vec![first];
        while let Some(states) = open.pop() {
            for released in self.with_releases(&states) {
                for mut next in self.with_starts(released) {
                    self.pass(&mut next, &mut longest);
                    if next
                        .iter()
                        .any(|state| state.ages.iter().any(|&age| age > limit))
                    {
                        return None;
                    }
                    if known.insert(next.clone()) {
                        open.push(next);
                    }
                }
            }
            if known.len() > most {
                return None;
            }
        }
        Some(longest)
    }

    /// With each choice of tasks that release a job now.
    fn with_releases(&self, states: &[State]) -> Vec<Vec<State>> {
        let may = |place: &usize| states[*place].since == period(&self.tasks[*place]);
        let may: Vec<usize> = (0..states.len()).filter(may).collect();
        let chosen = |choice: u32| {
            let mut states = states.to_vec();
            for (bit, &place) in may.iter().enumerate() {
                if choice >> bit & 1 == 1 {
                    states[place].since = 0;
                    states[place].ages.push(0);
                }
            }
            states
        };
        (0..1 << may.len()).map(chosen).collect()
    }

    /// With the most urgent waiting jobs on the free CPUs, with each time that they may take.
    fn with_starts(&self, states: Vec<State>) -> Vec<Vec<State>> {
        let running = states.iter().filter(|state| state.left > 0).count();
        let mut waiting: Vec<usize> = (0..states.len())
            .filter(|&place| states[place].left == 0 && !states[place].ages.is_empty())
            .collect();
        waiting.sort_by_key(|&place| {
            let ranked = &self.tasks[place];
            let age = i64::from(states[place].ages[0]);
            let rank = match self.order {
                Order::FixedPriority => i64::from(ranked.priority.number()),
                _ => ranked.task.deadline.as_ns() as i64 - age,
            };
            (rank, -age, place)
        });
        let mut all = vec![states];
        for &place in waiting.iter().take(self.cpus - running) {
            let cost = self.tasks[place].task.cost.as_ns() as u8;
            let times = if self.early { 1..=cost } else { cost..=cost };
            all = all
                .into_iter()
                .flat_map(|states| {
                    times.clone().map(move |left| {
                        let mut states = states.clone();
                        states[place].left = left;
                        states
                    })
                })
                .collect();
        }
        all
    }

    /// Lets a unit of time pass.
    fn pass(&self, states: &mut [State], longest: &mut [u64]) {
        for (place, state) in states.iter_mut().enumerate() {
            state.since = (state.since + 1).min(period(&self.tasks[place]));
            state.ages.iter_mut().for_each(|age| *age += 1);
            if state.left > 0 {
                state.left -= 1;
                if state.left == 0 {
                    longest[place] = longest[place].max(u64::from(state.ages.remove(0)));
                }
            }
        }
    }
}

fn period(ranked: &Ranked) -> u8 {
    ranked.task.period.as_ns() as u8
}
