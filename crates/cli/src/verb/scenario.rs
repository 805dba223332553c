//! `shiftwork scenario`: drives a policy through a table of events and checks which task runs where after
//! each.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_model::{CpuId, Instant, Job, Priority, TaskId, TaskSet};
use shiftwork_policy::{Event, Policy, PolicyError, Switches};
use shiftwork_taskset::scenario::{self, Expectation, Scenario, Step, StepEvent};
use shiftwork_trace::SCHEMA_VERSION;

use crate::args::ScenarioArgs;
use crate::catalogue;
use crate::failure::{Answer, Failure};
use crate::input::Input;
use crate::output::{Console, columns, tell};

/// What `scenario --json` prints, one line per step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepOutput {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// From 0.
    pub step: usize,
    /// The task on each CPU, null where none is.
    pub running: Vec<Option<String>>,
    /// Tasks that ran before and after this step on different CPUs.
    pub shifts: u64,
    /// Tasks that ran before this step and are ready and not running after it.
    pub preemptions: u64,
    /// Whether the step's expectation is met; true if it has none.
    pub ok: bool,
}

/// Drives the policy and shows every step.
pub fn run(args: &ScenarioArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let scenario = scenario::read_in(&input.text, &catalogue::environment())
        .map_err(|error| input.refused(&error))?;
    let mut driver = Driver::new(args, &input, &scenario)?;
    let mut rows = vec![header(&scenario.set)];
    let mut met = true;
    for (number, step) in scenario.steps.iter().enumerate() {
        let output = driver.step(number, step).map_err(|error| {
            let place = (step.place.line, step.place.column);
            let message = format_args!("line {}: step {number}: {error}", step.place.line);
            Failure::at(&input.path, &input.text, place, message)
        })?;
        if !output.ok {
            met = false;
            tell(&driver.complaint(&input.path, number, step));
        }
        if console.json {
            console.json_line(&output)?;
        } else {
            rows.push(row(&scenario.set, step, &output));
        }
    }
    if !console.json {
        console.text(&columns(&rows))?;
        let verdict = if met {
            "every expectation is met"
        } else {
            "! an expectation is not met"
        };
        console.line(format!(
            "{}: {} steps, {verdict}",
            driver.name,
            scenario.steps.len()
        ))?;
    }
    Ok(Answer::from_truth(met))
}

fn header(set: &TaskSet) -> Vec<String> {
    let mut row = vec!["STEP".to_owned(), "EVENT".to_owned()];
    row.extend((0..set.platform.cpus).map(|cpu| format!("CPU{cpu}")));
    row.extend(["SHIFTS", "PREEMPTIONS", ""].map(String::from));
    row
}

fn row(set: &TaskSet, step: &Step, output: &StepOutput) -> Vec<String> {
    let mut row = vec![output.step.to_string(), describe(set, &step.event)];
    let shown = |task: &Option<String>| task.clone().unwrap_or_else(|| "-".to_owned());
    row.extend(output.running.iter().map(shown));
    row.extend([output.shifts.to_string(), output.preemptions.to_string()]);
    row.push(if output.ok { "" } else { "! not as expected" }.to_owned());
    row
}

/// The event as the file writes it, shortly.
fn describe(set: &TaskSet, event: &StepEvent) -> String {
    let name = |task: &TaskId| set.tasks[task.index()].name.as_str();
    match event {
        StepEvent::Wake(task) => format!("wake {}", name(task)),
        StepEvent::Block(task) => format!("block {}", name(task)),
        StepEvent::SetAffinity(task, to) => format!("set-affinity {} {to}", name(task)),
        StepEvent::SetPriority(task, to) => format!("set-priority {} {to}", name(task)),
        StepEvent::SetDeadline(task, to) => format!("set-deadline {} {to}", name(task)),
        StepEvent::Enter(task) => format!("enter {}", name(task)),
        StepEvent::Leave(task) => format!("leave {}", name(task)),
        StepEvent::CpuOffline(cpu) => format!("cpu-offline {cpu}"),
        StepEvent::CpuOnline(cpu) => format!("cpu-online {cpu}"),
    }
}

/// What the scenario knows of one task.
#[derive(Clone, Copy, Debug)]
struct Standing {
    present: bool,
    ready: bool,
    priority: Priority,
    deadline: Instant,
}

/// A policy, and what has happened to it so far.
struct Driver<'a> {
    name: &'static str,
    set: &'a TaskSet,
    policy: Box<dyn Policy>,
    tasks: Vec<Standing>,
    /// What runs on each CPU.
    running: Vec<Option<TaskId>>,
    switches: Switches,
}

impl<'a> Driver<'a> {
    fn new(args: &ScenarioArgs, input: &Input, scenario: &'a Scenario) -> Result<Self, Failure> {
        let set = &scenario.set;
        let refused = |error: PolicyError| Failure::in_file(&input.path, error);
        let entry = match &args.policy {
            Some(name) => catalogue::find(name).map_err(Failure::input)?,
            None => catalogue::find(&scenario.policy).map_err(refused)?,
        };
        let policy = entry.build(set).map_err(refused)?;
        if policy.quanta().is_some() {
            return Err(Failure::input(format_args!(
                "{} decides at quantum boundaries, and a scenario has none; `simulate` has them",
                entry.name
            )));
        }
        let tasks = set
            .iter()
            .zip(set.priorities())
            .map(|((id, _), priority)| Standing {
                present: !enters_later(scenario, id),
                ready: false,
                priority,
                deadline: scenario.deadlines[id.index()],
            })
            .collect();
        Ok(Self {
            name: entry.name,
            set,
            policy,
            tasks,
            running: vec![None; set.platform.cpus],
            switches: Switches::with_capacity(set.platform.cpus),
        })
    }

    /// Applies one event, which is an instant of its own, and compares what runs before and after.
    fn step(&mut self, number: usize, step: &Step) -> Result<StepOutput, PolicyError> {
        let before = self.running.clone();
        self.apply(number, &step.event)?;
        self.switches.clear();
        self.policy.end_instant(&mut self.switches);
        for (index, cpu) in self.running.iter_mut().enumerate() {
            *cpu = self.policy.assigned(CpuId::from_index(index));
        }
        let cpu_of = |running: &[Option<TaskId>], task| running.iter().position(|&t| t == task);
        let ran = before.iter().enumerate().filter(|(_, task)| task.is_some());
        let (mut shifts, mut preemptions) = (0, 0);
        for (cpu, &task) in ran {
            match cpu_of(&self.running, task) {
                Some(now) if now != cpu => shifts += 1,
                None if task.is_some_and(|task| self.tasks[task.index()].ready) => {
                    preemptions += 1;
                }
                _ => {}
            }
        }
        let name = |task: &Option<TaskId>| task.map(|task| self.name_of(task).to_owned());
        Ok(StepOutput {
            schema_version: SCHEMA_VERSION,
            step: number,
            running: self.running.iter().map(name).collect(),
            shifts,
            preemptions,
            ok: self.is_as_expected(step),
        })
    }

    fn apply(&mut self, number: usize, event: &StepEvent) -> Result<(), PolicyError> {
        match *event {
            StepEvent::Wake(task) => {
                let standing = &mut self.tasks[task.index()];
                if standing.present && !standing.ready {
                    standing.ready = true;
                    let job = Job {
                        task,
                        // Steps follow each other: among equals the task that woke earlier goes first.
                        ready: Instant::from_ns(number as u64),
                        deadline: standing.deadline,
                        priority: standing.priority,
                    };
                    self.tell(Event::Wake(job))?;
                }
            }
            StepEvent::Block(task) => {
                if std::mem::take(&mut self.tasks[task.index()].ready) {
                    self.tell(Event::Block(task))?;
                }
            }
            StepEvent::SetAffinity(task, affinity) => {
                self.tell(Event::SetAffinity(task, &affinity))?;
            }
            StepEvent::SetPriority(task, priority) => {
                self.tasks[task.index()].priority = priority;
                self.tell(Event::SetPriority(task, priority))?;
            }
            StepEvent::SetDeadline(task, deadline) => {
                self.tasks[task.index()].deadline = deadline;
                if self.tasks[task.index()].ready {
                    self.tell(Event::SetDeadline(task, deadline))?;
                }
            }
            StepEvent::Enter(task) => {
                if !std::mem::replace(&mut self.tasks[task.index()].present, true) {
                    let set = self.set;
                    self.tell(Event::Enter(task, &set.tasks[task.index()]))?;
                }
            }
            StepEvent::Leave(task) => {
                let standing = &mut self.tasks[task.index()];
                standing.ready = false;
                if std::mem::take(&mut standing.present) {
                    self.tell(Event::Leave(task))?;
                }
            }
            StepEvent::CpuOffline(cpu) => self.tell(Event::CpuOffline(cpu))?,
            StepEvent::CpuOnline(cpu) => self.tell(Event::CpuOnline(cpu))?,
        }
        Ok(())
    }

    fn tell(&mut self, event: Event<'_>) -> Result<(), PolicyError> {
        self.policy.accepts(&event)?;
        self.switches.clear();
        self.policy.on_event(event, &mut self.switches);
        Ok(())
    }

    fn is_as_expected(&self, step: &Step) -> bool {
        let by_cpu = step.expect.as_ref().is_none_or(|expected| {
            let fits = |(expected, found): (&Expectation, &Option<TaskId>)| match expected {
                Expectation::Task(task) => *found == Some(*task),
                Expectation::Idle => found.is_none(),
                Expectation::Anything => true,
            };
            expected.len() == self.running.len() && expected.iter().zip(&self.running).all(fits)
        });
        let by_set = step.expect_set.as_ref().is_none_or(|expected| {
            sorted(expected.iter().copied()) == sorted(self.running.iter().copied().flatten())
        });
        by_cpu && by_set
    }

    /// What was expected after a step and what was found.
    fn complaint(&self, path: &str, number: usize, step: &Step) -> String {
        let mut expected = Vec::new();
        if let Some(cpus) = &step.expect {
            let name = |expectation: &Expectation| match expectation {
                Expectation::Task(task) => self.name_of(*task),
                Expectation::Idle => "",
                Expectation::Anything => "*",
            };
            expected.push(list(cpus.iter().map(name)));
        }
        if let Some(tasks) = &step.expect_set {
            let names = tasks.iter().map(|&task| self.name_of(task));
            expected.push(format!("the set {}", list(names)));
        }
        let found = list(
            self.running
                .iter()
                .map(|task| task.map_or("", |task| self.name_of(task))),
        );
        format!(
            "{path}: line {}: step {number} ({}) under {}: expected {}, found {found}",
            step.place.line,
            describe(self.set, &step.event),
            self.name,
            expected.join(" and "),
        )
    }

    fn name_of(&self, task: TaskId) -> &'a str {
        &self.set.tasks[task.index()].name
    }
}

/// Names as a scenario file writes them: `["T0","","*"]`.
fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    format!("[{}]", quoted.join(","))
}

fn sorted(tasks: impl Iterator<Item = TaskId>) -> Vec<TaskId> {
    let mut tasks: Vec<TaskId> = tasks.collect();
    tasks.sort_unstable();
    tasks
}

/// Whether a task is absent until an event lets it enter.
fn enters_later(scenario: &Scenario, task: TaskId) -> bool {
    scenario
        .steps
        .iter()
        .find_map(|step| match step.event {
            StepEvent::Enter(id) if id == task => Some(true),
            StepEvent::Leave(id) if id == task => Some(false),
            _ => None,
        })
        .unwrap_or(false)
}
