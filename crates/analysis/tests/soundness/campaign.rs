//! One system after the other: what is claimed of it, against every schedule that an adversary finds.

use std::fmt;

use shiftwork_analysis::verdicts::{Criterion, Test};
use shiftwork_model::{RandomStream, Span};

use super::claims::BY_DEFINITION;
use super::claims::CLAIMS;
use super::judge::{Carry, Pattern, responses};
use super::non_preemptive;
use super::system::{self, DEADLINES, SHAPES, System};
use super::verdicts;
use super::workers::Counts;

/// How far an adversary goes.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Patterns of each random kind.
    pub rounds: u64,
    /// Steps of each search by small changes.
    pub climbs: usize,
    /// Policies of which the verdicts are attacked.
    pub verdicts: usize,
}

impl Effort {
    /// Of a policy of which only verdicts speak, which come from tests that are attacked under another one too.
    const fn of_verdicts(self) -> Self {
        Self {
            rounds: 1,
            climbs: self.climbs / 8,
            ..self
        }
    }
}

/// A job that took longer than a test allows, with all that is needed to see it again.
#[derive(Debug)]
pub struct Refuted {
    pub test: &'static str,
    pub policy: &'static str,
    pub task: usize,
    pub bound: u64,
    pub response: u64,
    pub system: System,
    pub pattern: Pattern,
}

impl fmt::Display for Refuted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            test,
            policy,
            task,
            bound,
            response,
            ..
        } = self;
        writeln!(
            f,
            "{test} allows T{task} {bound} under {policy}, but it took {response}"
        )?;
        writeln!(
            f,
            "{} CPUs, {:?}, {:?}",
            self.system.cpus, self.system.shape, self.system.deadlines
        )?;
        let jobs = self.pattern.releases.iter().zip(&self.pattern.works);
        for (place, (member, (releases, works))) in self.system.members.iter().zip(jobs).enumerate()
        {
            let [cost, period, deadline] =
                [member.task.cost, member.task.period, member.task.deadline].map(Span::as_ns);
            let priority = member.priority;
            writeln!(
                f,
                "T{place}: C {cost} T {period} D {deadline}, priority {priority}, CPUs {}",
                member.cpus
            )?;
            writeln!(f, "  released {releases:?}")?;
            if works.iter().any(|&work| work != cost) {
                writeln!(f, "  runs {works:?}")?;
            }
        }
        Ok(())
    }
}

/// What a campaign has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// By test: how often it made a claim.
    pub claims: Vec<(&'static str, usize)>,
    /// By test of the catalogue, as the verdicts ask it: how often it passed.
    pub passes: Vec<((&'static str, Criterion), usize)>,
    /// By test: the longest response time seen of those closest to their bound, in thousandths of it.
    pub closest: Vec<(&'static str, u64)>,
    /// Simulated runs.
    pub runs: usize,
}

impl Tally {
    fn claimed(&mut self, test: &'static str) {
        entry(&mut self.claims, test, |count| *count += 1);
    }

    fn passed(&mut self, test: &'static str, criterion: Criterion) {
        entry(&mut self.passes, (test, criterion), |count| *count += 1);
    }

    fn came_to(&mut self, test: &'static str, thousandths: u64) {
        entry(&mut self.closest, test, |seen| {
            *seen = thousandths.max(*seen)
        });
    }

    /// How often this test of the catalogue passed.
    pub fn passes_of(&self, test: &Test) -> usize {
        let is = |&&(known, _): &&((&str, Criterion), usize)| known == (test.name, test.criterion);
        self.passes.iter().find(is).map_or(0, |&(_, count)| count)
    }

    /// How often this test made a claim.
    pub fn claims_of(&self, test: &str) -> usize {
        let found = self.claims.iter().find(|&&(name, _)| name == test);
        found.map_or(0, |&(_, count)| count)
    }
}

impl Counts for Tally {
    fn add(&mut self, other: Self) {
        for (test, count) in other.claims {
            entry(&mut self.claims, test, |sum| *sum += count);
        }
        for (test, count) in other.passes {
            entry(&mut self.passes, test, |sum| *sum += count);
        }
        for (test, thousandths) in other.closest {
            self.came_to(test, thousandths);
        }
        self.runs += other.runs;
    }
}

fn entry<K: Copy + PartialEq, T: Default>(
    list: &mut Vec<(K, T)>,
    test: K,
    change: impl FnOnce(&mut T),
) {
    let place = list.iter().position(|&(name, _)| name == test);
    let place = place.unwrap_or_else(|| {
        list.push((test, T::default()));
        list.len() - 1
    });
    change(&mut list[place].1);
}

/// The system of this seed, as demanding as a test allows that speaks of it; each test has its turn.
pub fn system_of(seed: u64) -> System {
    let mut stream = RandomStream::new(seed, 41, 0);
    let chosen = &CLAIMS[seed as usize % CLAIMS.len()];
    loop {
        let shape = SHAPES[stream.below(SHAPES.len() as u64) as usize];
        let deadlines = DEADLINES[stream.below(DEADLINES.len() as u64) as usize];
        let mut system = system::random(shape, deadlines, &mut stream);
        if (chosen.takes)(&system) {
            let holds = |system: &System| (chosen.bounds)(system).is_some();
            system::tighten(&mut system, &holds, &mut stream);
            return system;
        }
    }
}

/// Tries to refute everything that is claimed of the system of this seed.
pub fn challenge(seed: u64, effort: Effort, tally: &mut Tally) -> Result<(), Box<Refuted>> {
    challenge_system(&system_of(seed), seed, effort, tally)
}

/// Tries to refute everything that is claimed of a system.
pub fn challenge_system(
    system: &System,
    seed: u64,
    effort: Effort,
    tally: &mut Tally,
) -> Result<(), Box<Refuted>> {
    let mut made: Vec<Made> = Vec::new();
    for claim in CLAIMS.iter().filter(|claim| (claim.takes)(system)) {
        if let Some(bounds) = (claim.bounds)(system) {
            tally.claimed(claim.name);
            made.extend(claim.policies.iter().map(|&policy| Made {
                test: claim.name,
                policy,
                bounds: bounds.clone(),
            }));
        }
    }
    let first_verdict = made.len();
    let turn = (seed, effort.verdicts);
    made.extend(verdicts::made(system, turn, |test, criterion| {
        tally.passed(test, criterion);
    }));
    made[first_verdict..]
        .iter()
        .for_each(|one| tally.claimed(one.test));
    made.sort_by_key(|one| one.policy);
    for claims in made.chunk_by(|a, b| a.policy == b.policy) {
        let mut adversary = Adversary {
            system,
            policy: claims[0].policy,
            claims,
            tally,
            least: vec![i128::MAX; system.members.len()],
        };
        let is_verdict = |claim: &Made| CLAIMS.iter().all(|known| known.name != claim.test);
        let effort = match claims.iter().all(is_verdict) {
            true => effort.of_verdicts(),
            false => effort,
        };
        adversary.attack(seed, effort)?;
    }
    Ok(())
}

/// A claim about one policy: no job takes longer than these, by task.
#[derive(Debug)]
pub struct Made {
    pub test: &'static str,
    pub policy: &'static str,
    pub bounds: Vec<Span>,
}

/// Looks for a schedule in which one of the claims about a policy is wrong.
struct Adversary<'a> {
    system: &'a System,
    policy: &'static str,
    claims: &'a [Made],
    tally: &'a mut Tally,
    /// What each task had left at least, in all runs so far.
    least: Vec<i128>,
}

impl Adversary<'_> {
    fn attack(&mut self, seed: u64, effort: Effort) -> Result<(), Box<Refuted>> {
        let system = self.system;
        let count = system.members.len();
        let mut stream = RandomStream::new(seed, 41, 1);
        let longest = |of: fn(&System, usize) -> Span| {
            let spans = (0..count).map(|place| of(system, place).as_ns());
            spans.max().unwrap_or(0)
        };
        let period = longest(|system, place| system.members[place].task.period);
        let deadline = longest(|system, place| system.members[place].task.deadline);
        let cycle = system.hyperperiod(30 * period).unwrap_or(6 * period);
        self.run(&Pattern::periodic(
            system,
            &vec![0; count],
            2 * cycle + deadline,
        ))?;
        let until = 4 * period + 2 * deadline;
        for round in 0..effort.rounds {
            let offsets: Vec<u64> = system
                .members
                .iter()
                .map(|member| stream.below(member.task.period.as_ns()))
                .collect();
            self.run(&Pattern::periodic(system, &offsets, until))?;
            let mut gaps = Pattern::sporadic(system, period / (1 + round), until, &mut stream);
            self.run(&gaps)?;
            gaps.finish_early(&mut stream);
            self.run(&gaps)?;
        }
        let mut worst: Option<(i128, Pattern)> = None;
        // The one that came closest to a bound, or any.
        let closest = (0..count).min_by_key(|&place| self.least[place]);
        let any = stream.below(count as u64) as usize;
        let victim = closest.filter(|_| stream.below(3) > 0).unwrap_or(any);
        let at = deadline + period;
        for carry in [
            Carry::JustBefore,
            Carry::AsLateAsPossible,
            Carry::DueTogether,
        ] {
            let pattern = Pattern::around(system, victim, carry, at, at + 2 * until);
            let slack = self.run(&pattern)?[victim];
            if worst.as_ref().is_none_or(|&(least, _)| slack < least) {
                worst = Some((slack, pattern));
            }
        }
        match worst {
            Some((slack, pattern)) => self.climb(victim, slack, pattern, effort, &mut stream),
            None => Ok(()),
        }
    }

    /// Greedy search: changes that leave the victim no more slack are kept.
    fn climb(
        &mut self,
        victim: usize,
        mut slack: i128,
        mut pattern: Pattern,
        effort: Effort,
        stream: &mut RandomStream,
    ) -> Result<(), Box<Refuted>> {
        for _ in 0..effort.climbs {
            let mut changed = pattern.clone();
            change(&mut changed, self.system, stream);
            let after = self.run(&changed)?[victim];
            if after <= slack {
                (slack, pattern) = (after, changed);
            }
        }
        Ok(())
    }

    /// What each task has left to the least of its bounds after its longest response.
    fn run(&mut self, pattern: &Pattern) -> Result<Vec<i128>, Box<Refuted>> {
        let system = self.system;
        let count = system.members.len();
        let last = pattern.releases.iter().filter_map(|jobs| jobs.last());
        let bounds = self.claims.iter().flat_map(|claim| &claim.bounds);
        let longest = bounds.filter(|&&bound| bound < verdicts::NONE).max();
        // Jobs that are to be judged are over by then, or too late.
        let horizon = last.max().unwrap_or(&0) + longest.map_or(0, |bound| bound.as_ns());
        let responses = match self.policy {
            BY_DEFINITION => Some(non_preemptive::responses(system, pattern)),
            policy => responses(&pattern.applied(system), policy, horizon + 1),
        };
        let Some(responses) = responses else {
            return Ok(vec![0; count]);
        };
        self.tally.runs += 1;
        let mut slack = vec![i128::MAX; count];
        for Made { test, bounds, .. } in self.claims {
            for (task, (&bound, &response)) in bounds.iter().zip(&responses).enumerate() {
                let bound = bound.as_ns();
                if response > bound {
                    return Err(Box::new(Refuted {
                        test,
                        policy: self.policy,
                        task,
                        bound,
                        response,
                        system: system.clone(),
                        pattern: pattern.clone(),
                    }));
                }
                slack[task] = slack[task].min(i128::from(bound) - i128::from(response));
                self.tally.came_to(test, response * 1_000 / bound.max(1));
            }
        }
        for (least, slack) in self.least.iter_mut().zip(&slack) {
            *least = (*least).min(*slack);
        }
        Ok(slack)
    }
}

/// A small change that leaves the pattern legal.
fn change(pattern: &mut Pattern, system: &System, stream: &mut RandomStream) {
    let task = stream.below(system.members.len() as u64) as usize;
    let Some(last) = pattern.releases[task].len().checked_sub(1) else {
        return;
    };
    let job = stream.below(last as u64 + 1) as usize;
    let period = system.members[task].task.period.as_ns();
    let cost = system.members[task].task.cost.as_ns();
    let jobs = &mut pattern.releases[task];
    match stream.below(6) {
        0 => {
            pattern.works[task][job] = match stream.below(2) {
                0 => cost,
                _ => 1 + stream.below(cost),
            };
        }
        1 => {
            let other = stream.below(system.members.len() as u64) as usize;
            let theirs = &pattern.releases[other];
            if let Some(place) = (theirs.len() as u64).checked_sub(1) {
                let at = theirs[stream.below(place + 1) as usize];
                let due = at + system.members[other].task.deadline.as_ns();
                let own = system.members[task].task.deadline.as_ns();
                let target = match stream.below(3) {
                    0 => at,
                    1 => at.saturating_sub(1),
                    _ => due.saturating_sub(own),
                };
                move_job(&mut pattern.releases[task], job, target, period);
            }
        }
        2 => {
            // The whole task, by a little.
            let by = 1 + stream.below(period);
            let first = jobs[0];
            let earlier = stream.below(2) == 0 && first >= by;
            for at in jobs.iter_mut() {
                *at = if earlier { *at - by } else { *at + by };
            }
        }
        _ => {
            let reach = 1 + stream.below(period);
            let by = 1 + stream.below(reach);
            let target = match stream.below(2) {
                0 => jobs[job].saturating_sub(by),
                _ => jobs[job] + by,
            };
            move_job(jobs, job, target, period);
        }
    }
}

/// Moves a job, and those around it as far as the period demands.
fn move_job(jobs: &mut [u64], job: usize, target: u64, period: u64) {
    jobs[job] = target.max(job as u64 * period);
    for before in (0..job).rev() {
        jobs[before] = jobs[before].min(jobs[before + 1] - period);
    }
    for after in job + 1..jobs.len() {
        jobs[after] = jobs[after].max(jobs[after - 1] + period);
    }
}
