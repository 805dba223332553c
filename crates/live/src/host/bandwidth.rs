//! CPU time of the kernel's own real-time classes, and what the kernel reserves for the other classes.
//!
//! SCHED_DEADLINE and SCHED_FIFO rank above sched_ext: the CPU time that they use is not available to our tasks. Two
//! mechanisms limit them. Before 6.12 they were throttled to a share of each period ([`real_time_limit`]).
//! Since then that share only limits the reservations of SCHED_DEADLINE, and *deadline servers* run the
//! lower classes when SCHED_FIFO starves them: one for ordinary threads, since 7.0 another for
//! sched_ext ([`deadline_servers`]). They give 50 ms of each second, which keeps the machine
//! usable and does not trigger the watchdog, but is no guarantee to a real-time task.

use shiftwork_model::{CpuId, Span};

use super::System;

/// The limit of the kernel's own real-time classes on each CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTimeLimit {
    /// CPU time in every period; `None`: without limit.
    pub runtime: Option<Span>,
    /// The period.
    pub period: Span,
}

/// The limit of the kernel's own real-time classes on each CPU; `None` if the kernel does not report it.
pub fn real_time_limit(system: &System) -> Option<RealTimeLimit> {
    let runtime_us = system.number("/proc/sys/kernel/sched_rt_runtime_us")?;
    let period_us = system.number("/proc/sys/kernel/sched_rt_period_us")?;
    // The kernel writes -1 for no limit, and nothing else below zero.
    let runtime = match runtime_us {
        -1 => None,
        us => Some(span_of_us(us)?),
    };
    let period = span_of_us(period_us)?;
    Some(RealTimeLimit { runtime, period })
}

fn span_of_us(us: i64) -> Option<Span> {
    let ns = u64::try_from(us).ok()?.checked_mul(1000)?;
    Some(Span::from_ns(ns))
}

/// The class that a deadline server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Served {
    /// Ordinary threads.
    Fair,
    /// Threads under sched_ext: our tasks, and while a scheduler is loaded all ordinary threads.
    Ext,
}

impl Served {
    /// Where debugfs keeps the servers of this class.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Fair => "/sys/kernel/debug/sched/fair_server",
            Self::Ext => "/sys/kernel/debug/sched/ext_server",
        }
    }
}

/// The deadline server of a class on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineServer {
    /// The class.
    pub served: Served,
    /// The CPU.
    pub cpu: CpuId,
    /// CPU time in every period; zero: the server is disabled.
    pub runtime: Span,
    /// The period.
    pub period: Span,
}

/// The deadline servers of all CPUs, by class and CPU. Empty: this kernel has none; `None`: unknown, because
/// debugfs is not mounted or this process may not read it.
pub fn deadline_servers(system: &System) -> Option<Vec<DeadlineServer>> {
    if !system.has("/sys/kernel/debug/sched") {
        return None;
    }
    let mut servers: Vec<DeadlineServer> = [Served::Fair, Served::Ext]
        .into_iter()
        .flat_map(|served| {
            let cpus = system.names(served.folder());
            cpus.into_iter()
                .filter_map(move |name| server(system, served, &name))
        })
        .collect();
    servers.sort_unstable_by_key(|server| (server.served, server.cpu));
    Some(servers)
}

/// The server in the folder of this name, such as `cpu3`.
fn server(system: &System, served: Served, name: &str) -> Option<DeadlineServer> {
    let span = |file| {
        let ns = system.number(&format!("{}/{name}/{file}", served.folder()))?;
        u64::try_from(ns).ok().map(Span::from_ns)
    };
    Some(DeadlineServer {
        served,
        cpu: CpuId::new(name.strip_prefix("cpu")?.parse().ok()?)?,
        runtime: span("runtime")?,
        period: span("period")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_limit_is_a_share_of_a_period_or_none() {
        let with = |runtime| {
            real_time_limit(&System::of([
                ("/proc/sys/kernel/sched_rt_runtime_us", runtime),
                ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ]))
        };
        let period = Span::from_s(1);
        let runtime = Some(Span::from_ms(950));
        assert_eq!(with("950000\n"), Some(RealTimeLimit { runtime, period }));
        let runtime = None;
        assert_eq!(with("-1\n"), Some(RealTimeLimit { runtime, period }));
        assert_eq!(with("much\n"), None);
        assert_eq!(with("9223372036854775807\n"), None);
        assert_eq!(with("-2\n"), None);
    }

    #[test]
    fn deadline_servers_are_sorted_by_class_and_cpu() {
        let folder = "/sys/kernel/debug/sched";
        let files: Vec<(String, &str)> = [
            ("fair", 10, "0\n"),
            ("fair", 2, "50000000\n"),
            ("ext", 2, "1\n"),
        ]
        .into_iter()
        .flat_map(|(class, cpu, runtime)| {
            let at = format!("{folder}/{class}_server/cpu{cpu}");
            [
                (format!("{at}/runtime"), runtime),
                (format!("{at}/period"), "1000000000\n"),
            ]
        })
        .chain([(format!("{folder}/fair_server/cpux/runtime"), "1\n")])
        .collect();
        let system = System::of(files.iter().map(|(path, text)| (path.as_str(), *text)));
        let found: Vec<_> = deadline_servers(&system)
            .unwrap()
            .into_iter()
            .map(|server| (server.served, server.cpu.index(), server.runtime.as_ns()))
            .collect();
        assert_eq!(
            found,
            [
                (Served::Fair, 2, 50_000_000),
                (Served::Fair, 10, 0),
                (Served::Ext, 2, 1),
            ]
        );
    }

    #[test]
    fn kernel_without_servers_differs_from_unreadable_debugfs() {
        assert_eq!(deadline_servers(&System::of([("", ""); 0])), None);
        let old = System::of([("/sys/kernel/debug/sched/features", "")]);
        assert_eq!(deadline_servers(&old), Some(vec![]));
    }
}
