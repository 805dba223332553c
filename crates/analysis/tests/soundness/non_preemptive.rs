//! Global non-preemptive EDF by its definition, one instant after the other: at completions the next
//! pending job of the same task takes part in the decision on the free CPUs; jobs that are released
//! at the same instant come after it, as they would if they were released a moment later.

use super::judge::Pattern;
use super::system::System;

/// A task at some instant.
#[derive(Clone, Default)]
struct State {
    /// How many of its jobs are released and finished.
    released: usize,
    finished: usize,
    /// When the job that runs will be done.
    until: Option<u64>,
}

/// The longest response time of each task. All jobs run to their end.
pub fn responses(system: &System, pattern: &Pattern) -> Vec<u64> {
    let count = system.members.len();
    let mut states = vec![State::default(); count];
    let mut longest = vec![0; count];
    let mut now = 0;
    loop {
        for (place, state) in states.iter_mut().enumerate() {
            if state.until == Some(now) {
                let response = now - pattern.releases[place][state.finished];
                longest[place] = longest[place].max(response);
                state.finished += 1;
                state.until = None;
            }
        }
        start(system, pattern, &mut states, now);
        for (place, state) in states.iter_mut().enumerate() {
            let is_due = |&&at: &&u64| at == now;
            let next = pattern.releases[place].get(state.released);
            state.released += usize::from(next.filter(is_due).is_some());
        }
        start(system, pattern, &mut states, now);
        let releases = states.iter().zip(&pattern.releases);
        let releases = releases.filter_map(|(state, jobs)| jobs.get(state.released).copied());
        let ends = states.iter().filter_map(|state| state.until);
        match releases.chain(ends).min() {
            Some(next) => now = next,
            None => return longest,
        }
    }
}

/// Gives free CPUs to the most urgent waiting jobs.
fn start(system: &System, pattern: &Pattern, states: &mut [State], now: u64) {
    let running = states.iter().filter(|state| state.until.is_some()).count();
    let mut waiting: Vec<(u64, u64, usize)> = states
        .iter()
        .enumerate()
        .filter(|(_, state)| state.until.is_none() && state.finished < state.released)
        .map(|(place, state)| {
            let release = pattern.releases[place][state.finished];
            let deadline = release + system.members[place].task.deadline.as_ns();
            (deadline, release, place)
        })
        .collect();
    waiting.sort_unstable();
    for &(.., place) in waiting.iter().take(system.cpus - running) {
        let state = &mut states[place];
        state.until = Some(now + pattern.works[place][state.finished]);
    }
}
