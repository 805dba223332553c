//! The sets of tasks of a node that are looked at together: all below it, or without some children.

use std::cell::OnceCell;

use num_bigint::BigUint;
use shiftwork_model::Share;

use super::component::{Node, Set};
use crate::exact::{Demand, common_multiple, units_of, whole};

/// Of how many children all subsets are tried for removal.
const CHILDREN_MAX: usize = 8;

/// At most so many sets of a node, and less where each costs more than 1,024 steps.
const REMOVALS_MAX: usize = 256;

/// Sums of utilizations of subtrees, rounded down and up in units; the exact sums on demand.
pub(super) struct Loads<'a> {
    own: Vec<(u128, u128)>,
    all: Vec<(u128, u128)>,
    demands: &'a [&'a Demand],
    parents: Vec<Option<usize>>,
    /// rho.
    unavailable: Share,
    exact: OnceCell<Exact>,
}

/// In parts of a CPU, so many to the CPU.
struct Exact {
    cpu: BigUint,
    own: Vec<BigUint>,
    all: Vec<BigUint>,
}

impl<'a> Loads<'a> {
    /// The sums below each of these nodes, whose own tasks have these demands, where CPUs are
    /// unavailable for this share of time.
    pub(super) fn new(nodes: &[Node], demands: &'a [&'a Demand], unavailable: Share) -> Self {
        let units = |demand: &&Demand| (demand.units_min(), demand.units_max());
        let own: Vec<(u128, u128)> = demands.iter().map(units).collect();
        let mut all = own.clone();
        for (place, node) in nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                all[parent] = (all[parent].0 + all[place].0, all[parent].1 + all[place].1);
            }
        }
        Self {
            own,
            all,
            demands,
            parents: nodes.iter().map(|node| node.parent).collect(),
            unavailable,
            exact: OnceCell::new(),
        }
    }

    fn exact(&self) -> &Exact {
        self.exact.get_or_init(|| {
            let cpu = common_multiple(self.demands.iter().copied());
            let own = self.demands.iter().map(|demand| demand.in_parts(&cpu));
            let own: Vec<BigUint> = own.collect();
            let mut all = own.clone();
            for (place, parent) in self.parents.iter().enumerate().rev() {
                if let Some(parent) = *parent {
                    let below = all[place].clone();
                    all[parent] += below;
                }
            }
            Exact { cpu, own, all }
        })
    }

    /// The sum of a node's own tasks and of these subtrees, and of what so many CPUs are unavailable,
    /// rounded up to whole CPUs.
    fn in_cpus(
        &self,
        own: usize,
        subtrees: impl Iterator<Item = usize> + Clone,
        cpus: usize,
    ) -> usize {
        let cpu = units_of(whole());
        let lost = units_of(self.unavailable) * cpus as u128;
        let (min, max) = subtrees.clone().fold(self.own[own], |sum, tree| {
            (sum.0 + self.all[tree].0, sum.1 + self.all[tree].1)
        });
        let (least, most) = ((min + lost).div_ceil(cpu), (max + lost).div_ceil(cpu));
        if least == most {
            return usize::try_from(most).unwrap_or(usize::MAX);
        }
        let exact = self.exact();
        let sum = subtrees.fold(exact.own[own].clone(), |sum, tree| sum + &exact.all[tree]);
        let lost = &exact.cpu * self.unavailable.billionths() * cpus;
        let cpu = &exact.cpu * Share::WHOLE;
        let cpus = (sum * Share::WHOLE + lost + &cpu - 1u8) / &cpu;
        usize::try_from(cpus).unwrap_or(usize::MAX)
    }

    /// About, to order what is tried.
    fn about(&self, node: usize) -> f64 {
        self.all[node].0 as f64 / units_of(whole()) as f64
    }
}

/// The admissible sets of one node.
pub(super) struct Family<'a> {
    nodes: &'a [Node],
    node: usize,
    loads: &'a Loads<'a>,
    sets: Vec<Set>,
}

impl<'a> Family<'a> {
    /// None yet, of this node.
    pub(super) const fn new(nodes: &'a [Node], node: usize, loads: &'a Loads<'a>) -> Self {
        Self {
            nodes,
            node,
            loads,
            sets: Vec::new(),
        }
    }

    /// All subsets of few children; of many, each alone, and growing subsets in a few orders. Any
    /// family that contains the set that removes nothing is sound, so floats may choose.
    pub(super) fn collect(mut self, costs: &[f64]) -> Vec<Set> {
        let children = &self.nodes[self.node].children;
        self.add(&[]);
        let mut single: Vec<usize> = Vec::new();
        let room = (REMOVALS_MAX * 1024 / self.nodes[self.node].cpus.pow(2)).clamp(1, REMOVALS_MAX);
        for position in 0..children.len() {
            if self.sets.len() < room && self.add(&[position]) {
                single.push(position);
            }
        }
        if single.len() <= CHILDREN_MAX && 1 << single.len() <= room {
            for bits in 1u32..1 << single.len() {
                let chosen = (0..single.len()).filter(|&place| bits >> place & 1 == 1);
                let chosen: Vec<usize> = chosen.map(|place| single[place]).collect();
                if chosen.len() > 1 {
                    self.add(&chosen);
                }
            }
            return self.sets;
        }
        for order in self.orders(&single, costs) {
            let mut chosen = Vec::new();
            for position in order {
                if self.sets.len() == room {
                    break;
                }
                chosen.push(position);
                if !self.add(&chosen) {
                    chosen.pop();
                }
            }
        }
        self.sets
    }

    fn orders(&self, single: &[usize], costs: &[f64]) -> Vec<Vec<usize>> {
        let children = &self.nodes[self.node].children;
        let keys: [fn(f64, f64, f64) -> f64; 5] = [
            |cpus, load, _| cpus - load,
            |_, load, _| -load,
            |_, _, cost| -cost,
            |cpus, _, cost| -cost / cpus,
            |cpus, load, cost| (cpus - load) / cost,
        ];
        let order = |key: fn(f64, f64, f64) -> f64| {
            let key = |position: &usize| {
                let child = children[*position];
                let cpus = self.nodes[child].cpus as f64;
                key(cpus, self.loads.about(child), costs[child])
            };
            let mut order = single.to_vec();
            order.sort_by(|a, b| key(a).total_cmp(&key(b)));
            order
        };
        keys.map(order).into()
    }

    /// Adds the set without these children. Whether it is admissible.
    fn add(&mut self, chosen: &[usize]) -> bool {
        let node = &self.nodes[self.node];
        let mut removed = vec![false; node.children.len()].into_boxed_slice();
        chosen.iter().for_each(|&position| removed[position] = true);
        let children = node.children.iter().enumerate();
        let left = children.filter(|(position, _)| !removed[*position]);
        let gone = chosen
            .iter()
            .map(|&place| self.nodes[node.children[place]].cpus);
        let cpus = node.cpus - gone.sum::<usize>();
        let left = left.map(|(_, &child)| child);
        let load = self.loads.in_cpus(self.node, left, cpus);
        if load > cpus {
            return false;
        }
        let set = Set {
            removed,
            cpus,
            running_max: load - 1,
        };
        if !self.sets.contains(&set) {
            self.sets.push(set);
        }
        true
    }
}
