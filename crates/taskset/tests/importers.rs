//! Importers: what becomes of other tools' files, and what is named as left out.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_model::{
    Arrival, Instant, Join, Phase, Priority, ResourceId, Share, Span, Task, TaskId, Trigger, Work,
};
use shiftwork_taskset::import::{Imported, Options, schedcat, simso};
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
    assert_eq!((third.period, third.cost), (us(7_500), us(2_000)));
    assert_eq!(third.arrival, triggered_by(&[0]));
    assert_left_out(
        &imported,
        &[
            "<simulation>: duration=\"100000000\"",
            "<simulation>: etm=\"wcet\"",
            "CPU 0: cs_overhead=\"120\"",
            "task `imu`: followed_by=\"1\", which has activations of its own; only these are kept",
            "task `imu`: abort_on_miss; late jobs go on",
            "task `imu-2`: the release at 15ms, less than a period after the one before",
            "task `T3`: abort_on_miss; late jobs go on",
            "cache `L1`",
        ],
    );
}

#[test]
fn requests_of_schedcat_are_sections_within_the_cost() {
    let text = r#"<taskset>
  <task id="1" wcet="300" period="1000"><resources>
    <requirement res_id="7" max_writes="2" max_write_length="20"/>
    <requirement res_id="3" max_writes="0" max_reads="1" max_read_length="50"/>
  </resources></task>
  <task id="2" wcet="10" period="500"><resources><requirement res_id="7" max_write_length="10"/></resources></task>
  <task id="3" wcet="10" period="500"><resources><requirement res_id="3" max_write_length="11"/></resources></task>
</taskset>"#;
    let imported = schedcat::read(text).unwrap();
    assert_can_be_written(&imported);
    let set = &imported.set;
    let names: Vec<&str> = set.resources.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["R7", "R3"]);
    let section = |mutex: usize, length| {
        let mutex = ResourceId::from_index(mutex);
        [
            Phase::Lock(mutex),
            Phase::Run(us(length)),
            Phase::Unlock(mutex),
        ]
    };
    let run = |length| [Phase::Run(us(length))].to_vec();
    let first = [
        &run(54)[..],
        &section(0, 20),
        &run(52),
        &section(0, 20),
        &run(52),
        &section(1, 50),
        &run(52),
    ];
    assert_eq!(task(&imported, "T1").work, Work::Phases(first.concat()));
    assert_eq!(
        task(&imported, "T2").work,
        Work::Phases(section(0, 10).to_vec())
    );
    assert_eq!(task(&imported, "T3").work, Work::Cost);
    assert_left_out(
        &imported,
        &[
            "task `T1`: reads of several jobs at once; each has the mutex alone",
            "task `T3`: its requests take longer than its jobs; it has none",
            "the number of CPUs is not in the file; taken as 1",
            "the protocol of the mutexes is not in the file; taken as `inheritance`",
        ],
    );
}

#[test]
fn request_of_schedcat_that_is_no_whole_unit_is_kept_as_it_is() {
    let text = "<taskset><task id=\"1\" wcet=\"3\" period=\"10\"><resources>\
                <requirement max_write_length=\"0.5\"/></resources></task></taskset>";
    let imported = schedcat::read(text).unwrap();
    assert_can_be_written(&imported);
    assert_eq!(imported.set.platform.tick_unit, Span::from_ns(1));
    let half = Phase::Run(Span::from_ns(500));
    assert!(imported.set.tasks[0].phases().contains(&half));
}

/// By any of these tasks.
fn triggered_by(sources: &[usize]) -> Arrival {
    Arrival::Triggered(Trigger {
        sources: sources.iter().copied().map(TaskId::from_index).collect(),
        join: Join::Any,
        queue: None,
    })
}

/// A file with this scheduler, two processors, and tasks with these attributes.
fn simso_file(class: &str, tasks: &[&str]) -> String {
    let tasks = tasks
        .iter()
        .zip(1..)
        .map(|(of, id)| format!("<task name=\"t{id}\" id=\"{id}\" abort_on_miss=\"no\" {of}/>"));
    format!(
        "<simulation><sched class=\"simso.schedulers.{class}\"/><processors><processor name=\"a\" id=\"1\"/>\
         <processor name=\"b\" id=\"2\"/></processors><tasks><field name=\"priority\" type=\"int\"/>{}</tasks></simulation>",
        tasks.collect::<String>()
    )
}

#[test]
fn schedulers_of_simso_become_policies() {
    let tasks = [
        "WCET=\"6\" period=\"20\" priority=\"-3\"",
        "WCET=\"1\" period=\"10\" priority=\"7\"",
        "WCET=\"4\" period=\"20\" priority=\"7\"",
        "WCET=\"1\" period=\"5\" priority=\"0.5\"",
    ];
    let read = |class| simso::read(&simso_file(class, &tasks)).unwrap();
    let by_period = [3, 2, 3, 1].map(Some);
    for (class, policy, priorities, cpus) in [
        ("EDF", "g-edf", [None; 4], ["0,1"; 4]),
        ("EDF_mono", "p-edf", [None; 4], ["0"; 4]),
        ("RM", "g-fp", by_period, ["0,1"; 4]),
        ("RM_mono", "p-fp", by_period, ["0"; 4]),
        // By utilization: 0.3 | 0.1, 0.2 | 0.2 goes to the first of two with 0.3.
        ("P_RM", "p-fp", by_period, ["0", "1", "1", "0"]),
        ("FP", "g-fp", [3, 1, 1, 2].map(Some), ["0,1"; 4]),
        ("PD2", "pd2", [None; 4], ["0,1"; 4]),
    ] {
        let imported = read(class);
        assert_can_be_written(&imported);
        let set = &imported.set;
        assert_eq!(set.scheduler.policy.as_deref(), Some(policy), "{class}");
        let found = set.tasks.iter().map(|task| {
            let priority = task.priority.map(Priority::number);
            (priority, task.affinity.to_string())
        });
        let expected = priorities.into_iter().zip(cpus.map(str::to_owned));
        assert!(found.eq(expected), "{class}: {set:?}");
        assert_left_out(&imported, &[]);
    }
    assert_eq!(read("PD2").set.scheduler.quantum, Some(us(100)));
    let unknown = read("LLREF");
    assert_eq!(unknown.set.scheduler.policy, None);
    assert_left_out(
        &unknown,
        &["the scheduler `simso.schedulers.LLREF`; choose one with --policy"],
    );
    let without = simso::read(&simso_file("FP", &["WCET=\"1\" period=\"5\""])).unwrap();
    assert_left_out(
        &without,
        &["the scheduler `simso.schedulers.FP`: task `t1` has no `priority`"],
    );
}

#[test]
fn aperiodic_tasks_of_simso_are_triggered_by_what_they_follow() {
    let text = simso_file(
        "EDF",
        &[
            "WCET=\"1\" period=\"10\" followed_by=\"3\"",
            "WCET=\"1\" period=\"10\" followed_by=\"3\"",
            "WCET=\"1\" deadline=\"9\" task_type=\"APeriodic\" followed_by=\"4\"",
            "WCET=\"1\" deadline=\"8\" periodic=\"no\"",
            "WCET=\"1\" deadline=\"8\" task_type=\"APeriodic\" followed_by=\"6\"",
            "WCET=\"1\" deadline=\"8\" task_type=\"APeriodic\"",
            "WCET=\"1\" period=\"10\" followed_by=\"99\"",
        ],
    );
    let imported = simso::read(&text).unwrap();
    assert_can_be_written(&imported);
    let names: Vec<&str> = imported.set.tasks.iter().map(|task| &*task.name).collect();
    assert_eq!(names, ["t1", "t2", "t3", "t4", "t7"]);
    let (third, fourth) = (task(&imported, "t3"), task(&imported, "t4"));
    assert_eq!(third.arrival, triggered_by(&[0, 1]));
    assert_eq!((third.period, third.deadline), (us(5_000), us(9_000)));
    assert_eq!(fourth.arrival, triggered_by(&[2]));
    assert_eq!((fourth.period, fourth.deadline), (us(5_000), us(8_000)));
    assert_left_out(
        &imported,
        &[
            "task `t5`: it is aperiodic, and nothing is followed by it: it never has a job",
            "task `t6`: it is aperiodic, and nothing is followed by it: it never has a job",
            "task `t7`: followed_by=\"99\", and there is no such task",
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
