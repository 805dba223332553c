//! The cost of each recorder per job, on the records of a busy machine: 240 tasks on 24 CPUs, one job
//! in four preempted once.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Invariant, JobId, Order, Priority, Record, RecordKind,
    Recorder, Span, Task, TaskId, TaskSet,
};
use shiftwork_trace::check::{Checker, PolicyContract};
use shiftwork_trace::perfetto::{Provenance, Writer};
use shiftwork_trace::{Counters, JobTable};

const CPUS: usize = 24;
const TASKS: usize = 240;
const JOBS: usize = 100_000;

fn task_set() -> TaskSet {
    let all = Affinity::new(CpuSet::first(CPUS)).expect("there are CPUs");
    let task = |index| {
        let (cost, period) = (Span::from_us(50), Span::from_ms(1));
        Task::periodic(&format!("task {index}"), cost, period, all)
    };
    TaskSet::new("busy", CPUS, (0..TASKS).map(task).collect())
}

/// Every CPU runs job after job, with the tasks in turn.
fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for index in 0..JOBS {
        let round = index / CPUS;
        let cpu = CpuId::from_index(index % CPUS);
        let job = JobId {
            task: TaskId::from_index(index % TASKS),
            number: (index / TASKS) as u64 + 1,
        };
        let begin_ns = round as u64 * 60_000 + (index % CPUS) as u64 * 101;
        let due = Instant::from_ns(begin_ns + 1_000_000);
        let mut record = |after_ns, kind| {
            records.push(Record {
                at: Instant::from_ns(begin_ns + after_ns),
                kind,
            });
        };
        let on = RecordKind::Switched {
            cpu,
            from: None,
            to: Some(job),
        };
        let off = RecordKind::Switched {
            cpu,
            from: Some(job),
            to: None,
        };
        record(0, RecordKind::Released { job, deadline: due });
        record(
            0,
            RecordKind::Ready {
                job,
                deadline: due,
                priority: Priority::MOST_URGENT,
            },
        );
        record(0, on.clone());
        if index % 4 == 0 {
            record(20_000, off.clone());
            record(30_000, on);
        }
        record(50_000, RecordKind::Completed { job });
        record(50_000, off);
    }
    records.sort_by_key(|record| record.at);
    records
}

fn play(records: &[Record], recorder: &mut impl Recorder) {
    for record in records {
        recorder.record(record.at, &record.kind);
    }
}

fn recorders(criterion: &mut Criterion) {
    let (set, records) = (task_set(), records());
    let horizon = records[records.len() - 1].at + Span::from_ns(1);
    let mut group = criterion.benchmark_group("recorders");
    group
        .throughput(Throughput::Elements(JOBS as u64))
        .sample_size(20);
    group.bench_function("counters", |bencher| {
        let mut counters = Counters::new(&set, CPUS);
        play(&records, &mut counters);
        bencher.iter(|| {
            let mut counters = counters.clone();
            play(&records, &mut counters);
            counters.finish(horizon).jobs
        });
    });
    group.bench_function("job table", |bencher| {
        bencher.iter(|| {
            let mut table = JobTable::new(&set, std::io::sink());
            play(&records, &mut table);
            table.finish(horizon).is_ok()
        });
    });
    group.bench_function("perfetto", |bencher| {
        let provenance = Provenance {
            horizon,
            ..Provenance::default()
        };
        bencher.iter(|| {
            let mut writer = Writer::new(&set, &provenance, std::io::sink());
            play(&records, &mut writer);
            writer.finish(horizon).is_ok()
        });
    });
    group.bench_function("checker", |bencher| {
        bencher.iter(|| {
            let facts = PolicyContract {
                invariant: Invariant::Strong,
                order: Order::Edf,
                packing: None,
                immediate: true,
            };
            let mut checker = Checker::new(&set, facts);
            play(&records, &mut checker);
            checker.finish(horizon).len()
        });
    });
    group.finish();
}

mod generated {
    #![allow(
        missing_docs,
        reason = "the macro makes a public function without a doc"
    )]
    super::criterion_group!(benches, super::recorders);
}

criterion_main!(generated::benches);
