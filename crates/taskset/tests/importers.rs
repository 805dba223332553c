//! Importers: what becomes of other tools' files, and what is named as left out.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_model::{Arrival, Instant, Share, Span, Task};
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
