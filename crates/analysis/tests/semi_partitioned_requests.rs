//! Every short sequence of requests under the terms of `dl-sp`: conditions (1) and (2) of Tang et al. hold
//! after each of them, no task loses capacity to another's request, and what fits is granted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::admission::{Admitted, Claim, Guarantee, Terms};
use shiftwork_model::{CpuId, CpuSet, Instant, Priority, Share, Span, TaskId};
use shiftwork_policy::registry;

const TASKS: usize = 3;

/// One CPU, and one period: costs are parts of it.
const WHOLE: u64 = 16;

/// A cost, and CPUs as bits.
type Wish = (u64, u64);

/// What may be asked; tasks and CPUs by number.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// Time goes on.
    Wait,
    Enter(usize, Wish),
    /// What it had counts for so long.
    Leave(usize, u64),
    Cost(usize, u64),
    Affinity(usize, u64),
    /// So many parts of each CPU.
    Reserve(u64),
    Offline(usize),
    Online(usize),
}

impl Request {
    fn task(self) -> Option<usize> {
        match self {
            Self::Enter(task, _)
            | Self::Leave(task, _)
            | Self::Cost(task, _)
            | Self::Affinity(task, _) => Some(task),
            _ => None,
        }
    }
}

fn every_request() -> Vec<Request> {
    let mut all = vec![Request::Wait];
    for task in 0..TASKS {
        for cost in [8, 15] {
            all.extend([0b01, 0b10, 0b11].map(|cpus| Request::Enter(task, (cost, cpus))));
            all.push(Request::Cost(task, cost));
        }
        all.extend([0, 1].map(|time| Request::Leave(task, time)));
        all.extend([0b01, 0b10, 0b11].map(|cpus| Request::Affinity(task, cpus)));
    }
    all.extend([0, 1, 8].map(Request::Reserve));
    for cpu in 0..2 {
        all.extend([Request::Offline(cpu), Request::Online(cpu)]);
    }
    all
}

/// What the test knows on its own, by what it asked and was answered.
#[derive(Clone, Debug)]
struct Ledger {
    now: u64,
    wishes: [Option<Wish>; TASKS],
    /// What tasks had that left, and until when it counts.
    past: Vec<(Wish, u64)>,
    online: u64,
    reserve: u64,
}

impl Ledger {
    /// Whether all of these meet both conditions.
    fn fits(&self, wishes: &[Wish]) -> bool {
        let supply = WHOLE - self.reserve;
        let needed = |cpus: u64| -> u64 {
            let inside = wishes
                .iter()
                .filter(|wish| wish.1 & self.online & !cpus == 0);
            inside.map(|wish| wish.0).sum()
        };
        let single = [0b01, 0b10]
            .into_iter()
            .filter(|cpu| self.online & cpu != 0);
        single.clone().all(|cpu| needed(cpu) <= supply)
            && needed(self.online) <= supply * u64::from(self.online.count_ones())
    }

    fn held(&self, admitted: &Admitted) -> Vec<Wish> {
        let held = |task: usize| admitted.promise(TaskId::from_index(task)).is_some();
        let tasks = (0..TASKS).filter(|&task| held(task));
        tasks.filter_map(|task| self.wishes[task]).collect()
    }

    fn counting(&self) -> impl Iterator<Item = Wish> + '_ {
        let past = self.past.iter().filter(|past| past.1 > self.now);
        past.map(|past| past.0)
    }
}

fn id(task: usize) -> TaskId {
    TaskId::from_index(task)
}

fn claim(task: usize, (cost, cpus): Wish) -> Claim {
    Claim {
        task: id(task),
        name: format!("T{task}"),
        cost: Span::from_ns(cost),
        period: Span::from_ns(WHOLE),
        deadline: Span::from_ns(WHOLE),
        priority: Priority::LEAST_URGENT,
        cpus: CpuSet::from_bits(cpus),
    }
}

fn share(parts: u64) -> Share {
    Share::from_billionths(parts as u32 * (Share::WHOLE / WHOLE as u32)).unwrap()
}

/// The outcome of a request: the task and what it asked for, if any, and whether it was granted.
struct Answer {
    asked: Option<(usize, Wish)>,
    granted: bool,
}

fn ask(admitted: &mut Admitted, ledger: &mut Ledger, request: Request) -> Answer {
    let now = Instant::from_ns(ledger.now);
    let none = |granted| Answer {
        asked: None,
        granted,
    };
    match request {
        Request::Wait => {
            ledger.now += 1;
            admitted.advance(Instant::from_ns(ledger.now));
            none(true)
        }
        Request::Enter(task, wish) => {
            let granted = admitted.enter(claim(task, wish)).is_ok();
            if granted {
                ledger.wishes[task] = Some(wish);
            }
            let asked = Some((task, wish));
            Answer { asked, granted }
        }
        Request::Leave(task, time) => {
            let held = admitted.promise(id(task)).is_some();
            admitted.leave(id(task), now + Span::from_ns(time));
            if let Some(wish) = ledger.wishes[task].take().filter(|_| held) {
                ledger.past.push((wish, ledger.now + time));
            }
            none(true)
        }
        Request::Cost(task, cost) => {
            let spans = [cost, WHOLE, WHOLE].map(Span::from_ns);
            let granted = admitted.set_parameters(id(task), spans, now).is_ok();
            let asked = ledger.wishes[task].map(|(_, cpus)| (task, (cost, cpus)));
            if let Some((_, wish)) = asked.filter(|_| granted) {
                ledger.wishes[task] = Some(wish);
            }
            Answer { asked, granted }
        }
        Request::Affinity(task, cpus) => {
            let mask = CpuSet::from_bits(cpus);
            let granted = admitted.request_affinity(id(task), mask, now).is_ok();
            // Granted or not, this is its affinity now.
            let asked = ledger.wishes[task].map(|(cost, _)| (task, (cost, cpus)));
            if let Some((_, wish)) = asked {
                ledger.wishes[task] = Some(wish);
            }
            Answer { asked, granted }
        }
        Request::Reserve(reserve) => {
            let granted = admitted.set_reserve(share(reserve)).is_ok();
            if granted {
                ledger.reserve = reserve;
            }
            none(granted)
        }
        Request::Offline(cpu) => {
            ledger.online &= !(1 << cpu);
            admitted.cpu_offline(CpuId::from_index(cpu));
            none(true)
        }
        Request::Online(cpu) => {
            ledger.online |= 1 << cpu;
            admitted.cpu_online(CpuId::from_index(cpu));
            none(true)
        }
    }
}

fn promises(admitted: &Admitted) -> [Option<Guarantee>; TASKS] {
    core::array::from_fn(|task| admitted.promise(id(task)))
}

/// How many requests were granted, and refused.
fn search(
    admitted: &Admitted,
    ledger: &Ledger,
    depth: usize,
    requests: &mut Vec<Request>,
    counts: &mut [usize; 2],
) {
    if depth == 0 {
        return;
    }
    // Tasks are alike: the first that asks is T0, and so forth.
    let known = requests.iter().filter_map(|request| request.task()).max();
    let known = known.map_or(0, |last| last + 1);
    let is_next = |request: &Request| request.task().is_none_or(|task| task <= known);
    for request in every_request().into_iter().filter(is_next) {
        let (mut admitted, before) = (admitted.clone(), admitted);
        let mut next = ledger.clone();
        requests.push(request);
        let held_before = ledger.held(before);
        let answer = ask(&mut admitted, &mut next, request);
        let context = || format!("{requests:?}: {next:?}, promised {:?}", promises(&admitted));
        let held = next.held(&admitted);
        assert!(next.fits(&held), "too much: {}", context());
        let (old, new) = (promises(before), promises(&admitted));
        for task in 0..TASKS {
            if new[task].is_some() {
                assert_eq!(
                    new[task],
                    Some(Guarantee::BoundedTardiness),
                    "{}",
                    context()
                );
            }
            let is_own = answer.asked.is_some_and(|(asking, _)| asking == task)
                || matches!(request, Request::Leave(leaving, _) if leaving == task);
            let kept = is_own || old[task].is_none() || new[task] == old[task];
            let is_offline = matches!(request, Request::Offline(_));
            assert!(kept || is_offline, "T{task} paid for it: {}", context());
        }
        if let Some((_, wish)) = answer.asked {
            let all: Vec<Wish> = held.iter().copied().chain(next.counting()).collect();
            assert!(
                !answer.granted || next.fits(&all),
                "too much beside what counts: {}",
                context()
            );
            // Enough for what it has and for what it asks for, and nothing else counts.
            let both = [&held_before[..], &[wish]].concat();
            let fits = wish.1 & ledger.online != 0 && ledger.fits(&both);
            assert!(
                answer.granted || !fits || before.lingering() > 0,
                "it fits: {}",
                context()
            );
        }
        if let Request::Reserve(reserve) = request {
            let with = Ledger {
                reserve,
                ..ledger.clone()
            };
            let fits = with.fits(&held_before);
            assert!(fits || !answer.granted, "{}", context());
            assert!(
                !fits || answer.granted || before.lingering() > 0,
                "{}",
                context()
            );
        }
        counts[usize::from(!answer.granted)] += 1;
        if matches!(request, Request::Offline(_)) && admitted.lingering() == 0 {
            // Where a CPU went, what lingered makes room first.
            next.past.clear();
        }
        search(&admitted, &next, depth - 1, requests, counts);
        requests.pop();
    }
}

#[test]
fn no_short_sequence_of_requests_breaks_a_condition_or_a_promise() {
    let depth = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 4,
        None => 3,
    };
    let terms = Terms::new(&registry::find("dl-sp").unwrap().traits, share(0)).unwrap();
    let admitted = Admitted::new(CpuSet::first(2), terms);
    let ledger = Ledger {
        now: 0,
        wishes: [None; TASKS],
        past: Vec::new(),
        online: 0b11,
        reserve: 0,
    };
    let mut counts = [0, 0];
    search(&admitted, &ledger, depth, &mut Vec::new(), &mut counts);
    assert!(counts[0] > 5_000 && counts[1] > 1_000, "{counts:?}");
}
