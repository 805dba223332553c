//! No event of the core allocates.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use shiftwork_kernel_core::POLICIES;
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, Job, Priority, RandomStream, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::{Event, Switches};

const CPUS: usize = 24;
const TASKS: usize = 240;

fn affinity(random: &mut RandomStream) -> Affinity {
    let cpu = |random: &mut RandomStream| CpuId::from_index(random.below(CPUS as u64) as usize);
    let cpus: CpuSet = (0..4).map(|_| cpu(random)).collect();
    Affinity::new(cpus).unwrap()
}

#[test]
fn no_event_allocates() {
    for policy in POLICIES {
        let mut random = RandomStream::new(1, 0, 0);
        let task = |index| {
            let name = format!("t{index}");
            Task::periodic(
                &name,
                Span::from_us(1),
                Span::from_ms(1),
                affinity(&mut random),
            )
        };
        let set = TaskSet::new("test", CPUS, (0..TASKS).map(task).collect());
        let mut built = policy.build(&set).unwrap();
        let mut out = Switches::with_capacity(CPUS);
        let mut switches = 0;
        for now in 0..50_000 {
            let task = TaskId::from_index(random.below(TASKS as u64) as usize);
            let cpu = CpuId::from_index(random.below(CPUS as u64) as usize);
            let wider = affinity(&mut random);
            let priority = Priority::new(random.below(20) as u32 + 1).unwrap();
            let event = match random.below(40) {
                0 => Event::CpuOffline(cpu),
                1 | 2 => Event::CpuOnline(cpu),
                3 => Event::Leave(task),
                4 => Event::Enter(task, &set.tasks[task.index()]),
                5 | 6 => Event::SetAffinity(task, &wider),
                7 => Event::SetPriority(task, priority),
                8 => Event::SetDeadline(task, Instant::from_ns(now)),
                9..16 => Event::Complete(task),
                16 => Event::Block(task),
                17 => Event::BudgetSpent(task),
                18 => Event::Tick { cpu, quantum: 0 },
                _ => Event::Wake(Job {
                    task,
                    ready: Instant::from_ns(now),
                    deadline: Instant::from_ns(now + random.below(50)),
                    priority,
                }),
            };
            out.clear();
            let counted = allocation_counter::measure(|| built.on_event(event, &mut out));
            assert_eq!(counted.count_total, 0, "{}: {event:?}", policy.name);
            switches += out.len();
        }
        assert!(
            switches > 5_000,
            "{}: too few events had an effect",
            policy.name
        );
    }
}
