//! One CPU with budget servers and their admission control, simulated one unit of time after the other.

use std::collections::BTreeMap;

use shiftwork_analysis::admission::{Admitted, Claim, Terms};
use shiftwork_model::{CpuId, CpuSet, Instant, Order, Priority, Share, Span, TaskId};
use shiftwork_policy::registry;

/// A budget server as SCHED_DEADLINE has them (Tang et al. 2021, Fig. 1): parameters that change take effect
/// with the next replenishment, what is left and the deadline stay. One that never sleeps always wants
/// more than it gets.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) claim: Claim,
    /// C and T of the budget that it has.
    pub(super) granted: [u64; 2],
    pub(super) left: u64,
    pub(super) deadline: u64,
    /// When its period ends.
    pub(super) end: u64,
    pub(super) awake: bool,
}

impl Server {
    fn new(claim: Claim, now: u64) -> Self {
        let mut server = Self {
            claim,
            granted: [0; 2],
            left: 0,
            deadline: 0,
            end: 0,
            awake: true,
        };
        server.replenish(now);
        server
    }

    pub(super) fn replenish(&mut self, at: u64) {
        let [cost, period, deadline] = parameters(&self.claim);
        self.granted = [cost, period];
        self.left = cost;
        self.deadline = at + deadline;
        self.end = at + period;
    }

    /// When it may leave without a trace: the zero-lag time, or where the demand is not a rate, the
    /// end of its period.
    fn may_leave(&self) -> u64 {
        let [cost, period] = self.granted;
        match self.deadline == self.end {
            true => self.end - self.left * period / cost,
            false => self.end,
        }
    }

    fn wake(&mut self, now: u64) {
        self.awake = true;
        let [cost, period, _] = parameters(&self.claim);
        if now >= self.end || self.left * period > cost * (self.end - now) {
            self.replenish(now);
        }
    }
}

fn parameters(claim: &Claim) -> [u64; 3] {
    [claim.cost, claim.period, claim.deadline].map(Span::as_ns)
}

fn claim(task: usize, [cost, period, deadline]: [u64; 3], priority: u32) -> Claim {
    Claim {
        task: TaskId::from_index(task),
        name: format!("T{task}"),
        cost: Span::from_ns(cost),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
        priority: Priority::new(priority).unwrap(),
        cpus: CpuSet::single(CpuId::from_index(0)),
    }
}

/// What a task may do in a moment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Enter([u64; 3], u32),
    Set([u64; 3]),
    Leave,
    Sleep,
    Wake,
}

/// One CPU, its servers, and their admission control.
#[derive(Clone)]
pub(super) struct OneCpu {
    pub(super) now: u64,
    pub(super) is_fp: bool,
    /// Whether claims linger; a machine that forgets them at once is what the test has to catch.
    pub(super) lingers: bool,
    pub(super) admitted: Admitted,
    pub(super) servers: BTreeMap<usize, Server>,
    pub(super) granted: usize,
}

impl OneCpu {
    pub(super) fn new(policy: &str, lingers: bool) -> Self {
        let terms = Terms::new(
            &registry::find(policy).unwrap().traits,
            Share::from_billionths(0).unwrap(),
        )
        .unwrap();
        Self {
            now: 0,
            is_fp: terms.policy.order == Order::FixedPriority,
            lingers,
            admitted: Admitted::new(CpuSet::first(1), terms),
            servers: BTreeMap::new(),
            granted: 0,
        }
    }

    fn until(&self, end: u64) -> Instant {
        Instant::from_ns(if self.lingers { end } else { self.now })
    }

    pub(super) fn request(&mut self, task: usize, request: Request) {
        let id = TaskId::from_index(task);
        let until = match (self.servers.get(&task), request) {
            (Some(server), Request::Leave) => self.until(server.may_leave()),
            (Some(server), _) => self.until(server.end),
            (None, _) => self.until(self.now),
        };
        let server = self.servers.get_mut(&task);
        match (server, request) {
            (None, Request::Enter(parameters, priority)) => {
                let claim = claim(task, parameters, priority);
                if self.admitted.enter(claim.clone()).is_ok() {
                    self.granted += 1;
                    self.servers.insert(task, Server::new(claim, self.now));
                }
            }
            (Some(server), Request::Set(parameters)) => {
                let spans = parameters.map(Span::from_ns);
                if self.admitted.set_parameters(id, spans, until).is_ok() {
                    self.granted += 1;
                    [
                        server.claim.cost,
                        server.claim.period,
                        server.claim.deadline,
                    ] = spans;
                }
            }
            (Some(_), Request::Leave) => {
                self.admitted.leave(id, until);
                self.servers.remove(&task);
            }
            (Some(server), Request::Sleep) => server.awake = false,
            (Some(server), Request::Wake) if !server.awake => server.wake(self.now),
            _ => {}
        }
    }

    /// Those whose periods end have their budgets again.
    pub(super) fn replenish(&mut self) {
        let now = self.now;
        let due = self.servers.values_mut();
        due.filter(|server| server.awake && server.end == now && server.left == 0)
            .for_each(|server| server.replenish(now));
    }

    /// Simulates one unit of time; returns a task that is late at its end.
    pub(super) fn run(&mut self) -> Option<usize> {
        let is_fp = self.is_fp;
        let ready = self.servers.iter_mut();
        let ready = ready.filter(|(_, server)| server.awake && server.left > 0);
        let first = ready.min_by_key(|(task, server)| match is_fp {
            true => (u64::from(server.claim.priority.number()), **task),
            false => (server.deadline, **task),
        });
        if let Some((_, server)) = first {
            server.left -= 1;
        }
        self.now += 1;
        self.admitted.advance(Instant::from_ns(self.now));
        let late = |server: &Server| server.awake && server.left > 0 && server.deadline <= self.now;
        let mut servers = self.servers.iter();
        servers
            .find(|(_, server)| late(server))
            .map(|(&task, _)| task)
    }
}
