//! The budget server of a task: how long its jobs may execute in a period, and their scheduling deadline.

use shiftwork_model::{Instant, Lagging, Order, Span};

/// The reservation that a server enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerParameters {
    /// C: the budget.
    pub cost: Span,
    /// T: the time between two replenishments.
    pub period: Span,
    /// D: the deadline, from the start of the server's period.
    pub deadline: Span,
}

impl ServerParameters {
    /// The same with the deadline by which a policy of this order schedules on a machine with this number of
    /// CPUs.
    #[must_use]
    pub const fn scheduled_by(self, order: Order, cpus: usize) -> Self {
        Self {
            deadline: order.relative_deadline(self.cost, self.deadline, cpus),
            ..self
        }
    }
}

/// The rule by which a server sets its period and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRule {
    /// By the arrivals of its task, which are its releases without jitter. As long as no job executes for longer than
    /// the budget, each job is scheduled by exactly its own deadline. An arrival at or after the end of the server's
    /// period starts a new period; a suspension changes nothing. Only after an overrun does the server fall behind the
    /// releases; then jobs are scheduled by the server's deadlines instead of their own.
    Releases,
    /// By the wake-ups of its task, as Linux's `SCHED_DEADLINE` does, which does not know jobs. A task that
    /// wakes keeps the remaining budget and the deadline if that budget is at most what its bandwidth
    /// allows until the deadline. Otherwise a new period starts with the wake-up. A task that has completed
    /// a job while the next one is pending gives up the remaining budget (`sched_yield`).
    Linux(Lagging),
}

/// A hard constant-bandwidth server.
///
/// A machine that stops a job late overdraws the budget. Later budgets are reduced by the overdraft, unless
/// a period begins with a release or a wake-up. The caller's instants must not decrease.
///
/// `sw_next_job` of the kernel core follows [`ServerRule::Releases`]; its tests drive both in lockstep.
///
/// # Source
/// L. Abeni, G. Buttazzo, "Integrating Multimedia Applications in Hard Real-Time Systems", RTSS 1998,
/// with the hard reservation of Linux's `SCHED_DEADLINE` (a task with a spent budget waits for the next
/// period). [`ServerRule::Linux`] is Fig. 1 of S. Tang, J. H. Anderson, L. Abeni, RTNS 2021; for deadlines
/// before the end of the period `update_dl_entity`, `update_dl_revised_wakeup` and
/// `dl_check_constrained_dl` of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    parameters: ServerParameters,
    rule: ServerRule,
    /// End of the period. A change of parameters does not move it. `None` before the first job.
    end: Option<Instant>,
    left: Span,
    /// Execution time beyond the budget; if not zero, `left` is zero.
    overdrawn: Span,
    deadline: Instant,
}

/// Whether a job may become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// At once, with this scheduling deadline.
    Ready(Instant),
    /// At once, with a full budget and this scheduling deadline.
    Replenished(Instant),
    /// Not before this instant, at which [`Server::replenish`] is due.
    Throttled(Instant),
}

/// Consequence of a budget that is used up before the job completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The job waits until this instant, at which [`Server::replenish`] is due.
    Throttled(Instant),
    /// The job continues with a full budget and this scheduling deadline.
    Replenished(Instant),
}

impl Server {
    /// A server that has not served any job.
    pub const fn new(parameters: ServerParameters, rule: ServerRule) -> Self {
        Self {
            parameters,
            rule,
            end: None,
            left: Span::ZERO,
            overdrawn: Span::ZERO,
            deadline: Instant::ZERO,
        }
    }

    /// Begins the first incomplete job of the task, which arrived at `arrival`, after a time in which the task did
    /// not run: the job before it completed earlier, or completed during a suspension that is over.
    ///
    /// `parameters` are those of the job and take effect with it; the end of a current period does not
    /// change. Under Linux's rule they are ignored: there [`set_parameters`](Self::set_parameters)
    /// changes them.
    pub fn begin(
        &mut self,
        arrival: Instant,
        now: Instant,
        parameters: ServerParameters,
    ) -> Admission {
        if let ServerRule::Linux(_) = self.rule {
            return self.wake(now);
        }
        self.parameters = parameters;
        if self.end.is_none_or(|end| arrival >= end) {
            self.overdrawn = Span::ZERO;
            return Admission::Ready(self.start(arrival));
        }
        // After a change of attributes, the rest of the old budget may exceed the new budget.
        self.left = self.left.min(parameters.cost);
        self.resume(now)
    }

    /// Begins a job that was pending when the job before it completed, which is now.
    pub fn succeed(
        &mut self,
        arrival: Instant,
        now: Instant,
        parameters: ServerParameters,
    ) -> Admission {
        if self.rule == ServerRule::Releases {
            return self.begin(arrival, now, parameters);
        }
        self.left = Span::ZERO;
        self.when_spent(now)
    }

    /// Sets the parameters from the next replenishment on; for the bandwidth test of a wake-up at once. The
    /// remaining budget and the end of the period do not change.
    pub fn set_parameters(&mut self, parameters: ServerParameters) {
        self.parameters = parameters;
    }

    /// Resumes the current job after a suspension. Budget and deadline are kept as far as the rule allows.
    pub fn resume(&mut self, now: Instant) -> Admission {
        if let ServerRule::Linux(_) = self.rule {
            let before = self.end;
            return match self.wake(now) {
                Admission::Ready(deadline) if self.end != before => {
                    Admission::Replenished(deadline)
                }
                admission => admission,
            };
        }
        if !self.left.is_zero() {
            return Admission::Ready(self.deadline);
        }
        self.when_spent(now)
    }

    fn when_spent(&mut self, now: Instant) -> Admission {
        match self.spent(now) {
            Spent::Throttled(until) => Admission::Throttled(until),
            Spent::Replenished(deadline) => Admission::Replenished(deadline),
        }
    }

    /// Linux's rule for a task that wakes.
    fn wake(&mut self, now: Instant) -> Admission {
        let Some(end) = self.end else {
            return Admission::Ready(self.renew(now));
        };
        let ServerParameters {
            cost,
            period,
            deadline,
        } = self.parameters;
        if now >= self.deadline {
            // A constrained deadline is over, the period is not: the task waits for the end of the period.
            if deadline < period && now < end {
                self.left = Span::ZERO;
                return Admission::Throttled(end);
            }
            return Admission::Ready(self.renew(now));
        }
        let until = self.deadline.late_since(now);
        let allowed = u128::from(cost.as_ns()) * u128::from(until.as_ns());
        if u128::from(self.left.as_ns()) * u128::from(deadline.as_ns()) > allowed {
            if deadline >= period {
                return Admission::Ready(self.renew(now));
            }
            let less = allowed / u128::from(deadline.as_ns().max(1));
            self.left = Span::from_ns(u64::try_from(less).unwrap_or(u64::MAX));
        }
        if self.left.is_zero() {
            return self.when_spent(now);
        }
        Admission::Ready(self.deadline)
    }

    /// Begins a period now, without regard to the previous one; returns its deadline.
    pub fn renew(&mut self, now: Instant) -> Instant {
        self.overdrawn = Span::ZERO;
        self.start(now)
    }

    /// The remaining budget.
    pub const fn left(&self) -> Span {
        self.left
    }

    /// End of the period; `None` before the first job.
    pub const fn end(&self) -> Option<Instant> {
        self.end
    }

    /// The zero-lag time, rounded up: the instant at which a server that always runs with its bandwidth would
    /// have used as much budget as this one has. A task that leaves before it has received more than its
    /// share. `None` before the first job.
    ///
    /// # Source
    /// `task_non_contending` of Linux: the deadline minus the remaining budget x T / C.
    pub fn zero_lag(&self) -> Option<Instant> {
        self.end?;
        let ServerParameters { cost, period, .. } = self.parameters;
        let cost = u128::from(cost.as_ns().max(1));
        let work = |span: Span| u128::from(span.as_ns()) * u128::from(period.as_ns());
        let time = |ns: u128| u64::try_from(ns).unwrap_or(u64::MAX);
        let before = self
            .deadline
            .as_ns()
            .saturating_sub(time(work(self.left) / cost));
        let after = time(work(self.overdrawn).div_ceil(cost));
        Some(Instant::from_ns(before) + Span::from_ns(after))
    }

    /// The budget of one period.
    pub const fn budget(&self) -> Span {
        self.parameters.cost
    }

    /// Charges `ran` to the budget; it exceeds the remaining budget if the job could not be stopped in time.
    pub fn consume(&mut self, ran: Span) {
        self.overdrawn += ran.saturating_sub(self.left);
        self.left = self.left.saturating_sub(ran);
    }

    /// Execution time beyond the budget.
    pub const fn overdrawn(&self) -> Span {
        self.overdrawn
    }

    /// Reduces the overdraft by `grace`: this much need not be paid back.
    pub fn forgive(&mut self, grace: Span) {
        self.overdrawn = self.overdrawn.saturating_sub(grace);
    }

    /// Extends the budget by work that it must not pay for, such as refilling caches.
    pub fn extend(&mut self, more: Span) {
        self.left += more;
    }

    /// Handles a budget that is used up before the job completes. Before the end of the period the job is
    /// throttled; after it the job gets the next budget at once.
    pub fn spent(&mut self, now: Instant) -> Spent {
        let end = self.end.expect("only a job that began uses a budget");
        if now < end {
            return Spent::Throttled(end);
        }
        Spent::Replenished(self.replenish(now))
    }

    /// Starts the next period with a full budget, and returns its deadline. An overdraft reduces the budget;
    /// periods whose whole budget it takes are skipped. If the new deadline is before `now`, a server
    /// with [`Lagging::Reset`] starts a period at `now` instead.
    pub fn replenish(&mut self, now: Instant) -> Instant {
        let mut start = self
            .end
            .expect("a budget is replenished after a job used it");
        let cost = self.parameters.cost.as_ns().max(1);
        let skipped = self.overdrawn.as_ns() / cost;
        let skip = self.parameters.period.checked_mul(skipped);
        start += skip.unwrap_or(Span::MAX);
        let owed = Span::from_ns(self.overdrawn.as_ns() % cost);
        self.overdrawn = Span::ZERO;
        self.start(start);
        self.left = self.left.saturating_sub(owed);
        if self.rule == ServerRule::Linux(Lagging::Reset) && self.deadline < now {
            return self.start(now);
        }
        self.deadline
    }

    /// Begins a period with a full budget at `start`; returns its deadline.
    fn start(&mut self, start: Instant) -> Instant {
        self.end = Some(start + self.parameters.period);
        self.left = self.parameters.cost;
        self.deadline = start + self.parameters.deadline;
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_ns;
    const NS: fn(u64) -> Span = Span::from_ns;

    fn parameters(cost: u64, period: u64, deadline: u64) -> ServerParameters {
        ServerParameters {
            cost: NS(cost),
            period: NS(period),
            deadline: NS(deadline),
        }
    }

    #[test]
    fn task_without_overrun_is_scheduled_by_its_own_deadlines() {
        let parameters = parameters(2, 10, 7);
        let mut server = Server::new(parameters, ServerRule::Releases);
        for (release, begins) in [(3, 3), (13, 15), (24, 24), (34, 60)] {
            let admission = server.begin(AT(release), AT(begins), parameters);
            assert_eq!(admission, Admission::Ready(AT(release + 7)));
            server.consume(NS(2));
        }
    }

    #[test]
    fn an_overrun_waits_for_the_next_period_and_postpones_the_jobs_after_it() {
        let parameters = parameters(1, 4, 4);
        let mut server = Server::new(parameters, ServerRule::Releases);
        assert_eq!(
            server.begin(AT(0), AT(0), parameters),
            Admission::Ready(AT(4))
        );
        server.consume(NS(1));
        assert_eq!(server.spent(AT(1)), Spent::Throttled(AT(4)));
        assert_eq!(server.replenish(AT(0)), AT(8));
        server.consume(NS(1));
        // The first job completes at 5 with its second budget; the job released at 4 has none.
        assert_eq!(
            server.begin(AT(4), AT(5), parameters),
            Admission::Throttled(AT(8))
        );
        assert_eq!(server.replenish(AT(0)), AT(12));
        assert_eq!(server.left(), NS(1));
    }

    #[test]
    fn a_late_job_is_replenished_at_once() {
        let parameters = parameters(1, 4, 4);
        let mut server = Server::new(parameters, ServerRule::Releases);
        server.begin(AT(0), AT(0), parameters);
        server.consume(NS(1));
        assert_eq!(server.spent(AT(4)), Spent::Replenished(AT(8)));
        assert_eq!(server.left(), NS(1));
    }

    #[test]
    fn budget_left_after_an_overrun_is_kept_with_its_deadline() {
        let parameters = parameters(2, 4, 4);
        let mut server = Server::new(parameters, ServerRule::Releases);
        server.begin(AT(0), AT(0), parameters);
        server.consume(NS(2));
        server.spent(AT(2));
        server.replenish(AT(0));
        server.consume(NS(1));
        assert_eq!(
            server.begin(AT(4), AT(5), parameters),
            Admission::Ready(AT(8))
        );
        assert_eq!(server.left(), NS(1));
    }

    #[test]
    fn remaining_budget_never_exceeds_a_lowered_cost() {
        let before = parameters(5, 4, 4);
        let mut server = Server::new(before, ServerRule::Releases);
        server.begin(AT(0), AT(0), before);
        server.consume(NS(5));
        server.spent(AT(2));
        server.replenish(AT(0));
        server.consume(NS(1));
        let admission = server.begin(AT(4), AT(5), parameters(2, 4, 4));
        assert_eq!((admission, server.left()), (Admission::Ready(AT(8)), NS(2)));
    }

    #[test]
    fn overdraft_reduces_the_next_budgets() {
        let parameters = parameters(3, 10, 10);
        let mut server = Server::new(parameters, ServerRule::Releases);
        server.begin(AT(0), AT(0), parameters);
        server.consume(NS(4));
        server.consume(NS(3));
        assert_eq!((server.left(), server.overdrawn()), (NS(0), NS(4)));
        assert_eq!(server.spent(AT(7)), Spent::Throttled(AT(10)));
        // The next period pays 3 of 4, the period after it the rest.
        assert_eq!(server.replenish(AT(0)), AT(30));
        assert_eq!((server.left(), server.overdrawn()), (NS(2), NS(0)));
    }

    #[test]
    fn job_that_starts_a_period_has_no_overdraft() {
        let parameters = parameters(3, 10, 10);
        let mut server = Server::new(parameters, ServerRule::Releases);
        server.begin(AT(0), AT(0), parameters);
        server.consume(NS(5));
        server.begin(AT(10), AT(10), parameters);
        assert_eq!((server.left(), server.overdrawn()), (NS(3), NS(0)));
    }

    #[test]
    fn change_of_parameters_keeps_the_end_of_the_period() {
        let before = parameters(2, 10, 10);
        let mut server = Server::new(before, ServerRule::Releases);
        server.begin(AT(0), AT(0), before);
        server.consume(NS(2));
        server.spent(AT(2));
        server.replenish(AT(0));
        server.consume(NS(2));
        let admission = server.begin(AT(11), AT(12), parameters(1, 4, 4));
        assert_eq!(admission, Admission::Throttled(AT(20)));
        assert_eq!(server.replenish(AT(0)), AT(24));
    }

    #[test]
    fn zero_lag_time_follows_the_budget_used() {
        let parameters = parameters(3, 10, 10);
        let mut server = Server::new(parameters, ServerRule::Releases);
        assert_eq!(server.zero_lag(), None);
        server.begin(AT(5), AT(5), parameters);
        assert_eq!(server.zero_lag(), Some(AT(5)));
        server.consume(NS(1));
        // 15 - 2 x 10 / 3, rounded up.
        assert_eq!(server.zero_lag(), Some(AT(9)));
        server.consume(NS(2));
        assert_eq!(server.zero_lag(), Some(AT(15)));
        // An overdraft of 1: 10 / 3 later, rounded up.
        server.consume(NS(1));
        assert_eq!(server.zero_lag(), Some(AT(19)));
    }

    #[test]
    fn a_suspension_keeps_budget_and_deadline() {
        let parameters = parameters(2, 10, 10);
        let mut server = Server::new(parameters, ServerRule::Releases);
        server.begin(AT(0), AT(0), parameters);
        server.consume(NS(1));
        assert_eq!(server.resume(AT(8)), Admission::Ready(AT(10)));
        assert_eq!(server.left(), NS(1));
        server.consume(NS(1));
        assert_eq!(server.resume(AT(9)), Admission::Throttled(AT(10)));
        assert_eq!(server.resume(AT(10)), Admission::Replenished(AT(20)));
    }
}
