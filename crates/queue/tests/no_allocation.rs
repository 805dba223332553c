//! No call allocates after the queue and the jobs of all tasks have been created.

use shiftwork_queue::{Heap, Ipi, Job, QUEUE_KINDS, ReadyQueue, Scheduler, Timer};

fn calls(queue: &dyn ReadyQueue<u64>, jobs: Vec<Job<u64>>) {
    let mut batch = Heap::default();
    for job in jobs {
        if job.task().is_multiple_of(3) {
            batch.insert(job);
        } else {
            queue.insert(0, job);
        }
    }
    queue.merge(0, batch);
    let mut taken = 0;
    for limit in 0..200_u64 {
        if let Some(mut job) = queue.take_if_before(0, &(limit * 5)) {
            job.set_key(job.key() + 1_000);
            queue.insert(0, job);
        }
    }
    while let Some(mut job) = queue.take(0) {
        job.set_key(0);
        taken += 1;
        if taken < 1_000 {
            job.set_key(taken * 7);
            queue.insert(0, job);
        } else {
            // Freeing memory does not count as an allocation.
            drop(job);
        }
    }
}

#[test]
fn no_call_allocates() {
    for kind in QUEUE_KINDS {
        let queue = kind.build(2, 100);
        let jobs = (0..100).map(|task| Job::new(u64::from(task) * 37 % 101, task));
        let jobs = jobs.collect();
        let counted = allocation_counter::measure(|| calls(&*queue, jobs));
        assert_eq!(counted.count_total, 0, "{}", kind.name());
    }
}

/// Interrupts and timers without effect.
struct Ignored;

impl Ipi for Ignored {
    fn send(&self, _cpu: usize) {}
}

impl Timer for Ignored {
    fn arm(&self, _at_ns: u64) {}
}

#[test]
fn no_call_of_a_scheduler_allocates() {
    for kind in QUEUE_KINDS {
        let scheduler = Scheduler::with(kind.build(3, 30), 3, 30, None);
        let jobs: Vec<_> = (0..30)
            .map(|task| Job::new(u64::from(task) * 7 % 31, task))
            .collect();
        let mut completed = 0;
        let counted = allocation_counter::measure(|| {
            for job in jobs {
                let at_ns = u64::from(job.task() % 5);
                scheduler.add(job, at_ns, &Ignored);
            }
            for at_ns in 0..500 {
                scheduler.release(0, at_ns, &Ignored);
                let cpu = (at_ns % 3) as usize;
                scheduler.switch(cpu);
                if let Some(mut job) = scheduler.complete(cpu, &Ignored) {
                    completed += 1;
                    job.set_key(job.key() + 31);
                    scheduler.add(job, at_ns + 1 + at_ns % 7, &Ignored);
                }
            }
        });
        assert_eq!(counted.count_total, 0, "{}", kind.name());
        assert!(completed > 400, "{}: {completed}", kind.name());
    }
}
