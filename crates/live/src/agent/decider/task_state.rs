//! What an agent knows of a task.

use shiftwork_machine::{Admission, Server, ServerParameters, ServerRule, Spent};
use shiftwork_model::{Instant, OnOverrun, Priority, Span};

use crate::machine::{Parameters, grace};

/// Where the first unfinished job of a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Idle,
    /// It is the next, and will be released then.
    Unreleased(Instant),
    /// It may run.
    Ready,
    /// It could run, and its thread sleeps.
    Suspended,
    /// Its budget is used up until then.
    Throttled(Instant),
}

/// What is done about jobs that run for longer than they should.
#[derive(Clone, Copy, Debug)]
pub(super) enum Budget {
    /// Nothing.
    None,
    /// They wait.
    Enforced(Server),
    /// They go on, and somebody is told: what is left of the job's budget.
    Warned(Span),
}

/// What an agent knows of a task. Times are those of the decider.
#[derive(Clone, Debug)]
pub(super) struct TaskState {
    /// Whether the policy knows it.
    pub(super) in_policy: bool,
    /// Whether it takes part.
    pub(super) is_present: bool,
    /// Whether its thread wants to run.
    pub(super) is_awake: bool,
    /// Whether its releases are told.
    pub(super) follows: bool,
    pub(super) stage: Stage,
    pub(super) release: Instant,
    /// When the job after the latest that the policy knows of is released, if that is known.
    pub(super) predicted_release: Instant,
    pub(super) deadline: Instant,
    pub(super) priority: Priority,
    /// Of jobs to come; the cost is what may be used.
    pub(super) parameters: ServerParameters,
    pub(super) budget: Budget,
    /// By what its server keeps time.
    rule: ServerRule,
    /// Under Linux's rule, by how much it may overdraw a budget before anything is done; `None` if nothing
    /// ever is. What other servers have as a part of the budget would change the bandwidth of a task that wakes.
    grace: Option<Span>,
    /// What grace goes with a cost.
    pub(super) tolerance: fn(Span) -> Span,
    /// Where it runs, since when, and how much of that has been charged already.
    pub(super) running: Option<Running>,
    /// For how long it ran since it takes part, by what was told.
    pub(super) ran: Span,
    /// How often it has stopped, and finished a job.
    pub(super) stops: u32,
    pub(super) finished: u32,
    /// In which round of decisions its job became ready last, and what made it so.
    pub(super) arrival: (u64, Instant),
    /// What was reported until then is known.
    pub(super) known_until: Instant,
    /// Since when it takes part; earlier reports are of another stay.
    pub(super) since: Instant,
}

/// A task that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// The CPU, by its place in the platform.
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
            stops: 0,
            finished: 0,
            arrival: (0, Instant::ZERO),
            known_until: Instant::ZERO,
            since: Instant::ZERO,
        }
    }

    /// Takes part from now on. Who `comes_back` after having lost that keeps its server: nobody gains by it.
    pub(super) fn enter(&mut self, of: &Parameters, is_awake: bool, comes_back: bool) {
        if !comes_back {
            self.budget = Budget::None;
        }
        self.set_parameters(of);
        self.is_present = true;
        self.is_awake = is_awake;
        self.follows = of.follows;
        self.priority = of.priority;
        self.stage = Stage::Idle;
        self.running = None;
        (self.ran, self.stops, self.finished) = (Span::ZERO, 0, 0);
        self.known_until = Instant::ZERO;
    }

    /// What holds for the jobs to come.
    pub(super) fn set_parameters(&mut self, of: &Parameters) {
        if let ServerRule::Linux(_) = self.rule {
            return self.set_parameters_as_linux(of);
        }
        let cost = of.budget();
        self.parameters = ServerParameters {
            cost,
            period: of.period,
            deadline: of.deadline,
        };
        self.budget = match (of.on_overrun, self.budget) {
            _ if cost.is_zero() => Budget::None,
            (OnOverrun::Signal, _) => Budget::Warned(cost),
            // A period that goes on ends when it would have ended.
            (_, Budget::Enforced(server)) => Budget::Enforced(server),
            _ => Budget::Enforced(Server::new(self.parameters, ServerRule::Releases)),
        };
    }

    /// Linux lets changes count from the next budget on. Whoever is not to be throttled has a server too,
    /// for its deadlines.
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

    /// A job that was released then begins now; it `follows` if the one before it has just ended.
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

    /// The job that began wants to go on.
    pub(super) fn resume(&mut self, now: Instant) -> Admission {
        match &mut self.budget {
            Budget::Enforced(server) => server.resume(now),
            Budget::Warned(_) | Budget::None => Admission::Ready(self.deadline),
        }
    }

    /// How long it may run before something has to be done; `None`: for ever.
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

    /// It has run for so long more. Whether a job that is only warned has used up its budget by that.
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

    /// Charges what it has run until now and has not been charged for.
    pub(super) fn charge_until(&mut self, now: Instant) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        let ran = now.since(running.since).unwrap_or(Span::ZERO);
        let more = ran.saturating_sub(running.charged);
        running.charged += more;
        self.consume(more)
    }

    /// The machine says that it ran for so long since it was put there, or since it said so last.
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

    /// The budget is used up and the job is not finished; `None` where nobody is held back.
    pub(super) fn spent(&mut self, now: Instant) -> Option<Spent> {
        let is_spent = self.left().is_some_and(Span::is_zero);
        match &mut self.budget {
            Budget::Enforced(server) if is_spent => Some(server.spent(now)),
            _ => None,
        }
    }

    /// Whether a job that ends now has used up its budget, so that Linux throttles its task.
    pub(super) fn ends_throttled(&mut self, now: Instant) -> bool {
        if self.rule == ServerRule::Releases {
            return false;
        }
        self.charge_until(now);
        matches!(&self.budget, Budget::Enforced(server) if server.left().is_zero())
    }

    /// A job that has to leave its run queue after its deadline gets a new period from Linux, which starts
    /// now; its deadline. `None` under other rules, or if it is not late.
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

    /// When its next period begins, for a job that gives up what is left of this one.
    pub(super) fn next_period(&self) -> Instant {
        let end = match &self.budget {
            Budget::Enforced(server) => server.end(),
            Budget::Warned(_) | Budget::None => None,
        };
        end.unwrap_or(self.release + self.parameters.period)
    }
}
