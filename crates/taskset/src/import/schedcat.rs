//! SchedCAT: `<taskset><task id="1" wcet="3" period="10" deadline="10"/></taskset>`.
//!
//! Its numbers have no unit; studies with it use microseconds, which is the default here. Where all
//! of them are whole, that unit becomes the `tick-unit`, as the tests of SchedCAT count in it.
//! `deadline` defaults to the period, `partition` (a CPU, or -1 for none) becomes the affinity. `<resources>` say how often a job
//! requests a mutex and for how long, within its cost; where in the job is not said, and the requests are spread over it.

use shiftwork_model::{
    CPUS_MAX, CpuId, CpuSet, Phase, Protocol, Resource, ResourceId, Span, Task, Work,
};

use super::xml::{Element, parse};
use super::{Draft, Imported, NamesTaken, Options, settle};
use crate::error::TasksetError;

/// The most requests of a job for one mutex. More are not a task but a mistake.
const REQUESTS_MAX: u64 = 1_000;

/// Reads a file whose numbers are microseconds.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub fn read(text: &str) -> Result<Imported, TasksetError> {
    read_with(text, &Options::default())
}

/// Reads a file whose numbers count `options.unit`.
///
/// # Errors
/// As [`read`].
pub fn read_with(text: &str, options: &Options) -> Result<Imported, TasksetError> {
    let document = parse(text, "taskset")?;
    let (mut drafts, mut left_out) = (Vec::new(), Vec::new());
    let mut names = NamesTaken::default();
    let mut mutexes = Mutexes::default();
    for node in document
        .root_element()
        .children()
        .filter(|node| node.is_element())
    {
        if node.has_tag_name("task") {
            let element = Element { text, node };
            let mut draft = read_task(element, options.unit, &mut names, &mut left_out)?;
            mutexes.read(element, options.unit, &mut draft.task, &mut left_out)?;
            drafts.push(draft);
        } else {
            left_out.push(format!("<{}>", node.tag_name().name()));
        }
    }
    let mut set = settle(drafts, options, &mut left_out)?;
    if !mutexes.0.is_empty() {
        let assumed = "the protocol of the mutexes is not in the file; taken as `inheritance`";
        left_out.push(assumed.to_string());
    }
    set.resources = mutexes.0;
    if set.tasks.iter().all(|task| is_whole(task, options.unit)) {
        set.platform.tick_unit = options.unit;
    } else {
        let unit = options.unit;
        left_out.push(format!(
            "not all times are whole multiples of {unit}, which SchedCAT's tests count in; taken as \
             they are"
        ));
    }
    Ok(Imported { set, left_out })
}

/// Whether its times are whole multiples of the unit.
fn is_whole(task: &Task, unit: Span) -> bool {
    let runs = task.phases().iter().filter_map(|phase| match phase {
        Phase::Run(run) => Some(*run),
        _ => None,
    });
    let times = [task.cost, task.period, task.deadline];
    times
        .into_iter()
        .chain(runs)
        .all(|time| time.as_ns() % unit.as_ns() == 0)
}

fn read_task(
    element: Element<'_, '_>,
    unit: Span,
    names: &mut NamesTaken,
    left_out: &mut Vec<String>,
) -> Result<Draft, TasksetError> {
    let wanted = match element.get("id") {
        Some(id) => format!("T{id}"),
        None => format!("T{}", names.count() + 1),
    };
    let name = names.take(&wanted);
    let cost = element.positive_span("wcet", "wcet=\"3\"", unit)?;
    let period = element.positive_span("period", "period=\"10\"", unit)?;
    let mut draft = Draft::new(&name, cost, period);
    draft.task.deadline = match element.get("deadline") {
        Some(_) => element.positive_span("deadline", "deadline=\"10\"", unit)?,
        None => period,
    };
    element.check_deadline("wcet", &draft.task)?;
    if element.get("partition").is_some_and(|cpu| cpu != "-1") {
        let cpu = element.integer("partition", 0, CPUS_MAX as u64 - 1)?;
        let cpu = cpu.and_then(|cpu| CpuId::new(cpu as usize));
        draft.cpus = cpu.map_or(CpuSet::EMPTY, CpuSet::single);
    }
    let known = ["id", "wcet", "period", "deadline", "partition"];
    element.name_others(&format!("task `{name}`"), &known, left_out);
    let children = element.node.children();
    for child in children.filter(|node| node.is_element() && !node.has_tag_name("resources")) {
        left_out.push(format!("task `{name}`: <{}>", child.tag_name().name()));
    }
    Ok(draft)
}

/// The mutexes that the tasks so far request.
#[derive(Default)]
struct Mutexes(Vec<Resource>);

impl Mutexes {
    /// Gives the task the requests of its element.
    fn read(
        &mut self,
        element: Element<'_, '_>,
        unit: Span,
        task: &mut Task,
        left_out: &mut Vec<String>,
    ) -> Result<(), TasksetError> {
        let mut sections = Vec::new();
        let requirements = element.node.descendants();
        for node in requirements.filter(|node| node.has_tag_name("requirement")) {
            let requirement = Element {
                text: element.text,
                node,
            };
            let resource = self.find(requirement.get("res_id").unwrap_or("0"));
            let mut add = |count, of_each, default| {
                let times = requirement
                    .integer(count, 0, REQUESTS_MAX)?
                    .unwrap_or(default);
                let length = requirement.span(of_each, unit)?;
                let length = length.unwrap_or(Span::from_ns(default * unit.as_ns()));
                // A request that takes no time delays none.
                if times > 0 && !length.is_zero() {
                    sections.extend((0..times).map(|_| (resource, length)));
                }
                Ok(times)
            };
            add("max_writes", "max_write_length", 1)?;
            if add("max_reads", "max_read_length", 0)? > 0 {
                left_out.push(format!(
                    "task `{}`: reads of several jobs at once; each has the mutex alone",
                    task.name
                ));
            }
        }
        let needed = sections
            .iter()
            .map(|(_, length)| u128::from(length.as_ns()));
        let needed: u128 = needed.sum();
        match u64::try_from(needed) {
            Ok(0) => {}
            Ok(needed) if needed <= task.cost.as_ns() => {
                task.work = spread(&sections, task.cost.as_ns() - needed, unit);
            }
            _ => left_out.push(format!(
                "task `{}`: its requests take longer than its jobs; it has none",
                task.name
            )),
        }
        Ok(())
    }

    /// The mutex with this number, which is new if none has it.
    fn find(&mut self, number: &str) -> ResourceId {
        let name = format!("R{number}");
        let known = self.0.iter().position(|resource| resource.name == name);
        let index = known.unwrap_or_else(|| {
            self.0.push(Resource {
                name,
                protocol: Protocol::Inheritance,
            });
            self.0.len() - 1
        });
        ResourceId::from_index(index)
    }
}

/// The sections in their order, with what is left of the job before, between and after them: as evenly as whole units allow, the
/// rest before.
fn spread(sections: &[(ResourceId, Span)], left_ns: u64, unit: Span) -> Work {
    let gaps = sections.len() as u64 + 1;
    let each = left_ns / gaps / unit.as_ns() * unit.as_ns();
    let run = |ns: u64| (ns > 0).then_some(Phase::Run(Span::from_ns(ns)));
    let mut phases: Vec<Phase> = run(left_ns - each * (gaps - 1)).into_iter().collect();
    for &(resource, length) in sections {
        phases.extend([
            Phase::Lock(resource),
            Phase::Run(length),
            Phase::Unlock(resource),
        ]);
        phases.extend(run(each));
    }
    Work::Phases(phases)
}
