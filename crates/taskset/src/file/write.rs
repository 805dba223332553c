//! Writes a task set as a file that reads back to the same task set.

use std::fmt::Write;

use shiftwork_model::{
    Action, Affinity, Arrival, Chain, Change, CpuSet, Frequency, Instant, Join, OnOverrun, Pace,
    Phase, Platform, Protocol, Resource, ResourceId, SchedulerOptions, Span, Task, TaskId, TaskSet,
    ThreadName, Trigger, Work,
};

/// The task set as a task-set file. [`read`](crate::read) makes the same task set of it, provided
/// that the task set is one that a file can describe: nothing zero that must not be, every CPU on
/// the platform, actions by time.
pub fn write(set: &TaskSet) -> String {
    write_with_comments(set, &Comments::default())
}

/// Comments of a task-set file: texts without `#`, each on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Comments {
    /// Before everything else.
    pub head: Vec<String>,
    /// Below the header of each task, by its index; a task beyond the end has none.
    pub tasks: Vec<Vec<String>>,
    /// Below the header of each chain, by its index; a chain beyond the end has none.
    pub chains: Vec<Vec<String>>,
    /// After everything else.
    pub tail: Vec<String>,
}

/// As [`write()`], with comments, which do not change what the file means.
pub fn write_with_comments(set: &TaskSet, comments: &Comments) -> String {
    let mut out = String::new();
    write_comments(&mut out, &comments.head);
    if !comments.head.is_empty() {
        out.push('\n');
    }
    if !set.name.is_empty() {
        line(&mut out, "name", &quoted(&set.name));
        out.push('\n');
    }
    write_platform(&mut out, &set.platform);
    write_scheduler(&mut out, &set.scheduler);
    for resource in &set.resources {
        write_resource(&mut out, resource);
    }
    let of = |all: &[Vec<String>], index| all.get(index).cloned().unwrap_or_default();
    for (index, task) in set.tasks.iter().enumerate() {
        out.push_str("\n[[task]]\n");
        write_comments(&mut out, &of(&comments.tasks, index));
        write_task(&mut out, task, set);
    }
    for (index, chain) in set.chains.iter().enumerate() {
        out.push_str("\n[[chain]]\n");
        write_comments(&mut out, &of(&comments.chains, index));
        write_chain(&mut out, chain, set);
    }
    for action in &set.actions {
        write_action(&mut out, action, set);
    }
    if !comments.tail.is_empty() {
        out.push('\n');
        write_comments(&mut out, &comments.tail);
    }
    out
}

/// Each text as one comment, or several where it has line breaks. Other control characters are not permitted in comments
/// of TOML, and are replaced.
fn write_comments(out: &mut String, comments: &[String]) {
    for text in comments.iter().flat_map(|comment| comment.split('\n')) {
        let shown = |character: char| match character.is_control() {
            true => char::REPLACEMENT_CHARACTER,
            false => character,
        };
        let text: String = text.chars().map(shown).collect();
        out.push_str(format!("# {text}").trim_end());
        out.push('\n');
    }
}

/// A text as a TOML string on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() => {
                write!(out, "\\U{:08x}", control as u32).expect("a string takes any text");
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Adds a key with its value, which is written already.
pub(crate) fn line(out: &mut String, key: &str, value: &str) {
    writeln!(out, "{key} = {value}").expect("a string takes any text");
}

fn span(span: Span) -> String {
    format!("\"{}\"", span.in_whole_units())
}

fn instant(instant: Instant) -> String {
    span(instant.late_since(Instant::ZERO))
}

/// A list of `items`, each written by `write`.
fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(write).collect();
    format!("[{}]", items.join(", "))
}

fn cpu_lists(sets: &[CpuSet]) -> String {
    list(sets, |set| format!("\"{set}\""))
}

/// A key that needs no quotes, or one with quotes.
pub(crate) fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match !name.is_empty() && name.bytes().all(bare) {
        true => name.to_string(),
        false => quoted(name),
    }
}

fn write_platform(out: &mut String, platform: &Platform) {
    out.push_str("[platform]\n");
    line(out, "cpus", &platform.cpus.to_string());
    if !platform.sets.is_empty() {
        let sets = platform.sets.iter();
        let sets: Vec<String> = sets
            .map(|(name, set)| format!("{} = \"{set}\"", key(name)))
            .collect();
        line(out, "sets", &format!("{{ {} }}", sets.join(", ")));
    }
    if !platform.clusters.is_empty() {
        line(out, "clusters", &cpu_lists(&platform.clusters));
    }
    if !platform.caches.is_empty() {
        line(out, "caches", &cpu_lists(&platform.caches));
    }
    if !platform.capacities.is_empty() {
        line(
            out,
            "capacities",
            &list(&platform.capacities, ToString::to_string),
        );
    }
    if platform.frequency == Frequency::GrubPa {
        line(out, "frequency", "\"grub-pa\"");
    }
    if platform.tick_unit != Span::from_ns(1) {
        line(out, "tick-unit", &span(platform.tick_unit));
    }
}

fn write_scheduler(out: &mut String, scheduler: &SchedulerOptions) {
    let default = SchedulerOptions::default();
    if *scheduler == default {
        return;
    }
    out.push_str("\n[scheduler]\n");
    if let Some(policy) = &scheduler.policy {
        line(out, "policy", &quoted(policy));
    }
    if scheduler.reserve != default.reserve {
        line(out, "reserve", &scheduler.reserve.to_string());
    }
    if scheduler.reserve_server {
        line(out, "reserve-server", "true");
    }
    if let Some(quantum) = scheduler.quantum {
        line(out, "quantum", &span(quantum));
    }
    if scheduler.early_release {
        line(out, "early-release", "true");
    }
    if let Some(path) = &scheduler.overheads {
        line(out, "overheads", &quoted(path));
    }
    if let Some(repairs) = scheduler.repairs {
        let names: Vec<&str> = repairs.names().collect();
        line(out, "repairs", &list(&names, |name| quoted(name)));
    }
    if scheduler.lagging != default.lagging {
        line(out, "lagging", &quoted(scheduler.lagging.name()));
    }
}

/// The affinity by its name if it has one, as a list otherwise.
fn affinity(affinity: &Affinity, platform: &Platform) -> String {
    let named = platform
        .sets
        .iter()
        .find(|(_, set)| *set == affinity.cpus());
    named.map_or_else(|| format!("\"{affinity}\""), |(name, _)| quoted(name))
}

fn write_resource(out: &mut String, resource: &Resource) {
    out.push_str("\n[[resource]]\n");
    line(out, "name", &quoted(&resource.name));
    if resource.protocol != Protocol::None {
        line(out, "protocol", &quoted(resource.protocol.name()));
    }
    if let Protocol::Dpcp(cpu) = resource.protocol {
        line(out, "cpu", &cpu.to_string());
    }
}

fn write_task(out: &mut String, task: &Task, set: &TaskSet) {
    let platform = &set.platform;
    line(out, "name", &quoted(&task.name));
    line(out, "cost", &span(task.cost));
    match &task.arrival {
        Arrival::Triggered(trigger) => write_trigger(out, trigger, set),
        Arrival::Curve(curve, _) => {
            line(out, "distances", &list(curve.distances(), |it| span(*it)));
        }
        Arrival::Periodic | Arrival::Sporadic | Arrival::Releases(_) => {
            line(out, "period", &span(task.period));
        }
    }
    if task.deadline != task.period {
        line(out, "deadline", &span(task.deadline));
    }
    if !task.offset.is_zero() {
        line(out, "offset", &span(task.offset));
    }
    if !task.jitter.is_zero() {
        line(out, "jitter", &span(task.jitter));
    }
    if *task.affinity.cpus() != platform.all() {
        line(out, "affinity", &affinity(&task.affinity, platform));
    }
    if let Some(priority) = task.priority {
        line(out, "priority", &priority.to_string());
    }
    match &task.arrival {
        Arrival::Periodic | Arrival::Curve(_, Pace::Earliest) | Arrival::Triggered(_) => {}
        Arrival::Sporadic | Arrival::Curve(_, Pace::Random) => line(out, "arrival", "\"sporadic\""),
        Arrival::Releases(releases) => line(out, "releases", &list(releases, |at| instant(*at))),
    }
    if let Some(cpu) = task.start_cpu {
        line(out, "start-cpu", &cpu.to_string());
    }
    if let Some(work) = work(&task.work, set) {
        line(out, "work", &work);
    }
    match task.on_overrun {
        OnOverrun::Throttle => {}
        OnOverrun::Continue => line(out, "on-overrun", "\"continue\""),
        OnOverrun::Signal => line(out, "on-overrun", "\"signal\""),
    }
    if !task.command.is_empty() {
        line(out, "command", &list(&task.command, |word| quoted(word)));
    }
    if let Some(thread) = &task.thread {
        line(out, "thread", &thread_name(thread));
    }
}

fn thread_name(thread: &ThreadName) -> String {
    let mut inner = format!("process = {}", quoted(&thread.process));
    if let Some(name) = &thread.name {
        inner += &format!(", name = {}", quoted(name));
    }
    if let Some(number) = thread.number {
        inner += &format!(", number = {number}");
    }
    format!("{{ {inner} }}")
}

fn write_trigger(out: &mut String, trigger: &Trigger, set: &TaskSet) {
    let name = |id: &TaskId| quoted(&set.tasks[id.index()].name);
    let sources = list(&trigger.sources, name);
    let by = match (trigger.sources.as_slice(), trigger.join) {
        ([one], Join::Any) => name(one),
        (_, Join::Any) => format!("{{ any = {sources} }}"),
        (_, Join::All) => format!("{{ all = {sources} }}"),
    };
    line(out, "triggered-by", &by);
    if let Some(queue) = trigger.queue {
        line(out, "queue", &queue.to_string());
    }
}

fn work(work: &Work, set: &TaskSet) -> Option<String> {
    let inner = match work {
        Work::Cost => return None,
        Work::Constant(run) => format!("run = {}", span(*run)),
        Work::Uniform(least, most) => format!("run = [{}, {}]", span(*least), span(*most)),
        Work::Trace(runs) => format!("trace = {}", list(runs, |run| span(*run))),
        Work::Phases(phases) => format!("phases = {}", list(phases, |it| phase(it, set))),
    };
    Some(format!("{{ {inner} }}"))
}

fn phase(phase: &Phase, set: &TaskSet) -> String {
    let name = |id: &ResourceId| quoted(&set.resources[id.index()].name);
    match phase {
        Phase::Lock(id) => format!("{{ lock = {} }}", name(id)),
        Phase::Unlock(id) => format!("{{ unlock = {} }}", name(id)),
        Phase::Trigger(id) => format!("{{ trigger = {} }}", quoted(&set.tasks[id.index()].name)),
        Phase::Run(length) => format!("{{ run = {} }}", span(*length)),
        Phase::Sleep(length) => format!("{{ sleep = {} }}", span(*length)),
    }
}

fn write_chain(out: &mut String, chain: &Chain, set: &TaskSet) {
    line(out, "name", &quoted(&chain.name));
    let tasks = list(&chain.tasks, |id| quoted(&set.tasks[id.index()].name));
    line(out, "tasks", &tasks);
    let keys = [
        ("reaction", chain.reaction),
        ("age", chain.age),
        ("latency", chain.latency),
    ];
    for (key, wanted) in keys {
        if let Some(wanted) = wanted {
            line(out, key, &span(wanted));
        }
    }
}

fn write_action(out: &mut String, action: &Action, set: &TaskSet) {
    let task = |id: &TaskId| quoted(&set.tasks[id.index()].name);
    out.push_str("\n[[action]]\n");
    line(out, "at", &instant(action.at));
    let (key, value) = match &action.change {
        Change::Enter(id) => ("enter", task(id)),
        Change::Leave(id) => ("leave", task(id)),
        Change::SetAttributes {
            task: id,
            cost,
            period,
            deadline,
        } => {
            let new = [("cost", cost), ("period", period), ("deadline", deadline)];
            let new = new
                .iter()
                .filter_map(|(key, value)| value.map(|new| format!(", {key} = {}", span(new))));
            let new: String = new.collect();
            ("set-attr", format!("{{ task = {}{new} }}", task(id)))
        }
        Change::SetAffinity(id, to) => {
            let to = affinity(to, &set.platform);
            (
                "set-affinity",
                format!("{{ task = {}, to = {to} }}", task(id)),
            )
        }
        Change::SetPriority(id, to) => (
            "set-priority",
            format!("{{ task = {}, to = {to} }}", task(id)),
        ),
        Change::Move(id, cluster) => (
            "move",
            format!("{{ task = {}, cluster = {cluster} }}", task(id)),
        ),
        Change::SetClusters(clusters) => ("set-clusters", cpu_lists(clusters)),
        Change::CpuOffline(cpu) => ("cpu-offline", cpu.to_string()),
        Change::CpuOnline(cpu) => ("cpu-online", cpu.to_string()),
        Change::SetReserve(share) => ("set-reserve", share.to_string()),
    };
    line(out, key, &value);
}

#[cfg(test)]
mod tests {
    use shiftwork_model::CpuId;

    use super::*;

    #[test]
    fn comments_leave_the_task_set_as_it_is() {
        let task = |name| {
            Task::periodic(
                name,
                Span::from_ms(1),
                Span::from_ms(5),
                Affinity::pinned(CpuId::from_index(0)),
            )
        };
        let mut set = TaskSet::new("commented", 1, vec![task("a"), task("b")]);
        set.chains.push(Chain {
            name: "a to b".to_owned(),
            tasks: set.iter().map(|(id, _)| id).collect(),
            reaction: None,
            age: None,
            latency: None,
        });
        let hostile = "a\n[platform]\r\nb\u{1b}[0m".to_owned();
        let comments = Comments {
            head: vec![hostile.clone()],
            tasks: vec![Vec::new(), vec!["of b".to_owned()]],
            chains: vec![vec![hostile]],
            tail: vec![String::new(), "end".to_owned()],
        };
        let text = write_with_comments(&set, &comments);
        assert_eq!(super::super::read(&text).as_ref(), Ok(&set), "{text}");
        assert!(
            text.contains("\n[[task]]\n# of b\nname = \"b\"\n"),
            "{text}"
        );
        assert!(text.ends_with("\n\n#\n# end\n"), "{text}");
        assert_eq!(super::super::read(&write(&set)), Ok(set));
    }
}
