//! Importers: what becomes of other tools' files, and what is named as left out.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_model::{Arrival, Instant, OnOverrun, Phase, Priority, Share, Span, Task, Work};
use shiftwork_taskset::import::{Imported, Options, rt_app, schedcat, simso};
use shiftwork_taskset::{read, write};

fn task<'a>(imported: &'a Imported, name: &str) -> &'a Task {
    &imported.set.tasks[imported.set.find(name).unwrap().index()]
}

fn us(us: u64) -> Span {
    Span::from_us(us)
}

fn assert_left_out(imported: &Imported, expected: &[&str]) {
    assert_eq!(imported.left_out, expected, "{:#?}", imported.left_out);
}

fn assert_can_be_written(imported: &Imported) {
    assert_eq!(read(&write(&imported.set)).as_ref(), Ok(&imported.set));
}

#[test]
fn rt_app_threads_become_tasks() {
    let imported = rt_app::read(include_str!("good/rt-app.json")).unwrap();
    assert_can_be_written(&imported);
    let names: Vec<&str> = imported
        .set
        .tasks
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "imu", "pool-0", "pool-1", "pool-2", "server", "legacy", "waves", "steps"
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
    let imported = rt_app::read(include_str!("good/rt-app.json")).unwrap();
    assert_left_out(
        &imported,
        &[
            "global `duration`: pass `--for 5s`",
            "global `calibration`",
            "global `logdir`",
            "`resources`",
            "task `imu`: `lock`",
            "task `imu`: `unlock`",
            "task `imu`: `suspend`",
            "task `pool`: `timer`: mode absolute",
            "task `pool`: SCHED_RR; equal priorities do not take turns",
            "task `waves`: `cpus` of single phases; it may always use CPUs 1,3",
            "task `steps`: it has no timer; its loop is taken as a period of 1ms",
            "task `steps`: SCHED_OTHER; it is taken as a real-time task",
            "task `sleeper`: it never computes, so it is no task",
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
fn an_rt_app_round_starts_over_after_its_last_event() {
    let text = r#"{"tasks": {"a": {"run": 10, "timer": {"period": 50}, "run": 7}}}"#;
    let imported = rt_app::read(text).unwrap();
    assert_eq!(imported.set.tasks[0].cost, us(17));
    let text = r#"{"tasks": {"a": {"run": 90, "timer": {"period": 50}}}}"#;
    let imported = rt_app::read(text).unwrap();
    let task = &imported.set.tasks[0];
    assert_eq!(
        (task.cost, task.work.clone()),
        (us(50), Work::Constant(us(90)))
    );
    assert!(imported.left_out[0].contains("the cost 90us exceeds the deadline"));
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
fn simso_tasks_are_in_milliseconds() {
    let imported = simso::read(include_str!("good/simso.xml")).unwrap();
    assert_can_be_written(&imported);
    let set = &imported.set;
    assert_eq!(set.scheduler.policy.as_deref(), Some("g-edf"));
    let half = Share::from_billionths(Share::WHOLE / 2).unwrap();
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    assert_eq!(set.platform.capacities, [whole, half]);
    let imu = &set.tasks[0];
    assert_eq!(
        (imu.cost, imu.period, imu.deadline),
        (us(3_000), us(7_500), us(7_000))
    );
    assert_eq!(
        (imu.offset, imu.affinity.to_string()),
        (us(500), "0,1".to_string())
    );
    let second = task(&imported, "imu-2");
    let at = |us: u64| Instant::from_ns(us * 1_000);
    assert_eq!(
        second.arrival,
        Arrival::Releases(vec![at(0), at(12_500), at(30_000)])
    );
    let third = task(&imported, "T3");
    assert_eq!((third.period, third.cost), (us(5_000), us(2_000)));
    assert_eq!(third.arrival, Arrival::Releases(vec![at(4_000), at(9_000)]));
    assert_left_out(
        &imported,
        &[
            "<simulation>: duration=\"100000000\"",
            "<simulation>: etm=\"wcet\"",
            "CPU 0: cs_overhead=\"120\"",
            "task `imu`: abort_on_miss; late jobs go on",
            "task `imu`: followed_by=\"2\"",
            "task `imu-2`: the release at 15ms, less than a period after the one before",
            "cache `L1`",
        ],
    );
}

#[test]
fn schedcat_numbers_count_a_unit_that_can_be_chosen() {
    let text = include_str!("good/schedcat.xml");
    let imported = schedcat::read(text).unwrap();
    assert_can_be_written(&imported);
    let first = task(&imported, "T1");
    assert_eq!(
        (first.cost, first.period, first.deadline),
        (us(300), us(1_000), us(900))
    );
    assert_eq!(first.affinity.to_string(), "1");
    assert_eq!(task(&imported, "T3").affinity.to_string(), "0,1");
    assert_left_out(
        &imported,
        &[
            "<properties>",
            "task `T1`: wss=\"64\"",
            "task `T2`: <resmodel>",
            "the number of CPUs is not in the file; taken as 2",
        ],
    );
    assert_eq!(imported.set.platform.tick_unit, us(1));
    let options = Options {
        unit: Span::from_ms(1),
        cpus: Some(4),
    };
    let imported = schedcat::read_with(text, &options).unwrap();
    assert_eq!(imported.set.platform.tick_unit, Span::from_ms(1));
    assert_eq!(imported.set.tasks[0].cost, Span::from_ms(300));
    assert_eq!(imported.set.platform.cpus, 4);
}

#[test]
fn schedcat_numbers_that_are_not_whole_are_read_as_they_are() {
    for (wcet, period, deadline) in [("2.5", "10", "9"), ("2", "10.5", "9"), ("2", "10", "9.5")] {
        let text = format!(
            r#"<taskset><task wcet="{wcet}" period="{period}" deadline="{deadline}"/></taskset>"#
        );
        let imported = schedcat::read(&text).unwrap();
        assert_can_be_written(&imported);
        assert_eq!(imported.set.platform.tick_unit, Span::from_ns(1));
        assert_left_out(
            &imported,
            &[
                "the number of CPUs is not in the file; taken as 1",
                "not all times are whole multiples of 1us, which SchedCAT's tests count in; taken \
                 as they are",
            ],
        );
    }
}
