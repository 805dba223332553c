//! When the jobs of a task are released.

use std::collections::VecDeque;

use shiftwork_model::{
    Arrival, ArrivalCurve, Instant, Pace, RandomStream, Span, Task, TaskId, TaskSet,
};

/// The `cell` of [`RandomStream::new`] for release gaps.
const GAPS: u64 = 0x6761_7073;

/// The `cell` of [`RandomStream::new`] for release jitter.
const JITTER: u64 = 0x6a69_7474_6572;

/// The arrivals and releases of one task, in order. A task without jitter releases each job at its arrival. Of a task that
/// others trigger, no job arrives by this pattern.
///
/// A clone yields the same releases as the original. A machine can therefore keep a second pattern that
/// lags behind the first, and need not store the pending releases.
#[derive(Clone, Debug)]
pub struct ReleasePattern {
    /// The next arrival.
    arrival: Instant,
    kind: Kind,
    /// `None` without jitter.
    jitter: Option<Box<Jitter>>,
    /// Random gaps and jitter are whole multiples of this.
    unit: Span,
}

/// How much later than its arrival each job is released.
#[derive(Clone, Debug)]
struct Jitter {
    stream: RandomStream,
    longest: Span,
    /// The next release, not before the one before it.
    release: Instant,
}

impl Jitter {
    /// Advances to the release of the job with this arrival.
    fn advance(&mut self, arrival: Instant, unit: Span) {
        let later = self.stream.span_in_units(unit, Span::ZERO, self.longest);
        self.release = self.release.max(arrival + later);
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Periodic,
    Sporadic(RandomStream),
    /// Number of the task's instants that have passed.
    Listed(usize),
    /// By the task's arrival curve.
    Curve(Box<Recent>),
    /// Other tasks release its jobs.
    Triggered,
}

/// The arrivals by which an arrival curve bounds the next.
#[derive(Clone, Debug)]
struct Recent {
    /// The last ones, in their order, as many as the curve was given distances.
    arrivals: VecDeque<Instant>,
    /// For random gaps.
    stream: Option<RandomStream>,
}

impl Recent {
    /// The arrival after this one.
    fn next(&mut self, curve: &ArrivalCurve, arrival: Instant, unit: Span) -> Instant {
        let distances = curve.distances();
        if self.arrivals.len() == distances.len() {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(arrival);
        let allowed = self.arrivals.iter().rev().zip(distances);
        // More distant arrivals allow no less: the curve goes on as the sums of these distances.
        let earliest = allowed.map(|(&before, &distance)| before + distance).max();
        let earliest = earliest.unwrap_or(arrival);
        let longest = curve.shortest().saturating_sub(Span::from_ns(1));
        match &mut self.stream {
            Some(stream) => earliest + stream.span_in_units(unit, Span::ZERO, longest),
            None => earliest,
        }
    }
}

impl ReleasePattern {
    /// The releases of a task of the set that enters at `entry`.
    ///
    /// The first jobs of periodic and sporadic tasks, and of those with an arrival curve, arrive at `entry` or at their offset, whichever is later.
    /// Listed instants are instants of the run (counted from the offset): those before `entry` are
    /// skipped. The gaps of sporadic tasks and the jitter are whole multiples of the set's tick unit, and depend on
    /// the seed and the task's index alone.
    pub fn new(set: &TaskSet, id: TaskId, seed: u64, entry: Instant) -> Self {
        let task = &set.tasks[id.index()];
        let jitter = || Jitter {
            stream: RandomStream::new(seed, JITTER, id.index() as u64),
            longest: task.jitter,
            release: Instant::ZERO,
        };
        let mut pattern = Self {
            arrival: Instant::ZERO,
            kind: match task.arrival {
                Arrival::Periodic => Kind::Periodic,
                Arrival::Sporadic => {
                    Kind::Sporadic(RandomStream::new(seed, GAPS, id.index() as u64))
                }
                Arrival::Releases(_) => Kind::Listed(0),
                Arrival::Curve(ref curve, pace) => Kind::Curve(Box::new(Recent {
                    // All that there will be: threads advance their releases where nothing may be allocated.
                    arrivals: VecDeque::with_capacity(curve.distances().len()),
                    stream: (pace == Pace::Random)
                        .then(|| RandomStream::new(seed, GAPS, id.index() as u64)),
                })),
                Arrival::Triggered(_) => Kind::Triggered,
            },
            jitter: (!task.jitter.is_zero()).then(|| Box::new(jitter())),
            unit: set.platform.tick_unit,
        };
        pattern.restart(task, entry);
        pattern
    }

    /// Restarts the pattern for a task that enters again at `entry`, whatever arrived before it left. The random streams continue, so that
    /// gaps and jitter differ from those after the first entry.
    pub fn restart(&mut self, task: &Task, entry: Instant) {
        match (&mut self.kind, &task.arrival) {
            (Kind::Listed(behind), Arrival::Releases(instants)) => {
                *behind = instants.partition_point(|&at| shifted(at, task.offset) < entry);
                self.arrival = listed(instants, *behind, task.offset);
            }
            (Kind::Triggered, _) => self.arrival = Instant::NEVER,
            (Kind::Curve(recent), _) => {
                recent.arrivals.clear();
                self.arrival = entry.max(Instant::ZERO + task.offset);
            }
            _ => self.arrival = entry.max(Instant::ZERO + task.offset),
        }
        if let Some(jitter) = &mut self.jitter {
            // A release that was due after the task left does not delay those after its entry.
            jitter.release = Instant::ZERO;
        }
        self.delay();
    }

    /// The next release; [`Instant::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Instant {
        match &self.jitter {
            Some(jitter) => jitter.release,
            None => self.arrival,
        }
    }

    /// The arrival of the job of the next release; [`Instant::NEVER`] if there is none.
    pub const fn arrival(&self) -> Instant {
        self.arrival
    }

    /// Advances past the next release. `period` is the minimum separation of its arrival and the one after it; listed
    /// instants and arrival curves do not depend on it.
    #[inline]
    pub fn advance(&mut self, task: &Task, period: Span) {
        match (&mut self.kind, &task.arrival) {
            (Kind::Listed(behind), Arrival::Releases(instants)) => {
                *behind += 1;
                self.arrival = listed(instants, *behind, task.offset);
            }
            (Kind::Sporadic(stream), _) => {
                let longest = period.saturating_sub(Span::from_ns(1));
                let more = stream.span_in_units(self.unit, Span::ZERO, longest);
                self.arrival = self.arrival + period + more;
            }
            (Kind::Curve(recent), Arrival::Curve(curve, _)) => {
                self.arrival = recent.next(curve, self.arrival, self.unit);
            }
            (Kind::Triggered, _) => {}
            _ => self.arrival += period,
        }
        self.delay();
    }

    /// Draws the jitter of the job with the next arrival.
    fn delay(&mut self) {
        if let Some(jitter) = &mut self.jitter {
            jitter.advance(self.arrival, self.unit);
        }
    }
}

fn shifted(at: Instant, offset: Span) -> Instant {
    at + offset
}

fn listed(instants: &[Instant], behind: usize, offset: Span) -> Instant {
    instants
        .get(behind)
        .map_or(Instant::NEVER, |&at| shifted(at, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{Affinity, CpuId};

    fn task(arrival: Arrival, offset: u64) -> TaskSet {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let mut task = Task::periodic("t", Span::from_ns(1), Span::from_ns(10), cpu);
        task.arrival = arrival;
        task.offset = Span::from_ns(offset);
        TaskSet::new("s", 1, vec![task])
    }

    /// The first arrivals and releases.
    fn jobs(set: &TaskSet, seed: u64, entry: u64, count: usize) -> Vec<(u64, u64)> {
        let entry = Instant::from_ns(entry);
        let mut pattern = ReleasePattern::new(set, TaskId::from_index(0), seed, entry);
        (0..count)
            .map(|_| {
                let next = (pattern.arrival().as_ns(), pattern.next().as_ns());
                pattern.advance(&set.tasks[0], set.tasks[0].period);
                next
            })
            .collect()
    }

    fn first(set: &TaskSet, seed: u64, entry: u64, count: usize) -> Vec<u64> {
        let jobs = jobs(set, seed, entry, count).into_iter();
        jobs.map(|(_, release)| release).collect()
    }

    #[test]
    fn periodic_task_releases_from_the_later_of_offset_and_entry() {
        assert_eq!(first(&task(Arrival::Periodic, 3), 1, 0, 3), [3, 13, 23]);
        assert_eq!(first(&task(Arrival::Periodic, 3), 1, 20, 2), [20, 30]);
    }

    #[test]
    fn sporadic_gaps_are_at_least_a_period_and_less_than_two() {
        let releases = first(&task(Arrival::Sporadic, 0), 5, 0, 2_000);
        let gaps: Vec<u64> = releases.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(releases[0], 0);
        assert_eq!(
            (gaps.iter().min(), gaps.iter().max()),
            (Some(&10), Some(&19))
        );
        assert_eq!(releases, first(&task(Arrival::Sporadic, 0), 5, 0, 2_000));
        assert_ne!(releases, first(&task(Arrival::Sporadic, 0), 6, 0, 2_000));
    }

    #[test]
    fn listed_releases_are_relative_to_the_offset_and_finite() {
        let instants = [0, 15, 40].map(Instant::from_ns).to_vec();
        let task = task(Arrival::Releases(instants), 2);
        let never = Instant::NEVER.as_ns();
        assert_eq!(first(&task, 1, 0, 5), [2, 17, 42, never, never]);
        assert_eq!(first(&task, 1, 17, 2), [17, 42]);
        assert_eq!(first(&task, 1, 18, 2), [42, never]);
    }

    /// Arrival curves by the seed.
    fn curve(seed: u64) -> ArrivalCurve {
        let mut stream = RandomStream::new(seed, 5, 0);
        let mut distances: Vec<u64> = Vec::new();
        for gaps in 0..1 + stream.below(5) as usize {
            let splits = (0..gaps).map(|first| distances[first] + distances[gaps - 1 - first]);
            let least = splits.max().unwrap_or(1);
            distances.push(least + stream.below(2) * stream.below(20));
        }
        let distances = distances.into_iter().map(Span::from_ns);
        ArrivalCurve::new(distances.collect()).unwrap()
    }

    #[test]
    fn arrivals_keep_to_the_curve_in_every_window_and_the_earliest_cannot_be_earlier() {
        let mut strictly_later = 0;
        for seed in 0..300 {
            let curve = curve(seed);
            // Of any two arrivals, by the distances as they were given: those of wider windows are sums.
            let keeps = |at: &[u64]| {
                (1..at.len()).all(|last| {
                    let before = at[..last].iter().rev().zip(curve.distances());
                    before
                        .into_iter()
                        .all(|(at_before, distance)| at[last] >= at_before + distance.as_ns())
                })
            };
            let arrivals = |pace| {
                let mut set = task(Arrival::Curve(curve.clone(), pace), 3);
                set.tasks[0].period = curve.shortest();
                first(&set, seed, 0, 60)
            };
            let (earliest, random) = (arrivals(Pace::Earliest), arrivals(Pace::Random));
            assert_eq!((earliest[0], random[0]), (3, 3));
            for at in [&earliest, &random] {
                assert!(keeps(at), "seed {seed}: {curve:?} {at:?}");
                for (from, first) in at.iter().enumerate() {
                    for (gaps, later) in at[from..].iter().enumerate() {
                        let least = curve.distance_ns(gaps as u128);
                        assert!(
                            u128::from(later - first) >= least,
                            "seed {seed}: {curve:?} {at:?}"
                        );
                    }
                }
            }
            for last in 1..earliest.len() {
                let mut earlier = earliest[..=last].to_vec();
                earlier[last] -= 1;
                assert!(!keeps(&earlier), "seed {seed}: {curve:?} {earlier:?}");
            }
            assert!(
                earliest
                    .iter()
                    .zip(&random)
                    .all(|(earliest, later)| earliest <= later)
            );
            strictly_later += u64::from(earliest != random);
        }
        assert!(strictly_later > 100, "{strictly_later}");
    }

    #[test]
    fn arrivals_before_an_entry_do_not_delay_those_after_it() {
        let curve = ArrivalCurve::new([2, 30].map(Span::from_ns).to_vec()).unwrap();
        let mut set = task(Arrival::Curve(curve, Pace::Earliest), 0);
        let task = &mut set.tasks[0];
        task.period = Span::from_ns(2);
        let task = task.clone();
        let mut pattern = ReleasePattern::new(&set, TaskId::from_index(0), 1, Instant::ZERO);
        pattern.advance(&task, task.period);
        assert_eq!(pattern.next(), Instant::from_ns(2));
        pattern.advance(&task, task.period);
        assert_eq!(pattern.next(), Instant::from_ns(30));
        pattern.restart(&task, Instant::from_ns(10));
        pattern.advance(&task, task.period);
        assert_eq!(pattern.next(), Instant::from_ns(12));
    }

    #[test]
    fn random_gaps_by_a_curve_are_in_ticks() {
        let curve = ArrivalCurve::new([10, 50].map(Span::from_ns).to_vec()).unwrap();
        let mut set = task(Arrival::Curve(curve, Pace::Random), 0);
        set.platform.tick_unit = Span::from_ns(5);
        let at = first(&set, 3, 0, 500);
        assert!(at.iter().all(|at| at % 5 == 0), "{at:?}");
        assert!(at.windows(2).any(|pair| pair[1] - pair[0] == 15));
    }

    #[test]
    fn clone_yields_the_same_releases() {
        for arrival in [Arrival::Sporadic, Arrival::Curve(curve(4), Pace::Random)] {
            clone_is_the_same(arrival);
        }
    }

    fn clone_is_the_same(arrival: Arrival) {
        let mut set = task(arrival, 0);
        set.tasks[0].jitter = Span::from_ns(7);
        let task = &set.tasks[0];
        let mut lead = ReleasePattern::new(&set, TaskId::from_index(0), 9, Instant::ZERO);
        let mut lag = lead.clone();
        let seen: Vec<Instant> = (0..50)
            .map(|_| {
                lead.advance(task, task.period);
                lead.next()
            })
            .collect();
        for (step, &expected) in seen.iter().enumerate() {
            lag.advance(task, task.period);
            assert_eq!(lag.next(), expected, "step {step}");
        }
    }

    #[test]
    fn jitter_is_a_whole_number_of_ticks_up_to_its_maximum_and_keeps_the_order() {
        for (jitter, tick) in [(8, 2), (35, 5)] {
            let mut set = task(Arrival::Periodic, 3);
            set.tasks[0].jitter = Span::from_ns(jitter);
            set.platform.tick_unit = Span::from_ns(tick);
            let jobs = jobs(&set, 4, 0, 2_000);
            let (mut seen, mut together) = (std::collections::BTreeSet::new(), 0);
            for (number, pair) in jobs.windows(2).enumerate() {
                let (arrival, release) = pair[0];
                assert_eq!(arrival, 3 + 10 * number as u64);
                seen.insert(release - arrival);
                assert!(pair[1].1 >= release, "{pair:?}");
                together += u64::from(pair[1].1 == release);
            }
            let all = (0..=jitter).step_by(tick as usize);
            assert!(seen.into_iter().eq(all), "J = {jitter}");
            assert_eq!(together > 0, jitter > 10);
        }
    }

    #[test]
    fn jitter_changes_no_arrival() {
        for arrival in [
            Arrival::Sporadic,
            Arrival::Releases([0, 15, 40].map(Instant::from_ns).to_vec()),
        ] {
            let mut set = task(arrival, 2);
            let without = first(&set, 6, 0, 5);
            set.tasks[0].jitter = Span::from_ns(25);
            let with = jobs(&set, 6, 0, 5);
            assert!(with.iter().map(|&(arrival, _)| arrival).eq(without));
            assert!(with.iter().any(|&(arrival, release)| release > arrival));
        }
    }

    #[test]
    fn a_release_that_never_happened_does_not_delay_those_after_the_next_entry() {
        let mut set = task(Arrival::Periodic, 0);
        set.tasks[0].jitter = Span::from_s(1);
        let task = &set.tasks[0];
        for seed in 0..50 {
            let mut pattern = ReleasePattern::new(&set, TaskId::from_index(0), seed, Instant::ZERO);
            let dropped = pattern.next();
            pattern.restart(task, Instant::from_ns(100));
            assert_eq!(pattern.arrival(), Instant::from_ns(100), "seed {seed}");
            if pattern.next() < dropped {
                return;
            }
        }
        panic!("no release after the entry is earlier than the one before it");
    }
}
