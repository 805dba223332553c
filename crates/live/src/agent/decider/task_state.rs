//! State of a task as the agent knows it.

use shiftwork_machine::{Admission, Server, ServerParameters, ServerRule, Spent};
use shiftwork_model::{Instant, OnOverrun, Priority, ResourceId, Span};

use crate::machine::{Parameters, grace};

/// Stage of a task's first unfinished job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is no job.
    Idle,
    /// The next job will be released at that instant.
    Unreleased(Instant),
    /// The job is ready. It may spin.
    Ready,
    /// The job has budget, and its thread sleeps.
    Suspended,
    /// The budget is used up; it is replenished at that instant.
    Throttled(Instant),
    /// The job waits for a mutex, and its thread is awake.
    Blocked,
}

/// What happens to a job that exceeds its budget.
#[derive(Clone, Copy, Debug)]
pub(super) enum Budget {
    /// It continues.
    None,
    /// It is throttled, or gets a later deadline.
    Enforced(Server),
    /// It continues, and an event reports the overrun. The budget that is left of the job.
    Warned(Span),
}

/// State of a task as the agent knows it. Instants are those of the decider.
#[derive(Clone, Debug)]
pub(super) struct TaskState {
    /// Whether the policy knows the task.
    pub(super) in_policy: bool,
    /// Whether the task is admitted.
    pub(super) is_present: bool,
    /// Whether its thread is runnable.
    pub(super) is_awake: bool,
    /// Whether its releases are reported; otherwise its jobs begin with wake-ups.
    pub(super) follows: bool,
    pub(super) stage: Stage,
    pub(super) release: Instant,
    /// Release of the job after the latest one that the policy knows of, if that is known.
    pub(super) predicted_release: Instant,
    pub(super) deadline: Instant,
    pub(super) priority: Priority,
    /// Parameters of future jobs; the cost includes the grace.
    pub(super) parameters: ServerParameters,
    pub(super) budget: Budget,
    /// The rule of its server.
    rule: ServerRule,
    /// Under Linux's rules, how far the budget may be overdrawn before the task is throttled; `None`: it never
    /// is. Other servers grant it as part of the budget, which here would change the bandwidth of a task that
    /// wakes up.
    grace: Option<Span>,
    /// The grace for a cost.
    pub(super) tolerance: fn(Span) -> Span,
    /// Its present run.
    pub(super) running: Option<Running>,
    /// Execution time since its admission, as reported.
    pub(super) ran: Span,
    /// The mutex that its thread has requested and does not know to have.
    pub(super) requested: Option<ResourceId>,
    /// Whether its job has unlocked its last mutexes and ends by that; the report of the end comes next.
    pub(super) has_unlocked: bool,
    /// Whether its job ends at this instant, and the policy is about to learn that.
    pub(super) ends: bool,
    /// Number of stops, and of finished jobs.
    pub(super) stops: u32,
    pub(super) finished: u32,
    /// The round of decisions in which its job became ready last, and the cause of that.
    pub(super) arrival: (u64, Instant),
    /// Reports until this instant are contained in the state.
    pub(super) known_until: Instant,
    /// When it was admitted; earlier reports belong to an earlier admission.
    pub(super) since: Instant,
}

/// A run of a task on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// Index of the CPU in the platform.
    pub(super) cpu_index: usize,
    pub(super) since: Instant,
    pub(super) charged: Span,
}

impl TaskState {
    pub(super) fn new(priority: Priority, in_policy: bool, rule: ServerRule) -> Self {
        let nothing = ServerParameters {
            cost: Span::ZERO,
            period: Span::ZERO,
            deadline: Span::ZERO,
        };
        Self {
            in_policy,
            is_present: false,
            is_awake: false,
            follows: true,
            stage: Stage::Idle,
            release: Instant::ZERO,
            predicted_release: Instant::ZERO,
            deadline: Instant::ZERO,
            priority,
            parameters: nothing,
            budget: Budget::None,
            rule,
            grace: None,
            tolerance: grace,
            running: None,
            ran: Span::ZERO,
            requested: None,
            has_unlocked: false,
            ends: false,
            stops: 0,
            finished: 0,
            arrival: (0, Instant::ZERO),
            known_until: Instant::ZERO,
            since: Instant::ZERO,
        }
    }

    /// Admits the task. One that `comes_back` after it was demoted keeps its server, and so gains no budget.
    /// `deadline` is the relative deadline to schedule by.
    pub(super) fn enter(
        &mut self,
        (of, deadline): (&Parameters, Span),
        is_awake: bool,
        comes_back: bool,
    ) {
        if !comes_back {
            self.budget = Budget::None;
        }
        self.set_parameters(of, deadline);
        self.is_present = true;
        self.is_awake = is_awake;
        self.follows = of.follows;
        self.priority = of.priority;
        self.stage = Stage::Idle;
        self.running = None;
        (self.ran, self.stops, self.finished) = (Span::ZERO, 0, 0);
        self.known_until = Instant::ZERO;
    }

    /// Sets the parameters of future jobs, which are scheduled by this relative deadline.
    pub(super) fn set_parameters(&mut self, of: &Parameters, deadline: Span) {
        if let ServerRule::Linux(_) = self.rule {
            return self.set_parameters_as_linux(of);
        }
        let cost = of.budget();
        self.parameters = ServerParameters {
            cost,
            period: of.period,
            deadline,
        };
        self.budget = match (of.on_overrun, self.budget) {
            _ if cost.is_zero() => Budget::None,
            (OnOverrun::Signal, _) => Budget::Warned(cost),
            // A period in progress ends when it would have ended.
            (_, Budget::Enforced(server)) => Budget::Enforced(server),
            _ => Budget::Enforced(Server::new(self.parameters, ServerRule::Releases)),
        };
    }

    /// Linux applies changes from the next budget on. A task that is never throttled has a server too, for its
    /// deadlines.
    fn set_parameters_as_linux(&mut self, of: &Parameters) {
        self.parameters = ServerParameters {
            cost: of.cost,
            period: of.period,
            deadline: of.deadline,
        };
        self.grace = match of.on_overrun {
            OnOverrun::Continue => None,
            OnOverrun::Throttle | OnOverrun::Signal => Some((self.tolerance)(of.cost)),
        };
        match &mut self.budget {
            Budget::Enforced(server) => server.set_parameters(self.parameters),
            Budget::None | Budget::Warned(_) => {
                self.budget = Budget::Enforced(Server::new(self.parameters, self.rule));
            }
        }
    }

    /// Begins a job that was released at `release`; it `follows` if the previous one has just ended.
    pub(super) fn begin(&mut self, release: Instant, now: Instant, follows: bool) -> Admission {
        self.release = release;
        let parameters = self.parameters;
        match &mut self.budget {
            Budget::Enforced(server) if follows => {
                server.forgive(self.grace.unwrap_or(Span::MAX));
                server.succeed(release, now, parameters)
            }
            Budget::Enforced(server) => server.begin(release, now, parameters),
            Budget::Warned(left) => {
                *left = parameters.cost;
                Admission::Ready(release + parameters.deadline)
            }
            Budget::None => Admission::Ready(release + parameters.deadline),
        }
    }

    /// Continues a suspended job.
    pub(super) fn resume(&mut self, now: Instant) -> Admission {
        match &mut self.budget {
            Budget::Enforced(server) => server.resume(now),
            Budget::Warned(_) | Budget::None => Admission::Ready(self.deadline),
        }
    }

    /// Budget that is left before the task is throttled or an overrun is reported; `None` if it is unlimited.
    pub(super) fn left(&self) -> Option<Span> {
        match &self.budget {
            Budget::Enforced(server) if self.rule == ServerRule::Releases => Some(server.left()),
            Budget::Enforced(server) => self
                .grace
                .map(|grace| server.left() + grace.saturating_sub(server.overdrawn())),
            Budget::Warned(left) => (!left.is_zero()).then_some(*left),
            Budget::None => None,
        }
    }

    /// Consumes budget. Whether a job that is only warned has used up its budget by that.
    pub(super) fn consume(&mut self, ran: Span) -> bool {
        match &mut self.budget {
            Budget::Enforced(server) => {
                server.consume(ran);
                false
            }
            Budget::Warned(left) => {
                let had_some = !left.is_zero();
                *left = left.saturating_sub(ran);
                had_some && left.is_zero()
            }
            Budget::None => false,
        }
    }

    /// Charges the execution until now that was not charged yet.
    pub(super) fn charge_until(&mut self, now: Instant) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let ran = now.since(running.since).unwrap_or(Span::ZERO);
        let more = ran.saturating_sub(running.charged);
        running.charged += more;
        self.consume(more)
    }

    /// Charges the execution time that the machine measured since the run began or was last measured.
    pub(super) fn charge(&mut self, ran: Span, now: Instant) -> bool {
        self.ran += ran;
        let charged = match &mut self.running {
            Some(running) => {
                running.since = now;
                std::mem::replace(&mut running.charged, Span::ZERO)
            }
            None => Span::ZERO,
        };
        self.consume(ran.saturating_sub(charged))
    }

    /// Throttles or replenishes the server of an unfinished job if its budget is used up; `None` if it is not, or not
    /// enforced.
    pub(super) fn spent(&mut self, now: Instant) -> Option<Spent> {
        let is_spent = self.left().is_some_and(Span::is_zero);
        match &mut self.budget {
            Budget::Enforced(server) if is_spent => Some(server.spent(now)),
            _ => None,
        }
    }

    /// Whether Linux throttles the task of a job that ends now, because its budget is used up.
    pub(super) fn ends_throttled(&mut self, now: Instant) -> bool {
        if self.rule == ServerRule::Releases {
            return false;
        }
        self.charge_until(now);
        matches!(&self.budget, Budget::Enforced(server) if server.left().is_zero())
    }

    /// Starts a new period, as Linux does for a job that leaves its run queue after its deadline; the new deadline.
    /// `None` under other rules, or if the job is not late.
    pub(super) fn renew_if_late(&mut self, now: Instant) -> Option<Instant> {
        let is_late = self.stage == Stage::Ready && self.deadline <= now;
        if self.rule == ServerRule::Releases || !is_late {
            return None;
        }
        self.charge_until(now);
        match &mut self.budget {
            Budget::Enforced(server) => {
                self.deadline = server.renew(now);
                Some(self.deadline)
            }
            Budget::Warned(_) | Budget::None => None,
        }
    }

    /// Start of the next period, for a job that yields the rest of this one.
    pub(super) fn next_period(&self) -> Instant {
        let end = match &self.budget {
            Budget::Enforced(server) => server.end(),
            Budget::Warned(_) | Budget::None => None,
        };
        end.unwrap_or(self.release + self.parameters.period)
    }
}
