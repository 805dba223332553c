//! The decision on some claims: does the demand fit, and what does the policy make of it?

use shiftwork_model::{CPUS_MAX, CpuSet, Share, TaskId};

use super::words::{self, Note};
use super::{Claim, Decision, Guarantee, Order, Placement, Terms, Verdict};
use crate::affinity::{Bound, Groups, reduction};
use crate::exact::{Rate, beside};
use crate::uniprocessor::{fp_rta, qpa};
use crate::{Outcome, Ranked, Sporadic, Steps, Witness};

/// Decides on these claims, each of another task, with these CPUs online.
///
/// # Cost
/// That of [`Groups::shortage`], and under fixed priorities and for deadlines before the end of the
/// period that of one test per connected group of CPUs.
pub(super) fn decide(claims: &[&Claim], online: &CpuSet, terms: Terms) -> Decision {
    match refusal(claims, online, terms) {
        Some(witness) => refused(claims, terms, witness),
        None => graded(claims, online, terms),
    }
}

/// Who cannot have what it needs under any order, if anybody.
fn refusal(claims: &[&Claim], online: &CpuSet, terms: Terms) -> Option<Witness> {
    if let Some(witness) = claims.iter().find_map(|claim| impossible(claim, online)) {
        return Some(witness);
    }
    let supply = beside(terms.reserve);
    let groups = by_rate(claims, online, Claim::utilization);
    let (crowd, _) = groups.shortage(supply);
    crowd.map(|crowd| groups.witness(&crowd, supply))
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

fn refused(claims: &[&Claim], terms: Terms, witness: Witness) -> Decision {
    Decision {
        verdict: Verdict::Refused,
        guarantee: Guarantee::None,
        reason: words::refused(&witness, claims, terms),
        witness: Some(witness),
        tasks: Vec::new(),
    }
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

/// The guarantee of claims whose demand fits.
fn graded(claims: &[&Claim], online: &CpuSet, terms: Terms) -> Decision {
    let mut tasks: Vec<(TaskId, Guarantee)> = Vec::with_capacity(claims.len());
    tasks.extend(claims.iter().map(|claim| (claim.task, Guarantee::None)));
    let mut steps = Steps::ordinary();
    let mut notes = Vec::new();
    let mut first_witness = None;
    for part in parts(claims, online) {
        let members: Vec<&Claim> = part.members.iter().map(|&place| claims[place]).collect();
        let grade = match part.cpus.len() {
            1 => on_one_cpu(&members, &part.cpus, terms, &mut steps),
            _ => on_several(&members, online, terms, &mut steps),
        };
        let promises_deadlines = terms.placement == Placement::Partitioned;
        if promises_deadlines && let Some(witness) = grade.witness {
            return refused(claims, terms, witness);
        }
        for place in part.members {
            tasks[place].1 = grade.guarantee;
        }
        notes.extend(grade.note);
        first_witness = first_witness.or(grade.witness);
    }
    let weakest = tasks.iter().map(|&(_, guarantee)| guarantee).min();
    let guarantee = weakest.unwrap_or(Guarantee::Hard);
    Decision {
        verdict: Verdict::Admitted,
        guarantee,
        reason: words::admitted(&tasks, &notes, claims, online, terms),
        witness: first_witness,
        tasks,
    }
}

/// CPUs and tasks that no task connects with any others; they can be looked at alone.
struct Part {
    cpus: CpuSet,
    /// Places among the claims.
    members: Vec<usize>,
}

/// O(total size of the distinct affinities), nearly.
fn parts(claims: &[&Claim], online: &CpuSet) -> Vec<Part> {
    let mut parent: Vec<usize> = (0..CPUS_MAX).collect();
    let mut seen = std::collections::BTreeSet::new();
    for claim in claims {
        let cpus = claim.cpus & *online;
        if !seen.insert(cpus) {
            continue;
        }
        let mut indices = cpus.iter().map(|cpu| cpu.index());
        if let Some(first) = indices.next() {
            let first = root(&mut parent, first);
            for other in indices {
                let other = root(&mut parent, other);
                parent[other] = first;
            }
        }
    }
    let mut part_of: Vec<Option<usize>> = vec![None; CPUS_MAX];
    let mut parts: Vec<Part> = Vec::new();
    for (place, claim) in claims.iter().enumerate() {
        let cpus = claim.cpus & *online;
        let Some(lowest) = cpus.lowest() else {
            continue;
        };
        let root = root(&mut parent, lowest.index());
        let part = *part_of[root].get_or_insert_with(|| {
            parts.push(Part {
                cpus: CpuSet::EMPTY,
                members: Vec::new(),
            });
            parts.len() - 1
        });
        parts[part].cpus = parts[part].cpus | cpus;
        parts[part].members.push(place);
    }
    parts
}

/// The representative of a CPU's part; paths are halved on the way.
fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
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
    match terms.order {
        Order::Edf if members.iter().all(|claim| claim.deadline >= claim.period) => {
            Grade::of(Guarantee::Hard)
        }
        Order::Edf => {
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
        Order::FixedPriority => {
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

/// More than one CPU, connected. The demand fits.
fn on_several(members: &[&Claim], online: &CpuSet, terms: Terms, steps: &mut Steps) -> Grade {
    let supply = beside(terms.reserve);
    match terms.order {
        Order::FixedPriority => {
            let bound = |claim: &&Claim| Bound {
                ranked: ranked(claim),
                cpus: claim.cpus & *online,
            };
            let tasks: Vec<Bound> = members.iter().map(bound).collect();
            match reduction(&tasks, supply, steps) {
                Outcome::Pass(()) => Grade::of(Guarantee::Hard),
                Outcome::Fail(unshown) => {
                    Grade::because(Guarantee::None, Note::NotShown(members[unshown.place].task))
                }
                Outcome::StepLimit => Grade::because(
                    Guarantee::None,
                    Note::StepLimit(
                        tasks
                            .iter()
                            .fold(CpuSet::EMPTY, |all, task| all | task.cpus),
                    ),
                ),
            }
        }
        Order::Edf => soft(members, online, terms.placement, supply),
    }
}

/// Bounded tardiness under EDF on connected CPUs.
///
/// # Source
/// One affinity for all is global EDF, whose response times are bounded for any deadlines if the
/// utilizations fit (J. Erickson, U. Devi, S. Baruah, "Improved tardiness bounds for global EDF",
/// ECRTS 2010). Otherwise under the strong invariant and implicit deadlines they are bounded if and
/// only if the demand fits (S. Tang, J. Anderson, L. Abeni, "On the Defectiveness of SCHED_DEADLINE
/// w.r.t. Tardiness and Affinities, and a Partial Fix", RTNS 2021). A task with a deadline before
/// the end of its period is one with the deadline as its period that comes less often.
fn soft(members: &[&Claim], online: &CpuSet, placement: Placement, supply: Share) -> Grade {
    let bounded = Grade::of(Guarantee::BoundedTardiness);
    let first = members[0].cpus & *online;
    if members.iter().all(|claim| claim.cpus & *online == first) {
        return bounded;
    }
    if placement == Placement::Weak {
        return Grade::because(Guarantee::None, Note::Weak);
    }
    if let Some(late) = members.iter().find(|claim| claim.deadline > claim.period) {
        return Grade::because(Guarantee::None, Note::LongDeadline(late.task));
    }
    if members.iter().all(|claim| claim.deadline == claim.period) {
        return bounded;
    }
    if let Some(dense) = members.iter().find(|claim| claim.deadline < claim.cost) {
        return Grade::because(Guarantee::None, Note::Dense(vec![dense.task]));
    }
    let groups = by_rate(members, online, Claim::density);
    match groups
        .shortage(supply)
        .0
        .map(|crowd| groups.witness(&crowd, supply))
    {
        None => bounded,
        Some(Witness::Crowd { tasks, .. }) => Grade::because(Guarantee::None, Note::Dense(tasks)),
        Some(_) => Grade::because(Guarantee::None, Note::Dense(Vec::new())),
    }
}
