//! The budget server of a task: how long its jobs may run in a period, and by which deadline.

use shiftwork_model::{Instant, Lagging, Span};

/// What a server enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerParameters {
    /// C: the budget.
    pub cost: Span,
    /// T: how long a budget has to last.
    pub period: Span,
    /// D: the deadline, from the start of the server's period.
    pub deadline: Span,
}

/// By what a server keeps time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRule {
    /// By the releases of its task: as long as no job runs for longer than the budget, each is scheduled
    /// by its own deadline exactly. A release at or after the end of the server's period starts a new
    /// one, and a suspension changes nothing. Only after an overrun does the server fall behind the
    /// releases, and its deadlines hold instead of theirs.
    Releases,
    /// By when its task wakes, as Linux's `SCHED_DEADLINE` does, which knows nothing of jobs: whoever
    /// wakes keeps what is left of the budget, and its deadline, if that is no more than its bandwidth
    /// allows until then, and else gets a new period that starts with the wake-up. A task that has
    /// finished a job and has another one pending gives up what is left (`sched_yield`).
    Linux(Lagging),
}

/// A hard constant-bandwidth server.
///
/// A machine that stops a job late overdraws the budget. Budgets to come pay that back, unless a period
/// begins with a release or a wake-up. Time never goes back.
///
/// `sw_next_job` of the kernel core follows the rule of releases; its tests drive both in lockstep.
///
/// # Source
/// L. Abeni, G. Buttazzo, "Integrating Multimedia Applications in Hard Real-Time Systems", RTSS 1998,
/// with the hard reservation of Linux's `SCHED_DEADLINE` (a spent budget waits for the next period). Its
/// other rule is Fig. 1 of S. Tang, J. H. Anderson, L. Abeni, RTNS 2021; for deadlines before the end of the
/// period `update_dl_entity`, `update_dl_revised_wakeup` and `dl_check_constrained_dl` of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    parameters: ServerParameters,
    rule: ServerRule,
    /// When its period ends, whatever parameters change until then; `None` before the first job.
    end: Option<Instant>,
    left: Span,
    /// What was used beyond the budget; then nothing is left.
    overdrawn: Span,
    deadline: Instant,
}

/// Whether a job may become ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// At once, to be scheduled by this deadline.
    Ready(Instant),
    /// At once, and the budget is full again: to be scheduled by this deadline.
    Replenished(Instant),
    /// Not before this instant, when [`Server::replenish`] is due.
    Throttled(Instant),
}

/// What follows when the budget is used up before the job is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// The job waits until this instant, when [`Server::replenish`] is due.
    Throttled(Instant),
    /// The job goes on with a full budget, to be scheduled by this deadline.
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

    /// A job, released at `release` and the first of its task that is not finished, begins. Its task did
    /// not run until now: the one before it was finished earlier, or by a suspension that is over.
    ///
    /// `parameters` are those of the job; they take effect with it, but a period that goes on ends when
    /// it would have ended. Under Linux's rule they are not looked at: there
    /// [`set_parameters`](Self::set_parameters) changes them.
    pub fn begin(
        &mut self,
        release: Instant,
        now: Instant,
        parameters: ServerParameters,
    ) -> Admission {
        if let ServerRule::Linux(_) = self.rule {
            return self.wake(now);
        }
        self.parameters = parameters;
        if self.end.is_none_or(|end| release >= end) {
            self.overdrawn = Span::ZERO;
            return Admission::Ready(self.start(release));
        }
        // After a change of attributes, what is left of the old budget may exceed the new one.
        self.left = self.left.min(parameters.cost);
        self.resume(now)
    }

    /// The same for a job that was pending when the one before it was finished, which is now.
    pub fn succeed(
        &mut self,
        release: Instant,
        now: Instant,
        parameters: ServerParameters,
    ) -> Admission {
        if self.rule == ServerRule::Releases {
            return self.begin(release, now, parameters);
        }
        self.left = Span::ZERO;
        self.when_spent(now)
    }

    /// These hold from the next replenishment on, and where a wake-up is judged at once. What is left of a
    /// budget, and when its period ends, stay.
    pub fn set_parameters(&mut self, parameters: ServerParameters) {
        self.parameters = parameters;
    }

    /// The job that began wants to go on after a suspension: budget and deadline are kept, as far as the
    /// rule allows.
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
            // Whoever slept beyond a deadline that comes before the end of the period waits for that.
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

    /// A period begins now, whatever was before; returns its deadline.
    pub fn renew(&mut self, now: Instant) -> Instant {
        self.overdrawn = Span::ZERO;
        self.start(now)
    }

    /// How long the job may still run before its budget is used up.
    pub const fn left(&self) -> Span {
        self.left
    }

    /// When its period ends; `None` before the first job.
    pub const fn end(&self) -> Option<Instant> {
        self.end
    }

    /// The zero-lag time: when a server that ran all the time with its bandwidth would have used as much of
    /// its budget as this one has, rounded up. Whoever leaves before that had more than its share so far.
    /// `None` before the first job.
    ///
    /// # Source
    /// `task_non_contending` of Linux: the deadline minus what is left x T / C.
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

    /// The job has run for `ran`; beyond what was left if it could not be stopped in time.
    pub fn consume(&mut self, ran: Span) {
        self.overdrawn += ran.saturating_sub(self.left);
        self.left = self.left.saturating_sub(ran);
    }

    /// How much more than its budget was used.
    pub const fn overdrawn(&self) -> Span {
        self.overdrawn
    }

    /// So much of what was used beyond the budget need not be paid back.
    pub fn forgive(&mut self, grace: Span) {
        self.overdrawn = self.overdrawn.saturating_sub(grace);
    }

    /// Makes room for work that no budget pays for, such as refilling caches.
    pub fn extend(&mut self, more: Span) {
        self.left += more;
    }

    /// The budget is used up and the job is not finished. Before the end of the period the job
    /// waits; a job that is so late that the period is over gets the next budget at once.
    pub fn spent(&mut self, now: Instant) -> Spent {
        let end = self.end.expect("a budget is used by a job that began");
        if now < end {
            return Spent::Throttled(end);
        }
        Spent::Replenished(self.replenish(now))
    }

    /// Starts the period after the present one with a full budget, and returns its deadline. If the
    /// last one was overdrawn it is less, and by the deadline of the first period that has any. A
    /// server that lags behind its own deadlines by more may be told to start from `now`.
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

    /// A period with a full budget begins; returns its deadline.
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
    fn a_well_behaved_task_is_scheduled_by_its_own_deadlines() {
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
        // The first job is finished at 5 with its second budget; the job of instant 4 has none.
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
    fn what_an_overrun_left_of_the_budget_is_kept_with_its_deadline() {
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
    fn what_is_left_never_exceeds_a_lowered_cost() {
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
    fn an_overdrawn_budget_is_paid_back_by_the_next() {
        let parameters = parameters(3, 10, 10);
        let mut server = Server::new(parameters, ServerRule::Releases);
        server.begin(AT(0), AT(0), parameters);
        server.consume(NS(4));
        server.consume(NS(3));
        assert_eq!((server.left(), server.overdrawn()), (NS(0), NS(4)));
        assert_eq!(server.spent(AT(7)), Spent::Throttled(AT(10)));
        // One period pays 3 of 4, the one after it the last.
        assert_eq!(server.replenish(AT(0)), AT(30));
        assert_eq!((server.left(), server.overdrawn()), (NS(2), NS(0)));
    }

    #[test]
    fn a_job_with_a_period_of_its_own_owes_nothing() {
        let parameters = parameters(3, 10, 10);
        let mut server = Server::new(parameters, ServerRule::Releases);
        server.begin(AT(0), AT(0), parameters);
        server.consume(NS(5));
        server.begin(AT(10), AT(10), parameters);
        assert_eq!((server.left(), server.overdrawn()), (NS(3), NS(0)));
    }

    #[test]
    fn a_period_that_goes_on_ends_when_it_would_have_ended() {
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
    fn the_zero_lag_time_is_where_the_bandwidth_makes_up_for_what_was_used() {
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
        // One more than its budget: 10 / 3 later, rounded up.
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
