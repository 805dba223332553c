//! Packing under overheads: compared with first fit by its definition, and run by the policies as it is.

use std::cmp::Reverse;

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_analysis::overheads::{Structure, inflate};
use shiftwork_analysis::packing::pack_under;
use shiftwork_model::{
    Affinity, Alignment, CpuId, CpuSet, Interrupts, LinearCost, Overheads, Placement, PolicyTraits,
    Preemption, RandomStream, Slots, Span, TaskSet, WindowSource, groups_within,
};
use shiftwork_policy::registry;

use crate::{NS, random};

const POLICIES: [&str; 5] = ["p-edf", "c-edf", "p-fp", "c-pd2", "cs-pd2"];

/// One packing problem.
struct Problem {
    set: TaskSet,
    policy: &'static str,
    traits: PolicyTraits,
    structure: Structure,
    overheads: Overheads,
    parts: Vec<CpuSet>,
}

impl Problem {
    fn random(seed: u64, policy: &'static str) -> Self {
        let mut stream = RandomStream::new(seed, 101, 0);
        let mut set = random::system(policy, &mut stream);
        let traits = registry::find(policy).unwrap().traits;
        let parts: Vec<CpuSet> = match traits.placement == Placement::Partitioned {
            true => set.platform.all().iter().map(CpuSet::single).collect(),
            false => set.platform.clusters.clone(),
        };
        for task in &mut set.tasks {
            if stream.below(6) == 0 {
                let part = parts[stream.below(parts.len() as u64) as usize];
                task.affinity = Affinity::new(part).unwrap();
            }
        }
        let mut overheads = random::overheads(&mut stream);
        if traits.preemption.alignment().is_some() && stream.below(2) == 0 {
            [overheads.release, overheads.enqueue, overheads.dequeue] = [LinearCost::default(); 3];
        }
        let structure = Structure {
            interrupts: match stream.below(4) {
                0 => Interrupts::Dedicated(CpuId::from_index(0)),
                _ => Interrupts::Global,
            },
            ..Structure::of(&traits, &set)
        };
        Self {
            traits,
            set,
            policy,
            structure,
            overheads,
            parts,
        }
    }

    fn found(&self) -> Vec<CpuSet> {
        let price = (&self.structure, &self.overheads);
        let found = pack_under(&self.set, &self.traits, &self.parts, price).unwrap();
        found.iter().map(|affinity| *affinity.cpus()).collect()
    }

    /// First fit, decreasing, by charging overheads to all tasks of a part whenever one more is tried.
    fn by_definition(&self) -> Option<Vec<CpuSet>> {
        let is_implicit = self
            .set
            .tasks
            .iter()
            .all(|task| task.deadline >= task.period);
        let is_pfair = self.traits.preemption.alignment().is_some();
        let deadlines = (!is_implicit || is_pfair).then_some(WindowSource::Deadline);
        let mut sources = deadlines.into_iter().chain([WindowSource::Period]);
        sources.find_map(|source| self.first_fit(source))
    }

    fn first_fit(&self, source: WindowSource) -> Option<Vec<CpuSet>> {
        let choices = |task: usize| groups_within(&self.parts, &self.set.tasks[task].affinity);
        let mut order: Vec<usize> = (0..self.set.tasks.len()).collect();
        order.sort_by_key(|&task| {
            let is_free = choices(task).len() > 1;
            let utilization = is_free.then(|| Reverse(self.set.tasks[task].utilization()));
            (is_free, utilization, task)
        });
        let mut members = vec![Vec::new(); self.parts.len()];
        let mut cpus = vec![CpuSet::EMPTY; order.len()];
        for task in order {
            let part = choices(task).into_iter().find(|&part| {
                let mut with = members[part].clone();
                with.push(task);
                self.fits(part, &with, source)
            })?;
            members[part].push(task);
            cpus[task] = self.parts[part];
        }
        Some(cpus)
    }

    fn fits(&self, part: usize, members: &[usize], source: WindowSource) -> bool {
        let mut of_part = self.set.clone();
        let tasks = members.iter().map(|&task| self.set.tasks[task].clone());
        of_part.tasks = tasks.collect();
        let mut overheads = self.overheads.clone();
        if self.traits.preemption.alignment().is_some() {
            // Costs are those with all tasks.
            let fixed = |cost: &mut LinearCost| {
                cost.base = cost.at(self.set.tasks.len());
                cost.per_task = NS(0);
            };
            for cost in [
                &mut overheads.release,
                &mut overheads.schedule,
                &mut overheads.switch,
                &mut overheads.tick,
                &mut overheads.ipi,
                &mut overheads.enqueue,
                &mut overheads.dequeue,
            ] {
                fixed(cost);
            }
            let refills = [&mut overheads.preemption, &mut overheads.migration];
            refills.into_iter().flatten().for_each(fixed);
        }
        let cpus = self.parts[part];
        let bound = vec![cpus; members.len()];
        let price = (&self.traits, &self.structure);
        let inflated = inflate(&of_part, price, &bound, &overheads).unwrap();
        let mut sum = Ratio::from_integer(BigInt::from(0));
        for one in inflated {
            let Some(task) = one.task else {
                return false;
            };
            let [cost, window] = match self.traits.preemption {
                Preemption::Pfair(alignment) => {
                    let is_staggered = alignment == Alignment::Staggered;
                    let slots = Slots::of(&self.set, if is_staggered { cpus.len() } else { 1 });
                    let times = [task.cost, task.period, task.deadline];
                    let weight = slots.weight(times, source);
                    [weight.quanta, weight.slots]
                }
                _ if source == WindowSource::Deadline && cpus.len() == 1 => {
                    [task.cost, task.deadline.min(task.period)].map(Span::as_ns)
                }
                _ => [task.cost, task.period].map(Span::as_ns),
            };
            if cost > window || window == 0 {
                return false;
            }
            sum += Ratio::new(BigInt::from(cost), BigInt::from(window));
        }
        sum <= Ratio::from_integer(BigInt::from(cpus.len()))
    }

    /// As the policy binds the tasks by itself if their affinities are these.
    fn bound_by_policy(&self, cpus: Option<&[CpuSet]>) -> Vec<CpuSet> {
        let mut set = self.set.clone();
        for (task, cpus) in set.tasks.iter_mut().zip(cpus.into_iter().flatten()) {
            task.affinity = Affinity::new(*cpus).unwrap();
        }
        let built = registry::find(self.policy).unwrap().build(&set).unwrap();
        let own = || set.tasks.iter().map(|task| task.affinity).collect();
        let packing = built.packing().unwrap_or_else(own);
        packing.iter().map(|affinity| *affinity.cpus()).collect()
    }
}

#[test]
fn it_is_first_fit_by_what_overheads_leave() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 250,
    };
    for policy in POLICIES {
        let (mut packed, mut better) = (0, 0);
        for seed in 0..seeds {
            let problem = Problem::random(seed, policy);
            let found = problem.found();
            let plain = problem.bound_by_policy(None);
            let expected = problem.by_definition();
            packed += u64::from(expected.is_some());
            better += u64::from(expected.as_ref().is_some_and(|cpus| *cpus != plain));
            assert_eq!(found, expected.unwrap_or(plain), "seed {seed}, {policy}");
            let bound = problem.bound_by_policy(Some(&found));
            assert_eq!(bound, found, "seed {seed}, {policy}: run otherwise");
        }
        assert!(
            packed > seeds / 5 && packed < seeds,
            "{policy}: {packed} of {seeds}"
        );
        assert!(better > seeds / 100, "{policy}: {better} of {seeds}");
    }
}

/// Three tasks of 0.5 and a little: two fill a CPU without overheads, and with them each needs its own.
#[test]
fn what_overheads_make_too_full_is_spread() {
    let all = Affinity::new(CpuSet::first(3)).unwrap();
    let task = |name: &str| shiftwork_model::Task::periodic(name, NS(500), NS(1_000), all);
    let set = TaskSet::new("", 3, ["a", "b", "c"].map(task).to_vec());
    let overheads = Overheads {
        switch: crate::cost(1),
        ..Overheads::default()
    };
    let traits = &registry::find("p-edf").unwrap().traits;
    let structure = Structure::of(traits, &set);
    let parts: Vec<CpuSet> = CpuSet::first(3).iter().map(CpuSet::single).collect();
    let found = |overheads: &Overheads| {
        let found = pack_under(&set, traits, &parts, (&structure, overheads)).unwrap();
        found
            .iter()
            .map(|affinity| affinity.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&Overheads::default()), ["0", "0", "1"]);
    assert_eq!(found(&overheads), ["0", "1", "2"]);
    // What cannot be packed goes where the policy would put it.
    let costly = Overheads {
        switch: crate::cost(400),
        ..Overheads::default()
    };
    assert_eq!(found(&costly), ["0", "0", "1"]);
    assert_eq!(pack_under(&set, traits, &[], (&structure, &costly)), None);
}
