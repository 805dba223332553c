//! Figures for Prometheus, as its node exporter takes them from a file.
//!
//! The text format of version 0.0.4, which the textfile collector reads: not OpenMetrics, whose end mark it refuses.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use shiftwork_client::{State, Status, Task};

/// Writes the figures of this status in place of the file, which is whole at every moment.
///
/// # Errors
/// If the file cannot be written. Then it is as before.
pub fn write(path: &Path, status: &Status) -> io::Result<()> {
    // The collector reads only what ends in `.prom`.
    let beside = path.with_extension("new");
    fs::write(&beside, text(status))?;
    // The exporter is another user, whatever files of ours are like otherwise.
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o644))?;
    fs::rename(&beside, path)
}

/// A figure of a task.
type Metric = fn(&Task) -> f64;

/// Name, kind, help, and where it comes from. Times are seconds, as Prometheus has it.
const TASK_METRICS: [(&str, &str, &str, Metric); 9] = [
    (
        "cost_seconds",
        "gauge",
        "Processor time reserved in each period",
        |it| seconds(it.reservation.cost.as_ns()),
    ),
    (
        "period_seconds",
        "gauge",
        "The period of the reservation",
        |it| seconds(it.reservation.period.as_ns()),
    ),
    ("served", "gauge", "Whether it has what it reserved", |it| {
        f64::from(u8::from(it.state == State::Admitted))
    }),
    ("jobs_total", "counter", "Finished jobs", |it| {
        it.jobs as f64
    }),
    (
        "deadline_misses_total",
        "counter",
        "Jobs that missed their deadlines",
        |it| it.misses as f64,
    ),
    (
        "overruns_total",
        "counter",
        "How often the cost was used up",
        |it| it.overruns as f64,
    ),
    (
        "tardiness_max_seconds",
        "gauge",
        "By how much the latest job was late",
        |it| seconds(it.tardiness_max.as_ns()),
    ),
    (
        "response_max_seconds",
        "gauge",
        "The longest from waking up to blocking",
        |it| seconds(it.response_max.as_ns()),
    ),
    (
        "cpu_seconds_total",
        "counter",
        "Processor time of all jobs",
        |it| seconds(it.ran.as_ns()),
    ),
];

/// The text.
fn text(status: &Status) -> String {
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
            sample(&mut out, &format!("task_{name}"), &labels, value_of(task));
        }
    }
    header(&mut out, "cpu_load", "gauge", "What tasks ran of the CPU");
    for cpu in &status.cpus {
        sample(
            &mut out,
            "cpu_load",
            &format!("cpu=\"{}\"", cpu.cpu),
            cpu.load,
        );
    }
    header(&mut out, "cpu_online", "gauge", "Whether the CPU is there");
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
        ("reserved_cpus", "What is reserved within these CPUs"),
        (
            "free_share",
            "The largest share that would still be admitted on these CPUs",
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
    let help = "Missed deadlines of all tasks that there ever were";
    header(&mut out, "deadline_misses_total", "counter", help);
    sample(&mut out, "deadline_misses_total", "", status.misses as f64);
    let help = "Facts that the kernel could not tell";
    header(&mut out, "facts_lost_total", "counter", help);
    sample(&mut out, "facts_lost_total", "", status.lost as f64);
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

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use shiftwork_client::{Cpu, Reservation, Room};
    use shiftwork_model::{Instant, Span};

    use super::*;

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
            }],
            misses: 4,
            since: Instant::ZERO,
            now: Instant::ZERO,
            lost: 0,
        }
    }

    #[test]
    fn every_figure_has_its_line() {
        let text = text(&status());
        let labels = r#"{task="1",name="a\"b\\",thread="8",user="9"}"#;
        for line in [
            format!("shiftwork_task_cost_seconds{labels} 0.002"),
            format!("shiftwork_task_served{labels} 0"),
            format!("shiftwork_task_jobs_total{labels} 12"),
            format!("shiftwork_task_tardiness_max_seconds{labels} 0.0015"),
            format!("shiftwork_task_cpu_seconds_total{labels} 3"),
            "shiftwork_cpu_load{cpu=\"3\"} 0.25".to_owned(),
            "shiftwork_free_share{cpus=\"2-3\"} 0.75".to_owned(),
            "shiftwork_deadline_misses_total 4".to_owned(),
            "# TYPE shiftwork_task_jobs_total counter".to_owned(),
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        // Each figure is declared once, before its samples.
        let types: Vec<&str> = text.lines().filter(|it| it.starts_with("# TYPE")).collect();
        let mut unique = types.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(types.len(), unique.len());
        assert!(text.ends_with('\n') && !text.contains("EOF"));
    }

    #[test]
    fn the_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shiftwork.prom");
        write(&path, &status()).unwrap();
        let first = fs::read_to_string(&path).unwrap();
        // One that was interrupted left a file that is root's alone.
        let beside = folder.path().join("shiftwork.new");
        fs::write(&beside, "").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
        write(&path, &status()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), first);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
