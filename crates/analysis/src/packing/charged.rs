//! Parts being filled with tasks that pay for overheads, and whether they can take another.

use shiftwork_model::{
    Alignment, CpuSet, Interrupts, Overheads, PolicyTraits, Slots, Span, TaskSet, Weight,
    WindowSource, weights_fit,
};

use crate::Sporadic;
use crate::exact::{Demand, Rate, fit, whole};
use crate::filter::{Interval, RATIO, ratio};
use crate::overheads::{Charges, Members, NearTerms, Site, Structure, inflate_part};
use crate::policy::pfair;

/// What is packed, and at what price.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub set: &'a TaskSet,
    pub tasks: &'a [Sporadic],
    pub policy: &'a PolicyTraits,
    pub structure: &'a Structure,
    pub overheads: &'a Overheads,
    /// Whether deadlines count.
    pub source: WindowSource,
}

/// All parts.
pub(super) struct Bins<'a> {
    load: Load<'a>,
    bins: Vec<Bin<'a>>,
    kinds: Vec<Kind>,
}

/// What is known of what tasks need in a part without charging overheads to all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It follows from sums: where something is decided when it happens.
    Sums,
    /// No task changes what others are charged: in whole quanta, where releases cost nothing.
    Constant,
    /// No less than without overheads.
    AtLeast,
}

/// Parts that are alike.
struct Kind {
    site: Site,
    way: Way,
    /// By task.
    items: Vec<Item>,
    /// By number of members, as far as it was asked for.
    terms: Vec<Option<NearTerms>>,
}

/// One part.
struct Bin<'a> {
    cpus: &'a CpuSet,
    /// Number of CPUs.
    size: usize,
    kind: usize,
    members: Vec<Sporadic>,
    sums: Sums,
    /// What is left, and what one more job is charged at least, in nanoseconds: no task that needs more is taken.
    room: f64,
    charge: f64,
}

/// A task, in floats within [`RATIO`] roundings.
#[derive(Clone, Copy)]
struct Item {
    /// C to the window (the period, or the deadline if that counts and is less), or the weight: no less is ever
    /// needed. Infinite if the task cannot be.
    size: f64,
    /// 1 to the window.
    window: f64,
    /// 1 / T.
    period: f64,
}

/// Sums over the members, each with one rounding per member beside theirs.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: usize,
    sizes: f64,
    windows: f64,
    periods: f64,
    /// The largest.
    size: f64,
    window: f64,
}

impl Sums {
    fn with(&self, item: &Item) -> Self {
        Self {
            count: self.count + 1,
            sizes: self.sizes + item.size,
            windows: self.windows + item.window,
            periods: self.periods + item.period,
            size: self.size.max(item.size),
            window: self.window.max(item.window),
        }
    }

    fn sum(&self, sum: f64) -> Interval {
        Interval::within(sum, self.count + RATIO)
    }
}

impl<'a> Bins<'a> {
    /// All are empty.
    pub fn new(load: Load<'a>, parts: &'a [CpuSet]) -> Self {
        let mut kinds: Vec<Kind> = Vec::new();
        let bins = parts.iter().map(|cpus| {
            let site = Site::new(&load.set.platform, cpus);
            let known = kinds.iter().position(|kind| kind.site == site);
            let kind = known.unwrap_or_else(|| {
                kinds.push(Kind::new(&load, site, cpus));
                kinds.len() - 1
            });
            Bin {
                cpus,
                size: cpus.len(),
                kind,
                members: Vec::new(),
                sums: Sums::default(),
                room: beyond_doubt(cpus.len() as f64),
                charge: 0.0,
            }
        });
        Self {
            load,
            bins: bins.collect(),
            kinds,
        }
    }

    /// Whether the part can take the task beside those that it has.
    pub fn takes(&mut self, part: usize, task: usize) -> bool {
        let bin = &self.bins[part];
        let item = &self.kinds[bin.kind].items[task];
        if item.size + bin.charge * item.window > bin.room {
            return false;
        }
        let sums = bin.sums.with(item);
        let room = Interval::of(bin.size as u128);
        let kind = &mut self.kinds[bin.kind];
        let guess = match kind.way {
            Way::Sums => kind.fits(&self.load, &sums, room),
            Way::Constant => sums.sum(sums.sizes).at_most(room),
            Way::AtLeast => sums.sum(sums.sizes).at_most(room).filter(|fits| !fits),
        };
        guess.unwrap_or_else(|| self.takes_exactly(part, task))
    }

    /// The same by charging overheads to all.
    fn takes_exactly(&mut self, part: usize, task: usize) -> bool {
        let bin = &mut self.bins[part];
        bin.members.push(self.load.tasks[task]);
        let fits = self.load.fits(bin.cpus, &bin.members);
        bin.members.pop();
        fits
    }

    /// The part gets the task.
    pub fn put(&mut self, part: usize, task: usize) {
        let bin = &mut self.bins[part];
        let kind = &mut self.kinds[bin.kind];
        bin.members.push(self.load.tasks[task]);
        bin.sums = bin.sums.with(&kind.items[task]);
        // With one more, all are charged for one more.
        let need = match kind.way {
            Way::Sums => {
                let members = bin.sums.count + 1;
                bin.charge = kind.terms(&self.load, members).own.low();
                kind.need(&self.load, &bin.sums, members)
            }
            Way::Constant | Way::AtLeast => Some(bin.sums.sum(bin.sums.sizes)),
        };
        let left = need.map_or(-1.0, |need| bin.size as f64 - need.low());
        bin.room = beyond_doubt(left);
    }
}

/// A little more, so that whatever is larger than this after up to eight roundings is larger than what is meant.
fn beyond_doubt(room: f64) -> f64 {
    (room * (1.0 + 16.0 * f64::EPSILON)).next_up()
}

impl Kind {
    fn new(load: &Load<'_>, site: Site, cpus: &CpuSet) -> Self {
        let price = (load.policy, load.structure);
        let is_global = load.structure.interrupts == Interrupts::Global;
        let releases = Charges::new(load.set, price, (&site, 1), load.overheads).release;
        let way = match pfair(load.policy) {
            Some(_) if is_global && releases == 0 => Way::Constant,
            _ if is_global && load.structure.quantum.is_none() => Way::Sums,
            _ => Way::AtLeast,
        };
        Self {
            items: load.items(way, cpus),
            site,
            way,
            terms: Vec::new(),
        }
    }

    fn terms(&mut self, load: &Load<'_>, members: usize) -> &NearTerms {
        if self.terms.len() <= members {
            self.terms.resize(members + 1, None);
        }
        self.terms[members].get_or_insert_with(|| {
            let price = (load.policy, load.structure);
            let charges = Charges::new(load.set, price, (&self.site, members), load.overheads);
            NearTerms::new(load.policy, &charges, members)
        })
    }

    /// What tasks with these sums need, if costs are not rounded up and as much is charged as with so many members;
    /// `None` if nothing is left for them.
    fn need(&mut self, load: &Load<'_>, sums: &Sums, members: usize) -> Option<Interval> {
        let terms = self.terms(load, members);
        let left = terms.left(sums.sum(sums.periods));
        if left.high() <= 0.0 {
            return None;
        }
        Some(terms.stretched(left, [sums.sum(sums.sizes), sums.sum(sums.windows)]))
    }

    /// Whether they fit; `None` where floating point cannot decide.
    fn fits(&mut self, load: &Load<'_>, sums: &Sums, room: Interval) -> Option<bool> {
        let Some(need) = self.need(load, sums, sums.count) else {
            return Some(false);
        };
        if room.below(need) == Some(true) {
            return Some(false);
        }
        // Each cost is rounded up by less than a nanosecond.
        let need = need + sums.sum(sums.windows);
        if need.at_most(room) != Some(true) {
            return None;
        }
        // On one CPU no task needs more than all tasks together.
        let whole = Interval::of(1);
        if room == whole {
            return Some(true);
        }
        let terms = self.terms(load, sums.count);
        let left = terms.left(sums.sum(sums.periods));
        let [size, window] = [sums.size, sums.window].map(|one| Interval::within(one, RATIO));
        let alone = terms.stretched(left, [size, window]) + window;
        alone.at_most(whole).filter(|&fits| fits)
    }
}

impl Load<'_> {
    fn items(&self, way: Way, cpus: &CpuSet) -> Vec<Item> {
        let reciprocal = |ns: u64| if ns == 0 { 0.0 } else { 1.0 / ns as f64 };
        let item = |[cost, window]: [u64; 2], task: &Sporadic| Item {
            size: match window {
                0 => f64::INFINITY,
                _ => ratio(cost, window),
            },
            window: reciprocal(window),
            period: reciprocal(task.period.as_ns()),
        };
        if pfair(self.policy).is_none() {
            let items = self.tasks.iter().map(|task| {
                let window = self.window(cpus, task);
                item([task.cost, window].map(|span| span.as_ns()), task)
            });
            return items.collect();
        }
        let slots = self.slots(cpus);
        let members = Members {
            cpus,
            tasks: self.tasks,
        };
        let charged: Vec<Option<Sporadic>> = match way {
            Way::Constant => {
                let price = (self.policy, self.structure);
                let charged = inflate_part(self.set, price, &members, self.overheads);
                charged.into_iter().map(|one| one.task).collect()
            }
            Way::Sums | Way::AtLeast => self.tasks.iter().copied().map(Some).collect(),
        };
        let items = charged.iter().zip(self.tasks).map(|(charged, task)| {
            let weight = charged.map(|charged| self.weight(&slots, &charged));
            match weight.filter(|weight| weight.is_possible()) {
                Some(weight) => item([weight.quanta, weight.slots], task),
                None => item([0, 0], task),
            }
        });
        items.collect()
    }

    fn slots(&self, cpus: &CpuSet) -> Slots {
        match pfair(self.policy) {
            Some(Alignment::Staggered) => Slots::of(self.set, cpus.len()),
            _ => Slots::of(self.set, 1),
        }
    }

    fn weight(&self, slots: &Slots, task: &Sporadic) -> Weight {
        slots.weight([task.cost, task.period, task.deadline], self.source)
    }

    /// What the cost is related to.
    fn window(&self, cpus: &CpuSet, task: &Sporadic) -> Span {
        match self.source == WindowSource::Deadline && cpus.len() == 1 {
            true => task.deadline.min(task.period),
            false => task.period,
        }
    }

    /// Whether what these members need fits.
    fn fits(&self, cpus: &CpuSet, members: &[Sporadic]) -> bool {
        let price = (self.policy, self.structure);
        let tasks = Members {
            cpus,
            tasks: members,
        };
        let charged = inflate_part(self.set, price, &tasks, self.overheads);
        let charged: Option<Vec<Sporadic>> = charged.into_iter().map(|one| one.task).collect();
        charged.is_some_and(|tasks| match pfair(self.policy) {
            Some(_) => {
                let slots = self.slots(cpus);
                weights_fit(tasks.iter().map(|task| self.weight(&slots, task)), cpus)
            }
            None => self.demand_fits(cpus, &tasks),
        })
    }

    fn demand_fits(&self, cpus: &CpuSet, tasks: &[Sporadic]) -> bool {
        let mut demand = Demand::default();
        for task in tasks {
            match Rate::new(task.cost, self.window(cpus, task)).filter(|rate| !rate.exceeds_one()) {
                Some(rate) => demand.add(rate),
                None => return false,
            }
        }
        fit([&demand], cpus.len(), whole())
    }
}
