//! The decision on some claims: does the demand fit, and what does the policy make of it?

use crate::policy::{is_edf, is_fp, is_np_edf, is_semi_partitioned, shifts};
use shiftwork_model::{CpuSet, Placement, Share, TaskId};

use super::words::{self, Note};
use super::{Claim, DeadlineTests, Decision, Guarantee, Terms};
use crate::affinity::parts::parts;
use crate::affinity::{
    Bound, Groups, nested_density, reduction, reduction_edf, waiting_levels_edf, waiting_levels_fp,
};
use crate::exact::{Rate, beside};
use crate::uniprocessor::{fp_rta, qpa};
use crate::{Outcome, Placed, Ranked, Sporadic, Steps, Witness};

/// Claims that are looked at together.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted<'a> {
    /// Usually one of each task.
    pub(super) claims: Vec<&'a Claim>,
    /// So many of them, the first, are of tasks that are promised something. The others only take room.
    pub(super) asked: usize,
    /// CPUs that a task may use together although none of its claims says so.
    pub(super) links: Vec<CpuSet>,
}

impl<'a> Counted<'a> {
    /// One claim of each task.
    pub(super) fn all(claims: &'a [Claim]) -> Self {
        Self {
            claims: claims.iter().collect(),
            asked: claims.len(),
            links: Vec::new(),
        }
    }
}

/// What is found of some claims, before it is put into words.
#[derive(Clone, Debug)]
pub(super) struct Judgement {
    /// Whether the demand does.
    pub(super) fits: bool,
    /// What can be shown of each claim that asks, in their order; empty if the demand does not fit.
    pub(super) tasks: Vec<(TaskId, Guarantee)>,
    pub(super) witness: Option<Witness>,
    /// Why it is not more, each with what is shown nevertheless.
    notes: Vec<(Guarantee, Note)>,
}

impl Judgement {
    pub(super) fn refused(witness: Witness) -> Self {
        Self {
            fits: false,
            tasks: Vec::new(),
            witness: Some(witness),
            notes: Vec::new(),
        }
    }

    /// The last of the tasks of which no test shows what they need, if one is named.
    pub(super) fn unshown(&self) -> Option<TaskId> {
        self.notes.iter().find_map(|(_, note)| match note {
            Note::NotShown(task) => Some(*task),
            Note::Dense(tasks) => tasks.last().copied(),
            _ => None,
        })
    }

    /// The least that the claims of a task are promised; `None` if there are none.
    pub(super) fn promise(&self, task: TaskId) -> Option<Guarantee> {
        let own = self.tasks.iter().filter(|&&(of, _)| of == task);
        own.map(|&(_, guarantee)| guarantee).min()
    }

    /// Why, for people.
    pub(super) fn reason(&self, counted: &Counted<'_>, online: &CpuSet, terms: Terms) -> String {
        match (self.fits, &self.witness) {
            (false, Some(witness)) => words::crowded(witness, &counted.claims, terms),
            _ => words::graded(&self.tasks, &self.notes, &counted.claims, online, terms),
        }
    }

    /// The weakest guarantee of all claims that ask; [`Guarantee::None`] if the demand does not fit.
    pub(super) fn guarantee(&self) -> Guarantee {
        let weakest = self.tasks.iter().map(|&(_, guarantee)| guarantee).min();
        match self.fits {
            true => weakest.unwrap_or(Guarantee::Hard),
            false => Guarantee::None,
        }
    }

    /// The judgement in words.
    pub(super) fn in_words(self, counted: &Counted<'_>, online: &CpuSet, terms: Terms) -> Decision {
        let reason = self.reason(counted, online, terms);
        Decision {
            guarantee: self.guarantee(),
            reason,
            witness: self.witness,
            tasks: self.tasks,
            fits: self.fits,
        }
    }
}

/// Judges these claims with these CPUs online.
///
/// # Cost
/// That of [`Groups::shortage`], and under fixed priorities and for deadlines before the end of the
/// period that of one test per connected group of CPUs, within these steps for all of them together.
pub(super) fn judge(
    counted: &Counted<'_>,
    online: &CpuSet,
    terms: Terms,
    steps: &mut Steps,
) -> Judgement {
    if let Some(quanta) = &terms.quanta {
        return quanta.judge(counted, online, terms, |counted| {
            graded(counted, online, terms, steps)
        });
    }
    match refusal(&counted.claims, online, terms) {
        Some(witness) => Judgement::refused(witness),
        None => graded(counted, online, terms, steps),
    }
}

/// The tasks that do not fit under any order; `None` if all tasks fit.
pub(super) fn refusal(claims: &[&Claim], online: &CpuSet, terms: Terms) -> Option<Witness> {
    if let Some(witness) = claims.iter().find_map(|claim| impossible(claim, online)) {
        return Some(witness);
    }
    let groups = by_rate(claims, online, Claim::utilization);
    crowd(&groups, beside(terms.reserve))
}

/// The tasks that do not fit. A task with several claims is named once.
pub(super) fn crowd(groups: &Groups, supply: Share) -> Option<Witness> {
    let (crowd, _) = groups.shortage(supply);
    let mut witness = groups.witness(&crowd?, supply);
    if let Witness::Crowd { tasks, .. } = &mut witness {
        tasks.dedup();
    }
    Some(witness)
}

fn impossible(claim: &Claim, online: &CpuSet) -> Option<Witness> {
    let task = claim.task;
    let rate = match claim.utilization() {
        Some(rate) if !claim.cost.is_zero() && !claim.deadline.is_zero() => rate,
        _ => return Some(Witness::NoTask { task }),
    };
    if rate.exceeds_one() {
        return Some(Witness::Alone { task, needed: rate });
    }
    (!claim.cpus.intersects(online)).then_some(Witness::Nowhere { task })
}

fn by_rate(claims: &[&Claim], online: &CpuSet, rate: fn(&Claim) -> Option<Rate>) -> Groups {
    let mut groups = Groups::default();
    for claim in claims {
        // A rate that is none was refused before.
        if let Some(rate) = rate(claim) {
            groups.add(claim.task, claim.cpus & *online, rate);
        }
    }
    groups
}

/// What one connected group of CPUs gets.
struct Grade {
    guarantee: Guarantee,
    note: Option<Note>,
    witness: Option<Witness>,
}

impl Grade {
    const fn of(guarantee: Guarantee) -> Self {
        Self {
            guarantee,
            note: None,
            witness: None,
        }
    }

    const fn because(guarantee: Guarantee, note: Note) -> Self {
        Self {
            guarantee,
            note: Some(note),
            witness: None,
        }
    }
}

/// A connected set of CPUs and the claims on them.
pub(super) struct Members<'a> {
    pub(super) claims: Vec<&'a Claim>,
    pub(super) cpus: CpuSet,
    online: CpuSet,
    /// Whether a task may use more of the CPUs together than its claim says.
    linked: bool,
}

impl Members<'_> {
    /// Whether all tasks may use the same CPUs.
    fn are_alike(&self) -> bool {
        let alike = |claim: &&Claim| claim.cpus & self.online == self.cpus;
        !self.linked && self.claims.iter().all(alike)
    }

    /// The claims in an order that is independent of their arrival. A test that has tighter bounds
    /// for the tasks analysed first would otherwise depend on the arrival order of tasks of equal
    /// priority.
    fn in_order(&self) -> Vec<&Claim> {
        let mut claims: Vec<&Claim> = self.claims.clone();
        let own = |claim: &&Claim| (claim.deadline, claim.period, claim.cost, claim.cpus);
        claims.sort_by_key(|claim| (claim.priority, own(claim)));
        claims
    }

    /// The claims as tasks with affinities, in that order.
    fn placed(&self) -> Vec<Placed> {
        let placed = |claim: &Claim| Placed {
            task: sporadic(claim),
            cpus: claim.cpus & self.online,
        };
        self.in_order().into_iter().map(placed).collect()
    }

    fn first(&self, wanted: impl Fn(&Claim) -> bool) -> Option<TaskId> {
        let found = self.claims.iter().find(|claim| wanted(claim));
        found.map(|claim| claim.task)
    }
}

/// The guarantee of claims whose demand fits.
fn graded(counted: &Counted<'_>, online: &CpuSet, terms: Terms, steps: &mut Steps) -> Judgement {
    let claims = &counted.claims;
    let nothing = |claim: &&Claim| (claim.task, Guarantee::None);
    let mut tasks: Vec<(TaskId, Guarantee)> = claims.iter().map(nothing).collect();
    let mut notes = Vec::new();
    let mut first_witness = None;
    let affinities = claims.iter().map(|claim| claim.cpus & *online);
    let links = counted.links.iter().map(|link| *link & *online);
    let affinities: Vec<CpuSet> = affinities.chain(links).collect();
    for part in parts(&affinities) {
        let own = part.members.iter().filter(|&&place| place < claims.len());
        let members = Members {
            claims: own.clone().map(|&place| claims[place]).collect(),
            cpus: part.cpus,
            online: *online,
            linked: part.members.iter().any(|&place| place >= claims.len()),
        };
        let grade = grade(&members, terms, steps);
        let promises_deadlines = terms.policy.placement == Placement::Partitioned;
        if promises_deadlines && let Some(witness) = grade.witness {
            return Judgement::refused(witness);
        }
        own.for_each(|&place| tasks[place].1 = grade.guarantee);
        notes.extend(grade.note.map(|note| (grade.guarantee, note)));
        first_witness = first_witness.or(grade.witness);
    }
    tasks.truncate(counted.asked);
    Judgement {
        fits: true,
        tasks,
        witness: first_witness,
        notes,
    }
}

fn grade(members: &Members<'_>, terms: Terms, steps: &mut Steps) -> Grade {
    let (policy, cpus) = (&terms.policy, members.cpus);
    if let Some(quanta) = &terms.quanta {
        let (guarantee, note) = quanta.promise(members, terms);
        return Grade {
            guarantee,
            note,
            witness: None,
        };
    }
    match policy.placement {
        _ if members.claims.is_empty() => Grade::of(Guarantee::Hard),
        _ if is_semi_partitioned(policy) => semi_partitioned(members, terms),
        _ if is_np_edf(policy) => soft(members, terms),
        _ if cpus.len() == 1 => on_one_cpu(&members.claims, &cpus, terms, steps),
        _ if is_fp(policy) => by_priority(members, terms, steps),
        Placement::Weak => weak(members, terms, steps),
        _ => by_deadline(members, terms, steps),
    }
}

fn sporadic(claim: &Claim) -> Sporadic {
    Sporadic {
        cost: claim.cost,
        period: claim.period,
        deadline: claim.deadline,
    }
}

fn ranked(claim: &Claim) -> Ranked {
    Ranked {
        task: sporadic(claim),
        priority: claim.priority,
    }
}

/// Uniprocessor scheduling, whatever the placement is called. The demand fits.
fn on_one_cpu(members: &[&Claim], cpus: &CpuSet, terms: Terms, steps: &mut Steps) -> Grade {
    let supply = beside(terms.reserve);
    let cpu = cpus.lowest().expect("a part has a CPU");
    match terms.is_edf() {
        true if members.iter().all(|claim| claim.deadline >= claim.period) => {
            Grade::of(Guarantee::Hard)
        }
        true => {
            let tasks: Vec<Sporadic> = members.iter().map(|claim| sporadic(claim)).collect();
            match qpa(&tasks, supply, steps) {
                Outcome::Pass(()) => Grade::of(Guarantee::Hard),
                Outcome::StepLimit => {
                    Grade::because(Guarantee::BoundedTardiness, Note::StepLimit(*cpus))
                }
                Outcome::Fail(overfull) => Grade {
                    guarantee: Guarantee::BoundedTardiness,
                    note: Some(Note::Overfull(cpu)),
                    witness: Some(Witness::Interval {
                        cpu,
                        length: overfull.length,
                        demand: overfull.demand,
                    }),
                },
            }
        }
        false => {
            let tasks: Vec<Ranked> = members.iter().map(|claim| ranked(claim)).collect();
            match fp_rta(&tasks, supply, steps) {
                Outcome::Pass(()) => Grade::of(Guarantee::Hard),
                Outcome::StepLimit => Grade::because(Guarantee::None, Note::StepLimit(*cpus)),
                Outcome::Fail(late) => {
                    let task = members[late.place];
                    Grade {
                        guarantee: Guarantee::None,
                        note: Some(Note::NotShown(task.task)),
                        witness: Some(Witness::Late {
                            task: task.task,
                            cpu,
                            response: late.response,
                            deadline: task.deadline,
                        }),
                    }
                }
            }
        }
    }
}

/// Fixed priorities on more than one CPU, connected. The demand fits.
fn by_priority(members: &Members<'_>, terms: Terms, steps: &mut Steps) -> Grade {
    let bound = |claim: &&Claim| Bound {
        ranked: ranked(claim),
        cpus: claim.cpus & members.online,
    };
    let claims = members.in_order();
    let tasks: Vec<Bound> = claims.iter().map(bound).collect();
    let supply = beside(terms.reserve);
    let reduced = reduction(&tasks, supply, steps);
    if shifts(&terms.policy)
        && !reduced.passes()
        && waiting_levels_fp(&tasks, supply, steps).passes()
    {
        return Grade::of(Guarantee::Hard);
    }
    match reduced {
        Outcome::Pass(()) => Grade::of(Guarantee::Hard),
        Outcome::Fail(unshown) => {
            let task = claims[unshown.place].task;
            Grade::because(Guarantee::None, Note::NotShown(task))
        }
        Outcome::StepLimit => Grade::because(Guarantee::None, Note::StepLimit(members.cpus)),
    }
}

/// EDF on connected CPUs, where running jobs are moved if affinities differ: all deadlines where that is asked for
/// and shown, else bounded tardiness.
fn by_deadline(members: &Members<'_>, terms: Terms, steps: &mut Steps) -> Grade {
    if terms.deadlines == DeadlineTests::None || !is_edf(&terms.policy) {
        return soft(members, terms);
    }
    let (tasks, supply) = (members.placed(), beside(terms.reserve));
    let by_densities = terms.deadlines == DeadlineTests::All;
    if by_densities && nested_density(&tasks, supply, steps).passes()
        || waiting_levels_edf(&tasks, supply, steps).passes()
    {
        return Grade::of(Guarantee::Hard);
    }
    soft(members, terms)
}

/// EDF within affinities, without moving running jobs: all deadlines, or where the affinities do not
/// differ bounded tardiness, or nothing.
fn weak(members: &Members<'_>, terms: Terms, steps: &mut Steps) -> Grade {
    match reduction_edf(&members.placed(), beside(terms.reserve), steps) {
        Outcome::Pass(_) => Grade::of(Guarantee::Hard),
        // Looked at first, or a promise of deadlines would end with the last affinity that differs.
        _ if members.are_alike() => soft(members, terms),
        Outcome::Fail(_) => Grade::because(Guarantee::None, Note::Weak),
        Outcome::StepLimit => Grade::because(Guarantee::None, Note::StepLimit(members.cpus)),
    }
}

/// SCHED_DEADLINE with repaired migrations, for tasks that may use one CPU or all CPUs.
///
/// # Source
/// S. Tang, J. Anderson, L. Abeni, "On the Defectiveness of SCHED_DEADLINE w.r.t. Tardiness and
/// Affinities, and a Partial Fix", RTNS 2021: its conditions (1) and (2) are the sums over all CPUs and
/// over each that were looked at before.
fn semi_partitioned(members: &Members<'_>, terms: Terms) -> Grade {
    let outside = |claim: &Claim| {
        let cpus = claim.cpus & members.online;
        cpus.len() > 1 && cpus != members.online
    };
    match members.first(outside) {
        Some(task) => Grade::because(Guarantee::None, Note::NeitherOneNorAll(task)),
        None => soft(members, terms),
    }
}

/// Bounded tardiness under EDF on connected CPUs.
///
/// # Source
/// One affinity for all is global EDF, whose response times are bounded for any deadlines if the
/// utilizations fit (J. Erickson, U. Devi, S. Baruah, "Improved tardiness bounds for global EDF",
/// ECRTS 2010; also without preemption: H. Leontyev, J. Anderson, "Generalized tardiness bounds for
/// global multiprocessor scheduling", Real-Time Systems 44, 2010). Under the strong invariant they are
/// bounded for any affinities and deadlines (Theorem 3 of `docs/theory/strong-edf.md`). Under `dl-sp` they are
/// for implicit deadlines (S. Tang, J. Anderson, L. Abeni, "On the Defectiveness of SCHED_DEADLINE w.r.t.
/// Tardiness and Affinities, and a Partial Fix", RTNS 2021); there a task with a deadline before the end of its
/// period is one with the deadline as its period that comes less often.
fn soft(members: &Members<'_>, terms: Terms) -> Grade {
    let (claims, supply) = (&members.claims, beside(terms.reserve));
    if members.are_alike() || shifts(&terms.policy) {
        return Grade::of(Guarantee::BoundedTardiness);
    }
    if terms.policy.placement == Placement::Weak || is_np_edf(&terms.policy) {
        return Grade::because(Guarantee::None, Note::Weak);
    }
    if let Some(late) = members.first(|claim| claim.deadline > claim.period) {
        return Grade::because(Guarantee::None, Note::LongDeadline(late));
    }
    if let Some(dense) = members.first(|claim| claim.deadline < claim.cost) {
        return Grade::because(Guarantee::None, Note::Dense(vec![dense]));
    }
    let groups = by_rate(claims, &members.online, Claim::density);
    let is_short = claims.iter().any(|claim| claim.deadline < claim.period);
    match is_short.then(|| crowd(&groups, supply)).flatten() {
        Some(Witness::Crowd { tasks, .. }) => Grade::because(Guarantee::None, Note::Dense(tasks)),
        Some(_) => Grade::because(Guarantee::None, Note::Dense(Vec::new())),
        None => Grade::of(Guarantee::BoundedTardiness),
    }
}
