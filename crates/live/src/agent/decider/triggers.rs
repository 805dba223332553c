//! Tasks that others trigger: which trigger releases a job, and when a job begins that waited for the one before it.

use shiftwork_machine::{Taken, TriggerQueue};
use shiftwork_model::{Instant, TaskId};

use super::Decider;
use super::task_state::Stage;
use crate::event::{Event, TriggerValue};
use crate::work::ON_TRIGGER_NS;

/// A task in this stage has no job until a trigger.
const AWAITS_TRIGGER: Stage = Stage::Unreleased(Instant::NEVER);

impl Decider {
    /// Ends the present job, if there is one. The next one is released at this instant of the monotonic clock, or by a trigger,
    /// which may have been.
    pub(super) fn follow(&mut self, now: Instant, id: TaskId, release_ns: u64) {
        if release_ns != ON_TRIGGER_NS {
            self.next_job(now, id, self.instant(release_ns));
            return;
        }
        let queue = self.triggers[id.index()].as_mut();
        match queue.and_then(TriggerQueue::next_arrival) {
            Some(arrival) => {
                self.begun.push(id);
                self.next_job(now, id, arrival);
            }
            None => {
                self.complete(id);
                self.states[id.index()].stage = AWAITS_TRIGGER;
            }
        }
    }

    /// Applies the report of a trigger, and forwards it with what became of it.
    pub(super) fn triggered(&mut self, now: Instant, event: Event) {
        let id = TaskId::from_index((event.task as usize).saturating_sub(1));
        let (Some(value), Some(state)) =
            (TriggerValue::read(event.value), self.states.get(id.index()))
        else {
            return;
        };
        let is_idle = state.stage == AWAITS_TRIGGER;
        let queue = self.triggers[id.index()].as_mut();
        let queue = queue.filter(|_| state.is_present);
        let taken = queue.map_or(Taken::Lost, |queue| {
            let taken = queue.take(value.source, is_idle, now);
            if taken == Taken::Releases && is_idle {
                // It begins at once.
                queue.next_arrival();
            }
            taken
        });
        let value = TriggerValue { taken, ..value };
        self.events.push(Event {
            value: value.word(),
            ..event
        });
        if taken == Taken::Releases && is_idle {
            // Of what one job triggers at an instant the most urgent comes first.
            self.gathering = true;
            self.begin(now, now, now, id);
            self.gathering = false;
        }
    }
}
