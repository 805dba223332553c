//! Programs (their jobs are not known), and tasks that lose their reservation and get it back.

use rustix::thread::Pid;
use shiftwork_model::{Affinity, CpuId, CpuSet, OnOverrun, Priority, Span, Task, TaskId, TaskSet};
use shiftwork_policy::registry::traits::STRONG;
use shiftwork_policy::registry::{self};

use super::super::{Decider, Slot};
use crate::Plan;
use crate::agent::TaskSnapshot;
use crate::event::{Event, Kind};
use crate::machine::{Excess, Parameters};

/// A decider for one task on one CPU, which is the machine's third; times are us of the monotonic clock.
struct Bench {
    decider: Decider,
    of: Parameters,
}

fn task() -> TaskId {
    TaskId::from_index(0)
}

/// 1 ms in 10 ms. With the grace that is 1020 us.
fn bench(follows: bool, on_overrun: OnOverrun) -> Bench {
    let cpu = CpuId::from_index(2);
    let all = Affinity::new(CpuSet::first(1)).unwrap();
    let (cost, period) = (Span::from_ms(1), Span::from_ms(10));
    let set = TaskSet::new("s", 1, vec![Task::periodic("t", cost, period, all)]);
    let policy = registry::find("strong-edf").unwrap().build(&set).unwrap();
    let of = Parameters {
        thread: Pid::from_raw(1).unwrap(),
        cpus: CpuSet::single(cpu),
        cost,
        period,
        deadline: period,
        on_overrun,
        excess: Excess::in_run(on_overrun, !follows),
        priority: Priority::MOST_URGENT,
        follows,
        start: None,
    };
    let plan = Plan {
        set: &set,
        traits: STRONG,
        bound: vec![all],
        cpus: vec![cpu],
    };
    Bench {
        decider: Decider::new(&plan, policy, 0, Span::from_s(1)),
        of,
    }
}

impl Bench {
    fn admit(&mut self, at: u64, is_awake: bool) {
        let of = &self.of;
        let admitted = self.decider.admit(at * 1000, task(), of, is_awake);
        admitted.unwrap();
    }

    /// The decider takes this report, and its clock advances to it.
    fn report(&mut self, at: u64, kind: Kind, value: u64) {
        self.decider.report(Event {
            at: at * 1000,
            value: value * 1000,
            task: 1,
            cpu: Some(2),
            kind,
        });
        self.decider.advance(at * 1000);
    }

    /// It gets the CPU, and runs there from then on.
    fn runs(&mut self, at: u64) {
        assert_eq!(self.decided(), [true], "at {at}");
        self.report(at, Kind::Running, 0);
    }

    /// It runs for this time and goes to sleep.
    fn sleeps(&mut self, at: u64, ran: u64) {
        self.report(at, Kind::Stopped, ran);
        self.report(at, Kind::Blocked, 0);
        self.decided();
    }

    /// The decisions about the CPU since the last call: whether the task runs there.
    fn decided(&mut self) -> Vec<bool> {
        let mut slots: Vec<Slot> = Vec::new();
        self.decider.take_slots(&mut slots);
        slots.iter().map(|slot| slot.task.is_some()).collect()
    }

    /// No decision before that instant; then it loses the CPU.
    fn is_throttled_at(&mut self, at: u64) {
        self.decider.advance(at * 1000 - 1);
        assert_eq!(self.decided(), [false; 0], "before {at}");
        self.decider.advance(at * 1000);
        assert_eq!(self.decided(), [false], "at {at}");
    }

    /// No decision before that instant; then it gets the CPU, with this deadline.
    fn goes_on_at(&mut self, at: u64, deadline: u64) {
        self.decider.advance(at * 1000 - 1);
        assert_eq!(self.decided(), [false; 0], "before {at}");
        self.decider.advance(at * 1000);
        self.is_due(deadline);
        self.runs(at);
    }

    fn is_due(&self, deadline: u64) {
        let ready = |event: &&Event| event.kind == Kind::Ready;
        let last = self.decider.events.iter().rfind(ready);
        assert_eq!(last.map(|event| event.value / 1000), Some(deadline));
    }

    fn count(&self, kind: Kind) -> usize {
        let events = self.decider.events.iter();
        events.filter(|event| event.kind == kind).count()
    }
}

#[test]
fn program_gets_its_budget_once_a_period() {
    let mut bench = bench(false, OnOverrun::Throttle);
    bench.admit(1_000, false);
    bench.report(2_000, Kind::Woken, 0);
    bench.runs(2_000);
    bench.is_throttled_at(3_020);
    bench.report(3_020, Kind::Stopped, 1_020);
    bench.goes_on_at(12_000, 22_000);
    bench.is_throttled_at(13_020);
}

#[test]
fn program_admitted_awake_begins_at_once() {
    let mut bench = bench(false, OnOverrun::Throttle);
    bench.admit(1_000, true);
    bench.runs(1_000);
    bench.is_due(11_000);
    bench.is_throttled_at(2_020);
}

#[test]
fn program_that_sleeps_within_its_period_gains_no_budget() {
    let mut bench = bench(false, OnOverrun::Throttle);
    bench.admit(1_000, false);
    bench.report(2_000, Kind::Woken, 0);
    bench.runs(2_000);
    bench.sleeps(2_500, 500);
    bench.report(3_000, Kind::Woken, 0);
    bench.is_due(12_000);
    bench.runs(3_000);
    bench.is_throttled_at(3_520);
}

#[test]
fn program_that_yields_waits_for_its_next_period() {
    let mut bench = bench(false, OnOverrun::Throttle);
    bench.admit(1_000, false);
    bench.report(2_000, Kind::Woken, 0);
    bench.runs(2_000);
    bench.report(2_500, Kind::Ran, 500);
    bench.report(2_500, Kind::Yielded, 0);
    assert_eq!(bench.decided(), [false; 0], "its slot is empty already");
    bench.report(2_500, Kind::Stopped, 0);
    bench.goes_on_at(12_000, 22_000);
    bench.is_throttled_at(13_020);
}

#[test]
fn program_that_sleeps_long_starts_new_period_at_wakeup() {
    for yields in [false, true] {
        let mut bench = bench(false, OnOverrun::Throttle);
        bench.admit(1_000, false);
        bench.report(2_000, Kind::Woken, 0);
        bench.runs(2_000);
        if yields {
            bench.report(2_500, Kind::Yielded, 0);
            bench.sleeps(2_500, 500);
        } else {
            bench.is_throttled_at(3_020);
            bench.sleeps(3_020, 1_020);
        }
        bench.decider.advance(40_000_000);
        bench.report(50_000, Kind::Woken, 0);
        bench.is_due(60_000);
        bench.runs(50_000);
        bench.is_throttled_at(51_020);
    }
}

#[test]
fn demoted_task_gains_no_budget_by_readmission() {
    let mut bench = bench(true, OnOverrun::Throttle);
    bench.admit(1_000, true);
    bench.decider.first_job(1_000_000, task(), 2_000_000);
    bench.goes_on_at(2_000, 12_000);
    bench.report(2_600, Kind::Demoted, 0);
    bench.report(2_600, Kind::Stopped, 600);
    bench.decided();
    bench.admit(3_000, true);
    bench.decider.first_job(3_000_000, task(), 3_000_000);
    bench.is_due(12_000);
    bench.runs(3_000);
    // Its execution time was reported while it was not admitted.
    bench.is_throttled_at(3_420);
    bench.report(3_420, Kind::Stopped, 420);
    bench.goes_on_at(12_000, 22_000);
}

#[test]
fn dismissed_task_starts_with_full_budget() {
    let mut bench = bench(true, OnOverrun::Throttle);
    bench.admit(1_000, true);
    bench.decider.first_job(1_000_000, task(), 2_000_000);
    bench.goes_on_at(2_000, 12_000);
    bench.is_throttled_at(3_020);
    bench.report(3_020, Kind::Stopped, 1_020);
    bench.decider.dismiss(4_000_000, task());
    bench.admit(5_000, true);
    bench.decider.first_job(5_000_000, task(), 5_000_000);
    bench.is_due(15_000);
    bench.runs(5_000);
    bench.is_throttled_at(6_020);
}

#[test]
fn overrun_is_reported_once_per_job() {
    let mut bench = bench(true, OnOverrun::Signal);
    bench.admit(1_000, true);
    bench.decider.first_job(1_000_000, task(), 2_000_000);
    bench.goes_on_at(2_000, 12_000);
    bench.decider.advance(3_019_999);
    assert_eq!(bench.count(Kind::Overrun), 0);
    for at in [3_020, 3_500, 5_000] {
        bench.decider.advance(at * 1000);
        assert_eq!((bench.decided().len(), bench.count(Kind::Overrun)), (0, 1));
    }
    bench.report(6_000, Kind::Ran, 4_000);
    bench.report(6_000, Kind::NextJob, 12_000);
    bench.goes_on_at(12_000, 22_000);
    bench.decider.advance(13_020_000);
    assert_eq!(bench.count(Kind::Overrun), 2);
}

/// It gave up its CPU without a decision, so only a new decision gives the CPU back.
#[test]
fn slot_decided_before_a_reported_stop_is_decided_again() {
    let mut bench = bench(true, OnOverrun::Continue);
    bench.admit(1_000, true);
    bench.decider.first_job(1_000_000, task(), 2_000_000);
    bench.goes_on_at(2_000, 12_000);
    bench.report(3_000, Kind::NextJob, 2_500);
    let mut slots = Vec::new();
    bench.decider.take_slots(&mut slots);
    let again = Slot {
        cpu: CpuId::from_index(2),
        task: Some(task()),
        stops: 1,
    };
    assert_eq!(slots, [again]);
}

#[test]
fn execution_of_lost_reports_is_charged_once() {
    let snapshot = |ran_us: u64| TaskSnapshot {
        at_ns: 2_500_000,
        awake: true,
        present: true,
        cpu: Some(CpuId::from_index(2)),
        ran_ns: ran_us * 1000,
        ..TaskSnapshot::default()
    };
    // It has run since 2 ms; or, unreported, it stopped and runs again since 2.5 ms.
    for (reported_us, throttled_at) in [(0, 3_020), (400, 3_120)] {
        let mut bench = bench(true, OnOverrun::Throttle);
        bench.admit(1_000, true);
        bench.decider.first_job(1_000_000, task(), 2_000_000);
        bench.goes_on_at(2_000, 12_000);
        bench.decider.resync_task(task(), &snapshot(reported_us));
        bench.is_throttled_at(throttled_at);
        bench.report(throttled_at, Kind::Stopped, 1_020 - reported_us);
        bench.goes_on_at(12_000, 22_000);
    }
}
