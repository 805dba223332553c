mod bench;

use bench::*;

use super::*;
use crate::event::Kind;
use crate::fifo::thread_handshake::State;

#[test]
fn a_job_is_let_out_and_tells_of_itself() {
    let mut stand = Stand::new();
    stand.admit(0, 1).unwrap();
    assert_eq!(stand.calls(), ["bind a 1", "level a 30", "level a 50"]);
    assert_eq!(stand.reports(), ["0 Entered a 1 3"]);
    stand.pass(10, &[]);
    stand.assign(&[(1, Some(0))]);
    // It is where it has to be, and has only to be woken, as for every job that follows.
    assert!(stand.calls().is_empty());
    assert_eq!(stand.reports(), ["10 Told a 1 0"]);
    stand.pass(2, &[]);
    stand.goes_on(0, 1);
    stand.pass(5, &[0]);
    stand.stops(0, 1, Kind::NextJob, 100);
    assert_eq!(
        stand.reports(),
        ["12 Running a 1 0", "17 Stopped a 1 5", "17 NextJob a 1 100"]
    );
    stand.assign(&[(1, Some(0))]);
    assert!(stand.calls().is_empty());
    assert_eq!(stand.state(0), State::Open);
}

#[test]
fn a_job_that_is_shifted_runs_on_elsewhere() {
    let mut stand = Stand::with(&[0, 0]);
    stand.assign(&[(0, Some(0))]);
    stand.goes_on(0, 0);
    stand.forget();
    stand.pass(7, &[0]);
    stand.assign(&[(0, Some(1)), (1, Some(0))]);
    assert_eq!(stand.calls(), ["bind a 1"]);
    assert_eq!(
        stand.reports(),
        [
            "7 Told b 0 0",
            "7 Stopped a 0 7",
            "7 Running a 1 0",
            "7 Told a 1 0"
        ]
    );
    stand.pass(3, &[0, 1]);
    stand.stops(0, 1, Kind::LastJob, u64::MAX);
    let last = format!("10 LastJob a 1 {}", u64::MAX);
    assert_eq!(stand.reports(), ["10 Stopped a 1 3", &last]);
}

#[test]
fn a_preempted_job_is_held_until_it_is_resumed() {
    let mut stand = Stand::with(&[0, 1]);
    stand.assign(&[(0, Some(0))]);
    stand.goes_on(0, 0);
    stand.forget();
    stand.pass(4, &[0]);
    stand.assign(&[(0, Some(1))]);
    assert_eq!(stand.calls(), ["level a 30", "bind b 0", "block 0 true"]);
    assert_eq!(stand.reports(), ["4 Stopped a 0 4", "4 Told b 0 0"]);
    stand.goes_on(1, 0);
    stand.stops(1, 0, Kind::NextJob, 50);
    stand.reports();
    // Resumed elsewhere, so that nobody has to be kept from its first CPU.
    stand.assign(&[(1, Some(0))]);
    assert_eq!(stand.calls(), ["bind a 1", "level a 50", "block 0 false"]);
    assert_eq!(stand.reports(), ["4 Running a 1 0", "4 Told a 1 0"]);
}

#[test]
fn a_throttled_job_does_not_run_on_an_idle_cpu() {
    let mut stand = Stand::with(&[1]);
    stand.assign(&[(1, Some(0))]);
    stand.goes_on(0, 1);
    stand.calls();
    stand.assign(&[(1, None)]);
    assert_eq!(stand.calls(), ["level a 30", "block 1 true"]);
    // It was just finishing when it was held: nobody is left who has to be kept from the CPU.
    stand.stops(0, 1, Kind::NextJob, 50);
    stand.reports();
    assert_eq!(stand.calls(), ["block 1 false"]);
}

#[test]
fn a_slot_whose_task_has_stopped_since_stays_empty() {
    let mut stand = Stand::with(&[0]);
    stand.assign(&[(0, Some(0))]);
    stand.goes_on(0, 0);
    stand.stops(0, 0, Kind::NextJob, 50);
    stand.stops[0] -= 1;
    stand.forget();
    stand.assign(&[(0, Some(0))]);
    assert!(stand.calls().is_empty());
    assert_eq!(stand.reports(), ["0 Told - 0 0"]);
    assert_eq!(stand.state(0), State::Closed);
}

#[test]
fn who_sleeps_within_a_job_is_woken_by_the_agents_side() {
    let mut stand = Stand::with(&[0]);
    stand.assign(&[(0, Some(0))]);
    stand.goes_on(0, 0);
    stand.stops(0, 0, Kind::Blocked, 40);
    stand.reports();
    let level = stand.fifo.level(TaskId::from_index(0)).unwrap();
    assert_eq!((level.awake, level.stops, level.finished), (false, 1, 0));
    // The agent does not sleep for longer, whatever it says.
    stand.fifo.wait_until(u64::MAX);
    stand.pass(39, &[]);
    assert!(stand.reports().is_empty());
    stand.pass(2, &[]);
    assert_eq!(stand.reports(), ["41 Woken a 0 0"]);
    assert!(stand.reports().is_empty());
    stand.assign(&[(1, Some(0))]);
    assert_eq!(stand.state(0), State::Open);
}

#[test]
fn a_run_counts_when_it_is_reported_and_not_before() {
    let mut stand = Stand::with(&[0]);
    let ran_ns = |stand: &mut Stand| stand.fifo.level(TaskId::from_index(0)).unwrap().ran_ns;
    stand.assign(&[(0, Some(0))]);
    stand.goes_on(0, 0);
    stand.pass(4, &[0]);
    assert_eq!(ran_ns(&mut stand), 0);
    stand.assign(&[(0, None)]);
    assert_eq!(ran_ns(&mut stand), 4);
    stand.assign(&[(0, Some(0))]);
    stand.pass(3, &[0]);
    assert_eq!(ran_ns(&mut stand), 4);
    stand.stops(0, 0, Kind::NextJob, 50);
    assert_eq!(ran_ns(&mut stand), 7);
}

#[test]
fn what_is_heard_of_after_the_agent_looked_is_news() {
    let mut stand = Stand::with(&[0]);
    stand.assign(&[(0, Some(0))]);
    stand.goes_on(0, 0);
    stand.pass(5, &[0]);
    stand.forget();
    let looked = stand.fifo.level(TaskId::from_index(0)).unwrap();
    stand.stops(0, 0, Kind::NextJob, 50);
    assert_eq!((looked.at_ns, looked.stops), (5, 0));
    assert_eq!(stand.reports(), ["6 Stopped a 0 5", "6 NextJob a 0 50"]);
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
        let mut stand = Stand::with(&[0]);
        stand.assign(&[(0, Some(0))]);
        stand.reports();
        stand.pass(5, &[]);
        stand.pass(3, &[0]);
        stand.assign(slots);
        stand.fifo.board.hear(0, went_on(5));
        let mut reports = stand.reports();
        // What happened at one instant may be told in any order.
        let mut expected: Vec<_> = expected.iter().map(|&text| text.to_owned()).collect();
        reports.sort();
        expected.sort();
        assert_eq!(reports, expected, "{slots:?}");
    }
}

#[test]
fn who_is_held_before_it_can_say_that_it_runs_has_two_runs() {
    let mut stand = Stand::with(&[0, 0]);
    stand.assign(&[(0, Some(0))]);
    stand.pass(5, &[]);
    stand.pass(3, &[0]);
    stand.assign(&[(0, Some(1))]);
    stand.goes_on(1, 0);
    stand.pass(20, &[1]);
    stand.stops(1, 0, Kind::NextJob, 100);
    stand.assign(&[(0, Some(0))]);
    stand.pass(1, &[0]);
    stand.fifo.board.hear(0, went_on(5));
    let reports = stand.reports();
    let of_it: Vec<_> = reports
        .iter()
        .filter(|text| text.contains("ing a ") || text.contains("Stopped a "))
        .collect();
    assert_eq!(
        of_it,
        ["5 Running a 0 0", "8 Stopped a 0 3", "28 Running a 0 0"]
    );
    stand.pass(4, &[0]);
    stand.stops(0, 0, Kind::NextJob, 100);
    let reports = stand.reports();
    assert_eq!(reports[0], "33 Stopped a 0 5");
}

#[test]
fn a_held_job_that_runs_for_a_moment_is_not_told_of() {
    let mut stand = Stand::with(&[0]);
    stand.assign(&[(0, Some(0))]);
    stand.assign(&[(0, None)]);
    stand.forget();
    stand.pass(2, &[]);
    stand.goes_on(0, 0);
    assert!(stand.reports().is_empty());
    stand.assign(&[(0, Some(0))]);
    assert_eq!(stand.calls(), ["level a 50", "block 0 false"]);
    assert_eq!(stand.reports(), ["2 Running a 0 0", "2 Told a 0 0"]);
}

#[test]
fn who_is_dismissed_is_ordinary_and_may_come_back_in_the_middle() {
    let mut stand = Stand::with(&[0]);
    stand.assign(&[(0, Some(0))]);
    stand.goes_on(0, 0);
    stand.forget();
    stand.pass(6, &[0]);
    stand.dismiss(0);
    stand.dismiss(0);
    assert_eq!(stand.calls(), ["level a 0", "bind a 0,1"]);
    assert_eq!(stand.reports(), ["6 Stopped a 0 6", "6 Left a - 0"]);
    assert_eq!(stand.state(0), State::Out);
    assert_eq!(stand.admit(0, 1).unwrap(), Some(true));
    assert_eq!(stand.calls(), ["bind a 1", "level a 30", "block 1 true"]);
    // Something of its first stay that was on the way.
    stand.stays[0] = 1;
    stand.tell(0, Kind::NextJob, 0, 70);
    stand.stays[0] = 2;
    assert_eq!(stand.reports(), ["6 Entered a 1 3"]);
    stand.assign(&[(1, Some(0))]);
    assert_eq!(stand.reports(), ["6 Running a 1 0", "6 Told a 1 0"]);
}

#[test]
fn who_comes_back_asleep_is_woken() {
    let mut stand = Stand::with(&[0]);
    stand.dismiss(0);
    stand.fifo.floor.seats[0].arrive(30);
    stand.pass(20, &[]);
    assert_eq!(stand.admit(0, 0).unwrap(), Some(false));
    stand.reports();
    stand.pass(10, &[]);
    assert_eq!(stand.reports(), ["30 Woken a 0 0"]);
}

#[test]
fn a_thread_that_is_gone_is_nobodys_fault() {
    let mut stand = Stand::with(&[0, 0]);
    stand.fifo.board.hands.says = Some((0, libc::ESRCH));
    stand.assign(&[(1, Some(0))]);
    assert_eq!(stand.reports(), ["0 Told a 1 0"]);
    assert_eq!(stand.state(0), State::Closed);
    stand.dismiss(0);
    assert_eq!(stand.admit(0, 0).unwrap(), None);
    stand.assign(&[(1, Some(1))]);
    assert_eq!(stand.state(1), State::Open);
}

#[test]
fn what_cannot_be_done_is_said_with_its_remedy() {
    let mut stand = Stand::new();
    let mut of = Stand::parameters(0, 0);
    of.follows = false;
    let refusal = |stand: &mut Stand, of: &Parameters| {
        let refused = stand.fifo.admit(TaskId::from_index(0), of);
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&mut stand, &of),
        "task a runs a program, of which nobody knows without sched_ext when it wants to run; \
         `--machine kernel` and `--machine agent` run programs"
    );
    of.follows = true;
    stand.fifo.board.hands.says = Some((0, libc::EPERM));
    assert_eq!(
        refusal(&mut stand, &of),
        format!(
            "SCHED_FIFO is not allowed for this user; {}",
            crate::host::System::this().for_caller(crate::host::privileges::RANK_REMEDY.to_owned())
        )
    );
    stand.fifo.board.hands.says = Some((0, libc::EINVAL));
    assert!(refusal(&mut stand, &of).starts_with("could not put task a where it is to run: "));
    of.cpus = CpuSet::EMPTY;
    assert_eq!(
        refusal(&mut stand, &of),
        "task a may not use any CPU of the platform"
    );
    // Once the watch has taken the machine, the agent is told why.
    stand.fifo.floor.fail(String::from("it was silent"));
    for refused in [stand.fifo.beat(), stand.fifo.assign(&[])] {
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
fn runs(stand: &Stand, blocked: &[bool; 2], cpu: usize) -> Option<usize> {
    let hands = &stand.fifo.board.hands;
    let there = (0..4).filter(|&task| {
        hands.level[task] != 0
            && hands.cpu[task] == Some(cpus(&[cpu]))
            && stand.state(task) == State::Open
    });
    let top = there.max_by_key(|&task| hands.level[task])?;
    (!blocked[cpu] || hands.level[top] > 40).then_some(top)
}

#[test]
fn after_every_step_exactly_those_run_that_were_told_to() {
    for seed in 1..=300 {
        let mut random = Random(seed);
        let mut stand = Stand::with(&[0, 1, 0, 1]);
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
                    stand.assign(&[first, 1 - first].map(|cpu| (cpu, slots[cpu])));
                }
                2 => {
                    if let Some(cpu) = slots.iter().position(|&slot| slot == Some(task)) {
                        stand.goes_on(task, cpu);
                        stand.stops(task, cpu, Kind::NextJob, 0);
                        slots[cpu] = None;
                    }
                }
                _ => {
                    stand.dismiss(task);
                    slots = slots.map(|slot| slot.filter(|&other| other != task));
                    stand.admit(task, random.below(2)).unwrap();
                }
            }
            stand.pass(1, &[]);
            stand.fifo.hear();
            stand.fifo.board.reports.clear();
            for call in stand.calls() {
                if let Some(what) = call.strip_prefix("block ") {
                    blocked[usize::from(what.starts_with('1'))] = what.ends_with("true");
                }
            }
            let running = [0, 1].map(|cpu| runs(&stand, &blocked, cpu));
            assert_eq!(running, slots, "seed {seed}, step {step}");
        }
    }
}
