//! On one CPU no sequence of requests makes an admitted task late: a published one, random ones, all short ones.

use shiftwork_analysis::admission::{Admitted, Terms};
use shiftwork_model::{CpuSet, RandomStream, Share};
use shiftwork_policy::registry;

use super::one_cpu::{OneCpu, Request, Server};

/// Tang et al. 2021, Example 1: two tasks ask for 94 of 100 just before each of their replenishments, and
/// for 1 just after it. Returns how late the budgets of each were used up.
fn example_1(lingers: bool) -> [Vec<u64>; 2] {
    let terms = Terms::new(
        &registry::find("p-edf").unwrap().traits,
        Share::DEFAULT_RESERVE,
    )
    .unwrap();
    let mut cpu = OneCpu::new("p-edf", lingers);
    cpu.admitted = Admitted::new(CpuSet::first(1), terms);
    let mut tardiness = [Vec::new(), Vec::new()];
    for now in 0..1200 {
        for (task, enters) in [(0, 0), (1, 10)] {
            let due = cpu.servers.get(&task).map(|server| server.end);
            // The grid of replenishments, however late: a tardy budget is renewed when it is used up.
            let is_renewed = |server: &Server| server.left == 0 && server.end <= now;
            if now == enters {
                cpu.request(task, Request::Enter([1, 100, 100], 1));
                cpu.request(task, Request::Set([94, 100, 100]));
                let server = cpu.servers.get_mut(&task).unwrap();
                server.replenish(now);
                cpu.request(task, Request::Set([1, 100, 100]));
            } else if cpu.servers.get(&task).is_some_and(is_renewed) {
                cpu.request(task, Request::Set([94, 100, 100]));
                cpu.servers.get_mut(&task).unwrap().replenish(due.unwrap());
                cpu.request(task, Request::Set([1, 100, 100]));
            }
        }
        let before: Vec<u64> = cpu.servers.values().map(|server| server.left).collect();
        let _ = cpu.run();
        for (task, before) in before.into_iter().enumerate() {
            let server = &cpu.servers[&task];
            if before == 1 && server.left == 0 {
                tardiness[task].push(cpu.now.saturating_sub(server.deadline));
            }
        }
    }
    tardiness
}

#[test]
fn alternating_between_94_and_1_yields_no_more_than_was_admitted() {
    // The published outcome where reductions take effect in admission at once.
    let [first, second] = example_1(false);
    assert_eq!(first[..5], [0, 82, 170, 258, 346]);
    assert_eq!(second[..5], [78, 166, 254, 342, 430]);
    // Where they linger the first gets its 94 again and again, and the second its 1, both in time.
    let [first, second] = example_1(true);
    assert_eq!((first.len(), second.len()), (12, 12));
    assert_eq!(
        (first.iter().max(), second.iter().max()),
        (Some(&0), Some(&0))
    );
}

fn random_request(policy: &str, stream: &mut RandomStream) -> Request {
    let implicit = policy == "p-edf, implicit";
    let period = 2 + stream.below(7);
    // Much or next to nothing, since the difference is what cheats.
    let cost = match stream.below(3) {
        0 => 1,
        _ => period - stream.below(period) / 2,
    };
    let deadline = match implicit {
        true => period,
        false => cost + stream.below(period - cost + 1),
    };
    match stream.below(if implicit { 7 } else { 5 }) {
        0 | 1 => Request::Enter([cost, period, deadline], 1 + stream.below(4) as u32),
        2 | 3 => Request::Set([cost, period, deadline]),
        4 => Request::Leave,
        5 => Request::Sleep,
        _ => Request::Wake,
    }
}

/// The time and the task of the first deadline miss under random requests at random times.
fn first_late(policy: &str, lingers: bool, seed: u64, granted: &mut usize) -> Option<(u64, usize)> {
    let mut stream = RandomStream::new(seed, 39, 0);
    let mut cpu = OneCpu::new(policy.split(',').next().unwrap(), lingers);
    for now in 0..50 {
        for moment in 0..2 {
            for _ in 0..stream.below(3) {
                let task = stream.below(3) as usize;
                cpu.request(task, random_request(policy, &mut stream));
            }
            if moment == 0 {
                cpu.replenish();
            }
        }
        if let Some(task) = cpu.run() {
            return Some((now, task));
        }
    }
    *granted += cpu.granted;
    None
}

#[test]
fn admitted_tasks_meet_their_deadlines_under_random_requests() {
    let long = std::env::var_os("SHIFTWORK_LONG").is_some();
    let seeds = if long { 100_000 } else { 120 };
    for policy in ["p-edf, implicit", "p-edf, constrained", "p-fp"] {
        let (mut granted, mut caught) = (0, 0);
        for seed in 0..seeds {
            let late = first_late(policy, true, seed, &mut granted);
            assert_eq!(late, None, "{policy}, seed {seed}");
            caught += usize::from(first_late(policy, false, seed, &mut 0).is_some());
        }
        assert!(granted > 4 * seeds as usize, "{policy}: {granted} granted");
        // Elsewhere what left counts until the CPU was idle, whatever the machine says.
        assert!(caught > 0 || policy != "p-edf, implicit");
    }
}

/// All sequences of requests of two tasks, two at each instant: before and after replenishments.
fn every_sequence(cpu: &OneCpu, depth: usize, requests: &mut Vec<String>) -> usize {
    if depth == 0 {
        let mut cpu = cpu.clone();
        for _ in 0..8 {
            cpu.replenish();
            assert_eq!(cpu.run(), None, "{requests:?}");
        }
        return 1;
    }
    let mut count = 0;
    for task in 0..2 {
        for wish in 0..4 {
            let mut cpu = cpu.clone();
            let is_there = cpu.servers.contains_key(&task);
            let request = match wish {
                0 if task == 1 => continue,
                0 => None,
                1 if is_there => Some(Request::Leave),
                1 => Some(Request::Enter([2, 3, 3], 1)),
                2 => Some(Request::Set([1, 3, 3])),
                _ => Some(Request::Set([2, 3, 3])),
            };
            if let Some(request) = request {
                cpu.request(task, request);
            }
            requests.push(format!("{} T{task} {request:?}", cpu.now));
            if depth.is_multiple_of(2) {
                cpu.replenish();
            } else {
                assert_eq!(cpu.run(), None, "{requests:?}");
            }
            count += every_sequence(&cpu, depth - 1, requests);
            requests.pop();
        }
    }
    count
}

#[test]
fn no_short_sequence_of_requests_makes_a_task_late() {
    let depth = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 8,
        None => 4,
    };
    let count = every_sequence(&OneCpu::new("p-edf", true), depth, &mut Vec::new());
    assert_eq!(count, 7_usize.pow(depth as u32));
}
