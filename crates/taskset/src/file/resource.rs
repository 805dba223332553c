//! The `[[resource]]` tables of a task-set file: mutexes, and the mistakes in how tasks use them.

use shiftwork_model::{CPUS_MAX, CpuId, Phase, Protocol, Resource, ResourceId, TaskSet};

use crate::cpus::Names;
use crate::error::{LockWhileHolding, TasksetError};
use crate::keys::{Key, Takes, may, must, words};
use crate::tree::{Table, Value};

pub(super) static KEYS: [Key; 3] = [
    must(
        "name",
        Takes::Name,
        "The name of the mutex; no other resource has it.",
    ),
    may(
        "protocol",
        Takes::Words(|| words(&PROTOCOLS)),
        "By what a job that holds it is scheduled: its own rank, that of the most urgent job that waits for it, the same \
         on the CPUs of those that wait too (`migratory`) or with a queue (`omlp`), at once that of the most urgent task that uses it, or not to be preempted, which \
         jobs that wait are not either with `spin`, or before all others of its CPU in the order of requests \
         (`fmlp+`) or of ceilings (`mpcp`, and `dpcp` on the CPU of the mutex); default `none`.",
    ),
    may(
        "cpu",
        Takes::Whole(0, CPUS_MAX as u32 - 1),
        "The CPU on which jobs execute that hold it, with `dpcp`.",
    ),
];

pub(super) const PROTOCOLS: [(&str, Protocol); 10] = [
    named(Protocol::None),
    named(Protocol::Inheritance),
    named(Protocol::Migratory),
    named(Protocol::Omlp),
    named(Protocol::Ceiling),
    named(Protocol::NonPreemptive),
    named(Protocol::Spin),
    named(Protocol::Fmlp),
    named(Protocol::Mpcp),
    named(Protocol::Dpcp(CpuId::from_index(0))),
];

const fn named(protocol: Protocol) -> (&'static str, Protocol) {
    (protocol.name(), protocol)
}

/// The resources of a file, for what refers to them.
pub(super) struct Resources {
    pub(super) all: Vec<Resource>,
    /// The mistake in the first that could not be read: what seems unknown may be that one.
    unsure: Option<TasksetError>,
}

impl Resources {
    /// Reads every `[[resource]]`; mistakes are noted in the file.
    pub(super) fn read(file: &Table<'_>, names: &Names) -> Self {
        let mut all: Vec<Resource> = Vec::new();
        let mut unsure = None;
        for value in file.items("resource") {
            match file.source().note(read(&value, &all, names)) {
                Ok(resource) => all.push(resource),
                Err(mistake) => drop(unsure.get_or_insert(mistake)),
            }
        }
        Self { all, unsure }
    }

    /// The resource that `value` names.
    pub(super) fn find(&self, value: &Value<'_>) -> Result<ResourceId, TasksetError> {
        let name = value.text("the name of a resource")?;
        let found = self.all.iter().position(|resource| resource.name == name);
        if let Some(index) = found {
            return Ok(ResourceId::from_index(index));
        }
        let unknown = || TasksetError::UnknownResource {
            place: value.place(),
            key: value.key(),
            resource: name.to_string(),
            known: self.all.iter().map(|it| it.name.clone()).collect(),
        };
        Err(self.unsure.clone().unwrap_or_else(unknown))
    }
}

fn read(value: &Value<'_>, before: &[Resource], names: &Names) -> Result<Resource, TasksetError> {
    let mut table = value.table(&KEYS, "a table [[resource]]")?;
    table.rename("a resource".to_string());
    let name = table.need_map("name", "name = \"bus\"", |value| {
        let name = value.name("a name that no other resource has")?;
        match before.iter().any(|other| other.name == name) {
            true => Err(value.out_of_range(
                format!("\"{name}\", as of a resource before it"),
                "a name that no other resource has".to_string(),
            )),
            false => Ok(name.to_string()),
        }
    });
    let protocol = table.map("protocol", |value| value.word(&PROTOCOLS));
    let protocol = protocol.map(Option::unwrap_or_default);
    let protocol = match protocol {
        Ok(Protocol::Dpcp(_)) => {
            let cpu = table.need_map("cpu", "cpu = 0", |value| names.cpu(value));
            cpu.map(Protocol::Dpcp)
        }
        other => {
            let is_known = other.is_ok();
            let cpu = table.map("cpu", |value| match is_known {
                false => Ok(()),
                true => Err(value.out_of_range(
                    "there, and jobs that hold this mutex stay on their CPUs".to_string(),
                    "protocol = \"dpcp\", or no `cpu`".to_string(),
                )),
            });
            cpu.and(other)
        }
    };
    Ok(Resource {
        name: name?,
        protocol: protocol?,
    })
}

/// Checks the phases of a job: what it locks it unlocks, and it locks nothing that it holds.
///
/// # Errors
/// The first mistake, at the list of phases.
pub(super) fn check_phases(
    value: &Value<'_>,
    phases: &[Phase],
    resources: &Resources,
) -> Result<(), TasksetError> {
    let name = |id: ResourceId| &resources.all[id.index()].name;
    let mistake = |found: String, accepted: String| Err(value.out_of_range(found, accepted));
    let protocol = |id: ResourceId| resources.all[id.index()].protocol;
    let mut held: Vec<ResourceId> = Vec::new();
    for phase in phases {
        let may_wait = match *phase {
            Phase::Sleep(_) => true,
            Phase::Lock(id) => protocol(id) != Protocol::Spin,
            Phase::Run(_) | Phase::Unlock(_) | Phase::Trigger(_) => false,
        };
        let kept = held.iter().find(|id| protocol(**id).may_not_suspend());
        if let Some(kept) = kept.filter(|_| may_wait) {
            return mistake(
                format!(
                    "a list by which a job may wait, and give up its CPU, while it holds `{}`, which {}",
                    name(*kept),
                    match protocol(*kept).boosts() {
                        true => format!("has protocol \"{}\"", protocol(*kept).name()),
                        false => "is not preempted".to_string(),
                    }
                ),
                format!(
                    "between {{ lock = \"{0}\" }} and {{ unlock = \"{0}\" }} only runs, and locks of resources with protocol \"spin\"",
                    name(*kept)
                ),
            );
        }
        match *phase {
            Phase::Lock(id) if held.contains(&id) => {
                return mistake(
                    format!("a list that locks `{0}` while `{0}` is locked", name(id)),
                    format!("{{ unlock = \"{}\" }} before it is locked again", name(id)),
                );
            }
            Phase::Lock(id) => held.push(id),
            Phase::Unlock(id) if !held.contains(&id) => {
                return mistake(
                    format!(
                        "a list that unlocks `{0}` while `{0}` is not locked",
                        name(id)
                    ),
                    format!("{{ lock = \"{}\" }} before it", name(id)),
                );
            }
            Phase::Unlock(id) => held.retain(|other| *other != id),
            Phase::Run(_) | Phase::Sleep(_) | Phase::Trigger(_) => {}
        }
    }
    match held.first() {
        None => Ok(()),
        Some(&id) => mistake(
            format!("a list that locks `{}` and never unlocks it", name(id)),
            format!("{{ unlock = \"{}\" }} after it", name(id)),
        ),
    }
}

/// Reports tasks that may wait for each other for ever, and those that lock mutexes and may be throttled meanwhile.
pub(super) fn check(file: &Table<'_>, set: &TaskSet) {
    let values = file.items("task");
    for (value, task) in values.iter().zip(&set.tasks) {
        if task.locks() && task.may_be_throttled() {
            value.report(TasksetError::ThrottledWithLocks {
                place: value.place(),
                task: task.name.clone(),
                longest: task.longest_run(),
                cost: task.cost,
            });
        }
    }
    if let Some(cycle) = set.deadlock()
        && let Some(value) = cycle.first().and_then(|it| values.get(it.task.index()))
    {
        let name = |id: ResourceId| set.resources[id.index()].name.clone();
        let locks = cycle.iter().map(|it| LockWhileHolding {
            task: set.tasks[it.task.index()].name.clone(),
            held: name(it.held),
            locked: name(it.locked),
        });
        value.report(TasksetError::Deadlock {
            place: value.place(),
            locks: locks.collect(),
        });
    }
}
