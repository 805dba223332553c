//! Executes a plan in the guest, and judges what happens.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use shiftwork_live::standing::Reservation;
use shiftwork_live::{Class, set_class};
use shiftwork_model::{Affinity, CpuSet, Instant, Priority, Span, TaskSet};

use super::compact::{Digest, lines};
use super::draw::{TASKS_MAX, USUAL_BYTES};
use super::judge::{Judge, Rules};
use super::plan::{Action, Episode, Machine, Plan, Reserved, Step, Task, Work};
use super::threads::{Passing, Thread, boost, burst};
use crate::deadline::work::{bind, sleep_until};
use crate::faults::{Offline, all_is_well, goes_on};
use crate::inside;
use crate::standing::periodic::{Jobs, now_ns};
use crate::standing::stage::{Stage, stretches_are_whole, task, wish};
use crate::standing::worker::{Doing, Worker};
use crate::storms::has_no_complaint;

/// Records that a failure shows.
const SHOWN: usize = 120;
/// From the admission of an episode to its first release, and from its last period to its end.
const MARGIN_NS: u64 = 2_000_000;

/// What a run amounts to.
pub struct Summary {
    pub records: usize,
    /// Events that found no room; the records say nothing of what follows.
    pub lost: u64,
    /// Of all records.
    pub digest: Digest,
    /// The longest time for which a job had to run and did not, and for which a CPU did not run its assignment.
    pub longest: Span,
    pub reaction: Span,
}

/// How long things may take on a machine: measured are up to two thirds of this.
#[derive(Clone, Copy)]
struct Windows {
    /// Until a job that has to run does, over several decisions.
    job: Span,
    /// Until a CPU runs its assignment.
    cpu: Span,
}

/// A CPU that waits for the lock of another waits for the turns of all. `patience` is 1 for a search and more where nothing that is
/// only slow may fail.
fn windows(machine: &Machine, patience: u64) -> Windows {
    let second_us = machine.second_turn_us.unwrap_or(machine.turn_us);
    let round_us = machine.turn_us.min(second_us) * u64::from(machine.cpus);
    Windows {
        job: Span::from_us(patience * (300 + 3 * round_us)),
        cpu: Span::from_us(patience * (250 + 3 * round_us / 2)),
    }
}

/// With hotplug the kernel stops all CPUs for milliseconds.
const WINDOW_OF_HOTPLUG: Span = Span::from_ms(40);

/// Executes the plan.
///
/// # Errors
/// What was wrong, where, and the last records.
pub fn execute(plan: &Plan, patience: u64) -> Result<Summary, String> {
    let windows = windows(&plan.machine, patience);
    let own = if plan.is_bound { 1 } else { plan.machine.cpus };
    bind(&CpuSet::first(own.into()), 0)?;
    let platform = (1 << plan.machine.cpus) - 2;
    let rules = Rules {
        order: plan.order,
        platform: CpuSet::from_bits(platform),
        window: windows.job,
    };
    let mut run = Run {
        stage: Stage::load_on(plan.order, platform, plan.trace_bytes)?,
        judge: Judge::new(rules, &task_set(plan)?),
        judged: 0,
        windows,
        began: Instant::ZERO,
        reaction: Span::ZERO,
        doing: String::new(),
    };
    for episode in &plan.episodes {
        run.episode(episode).map_err(|why| {
            let shown = run.shown();
            format!("{}{}: {why}\n{shown}", episode, run.doing)
        })?;
        let took = Instant::from_ns(now_ns()).late_since(run.began);
        println!(
            "e{}: {} records so far, {} events lost, {took}",
            episode.number,
            run.stage.records.len(),
            run.stage.standing.events_lost()
        );
    }
    let summary = run.end(platform)?;
    match summary.lost > 0 && plan.trace_bytes == USUAL_BYTES {
        true => Err(format!(
            "{} events found no room, so that little was judged",
            summary.lost
        )),
        false => Ok(summary),
    }
}

/// A set with as many tasks and CPUs, for the checkers.
fn task_set(plan: &Plan) -> Result<TaskSet, String> {
    let cpus = usize::from(plan.machine.cpus);
    let all = Affinity::new(CpuSet::first(cpus)).ok_or("no CPUs")?;
    let periodic = |number: usize| {
        let name = format!("t{number}");
        shiftwork_model::Task::periodic(&name, Span::from_ms(1), Span::from_ms(10), all)
    };
    let tasks = (0..TASKS_MAX).map(periodic).collect();
    Ok(TaskSet::new("soak", cpus, tasks))
}

struct Run {
    stage: Stage,
    judge: Judge,
    /// Records that have been judged.
    judged: usize,
    windows: Windows,
    /// The beginning of the episode.
    began: Instant,
    reaction: Span,
    /// What was done last.
    doing: String,
}

/// What exists during an episode.
#[derive(Default)]
struct Scene {
    threads: BTreeMap<usize, Thread>,
    passing: Vec<Passing>,
    offline: BTreeMap<usize, Offline>,
    ordinary: Vec<Worker>,
}

impl Run {
    /// The last records, and what the kernel knows of the tasks.
    fn shown(&self) -> String {
        let first = self
            .judged
            .saturating_sub(SHOWN)
            .min(self.stage.records.len());
        let last = (self.judged + 10).min(self.stage.records.len());
        let records = lines(&self.stage.records[first..last], self.began);
        let _ = fs::write("/proc/sysrq-trigger", "D");
        std::thread::sleep(Duration::from_millis(20));
        let trace = inside::trace();
        // Without where in the kernel each thread is.
        let kinds = ["sched_ext_dump: ", "bpf_trace_printk: "];
        let told = trace
            .lines()
            .filter_map(|line| kinds.iter().find_map(|kind| line.split_once(kind)));
        let told = told.map(|(_, what)| what.trim_end());
        let kept = told
            .filter(|what| !what.is_empty() && !what.contains("+0x") && !what.contains("SCX_EV"));
        kept.fold(records, |text, what| text + what + "\n")
    }

    fn episode(&mut self, episode: &Episode) -> Result<(), String> {
        let is_hotplug = episode
            .steps
            .iter()
            .any(|it| matches!(it.action, Action::Offline(_)));
        self.judge.set_window(match is_hotplug {
            true => WINDOW_OF_HOTPLUG,
            false => self.windows.job,
        });
        self.began = Instant::from_ns(now_ns());
        self.doing = "its beginning".to_owned();
        let mut scene = Scene::default();
        let done = self.act(episode, &mut scene);
        // Whatever is wrong is shown before it changes.
        done.and_then(|()| self.look(is_hotplug))?;
        self.doing = "its end".to_owned();
        self.strike(&mut scene)?;
        self.look(is_hotplug)
    }

    /// Everything up to the end of the last period.
    fn act(&mut self, episode: &Episode, scene: &mut Scene) -> Result<(), String> {
        for of in &episode.ordinary {
            let doing = if of.sleeps { Doing::Naps } else { Doing::Hogs };
            let worker = Worker::start(doing);
            if of.cpus != 0 {
                let bound = self
                    .stage
                    .standing
                    .bind(worker.id, &CpuSet::from_bits(of.cpus));
                bound.map_err(|error| error.to_string())?;
            }
            scene.ordinary.push(worker);
        }
        for of in &episode.tasks {
            scene.threads.insert(of.number, Thread::start(of.work)?);
            self.admit(of, scene)?;
        }
        let begin = now_ns() + MARGIN_NS;
        self.began = Instant::from_ns(begin);
        for of in &episode.tasks {
            give_jobs(episode, of, scene, begin);
        }
        let mut due: Vec<(u64, bool, &Step)> = Vec::new();
        for step in &episode.steps {
            due.push((step.at_us, true, step));
            due.push((step.at_us + step.for_us, false, step));
        }
        due.sort_by_key(|&(at_us, ..)| at_us);
        for (at_us, is_begin, step) in due {
            sleep_until(begin + at_us * 1_000);
            self.doing = format!(
                "s{}, {}",
                step.number,
                if is_begin { "done" } else { "undone" }
            );
            match is_begin {
                true => self.begin(episode, step, scene)?,
                false => self.undo(step, scene),
            }
        }
        sleep_until(begin + episode.rounds * episode.period_us * 1_000 + MARGIN_NS);
        self.doing = "its last period".to_owned();
        Ok(())
    }

    fn begin(&mut self, episode: &Episode, step: &Step, scene: &mut Scene) -> Result<(), String> {
        let of = |number: &usize| episode.tasks.iter().find(|it| it.number == *number);
        let standing = &mut self.stage.standing;
        match &step.action {
            Action::Change(number, reserved) => {
                let Some(thread) = scene.threads.get(number) else {
                    return Ok(());
                };
                let to = reservation(thread, reserved)?;
                let changed = standing.change(task(*number), &to);
                return changed.map_err(|error| error.to_string());
            }
            &Action::Bind(number, cpus, is_approved) => {
                let Some(thread) = scene.threads.get(&number) else {
                    return Ok(());
                };
                let cpus = CpuSet::from_bits(cpus);
                if is_approved {
                    let approved = standing.approve(task(number), &cpus);
                    approved.map_err(|error| error.to_string())?;
                }
                // It may be gone, or all of these CPUs.
                let _ = standing.bind(thread.id()?, &cpus);
            }
            &Action::BindsItself(number, cpus) => match scene.threads.get(&number) {
                Some(Thread::Works(worker)) => worker.binds_itself(cpus),
                Some(thread) => drop(standing.bind(thread.id()?, &CpuSet::from_bits(cpus))),
                None => {}
            },
            Action::Dismiss(number) => {
                let dismissed = standing.dismiss(task(*number));
                return dismissed.map_err(|error| error.to_string());
            }
            Action::Admit(number) => {
                if let Some(of) = of(number) {
                    return self.admit(of, scene);
                }
            }
            Action::End(number) => scene.threads.get(number).iter().for_each(|it| it.ends()),
            Action::Stop(number) => {
                let thread = scene.threads.get(number);
                thread.iter().for_each(|it| it.signal(Signal::STOP));
            }
            Action::Fifo(number) => set_class_of(scene.threads.get(number), Class::Fifo(10)),
            Action::Boost(number) => {
                if let Some(Thread::Jobs(thread)) = scene.threads.get(number) {
                    scene.passing.push(boost(thread.mutex.clone()));
                }
            }
            Action::Offline(cpu) => {
                scene.offline.insert(step.number, Offline::take(*cpu)?);
            }
            Action::Hog(cpu) => scene
                .passing
                .push(burst(1 << cpu, Class::Fifo(30), step.for_us)),
            Action::Burst(cpus) => scene
                .passing
                .push(burst(*cpus, Class::Ordinary, step.for_us)),
        }
        Ok(())
    }

    fn undo(&mut self, step: &Step, scene: &mut Scene) {
        match &step.action {
            Action::Stop(number) => {
                let thread = scene.threads.get(number);
                thread.iter().for_each(|it| it.signal(Signal::CONT));
            }
            Action::Fifo(number) => set_class_of(scene.threads.get(number), Class::Ordinary),
            Action::Offline(_) => drop(scene.offline.remove(&step.number)),
            _ => {}
        }
    }

    /// Binds the thread and admits it. It may be gone, or bound to CPUs that are offline: then it is not admitted.
    fn admit(&mut self, of: &Task, scene: &Scene) -> Result<(), String> {
        let Some(thread) = scene.threads.get(&of.number) else {
            return Ok(());
        };
        let reservation = reservation(thread, &of.reserved)?;
        let standing = &mut self.stage.standing;
        let _ = standing.bind(reservation.thread, &reservation.cpus);
        let admitted = standing.admit(task(of.number), &reservation);
        admitted.map(drop).map_err(|error| error.to_string())
    }

    /// All that took part goes.
    fn strike(&mut self, scene: &mut Scene) -> Result<(), String> {
        scene.offline.clear();
        for (number, thread) in &scene.threads {
            thread.signal(Signal::CONT);
            set_class_of(Some(thread), Class::Ordinary);
            let dismissed = self.stage.standing.dismiss(task(*number));
            dismissed.map_err(|error| error.to_string())?;
            thread.ends();
        }
        for passing in scene.passing.drain(..) {
            passing.join().map_err(|_| "a thread panicked")??;
        }
        scene.ordinary.clear();
        scene.threads.clear();
        Ok(())
    }

    /// Judges what was recorded since the last time, and looks at the counters.
    fn look(&mut self, is_hotplug: bool) -> Result<(), String> {
        let now = Instant::from_ns(now_ns());
        self.stage.take()?;
        let reaction = self.stage.standing.take_reaction_max();
        let is_complete = self.stage.standing.events_lost() == 0;
        if is_complete {
            for record in &self.stage.records[self.judged..] {
                self.judged += 1;
                self.judge.take(record)?;
            }
            if now >= self.stage.records.last().map_or(now, |record| record.at) {
                self.judge.pass(now)?;
            }
        }
        if let Some(fault) = self.stage.standing.state().1 {
            return Err(fault.to_owned());
        }
        if is_complete && !is_hotplug {
            self.reaction = self.reaction.max(reaction);
            if reaction > self.windows.cpu {
                return Err(format!("a CPU ran its assignment after {reaction}"));
            }
        }
        Ok(())
    }

    /// Every number can be that of another thread, which runs; nothing of the tasks is left, and the kernel has not complained.
    fn end(mut self, platform: u64) -> Result<Summary, String> {
        for number in 0..TASKS_MAX {
            let worker = Worker::start(Doing::Naps);
            self.stage.must_admit(number, &wish(&worker, platform))?;
            goes_on(worker.number(), 1)?;
            self.stage.dismiss(number)?;
        }
        self.look(false)?;
        let Self {
            mut stage,
            judge,
            reaction,
            ..
        } = self;
        stage.take()?;
        let lost = stage.standing.events_lost();
        let mut digest = Digest::EMPTY;
        digest.add(&stage.records);
        let summary = Summary {
            records: stage.records.len(),
            lost,
            digest,
            longest: judge.longest,
            reaction,
        };
        if lost == 0 {
            judge.finish().map_err(|(at, why)| {
                let near = stage.records.partition_point(|record| record.at < at);
                let range = near.saturating_sub(SHOWN)..(near + 10).min(stage.records.len());
                format!("at {at}: {why}\n{}", lines(&stage.records[range], at))
            })?;
            stretches_are_whole(&stage.records)?;
        }
        drop(stage);
        all_is_well()?;
        has_no_complaint()?;
        Ok(summary)
    }
}

/// The jobs of a task that the clock releases.
fn give_jobs(episode: &Episode, of: &Task, scene: &Scene, begin_ns: u64) {
    let Work::Jobs {
        first_ns,
        run_us,
        locked_us,
    } = of.work
    else {
        return;
    };
    if let Some(Thread::Jobs(thread)) = scene.threads.get(&of.number) {
        thread.does(&Jobs {
            first_ns: begin_ns + first_ns,
            period_ns: episode.period_us * 1_000,
            count: episode.rounds,
            run_us,
            locked_us,
        });
    }
}

fn reservation(thread: &Thread, of: &Reserved) -> Result<Reservation, String> {
    Ok(Reservation {
        thread: thread.id()?,
        cpus: CpuSet::from_bits(of.cpus),
        cost: Span::from_us(of.cost_us),
        period: Span::from_us(of.period_us),
        deadline: Span::from_us(of.deadline_us),
        on_overrun: of.on_overrun,
        priority: Priority::new(of.priority).ok_or("no priority")?,
    })
}

/// The thread may be gone.
fn set_class_of(thread: Option<&Thread>, class: Class) {
    if let Some(id) = thread.and_then(|thread| thread.id().ok()) {
        let _ = set_class(Some(id), class);
    }
}
