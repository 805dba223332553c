//! What becomes of threads that wake each other and share mutexes, and what is named as lost or refused.

use shiftwork_model::{
    Arrival, Join, Phase, Priority, Protocol, Span, Task, TaskId, Trigger, Work,
};
use shiftwork_taskset::import::{Imported, rt_app};

/// A file of threads under SCHED_FIFO.
fn import(threads: &str) -> Imported {
    let text =
        format!(r#"{{"global": {{"default_policy": "SCHED_FIFO"}}, "tasks": {{{threads}}}}}"#);
    rt_app::read(&text).unwrap()
}

fn task<'a>(imported: &'a Imported, name: &str) -> &'a Task {
    &imported.set.tasks[imported.set.find(name).unwrap().index()]
}

/// What is lost of the threads.
fn lost(imported: &Imported) -> Vec<&str> {
    let lines = imported.left_out.iter();
    lines
        .filter_map(|line| line.strip_prefix("task "))
        .collect()
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

fn triggered(sources: &[usize], join: Join, queue: Option<u32>) -> Arrival {
    let sources = sources.iter().map(|source| TaskId::from_index(*source));
    Arrival::Triggered(Trigger {
        sources: sources.collect(),
        join,
        queue,
    })
}

const TICK: &str = r#""timer": {"ref": "unique", "period": 100, "mode": "absolute"}"#;

#[test]
fn a_thread_that_suspends_itself_is_triggered_by_those_that_resume_it() {
    let imported = import(&format!(
        r#""a": {{"run": 5, "resume": "b", "run": 2, {TICK}}}, "b": {{"suspend": "", "run": 7, "resume": "c"}},
           "c": {{"instance": 2, "suspend1": "c", "run": 3, "sleep": 4}}"#
    ));
    let b = TaskId::from_index(1);
    let phases = vec![Phase::Run(us(5)), Phase::Trigger(b), Phase::Run(us(2))];
    assert_eq!(task(&imported, "a").work, Work::Phases(phases));
    let b = task(&imported, "b");
    assert_eq!(b.arrival, triggered(&[0], Join::Any, Some(0)));
    assert_eq!(
        (b.cost, b.period, b.deadline, &b.work),
        (us(7), us(100), us(100), &Work::Cost)
    );
    for instance in ["c-0", "c-1"] {
        let c = task(&imported, instance);
        assert_eq!(c.arrival, triggered(&[1], Join::Any, Some(0)));
        let phases = vec![Phase::Run(us(3)), Phase::Sleep(us(4))];
        assert_eq!(
            c.work,
            Work::Phases(phases),
            "what wakes it while it sleeps is lost"
        );
    }
    assert_eq!(lost(&imported), [""; 0]);
}

#[test]
fn conditions_lose_what_no_thread_waits_for_and_semaphores_count() {
    let imported = import(&format!(
        r#""a": {{"run": 5, "lock": "m", "signal": "q", "unlock": "m", "sem_post": "s", "sem_post": "x", {TICK}}},
           "b": {{"run": 5, "sem_post": "s", "sem_post": "y", {TICK}}},
           "q": {{"lock": "m", "wait": {{"ref": "q", "mutex": "m"}}, "unlock": "m", "run": 1}},
           "s": {{"sem_wait": "s", "run": 1}},
           "xy": {{"sem_wait": "x", "sem_wait": "y", "run": 1}},
           "sync": {{"lock": "m", "sync": {{"ref": "q2", "mutex": "m"}}, "unlock": "m", "run": 1}},
           "w": {{"run": 5, "broad": "q2", {TICK}}}"#
    ));
    let arrival = |name| &task(&imported, name).arrival;
    assert_eq!(arrival("q"), &triggered(&[0], Join::Any, Some(0)));
    assert_eq!(arrival("s"), &triggered(&[0, 1], Join::Any, None));
    assert_eq!(arrival("xy"), &triggered(&[0, 1], Join::All, None));
    assert_eq!(arrival("sync"), &triggered(&[6], Join::Any, Some(0)));
    assert_eq!(task(&imported, "s").period, us(50), "both release it");
    assert_eq!(
        task(&imported, "a").work,
        Work::Cost,
        "its completion triggers"
    );
    assert!(
        imported.set.resources.is_empty(),
        "no thread ever waits for `m`"
    );
    assert_eq!(lost(&imported), [""; 0]);
}

#[test]
fn mutexes_of_several_threads_are_resources() {
    let threads = format!(
        r#""a": {{"priority": 9, "lock": "m", "run": 5, "unlock": "m", "lock": "mine", "run": 1, "unlock": "mine", {TICK}}},
           "b": {{"run": 1, "lock": "m", "unlock": "m", {TICK}}}"#
    );
    for (key, protocol) in [
        (r#""pi_enabled": true"#, Protocol::Inheritance),
        (r#""pi_enabled": false"#, Protocol::None),
        (r#""logdir": "." "#, Protocol::None),
    ] {
        let text = format!(
            r#"{{"global": {{"default_policy": "SCHED_FIFO", {key}}}, "tasks": {{{threads}}}}}"#
        );
        let imported = rt_app::read(&text).unwrap();
        let [resource] = imported.set.resources.as_slice() else {
            panic!("{:?}", imported.set.resources);
        };
        assert_eq!((resource.name.as_str(), resource.protocol), ("m", protocol));
        let a = task(&imported, "a");
        let Work::Phases(phases) = &a.work else {
            panic!("{:?}", a.work);
        };
        assert!(matches!(
            phases.as_slice(),
            [
                Phase::Lock(_),
                Phase::Run(_),
                Phase::Unlock(_),
                Phase::Run(_)
            ]
        ));
        assert_eq!((a.priority, lost(&imported)), (Priority::new(91), vec![]));
    }
}

#[test]
fn what_a_thread_does_before_it_first_waits_is_named() {
    let imported = import(&format!(
        r#""a": {{"run": 5, "resume": "b", {TICK}}}, "b": {{"delay": 30, "run": 7, "suspend": "b"}},
           "c": {{"loop": 3, "suspend": "b", "run": 2}}"#
    ));
    assert_eq!(task(&imported, "b").cost, us(7));
    assert_eq!(
        lost(&imported),
        [
            "`b`: what it does before its first `suspend`, for which it waits from the start",
            "`b`: `delay` 30us; others can wake it from the start",
            "`c`: `loop` 3; it goes on for ever",
        ]
    );
}

#[test]
fn a_thread_that_only_wakes_others_is_a_task_of_the_least_cost() {
    let imported = import(&format!(
        r#""tick": {{"resume": "b", {TICK}}}, "b": {{"suspend": "", "run": 7}}"#
    ));
    let tick = task(&imported, "tick");
    let phases = vec![
        Phase::Trigger(TaskId::from_index(1)),
        Phase::Run(Span::from_ns(1)),
    ];
    assert_eq!(
        (&tick.work, tick.cost),
        (&Work::Phases(phases), Span::from_ns(1))
    );
    assert_eq!(
        lost(&imported),
        ["`tick`: jobs that do not compute; they run for 1ns when all else is done"]
    );
}

#[test]
fn periods_and_budgets_of_triggered_tasks_follow_from_their_sources() {
    let imported = import(&format!(
        r#""a": {{"run": 5, "resume": "b", {TICK}}},
           "b": {{"policy": "SCHED_DEADLINE", "dl-runtime": 10, "dl-period": 40, "dl-deadline": 30, "suspend": "", "run": 7}},
           "c": {{"suspend": "b", "run": 150}}"#
    ));
    let b = task(&imported, "b");
    assert_eq!((b.cost, b.period, b.deadline), (us(10), us(100), us(30)));
    let c = task(&imported, "c");
    assert_eq!((c.cost, &c.work), (us(100), &Work::Constant(us(150))));
    assert_eq!(
        lost(&imported),
        [
            "`b`: dl-period 40us; it is released every 100us, which is kept",
            "`c`: the cost 150us exceeds the deadline; 100us is kept",
        ]
    );
}

#[test]
fn threads_that_are_woken_otherwise_than_tasks_are_refused() {
    for (threads, lost_lines) in [
        (
            // Ping-pong.
            r#""a": {"run": 5, "resume": "b", "suspend": ""}, "b": {"suspend": "", "run": 5, "resume": "a"}"#.to_string(),
            vec![
                "`a`: not imported: `suspend` waits in a circle of threads that wake each other (`a`, `b`), and a task set starts \
                 each chain of triggers by a task that is released by time",
                "`b`: not imported: `suspend` waits in a circle of threads that wake each other (`a`, `b`), and a task set starts \
                 each chain of triggers by a task that is released by time",
            ],
        ),
        (
            // Ping-pong that a timer starts.
            format!(
                r#""a": {{"run": 5, "resume": "b", "suspend": "", {TICK}}}, "b": {{"suspend": "", "run": 5, "resume": "a"}}"#
            ),
            vec![
                "`a`: not imported: `suspend` waits for another thread between its timers; a task is released by time or by other tasks",
                "`b`: not imported: `suspend` waits for `b`, for which thread `a` is needed, which is not imported",
            ],
        ),
        (
            format!(
                r#""a": {{"run": 5, "signal": "q", {TICK}}}, "b": {{"instance": 2, "lock": "m", "wait": {{"ref": "q", "mutex": "m"}}, "unlock": "m", "run": 5}}"#
            ),
            vec![
                "`b`: not imported: 2 threads wait for `q`, and which one is woken depends on the moment; accepted: one thread that \
                 waits, or a condition with `broad` or `resume`",
            ],
        ),
        (
            format!(
                r#""a": {{"run": 5, "resume": "b", "broad": "q", {TICK}}},
                   "b": {{"suspend": "", "run": 5, "wait": {{"ref": "q", "mutex": "m"}}}}"#
            ),
            vec!["`b`: not imported: it waits for `q` and for `b` in turn"],
        ),
        (
            format!(
                r#""a": {{"run": 5, "sem_post": "x", "sem_post": "y", {TICK}}},
                   "b": {{"sem_wait": "x", "sem_wait": "y", "run": 5}}"#
            ),
            vec![
                "`b`: not imported: `sem_wait` waits for several semaphores, and of `x` not one thread alone posts, which posts no \
                 other of them",
            ],
        ),
        (
            format!(
                r#""a": {{"lock": "m", "run": 5, "lock": "n", "run": 1, "unlock": "n", "unlock": "m", {TICK}}},
                   "b": {{"lock": "n", "run": 5, "lock": "m", "run": 1, "unlock": "m", "unlock": "n", {TICK}}}"#
            ),
            vec![
                "`a`: not imported: it locks mutex `n` while it holds `m`, by which threads of this file may wait for each other \
                 for ever",
                "`b`: not imported: it locks mutex `m` while it holds `n`, by which threads of this file may wait for each other \
                 for ever",
            ],
        ),
    ] {
        let imported = import(&format!(r#"{threads}, "z": {{"run": 1, {TICK}}}"#));
        assert_eq!(lost(&imported), lost_lines, "{threads}");
        assert!(imported.set.find("z").is_some(), "{threads}");
    }
}
