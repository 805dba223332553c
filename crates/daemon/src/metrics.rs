//! Metrics for Prometheus, in a file for the textfile collector of its node exporter.
//!
//! The text format of version 0.0.4: the collector refuses the end marker of OpenMetrics.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use shiftwork_client::{State, Status, Task};
use shiftwork_model::TaskId;

use crate::files::{Durability, Files, replace};
use crate::statistics::{TaskCounters, TaskStatistics};

/// Replaces the file atomically by the metrics of this status and these statistics. The collector reads only files with names
/// that end in `.prom`.
///
/// # Errors
/// If the file cannot be written. Then it is unchanged.
pub(crate) fn write(
    files: &dyn Files,
    path: &Path,
    status: &Status,
    statistics: &TaskStatistics,
    totals: Totals,
) -> io::Result<()> {
    /// The exporter runs as another user, which must read the file whatever the umask of the daemon.
    const MODE: u32 = 0o644;
    let text = text(status, statistics, totals);
    replace(files, path, MODE, text.as_bytes(), Durability::Cached)
}

/// Counters of the daemon since its start that no status shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Number of problems.
    pub problems: u64,
    /// Number of reservations that were lost, without a request of their owners.
    pub reservations_lost: u64,
    /// How often a thread that waited for a lock lent its reservation.
    pub loans: u64,
}

/// Value of a metric of a task, from its status and its counters.
type Metric = fn(&Task, &TaskCounters) -> f64;

/// Name, type, help and value of each metric of a task. Times are in seconds, as is the convention of Prometheus.
const TASK_METRICS: [(&str, &str, &str, Metric); 9] = [
    (
        "cost_seconds",
        "gauge",
        "CPU time reserved in each period, in seconds",
        |it, _| seconds(it.reservation.cost.as_ns()),
    ),
    (
        "period_seconds",
        "gauge",
        "Period of the reservation, in seconds",
        |it, _| seconds(it.reservation.period.as_ns()),
    ),
    (
        "served",
        "gauge",
        "Whether the reservation is in effect (1) or the task waits for it (0)",
        |it, _| f64::from(u8::from(it.state == State::Admitted)),
    ),
    ("jobs_total", "counter", "Completed jobs", |_, counters| {
        counters.jobs as f64
    }),
    (
        "deadline_misses_total",
        "counter",
        "Jobs that missed their deadlines",
        |_, counters| counters.misses as f64,
    ),
    (
        "overruns_total",
        "counter",
        "Exhausted budgets",
        |_, counters| counters.overruns as f64,
    ),
    (
        "tardiness_max_seconds",
        "gauge",
        "Maximum tardiness of any job, in seconds",
        |_, counters| seconds(counters.tardiness_max.as_ns()),
    ),
    (
        "response_max_seconds",
        "gauge",
        "Maximum response time of any job, from waking up to blocking, in seconds",
        |_, counters| seconds(counters.response_max.as_ns()),
    ),
    (
        "cpu_seconds_total",
        "counter",
        "CPU time of all jobs, in seconds",
        |_, counters| seconds(counters.ran.as_ns()),
    ),
];

/// All metrics.
fn text(status: &Status, statistics: &TaskStatistics, totals: Totals) -> String {
    let mut out = String::new();
    for (name, kind, help, value_of) in TASK_METRICS {
        header(&mut out, &format!("task_{name}"), kind, help);
        for task in &status.tasks {
            let labels = format!(
                "task=\"{}\",name=\"{}\",thread=\"{}\",user=\"{}\"",
                task.task,
                escaped(&task.name),
                task.thread,
                task.user
            );
            let counters = statistics.of(TaskId::from_index(task.task as usize));
            let value = value_of(task, &counters.copied().unwrap_or_default());
            sample(&mut out, &format!("task_{name}"), &labels, value);
        }
    }
    header(
        &mut out,
        "cpu_load",
        "gauge",
        "Fraction of CPU time used by reserved tasks",
    );
    for cpu in &status.cpus {
        sample(
            &mut out,
            "cpu_load",
            &format!("cpu=\"{}\"", cpu.cpu),
            cpu.load,
        );
    }
    header(
        &mut out,
        "cpu_online",
        "gauge",
        "Whether the CPU is online (1) or not (0)",
    );
    for cpu in &status.cpus {
        let online = f64::from(u8::from(cpu.online));
        sample(
            &mut out,
            "cpu_online",
            &format!("cpu=\"{}\"", cpu.cpu),
            online,
        );
    }
    for (name, help) in [
        (
            "reserved_cpus",
            "Sum of the utilizations reserved within these CPUs",
        ),
        (
            "free_share",
            "Largest utilization of a further task that would be admitted on these CPUs",
        ),
    ] {
        header(&mut out, name, "gauge", help);
        for room in &status.rooms {
            let value = match name {
                "free_share" => room.free,
                _ => room.reserved,
            };
            sample(
                &mut out,
                name,
                &format!("cpus=\"{}\"", escaped(&room.cpus)),
                value,
            );
        }
    }
    let help =
        "Missed deadlines of all tasks since the daemon started, including tasks that have ended";
    header(&mut out, "deadline_misses_total", "counter", help);
    sample(&mut out, "deadline_misses_total", "", status.misses as f64);
    let help = "Scheduling events lost because the ring buffer was full";
    header(&mut out, "events_lost_total", "counter", help);
    sample(&mut out, "events_lost_total", "", status.lost as f64);
    for (name, kind, help, value) in [
        (
            "problems",
            "gauge",
            "Things that do not work for now, though the daemon goes on; the status names them",
            status.problems.len() as u64,
        ),
        (
            "problems_total",
            "counter",
            "Such problems since the daemon started",
            totals.problems,
        ),
        (
            "reservations_lost_total",
            "counter",
            "Reservations that were lost, at least for a time, without a request of their owners",
            totals.reservations_lost,
        ),
        (
            "loans_total",
            "counter",
            "Times that a thread which waited for a lock lent its reservation to the holder",
            totals.loans,
        ),
    ] {
        header(&mut out, name, kind, help);
        sample(&mut out, name, "", value as f64);
    }
    out
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn header(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "# HELP shiftwork_{name} {help}.");
    let _ = writeln!(out, "# TYPE shiftwork_{name} {kind}");
}

fn sample(out: &mut String, name: &str, labels: &str, value: f64) {
    let _ = match labels {
        "" => writeln!(out, "shiftwork_{name} {value}"),
        labels => writeln!(out, "shiftwork_{name}{{{labels}}} {value}"),
    };
}

/// The value of a label, escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use shiftwork_client::{Cpu, Reservation, Room};
    use shiftwork_model::{Instant, JobId, Record, RecordKind, Span};

    use super::*;
    use crate::files::Disk;

    fn status() -> Status {
        Status {
            version: "1".to_owned(),
            policy: "strong-edf".to_owned(),
            guarantee: "hard".to_owned(),
            cpus: vec![Cpu {
                cpu: 3,
                online: true,
                running: None,
                load: 0.25,
                share: 0.95,
                reserve: 0.05,
            }],
            rooms: vec![Room {
                cpus: "2-3".to_owned(),
                reserved: 0.2,
                free: 0.75,
            }],
            tasks: vec![Task {
                task: 1,
                name: "a\"b\\".to_owned(),
                process: 7,
                thread: 8,
                user: 9,
                cgroup: "/".to_owned(),
                reservation: Reservation::new(Span::from_ms(2), Span::from_ms(10)),
                state: State::Demoted,
                guarantee: "none".to_owned(),
                cpu: None,
                jobs: 12,
                misses: 1,
                overruns: 0,
                tardiness_max: Span::from_us(1_500),
                response_max: Span::from_ms(9),
                ran: Span::from_s(3),
                load: 0.25,
            }],
            misses: 4,
            since: Instant::ZERO,
            now: Instant::ZERO,
            lost: 0,
            problems: vec!["full".to_owned()],
        }
    }

    /// One job, released at 10 ms, due at 18 ms, and completed 1.5 ms later.
    fn statistics() -> TaskStatistics {
        let task = TaskId::from_index(1);
        let job = JobId { task, number: 1 };
        let mut statistics = TaskStatistics::default();
        statistics.insert(task);
        let released = RecordKind::Released {
            job,
            deadline: Instant::from_ns(18_000_000),
        };
        for (at_us, kind) in [(10_000, released), (19_500, RecordKind::Completed { job })] {
            let at = Instant::from_ns(at_us * 1_000);
            statistics.record(&Record { at, kind });
        }
        statistics
    }

    #[test]
    fn every_metric_has_its_sample() {
        let text = text(&status(), &statistics(), Totals::default());
        let labels = r#"{task="1",name="a\"b\\",thread="8",user="9"}"#;
        for line in [
            format!("shiftwork_task_cost_seconds{labels} 0.002"),
            format!("shiftwork_task_served{labels} 0"),
            format!("shiftwork_task_jobs_total{labels} 1"),
            format!("shiftwork_task_tardiness_max_seconds{labels} 0.0015"),
            format!("shiftwork_task_response_max_seconds{labels} 0.0095"),
            format!("shiftwork_task_cpu_seconds_total{labels} 0"),
            "shiftwork_cpu_load{cpu=\"3\"} 0.25".to_owned(),
            "shiftwork_free_share{cpus=\"2-3\"} 0.75".to_owned(),
            "shiftwork_deadline_misses_total 4".to_owned(),
            "shiftwork_problems 1".to_owned(),
            "shiftwork_reservations_lost_total 0".to_owned(),
            "# TYPE shiftwork_task_jobs_total counter".to_owned(),
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        // Each metric is declared once, before its samples.
        let types: Vec<&str> = text.lines().filter(|it| it.starts_with("# TYPE")).collect();
        let mut unique = types.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(types.len(), unique.len());
        assert!(text.ends_with('\n') && !text.contains("EOF"));
    }

    #[test]
    fn alerts_and_dashboard_name_metrics_that_there_are() {
        let text = text(&status(), &statistics(), Totals::default());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitoring");
        for file in ["alerts.yml", "alerts.test.yml", "dashboard.json"] {
            let uses = fs::read_to_string(folder.join(file)).unwrap();
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let names = uses.split(|c| !is_name(c));
            let mut names: Vec<_> = names.filter(|it| it.starts_with("shiftwork_")).collect();
            names.sort_unstable();
            names.dedup();
            assert!(names.len() >= 5, "{file} names only {names:?}");
            for name in names {
                let declared = format!("# TYPE {name} ");
                assert!(text.contains(&declared), "{file}: there is no {name}");
            }
        }
    }

    #[test]
    fn file_is_replaced_and_readable_by_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shiftwork.prom");
        let totals = Totals::default();
        write(&Disk, &path, &status(), &statistics(), totals).unwrap();
        let first = fs::read_to_string(&path).unwrap();
        // An interrupted write left a file that only root can read.
        let beside = folder.path().join("shiftwork.new");
        fs::write(&beside, "").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
        let totals = Totals::default();
        write(&Disk, &path, &status(), &statistics(), totals).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), first);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
