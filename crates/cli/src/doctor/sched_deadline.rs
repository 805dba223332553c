//! SCHED_DEADLINE on this machine: which threads use it, and which of its defects they would meet here.
//!
//! What each defect is, `docs/sched-deadline.md` says; every remedy points there.

mod names;
mod output;

use std::collections::BTreeMap;

use shiftwork_live::host::{
    DeadlineThread, DeadlineThreads, RealTimeLimit, System, deadline_threads, real_time_limit,
};
use shiftwork_model::{CpuId, CpuSet, Span};

use super::Finding;
use super::cpus::PERFORMANCE;
use names::{in_full, in_short, named};

pub use output::SchedDeadlineOutput;

/// Shares of a CPU are added in units of 2^-20, rounded down, as Linux does.
const WHOLE: u128 = 1 << 20;

/// What was found out about SCHED_DEADLINE.
#[derive(Clone, Debug)]
pub struct SchedDeadline {
    online: CpuSet,
    /// `None`: the machine does not say.
    limit: Option<RealTimeLimit>,
    found: DeadlineThreads,
    /// Which frequency policies have the governor that follows the utilization; `None`: there are none.
    scaled: Option<Vec<String>>,
    /// The CPUs of each capacity; empty: the machine does not say.
    capacities: BTreeMap<i64, CpuSet>,
}

impl SchedDeadline {
    /// Looks at the machine, and at every thread once.
    pub fn of(system: &System) -> Self {
        Self {
            online: system.online().unwrap_or(CpuSet::EMPTY),
            limit: real_time_limit(system),
            found: deadline_threads(system),
            scaled: scaled(system),
            capacities: capacities(system),
        }
    }

    /// The text for people, in the order in which it is shown.
    pub fn findings(&self) -> [Finding; 5] {
        [
            self.admission(),
            self.threads(),
            self.affinities(),
            self.frequency(),
            self.asymmetry(),
        ]
    }

    /// Whether the kernel asks what threads need before it lets them in.
    fn admission(&self) -> Finding {
        const NAME: &str = "dl-admission";
        match self.limit {
            None => Finding::unknown(NAME, "the kernel does not say"),
            Some(RealTimeLimit {
                runtime: Some(runtime),
                period,
            }) => Finding::good(
                NAME,
                format!(
                    "on: SCHED_DEADLINE threads may reserve {runtime} of every {period} of their CPUs"
                ),
            ),
            Some(RealTimeLimit { runtime: None, .. }) => Finding::poor(
                NAME,
                "off (sched_rt_runtime_us is -1): SCHED_DEADLINE lets in any thread, with any affinity",
                "no thread has a guarantee: sudo sysctl kernel.sched_rt_runtime_us=950000, or add \
                 up what each CPU has to serve (docs/sched-deadline.md)",
            ),
        }
    }

    /// The threads of that policy.
    fn threads(&self) -> Finding {
        const NAME: &str = "dl-threads";
        let DeadlineThreads {
            threads,
            looked_at,
            unreadable,
        } = &self.found;
        if *looked_at == 0 {
            return Finding::unknown(NAME, "no thread can be looked at");
        }
        let hidden = match unreadable {
            0 => String::new(),
            _ => format!(" ({unreadable} could not be looked at)"),
        };
        let text = match threads.len() {
            0 => format!("none of {looked_at} threads is under SCHED_DEADLINE{hidden}"),
            count => format!(
                "{count} of {looked_at} threads under SCHED_DEADLINE{hidden}: {}",
                named(threads, in_full)
            ),
        };
        Finding::good(NAME, text)
    }

    /// Whether what threads are bound to can serve them.
    fn affinities(&self) -> Finding {
        const NAME: &str = "dl-affinities";
        let threads = &self.found.threads;
        if self.found.looked_at == 0 {
            return Finding::unknown(NAME, "no thread can be looked at");
        }
        if let Some((cpu, needed, bound)) = self.crowded() {
            return Finding::poor(
                NAME,
                format!(
                    "threads bound to CPU {cpu} reserve {}% of it: {}",
                    (needed * 100).div_ceil(WHOLE),
                    named(&bound, in_short)
                ),
                "they fall behind without bound: lower a runtime, or bind one to another CPU \
                 (docs/sched-deadline.md)",
            );
        }
        let narrow: Vec<DeadlineThread> = threads
            .iter()
            .filter(|thread| self.is_narrow(thread))
            .cloned()
            .collect();
        if !narrow.is_empty() {
            return Finding::poor(
                NAME,
                format!("narrower than their cpusets: {}", named(&narrow, in_full)),
                "late threads stay where they are and hold these up: give each an exclusive cpuset, or \
                 `shiftwork run --policy dl-sp` (docs/sched-deadline.md)",
            );
        }
        let hidden = threads.iter().filter(|thread| is_hidden(thread)).count();
        if hidden > 0 {
            return Finding::unknown(
                NAME,
                format!(
                    "where {hidden} of the threads may run, or what they reserve, is not to be seen"
                ),
            );
        }
        let text = match threads.len() {
            0 => "no thread is under SCHED_DEADLINE",
            _ => "no SCHED_DEADLINE thread is narrower than its cpuset",
        };
        Finding::good(NAME, text)
    }

    /// Condition (2) of Tang et al.: the lowest CPU on which the threads bound to it have reserved
    /// more than the limit, how much, and which they are. Without admission control the limit is
    /// the whole CPU.
    fn crowded(&self) -> Option<(CpuId, u128, Vec<DeadlineThread>)> {
        let limit = self
            .limit
            .and_then(|limit| share(limit.runtime?, limit.period));
        let mut bound = BTreeMap::<CpuId, (u128, Vec<DeadlineThread>)>::new();
        for thread in &self.found.threads {
            let (Some(cpus), Some(reservation)) = (thread.cpus, thread.reservation) else {
                continue;
            };
            let cpus = cpus & self.online;
            let needed = share(reservation.runtime, reservation.period).unwrap_or(0);
            if let Some(cpu) = cpus.lowest().filter(|_| cpus.len() == 1) {
                let (sum, threads) = bound.entry(cpu).or_default();
                *sum += needed;
                threads.push(thread.clone());
            }
        }
        let mut crowded = bound.into_iter();
        let (cpu, (needed, threads)) =
            crowded.find(|(_, (needed, _))| *needed > limit.unwrap_or(WHOLE))?;
        Some((cpu, needed, threads))
    }

    fn is_narrow(&self, thread: &DeadlineThread) -> bool {
        let whole = thread.cpuset.unwrap_or(self.online) & self.online;
        thread.cpus.is_some_and(|cpus| !whole.is_subset(&cpus))
    }

    /// Defect 2: frequencies that follow the utilization.
    fn frequency(&self) -> Finding {
        const NAME: &str = "dl-frequency";
        match &self.scaled {
            None => Finding::unknown(
                NAME,
                "no cpufreq: the hardware or hypervisor sets the speed",
            ),
            Some(policies) if policies.is_empty() => {
                Finding::good(NAME, "no speed follows what SCHED_DEADLINE threads reserve")
            }
            Some(policies) => Finding::poor(
                NAME,
                format!(
                    "speeds follow what the threads in a run queue reserve (schedutil: {})",
                    policies.join(", ")
                ),
                format!(
                    "CPUs slow down under threads that are late already: {PERFORMANCE} \
                     (docs/sched-deadline.md)"
                ),
            ),
        }
    }

    /// Defect 3: CPUs that are not alike.
    fn asymmetry(&self) -> Finding {
        const NAME: &str = "dl-capacities";
        if self.capacities.len() <= 1 {
            return match self.capacities.is_empty() {
                true => Finding::unknown(NAME, "the machine does not say how fast its CPUs are"),
                false => Finding::good(NAME, "all CPUs are as fast"),
            };
        }
        let groups = self.capacities.iter();
        let groups: Vec<String> = groups
            .map(|(capacity, cpus)| format!("CPUs {cpus}: {capacity}"))
            .collect();
        Finding::poor(
            NAME,
            format!("CPUs are not as fast as each other ({})", groups.join("; ")),
            "admission adds up all of it, and lets in what falls behind on a slow CPU: keep SCHED_DEADLINE to \
             CPUs that are alike, by an exclusive cpuset (docs/sched-deadline.md)",
        )
    }
}

/// Whether something about the thread could not be read, so that nothing good can be said of it.
fn is_hidden(thread: &DeadlineThread) -> bool {
    thread.cpus.is_none() || thread.reservation.is_none()
}

/// Runtime by period, in units of [`WHOLE`]; `None` for a period of zero.
fn share(runtime: Span, period: Span) -> Option<u128> {
    (u128::from(runtime.as_ns()) * WHOLE).checked_div(u128::from(period.as_ns()))
}

/// The governor that asks for as much speed as SCHED_DEADLINE threads have reserved (GRUB-PA).
fn scaled(system: &System) -> Option<Vec<String>> {
    const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
    let mut policies = system.names(FOLDER);
    policies.retain(|name| name.starts_with("policy"));
    if policies.is_empty() {
        return None;
    }
    policies.retain(|name| {
        let governor = system.read(&format!("{FOLDER}/{name}/scaling_governor"));
        governor.as_deref() == Some("schedutil")
    });
    Some(policies)
}

fn capacities(system: &System) -> BTreeMap<i64, CpuSet> {
    let mut groups = BTreeMap::<i64, CpuSet>::new();
    for cpu in system.online().unwrap_or(CpuSet::EMPTY).iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        if let Some(capacity) = system.number(&path) {
            groups.entry(capacity).or_insert(CpuSet::EMPTY).insert(cpu);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use shiftwork_live::host::Reservation;

    use super::super::Verdict;
    use super::*;

    const ONLINE: (&str, &str) = ("/sys/devices/system/cpu/online", "0-3\n");

    fn limit(runtime: &'static str) -> [(&'static str, &'static str); 2] {
        [
            ("/proc/sys/kernel/sched_rt_runtime_us", runtime),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ]
    }

    /// A machine on which each of these threads, numbered from 100 on, may use these CPUs of its cpuset,
    /// and has reserved so many of each 100 ms.
    fn machine(runtime: &'static str, threads: &[(&str, &str, u64)]) -> System {
        let mut files: Vec<(String, String)> = [ONLINE]
            .into_iter()
            .chain(limit(runtime))
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .collect();
        for (id, (cpus, cpuset, _)) in (100..).zip(threads) {
            let folder = format!("/proc/{id}/task/{id}");
            let zeros = "0 ".repeat(36);
            files.extend([
                (
                    format!("{folder}/stat"),
                    format!("{id} (control) S 1 {zeros}6 0\n"),
                ),
                (
                    format!("{folder}/status"),
                    format!("Cpus_allowed_list:\t{cpus}\n"),
                ),
                (format!("{folder}/cgroup"), format!("0::/set{id}\n")),
                (
                    format!("/sys/fs/cgroup/set{id}/cpuset.cpus.effective"),
                    format!("{cpuset}\n"),
                ),
            ]);
        }
        let files = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        let period = Span::from_ms(100);
        (100..)
            .zip(threads)
            .fold(System::of(files), |system, (id, (_, _, ms))| {
                let reservation = Reservation {
                    runtime: Span::from_ms(*ms),
                    deadline: period,
                    period,
                };
                system.with_reservation(id, reservation)
            })
    }

    fn finding(system: &System, name: &str) -> Finding {
        let findings = SchedDeadline::of(system).findings();
        findings.into_iter().find(|it| it.name == name).unwrap()
    }

    #[test]
    fn admission_control_is_on_or_off_or_unknown() {
        let with = |runtime| finding(&System::of(limit(runtime)), "dl-admission");
        assert_eq!(
            with("950000\n").found,
            "on: SCHED_DEADLINE threads may reserve 950ms of every 1s of their CPUs"
        );
        let off = with("-1\n");
        assert_eq!(off.verdict, Verdict::Poor);
        assert!(off.remedy.unwrap().contains("docs/sched-deadline.md"));
        let unknown = finding(&System::of([("", ""); 0]), "dl-admission");
        assert_eq!(unknown.verdict, Verdict::Unknown);
    }

    #[test]
    fn threads_are_named_with_what_they_reserve_and_those_that_hide_are_counted() {
        let system = machine("-1\n", &[("0-3", "0-3", 10), ("2", "0-3", 20)]);
        assert_eq!(
            finding(&system, "dl-threads").found,
            "2 of 2 threads under SCHED_DEADLINE: 100 `control` 10ms/100ms on CPUs 0-3, 101 `control` \
             20ms/100ms on CPUs 2 of 0-3"
        );
        let many = machine("950000\n", &[("0-3", "0-3", 1); 6]);
        let found = finding(&many, "dl-threads").found;
        assert!(found.ends_with(", and 2 more"), "{found}");
        let hidden = System::of([
            ("/proc/1/task/1/stat", "1 (init) S 0 0\n"),
            ("/proc/2/status", ""),
        ]);
        assert_eq!(
            finding(&hidden, "dl-threads").found,
            "none of 1 threads is under SCHED_DEADLINE (1 could not be looked at)"
        );
        assert_eq!(finding(&hidden, "dl-affinities").verdict, Verdict::Good);
    }

    #[test]
    fn threads_narrower_than_their_cpuset_are_found() {
        let affinities = |threads: &[_]| finding(&machine("-1\n", threads), "dl-affinities");
        let narrow = affinities(&[("0-3", "0-3", 10), ("2", "0-3", 20)]);
        assert_eq!(narrow.verdict, Verdict::Poor);
        assert_eq!(
            narrow.found,
            "narrower than their cpusets: 101 `control` 20ms/100ms on CPUs 2 of 0-3"
        );
        // In a cpuset of its own a thread has all that it may have, and CPUs that are away are not counted.
        let fits = affinities(&[("2", "2", 20), ("0-3", "0-7", 20)]);
        assert_eq!(fits.verdict, Verdict::Good, "{fits:?}");
    }

    #[test]
    fn threads_of_which_something_is_hidden_are_not_called_good() {
        let zeros = "0 ".repeat(36);
        let stat = format!("7 (control) S 1 {zeros}6 0\n");
        let files = [
            ("/proc/7/task/7/stat", stat.as_str()),
            ("/proc/7/task/7/status", "Cpus_allowed_list:\t0-3\n"),
            ONLINE,
        ];
        let finding = finding(&System::of(files), "dl-affinities");
        assert_eq!(finding.verdict, Verdict::Unknown);
        assert_eq!(
            finding.found,
            "where 1 of the threads may run, or what they reserve, is not to be seen"
        );
    }

    #[test]
    fn a_cpu_that_is_promised_twice_is_found_at_its_limit() {
        let affinities =
            |runtime, threads: &[_]| finding(&machine(runtime, threads), "dl-affinities");
        let crowded = affinities(
            "-1\n",
            &[("1", "0-3", 60), ("2", "0-3", 99), ("1", "0-3", 41)],
        );
        assert_eq!(crowded.verdict, Verdict::Poor);
        assert_eq!(
            crowded.found,
            "threads bound to CPU 1 reserve 101% of it: 100 `control`, 102 `control`"
        );
        // Exactly the limit fits: here all of a CPU, there 95%.
        let exact = affinities("-1\n", &[("1", "1", 50), ("1", "1", 50)]);
        assert_eq!(exact.verdict, Verdict::Good, "{exact:?}");
        let exact = affinities("950000\n", &[("1", "1", 45), ("1", "1", 50)]);
        assert_eq!(exact.verdict, Verdict::Good, "{exact:?}");
        let over = affinities("950000\n", &[("1", "1", 46), ("1", "1", 50)]);
        assert_eq!(over.verdict, Verdict::Poor);
    }

    #[test]
    fn only_the_governor_that_follows_the_utilization_slows_sched_deadline_down() {
        let with = |governor| {
            let files = [
                ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
                (
                    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
                    governor,
                ),
                (
                    "/sys/devices/system/cpu/cpufreq/policy4/scaling_governor",
                    "performance\n",
                ),
            ];
            finding(&System::of(files), "dl-frequency")
        };
        let scaled = with("schedutil\n");
        assert_eq!(scaled.verdict, Verdict::Poor);
        assert!(scaled.found.ends_with("(schedutil: policy0)"), "{scaled:?}");
        assert_eq!(with("powersave\n").verdict, Verdict::Good);
    }

    #[test]
    fn cpus_that_are_not_alike_are_found_by_their_capacities() {
        let with = |capacity| {
            let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
            let files: Vec<(String, &str)> = (0..4)
                .map(|cpu| (path(cpu), if cpu < 2 { capacity } else { "1024\n" }))
                .collect();
            let files = files.iter().map(|(path, text)| (path.as_str(), *text));
            finding(&System::of(files.chain([ONLINE])), "dl-capacities")
        };
        let little = with("446\n");
        assert_eq!(little.verdict, Verdict::Poor);
        assert_eq!(
            little.found,
            "CPUs are not as fast as each other (CPUs 0,1: 446; CPUs 2,3: 1024)"
        );
        assert_eq!(with("1024\n").verdict, Verdict::Good);
    }

    #[test]
    fn json_output_lists_every_thread() {
        let output = SchedDeadline::of(&machine("-1\n", &[("2", "0-3", 20)])).output();
        let json = serde_json::to_string(&output).unwrap();
        assert_eq!(
            json,
            "{\"admission_control\":false,\"threads_looked_at\":1,\"threads_unreadable\":0,\"threads\":[{\"id\":\
             100,\"name\":\"control\",\"cpus\":\"2\",\"cpuset\":\"0-3\",\"runtime_ns\":20000000,\"deadline_ns\":\
             100000000,\"period_ns\":100000000}]}"
        );
    }
}
