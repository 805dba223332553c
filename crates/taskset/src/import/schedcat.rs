//! SchedCAT: `<taskset><task id="1" wcet="3" period="10" deadline="10"/></taskset>`.
//!
//! Its numbers have no unit; studies with it use microseconds, which is the default here. Where all
//! of them are whole, that unit becomes the `tick-unit`, as the tests of SchedCAT count in it.
//! `deadline` defaults to the period, `partition` (a CPU, or -1 for none) becomes the affinity.

use shiftwork_model::{CPUS_MAX, CpuId, CpuSet, Span, Task};

use super::xml::{Element, parse};
use super::{Draft, Imported, NamesTaken, Options, settle};
use crate::error::TasksetError;

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
    for node in document
        .root_element()
        .children()
        .filter(|node| node.is_element())
    {
        if node.has_tag_name("task") {
            let element = Element { text, node };
            drafts.push(read_task(element, options.unit, &mut names, &mut left_out)?);
        } else {
            left_out.push(format!("<{}>", node.tag_name().name()));
        }
    }
    let mut set = settle(drafts, options, &mut left_out)?;
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
    let times = [task.cost, task.period, task.deadline];
    times.iter().all(|time| time.as_ns() % unit.as_ns() == 0)
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
    for child in element.node.children().filter(|node| node.is_element()) {
        left_out.push(format!("task `{name}`: <{}>", child.tag_name().name()));
    }
    Ok(draft)
}
