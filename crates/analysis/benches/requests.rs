//! How long requests to a running system take: 1,024 tasks on 64 CPUs.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that cannot go on fails"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use shiftwork_analysis::admission::{Admitted, Claim, Terms};
use shiftwork_model::{CpuSet, Instant, Order, Priority, RandomStream, Share, Span, TaskId};
use shiftwork_policy::registry;

const TASKS: usize = 1024;
const CPUS: u64 = 64;

/// Nested affinities of three levels, or any.
fn mask(nested: bool, stream: &mut RandomStream) -> CpuSet {
    if !nested {
        return CpuSet::from_bits(stream.bits() | 1 << stream.below(CPUS));
    }
    let cpu = stream.below(CPUS);
    match stream.below(3) {
        0 => CpuSet::from_bits(1 << cpu),
        1 => CpuSet::from_bits(0xff << (cpu / 8 * 8)),
        _ => CpuSet::from_bits(u64::MAX),
    }
}

fn admitted(nested: bool, policy: &str) -> (Admitted, RandomStream) {
    let mut stream = RandomStream::new(1, 34, 0);
    let traits = &registry::find(policy).unwrap().traits;
    let claims = (0..TASKS).map(|index| {
        let period = stream.span(Span::from_ms(10), Span::from_ms(100));
        let share = u64::from(traits.order == Order::Edf) * 10 + 1;
        Claim {
            task: TaskId::from_index(index),
            name: format!("task {index}"),
            // About 56 of 64 CPUs, or what is guaranteed still under fixed priorities.
            cost: Span::from_ns(period.as_ns() * share / 200),
            period,
            deadline: period,
            priority: Priority::new(1 + (period.as_ns() / 1000) as u32).unwrap(),
            cpus: mask(nested, &mut stream),
        }
    });
    let claims = claims.collect();
    let terms = Terms::new(traits, Share::DEFAULT_RESERVE).unwrap();
    let all = CpuSet::first(CPUS as usize);
    let (admitted, _) = Admitted::begin(all, terms, claims).unwrap();
    (admitted, stream)
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("affinity request, 1024 tasks, 64 CPUs");
    for (policy, nested) in [
        ("hpa-edf", true),
        ("strong-edf", false),
        ("strong-fp", false),
    ] {
        let (admitted, mut stream) = admitted(nested, policy);
        group.bench_function(policy, |bencher| {
            let ready = || {
                let task = TaskId::from_index(stream.below(TASKS as u64) as usize);
                (admitted.clone(), task, mask(nested, &mut stream))
            };
            let request = |(mut admitted, task, cpus): (Admitted, TaskId, CpuSet)| {
                let answer = admitted.request_affinity(task, cpus, Instant::ZERO).is_ok();
                (black_box(answer), admitted)
            };
            bencher.iter_batched(ready, request, BatchSize::SmallInput);
        });
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
