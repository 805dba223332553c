mod bench;

use bench::*;

use super::*;
use crate::event::Kind;
use crate::fifo::thread_handshake::ThreadState;

#[test]
fn started_job_reports_start_and_end() {
    let mut bench = Bench::new();
    bench.admit(0, 1).unwrap();
    assert_eq!(bench.calls(), ["bind a 1", "level a 30", "level a 50"]);
    assert_eq!(bench.reports(), ["0 Entered a 1 3"]);
    bench.pass(10, &[]);
    bench.assign(&[(1, Some(0))]);
    // The thread is bound and raised already: it only has to be woken, as for every job that follows.
    assert!(bench.calls().is_empty());
    assert_eq!(bench.reports(), ["10 SlotFilled a 1 0"]);
    bench.pass(2, &[]);
    bench.report_running(0, 1);
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
fn shifted_job_runs_on_its_new_cpu() {
    let mut bench = Bench::with(&[0, 0]);
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
    bench.clear_log();
    bench.pass(7, &[0]);
    bench.assign(&[(0, Some(1)), (1, Some(0))]);
    assert_eq!(bench.calls(), ["bind a 1"]);
    assert_eq!(
        bench.reports(),
        [
            "7 SlotFilled b 0 0",
            "7 Stopped a 0 7",
            "7 Running a 1 0",
            "7 SlotFilled a 1 0"
        ]
    );
    bench.pass(3, &[0, 1]);
    bench.stops(0, 1, Kind::LastJob, u64::MAX);
    let last = format!("10 LastJob a 1 {}", u64::MAX);
    assert_eq!(bench.reports(), ["10 Stopped a 1 3", &last]);
}

#[test]
fn preempted_job_is_held_until_resumed() {
    let mut bench = Bench::with(&[0, 1]);
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
    bench.clear_log();
    bench.pass(4, &[0]);
    bench.assign(&[(0, Some(1))]);
    assert_eq!(bench.calls(), ["level a 30", "bind b 0", "block 0 true"]);
    assert_eq!(bench.reports(), ["4 Stopped a 0 4", "4 SlotFilled b 0 0"]);
    bench.report_running(1, 0);
    bench.stops(1, 0, Kind::NextJob, 50);
    bench.reports();
    // Resumed on another CPU, so its first CPU need not be blocked any more.
    bench.assign(&[(1, Some(0))]);
    assert_eq!(bench.calls(), ["bind a 1", "level a 50", "block 0 false"]);
    assert_eq!(bench.reports(), ["4 Running a 1 0", "4 SlotFilled a 1 0"]);
}

#[test]
fn throttled_job_does_not_run_on_idle_cpu() {
    let mut bench = Bench::with(&[1]);
    bench.assign(&[(1, Some(0))]);
    bench.report_running(0, 1);
    bench.calls();
    bench.assign(&[(1, None)]);
    assert_eq!(bench.calls(), ["level a 30", "block 1 true"]);
    // The job ended while it was held: no job has to be kept from the CPU any more.
    bench.stops(0, 1, Kind::NextJob, 50);
    bench.reports();
    assert_eq!(bench.calls(), ["block 1 false"]);
}

#[test]
fn slot_of_stopped_task_stays_empty() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
    bench.stops(0, 0, Kind::NextJob, 50);
    bench.stops[0] -= 1;
    bench.clear_log();
    bench.assign(&[(0, Some(0))]);
    assert!(bench.calls().is_empty());
    assert_eq!(bench.reports(), ["0 SlotFilled - 0 0"]);
    assert_eq!(bench.state(0), ThreadState::ManagedWaiting);
}

#[test]
fn slot_of_a_task_that_has_had_its_last_job_stays_empty() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
    bench.stops(0, 0, Kind::LastJob, u64::MAX);
    bench.clear_log();
    // Decided before the agent had the report.
    bench.assign(&[(0, None), (1, Some(0))]);
    assert_eq!(bench.state(0), ThreadState::ManagedWaiting);
    bench.assign(&[(1, None)]);
    assert!(bench.calls().is_empty());
    assert_eq!(
        bench.reports(),
        [
            "0 SlotFilled - 0 0",
            "0 SlotFilled - 1 0",
            "0 SlotFilled - 1 0"
        ]
    );
}

#[test]
fn suspended_task_is_reported_awake_at_its_wakeup_time() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
    bench.stops(0, 0, Kind::Blocked, 40);
    bench.reports();
    let level = bench.fifo.snapshot(TaskId::from_index(0)).unwrap();
    assert_eq!((level.awake, level.stops, level.finished), (false, 1, 0));
    // The agent sleeps no longer than that, whatever it asks for.
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
fn run_time_counts_once_it_is_reported() {
    let mut bench = Bench::with(&[0]);
    let ran_ns = |bench: &mut Bench| bench.fifo.snapshot(TaskId::from_index(0)).unwrap().ran_ns;
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
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
fn report_received_after_snapshot_is_later_than_snapshot() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
    bench.pass(5, &[0]);
    bench.clear_log();
    let looked = bench.fifo.snapshot(TaskId::from_index(0)).unwrap();
    bench.stops(0, 0, Kind::NextJob, 50);
    assert_eq!((looked.at_ns, looked.stops), (5, 0));
    assert_eq!(bench.reports(), ["6 Stopped a 0 5", "6 NextJob a 0 50"]);
}

/// Slots, and the reports that they lead to.
type Case<'a> = (&'a [(usize, Option<usize>)], &'a [&'a str]);

#[test]
fn run_reported_late_keeps_its_instants() {
    // Held, or held and moved, between its start and the report of that.
    let cases: [Case<'_>; 2] = [
        (
            &[(0, None)],
            &["5 Running a 0 0", "8 Stopped a 0 3", "8 SlotFilled - 0 0"],
        ),
        (
            &[(0, None), (1, Some(0))],
            &[
                "5 Running a 0 0",
                "8 SlotFilled - 0 0",
                "8 SlotFilled a 1 0",
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
        bench.fifo.controller.on_thread_event(0, running_event(5));
        let mut reports = bench.reports();
        // Reports of one instant may be in any order.
        let mut expected: Vec<_> = expected.iter().map(|&text| text.to_owned()).collect();
        reports.sort();
        expected.sort();
        assert_eq!(reports, expected, "{slots:?}");
    }
}

#[test]
fn thread_held_before_it_reports_running_has_two_runs() {
    let mut bench = Bench::with(&[0, 0]);
    bench.assign(&[(0, Some(0))]);
    bench.pass(5, &[]);
    bench.pass(3, &[0]);
    bench.assign(&[(0, Some(1))]);
    bench.report_running(1, 0);
    bench.pass(20, &[1]);
    bench.stops(1, 0, Kind::NextJob, 100);
    bench.assign(&[(0, Some(0))]);
    bench.pass(1, &[0]);
    bench.fifo.controller.on_thread_event(0, running_event(5));
    let reports = bench.reports();
    let runs_of_a: Vec<_> = reports
        .iter()
        .filter(|text| text.contains("ing a ") || text.contains("Stopped a "))
        .collect();
    assert_eq!(
        runs_of_a,
        ["5 Running a 0 0", "8 Stopped a 0 3", "28 Running a 0 0"]
    );
    bench.pass(4, &[0]);
    bench.stops(0, 0, Kind::NextJob, 100);
    let reports = bench.reports();
    assert_eq!(reports[0], "33 Stopped a 0 5");
}

#[test]
fn run_of_held_thread_is_not_reported() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.assign(&[(0, None)]);
    bench.clear_log();
    bench.pass(2, &[]);
    bench.report_running(0, 0);
    assert!(bench.reports().is_empty());
    bench.assign(&[(0, Some(0))]);
    assert_eq!(bench.calls(), ["level a 50", "block 0 false"]);
    assert_eq!(bench.reports(), ["2 Running a 0 0", "2 SlotFilled a 0 0"]);
}

#[test]
fn dismissed_thread_is_ordinary_and_can_be_readmitted_in_its_job() {
    let mut bench = Bench::with(&[0]);
    bench.assign(&[(0, Some(0))]);
    bench.report_running(0, 0);
    bench.clear_log();
    bench.pass(6, &[0]);
    bench.dismiss(0);
    bench.dismiss(0);
    assert_eq!(bench.calls(), ["level a 0", "bind a 0,1"]);
    assert_eq!(bench.reports(), ["6 Stopped a 0 6", "6 Left a - 0"]);
    assert_eq!(bench.state(0), ThreadState::UnmanagedInJob);
    assert_eq!(bench.admit(0, 1).unwrap(), Some(true));
    assert_eq!(bench.calls(), ["bind a 1", "level a 30", "block 1 true"]);
    // An event of its first admission that was still in the channel.
    bench.epochs[0] = 1;
    bench.send(0, Kind::NextJob, 0, 70);
    bench.epochs[0] = 2;
    assert_eq!(bench.reports(), ["6 Entered a 1 3"]);
    bench.assign(&[(1, Some(0))]);
    assert_eq!(bench.reports(), ["6 Running a 1 0", "6 SlotFilled a 1 0"]);
}

#[test]
fn task_readmitted_asleep_is_woken() {
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
fn ended_thread_is_no_error() {
    let mut bench = Bench::with(&[0, 0]);
    bench.fifo.controller.ops.failure = Some((0, libc::ESRCH));
    bench.assign(&[(1, Some(0))]);
    assert_eq!(bench.reports(), ["0 SlotFilled a 1 0"]);
    assert_eq!(bench.state(0), ThreadState::ManagedWaiting);
    bench.dismiss(0);
    assert_eq!(bench.admit(0, 0).unwrap(), None);
    bench.assign(&[(1, Some(1))]);
    assert_eq!(bench.state(1), ThreadState::ManagedInJob);
}

#[test]
fn refusals_name_their_remedy() {
    let mut bench = Bench::new();
    let mut of = Bench::parameters(0, 0);
    of.follows = false;
    let refusal = |bench: &mut Bench, of: &Parameters| {
        let refused = bench.fifo.admit(TaskId::from_index(0), of);
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&mut bench, &of),
        "task a runs a program, and without sched_ext it is unknown when a program is runnable; \
         `--machine kernel` and `--machine agent` run programs"
    );
    of.follows = true;
    bench.fifo.controller.ops.failure = Some((0, libc::EPERM));
    let system = crate::host::System::this();
    let expected = match crate::host::obstacle_to_fifo(&system) {
        Some(obstacle) => obstacle.to_string(),
        None => format!(
            "SCHED_FIFO is not allowed for this user; {}",
            system.for_caller(crate::host::privileges::RTPRIO_REMEDY.to_owned())
        ),
    };
    assert_eq!(refusal(&mut bench, &of), expected);
    bench.fifo.controller.ops.failure = Some((0, libc::EINVAL));
    assert!(refusal(&mut bench, &of).starts_with("could not set CPU and priority of task a: "));
    of.cpus = CpuSet::EMPTY;
    assert_eq!(
        refusal(&mut bench, &of),
        "task a may not use any CPU of the platform"
    );
    // Once the watchdog has failed the run, the agent gets the reason.
    bench.fifo.shared.fail(String::from("heartbeat missing"));
    for refused in [bench.fifo.heartbeat(), bench.fifo.assign(&[])] {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "heartbeat missing; keep other real-time threads off the agent's CPU"
        );
    }
}

#[test]
fn reports_are_sorted_by_time_and_otherwise_keep_their_order() {
    let event = |at, value| Event {
        at,
        value,
        task: 0,
        cpu: None,
        kind: Kind::SlotFilled,
    };
    let mut reports = [(3, 0), (1, 1), (3, 2), (1, 3), (2, 4)].map(|(at, value)| event(at, value));
    sort_by_time(&mut reports);
    let order = reports.map(|event| event.value);
    assert_eq!(order, [1, 3, 4, 0, 2]);
}

/// Pseudo-random numbers from a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// The task that a kernel runs on this CPU: the one of the highest level among the threads there that are in a job.
/// `None` if the blocker has a higher level, or there is no such thread.
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
fn after_every_step_exactly_the_assigned_tasks_run() {
    for seed in 1..=300 {
        let mut random = Random(seed);
        let mut bench = Bench::with(&[0, 1, 0, 1]);
        let (mut slots, mut blocked) = ([None; 2], [false; 2]);
        for step in 0..200 {
            let task = random.below(4);
            match random.below(4) {
                // A task in a job may be held or moved, another one may start a job.
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
                        bench.report_running(task, cpu);
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
