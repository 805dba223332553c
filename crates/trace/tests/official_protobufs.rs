//! Traces can be decoded by Perfetto's own protobufs of its Python package, and contain the recorded events. The
//! assertions are in `official_protobufs.py`.
//!
//! The interpreter is `$SHIFTWORK_PYTHON`, or `python3`; without it or the package (see
//! `requirements.txt`) the test prints SKIPPED and passes.

use std::path::Path;
use std::process::Command;

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, JobId, NotReadyReason, Priority, RecordKind, Recorder, Span,
    Task, TaskId, TaskSet,
};
use shiftwork_trace::perfetto::{Provenance, Writer};

/// Exit status of the script if the package is missing.
const MISSING: i32 = 77;

/// Two tasks on two CPUs: a shift, a spent budget, a missed deadline, and a CPU that goes away.
fn record_kinds() -> Vec<(u64, RecordKind)> {
    let job = |index| JobId {
        task: TaskId::from_index(index),
        number: 1,
    };
    let [imu, gps] = [job(0), job(1)];
    let due = |ms: u64| Instant::ZERO + Span::from_ms(ms);
    let ready = |job: JobId, ms| RecordKind::Ready {
        job,
        deadline: due(ms),
        priority: Priority::MOST_URGENT,
    };
    let switch = |cpu, from, to| RecordKind::Switched {
        cpu: CpuId::from_index(cpu),
        from,
        to,
    };
    let budget = Span::from_ms(17);
    vec![
        (
            0,
            RecordKind::Released {
                job: imu,
                deadline: due(10),
            },
        ),
        (0, ready(imu, 10)),
        (0, switch(0, None, Some(imu))),
        (
            0,
            RecordKind::Released {
                job: gps,
                deadline: due(20),
            },
        ),
        (0, ready(gps, 20)),
        (0, switch(1, None, Some(gps))),
        (4, RecordKind::Completed { job: imu }),
        (4, switch(0, Some(imu), Some(gps))),
        (4, switch(1, Some(gps), None)),
        (6, RecordKind::BudgetSpent { job: gps }),
        (
            6,
            RecordKind::NotReady {
                job: gps,
                reason: NotReadyReason::Throttled,
            },
        ),
        (6, switch(0, Some(gps), None)),
        (
            8,
            RecordKind::Replenished {
                task: gps.task,
                budget,
                deadline: due(40),
            },
        ),
        (8, ready(gps, 40)),
        (8, switch(0, None, Some(gps))),
        (25, RecordKind::Completed { job: gps }),
        (25, switch(0, Some(gps), None)),
        (
            26,
            RecordKind::CpuOffline {
                cpu: CpuId::from_index(1),
            },
        ),
        (
            28,
            RecordKind::CpuOnline {
                cpu: CpuId::from_index(1),
            },
        ),
    ]
}

fn trace() -> Vec<u8> {
    let all = Affinity::new(CpuSet::first(2)).expect("there are two CPUs");
    let task = |name, ms| Task::periodic(name, Span::from_ms(4), Span::from_ms(ms), all);
    let set = TaskSet::new("example", 2, vec![task("imu", 10), task("gps", 20)]);
    let horizon = Instant::ZERO + Span::from_ms(30);
    let provenance = Provenance {
        tool: "shiftwork 0".into(),
        policy: "g-edf".into(),
        seed: Some(7),
        horizon,
        task_set: "name = \"example\"\n".into(),
    };
    let mut writer = Writer::new(&set, &provenance, Vec::new()).with_sched_switch(&set);
    for (ms, kind) in record_kinds() {
        writer.record(Instant::ZERO + Span::from_ms(ms), &kind);
    }
    writer.finish(horizon).expect("memory takes everything")
}

#[test]
fn official_protobufs_decode_the_recorded_events() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("official_protobufs.pftrace");
    std::fs::write(&file, trace()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official_protobufs.py");
    let python = std::env::var("SHIFTWORK_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = match Command::new(&python).arg(script).arg(&file).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED, NOT TESTED: {python} cannot be started: {error}");
            return;
        }
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if output.status.code() == Some(MISSING) {
        eprintln!("SKIPPED, NOT TESTED: {text}");
        return;
    }
    assert!(output.status.success(), "{text}");
    eprintln!("{text}");
}
