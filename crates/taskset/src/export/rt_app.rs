//! rt-app: a JSON file of which the importer of the same name makes the task set again, as far as nothing is lost.
//! Tasks that others trigger become threads that suspend themselves or wait at semaphores, and are woken.

mod waking;

use shiftwork_model::{
    Arrival, Frequency, Phase, Protocol, Resource, ResourceId, Span, Task, TaskId, TaskSet, Work,
};

use super::{
    Class, Exported, ExportedFile, PolicyUse, class_of, deadline_refusal, fifo_priorities,
    losses_of_set, lost_overrun,
};
use waking::Waking;

/// Writes an rt-app file: under policies by deadlines SCHED_DEADLINE, else SCHED_FIFO.
///
/// Times are whole microseconds there: costs, runs and sleeps are rounded up, periods, deadlines and offsets down.
/// The name of the task set, its number of CPUs and its policy have no place in the format, and are not named in
/// `left_out`; everything else that is lost is.
pub fn rt_app(set: &TaskSet, policy: Option<PolicyUse<'_>>) -> Exported {
    let mut left_out = Vec::new();
    let class = class_of(set, policy, &mut left_out);
    losses_of_set(set, &mut left_out);
    losses_of_description(set, &mut left_out);
    let priorities = match class {
        Class::Fifo => fifo_priorities(set, &mut left_out),
        Class::Deadline => vec![0; set.tasks.len()],
    };
    let waking = Waking::new(set);
    let mut threads = Vec::new();
    for ((id, task), priority) in set.iter().zip(priorities) {
        let mut thread = Thread {
            id,
            task,
            waking: &waking,
            left_out: Vec::new(),
        };
        let members = thread.members(set, class, priority);
        let lost = thread.left_out.iter();
        left_out.extend(lost.map(|what| format!("task `{}`: {what}", task.name)));
        if let Some(members) = members {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("\t\t\t{}: {value}", json(key)))
                .collect();
            threads.push(format!(
                "\t\t{}: {{\n{}\n\t\t}}",
                json(&task.name),
                members.join(",\n")
            ));
        }
    }
    let mut global = format!(
        "\"default_policy\": \"{}\", \"duration\": -1",
        class_name(class)
    );
    if inherits(set, &mut left_out) {
        global.push_str(", \"pi_enabled\": true");
    }
    let text = format!(
        "{{\n\t\"global\": {{ {global} }},\n{}\t\"tasks\": {{\n{}\n\t}}\n}}\n",
        resources(set),
        threads.join(",\n")
    );
    let files = vec![ExportedFile { name: None, text }];
    Exported { files, left_out }
}

/// Whether all mutexes are written with priority inheritance, which rt-app has for all or none: if any has it. Protocols
/// that become another one are lost.
fn inherits(set: &TaskSet, left_out: &mut Vec<String>) -> bool {
    let has = |resource: &Resource| resource.protocol == Protocol::Inheritance;
    let all_inherit = set.resources.iter().any(has);
    let (written, instead) = match all_inherit {
        true => (Protocol::Inheritance, "inheritance"),
        false => (Protocol::None, "none"),
    };
    for resource in set.resources.iter().filter(|it| it.protocol != written) {
        left_out.push(format!(
            "the protocol of resource `{}`; {instead} is written, as for all mutexes",
            resource.name
        ));
    }
    all_inherit
}

/// The mutexes, as a member of the file; nothing without any.
fn resources(set: &TaskSet) -> String {
    if set.resources.is_empty() {
        return String::new();
    }
    let mutex = |it: &Resource| format!("\t\t{}: {{ \"type\": \"mutex\" }}", json(&it.name));
    let all: Vec<String> = set.resources.iter().map(mutex).collect();
    format!("\t\"resources\": {{\n{}\n\t}},\n", all.join(",\n"))
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Fifo => "SCHED_FIFO",
        Class::Deadline => "SCHED_DEADLINE",
    }
}

/// The text as JSON has it, in quotation marks.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What a task set says of its CPUs and of its scheduler and this format cannot.
fn losses_of_description(set: &TaskSet, left_out: &mut Vec<String>) {
    let (platform, scheduler) = (&set.platform, &set.scheduler);
    let keys = [
        ("sets", !platform.sets.is_empty()),
        ("clusters", !platform.clusters.is_empty()),
        ("caches", !platform.caches.is_empty()),
        ("capacities", !platform.capacities.is_empty()),
        ("frequency", platform.frequency != Frequency::Fixed),
        ("tick-unit", platform.tick_unit != Span::from_ns(1)),
        ("reserve-server", scheduler.reserve_server),
        ("quantum", scheduler.quantum.is_some()),
        ("early-release", scheduler.early_release),
        ("overheads", scheduler.overheads.is_some()),
        ("repairs", scheduler.repairs.is_some()),
        (
            "lagging",
            scheduler.lagging != shiftwork_model::Lagging::Grid,
        ),
    ];
    let used = keys.iter().filter(|(_, is_used)| *is_used);
    left_out.extend(used.map(|(key, _)| format!("`{key}`")));
}

/// The direction in which a span becomes whole microseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
}

/// A task on its way to a thread, and what is lost of it.
struct Thread<'a> {
    id: TaskId,
    task: &'a Task,
    waking: &'a Waking<'a>,
    left_out: Vec<String>,
}

impl Thread<'_> {
    /// The keys and values of the thread, in the order in which it acts; `None` if it never computes.
    fn members(
        &mut self,
        set: &TaskSet,
        class: Class,
        priority: u32,
    ) -> Option<Vec<(String, String)>> {
        let task = self.task;
        let final_wakes = self.final_wakes(set);
        let jobs = self.jobs(final_wakes.is_empty());
        let computes = |job: &Vec<Phase>| job.iter().any(|phase| matches!(phase, Phase::Run(_)));
        if task.name.is_empty() || !jobs.iter().any(computes) {
            self.lose("it has no name or never computes, so it is left out");
            return None;
        }
        let rounds = self.rounds(jobs.len());
        if rounds == Some(0) {
            self.lose("it releases no job, so it is left out");
            return None;
        }
        let mut members = vec![("policy".to_string(), json(class_name(class)))];
        let mut put = |key: &str, value: String| members.push((key.to_string(), value));
        // That of a triggered task follows from those of its sources.
        let period = match (class, task.trigger()) {
            (Class::Fifo, Some(_)) => 1,
            _ => self.us("period", task.period, Rounding::Down).max(1),
        };
        match class {
            Class::Fifo => {
                put("priority", priority.to_string());
                self.lose_declarations(&jobs);
            }
            Class::Deadline => {
                let runtime = self.us("cost", task.cost, Rounding::Up);
                let deadline = self.us("deadline", task.deadline, Rounding::Down);
                put("dl-runtime", runtime.to_string());
                put("dl-period", period.to_string());
                put("dl-deadline", deadline.max(1).to_string());
                if task.priority.is_some() {
                    self.lose("`priority`; SCHED_DEADLINE has none");
                }
                if let Some(refusal) = deadline_refusal(task, set) {
                    self.lose(&refusal);
                }
                if task.deadline <= task.offset && task.offset < task.period {
                    self.lose("`offset` after its first deadline; Linux lets it begin with its second period");
                }
            }
        }
        if let Some(lost) = lost_overrun(task, class) {
            self.lose(lost);
        }
        if *task.affinity.cpus() != set.platform.all() {
            let cpus: Vec<String> = task
                .affinity
                .cpus()
                .iter()
                .map(|cpu| cpu.to_string())
                .collect();
            put("cpus", format!("[{}]", cpus.join(", ")));
        }
        if !task.offset.is_zero() {
            let delay = self.us("offset", task.offset, Rounding::Down);
            put("delay", delay.to_string());
        }
        if !task.jitter.is_zero() {
            self.lose("`jitter`; a job is released when it arrives");
        }
        if let Some(rounds) = rounds {
            put("loop", rounds.to_string());
        }
        let waits = self.waking.waits(self.id);
        let timer =
            format!("{{ \"ref\": \"unique\", \"period\": {period}, \"mode\": \"absolute\" }}");
        // Equal keys would be one to many readers of JSON; rt-app goes by how they begin.
        let mut number = 0;
        let mut put_event = |key: &str, value: String| {
            put(&format!("{key}{number}"), value);
            number += 1;
        };
        for job in &jobs {
            for (key, name) in &waits {
                put_event(key, json(name));
            }
            for phase in job {
                let resource = |id: ResourceId| json(&set.resources[id.index()].name);
                match *phase {
                    Phase::Run(length) => {
                        put_event("run", self.us("run", length, Rounding::Up).to_string());
                    }
                    Phase::Sleep(length) => {
                        put_event("sleep", self.us("sleep", length, Rounding::Up).to_string());
                    }
                    Phase::Lock(id) => put_event("lock", resource(id)),
                    Phase::Unlock(id) => put_event("unlock", resource(id)),
                    Phase::Trigger(target) => {
                        if let Some((key, name)) = self.waking.wake(self.id, target) {
                            put_event(key, json(&name));
                        }
                    }
                }
            }
            for (key, name) in &final_wakes {
                put_event(key, json(name));
            }
            if waits.is_empty() {
                put_event("timer", timer.clone());
            }
        }
        for (key, is_used) in [
            ("`start-cpu`", task.start_cpu.is_some()),
            (
                "`command`; rt-app computes itself",
                !task.command.is_empty(),
            ),
            ("`thread`; rt-app computes itself", task.thread.is_some()),
        ] {
            if is_used {
                self.lose(key);
            }
        }
        Some(members)
    }

    fn lose(&mut self, what: &str) {
        self.left_out.push(what.to_string());
    }

    /// A span in microseconds; a loss if it is no whole number of them.
    fn us(&mut self, key: &str, span: Span, rounding: Rounding) -> u64 {
        let ns = span.as_ns();
        let us = match rounding {
            Rounding::Up => ns.div_ceil(1_000),
            Rounding::Down => ns / 1_000,
        };
        if !ns.is_multiple_of(1_000) {
            let direction = match rounding {
                Rounding::Up => "up",
                Rounding::Down => "down",
            };
            self.lose(&format!(
                "`{key}` {span} is no whole number of microseconds; rounded {direction}"
            ));
        }
        us
    }

    /// What a job triggers when it completes.
    fn final_wakes(&self, set: &TaskSet) -> Vec<waking::Event> {
        let targets = set.triggered_at_completion(self.id);
        let wakes = targets.filter_map(|target| self.waking.wake(self.id, target));
        wakes.collect()
    }

    /// What the jobs of one round do. `ends_there`: whether nothing that they do follows it.
    fn jobs(&mut self, ends_there: bool) -> Vec<Vec<Phase>> {
        let task = self.task;
        let ends_with_timer = ends_there && task.trigger().is_none();
        let run = |length: Span| vec![Phase::Run(length)];
        let mut jobs = match &task.work {
            Work::Cost => vec![run(task.cost)],
            Work::Constant(length) => vec![run(*length)],
            Work::Uniform(shortest, longest) => {
                self.lose(&format!(
                    "its jobs run for {shortest} to {longest} at random; the longest is written"
                ));
                vec![run(*longest)]
            }
            Work::Trace(lengths) => lengths.iter().map(|&length| run(length)).collect(),
            Work::Phases(phases) => {
                let mut phases = phases.clone();
                let is_empty =
                    |phase: &Phase| matches!(phase, Phase::Run(l) | Phase::Sleep(l) if l.is_zero());
                phases.retain(|phase| !is_empty(phase));
                while ends_with_timer && let Some(Phase::Sleep(_)) = phases.last() {
                    self.lose(
                        "the sleep at the end of its jobs; the thread waits for its timer there",
                    );
                    phases.pop();
                }
                vec![phases]
            }
        };
        let idle = |job: &Vec<Phase>| job.iter().all(|phase| *phase == Phase::Run(Span::ZERO));
        if jobs.len() > 1 && jobs.iter().any(idle) {
            self.lose("jobs that run for no time; the least that rt-app runs is 1us");
            for job in jobs.iter_mut().filter(|job| idle(job)) {
                *job = run(Span::from_us(1));
            }
        } else if jobs.iter().all(idle) {
            jobs.clear();
        }
        jobs
    }

    /// How many rounds of so many jobs the thread goes through; `None` for ever.
    fn rounds(&mut self, jobs: usize) -> Option<u64> {
        let task = self.task;
        match &task.arrival {
            Arrival::Periodic => None,
            Arrival::Sporadic => {
                self.lose("sporadic releases; a job is released every period");
                None
            }
            Arrival::Curve(..) => {
                self.lose(&format!(
                    "`distances`; a job is released every {}, the shortest of them",
                    task.period
                ));
                None
            }
            Arrival::Triggered(trigger) => {
                if let Some(queue) = trigger.queue.filter(|queue| *queue > 0) {
                    self.lose(&format!(
                        "`queue` {queue}; any number of triggers wait at a semaphore"
                    ));
                }
                None
            }
            Arrival::Releases(releases) => {
                let jobs = jobs as u64;
                let count = releases.len() as u64;
                let grid = releases.iter().zip(0..);
                let is_periodic = |(release, job): (&shiftwork_model::Instant, u64)| {
                    task.period.as_ns().checked_mul(job) == Some(release.as_ns())
                };
                if !grid.into_iter().all(is_periodic) {
                    self.lose("`releases`; a job is released every period, as often");
                }
                if !count.is_multiple_of(jobs) {
                    self.lose(&format!(
                        "the number of releases, {count}; rt-app repeats rounds of {jobs} jobs"
                    ));
                }
                Some(count.div_ceil(jobs))
            }
        }
    }

    /// What SCHED_FIFO knows nothing of: a cost that is not what the longest job computes, and a deadline that is
    /// not the period.
    fn lose_declarations(&mut self, jobs: &[Vec<Phase>]) {
        let task = self.task;
        let computing = |job: &Vec<Phase>| {
            let runs = job.iter().map(|phase| match phase {
                Phase::Run(length) => length.as_ns(),
                Phase::Sleep(_) | Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => 0,
            });
            runs.fold(0, u64::saturating_add)
        };
        let longest = jobs.iter().map(computing).max().unwrap_or(0);
        if longest != task.cost.as_ns() {
            self.lose(&format!(
                "`cost` {}; the longest job runs for {}, and only that is written",
                task.cost,
                Span::from_ns(longest.min(Span::MAX.as_ns()))
            ));
        }
        if task.deadline != task.period {
            self.lose(&format!(
                "`deadline` {}; SCHED_FIFO has none",
                task.deadline
            ));
        }
    }
}
