//! What an rt-app thread does: its phases and events, in order, cut into jobs.

use shiftwork_model::{CpuSet, Phase, Span, Work};

use super::Json;
use crate::error::TasksetError;

/// The most events that a thread may have once its inner loops are written out. Longer loops of
/// jobs are cut here; the cost still counts every event.
const EVENTS_MAX: usize = 10_000;

/// The effect of an event on a job. Events are recognized by the prefix of their key, in this
/// order.
#[derive(Clone, Copy)]
enum EventKind {
    Run,
    Sleep,
    Timer,
    LeftOut,
}

const EVENTS: [(&str, EventKind); 18] = [
    ("lock", EventKind::LeftOut),
    ("unlock", EventKind::LeftOut),
    ("wait", EventKind::LeftOut),
    ("signal", EventKind::LeftOut),
    ("broad", EventKind::LeftOut),
    ("sync", EventKind::LeftOut),
    ("sleep", EventKind::Sleep),
    ("runtime", EventKind::Run),
    ("run", EventKind::Run),
    ("timer", EventKind::Timer),
    ("suspend", EventKind::LeftOut),
    ("resume", EventKind::LeftOut),
    ("mem", EventKind::LeftOut),
    ("iorun", EventKind::LeftOut),
    ("yield", EventKind::LeftOut),
    ("barrier", EventKind::LeftOut),
    ("fork", EventKind::LeftOut),
    ("sem_", EventKind::LeftOut),
];

/// Keys of a thread or phase that are no events. Old files say `exec` for `run`.
const PARAMETERS: [&str; 13] = [
    "instance",
    "delay",
    "loop",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "deadline",
    "period",
    "cpus",
    "phases",
    "exec",
];

/// The jobs of one round of a thread, and what they leave out.
pub(super) struct Body {
    /// What each job does; the gap that a final sleep makes is not part of it.
    pub(super) jobs: Vec<Vec<Phase>>,
    /// The period of the timer, the shortest if there are several.
    pub(super) period: Option<Span>,
    /// The CPUs that the thread uses; empty for all.
    pub(super) cpus: CpuSet,
    /// What else it does.
    pub(super) left_out: Vec<String>,
    /// What the job under construction does.
    current: Vec<Phase>,
    /// The length of a round without a timer.
    length: Span,
    /// Whether timers have different periods.
    uneven: bool,
    /// Whether `runtime` is a parameter of the thread and no event.
    runtime_is_budget: bool,
}

/// Reads what a thread does.
pub(super) fn read(thread: Json<'_>, server: OldServer) -> Result<Body, TasksetError> {
    let mut body = Body {
        jobs: Vec::new(),
        period: None,
        cpus: CpuSet::EMPTY,
        left_out: Vec::new(),
        current: Vec::new(),
        length: Span::ZERO,
        uneven: false,
        runtime_is_budget: matches!(server, OldServer::Present),
    };
    match thread.get("phases")? {
        Some(phases) => {
            let mut cpus = CpuSet::EMPTY;
            let mut everywhere = false;
            for phase in phases.members()? {
                body.read_phase(phase)?;
                match phase.get("cpus")? {
                    Some(own) => cpus = cpus | own.cpus()?,
                    None => everywhere = true,
                }
            }
            body.join_cpus(thread, cpus, everywhere)?;
            body.name_unknown(thread);
        }
        None => {
            body.read_events(thread, 1)?;
            body.join_cpus(thread, CpuSet::EMPTY, true)?;
        }
    }
    if body.period.is_none()
        && let Some(period) = thread.get("period")?
    {
        let period = period.microseconds()?;
        body.period = Some(period).filter(|period| !period.is_zero());
    }
    body.finish();
    Ok(body)
}

/// Whether a thread has a server under the names of old files, where `runtime` is the budget and
/// no event.
#[derive(Clone, Copy)]
pub(super) enum OldServer {
    Present,
    Absent,
}

impl Body {
    /// The affinity: the thread's own, or that of its phases together.
    fn join_cpus(
        &mut self,
        thread: Json<'_>,
        phases: CpuSet,
        everywhere: bool,
    ) -> Result<(), TasksetError> {
        let own = match thread.get("cpus")? {
            Some(value) => value.cpus()?,
            None => CpuSet::EMPTY,
        };
        self.cpus = match (own.is_empty(), everywhere) {
            (true, true) => CpuSet::EMPTY,
            (_, true) => own | phases,
            (_, false) => phases,
        };
        if !phases.is_empty() && (everywhere || phases != own) {
            let used = match self.cpus.is_empty() {
                true => "all CPUs".to_string(),
                false => format!("CPUs {}", self.cpus),
            };
            self.left_out
                .push(format!("`cpus` of single phases; it may always use {used}"));
        }
        Ok(())
    }

    /// Names the keys of a thread with phases that nothing reads.
    fn name_unknown(&mut self, thread: Json<'_>) {
        let members = thread.members().into_iter().flatten();
        for member in members.filter(|member| !PARAMETERS.contains(&member.key)) {
            self.left_out.push(format!("`{}`", member.key));
        }
    }

    fn read_phase(&mut self, phase: Json<'_>) -> Result<(), TasksetError> {
        let rounds = match phase.get("loop")? {
            Some(value) => value.integer(-1, i64::MAX)?,
            None => 1,
        };
        if rounds < 0 {
            let what = format!("phase `{}` never ends; it is taken once", phase.key);
            self.left_out.push(what);
        }
        let rounds = rounds.max(i64::from(rounds < 0)).unsigned_abs();
        let rounds = usize::try_from(rounds).unwrap_or(usize::MAX);
        self.read_events(phase, rounds)?;
        for key in ["delay", "policy", "priority"] {
            if phase.get(key)?.is_some() {
                self.left_out
                    .push(format!("phase `{}`: `{key}`", phase.key));
            }
        }
        Ok(())
    }

    /// Goes through the events of a phase, or of a thread without phases.
    fn read_events(&mut self, phase: Json<'_>, wanted: usize) -> Result<(), TasksetError> {
        let mut events = Vec::new();
        for member in phase.members()? {
            if let Some(event) = self.read_event(member)? {
                events.push(event);
            }
        }
        if events.is_empty() {
            return Ok(());
        }
        let room = EVENTS_MAX.saturating_sub(self.current.len() + self.jobs.len());
        let rounds = wanted.min(room / events.len());
        if rounds < wanted {
            let what = format!("`{}`: {} of {} rounds", phase.key, wanted - rounds, wanted);
            self.left_out.push(what);
        }
        for _ in 0..rounds {
            for event in &events {
                self.apply(*event);
            }
        }
        Ok(())
    }

    /// Reads an event; `None` for one that is left out, and for parameters.
    fn read_event(&mut self, member: Json<'_>) -> Result<Option<Event>, TasksetError> {
        if member.key == "exec" {
            return Ok(Some(Event::Do(Phase::Run(member.microseconds()?))));
        }
        let budget = member.key == "runtime" && self.runtime_is_budget;
        if budget || PARAMETERS.contains(&member.key) {
            return Ok(None);
        }
        let kind = EVENTS
            .iter()
            .find(|(prefix, _)| member.key.starts_with(prefix));
        Ok(match kind.map(|&(_, kind)| kind) {
            Some(EventKind::Run) => Some(Event::Do(Phase::Run(member.microseconds()?))),
            Some(EventKind::Sleep) => Some(Event::Do(Phase::Sleep(member.microseconds()?))),
            Some(EventKind::Timer) => Some(Event::Timer(self.read_timer(member)?)),
            Some(EventKind::LeftOut) | None => {
                self.left_out.push(format!("`{}`", member.key));
                None
            }
        })
    }

    fn read_timer(&mut self, timer: Json<'_>) -> Result<Span, TasksetError> {
        let period = timer
            .get("period")?
            .ok_or_else(|| TasksetError::MissingKey {
                place: timer.place(),
                key: "period",
                within: format!("`{}`", timer.key),
                example: "\"period\": 2000",
            })?;
        if let Some(mode) = timer.get("mode")? {
            self.left_out
                .push(format!("`{}`: mode {}", timer.key, mode.text("a mode")?));
        }
        match period.microseconds()? {
            Span::ZERO => Err(TasksetError::Zero {
                place: period.place(),
                key: period.key.to_string(),
            }),
            period => Ok(period),
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Do(Phase::Run(Span::ZERO) | Phase::Sleep(Span::ZERO)) => {}
            Event::Do(phase) => {
                let (Phase::Run(length) | Phase::Sleep(length)) = phase;
                self.length += length;
                self.current.push(phase);
            }
            Event::Timer(period) => {
                self.uneven |= self.period.is_some_and(|other| other != period);
                self.period = Some(self.period.map_or(period, |other| other.min(period)));
                let job = std::mem::take(&mut self.current);
                self.jobs.push(job);
            }
        }
    }

    /// Puts what follows the last timer before the first, since the round starts over there.
    fn finish(&mut self) {
        let mut rest = std::mem::take(&mut self.current);
        match self.jobs.first_mut() {
            Some(first) => {
                if !rest.is_empty() {
                    rest.append(first);
                    *first = rest;
                }
            }
            None => self.jobs.push(rest),
        }
        for job in &mut self.jobs {
            while matches!(job.last(), Some(Phase::Sleep(_))) {
                job.pop();
            }
            merge(job);
        }
        self.jobs.retain(|job| !job.is_empty());
        if self.uneven {
            let what = "timers of different periods; the shortest is kept";
            self.left_out.push(what.to_string());
        }
        let alike = self.jobs.windows(2).all(|pair| pair[0] == pair[1]);
        if !alike && self.jobs.iter().any(|job| job.len() > 1) {
            let what = "sleeping inside jobs that are not alike";
            self.left_out.push(what.to_string());
        }
    }

    /// The length of a round without a timer.
    pub(super) fn loop_length(&self) -> Span {
        self.length.min(Span::MAX)
    }

    /// How long the longest job computes; `None` without any.
    pub(super) fn longest_job(&self) -> Option<Span> {
        self.jobs.iter().map(|job| computing(job)).max()
    }

    /// What the jobs do, if the declared cost is `cost`.
    pub(super) fn work(&self, cost: Span) -> Work {
        match self.jobs.as_slice() {
            [] => Work::Cost,
            [job] => match job.as_slice() {
                [Phase::Run(run)] if *run == cost => Work::Cost,
                [Phase::Run(run)] => Work::Constant(*run),
                phases => Work::Phases(phases.to_vec()),
            },
            jobs if jobs.iter().all(|job| job == &jobs[0]) && jobs[0].len() > 1 => {
                Work::Phases(jobs[0].clone())
            }
            jobs => match jobs.iter().map(|job| computing(job)).collect::<Vec<_>>() {
                runs if runs.iter().all(|&run| run == cost) => Work::Cost,
                runs => Work::Trace(runs),
            },
        }
    }
}

/// One step of a thread.
#[derive(Clone, Copy)]
enum Event {
    Do(Phase),
    Timer(Span),
}

/// How long the phases compute.
fn computing(phases: &[Phase]) -> Span {
    let runs = phases.iter().map(|phase| match phase {
        Phase::Run(length) => *length,
        Phase::Sleep(_) => Span::ZERO,
    });
    runs.fold(Span::ZERO, |sum, run| (sum + run).min(Span::MAX))
}

/// Joins neighbours of one kind.
fn merge(job: &mut Vec<Phase>) {
    let mut merged: Vec<Phase> = Vec::with_capacity(job.len());
    for &phase in job.iter() {
        match (merged.last_mut(), phase) {
            (Some(Phase::Run(before)), Phase::Run(more))
            | (Some(Phase::Sleep(before)), Phase::Sleep(more)) => {
                *before = (*before + more).min(Span::MAX);
            }
            _ => merged.push(phase),
        }
    }
    *job = merged;
}
