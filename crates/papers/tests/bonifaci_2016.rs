//! The workload of Bonifaci et al., ECRTS 2016, and that measuring a policy changes nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_model::{Instant, Span};
use shiftwork_papers::bonifaci_2016::POLICIES;
use shiftwork_papers::bonifaci_2016::replay::{Decisions, replay};
use shiftwork_papers::bonifaci_2016::workload::{
    CPUS, LOADS, SOCKET, TASKS, set, without_affinities,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_taskset::generate::is_feasible;

#[test]
fn the_sets_are_as_the_paper_says() {
    let mut levels = [0; CPUS + 1];
    for load in LOADS {
        for tasks in TASKS {
            let set = set(tasks, load, 0).unwrap();
            assert_eq!(set.tasks.len(), tasks);
            assert!(is_feasible(&set), "{tasks} tasks at {load}%");
            for task in &set.tasks {
                assert!(task.cost >= Span::from_us(500), "{task:?}");
                assert!(task.period >= Span::from_ms(1) && task.period <= Span::from_s(1));
                levels[task.affinity.cpus().len()] += 1;
            }
            let used: f64 = set
                .tasks
                .iter()
                .map(|task| task.cost.as_ns() as f64 / task.period.as_ns() as f64)
                .sum();
            let wanted = CPUS as f64 * load as f64 / 100.0;
            assert!((used - wanted).abs() < 0.05, "{used} of {wanted}");
        }
    }
    let [pinned, socket, global] = [1, SOCKET, CPUS].map(|size| levels[size]);
    let all: usize = LOADS.len() * TASKS.iter().sum::<usize>();
    assert_eq!(pinned + socket + global, all);
    assert!([pinned, socket, global].iter().all(|level| level * 4 > all));
}

#[test]
fn every_event_of_a_run_is_measured() {
    let nested = set(48, 75, 1).unwrap();
    let length = Span::from_s(1);
    for policy in POLICIES {
        let set = match policy {
            "g-fp" => without_affinities(nested.clone()),
            _ => nested.clone(),
        };
        let mut decisions = Decisions::default();
        replay(&set, policy, length, &mut decisions).unwrap();
        let entry = registry::find(policy).unwrap();
        let options = Options {
            seed: 1,
            horizon: Instant::ZERO + length,
            overheads: None,
            reserve_server: false,
        };
        let built = entry.build(&set).unwrap();
        let outcome = Simulation::new(&set, built, &entry.traits, options).run(&mut ());
        assert_eq!(decisions.count, outcome.events, "{policy}");
        let [half, most] = [500, 999].map(|permille| {
            decisions
                .spans
                .ranked_ns(decisions.count * permille / 1_000)
        });
        // What the clock itself takes is taken off, which may be all of it.
        assert!(half.is_some() && half <= most, "{policy}");
    }
}
