//! The table against the definition: no set of CPUs is promised more than it has, nobody is lost, and who is
//! refused would not have fitted.

mod churn;

use std::collections::BTreeMap;

use shiftwork_model::{OnOverrun, Priority, Share};

use super::*;
use crate::quotas::Quota;

/// Does what it is told, and knows who is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FakeBackend {
    served: BTreeMap<TaskId, (Thread, Reservation)>,
    /// Who asked for other CPUs, and has the number for when it is served again.
    demoted: BTreeMap<TaskId, Thread>,
    /// Threads that are gone, of which nobody has told yet.
    gone: Vec<u32>,
    /// The CPUs to which the kernel binds no thread for now.
    offline: Option<CpuSet>,
}

impl FakeBackend {
    fn find(&self, thread: &Thread) -> Result<(), Denial> {
        match self.gone.contains(&thread.thread) {
            true => Err(Denial::Missing(format!("no thread {}", thread.thread))),
            false => Ok(()),
        }
    }

    /// Whose number this is.
    fn number(&self, task: TaskId) -> Option<&Thread> {
        let served = self.served.get(&task).map(|(thread, _)| thread);
        self.demoted.get(&task).or(served)
    }

    /// The task's thread asks for other CPUs, and is not served for that.
    fn asks(&mut self, task: TaskId) {
        if let Some((thread, _)) = self.served.remove(&task) {
            self.demoted.insert(task, thread);
        }
    }

    /// The task's thread ends.
    fn ends(&mut self, task: TaskId) {
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
            "{task:?} is {number:?} still"
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
        self.ends(task);
    }
}

pub(super) fn table(policy: &str, cpus: usize) -> ReservationTable {
    let generous = Quota {
        tasks: 64,
        share_ppm: 64_000_000,
    };
    let reserve = Share::from_billionths(50_000_000).unwrap();
    ReservationTable::new(Rules {
        cpus: CpuSet::first(cpus),
        terms: Terms::of_policy(policy, reserve).unwrap(),
        guarantee: Guarantee::BoundedTardiness,
        quotas: Quotas {
            user: generous,
            cgroup: generous,
        },
        tasks_max: 40,
    })
}

pub(super) fn reservation(cost_ms: u64, period_ms: u64, cpus: &str) -> Reservation {
    Reservation {
        cost: Span::from_ms(cost_ms),
        period: Span::from_ms(period_ms),
        deadline: Span::from_ms(period_ms),
        cpus: cpus.parse().unwrap(),
        priority: Priority::MOST_URGENT,
        on_overrun: OnOverrun::Throttle,
    }
}

pub(super) fn owner() -> Owner {
    Owner {
        user: 1_000,
        cgroup: "/".to_owned(),
    }
}

pub(super) fn thread(number: u32) -> Thread {
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
fn whoever_fits_is_served_and_whoever_does_not_hears_the_sum() {
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
fn what_was_given_back_is_free_after_a_period() {
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
    assert_ne!(next, task, "its number rests");
}

#[test]
fn impossible_numbers_are_told_with_what_would_be_possible() {
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
fn a_change_that_is_refused_changes_nothing() {
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
    backend.gone.push(1);
    assert!(
        table
            .change(task, reservation(1, 10, "0"), &mut backend)
            .is_err()
    );
    assert_eq!(
        table.task(task).unwrap().reservation,
        reservation(5, 10, "0")
    );
    backend.gone.clear();
    table
        .change(task, reservation(1, 10, "0"), &mut backend)
        .unwrap();
    assert_eq!(backend.served[&task].1, reservation(1, 10, "0"));
}

#[test]
fn a_thread_has_one_reservation() {
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
fn a_thread_that_is_gone_leaves_nothing_behind() {
    let (mut table, mut backend) = (table("strong-edf", 1), FakeBackend::default());
    backend.gone.push(1);
    let refused = admit(&mut table, &mut backend, 1, reservation(9, 10, "0")).unwrap_err();
    assert_eq!(refused, Denial::Missing("no thread 1".to_owned()));
    admit(&mut table, &mut backend, 2, reservation(9, 10, "0")).unwrap();
}

#[test]
fn under_a_nested_policy_affinities_nest() {
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
fn a_cpu_that_goes_costs_who_came_last_and_gives_it_back() {
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
fn reservation_survives_cpu_that_goes_again_before_its_thread_is_bound() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "1")).unwrap();
    let cpu = shiftwork_model::CpuId::from_index(1);
    table.cpu_offline(Instant::ZERO, cpu, &mut backend);
    // The CPU is told to be back when it is gone again.
    backend.offline = Some("1".parse().unwrap());
    let notices = table.cpu_online(Instant::ZERO, cpu, &mut backend);
    assert!(
        notices[0]
            .what
            .starts_with("keeps its reservation and cannot be served for now"),
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
fn thread_that_ends_while_it_is_not_served_is_forgotten() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "1")).unwrap();
    let cpu = shiftwork_model::CpuId::from_index(1);
    table.cpu_offline(Instant::ZERO, cpu, &mut backend);
    backend.offline = Some("1".parse().unwrap());
    table.cpu_online(Instant::ZERO, cpu, &mut backend);
    backend.gone.push(1);
    let notices = table.retry(&mut backend);
    assert!(
        notices[0].what.starts_with("could not be served again"),
        "{notices:?}"
    );
    assert!(table.task(task).is_none());
}

#[test]
fn who_asks_the_kernel_for_other_cpus_has_them_if_they_have_room() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "0")).unwrap();
    admit(&mut table, &mut backend, 2, reservation(9, 10, "1")).unwrap();
    let both: CpuSet = "0-1".parse().unwrap();
    backend.asks(task);
    let notice = table.request_affinity(task, both, &mut backend).unwrap();
    assert_eq!(notice.what, "has its reservation again");
    assert_eq!(backend.served[&task].1.cpus, both);
    // That it was bound there is told as well.
    assert_eq!(table.request_affinity(task, both, &mut backend), None);
    assert!(table.task(task).unwrap().is_served);
    backend.asks(task);
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
        notice.what.ends_with("the agent has CPUs 0,1"),
        "{notice:?}"
    );
    let notice = table.request_affinity(task, "0".parse().unwrap(), &mut backend);
    // What it had on both CPUs counts for a while.
    table.advance(Instant::ZERO + Span::from_s(1), &mut backend);
    assert!(table.task(task).unwrap().is_served, "{notice:?}");
}

#[test]
fn who_has_asked_and_waits_gives_back_the_number_too() {
    let (mut table, mut backend) = (table("strong-edf", 2), FakeBackend::default());
    let (task, _) = admit(&mut table, &mut backend, 1, reservation(5, 10, "0")).unwrap();
    backend.asks(task);
    table.request_affinity(task, "7".parse().unwrap(), &mut backend);
    table.dismiss(task, &mut backend).unwrap();
    table.advance(Instant::ZERO + Span::from_s(1), &mut backend);
    let next = admit(&mut table, &mut backend, 2, reservation(5, 10, "0"));
    assert_eq!(next.unwrap().0, task);
}
