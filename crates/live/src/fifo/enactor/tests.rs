mod bench;

use bench::*;

use super::*;
use crate::event::Kind;
use crate::fifo::thread_handshake::ThreadState;

#[test]
fn a_job_is_let_out_and_tells_of_itself() {
    let mut bench = Bench::new();
    bench.admit(0, 1).unwrap();
    assert_eq!(bench.calls(), ["bind a 1", "level a 30", "level a 50"]);
    assert_eq!(bench.reports(), ["0 Entered a 1 3"]);
    bench.pass(10, &[]);
    bench.assign(&[(1, Some(0))]);
    // It is where it has to be, and has only to be woken, as for every job that follows.
    assert!(bench.calls().is_empty());
    assert_eq!(bench.reports(), ["10 Told a 1 0"]);
    bench.pass(2, &[]);
    bench.goes_on(0, 1);
    bench.pass(5, &[0]);
    bench.stops(0, 1, Kind::NextJob, 100);
    assert_eq!(
        bench.reports(),
        ["12 Running a 1 0", "17 Stopped a 1 5", "17 NextJob a 1 100"]
    );
    bench.assign(&[(1, Some(0))]);
    assert!(bench.calls().is_empty());
    assert_eq!(bench.state(0), ThreadState::ManagedInJob);
}

#[test]
fn a_job_that_is_shifted_runs_on_elsewhere() {
    let mut bench = Bench::with(&[0, 0]);
    bench.assign(&[(0, Some(0))]);
    bench.goes_on(0, 0);
    bench.forget();
    bench.pass(7, &[0]);
    bench.assign(&[(0, Some(1)), (1, Some(0))]);
    assert_eq!(bench.calls(), ["bind a 1"]);
    assert_eq!(
        bench.reports(),
        [
            "7 Told b 0 0",
            "7 Stopped a 0 7",
            "7 Running a 1 0",
            "7 Told a 1 0"
        ]
    );
    bench.pass(3, &[0, 1]);
    bench.stops(0, 1, Kind::LastJob, u64::MAX);
    let last = format!("10 LastJob a 1 {}", u64::MAX);
    assert_eq!(bench.reports(), ["10 Stopped a 1 3", &last]);
}

#[test]
fn a_preempted_job_is_held_until_it_is_resumed() {
    let mut bench = Bench::with(&[0, 1]);
    bench.assign(&[(0, Some(0))]);
    bench.goes_on(0, 0);
    bench.forget();
    bench.pass(4, &[0]);
    bench.assign(&[(0, Some(1))]);
    assert_eq!(bench.calls(), ["level a 30", "bind b 0", "block 0 true"]);
    assert_eq!(bench.reports(), ["4 Stopped a 0 4", "4 Told b 0 0"]);
    bench.goes_on(1, 0);
    bench.stops(1, 0, Kind::NextJob, 50);
    bench.reports();
    // Resumed elsewhere, so that nobody has to be kept from its first CPU.
    bench.assign(&[(1, Some(0))]);
    assert_eq!(bench.calls(), ["bind a 1", "level a 50", "block 0 false"]);
    assert_eq!(bench.reports(), ["4 Running a 1 0", "4 Told a 1 0"]);
}

#[test]
fn a_throttled_job_does_not_run_on_an_idle_cpu() {
    let mut bench = Bench::with(&[1]);
    bench.assign(&[(1, Some(0))]);
    bench.goes_on(0, 1);
    bench.calls();
    bench.assign(&[(1, None)]);
    assert_eq!(bench.calls(), ["level a 30", "block 1 true"]);
    // It was just finishing when it was held: nobody is left who has to be kept from the CPU.
    bench.stops(0, 1, Kind::NextJob, 50);
    bench.reports();
    assert_eq!(bench.calls(), ["block 1 false"]);
}

#[test]
fn a_slot_whose_task_has_stopped_since_stays_empty() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.goes_on(0, 0);
    bench.stops(0, 0, Kind::NextJob, 50);
    bench.stops[0] -= 1;
    bench.forget();
    bench.assign(&[(0, Some(0))]);
    assert!(bench.calls().is_empty());
    assert_eq!(bench.reports(), ["0 Told - 0 0"]);
    assert_eq!(bench.state(0), ThreadState::ManagedWaiting);
}

#[test]
fn who_sleeps_within_a_job_is_woken_by_the_agents_side() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.goes_on(0, 0);
    bench.stops(0, 0, Kind::Blocked, 40);
    bench.reports();
    let level = bench.fifo.snapshot(TaskId::from_index(0)).unwrap();
    assert_eq!((level.awake, level.stops, level.finished), (false, 1, 0));
    // The agent does not sleep for longer, whatever it says.
    bench.fifo.wait_until(u64::MAX);
    bench.pass(39, &[]);
    assert!(bench.reports().is_empty());
    bench.pass(2, &[]);
    assert_eq!(bench.reports(), ["41 Woken a 0 0"]);
    assert!(bench.reports().is_empty());
    bench.assign(&[(1, Some(0))]);
    assert_eq!(bench.state(0), ThreadState::ManagedInJob);
}

#[test]
fn a_run_counts_when_it_is_reported_and_not_before() {
    let mut bench = Bench::with(&[0]);
    let ran_ns = |bench: &mut Bench| bench.fifo.snapshot(TaskId::from_index(0)).unwrap().ran_ns;
    bench.assign(&[(0, Some(0))]);
    bench.goes_on(0, 0);
    bench.pass(4, &[0]);
    assert_eq!(ran_ns(&mut bench), 0);
    bench.assign(&[(0, None)]);
    assert_eq!(ran_ns(&mut bench), 4);
    bench.assign(&[(0, Some(0))]);
    bench.pass(3, &[0]);
    assert_eq!(ran_ns(&mut bench), 4);
    bench.stops(0, 0, Kind::NextJob, 50);
    assert_eq!(ran_ns(&mut bench), 7);
}

#[test]
fn what_is_heard_of_after_the_agent_looked_is_news() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.goes_on(0, 0);
    bench.pass(5, &[0]);
    bench.forget();
    let looked = bench.fifo.snapshot(TaskId::from_index(0)).unwrap();
    bench.stops(0, 0, Kind::NextJob, 50);
    assert_eq!((looked.at_ns, looked.stops), (5, 0));
    assert_eq!(bench.reports(), ["6 Stopped a 0 5", "6 NextJob a 0 50"]);
}

/// Slots, and what is reported then.
type Case<'a> = (&'a [(usize, Option<usize>)], &'a [&'a str]);

#[test]
fn a_run_that_is_heard_of_late_is_told_as_it_was() {
    // Held, moved, or neither, between going on and being heard of.
    let cases: [Case<'_>; 2] = [
        (
            &[(0, None)],
            &["5 Running a 0 0", "8 Stopped a 0 3", "8 Told - 0 0"],
        ),
        (
            &[(0, None), (1, Some(0))],
            &[
                "5 Running a 0 0",
                "8 Told - 0 0",
                "8 Told a 1 0",
                "8 Stopped a 0 3",
                "8 Running a 1 0",
            ],
        ),
    ];
    for (slots, expected) in cases {
        let mut bench = Bench::with(&[0]);
        bench.assign(&[(0, Some(0))]);
        bench.reports();
        bench.pass(5, &[]);
        bench.pass(3, &[0]);
        bench.assign(slots);
        bench.fifo.controller.on_thread_event(0, went_on(5));
        let mut reports = bench.reports();
        // What happened at one instant may be told in any order.
        let mut expected: Vec<_> = expected.iter().map(|&text| text.to_owned()).collect();
        reports.sort();
        expected.sort();
        assert_eq!(reports, expected, "{slots:?}");
    }
}

#[test]
fn who_is_held_before_it_can_say_that_it_runs_has_two_runs() {
    let mut bench = Bench::with(&[0, 0]);
    bench.assign(&[(0, Some(0))]);
    bench.pass(5, &[]);
    bench.pass(3, &[0]);
    bench.assign(&[(0, Some(1))]);
    bench.goes_on(1, 0);
    bench.pass(20, &[1]);
    bench.stops(1, 0, Kind::NextJob, 100);
    bench.assign(&[(0, Some(0))]);
    bench.pass(1, &[0]);
    bench.fifo.controller.on_thread_event(0, went_on(5));
    let reports = bench.reports();
    let of_it: Vec<_> = reports
        .iter()
        .filter(|text| text.contains("ing a ") || text.contains("Stopped a "))
        .collect();
    assert_eq!(
        of_it,
        ["5 Running a 0 0", "8 Stopped a 0 3", "28 Running a 0 0"]
    );
    bench.pass(4, &[0]);
    bench.stops(0, 0, Kind::NextJob, 100);
    let reports = bench.reports();
    assert_eq!(reports[0], "33 Stopped a 0 5");
}

#[test]
fn a_held_job_that_runs_for_a_moment_is_not_told_of() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.assign(&[(0, None)]);
    bench.forget();
    bench.pass(2, &[]);
    bench.goes_on(0, 0);
    assert!(bench.reports().is_empty());
    bench.assign(&[(0, Some(0))]);
    assert_eq!(bench.calls(), ["level a 50", "block 0 false"]);
    assert_eq!(bench.reports(), ["2 Running a 0 0", "2 Told a 0 0"]);
}

#[test]
fn who_is_dismissed_is_ordinary_and_may_come_back_in_the_middle() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.goes_on(0, 0);
    bench.forget();
    bench.pass(6, &[0]);
    bench.dismiss(0);
    bench.dismiss(0);
    assert_eq!(bench.calls(), ["level a 0", "bind a 0,1"]);
    assert_eq!(bench.reports(), ["6 Stopped a 0 6", "6 Left a - 0"]);
    assert_eq!(bench.state(0), ThreadState::UnmanagedInJob);
    assert_eq!(bench.admit(0, 1).unwrap(), Some(true));
    assert_eq!(bench.calls(), ["bind a 1", "level a 30", "block 1 true"]);
    // Something of its first stay that was on the way.
    bench.epochs[0] = 1;
    bench.send(0, Kind::NextJob, 0, 70);
    bench.epochs[0] = 2;
    assert_eq!(bench.reports(), ["6 Entered a 1 3"]);
    bench.assign(&[(1, Some(0))]);
    assert_eq!(bench.reports(), ["6 Running a 1 0", "6 Told a 1 0"]);
}

#[test]
fn who_comes_back_asleep_is_woken() {
    let mut bench = Bench::with(&[0]);
    bench.dismiss(0);
    bench.fifo.shared.handshakes[0].set_first_release(30);
    bench.pass(20, &[]);
    assert_eq!(bench.admit(0, 0).unwrap(), Some(false));
    bench.reports();
    bench.pass(10, &[]);
    assert_eq!(bench.reports(), ["30 Woken a 0 0"]);
}

#[test]
fn a_thread_that_is_gone_is_nobodys_fault() {
    let mut bench = Bench::with(&[0, 0]);
    bench.fifo.controller.ops.says = Some((0, libc::ESRCH));
    bench.assign(&[(1, Some(0))]);
    assert_eq!(bench.reports(), ["0 Told a 1 0"]);
    assert_eq!(bench.state(0), ThreadState::ManagedWaiting);
    bench.dismiss(0);
    assert_eq!(bench.admit(0, 0).unwrap(), None);
    bench.assign(&[(1, Some(1))]);
    assert_eq!(bench.state(1), ThreadState::ManagedInJob);
}

#[test]
fn what_cannot_be_done_is_said_with_its_remedy() {
    let mut bench = Bench::new();
    let mut of = Bench::parameters(0, 0);
    of.follows = false;
    let refusal = |bench: &mut Bench, of: &Parameters| {
        let refused = bench.fifo.admit(TaskId::from_index(0), of);
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&mut bench, &of),
        "task a runs a program, of which nobody knows without sched_ext when it wants to run; \
         `--machine kernel` and `--machine agent` run programs"
    );
    of.follows = true;
    bench.fifo.controller.ops.says = Some((0, libc::EPERM));
    assert_eq!(
        refusal(&mut bench, &of),
        format!(
            "SCHED_FIFO is not allowed for this user; {}",
            crate::host::System::this()
                .for_caller(crate::host::privileges::RTPRIO_REMEDY.to_owned())
        )
    );
    bench.fifo.controller.ops.says = Some((0, libc::EINVAL));
    assert!(refusal(&mut bench, &of).starts_with("could not put task a where it is to run: "));
    of.cpus = CpuSet::EMPTY;
    assert_eq!(
        refusal(&mut bench, &of),
        "task a may not use any CPU of the platform"
    );
    // Once the watch has taken the machine, the agent is told why.
    bench.fifo.shared.fail(String::from("it was silent"));
    for refused in [bench.fifo.heartbeat(), bench.fifo.assign(&[])] {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "it was silent; keep other real-time threads off the agent's CPU"
        );
    }
}

#[test]
fn reports_are_sorted_by_time_and_otherwise_stay_in_order() {
    let event = |at, value| Event {
        at,
        value,
        task: 0,
        cpu: None,
        kind: Kind::Told,
    };
    let mut reports = [(3, 0), (1, 1), (3, 2), (1, 3), (2, 4)].map(|(at, value)| event(at, value));
    sort(&mut reports);
    let order = reports.map(|event| event.value);
    assert_eq!(order, [1, 3, 4, 0, 2]);
}

/// Numbers that are all different and always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Whom a kernel runs on this CPU: of the threads there that are in a job, and of its blocker, the one
/// on the highest level. `None` if that is the blocker, or nobody.
fn runs(bench: &Bench, blocked: &[bool; 2], cpu: usize) -> Option<usize> {
    let ops = &bench.fifo.controller.ops;
    let there = (0..4).filter(|&task| {
        ops.level[task] != 0
            && ops.cpu[task] == Some(cpus(&[cpu]))
            && bench.state(task) == ThreadState::ManagedInJob
    });
    let top = there.max_by_key(|&task| ops.level[task])?;
    (!blocked[cpu] || ops.level[top] > 40).then_some(top)
}

#[test]
fn after_every_step_exactly_those_run_that_were_told_to() {
    for seed in 1..=300 {
        let mut random = Random(seed);
        let mut bench = Bench::with(&[0, 1, 0, 1]);
        let (mut slots, mut blocked) = ([None; 2], [false; 2]);
        for step in 0..200 {
            let task = random.below(4);
            match random.below(4) {
                // Everybody that is in a job may be held or moved, everybody else may begin one.
                0 | 1 => {
                    let mut order = [0, 1, 2, 3].map(Some);
                    order.swap(0, random.below(4));
                    order.swap(1, 1 + random.below(3));
                    slots = [order[0], order[1]].map(|task| task.filter(|_| random.below(4) > 0));
                    let first = random.below(2);
                    bench.assign(&[first, 1 - first].map(|cpu| (cpu, slots[cpu])));
                }
                2 => {
                    if let Some(cpu) = slots.iter().position(|&slot| slot == Some(task)) {
                        bench.goes_on(task, cpu);
                        bench.stops(task, cpu, Kind::NextJob, 0);
                        slots[cpu] = None;
                    }
                }
                _ => {
                    bench.dismiss(task);
                    slots = slots.map(|slot| slot.filter(|&other| other != task));
                    bench.admit(task, random.below(2)).unwrap();
                }
            }
            bench.pass(1, &[]);
            bench.fifo.receive();
            bench.fifo.controller.reports.clear();
            for call in bench.calls() {
                if let Some(what) = call.strip_prefix("block ") {
                    blocked[usize::from(what.starts_with('1'))] = what.ends_with("true");
                }
            }
            let running = [0, 1].map(|cpu| runs(&bench, &blocked, cpu));
            assert_eq!(running, slots, "seed {seed}, step {step}");
        }
    }
}
