//! The daemon with a scheduler and threads that exist only in the test.

mod affinity_requests;
mod apply;
mod audit;
mod conservation;
mod failures;
mod permissions;
mod visibility;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

use shiftwork_client::{
    Admit, Answer, Call, Change as ChangeCall, Dismiss, Error, GetStatus,
    Reservation as ClientReservation, Status,
};
use shiftwork_live::standing::Observed;
use shiftwork_live::{LiveError, PeerCredentials};
use shiftwork_model::{CpuSet, Instant, Record, RecordKind, Share, Span, TaskId};

use super::{Daemon, Machine, PollOutcome};
use crate::backend::{Scheduler, SchedulerBackend};
use crate::config::Config;
use crate::files::Files;
use crate::files::tests::FaultyDisk;
use crate::reservation::{Credentials, Denial, Reservation, Thread};
use crate::reservation_table::tests::FakeBackend;
use crate::socket::{Peer, Service as _};
use crate::state::StateFile;
use crate::threads::{ThreadDirectory, ThreadInfo};

/// A scheduler that carries out every request.
struct FakeScheduler {
    world: Rc<RefCell<World>>,
    /// Never readable for `poll(2)` with events.
    events: File,
}

/// What exists outside of the daemon.
#[derive(Default)]
struct World {
    now: Instant,
    backend: FakeBackend,
    observed: Vec<TaskId>,
    records: Vec<Record>,
    /// How many attempts to read records fail.
    unreadable: u32,
    events_lost: u64,
    /// The CPUs that are online; empty: all four.
    online: CpuSet,
    threads: BTreeMap<u32, ThreadInfo>,
}

impl World {
    /// Binds the thread to its CPUs, if it is served so.
    fn bound(
        &mut self,
        of: &Thread,
        to: &Reservation,
        served: Result<(), Denial>,
    ) -> Result<(), Denial> {
        if served.is_ok()
            && let Some(thread) = self.threads.get_mut(&of.thread)
        {
            thread.cpus = to.cpus;
        }
        served
    }
}

impl SchedulerBackend for FakeScheduler {
    fn admit(&mut self, task: TaskId, thread: &Thread, it: &Reservation) -> Result<(), Denial> {
        let mut world = self.world.borrow_mut();
        let admitted = world.backend.admit(task, thread, it);
        world.bound(thread, it, admitted)
    }

    fn readmit(&mut self, task: TaskId, thread: &Thread, it: &Reservation) -> Result<(), Denial> {
        let mut world = self.world.borrow_mut();
        let admitted = world.backend.readmit(task, thread, it);
        world.bound(thread, it, admitted)
    }

    fn change(
        &mut self,
        task: TaskId,
        thread: &Thread,
        from: &Reservation,
        to: &Reservation,
    ) -> Result<(), Denial> {
        let mut world = self.world.borrow_mut();
        let changed = world.backend.change(task, thread, from, to);
        world.bound(thread, to, changed)
    }

    fn dismiss(&mut self, task: TaskId) {
        let mut world = self.world.borrow_mut();
        if world.backend.number(task).is_some() {
            let at = world.now;
            let kind = RecordKind::Left { task };
            world.records.push(Record { at, kind });
        }
        world.backend.dismiss(task);
    }
}

impl Scheduler for FakeScheduler {
    fn observe(&mut self, task: TaskId, _: &Thread) -> Result<(), Denial> {
        self.world.borrow_mut().observed.push(task);
        Ok(())
    }

    fn stop_observing(&mut self, task: TaskId) {
        self.world.borrow_mut().observed.retain(|it| *it != task);
    }

    fn bind_self(&self, _: &CpuSet) -> Result<(), LiveError> {
        Ok(())
    }

    fn set_reserve(&mut self, _: Share) {}

    fn send_overrun_signal(&self, _: &Thread) {}

    fn take_records(&mut self, events: usize) -> Result<Vec<Record>, LiveError> {
        let mut world = self.world.borrow_mut();
        if let Some(less) = world.unreadable.checked_sub(1) {
            world.unreadable = less;
            return Err(LiveError::System {
                doing: "read events".to_owned(),
                error: rustix::io::Errno::NOMEM.into(),
            });
        }
        let count = world.records.len().min(events);
        Ok(world.records.drain(..count).collect())
    }

    fn has_more_records(&self) -> bool {
        !self.world.borrow().records.is_empty()
    }

    fn take_observed(&mut self) -> Vec<Observed> {
        Vec::new()
    }

    fn online(&self) -> Option<CpuSet> {
        let online = self.world.borrow().online;
        Some(if online.is_empty() {
            CpuSet::first(4)
        } else {
            online
        })
    }

    fn loans_made(&self) -> u64 {
        7
    }

    fn events_lost(&self) -> u64 {
        self.world.borrow().events_lost
    }

    fn unloaded(&mut self) -> Option<String> {
        None
    }

    fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

struct FakeThreads(Rc<RefCell<World>>);

impl ThreadDirectory for FakeThreads {
    fn look_up(&self, number: u32) -> Result<ThreadInfo, Denial> {
        let world = self.0.borrow();
        let found = world.threads.get(&number).cloned();
        found.ok_or_else(|| Denial::Missing(format!("thread {number}")))
    }

    fn credentials(&self, thread: &Thread) -> Option<Credentials> {
        let found = self.look_up(thread.thread).ok()?;
        (found.thread == *thread).then_some(found.credentials)
    }

    fn is_alive(&self, thread: &Thread) -> bool {
        self.credentials(thread).is_some()
    }
}

/// A daemon, its machine, and its clock.
struct TestDaemon {
    daemon: Daemon,
    world: Rc<RefCell<World>>,
    now: Instant,
    folder: tempfile::TempDir,
    disk: Arc<FaultyDisk>,
}

impl TestDaemon {
    /// A daemon with this configuration for the CPUs 0 to 3.
    fn start(config: &str) -> Self {
        let world = Rc::new(RefCell::new(World::default()));
        let folder = tempfile::tempdir().unwrap();
        let now = Instant::ZERO + Span::from_s(1);
        let disk = Arc::new(FaultyDisk::default());
        let (daemon, _) = start(&world, &folder, &disk, config, now);
        Self {
            daemon,
            disk,
            world,
            now,
            folder,
        }
    }

    /// A thread of this user, which is a process of its own.
    fn thread(&self, number: u32, user: u32) {
        let found = ThreadInfo {
            thread: crate::reservation_table::tests::thread(number),
            credentials: Credentials {
                user: Some(user),
                group: Some(user),
            },
            account: user,
            name: "program".to_owned(),
            cgroup: format!("/user.slice/user-{user}.slice/session-1.scope"),
            cpus: CpuSet::first(4),
            has_higher_class: false,
        };
        self.world.borrow_mut().threads.insert(number, found);
    }

    /// Changes what is known of a thread.
    fn alter(&self, number: u32, change: impl FnOnce(&mut ThreadInfo)) {
        change(self.world.borrow_mut().threads.get_mut(&number).unwrap());
    }

    fn call(&mut self, user: u32, call: Call) -> Result<Answer, Error> {
        let credentials = PeerCredentials {
            process: None,
            user,
            group: user,
        };
        self.daemon.call(&Peer::new(credentials, None), call)
    }

    /// Requests 2 ms in 10 ms on CPU 1 for the thread; returns the task.
    fn admit(&mut self, user: u32, thread: u32) -> Result<u32, Error> {
        self.admit_with(user, thread, reservation(2, 10))
    }

    fn admit_with(
        &mut self,
        user: u32,
        thread: u32,
        reservation: ClientReservation,
    ) -> Result<u32, Error> {
        let admit = Admit {
            name: format!("task of {user}"),
            thread: Some(thread),
            reservation,
        };
        match self.call(user, Call::Admit(admit))? {
            Answer::Admit(admitted) => Ok(admitted.task),
            other => panic!("{other:?}"),
        }
    }

    fn dismiss(&mut self, user: u32, task: u32) -> Result<(), Error> {
        self.call(user, Call::Dismiss(Dismiss { task })).map(drop)
    }

    fn change(
        &mut self,
        user: u32,
        task: u32,
        reservation: ClientReservation,
    ) -> Result<(), Error> {
        let change = ChangeCall { task, reservation };
        self.call(user, Call::Change(change)).map(drop)
    }

    fn status(&mut self, user: u32) -> Status {
        match self.call(user, Call::GetStatus(GetStatus {})).unwrap() {
            Answer::GetStatus(got) => got.status,
            other => panic!("{other:?}"),
        }
    }

    /// Starts another daemon in place of this one, which ends; returns what it says.
    fn restart(&mut self, config: &str) -> PollOutcome {
        self.world.borrow_mut().backend = FakeBackend::default();
        let (daemon, outcome) = start(&self.world, &self.folder, &self.disk, config, self.now);
        self.daemon = daemon;
        outcome
    }

    /// Waits until the state that is being written is there, or not; returns what is logged.
    fn finish_saving(&mut self) -> Option<String> {
        let result = self.daemon.writer.wait()?;
        self.daemon.handle_saved(result, self.now)
    }

    fn poll(&mut self) -> PollOutcome {
        self.world.borrow_mut().now = self.now;
        self.daemon.poll(self.now).unwrap()
    }

    /// The task's thread, of this number, ends.
    fn end_thread(&self, task: TaskId, thread: u32) {
        let mut world = self.world.borrow_mut();
        world.threads.remove(&thread);
        world.backend.end_thread(task);
        world.backend.ended.push(thread);
        let kind = RecordKind::Left { task };
        world.records.push(Record { at: self.now, kind });
    }

    /// Polls every 10 ms for this time; returns all that happened.
    fn advance(&mut self, ms: u64) -> PollOutcome {
        let mut all = PollOutcome::default();
        for _ in 0..ms.div_ceil(10) {
            self.now += Span::from_ms(10);
            let outcome = self.poll();
            all.notices.extend(outcome.notices);
            all.misses.extend(outcome.misses);
            all.warnings.extend(outcome.warnings);
            all.audit.extend(outcome.audit);
        }
        all
    }

    fn is_served(&self, task: u32) -> bool {
        let task = TaskId::from_index(task as usize);
        self.world.borrow().backend.served.contains_key(&task)
    }
}

fn start(
    world: &Rc<RefCell<World>>,
    folder: &tempfile::TempDir,
    disk: &Arc<FaultyDisk>,
    config: &str,
    now: Instant,
) -> (Daemon, PollOutcome) {
    let machine = Machine {
        scheduler: Box::new(FakeScheduler {
            world: Rc::clone(world),
            events: File::open("/dev/null").unwrap(),
        }),
        threads: Box::new(FakeThreads(Rc::clone(world))),
        online: CpuSet::first(4),
    };
    // Without a share of its own the thread of the test keeps its scheduling class.
    let config = Config::parse(&format!("own-share = 0\n{config}")).unwrap();
    let state = StateFile::at(folder.path().join("daemon.json")).unwrap();
    let state = state.on(Arc::clone(disk) as Arc<dyn Files>);
    Daemon::start_on(machine, config, state, now).unwrap()
}

fn reservation(cost_ms: u64, period_ms: u64) -> ClientReservation {
    ClientReservation {
        cpus: Some("1".to_owned()),
        ..ClientReservation::new(Span::from_ms(cost_ms), Span::from_ms(period_ms))
    }
}
