//! What becomes of single keys of rt-app's files, and what is named as lost or refused.

use shiftwork_model::{Arrival, Instant, OnOverrun, Phase, Priority, Span, Task, Work};
use shiftwork_taskset::import::{Imported, Options, rt_app};
use shiftwork_taskset::{read, write};

fn task<'a>(imported: &'a Imported, name: &str) -> &'a Task {
    &imported.set.tasks[imported.set.find(name).unwrap().index()]
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

/// A file with one thread `a` of these keys, and two ordinary ones.
fn with(keys: &str) -> Imported {
    let other = r#""other": {"policy": "SCHED_FIFO", "run": 1, "timer": {"ref": "other", "period": 9, "mode": "absolute"}}, "rest": {"run": 1}"#;
    rt_app::read(&format!(
        "{{\"tasks\": {{\"a\": {{\"policy\": \"SCHED_FIFO\", {keys}}}, {other}}}}}"
    ))
    .unwrap()
}

/// What is lost of a thread `a` of these keys.
fn lost(keys: &str) -> Vec<String> {
    let left_out = with(keys).left_out.into_iter();
    let of_a = |line: String| line.strip_prefix("task `a`: ").map(str::to_owned);
    left_out.filter_map(of_a).collect()
}

/// Why a thread `a` of these keys is refused.
fn refused(keys: &str) -> String {
    assert_eq!(with(keys).set.find("a"), None, "{keys}");
    let lost = lost(keys);
    let reason = lost
        .last()
        .and_then(|line| line.strip_prefix("not imported: "));
    reason
        .unwrap_or_else(|| panic!("{keys}: {lost:?}"))
        .to_owned()
}

#[test]
fn rt_app_threads_become_tasks() {
    let imported = rt_app::read(include_str!("../good/rt-app.json")).unwrap();
    assert_eq!(read(&write(&imported.set)).as_ref(), Ok(&imported.set));
    let names: Vec<&str> = imported
        .set
        .tasks
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "imu", "pool-0", "pool-1", "pool-2", "server", "legacy", "waves", "steps", "source",
            "sink", "worker", "last"
        ]
    );
    assert_eq!(imported.set.platform.cpus, 4);

    let imu = task(&imported, "imu");
    assert_eq!(
        (imu.cost, imu.period, imu.deadline),
        (us(500), us(2_000), us(2_000))
    );
    assert_eq!((imu.offset, imu.work.clone()), (us(300), Work::Cost));
    assert_eq!(
        imu.priority,
        Priority::new(1),
        "99 is their most urgent, 1 is ours"
    );
    assert_eq!(imu.affinity.to_string(), "0,2");
    assert_eq!(
        imu.on_overrun,
        OnOverrun::Continue,
        "nothing is enforced without a server"
    );

    let pool = task(&imported, "pool-2");
    assert_eq!(
        (pool.cost, pool.period, pool.priority),
        (us(1_500), us(10_000), Priority::new(99))
    );
    assert_eq!(pool.affinity.to_string(), "0-3");

    let server = task(&imported, "server");
    assert_eq!(
        (server.cost, server.period, server.deadline),
        (us(4_000), us(20_000), us(15_000))
    );
    assert_eq!(
        (server.work.clone(), server.on_overrun),
        (Work::Constant(us(3_500)), OnOverrun::Throttle)
    );

    let legacy = task(&imported, "legacy");
    assert_eq!(
        (legacy.cost, legacy.period, legacy.deadline),
        (us(4_000), us(16_000), us(16_000))
    );
    assert_eq!(legacy.work, Work::Constant(us(3_000)));

    let waves = task(&imported, "waves");
    assert_eq!((waves.cost, waves.period), (us(5_000), us(8_000)));
    assert_eq!(
        waves.work,
        Work::Trace(vec![us(1_000), us(1_000), us(5_000)])
    );
    let releases = (0..6)
        .map(|job| Instant::from_ns(job * 8_000_000))
        .collect();
    assert_eq!(
        waves.arrival,
        Arrival::Releases(releases),
        "two rounds of three jobs"
    );
    assert_eq!(waves.affinity.to_string(), "1,3");

    let steps = task(&imported, "steps");
    assert_eq!((steps.cost, steps.period), (us(400), us(1_000)));
    let phases = vec![
        Phase::Run(us(100)),
        Phase::Sleep(us(200)),
        Phase::Run(us(300)),
    ];
    assert_eq!(steps.work, Work::Phases(phases));
}

#[test]
fn what_rt_app_says_and_we_do_not_is_named() {
    let imported = rt_app::read(include_str!("../good/rt-app.json")).unwrap();
    assert_eq!(
        imported.left_out,
        [
            "global `duration`: pass `--for 5s`",
            "global `calibration`",
            "task `pool`: SCHED_RR; equal priorities do not take turns",
            "task `steps`: it has no timer; it is released every 1ms, even if a job ends late",
            "task `steps`: SCHED_OTHER; it is taken as a real-time task",
            "task `sleeper`: it never computes, so it is no task",
            "task `follower`: not imported: `mem` takes as long as the machine needs",
            "relative timers: after a job that ends later than its timer, rt-app counts from that end, the task set goes on from the timer (mode \"absolute\" does so, too)",
            "the number of CPUs is not in the file; taken as 4",
        ],
    );
}

#[test]
fn rt_app_files_say_no_number_of_cpus_so_it_can_be_given() {
    let text = r#"{"tasks": {"a": {"run": 10, "cpus": [3], "timer": {"period": 20}}}}"#;
    let options = |cpus| Options {
        cpus: Some(cpus),
        ..Options::default()
    };
    let imported = rt_app::read_with(text, &options(8)).unwrap();
    assert_eq!(imported.set.platform.cpus, 8);
    let error = rt_app::read_with(text, &options(2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 CPUs are not what this file can run on; accepted: 4 to 1024"
    );
}

#[test]
fn repeated_rt_app_names_stay_apart() {
    let text = r#"{"tasks": {
        "a": {"run": 1}, "a": {"run": 2}, "a-2": {"run": 3}, "a": {"run": 4, "instance": 2}}}"#;
    let imported = rt_app::read(text).unwrap();
    let names: Vec<&str> = imported
        .set
        .tasks
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    assert_eq!(names, ["a", "a-2", "a-2-2", "a-0", "a-1"]);
}

#[test]
fn a_thread_that_waits_for_what_no_task_does_is_refused() {
    for (keys, reason) in [
        (
            r#""run": 5, "suspend": """#,
            "`suspend` waits for `a`, which no job of another thread makes happen",
        ),
        (
            r#""run": 5, "wait": {"ref": "q", "mutex": "m"}, "timer": {"ref": "unique", "period": 9}"#,
            "`wait` waits for another thread between its timers; a task is released by time or by other tasks",
        ),
        (
            r#""run": 5, "sync1": {"ref": "q", "mutex": "m"}, "broad": "q""#,
            "`sync1` waits for `q`, which no job of another thread makes happen",
        ),
        (
            r#""run": 5, "sem_wait": "s", "sem_post": "s""#,
            "`sem_wait` waits for what the thread itself makes happen, and no task triggers itself",
        ),
        (
            r#""phases": {"p": {"suspend": "", "run": 1}, "q": {"loop": -1, "run": 5, "sleep": 5}}"#,
            "`suspend` waits for another thread once, before its jobs",
        ),
        (
            r#""instance": 2, "run": 5, "barrier": "b""#,
            "`barrier` waits for other threads at `b`",
        ),
        (
            r#""run": 5, "barrier": "b", "barrier": "b""#,
            "`barrier` waits for other threads at `b`",
        ),
        (
            r#""instance": 2, "lock": "m", "run": 5, "lock": "m", "unlock": "m", "sleep": 1"#,
            "it locks mutex `m` while it holds it",
        ),
        (
            r#""instance": 2, "lock": "m", "run": 5, "timer": {"ref": "unique", "period": 9}, "unlock": "m""#,
            "it holds mutex `m`, which other threads lock, from one job to the next",
        ),
        (
            r#""instance": 2, "lock": "m", "run": 5, "unlock": "m", "unlock": "m", "sleep": 4"#,
            "it unlocks mutex `m`, which it does not hold",
        ),
        (
            r#""policy": "SCHED_DEADLINE", "dl-runtime": 3, "dl-period": 50, "instance": 2, "lock": "m", "run": 5, "unlock": "m",
            "timer": {"ref": "unique", "period": 50}"#,
            "it computes for 5us with a budget of 3us, and would be throttled while it holds a mutex that others lock",
        ),
        (
            r#""run": 5, "timer": {"ref": "other", "period": 20}"#,
            "`timer` is a timer that 2 threads share; a `ref` that begins with \"unique\" makes one for each",
        ),
        (
            r#""instance": 3, "run": 5, "timer": {"period": 20}"#,
            "`timer` is a timer that 3 threads share; a `ref` that begins with \"unique\" makes one for each",
        ),
        (
            r#""run": 5, "iorun": 4096"#,
            "`iorun` takes as long as the machine needs",
        ),
        (
            r#""memrun": {"size": 64}, "run": 5"#,
            "`memrun` takes as long as the machine needs",
        ),
        (
            r#""run": 5, "fork": "other""#,
            "`fork` starts threads while it runs",
        ),
    ] {
        assert_eq!(refused(keys), reason);
    }
}

#[test]
fn a_thread_that_no_task_is_like_is_refused() {
    for (keys, reason) in [
        (
            r#""phases": {"p": {"run": 5, "timer": {"ref": "unique", "period": 30}},
                       "q": {"run": 5, "timer": {"ref": "uniqueB", "period": 400}}}"#,
            "its jobs are not released at equal distances",
        ),
        (
            r#""phases": {"p": {"loop": 3, "run": 5, "timer": {"ref": "unique", "period": 30}},
                       "q": {"loop": -1, "run": 5, "timer": {"ref": "unique", "period": 40}}}"#,
            "its jobs are not released at equal distances",
        ),
        (
            r#""phases": {"p": {"run": 5}, "q": {"loop": -1, "sleep": 5}}"#,
            "it computes at first and then never again",
        ),
        (
            r#""phases": {"p": {"cpus": [0], "run": 5}, "q": {"run": 5}}"#,
            "its phases have different `cpus`",
        ),
        (
            r#""phases": {"p": {"priority": 3, "run": 5}}"#,
            "phase `p` changes its `priority`",
        ),
        (
            r#""run": 5, "sleep": 1, "run": 5, "timer": {"ref": "unique", "period": 30},
            "run": 9, "timer": {"ref": "unique", "period": 30}"#,
            "its jobs sleep, lock or wake others in their midst and are not alike",
        ),
        (
            r#""run": 90, "timer": {"ref": "unique", "period": 50, "mode": "absolute"}"#,
            "it comes to an absolute timer later every time, since it does more than the timer leaves time for",
        ),
    ] {
        assert_eq!(refused(keys), reason);
    }
}

#[test]
fn what_wakes_others_changes_nothing_for_the_thread() {
    let keys = r#""lock": "m", "run": 5, "unlock": "m", "signal": "q", "broad": "q", "resume": "b",
                  "sem_post": "s", "barrier": "b", "timer": {"ref": "unique", "period": 20, "mode": "absolute"}"#;
    assert_eq!(lost(keys), [""; 0]);
    let imported = with(keys);
    let a = task(&imported, "a");
    assert_eq!((a.cost, a.period, &a.work), (us(5), us(20), &Work::Cost));
}

#[test]
fn timers_count_as_rt_app_counts_them() {
    // A relative timer counts from when the thread came to it late, so that a period of 50us takes 90us.
    let imported = with(r#""run": 90, "timer": {"ref": "unique", "period": 50}"#);
    let a = task(&imported, "a");
    assert_eq!((a.cost, a.period), (us(90), us(90)));

    // The first job has no run before its timer.
    let keys = r#""run": 10, "timer": {"ref": "unique", "period": 50}, "run": 7"#;
    let imported = with(keys);
    let a = task(&imported, "a");
    assert_eq!((a.cost, a.period, a.offset), (us(17), us(50), us(0)));
    assert_eq!(lost(keys), ["its first job is not like the later ones"]);

    // Two timers, one job.
    let keys = r#""delay": 300, "timer0": {"ref": "uniqueA", "period": 50, "mode": "absolute"}, "run": 10,
                  "timer1": {"ref": "uniqueB", "period": 50}"#;
    let imported = with(keys);
    let a = task(&imported, "a");
    assert_eq!(
        (a.cost, a.period, a.offset),
        (us(10), us(50), us(350)),
        "{:?}",
        imported.left_out
    );

    // A thread without phases ends after its rounds, one with phases after those of the thread.
    let keys = r#""loop": 2, "run": 10, "timer": {"ref": "unique", "period": 50}"#;
    let releases = |times: &[u64]| {
        let instants = times.iter().map(|us| Instant::from_ns(us * 1_000));
        Arrival::Releases(instants.collect())
    };
    assert_eq!(task(&with(keys), "a").arrival, releases(&[0, 50]));
    let keys = format!(r#""loop": 2, "phases": {{"p": {{{keys}}}}}"#);
    assert_eq!(
        task(&with(&keys), "a").arrival,
        releases(&[0, 50, 100, 150])
    );

    // A last phase without an end.
    let keys = r#""phases": {"p": {"sleep": 100}, "q": {"loop": -1, "run": 5, "sleep": 20}}"#;
    let imported = with(keys);
    let a = task(&imported, "a");
    assert_eq!((a.cost, a.period, a.offset), (us(5), us(25), us(100)));
}

#[test]
fn servers_have_the_parameters_that_rt_app_gives_them() {
    let dl = |keys: &str| {
        let keys = format!(r#""policy": "SCHED_DEADLINE", {keys}"#);
        let imported = with(&keys);
        let a = task(&imported, "a");
        ((a.cost, a.period, a.deadline, a.work.clone()), lost(&keys))
    };
    let timer = r#""timer": {"ref": "unique", "period": 50}"#;
    assert_eq!(
        dl(&format!(
            r#""dl-runtime": 10, "dl-period": 50, "dl-deadline": 40, "run": 8, {timer}"#
        )),
        ((us(10), us(50), us(40), Work::Constant(us(8))), vec![])
    );
    // Without a period the server's is its runtime, whatever the timer's is.
    assert_eq!(
        dl(&format!(r#""dl-runtime": 10, "run": 8, {timer}"#)),
        (
            (us(10), us(50), us(10), Work::Constant(us(8))),
            vec!["dl-period 10us; it is released every 50us, which is kept".to_string()]
        )
    );
    // Linux lets none begin between its first deadline and its second period.
    for (delay, is_late) in [(39, false), (40, true), (49, true), (50, false)] {
        let keys = format!(
            r#""delay": {delay}, "dl-runtime": 10, "dl-period": 50, "dl-deadline": 40, "run": 8, {timer}"#
        );
        let said = dl(&keys).1;
        assert_eq!(!said.is_empty(), is_late, "{delay}: {said:?}");
    }
    // A thread that never waits takes its budget whenever there is one.
    assert_eq!(
        dl(r#""dl-runtime": 10, "dl-period": 50, "run": 1000"#),
        ((us(10), us(50), us(50), Work::Cost), vec![])
    );
    // `runtime` of a thread is an event and, without `dl-runtime`, the budget.
    assert_eq!(
        dl(&format!(r#""runtime": 10, "period": 50, {timer}"#)),
        ((us(10), us(50), us(50), Work::Cost), vec![])
    );
    // Before there were events, it was the budget alone.
    assert_eq!(
        dl(r#""runtime": 10, "period": 50, "exec": 7"#),
        ((us(10), us(50), us(50), Work::Constant(us(7))), vec![])
    );

    // With events in the same thread, rt-app does not know `exec`.
    assert_eq!(
        dl(&format!(
            r#""dl-runtime": 10, "dl-period": 50, "exec": 7, "run": 8, {timer}"#
        )),
        (
            (us(10), us(50), us(50), Work::Constant(us(8))),
            vec!["`exec`".to_string()]
        )
    );

    let dl_refused = |keys: &str| refused(&format!(r#""policy": "SCHED_DEADLINE", {keys}"#));
    assert_eq!(
        dl_refused(&format!(r#""run": 8, {timer}"#)),
        "Linux refuses SCHED_DEADLINE with runtime 0ns, deadline 0ns, period 0ns"
    );
    assert_eq!(
        dl_refused(&format!(
            r#""dl-runtime": 10, "dl-period": 20, "run": 12, {timer}"#
        )),
        "it computes for 12us every 50us, with a budget of 10us every 20us"
    );
    assert_eq!(
        dl_refused(&format!(
            r#""dl-runtime": 10, "dl-period": 50, "run": 8, "yield": "", {timer}"#
        )),
        "`yield` gives back the rest of the budget"
    );
}

#[test]
fn a_file_of_which_no_thread_can_be_imported_is_an_error() {
    let error = rt_app::read(r#"{"tasks": {"a": {"run": 5, "suspend": ""}}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no thread of this file can be imported: task `a`: not imported: `suspend` waits for `a`, which no job of another thread \
         makes happen; accepted: threads that run, sleep and wait for timers of their own, and threads that these wake"
    );
}
