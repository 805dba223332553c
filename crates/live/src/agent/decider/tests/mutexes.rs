//! Tasks that lose their reservation, or whose reports are lost, while they hold a mutex, wait for one, or request one.

use rustix::thread::Pid;
use shiftwork_model::{
    Affinity, CpuId, OnOverrun, Phase, Priority, Protocol, Resource, ResourceId, Span, Task,
    TaskId, TaskSet, Work,
};
use shiftwork_policy::registry;

use super::super::Decider;
use crate::Plan;
use crate::agent::{Slot, TaskSnapshot};
use crate::event::{Event, Kind, UnlockValue};
use crate::machine::{Excess, Parameters};

const MUTEX: ResourceId = ResourceId::from_index(0);

fn id(index: usize) -> TaskId {
    TaskId::from_index(index)
}

/// Three tasks, each more urgent than those before it, that share a CPU and a mutex.
fn set(protocol: Protocol) -> TaskSet {
    let cpu = Affinity::pinned(CpuId::from_index(0));
    let task = |number: u32| {
        let mut task = Task::periodic("t", Span::from_ms(1), Span::from_ms(100), cpu);
        task.priority = Priority::new(4 - number);
        let run = Phase::Run(Span::from_us(1));
        task.work = Work::Phases(vec![run, Phase::Lock(MUTEX), run, Phase::Unlock(MUTEX)]);
        task
    };
    let mut set = TaskSet::new("s", 1, vec![task(1), task(2), task(3)]);
    set.resources = vec![Resource {
        name: "r".into(),
        protocol,
    }];
    set
}

struct Agent {
    decider: Decider,
    now_ns: u64,
}

impl Agent {
    fn new(set: &TaskSet) -> Self {
        let entry = registry::find("p-fp").unwrap();
        let plan = Plan {
            set,
            traits: entry.traits,
            bound: set.tasks.iter().map(|task| task.affinity).collect(),
            cpus: vec![CpuId::from_index(0)],
        };
        let policy = entry.build(set).unwrap();
        Self {
            decider: Decider::new(&plan, policy, 0, Span::from_s(1)),
            now_ns: 0,
        }
    }

    /// Admits the task, whose first job is released.
    fn admit(&mut self, set: &TaskSet, task: usize) {
        self.now_ns += 10;
        let of = Parameters {
            thread: Pid::from_raw(1).unwrap(),
            cpus: *set.tasks[task].affinity.cpus(),
            cost: Span::from_ms(1),
            period: Span::from_ms(100),
            deadline: Span::from_ms(100),
            on_overrun: OnOverrun::Continue,
            excess: Excess::in_run(OnOverrun::Continue, false),
            priority: set.priorities()[task],
            follows: true,
            start: None,
        };
        let admitted = self.decider.admit(self.now_ns, id(task), &of, true);
        admitted.unwrap();
        self.decider.first_job(self.now_ns, id(task), self.now_ns);
    }

    /// The report, and what is decided after it: the task on the CPU if that changes, and the answers.
    fn report(
        &mut self,
        kind: Kind,
        task: usize,
        value: u64,
    ) -> (Option<Option<TaskId>>, Vec<TaskId>) {
        self.now_ns += 10;
        self.decider.report(Event {
            at: self.now_ns,
            value,
            task: task as u32 + 1,
            cpu: None,
            kind,
        });
        self.decide()
    }

    fn decide(&mut self) -> (Option<Option<TaskId>>, Vec<TaskId>) {
        let mut slots: Vec<Slot> = Vec::new();
        for _ in 0..2 {
            self.decider.advance(self.now_ns);
            self.decider.take_slots(&mut slots);
        }
        let answered = self.decider.answered.drain(..).collect();
        (slots.last().map(|slot| slot.task), answered)
    }
}

const LOCK: (Kind, u64) = (Kind::LockRequested, 1);

fn unlock() -> u64 {
    UnlockValue::new(&[MUTEX], false).word()
}

#[test]
fn demoted_holder_keeps_its_mutex_until_it_unlocks_it() {
    for protocol in [Protocol::None, Protocol::Inheritance, Protocol::Spin] {
        let set = set(protocol);
        let mut agent = Agent::new(&set);
        agent.admit(&set, 0);
        assert_eq!(agent.decide(), (Some(Some(id(0))), vec![]));
        assert_eq!(agent.report(LOCK.0, 0, LOCK.1), (None, vec![id(0)]));
        assert_eq!(agent.report(Kind::Demoted, 0, 2), (None, vec![]));
        agent.admit(&set, 1);
        assert_eq!(agent.decide(), (Some(Some(id(1))), vec![]));
        let (_, answered) = agent.report(LOCK.0, 1, LOCK.1);
        assert_eq!(answered, [], "{protocol:?}");
        let (_, answered) = agent.report(Kind::UnlockRequested, 0, unlock());
        assert_eq!(answered, [id(1), id(0)], "{protocol:?}");
    }
}

#[test]
fn demoted_task_gets_the_mutex_that_it_has_requested() {
    for protocol in [Protocol::None, Protocol::NonPreemptive, Protocol::Spin] {
        let set = set(protocol);
        let mut agent = Agent::new(&set);
        agent.admit(&set, 0);
        agent.decide();
        // It has lost its CPU before its request is read, and makes it as ordinary work.
        agent.admit(&set, 1);
        assert_eq!(agent.decide(), (Some(Some(id(1))), vec![]));
        assert_eq!(agent.report(LOCK.0, 0, LOCK.1), (None, vec![]));
        assert_eq!(agent.report(Kind::Demoted, 0, 2), (None, vec![id(0)]));
        assert_eq!(agent.report(Kind::UnlockRequested, 0, unlock()).1, [id(0)]);
        // One that waits gets it when it passes to it.
        assert_eq!(agent.report(LOCK.0, 1, LOCK.1), (None, vec![id(1)]));
        assert_eq!(agent.report(LOCK.0, 0, LOCK.1), (None, vec![]));
        let (_, answered) = agent.report(Kind::UnlockRequested, 1, unlock());
        assert_eq!(answered, [id(0), id(1)], "{protocol:?}");
    }
}

#[test]
fn demoted_thread_that_waits_lends_nothing_and_comes_last() {
    let set = set(Protocol::Inheritance);
    let mut agent = Agent::new(&set);
    agent.admit(&set, 0);
    agent.decide();
    assert_eq!(agent.report(LOCK.0, 0, LOCK.1).1, [id(0)]);
    agent.admit(&set, 2);
    assert_eq!(agent.decide().0, Some(Some(id(2))));
    assert_eq!(agent.report(LOCK.0, 2, LOCK.1).0, Some(Some(id(0))));
    agent.admit(&set, 1);
    assert_eq!(agent.decide().0, None);
    assert_eq!(agent.report(Kind::Demoted, 2, 2).0, Some(Some(id(1))));
    assert_eq!(agent.report(LOCK.0, 1, LOCK.1).0, Some(Some(id(0))));
    let (slot, answered) = agent.report(Kind::UnlockRequested, 0, unlock());
    assert_eq!((slot, answered), (Some(Some(id(1))), vec![id(1), id(0)]));
    let (_, answered) = agent.report(Kind::UnlockRequested, 1, unlock());
    assert_eq!(answered, [id(2), id(1)]);
}

/// Its thread would lose the CPU before it ends the job.
#[test]
fn mutex_that_a_job_unlocks_at_its_end_passes_on_with_the_end() {
    for is_demoted in [false, true] {
        let set = set(Protocol::Inheritance);
        let mut agent = Agent::new(&set);
        agent.admit(&set, 0);
        agent.decide();
        agent.report(LOCK.0, 0, LOCK.1);
        agent.admit(&set, 1);
        agent.decide();
        assert_eq!(agent.report(LOCK.0, 1, LOCK.1).0, Some(Some(id(0))));
        let last = UnlockValue::new(&[MUTEX], true).word();
        let unlocked = agent.report(Kind::UnlockRequested, 0, last);
        assert_eq!(unlocked, (None, vec![]));
        let ended = match is_demoted {
            false => agent.report(Kind::NextJob, 0, 1_000_000),
            true => agent.report(Kind::Demoted, 0, 2),
        };
        assert_eq!(ended, (Some(Some(id(1))), vec![id(1)]), "{is_demoted}");
    }
}

#[test]
fn stopped_thread_to_which_a_mutex_passes_gets_no_cpu() {
    for protocol in [Protocol::None, Protocol::NonPreemptive] {
        let set = set(protocol);
        let mut agent = Agent::new(&set);
        agent.admit(&set, 1);
        agent.decide();
        assert_eq!(agent.report(LOCK.0, 1, LOCK.1).1, [id(1)]);
        // It suspends itself within the section, and the other one runs and waits.
        assert_eq!(agent.report(Kind::Blocked, 1, 0).0, None);
        agent.admit(&set, 0);
        assert_eq!(agent.decide().0, Some(Some(id(0))));
        assert_eq!(agent.report(LOCK.0, 0, LOCK.1).0, Some(None));
        agent.report(Kind::Blocked, 0, 0);
        assert_eq!(agent.report(Kind::Woken, 1, 0).0, Some(Some(id(1))));
        agent.report(Kind::UnlockRequested, 1, unlock());
        assert_eq!(agent.report(Kind::NextJob, 1, 1_000_000).0, None);
        assert_eq!(agent.report(Kind::Woken, 0, 0).0, Some(Some(id(0))));
    }
}

/// At the end of a run it goes on without the mutex, and may request another one.
#[test]
fn request_of_a_thread_that_waits_counts_once() {
    let set = set(Protocol::None);
    let mut agent = Agent::new(&set);
    agent.admit(&set, 0);
    agent.decide();
    agent.report(Kind::Demoted, 0, 2);
    agent.admit(&set, 1);
    agent.decide();
    assert_eq!(agent.report(LOCK.0, 1, LOCK.1).1, [id(1)]);
    assert_eq!(agent.report(LOCK.0, 0, LOCK.1).1, []);
    assert_eq!(agent.report(LOCK.0, 0, LOCK.1).1, []);
    let (_, answered) = agent.report(Kind::UnlockRequested, 1, unlock());
    assert_eq!(answered, [id(0), id(1)]);
    assert_eq!(agent.report(Kind::UnlockRequested, 0, unlock()).1, [id(0)]);
    assert_eq!(agent.report(LOCK.0, 1, LOCK.1).1, [id(1)]);
}

#[test]
fn mutex_of_a_thread_that_has_ended_passes_on() {
    let protocols = [Protocol::None, Protocol::Ceiling, Protocol::Spin];
    let cases = protocols.map(|protocol| [(protocol, false), (protocol, true)]);
    for (protocol, is_demoted) in cases.into_iter().flatten() {
        let set = set(protocol);
        let mut agent = Agent::new(&set);
        agent.admit(&set, 0);
        agent.decide();
        agent.report(LOCK.0, 0, LOCK.1);
        if is_demoted {
            agent.report(Kind::Demoted, 0, 2);
        }
        agent.report(Kind::Left, 0, 0);
        agent.admit(&set, 1);
        agent.decide();
        let (_, answered) = agent.report(LOCK.0, 1, LOCK.1);
        assert_eq!(answered, [id(1)], "{protocol:?}, {is_demoted}");
    }
}

/// The report that the job has ended is lost, and that it unlocked its mutex comes after the snapshot that shows the end.
#[test]
fn job_whose_end_only_a_snapshot_shows_has_unlocked_its_mutex() {
    let set = set(Protocol::Inheritance);
    let mut agent = Agent::new(&set);
    agent.admit(&set, 0);
    agent.decide();
    agent.report(LOCK.0, 0, LOCK.1);
    agent.now_ns += 10;
    let ended_ns = agent.now_ns;
    let snapshot = TaskSnapshot {
        at_ns: ended_ns + 10,
        stops: 1,
        finished: 1,
        awake: true,
        present: true,
        release_ns: ended_ns + 5,
        ..TaskSnapshot::default()
    };
    agent.decider.resync_task(id(0), &snapshot);
    agent.now_ns += 20;
    // Its next job requests the mutex again.
    assert_eq!(agent.decide(), (Some(Some(id(0))), vec![]));
    let late = UnlockValue::new(&[MUTEX], true).word();
    assert_eq!(agent.report(Kind::UnlockRequested, 0, late).1, []);
    assert_eq!(agent.report(LOCK.0, 0, LOCK.1).1, [id(0)]);
    // Its deadline is that of its own, and another one may raise it.
    agent.admit(&set, 1);
    agent.decide();
    assert_eq!(agent.report(LOCK.0, 1, LOCK.1).0, Some(Some(id(0))));
    assert_eq!(
        agent.report(Kind::UnlockRequested, 0, unlock()).0,
        Some(Some(id(1)))
    );
}

#[test]
fn mutex_of_a_demoted_thread_passes_on_when_only_a_snapshot_shows_its_end() {
    let set = set(Protocol::None);
    let mut agent = Agent::new(&set);
    agent.admit(&set, 0);
    agent.decide();
    agent.report(LOCK.0, 0, LOCK.1);
    agent.report(Kind::Demoted, 0, 2);
    agent.now_ns += 10;
    let snapshot = TaskSnapshot {
        at_ns: agent.now_ns,
        ..TaskSnapshot::default()
    };
    agent.decider.resync_task(id(0), &snapshot);
    agent.admit(&set, 1);
    agent.decide();
    assert_eq!(agent.report(LOCK.0, 1, LOCK.1).1, [id(1)]);
}

/// It requests a mutex when it has the CPU again, and a release takes that from it before the agent comes to that.
#[test]
fn job_that_has_lost_its_cpu_again_requests_nothing() {
    let set = set(Protocol::None);
    let mut agent = Agent::new(&set);
    agent.admit(&set, 0);
    agent.decide();
    agent.admit(&set, 1);
    agent.decide();
    assert_eq!(agent.report(LOCK.0, 0, LOCK.1), (None, vec![]));
    agent.now_ns += 10;
    let release_ns = agent.now_ns + 15;
    agent.decider.report(Event {
        at: agent.now_ns,
        value: release_ns,
        task: 2,
        cpu: None,
        kind: Kind::NextJob,
    });
    let mut slots: Vec<Slot> = Vec::new();
    for now_ns in [agent.now_ns, release_ns + 5] {
        agent.decider.advance(now_ns);
        agent.decider.take_slots(&mut slots);
    }
    let tasks: Vec<Option<TaskId>> = slots.iter().map(|slot| slot.task).collect();
    assert_eq!(tasks, [Some(id(0)), Some(id(1))]);
    assert_eq!(agent.decider.answered, []);
    agent.now_ns = release_ns + 5;
    assert_eq!(agent.report(LOCK.0, 1, LOCK.1).1, [id(1)]);
}
