//! Facts in words of JSON, and back.

use serde_json::{Value, json};
use shiftwork_live::standing::{Absence, FactKind};
use shiftwork_model::{CpuSet, Priority, Span};

const ABSENCES: [(Absence, &str); 3] = [
    (Absence::Offline, "offline"),
    (Absence::Taken, "taken"),
    (Absence::Background, "background"),
];

/// What happened, and a value with its key where there is one.
pub(super) fn of(what: &FactKind) -> (&'static str, Option<(&'static str, Value)>) {
    let cpus = |cpus: &CpuSet| Some(("cpus", Value::from(cpus.to_string())));
    let why = |why: &Absence| {
        let (_, name) = ABSENCES.iter().find(|(it, _)| it == why)?;
        Some(("why", json!(name)))
    };
    match what {
        FactKind::Woken => ("woken", None),
        FactKind::Blocked => ("blocked", None),
        FactKind::Yielded => ("yielded", None),
        FactKind::Spent => ("spent", None),
        FactKind::Replenished { deadline_ns } => {
            ("replenished", Some(("deadline_ns", json!(deadline_ns))))
        }
        FactKind::Overrun => ("overrun", None),
        FactKind::Ready { deadline_ns } => ("ready", Some(("deadline_ns", json!(deadline_ns)))),
        FactKind::Assigned => ("assigned", None),
        FactKind::Running => ("running", None),
        FactKind::Stopped { ran } => ("stopped", Some(("ran_ns", json!(ran.as_ns())))),
        FactKind::Entered { cpus: some } => ("entered", cpus(some)),
        FactKind::Left => ("left", None),
        FactKind::Affinity { cpus: some } => ("affinity", cpus(some)),
        FactKind::Demoted { asked } => ("demoted", cpus(asked)),
        FactKind::Narrowed { cpus: some } => ("narrowed", some.as_ref().and_then(cpus)),
        FactKind::Prioritized { priority } => {
            ("prioritized", Some(("priority", json!(priority.number()))))
        }
        FactKind::CpuLost { why: absence } => ("cpu-lost", why(absence)),
        FactKind::CpuBack { why: absence } => ("cpu-back", why(absence)),
        _ => ("other", None),
    }
}

/// The other way round: `None` if the fact lacks its value, `Some(None)` if what is said is none that is known here.
pub(super) fn read(what: &str, line: &Value) -> Option<Option<FactKind>> {
    let ns = |key: &str| line[key].as_u64();
    let cpus = || line["cpus"].as_str()?.parse::<CpuSet>().ok();
    let why = || {
        let name = line["why"].as_str()?;
        let found = ABSENCES.iter().find(|(_, it)| *it == name);
        found.map(|(why, _)| *why)
    };
    let kind = match what {
        "woken" => FactKind::Woken,
        "blocked" => FactKind::Blocked,
        "yielded" => FactKind::Yielded,
        "spent" => FactKind::Spent,
        "replenished" => FactKind::Replenished {
            deadline_ns: ns("deadline_ns")?,
        },
        "overrun" => FactKind::Overrun,
        "ready" => FactKind::Ready {
            deadline_ns: ns("deadline_ns")?,
        },
        "assigned" => FactKind::Assigned,
        "running" => FactKind::Running,
        "stopped" => FactKind::Stopped {
            ran: Span::from_ns(ns("ran_ns")?),
        },
        "entered" => FactKind::Entered { cpus: cpus()? },
        "left" => FactKind::Left,
        "affinity" => FactKind::Affinity { cpus: cpus()? },
        "demoted" => FactKind::Demoted { asked: cpus()? },
        "narrowed" => FactKind::Narrowed { cpus: cpus() },
        "prioritized" => FactKind::Prioritized {
            priority: Priority::new(u32::try_from(ns("priority")?).ok()?)?,
        },
        "cpu-lost" => FactKind::CpuLost { why: why()? },
        "cpu-back" => FactKind::CpuBack { why: why()? },
        _ => return Some(None),
    };
    Some(Some(kind))
}
