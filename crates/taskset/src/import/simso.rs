//! SimSo: `<simulation>` with `<processors>` and `<tasks>`.
//!
//! Times of tasks are milliseconds with decimals. Processors are CPUs in the order of the file. A task that others are
//! `followed_by` is triggered by them. What only its simulation knows (caches, execution-time models, its own overheads) is left
//! out.

mod scheduler;

use shiftwork_model::{
    Arrival, CPUS_MAX, Instant, Join, Platform, Share, Span, TaskId, TaskSet, Trigger,
};

use super::xml::{Element, decimal, parse, place};
use super::{Draft, Imported, NamesTaken, bind};
use crate::error::TasksetError;

const MILLISECOND: Span = Span::from_ms(1);

/// Reads a file.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub fn read(text: &str) -> Result<Imported, TasksetError> {
    let document = parse(text, "simulation")?;
    let simulation = Element {
        text,
        node: document.root_element(),
    };
    let mut left_out = Vec::new();
    simulation.name_others("<simulation>", &["cycles_per_ms"], &mut left_out);
    let elements = |tag: &'static str| {
        let nodes = simulation.node.descendants();
        let nodes = nodes.filter(move |node| node.has_tag_name(tag));
        nodes.map(move |node| Element { text, node })
    };
    let platform = read_platform(elements("processor").collect(), &mut left_out)?;
    let platform = platform.ok_or_else(|| TasksetError::MissingKey {
        place: place(text, simulation.node),
        key: "processors",
        within: "<simulation>".to_string(),
        example: "<processors><processor name=\"CPU 1\" id=\"1\"/></processors>",
    })?;
    let all: Vec<TaskElement<'_, '_>> = elements("task").map(TaskElement::of).collect();
    let tasks = activated(&all, &mut left_out);
    let mut names = NamesTaken::default();
    let drafts: Vec<Draft> = tasks
        .iter()
        .map(|task| read_task(task, &tasks, &mut names, &mut left_out))
        .collect::<Result<_, _>>()?;
    let mut set = TaskSet::new("", platform.cpus, bind(drafts, platform.cpus));
    set.platform = platform;
    set_periods(&mut set, &tasks)?;
    for sched in elements("sched") {
        scheduler::choose(&mut set, sched, &tasks, &mut left_out)?;
        let known = ["class", "className"];
        sched.name_others("<sched>", &known, &mut left_out);
    }
    for caches in elements("cache") {
        left_out.push(format!("cache `{}`", caches.get("name").unwrap_or("")));
    }
    Ok(Imported { set, left_out })
}

/// The CPUs; `None` if the file has none.
fn read_platform(
    processors: Vec<Element<'_, '_>>,
    left_out: &mut Vec<String>,
) -> Result<Option<Platform>, TasksetError> {
    let Some(last) = processors.last() else {
        return Ok(None);
    };
    if processors.len() > CPUS_MAX {
        return Err(TasksetError::OutOfRange {
            place: last.place("id"),
            key: "processors".to_string(),
            found: processors.len().to_string(),
            accepted: format!("at most {CPUS_MAX}"),
        });
    }
    let mut platform = Platform::uniform(processors.len());
    for (cpu, processor) in processors.iter().enumerate() {
        let known = ["name", "id", "speed"];
        processor.name_others(&format!("CPU {cpu}"), &known, left_out);
    }
    let speed = |processor: &Element<'_, '_>| {
        let billionths = decimal(processor.get("speed").unwrap_or("1"), Share::WHOLE.into());
        let share = billionths.and_then(|speed| u32::try_from(speed).ok());
        share
            .filter(|&speed| speed > 0)
            .and_then(Share::from_billionths)
    };
    let speeds: Option<Vec<Share>> = processors.iter().map(speed).collect();
    match speeds {
        None => left_out.push("speeds of CPUs outside 0 to 1".to_string()),
        Some(speeds)
            if speeds
                .iter()
                .all(|speed| speed.billionths() == Share::WHOLE) => {}
        Some(speeds) => platform.capacities = speeds,
    }
    Ok(Some(platform))
}

/// A `<task>`.
#[derive(Clone, Copy)]
struct TaskElement<'a, 't>(Element<'a, 't>);

impl<'a, 't> TaskElement<'a, 't> {
    const fn of(element: Element<'a, 't>) -> Self {
        Self(element)
    }

    /// Its name in the file, for messages.
    fn label(&self) -> &'a str {
        self.0.get("name").or(self.0.get("id")).unwrap_or("")
    }

    /// Whether jobs of this one activate the other when they end.
    fn is_followed_by(&self, other: &Self) -> bool {
        self.0
            .get("followed_by")
            .is_some_and(|id| Some(id) == other.0.get("id"))
    }

    /// Whether only other tasks activate it; `false` also where its kind is none, which is an error elsewhere.
    fn is_activated(&self) -> bool {
        match self.0.get("task_type") {
            Some(kind) => kind == KINDS[2],
            None => self.0.get("periodic") == Some("no"),
        }
    }

    /// An attribute that is a number of any size.
    fn number(&self, name: &'static str) -> Result<Option<f64>, TasksetError> {
        let Some(found) = self.0.get(name) else {
            return Ok(None);
        };
        let number = found.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| TasksetError::OutOfRange {
            place: self.0.place(name),
            key: name.to_string(),
            found: format!("\"{found}\""),
            accepted: "a number".to_string(),
        })
    }
}

/// The tasks that ever have a job. Of the others, and of those that others activate besides their own activations, it says so.
fn activated<'a, 't>(
    all: &[TaskElement<'a, 't>],
    left_out: &mut Vec<String>,
) -> Vec<TaskElement<'a, 't>> {
    let mut kept = all.to_vec();
    loop {
        let before = kept.len();
        let sources = kept.clone();
        kept.retain(|task| {
            let is_reached = sources.iter().any(|source| source.is_followed_by(task));
            let stays = !task.is_activated() || is_reached;
            if !stays {
                let why = "it is aperiodic, and nothing is followed by it: it never has a job";
                left_out.push(format!("task `{}`: {why}", task.label()));
            }
            stays
        });
        if kept.len() == before {
            break;
        }
    }
    for source in &kept {
        let Some(id) = source.0.get("followed_by").filter(|id| !id.is_empty()) else {
            continue;
        };
        let target = kept.iter().find(|task| source.is_followed_by(task));
        let why = match target {
            Some(task) if task.is_activated() => continue,
            Some(_) => "which has activations of its own; only these are kept",
            None => "and there is no such task",
        };
        left_out.push(format!(
            "task `{}`: followed_by=\"{id}\", {why}",
            source.label()
        ));
    }
    kept
}

/// Gives triggered tasks the periods that follow from their sources.
fn set_periods(set: &mut TaskSet, tasks: &[TaskElement<'_, '_>]) -> Result<(), TasksetError> {
    let order = set.trigger_order().map_err(|circle| {
        let name = |id: &TaskId| set.tasks[id.index()].name.clone();
        let first = circle.first().map_or(0, |id| id.index());
        TasksetError::TriggerCircle {
            place: tasks[first].0.place("followed_by"),
            tasks: circle.iter().map(name).collect(),
        }
    })?;
    for id in order {
        if let Some(period) = set.triggered_period(id) {
            set.tasks[id.index()].period = period;
        }
    }
    Ok(())
}

fn read_task(
    task: &TaskElement<'_, '_>,
    all: &[TaskElement<'_, '_>],
    names: &mut NamesTaken,
    left_out: &mut Vec<String>,
) -> Result<Draft, TasksetError> {
    let element = task.0;
    let wanted = match element.get("name") {
        Some(name) if !name.is_empty() => name.to_string(),
        _ => format!("T{}", names.count() + 1),
    };
    let name = names.take(&wanted);
    let cost = element.positive_span("WCET", "WCET=\"3.0\"", MILLISECOND)?;
    let kind = read_kind(element)?;
    let releases = read_releases(element)?;
    let period = element.span("period", MILLISECOND)?;
    let period = match period.filter(|period| !period.is_zero()) {
        Some(period) => period,
        None if kind == "Periodic" => {
            element.positive_span("period", "period=\"10.0\"", MILLISECOND)?
        }
        // The closest pair of its releases separates them all.
        None => closest(&releases).unwrap_or(cost),
    };
    let mut draft = Draft::new(&name, cost, period);
    draft.task.deadline = match element.get("deadline") {
        // The period of a triggered task is not known yet.
        None if kind != KINDS[2] => period,
        _ => element.positive_span("deadline", "deadline=\"10.0\"", MILLISECOND)?,
    };
    element.check_deadline("WCET", &draft.task)?;
    match kind {
        "Periodic" => {
            draft.task.offset = element
                .span("activationDate", MILLISECOND)?
                .unwrap_or_default();
        }
        kind if kind == KINDS[2] => draft.task.arrival = Arrival::Triggered(trigger(task, all)),
        _ => {
            draft.task.arrival =
                Arrival::Releases(at_least_apart(&releases, period, &name, left_out))
        }
    }
    if element
        .get("abort_on_miss")
        .is_none_or(|abort| abort == "yes")
    {
        left_out.push(format!("task `{name}`: abort_on_miss; late jobs go on"));
    }
    let known = [
        "name",
        "id",
        "task_type",
        "WCET",
        "period",
        "deadline",
        "activationDate",
        "list_activation_dates",
        "abort_on_miss",
        "followed_by",
        "periodic",
        "priority",
    ];
    element.name_others(&format!("task `{name}`"), &known, left_out);
    Ok(draft)
}

/// By the completions of all that are followed by it, each on its own.
fn trigger(task: &TaskElement<'_, '_>, all: &[TaskElement<'_, '_>]) -> Trigger {
    let sources = (0..all.len()).filter(|&index| all[index].is_followed_by(task));
    Trigger {
        sources: sources.map(TaskId::from_index).collect(),
        join: Join::Any,
        queue: None,
    }
}

/// The kinds of tasks there are: the first has a period, the second a list of activation dates, and jobs of others activate the third.
const KINDS: [&str; 3] = ["Periodic", "Sporadic", "APeriodic"];

fn read_kind(element: Element<'_, '_>) -> Result<&'static str, TasksetError> {
    let default = match element.get("periodic") {
        Some("no") => KINDS[2],
        _ => KINDS[0],
    };
    let found = element.get("task_type").unwrap_or(default);
    let known = KINDS.into_iter().find(|kind| *kind == found);
    known.ok_or_else(|| TasksetError::NotOneOf {
        place: element.place("task_type"),
        key: "task_type".to_string(),
        found: found.to_string(),
        accepted: KINDS.map(str::to_string).to_vec(),
    })
}

/// The activation dates, ascending.
fn read_releases(element: Element<'_, '_>) -> Result<Vec<Instant>, TasksetError> {
    let text = element.get("list_activation_dates").unwrap_or("");
    let parts = text
        .split([',', ';', ' ', '\n', '\t'])
        .filter(|part| !part.is_empty());
    let release = |part: &str| {
        let ns = decimal(part, MILLISECOND.as_ns()).filter(|&ns| ns <= Span::MAX.as_ns());
        ns.map(Instant::from_ns)
            .ok_or_else(|| TasksetError::OutOfRange {
                place: element.place("list_activation_dates"),
                key: "list_activation_dates".to_string(),
                found: format!("\"{part}\""),
                accepted: "milliseconds, 0 or more, with at most 6 decimals".to_string(),
            })
    };
    let mut releases: Vec<Instant> = parts.map(release).collect::<Result<_, _>>()?;
    releases.sort_unstable();
    Ok(releases)
}

/// The least distance above zero between releases.
fn closest(releases: &[Instant]) -> Option<Span> {
    let gaps = releases
        .windows(2)
        .filter_map(|pair| pair[1].since(pair[0]));
    gaps.filter(|gap| !gap.is_zero()).min()
}

/// The releases that keep the period; those that do not are left out.
fn at_least_apart(
    releases: &[Instant],
    period: Span,
    name: &str,
    left_out: &mut Vec<String>,
) -> Vec<Instant> {
    let mut kept: Vec<Instant> = Vec::with_capacity(releases.len());
    for &release in releases {
        match kept.last() {
            Some(&last) if release < last + period => left_out.push(format!(
                "task `{name}`: the release at {release}, less than a period after the one before"
            )),
            _ => kept.push(release),
        }
    }
    kept
}
