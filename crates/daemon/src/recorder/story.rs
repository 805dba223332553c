//! Facts as records of a run, to be explained as those of any other.

use std::collections::BTreeMap;

use shiftwork_live::standing::{Absence, FactKind};
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Happening, Instant, JobId, NotReadyReason, Priority, Record, Span,
    TaskId,
};

use super::analysis::{Loss, Why};
use super::{Noted, Recording, Terms};

/// Less is not told: whoever measures reads two clocks, one after the other.
const INTERRUPTED_MIN: Span = Span::from_us(1);

/// What is known of a task while its facts are read.
struct Actor {
    /// Its number among those of the records.
    id: TaskId,
    deadline: Span,
    priority: Priority,
    /// The CPUs that it may use, whatever the kernel holds it on.
    cpus: CpuSet,
    jobs: u64,
    /// Its job that is not finished.
    open: Option<JobId>,
    is_ready: bool,
    /// It is out of budget and still on its CPU.
    stops_soon: bool,
    /// Where it is, whether or not a job of it is shown there.
    on: Option<CpuId>,
    /// Since when.
    on_since_ns: u64,
}

/// The records of the facts.
pub(super) struct Story<'a> {
    recording: &'a Recording,
    actors: BTreeMap<u32, Actor>,
    /// What each CPU is shown with.
    shown: BTreeMap<CpuId, JobId>,
    away: Vec<(CpuId, Absence)>,
    /// Instants are counted from here, as of a run.
    origin_ns: u64,
    pub records: Vec<Record>,
    /// The jobs, by the life that they are of and when they began.
    pub jobs: BTreeMap<(u32, u64), JobId>,
    /// Whose reservation was lost in the middle of a job.
    pub losses: Vec<Loss>,
}

impl<'a> Story<'a> {
    /// Tells what the recording holds, of the lives in this order.
    pub fn of(recording: &'a Recording, lives: &[u32], origin_ns: u64) -> Self {
        let actor = |(index, &life): (usize, &u32)| {
            let terms = recording.lives.get(&life)?.terms.first()?;
            let actor = Actor {
                id: TaskId::from_index(index),
                deadline: terms.deadline,
                priority: terms.priority,
                cpus: terms.cpus,
                jobs: 0,
                open: None,
                is_ready: false,
                stops_soon: false,
                on: None,
                on_since_ns: 0,
            };
            Some((life, actor))
        };
        let mut story = Self {
            recording,
            actors: lives.iter().enumerate().filter_map(actor).collect(),
            shown: BTreeMap::new(),
            away: Vec::new(),
            origin_ns,
            records: Vec::new(),
            jobs: BTreeMap::new(),
            losses: Vec::new(),
        };
        story.tell_all();
        story
    }

    fn tell_all(&mut self) {
        // What is not the agent's is nobody's here.
        for cpu in (CpuSet::first(self.recording.cpu_count()) - self.recording.cpus).iter() {
            self.record(self.origin_ns, Happening::CpuOffline { cpu });
        }
        let mut changes: Vec<(u32, Terms)> = Vec::new();
        for (&life, it) in &self.recording.lives {
            changes.extend(it.terms.iter().skip(1).map(|terms| (life, *terms)));
        }
        changes.sort_by_key(|(_, terms)| terms.since_ns);
        let mut changes = changes.into_iter().peekable();
        for noted in &self.recording.facts {
            while let Some((life, terms)) =
                changes.next_if(|(_, terms)| terms.since_ns <= noted.fact.at_ns)
            {
                self.change(life, &terms);
            }
            self.take(noted);
        }
    }

    fn record(&mut self, at_ns: u64, what: Happening) {
        let at = self.instant(at_ns);
        self.records.push(Record { at, what });
    }

    const fn instant(&self, at_ns: u64) -> Instant {
        Instant::from_ns(at_ns.saturating_sub(self.origin_ns))
    }

    fn change(&mut self, life: u32, terms: &Terms) {
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        actor.deadline = terms.deadline;
        let what = Happening::AttributesSet {
            task: actor.id,
            cost: terms.cost,
            period: terms.period,
            deadline: terms.deadline,
        };
        self.record(terms.since_ns, what);
    }

    fn take(&mut self, noted: &Noted) {
        match (noted.life, noted.fact.task) {
            (Some(life), _) if self.actors.contains_key(&life) => self.of_life(noted, life),
            (None, None) => self.of_cpu(noted),
            _ => {}
        }
    }

    fn of_life(&mut self, noted: &Noted, life: u32) {
        let Noted { fact, .. } = noted;
        let at_ns = fact.at_ns;
        let id = self.actors[&life].id;
        match fact.what {
            FactKind::Woken => self.begin(at_ns, life),
            FactKind::Ready { deadline_ns } => {
                self.begin(at_ns, life);
                self.ready(at_ns, life, deadline_ns);
            }
            FactKind::Blocked | FactKind::Yielded => self.finish(at_ns, life),
            FactKind::Spent => self.spend(at_ns, life),
            FactKind::Overrun => {
                if let Some(job) = self.actors[&life].open {
                    self.record(at_ns, Happening::BudgetSpent { job });
                }
            }
            FactKind::Replenished { deadline_ns } => {
                let deadline = self.instant(deadline_ns);
                let terms = self.recording.lives[&life].terms.iter();
                let mut terms = terms.filter(|terms| terms.since_ns <= at_ns);
                let budget = terms.next_back().map_or(Span::ZERO, |terms| terms.cost);
                let what = Happening::Replenished {
                    task: id,
                    budget,
                    deadline,
                };
                self.record(at_ns, what);
            }
            FactKind::Running => self.runs(at_ns, fact.cpu, life),
            FactKind::Stopped { ran } => self.stops(at_ns, fact.cpu, life, ran),
            FactKind::Left => self.leave(at_ns, life, Why::Dismissed),
            FactKind::Demoted { asked } => {
                self.bind(at_ns, life, asked);
                self.leave(at_ns, life, Why::Asked(asked));
            }
            FactKind::Entered { cpus } => {
                self.record(at_ns, Happening::Entered { task: id });
                self.bind(at_ns, life, cpus);
            }
            FactKind::Affinity { cpus } => self.bind(at_ns, life, cpus),
            FactKind::Narrowed { cpus } => {
                let own = self.actors[&life].cpus;
                self.show_affinity(at_ns, life, cpus.unwrap_or(own));
            }
            FactKind::Prioritized { priority } => {
                if let Some(actor) = self.actors.get_mut(&life) {
                    actor.priority = priority;
                }
                self.record(at_ns, Happening::PrioritySet { task: id, priority });
            }
            _ => {}
        }
    }

    fn begin(&mut self, at_ns: u64, life: u32) {
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        if actor.open.is_some() {
            return;
        }
        actor.jobs += 1;
        let job = JobId {
            task: actor.id,
            number: actor.jobs,
        };
        actor.open = Some(job);
        let due_ns = at_ns.saturating_add(actor.deadline.as_ns());
        self.jobs.insert((life, at_ns), job);
        let deadline = self.instant(due_ns);
        self.record(at_ns, Happening::Released { job, deadline });
    }

    fn ready(&mut self, at_ns: u64, life: u32, deadline_ns: u64) {
        if self.actors[&life].stops_soon {
            self.throttle(at_ns, life);
        }
        let deadline = self.instant(deadline_ns);
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        actor.is_ready = true;
        let (Some(job), priority, on) = (actor.open, actor.priority, actor.on) else {
            return;
        };
        self.record(
            at_ns,
            Happening::Ready {
                job,
                deadline,
                priority,
            },
        );
        // It need not have left its CPU between two jobs.
        if let Some(cpu) = on {
            self.show(at_ns, cpu, Some(job));
        }
    }

    fn spend(&mut self, at_ns: u64, life: u32) {
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        let Some(job) = actor.open.filter(|_| actor.is_ready) else {
            return;
        };
        actor.stops_soon = actor.on.is_some();
        let goes_on = actor.stops_soon;
        self.record(at_ns, Happening::BudgetSpent { job });
        if !goes_on {
            self.throttle(at_ns, life);
        }
    }

    /// It was out of budget when it was told to stop, and has stopped now.
    fn throttle(&mut self, at_ns: u64, life: u32) {
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        actor.stops_soon = false;
        actor.is_ready = false;
        let (open, on) = (actor.open, actor.on);
        if let Some(cpu) = on {
            self.show(at_ns, cpu, None);
        }
        if let Some(job) = open {
            let reason = NotReadyReason::Throttled;
            self.record(at_ns, Happening::NotReady { job, reason });
        }
    }

    fn finish(&mut self, at_ns: u64, life: u32) {
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        actor.is_ready = false;
        actor.stops_soon = false;
        let Some(job) = actor.open.take() else { return };
        let on = actor.on;
        self.record(at_ns, Happening::Completed { job });
        if let Some(cpu) = on {
            self.show(at_ns, cpu, None);
        }
    }

    fn runs(&mut self, at_ns: u64, cpu: Option<CpuId>, life: u32) {
        let Some(cpu) = cpu else { return };
        // Whoever had taken it has let go; that is told after the next switch.
        self.come_back(at_ns, cpu, Absence::Taken);
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        actor.on = Some(cpu);
        actor.on_since_ns = at_ns;
        if let Some(job) = actor.open.filter(|_| actor.is_ready) {
            self.show(at_ns, cpu, Some(job));
        }
    }

    fn stops(&mut self, at_ns: u64, cpu: Option<CpuId>, life: u32, ran: Span) {
        let Some(cpu) = cpu else { return };
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        let there_ns = at_ns.saturating_sub(actor.on_since_ns);
        let time = Span::from_ns(there_ns.saturating_sub(ran.as_ns()));
        let was_there = actor.on.take().is_some();
        let (id, stops_soon) = (actor.id, actor.stops_soon);
        let shown = self.shown.get(&cpu).copied();
        if let Some(job) = shown.filter(|job| job.task == id) {
            if was_there && time >= INTERRUPTED_MIN {
                self.record(at_ns, Happening::Interrupted { job, time });
            }
            self.show(at_ns, cpu, None);
        }
        if stops_soon {
            self.throttle(at_ns, life);
        }
    }

    fn leave(&mut self, at_ns: u64, life: u32, why: Why) {
        let Some(actor) = self.actors.get_mut(&life) else {
            return;
        };
        actor.is_ready = false;
        actor.stops_soon = false;
        let (id, on) = (actor.id, actor.on.take());
        if let Some(job) = actor.open.take() {
            let gone = self.recording.lives.get(&life);
            let is_gone = gone.is_none_or(|it| it.gone_ns.is_some_and(|gone| gone <= at_ns));
            let why = match why {
                Why::Dismissed if is_gone => Why::Gone,
                Why::Dismissed => self.offline().map_or(Why::Dismissed, Why::Offline),
                other => other,
            };
            let at = self.instant(at_ns);
            self.losses.push(Loss { job, at, why });
        }
        self.record(at_ns, Happening::Left { task: id });
        if let Some(cpu) = on {
            self.show(at_ns, cpu, None);
        }
    }

    /// The CPUs of the agent that are offline now; `None`: no one is.
    fn offline(&self) -> Option<CpuSet> {
        let all = self.away.iter();
        let offline = all.filter(|(_, why)| *why == Absence::Offline);
        let cpus: CpuSet = offline.map(|&(cpu, _)| cpu).collect();
        (!cpus.is_empty()).then_some(cpus)
    }

    fn bind(&mut self, at_ns: u64, life: u32, cpus: CpuSet) {
        if let Some(actor) = self.actors.get_mut(&life) {
            actor.cpus = cpus;
        }
        self.show_affinity(at_ns, life, cpus);
    }

    fn show_affinity(&mut self, at_ns: u64, life: u32, cpus: CpuSet) {
        let task = self.actors[&life].id;
        // What is not the agent's is nobody's here.
        if let Some(affinity) = Affinity::new(cpus & self.recording.cpus) {
            let affinity = Box::new(affinity);
            self.record(at_ns, Happening::AffinitySet { task, affinity });
        }
    }

    /// The CPU is shown with this job from now on.
    fn show(&mut self, at_ns: u64, cpu: CpuId, to: Option<JobId>) {
        let from = self.shown.remove(&cpu);
        if let Some(job) = to {
            self.shown.insert(cpu, job);
        }
        if from != to {
            self.record(at_ns, Happening::Switched { cpu, from, to });
        }
    }

    fn of_cpu(&mut self, noted: &Noted) {
        let Some(cpu) = noted.fact.cpu else { return };
        match noted.fact.what {
            FactKind::CpuLost { why } => self.go_away(noted.fact.at_ns, cpu, why),
            FactKind::CpuBack { why } => self.come_back(noted.fact.at_ns, cpu, why),
            _ => {}
        }
    }

    fn go_away(&mut self, at_ns: u64, cpu: CpuId, why: Absence) {
        if self.away.contains(&(cpu, why)) {
            return;
        }
        self.away.push((cpu, why));
        if let Some(job) = self.shown.get(&cpu).copied() {
            // It is on its way out: the kernel has switched already, or is about to.
            self.show(at_ns, cpu, None);
            let mut actors = self.actors.values_mut();
            if let Some(actor) = actors.find(|actor| actor.id == job.task) {
                actor.on = None;
            }
        }
        let what = match why {
            Absence::Offline => Happening::CpuOffline { cpu },
            Absence::Taken => Happening::CpuTaken { cpu },
            Absence::Background => Happening::BackgroundStarted { cpu },
        };
        self.record(at_ns, what);
    }

    fn come_back(&mut self, at_ns: u64, cpu: CpuId, why: Absence) {
        let Some(index) = self.away.iter().position(|it| *it == (cpu, why)) else {
            return;
        };
        self.away.swap_remove(index);
        let what = match why {
            Absence::Offline => Happening::CpuOnline { cpu },
            Absence::Taken => Happening::CpuReturned { cpu },
            Absence::Background => Happening::BackgroundEnded { cpu },
        };
        self.record(at_ns, what);
    }
}
