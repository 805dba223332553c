//! One simulation that proves something: full costs, and a checker that judges whether the schedule is one of the policy.

use shiftwork_model::{Instant, OnOverrun, Recorder, Span, Task, TaskSet, Work};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::Entry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::check::{Checker, PolicyContract, Violation};

use crate::promise::quantum_rule;

/// Simulations end here, long before sums of instants saturate.
pub(super) const LONGEST: Span = Span::from_ns(Span::MAX.as_ns() / 4);

/// The same tasks without timed changes; every job executes for its whole cost, without suspensions, and no budget
/// stops it. A job that locks mutexes or triggers others does what the file says: without that others might be late that
/// are not.
pub(super) fn with_full_costs(set: &TaskSet) -> TaskSet {
    let full = |task: &Task| Task {
        work: match task.locks() || task.triggers().next().is_some() {
            true => task.work.clone(),
            false => Work::Cost,
        },
        on_overrun: OnOverrun::Continue,
        ..task.clone()
    };
    TaskSet {
        tasks: set.tasks.iter().map(full).collect(),
        actions: Vec::new(),
        ..set.clone()
    }
}

/// What is simulated, and how its schedule is judged.
pub(super) struct CheckedRun<'a> {
    /// The set that the policy was built for. Under Pfair it matters to a policy how jobs are released, so it is not
    /// always built for the set that is simulated.
    pub(super) of: &'a TaskSet,
    /// The set that is simulated.
    pub(super) set: &'a TaskSet,
    /// The properties of the policy, by which the checker judges.
    pub(super) entry: &'a Entry,
    /// The policy, with no job ready.
    pub(super) policy: Box<dyn Policy>,
    /// Where the simulation ends at the latest.
    pub(super) horizon: Instant,
}

impl CheckedRun<'_> {
    /// Simulates until the horizon, or until the first instant at which `go_on` is false. Returns where the
    /// simulation ended, and what is wrong with the schedule by the definition of the policy. The checker knows
    /// that definition and nothing of how the policy is built.
    pub(super) fn run<R: Recorder>(
        self,
        recorder: &mut R,
        go_on: impl FnMut(Instant) -> bool,
    ) -> (Instant, Vec<Violation>) {
        let (set, entry) = (self.set, self.entry);
        let contract = PolicyContract::of(&entry.traits, self.policy.packing());
        let mut checker = Checker::new(set, contract);
        if let Some(rule) = quantum_rule(self.of, entry, self.policy.as_ref()) {
            checker = checker.with_quanta(rule);
        }
        let options = Options {
            seed: 1,
            horizon: self.horizon,
            overheads: None,
            reserve_server: false,
        };
        let simulation = Simulation::new(set, self.policy, &entry.traits, options);
        let mut recorders = (recorder, checker);
        let (_, end) = simulation.run_while(&mut recorders, go_on);
        (end, recorders.1.finish(end))
    }
}

/// The least common multiple of the periods, of tasks with arrival curves of the blocks in which these go on; `None` if it is not below `limit`, in ns.
pub(super) fn hyperperiod(set: &TaskSet, limit: u128) -> Option<u128> {
    set.tasks.iter().try_fold(1u128, |common, task| {
        let (_, period) = task.long_run();
        let period = u128::from(period.as_ns().max(1));
        let multiple = common / gcd(common, period) * period;
        (multiple < limit).then_some(multiple)
    })
}

/// The time in which the tasks release so many jobs, in ns, rounded down.
pub(super) fn time_of_jobs(set: &TaskSet, jobs: u128) -> u128 {
    // Jobs in 2^64 ns.
    let rate = set
        .tasks
        .iter()
        .map(|task| (1u128 << 64) / u128::from(task.mean_period().as_ns().max(1)));
    (jobs << 64) / rate.sum::<u128>().max(1)
}

const fn gcd(a: u128, b: u128) -> u128 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}
