//! Feeds a recording to a policy, any number of times.

use shiftwork_model::{CpuId, TaskId};
use shiftwork_policy::registry::Entry;
use shiftwork_policy::{Policy, Switches};

use super::recording::Step;
use super::runs::Run;

/// A policy somewhere in a recording.
pub struct Replay<'a> {
    entry: &'a Entry,
    run: &'a Run,
    policy: Box<dyn Policy>,
    out: Switches,
    next: usize,
}

impl<'a> Replay<'a> {
    /// A fresh policy, brought to the beginning.
    pub fn new(entry: &'a Entry, run: &'a Run) -> Self {
        let mut replay = Self {
            entry,
            run,
            policy: entry
                .build(&run.set)
                .expect("the policy takes this task set"),
            out: Switches::with_capacity(4 * run.set.platform.cpus),
            next: 0,
        };
        replay.begin();
        replay
    }

    /// The events that are left until the end, at most `limit`, each passed to `apply`, which must
    /// give it to the policy. Returns their number.
    #[inline]
    pub fn advance_with(
        &mut self,
        limit: usize,
        mut apply: impl FnMut(&mut dyn Policy, &Step, &mut Switches),
    ) -> usize {
        let steps = &self.run.recording.steps[self.next..];
        let steps = &steps[..limit.min(steps.len())];
        for step in steps {
            self.out.clear();
            apply(&mut *self.policy, step, &mut self.out);
        }
        self.next += steps.len();
        steps.len()
    }

    /// The same, as fast as the policy can.
    #[inline]
    pub fn advance(&mut self, limit: usize) -> usize {
        self.advance_with(limit, |policy, step, out| {
            policy.on_event(step.event(), out);
        })
    }

    /// Events until the end.
    pub fn left(&self) -> usize {
        self.run.recording.steps.len() - self.next
    }

    pub fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    /// Back to the beginning, from the end.
    pub fn rewind(&mut self) {
        assert!(self.is_at_end(), "only what is ready at the end is known");
        match &self.run.recording.after {
            Some(steps) => steps.iter().for_each(|step| self.apply(step)),
            None => {
                self.policy = self
                    .entry
                    .build(&self.run.set)
                    .expect("the policy took this task set before");
            }
        }
        self.next = 0;
        self.begin();
    }

    /// Panics unless every job that completes runs then: the policy would have made the same run.
    pub fn check_same_run(mut self) -> Self {
        let name = self.entry.name;
        let mut running: Vec<Option<TaskId>> = (0..self.run.set.platform.cpus)
            .map(|cpu| self.policy.assigned(CpuId::from_index(cpu)))
            .collect();
        let count = CHECKED_EVENTS.min(self.run.recording.steps.len());
        self.advance_with(count, |policy, step, out| {
            if let Step::Complete(task) = step {
                assert!(
                    running.contains(&Some(*task)),
                    "{name}: {task:?} completes but does not run"
                );
            }
            policy.on_event(step.event(), out);
            for switch in out {
                running[switch.cpu.index()] = switch.to;
            }
        });
        self
    }

    fn begin(&mut self) {
        let run = self.run;
        run.recording
            .before
            .iter()
            .for_each(|step| self.apply(step));
    }

    fn apply(&mut self, step: &Step) {
        self.out.clear();
        self.policy.on_event(step.event(), &mut self.out);
    }
}

/// Enough to notice, and not too slow for the slowest policy.
const CHECKED_EVENTS: usize = 500;
