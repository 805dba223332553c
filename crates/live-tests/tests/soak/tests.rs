//! What the soak itself is made of, checked on this machine.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, JobId, NotReadyReason, Order, Priority, Record, RecordKind,
    Span, TaskId, TaskSet,
};

use super::draw::draw;
use super::judge::{Judge, Rules};
use super::plan::{Action, Part};

/// A plan is a function of its seed, a shorter one is its beginning, and it is valid; all kinds of actions are drawn.
pub fn plan_of_a_seed_is_always_the_same() -> Result<(), String> {
    let mut kinds = [0; 12];
    for seed in 0..200 {
        let plan = draw(seed, 8, None);
        let shorter = draw(seed, 3, None);
        if plan != draw(seed, 8, None) || plan.episodes[..3] != shorter.episodes[..] {
            return Err(format!("seed {seed} has two plans"));
        }
        let platform = (1 << plan.machine.cpus) - 2;
        for episode in &plan.episodes {
            for task in &episode.tasks {
                let of = &task.reserved;
                let is_valid = of.cpus & platform == of.cpus
                    && of.cpus != 0
                    && (1..=of.deadline_us).contains(&of.cost_us)
                    && of.deadline_us <= of.period_us;
                if !is_valid {
                    return Err(format!("seed {seed}: {episode}"));
                }
            }
            episode
                .steps
                .iter()
                .for_each(|it| kinds[kind(&it.action)] += 1);
        }
    }
    match kinds.contains(&0) {
        true => Err(format!("an action is never drawn: {kinds:?}")),
        false => Ok(()),
    }
}

const fn kind(action: &Action) -> usize {
    match action {
        Action::Change(..) => 0,
        Action::Bind(..) => 1,
        Action::BindsItself(..) => 2,
        Action::Dismiss(_) => 3,
        Action::Admit(_) => 4,
        Action::End(_) => 5,
        Action::Stop(_) => 6,
        Action::Fifo(_) => 7,
        Action::Boost(_) => 8,
        Action::Offline(_) => 9,
        Action::Hog(_) => 10,
        Action::Burst(_) => 11,
    }
}

/// Parts keep their names when others are left out, and names are read as they are written.
pub fn parts_of_a_plan_can_be_left_out() -> Result<(), String> {
    for seed in 0..50 {
        let plan = draw(seed, 6, None);
        let parts = plan.parts();
        for part in &parts {
            if part.to_string().parse() != Ok(*part) {
                return Err(format!("{part} is not read"));
            }
        }
        let (out, kept): (Vec<Part>, Vec<Part>) = parts
            .iter()
            .partition(|part| part.to_string().len() % 2 == 0);
        let left = plan.clone().without(&out).parts();
        let is_in = |part: &Part| match *part {
            Part::Episode(_) => true,
            Part::Step(of, _) | Part::Ordinary(of, _) | Part::Task(of, _) => {
                !out.contains(&Part::Episode(of))
            }
        };
        let wanted: Vec<Part> = kept.into_iter().filter(is_in).collect();
        if left != wanted || !plan.without(&parts).episodes.is_empty() {
            return Err(format!("seed {seed}: {left:?} instead of {wanted:?}"));
        }
    }
    match ["", "e", "x1", "e1.", "e1.q2", "e1.s"]
        .iter()
        .find(|text| text.parse::<Part>().is_ok())
    {
        Some(text) => Err(format!("`{text}` is read")),
        None => Ok(()),
    }
}

const WINDOW_US: u64 = 100;

/// Records of two tasks on CPUs 1 and 2, in microseconds.
fn judged(order: Order, records: &[(u64, RecordKind)], end_us: u64) -> Result<(), String> {
    let all = Affinity::new(CpuSet::first(3)).ok_or("no CPUs")?;
    let periodic =
        |name| shiftwork_model::Task::periodic(name, Span::from_ms(1), Span::from_ms(9), all);
    let set = TaskSet::new("judged", 3, vec![periodic("a"), periodic("b")]);
    let rules = Rules {
        order,
        platform: CpuSet::from_bits(0b110),
        window: Span::from_us(WINDOW_US),
    };
    let at = |us: u64| Instant::from_ns(us * 1_000);
    let mut judge = Judge::new(rules, &set);
    for (us, kind) in records {
        judge.take(&Record {
            at: at(*us),
            kind: kind.clone(),
        })?;
    }
    judge.pass(at(end_us))?;
    judge.finish().map_err(|(_, why)| why)
}

/// What is right passes, and each fault that is put into it is found.
pub fn judge_finds_each_broken_rule() -> Result<(), String> {
    let id = |task| TaskId::from_index(task);
    let job = |task| JobId {
        task: id(task),
        number: 1,
    };
    let bound = |task, cpus| {
        let affinity = Affinity::new(CpuSet::from_bits(cpus));
        let affinity = Box::new(affinity.expect("CPUs were given"));
        RecordKind::AffinitySet {
            task: id(task),
            affinity,
        }
    };
    let enters = |task, cpus| {
        let [cost, period, deadline] = [300, 5_000, 5_000].map(Span::from_us);
        [
            RecordKind::Entered { task: id(task) },
            RecordKind::AttributesSet {
                task: id(task),
                cost,
                period,
                deadline,
            },
            bound(task, cpus),
        ]
    };
    let ready = |task, deadline_us: u64, priority| RecordKind::Ready {
        job: job(task),
        deadline: Instant::from_ns(deadline_us * 1_000),
        priority: Priority::new(priority).expect("it is not 0"),
    };
    let runs = |cpu, from: Option<usize>, to: Option<usize>| RecordKind::Switched {
        cpu: CpuId::from_index(cpu),
        from: from.map(job),
        to: to.map(job),
    };
    let completes = |task| RecordKind::Completed { job: job(task) };
    let leaves = |task| RecordKind::Left { task: id(task) };
    // Both on CPU 1 at first; then the less urgent one is shifted to CPU 2.
    let mut right: Vec<(u64, RecordKind)> = Vec::new();
    right.extend(enters(0, 0b110).map(|kind| (10, kind)));
    right.extend(enters(1, 0b010).map(|kind| (10, kind)));
    let first = right.len();
    right.extend([
        (100, ready(0, 900, 2)),
        (120, runs(1, None, Some(0))),
        (200, ready(1, 800, 1)),
        (230, runs(1, Some(0), Some(1))),
        (240, runs(2, None, Some(0))),
        (400, runs(1, Some(1), None)),
        (400, completes(1)),
        (410, runs(2, Some(0), None)),
        (410, completes(0)),
        (900, leaves(0)),
        (900, leaves(1)),
    ]);
    let without = |at: usize| {
        let mut records = right.clone();
        records.remove(first + at);
        records
    };
    let with = |at: usize, us: u64, kind: RecordKind| {
        let mut records = right.clone();
        records.insert(first + at, (us, kind));
        records
    };
    for order in [Order::Edf, Order::FixedPriority] {
        judged(order, &right, 2_000).map_err(|why| format!("what is right: {why}"))?;
        let late: Vec<_> = with(5, 350, runs(2, None, Some(0)));
        let late = late.into_iter().filter(|(us, _)| *us != 240).collect();
        let reason = NotReadyReason::Throttled;
        let faults: [(&str, Vec<(u64, RecordKind)>); 7] = [
            ("it never runs again", without(4)),
            ("it runs late", late),
            ("it stays", without(10)),
            ("it is on two CPUs", with(3, 220, runs(2, None, Some(0)))),
            (
                "it runs on although it may not",
                with(
                    2,
                    150,
                    RecordKind::NotReady {
                        job: job(0),
                        reason,
                    },
                ),
            ),
            (
                "it stays on a CPU that it may not use",
                with(4, 235, bound(0, 0b010)),
            ),
            (
                "a CPU is taken",
                with(
                    2,
                    150,
                    RecordKind::CpuTaken {
                        cpu: CpuId::from_index(1),
                    },
                ),
            ),
        ];
        for (fault, records) in faults {
            if judged(order, &records, 2_000).is_ok() {
                return Err(format!("{order:?}, not found: {fault}"));
            }
        }
        // It has 300 us, 20 beside and a window.
        let mut long = right.clone();
        for record in &mut long[first + 5..] {
            record.0 += 400;
        }
        if judged(order, &long, 2_000).is_ok() {
            return Err(format!("{order:?}: what is beyond its budget is not found"));
        }
    }
    Ok(())
}
