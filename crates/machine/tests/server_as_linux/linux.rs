//! Linux's arithmetic of `SCHED_DEADLINE`, transcribed.

use shiftwork_machine::ServerParameters;
use shiftwork_model::Lagging;

/// The state of a server as Linux keeps it: a negative budget is an overdraft.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    cost: i128,
    period: i128,
    relative_deadline: i128,
    lagging: Lagging,
    pub runtime: i128,
    pub deadline: i128,
    /// End of the period that has this deadline.
    pub next_period: i128,
}

/// Whether a task may run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Eligible {
    /// It runs by this deadline.
    By(i128),
    /// It waits for a timer that expires then.
    From(i128),
}

impl Entity {
    pub fn new(parameters: ServerParameters, lagging: Lagging, now: i128) -> Self {
        let mut entity = Self {
            cost: 0,
            period: 0,
            relative_deadline: 0,
            lagging,
            runtime: 0,
            deadline: 0,
            next_period: 0,
        };
        entity.set(parameters);
        entity.renew(now);
        entity
    }

    pub fn set(&mut self, parameters: ServerParameters) {
        self.cost = parameters.cost.as_ns().into();
        self.period = parameters.period.as_ns().into();
        self.relative_deadline = parameters.deadline.as_ns().into();
    }

    pub fn renew(&mut self, now: i128) {
        self.runtime = self.cost;
        self.deadline = now + self.relative_deadline;
        self.next_period = now + self.period;
    }

    /// `replenish_dl_entity`, with the end of the period as computed when the period began. Linux recomputes
    /// it from the current parameters, which differs for constrained deadlines.
    pub fn replenish(&mut self, now: i128) {
        self.deadline = self.next_period + self.relative_deadline;
        self.runtime += self.cost;
        while self.runtime <= 0 {
            self.deadline += self.period;
            self.runtime += self.cost;
        }
        self.next_period = self.deadline - self.relative_deadline + self.period;
        if self.lagging == Lagging::Reset && self.deadline < now {
            self.renew(now);
        }
    }

    /// `update_curr_dl`, when no budget is left.
    pub fn throttle(&mut self, now: i128) -> Eligible {
        if now < self.next_period {
            return Eligible::From(self.next_period);
        }
        self.replenish(now);
        Eligible::By(self.deadline)
    }

    /// `yield_task_dl`.
    pub fn give_up(&mut self, now: i128) -> Eligible {
        self.runtime = self.runtime.min(0);
        self.throttle(now)
    }

    /// `enqueue_dl_entity` with a wake-up.
    pub fn wake(&mut self, now: i128) -> Eligible {
        let is_constrained = self.relative_deadline < self.period;
        if is_constrained && self.deadline <= now && now < self.next_period {
            return self.give_up(now);
        }
        let laxity = self.deadline - now;
        if laxity <= 0 {
            self.renew(now);
        } else if self.runtime * self.relative_deadline > self.cost * laxity {
            if is_constrained {
                self.runtime = self.cost * laxity / self.relative_deadline;
            } else {
                self.renew(now);
            }
        }
        if self.runtime <= 0 {
            return self.throttle(now);
        }
        Eligible::By(self.deadline)
    }

    /// `task_non_contending`, rounded up; time begins at 0.
    pub fn zero_lag(&self) -> i128 {
        let ahead = (self.runtime * self.period).div_euclid(self.cost);
        (self.deadline - ahead).max(0)
    }
}
