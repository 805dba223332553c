//! The table compared with the definition: no set of CPUs is over-committed, no task is lost, and a refused reservation
//! would not have fitted.

mod churn;
mod conservation;
mod quotas;
mod steps;

use std::collections::BTreeMap;

use shiftwork_model::{OnOverrun, Priority, Share, Span};
use shiftwork_policy::registry;

use super::*;
use crate::quotas::{Amount, Quota};

/// Carries out every request, and knows which threads are alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FakeBackend {
    pub(crate) served: BTreeMap<TaskId, (Thread, Reservation)>,
    /// Threads that requested another affinity, and keep their numbers until they are served again.
    demoted: BTreeMap<TaskId, Thread>,
    /// Threads that have ended, which the table does not know yet.
    pub(crate) ended: Vec<u32>,
    /// CPUs to which no thread can be bound for now.
    offline: Option<CpuSet>,
}

impl FakeBackend {
    fn find(&self, thread: &Thread) -> Result<(), Denial> {
        match self.ended.contains(&thread.thread) {
            true => Err(Denial::Missing(format!("no thread {}", thread.thread))),
            false => Ok(()),
        }
    }

    /// The thread that has this number.
    pub(crate) fn number(&self, task: TaskId) -> Option<&Thread> {
        let served = self.served.get(&task).map(|(thread, _)| thread);
        self.demoted.get(&task).or(served)
    }

    /// The task's thread requests another affinity, by which it stops being served.
    pub(crate) fn request_affinity(&mut self, task: TaskId) {
        if let Some((thread, _)) = self.served.remove(&task) {
            self.demoted.insert(task, thread);
        }
    }

    /// The task's thread ends.
    pub(crate) fn end_thread(&mut self, task: TaskId) {
        self.served.remove(&task);
        self.demoted.remove(&task);
    }
}

impl SchedulerBackend for FakeBackend {
    fn admit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial> {
        self.find(thread)?;
        assert_eq!(self.number(task), None);
        self.readmit(task, thread, reservation)
    }

    fn readmit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial> {
        self.find(thread)?;
        let number = self.number(task);
        assert!(
            number.is_none_or(|it| it == thread),
            "{task:?} is still {number:?}"
        );
        if self
            .offline
            .is_some_and(|cpus| reservation.cpus.is_subset(&cpus))
        {
            return Err(Denial::Refused("no such CPU is online".to_owned()));
        }
        self.demoted.remove(&task);
        let reserved = self.served.entry(task);
        reserved.or_insert_with(|| (thread.clone(), reservation.clone()));
        Ok(())
    }

    fn change(
        &mut self,
        task: TaskId,
        thread: &Thread,
        from: &Reservation,
        to: &Reservation,
    ) -> Result<(), Denial> {
        self.find(thread)?;
        let before = self.served.insert(task, (thread.clone(), to.clone()));
        assert_eq!(before, Some((thread.clone(), from.clone())));
        Ok(())
    }

    fn dismiss(&mut self, task: TaskId) {
        self.end_thread(task);
    }
}

pub(crate) fn table(policy: &str, cpus: usize) -> ReservationTable {
    let amount = Amount {
        tasks: 64,
        share_ppm: 64_000_000,
    };
    let generous = Quota {
        held: amount,
        released: amount,
    };
    table_with(policy, cpus, generous)
}

fn table_with(policy: &str, cpus: usize, quota: Quota) -> ReservationTable {
    let reserve = Share::from_billionths(50_000_000).unwrap();
    ReservationTable::new(Rules {
        cpus: CpuSet::first(cpus),
        terms: Terms::new(&registry::find(policy).unwrap().traits, reserve).unwrap(),
        guarantee: Guarantee::BoundedTardiness,
        quotas: Quotas {
            user: quota,
            cgroup: quota,
        },
        tasks_max: 40,
    })
}

pub(crate) fn reservation(cost_ms: u64, period_ms: u64, cpus: &str) -> Reservation {
    Reservation {
        cost: Span::from_ms(cost_ms),
        period: Span::from_ms(period_ms),
        deadline: Span::from_ms(period_ms),
        cpus: cpus.parse().unwrap(),
        priority: Priority::MOST_URGENT,
        on_overrun: OnOverrun::Throttle,
    }
}

pub(crate) fn owner() -> Owner {
    Owner {
        user: 1_000,
        group: Some(1_000),
        account: 1_000,
        cgroup: "/".to_owned(),
    }
}

pub(crate) fn thread(number: u32) -> Thread {
    Thread {
        process: number,
        thread: number,
        started: u64::from(number) * 7,
    }
}

fn admit(
    table: &mut ReservationTable,
    backend: &mut FakeBackend,
    number: u32,
    it: Reservation,
) -> Result<(TaskId, Guarantee), Denial> {
    table.admit(owner(), thread(number), "t", it, backend)
}

#[test]
fn reservation_beyond_capacity_is_refused_with_sum() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    for number in 0..2 {
        admit(&mut table, &mut backend, number, reservation(9, 10, "0-1")).unwrap();
    }
    let refusal = admit(&mut table, &mut backend, 2, reservation(2, 10, "0")).unwrap_err();
    let Denial::Refused(reason) = refusal else {
        panic!("{refusal:?}")
    };
    assert!(
        reason.contains("need 2.00 CPUs there, of which there are 1.90"),
        "{reason}"
    );
    assert_eq!(backend.served.len(), 2);
}

#[test]
fn released_bandwidth_is_available_after_one_period() {
    let (mut table, mut backend) = (table("strong-edf", 1), FakeBackend::default());
    let most = reservation(90, 100, "0");
    let (task, _) = admit(&mut table, &mut backend, 1, most.clone()).unwrap();
    table.dismiss(task, &mut backend).unwrap();
    assert!(backend.served.is_empty());
    let at = |ms: u64| Instant::ZERO + Span::from_ms(ms);
    table.advance(at(99), &mut backend);
    assert!(admit(&mut table, &mut backend, 2, most.clone()).is_err());
    table.advance(at(100), &mut backend);
    let (next, _) = admit(&mut table, &mut backend, 2, most).unwrap();
    assert_ne!(next, task, "its number is not reused yet");
}

#[test]
fn invalid_parameter_is_refused_by_name() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let some = reservation(1, 10, "0");
    let of = |change: &dyn Fn(&mut Reservation)| {
        let mut it = some.clone();
        change(&mut it);
        it
    };
    let cases = [
        (of(&|it| it.cost = Span::ZERO), "cost"),
        (of(&|it| it.cost = Span::from_ms(11)), "cost"),
        (of(&|it| it.deadline = Span::from_ms(11)), "deadline"),
        (of(&|it| it.period = Span::from_us(99)), "period"),
        (of(&|it| it.period = Span::from_s(11)), "period"),
        (of(&|it| it.cpus = CpuSet::EMPTY), "cpus"),
        (of(&|it| it.cpus = CpuSet::first(3)), "cpus"),
    ];
    for (it, wrong) in cases {
        match admit(&mut table, &mut backend, 1, it.clone()) {
            Err(Denial::Invalid { parameter, .. }) => assert_eq!(parameter, wrong, "{it:?}"),
            other => panic!("{it:?}: {other:?}"),
        }
    }
    assert_eq!(table.tasks().count(), 0);
}

#[test]
fn refused_change_has_no_effect() {
    let (mut table, mut backend) = (table("strong-edf", 1), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "0")).unwrap();
    admit(&mut table, &mut backend, 2, reservation(4, 10, "0")).unwrap();
    let before = backend.clone();
    assert!(
        table
            .change(task, reservation(6, 10, "0"), &mut backend)
            .is_err()
    );
    assert_eq!(backend, before);
    backend.ended.push(1);
    assert!(
        table
            .change(task, reservation(1, 10, "0"), &mut backend)
            .is_err()
    );
    assert_eq!(
        table.task(task).unwrap().reservation,
        reservation(5, 10, "0")
    );
    backend.ended.clear();
    table
        .change(task, reservation(1, 10, "0"), &mut backend)
        .unwrap();
    assert_eq!(backend.served[&task].1, reservation(1, 10, "0"));
}

#[test]
fn second_reservation_of_thread_is_refused() {
    let (mut table, mut backend) = (table("strong-edf", 1), FakeBackend::default());
    admit(&mut table, &mut backend, 1, reservation(1, 10, "0")).unwrap();
    let twice = admit(&mut table, &mut backend, 1, reservation(1, 10, "0")).unwrap_err();
    assert!(
        twice
            .to_string()
            .contains("has a reservation already, as task 0"),
        "{twice}"
    );
}

#[test]
fn admission_of_ended_thread_uses_no_bandwidth() {
    let (mut table, mut backend) = (table("strong-edf", 1), FakeBackend::default());
    backend.ended.push(1);
    let refused = admit(&mut table, &mut backend, 1, reservation(9, 10, "0")).unwrap_err();
    assert_eq!(refused, Denial::Missing("no thread 1".to_owned()));
    admit(&mut table, &mut backend, 2, reservation(9, 10, "0")).unwrap();
}

#[test]
fn hierarchical_policy_refuses_affinity_that_does_not_nest() {
    let (mut table, mut backend) = (table("hpa-edf", 3), FakeBackend::default());
    admit(&mut table, &mut backend, 1, reservation(1, 10, "0-1")).unwrap();
    let crossing = admit(&mut table, &mut backend, 2, reservation(1, 10, "1-2")).unwrap_err();
    assert!(
        crossing.to_string().contains("without nesting"),
        "{crossing}"
    );
    admit(&mut table, &mut backend, 2, reservation(1, 10, "2")).unwrap();
}

#[test]
fn offline_cpu_suspends_last_admitted_task_until_online() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (first, _) = admit(&mut table, &mut backend, 1, reservation(9, 10, "0-1")).unwrap();
    let (last, _) = admit(&mut table, &mut backend, 2, reservation(9, 10, "0-1")).unwrap();
    let cpu = shiftwork_model::CpuId::from_index(1);
    let notices = table.cpu_offline(Instant::ZERO, cpu, &mut backend);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].task, last);
    assert!(
        notices[0]
            .what
            .starts_with("lost its reservation: CPU 1 is gone")
    );
    assert!(backend.served.contains_key(&first) && !backend.served.contains_key(&last));
    let notices = table.cpu_online(Instant::ZERO, cpu, &mut backend);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(backend.served.contains_key(&last));
}

#[test]
fn reservation_is_kept_when_cpu_goes_offline_before_thread_is_bound() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "1")).unwrap();
    let cpu = shiftwork_model::CpuId::from_index(1);
    table.cpu_offline(Instant::ZERO, cpu, &mut backend);
    // When the table learns that the CPU is online it is already offline again.
    backend.offline = Some("1".parse().unwrap());
    let notices = table.cpu_online(Instant::ZERO, cpu, &mut backend);
    assert!(
        notices[0]
            .what
            .starts_with("keeps its reservation, which is not in effect for now"),
        "{notices:?}"
    );
    assert!(!table.task(task).unwrap().is_served && table.guarantee(task).is_none());
    assert_eq!(table.retry(&mut backend), [], "nothing has changed");
    // Another thread does not get what it keeps.
    admit(&mut table, &mut backend, 2, reservation(5, 10, "1")).unwrap_err();
    backend.offline = None;
    let notices = table.retry(&mut backend);
    assert_eq!(notices[0].what, "has its reservation again");
    assert!(backend.served.contains_key(&task) && table.task(task).unwrap().is_served);
    assert_eq!(table.retry(&mut backend), [], "it is served");
}

#[test]
fn thread_that_ends_while_waiting_is_removed() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "1")).unwrap();
    let cpu = shiftwork_model::CpuId::from_index(1);
    table.cpu_offline(Instant::ZERO, cpu, &mut backend);
    backend.offline = Some("1".parse().unwrap());
    table.cpu_online(Instant::ZERO, cpu, &mut backend);
    backend.ended.push(1);
    let notices = table.retry(&mut backend);
    assert!(notices[0].what.starts_with("removed: "), "{notices:?}");
    assert!(table.task(task).is_none());
}

#[test]
fn requested_affinity_is_served_if_admitted() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "0")).unwrap();
    admit(&mut table, &mut backend, 2, reservation(9, 10, "1")).unwrap();
    let both: CpuSet = "0-1".parse().unwrap();
    backend.request_affinity(task);
    let notice = table.request_affinity(task, both, &mut backend).unwrap();
    assert_eq!(notice.what, "has its reservation again");
    assert_eq!(backend.served[&task].1.cpus, both);
    // The event of the backend's own change of affinity follows.
    assert_eq!(table.request_affinity(task, both, &mut backend), None);
    assert!(table.task(task).unwrap().is_served);
    backend.request_affinity(task);
    let notice = table
        .request_affinity(task, "1".parse().unwrap(), &mut backend)
        .unwrap();
    assert!(
        notice
            .what
            .starts_with("asked for CPUs 1 and lost its reservation: "),
        "{notice:?}"
    );
    assert!(!table.task(task).unwrap().is_served);
    let notice = table
        .request_affinity(task, "7".parse().unwrap(), &mut backend)
        .unwrap();
    assert!(
        notice.what.ends_with("the daemon schedules CPUs 0,1"),
        "{notice:?}"
    );
    let notice = table.request_affinity(task, "0".parse().unwrap(), &mut backend);
    // Its former bandwidth on both CPUs counts for some time.
    table.advance(Instant::ZERO + Span::from_s(1), &mut backend);
    assert!(table.task(task).unwrap().is_served, "{notice:?}");
}

#[test]
fn dismissed_waiting_task_releases_its_number() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "0")).unwrap();
    backend.request_affinity(task);
    table.request_affinity(task, "7".parse().unwrap(), &mut backend);
    table.dismiss(task, &mut backend).unwrap();
    table.advance(Instant::ZERO + Span::from_s(1), &mut backend);
    let next = admit(&mut table, &mut backend, 2, reservation(5, 10, "0"));
    assert_eq!(next.unwrap().0, task);
}

/// Each test of a window compares a task with all others, so that few tasks are as much work as many are by utilization alone.
#[test]
fn capacity_question_of_hard_guarantee_is_larger_by_number_of_tasks() {
    let (mut table, mut backend) = (table("strong-edf", 4), FakeBackend::default());
    for (number, cpus) in (0..).zip(["0", "1", "2", "0-3"]) {
        admit(&mut table, &mut backend, number, reservation(1, 10, cpus)).unwrap();
    }
    let size = table.capacity_question().size();
    table.rules.guarantee = Guarantee::Hard;
    assert_eq!((size, table.capacity_question().size()), (16, 64));
}

/// The definition of a capacity: what is admitted there.
#[test]
fn capacity_is_largest_reservation_that_is_admitted() {
    let (mut table, mut backend) = (table("strong-edf", 4), FakeBackend::default());
    for (number, (cost, cpus)) in [(3, "0"), (5, "0-1"), (7, "2"), (1, "0-3")]
        .into_iter()
        .enumerate()
    {
        admit(
            &mut table,
            &mut backend,
            number as u32,
            reservation(cost, 10, cpus),
        )
        .unwrap();
    }
    let capacities = table.capacity_question().answer();
    let sets: Vec<String> = capacities.iter().map(|it| it.cpus.to_string()).collect();
    assert_eq!(sets, ["0", "0,1", "0-3", "2"]);
    let reserved: Vec<f64> = capacities.iter().map(|it| it.reserved).collect();
    assert_eq!(reserved, [0.3, 0.8, 1.6, 0.7]);
    for it in capacities {
        let version = table.version();
        let with = |share: f64| Reservation {
            cost: Span::from_ns((share * 1e8) as u64),
            ..reservation(1, 100, &it.cpus.to_string())
        };
        let more = admit(&mut table, &mut backend, 9, with(it.free + 0.001));
        assert!(it.free > 0.999 || more.is_err(), "{it:?}");
        let (task, _) = admit(&mut table, &mut backend, 9, with(it.free)).unwrap();
        table.dismiss(task, &mut backend).unwrap();
        let later = table.now + Span::from_s(1);
        table.advance(later, &mut backend);
        assert!(table.version() > version);
    }
}
