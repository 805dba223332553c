//! Machines described by files, and what the doctor must say about them.

use super::*;

fn examined(system: &System) -> Vec<Finding> {
    examine(system, &SchedDeadline::of(system))
}

fn finding(system: &System, name: &str) -> Finding {
    examined(system)
        .into_iter()
        .find(|finding| finding.name == name)
        .unwrap()
}

#[test]
fn a_machine_that_says_nothing_is_examined_without_a_panic_and_claims_nothing_good() {
    let findings = examined(&System::of([("", ""); 0]));
    assert_eq!(findings.len(), CHECKS.len() + 5);
    // The clock is asked of the kernel itself, not of a file.
    let good: Vec<_> = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Good && finding.name != "clock")
        .collect();
    assert_eq!(good, Vec::<&Finding>::new());
}

#[test]
fn whatever_is_not_good_has_a_remedy() {
    let machines = [
        System::of([("", ""); 0]),
        System::this(),
        System::of([
            ("/proc/sys/kernel/osrelease", "6.1.0\n"),
            ("/proc/sys/kernel/version", "#1 SMP\n"),
            ("/proc/self/status", "CapEff:\t0\n"),
            ("/sys/kernel/debug/sched/features", ""),
        ]),
    ];
    for finding in machines.iter().flat_map(examined) {
        let must = matches!(finding.verdict, Verdict::Poor | Verdict::Missing);
        assert_eq!(finding.remedy.is_some(), must, "{finding:?}");
    }
}

#[test]
fn what_is_missing_is_exactly_what_run_refuses_for() {
    let files = [
        ("/sys/kernel/sched_ext/state", "enabled\n"),
        ("/sys/kernel/btf/vmlinux", "nonsense"),
        ("/proc/self/status", "CapEff:\t0\n"),
        (
            "/proc/self/limits",
            "Max locked memory  65536  65536  bytes\n",
        ),
    ];
    for chosen in 0_usize..1 << files.len() {
        let chosen = (0..files.len()).filter(|index| chosen >> index & 1 == 1);
        let system = System::of(chosen.map(|index| files[index]));
        let mut missing: Vec<String> = examined(&system)
            .into_iter()
            .filter(|finding| finding.verdict == Verdict::Missing)
            .map(|finding| finding.found)
            .collect();
        let obstacles = shiftwork_live::host::obstacles(&system);
        assert!(!obstacles.is_empty());
        for obstacle in &obstacles {
            assert!(
                missing.contains(&obstacle.what),
                "{obstacle} in {missing:?}"
            );
        }
        // Without sched_ext `run` does not ask for types.
        if system.has("/sys/kernel/sched_ext") {
            missing.retain(|found| obstacles.iter().all(|obstacle| obstacle.what != *found));
            assert_eq!(missing, [""; 0]);
        }
    }
}

#[test]
fn kernel_without_sched_ext_is_missing_twice() {
    let system = System::of([("/proc/sys/kernel/osrelease", "6.1.0-40-amd64\n")]);
    assert_eq!(finding(&system, "kernel").verdict, Verdict::Missing);
    assert_eq!(finding(&system, "sched_ext").verdict, Verdict::Missing);
}

/// What a user is to enter begins with `sudo` where that is needed; root may not have `sudo` at all.
#[test]
fn remedies_use_sudo_except_for_root() {
    let files = |uid: &'static str| {
        [
            ("/proc/self/status", uid),
            ("/proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ("/sys/devices/system/cpu/smt/active", "1\n"),
            ("/sys/devices/system/cpu/online", "0\n"),
            (
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "powersave\n",
            ),
            (
                "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency",
                "200\n",
            ),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state0/name", "C6\n"),
            ("/sys/kernel/debug/sched/ext_server/cpu0/runtime", "0\n"),
            (
                "/sys/kernel/debug/sched/ext_server/cpu0/period",
                "1000000000\n",
            ),
            ("/sys/kernel/sched_ext/state", "enabled\n"),
            (
                "/proc/self/limits",
                "Max realtime priority     0      0\nMax locked memory  65536  65536  bytes\n",
            ),
        ]
    };
    let remedies = |uid| {
        let found = examined(&System::of(files(uid)));
        let remedies = found.into_iter().filter_map(|finding| finding.remedy);
        remedies.collect::<Vec<String>>()
    };
    let (user, root) = (
        remedies("Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0\n"),
        remedies("Uid:\t0\t0\t0\t0\nCapEff:\t0\n"),
    );
    assert_eq!(user.len(), root.len());
    for (user, root) in user.iter().zip(&root) {
        assert!(!root.contains("sudo"), "{root}");
        let commands = ["/sys/", "sysctl", "/etc/", "sysrq"];
        let is_command = commands.iter().any(|command| user.contains(command));
        assert!(!is_command || user.contains("sudo"), "{user}");
    }
    assert!(
        root.iter().any(|remedy| remedy.starts_with("sysctl ")),
        "{root:?}"
    );
}

#[test]
fn a_loaded_scheduler_is_named() {
    let system = System::of([
        ("/proc/sys/kernel/osrelease", "6.19.14+deb13-amd64\n"),
        ("/sys/kernel/sched_ext/state", "enabled\n"),
        ("/sys/kernel/sched_ext/root/ops", "rusty_1.0.4\n"),
    ]);
    let finding = finding(&system, "sched_ext");
    assert_eq!(finding.verdict, Verdict::Missing);
    assert!(finding.found.contains("rusty_1.0.4"), "{}", finding.found);
}

fn throttled(runtime: &str, release: &str) -> Finding {
    let system = System::of([
        ("/proc/sys/kernel/sched_rt_runtime_us", runtime),
        ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        ("/proc/sys/kernel/osrelease", release),
    ]);
    finding(&system, "rt-throttling")
}

#[test]
fn switched_off_throttling_is_no_good_sign() {
    for release in ["6.1.0\n", "7.2.13\n"] {
        let finding = throttled("-1\n", release);
        assert_eq!(finding.verdict, Verdict::Poor);
        assert_eq!(
            finding.remedy.as_deref(),
            Some("sudo sysctl kernel.sched_rt_runtime_us=950000")
        );
    }
}

#[test]
fn what_throttling_means_depends_on_the_kernel() {
    assert_eq!(
        throttled("950000\n", "6.1.0\n").found,
        "SCHED_FIFO and SCHED_DEADLINE get 950ms of every 1s"
    );
    assert_eq!(throttled("1000000\n", "6.1.0\n").verdict, Verdict::Poor);
    let new = throttled("1000000\n", "7.2.13\n");
    assert_eq!(new.verdict, Verdict::Good);
    assert_eq!(
        new.found,
        "SCHED_DEADLINE may reserve 1s of every 1s; deadline servers hold SCHED_FIFO back"
    );
}

#[test]
fn a_deadline_server_that_is_off_is_found_and_switched_on() {
    let with = |runtimes: [&'static str; 2]| {
        let at = |cpu: usize, file| format!("/sys/kernel/debug/sched/ext_server/cpu{cpu}/{file}");
        let files: Vec<(String, &str)> = (0..2)
            .flat_map(|cpu| {
                [
                    (at(cpu, "runtime"), runtimes[cpu]),
                    (at(cpu, "period"), "1000000000\n"),
                ]
            })
            .collect();
        let files = files.iter().map(|(path, text)| (path.as_str(), *text));
        finding(&System::of(files), "deadline-servers")
    };
    let sound = with(["50000000\n", "50000000\n"]);
    assert_eq!(sound.verdict, Verdict::Good);
    assert_eq!(
        sound.found,
        "SCHED_FIFO leaves sched_ext 50ms of every 1s on CPUs 0,1"
    );
    let off = with(["50000000\n", "0\n"]);
    assert_eq!(off.verdict, Verdict::Poor);
    assert!(off.found.starts_with("off on CPUs 1: "), "{}", off.found);
    assert_eq!(
        off.remedy.as_deref(),
        Some("sudo sh -c 'echo 50000000 | tee /sys/kernel/debug/sched/ext_server/cpu*/runtime'")
    );
    let only_fair = System::of([("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "1\n")]);
    assert_eq!(
        finding(&only_fair, "deadline-servers").remedy.as_deref(),
        Some("boot a kernel of 7.0 or newer")
    );
}

#[test]
fn the_governor_is_judged_by_the_slowest_cpu() {
    let system = System::of([
        ("/sys/devices/system/cpu/online", "0-1\n"),
        (
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "performance\n",
        ),
        (
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
            "powersave\n",
        ),
    ]);
    let finding = finding(&system, "governor");
    assert_eq!(finding.verdict, Verdict::Poor);
    assert_eq!(finding.found, "CPUs 0: performance; CPUs 1: powersave");
}

#[test]
fn idle_states_are_judged_by_the_deepest_that_is_not_disabled() {
    let with = |disable: &'static str| {
        let folder = "/sys/devices/system/cpu/cpu0/cpuidle";
        let mut files = vec![("/sys/devices/system/cpu/online".to_owned(), "0-1\n")];
        for (state, name, latency, disable) in [
            (0, "POLL\n", "0\n", "0\n"),
            (1, "C1\n", "2\n", "0\n"),
            (2, "C6\n", "133\n", disable),
        ] {
            for (file, text) in [("name", name), ("latency", latency), ("disable", disable)] {
                files.push((format!("{folder}/state{state}/{file}"), text));
            }
        }
        let files = files.iter().map(|(path, text)| (path.as_str(), *text));
        finding(&System::of(files), "idle-states")
    };
    let deep = with("0\n");
    assert_eq!(deep.verdict, Verdict::Poor);
    assert_eq!(deep.found, "CPUs 0: 133us to leave C6");
    let remedy = deep.remedy.unwrap();
    assert!(
        remedy.contains("cpuidle/state*") && remedy.contains("-le 10"),
        "{remedy}"
    );
    let shallow = with("1\n");
    assert_eq!(shallow.verdict, Verdict::Good);
    assert_eq!(shallow.found, "CPUs 0: 2us to leave C1");
}

#[test]
fn a_slow_clock_is_exchanged_for_the_cpus_own_where_there_is_one() {
    let with = |available| {
        let folder = "/sys/devices/system/clocksource/clocksource0";
        let current = format!("{folder}/current_clocksource");
        let all = format!("{folder}/available_clocksource");
        finding(
            &System::of([(current.as_str(), "hpet\n"), (all.as_str(), available)]),
            "clock",
        )
    };
    // On a test machine with a coarse clock that comes first.
    if with("tsc hpet\n").found.starts_with("resolution 1 ns") {
        let remedy = with("tsc hpet \n").remedy.unwrap();
        assert!(remedy.starts_with("echo tsc |"), "{remedy}");
        let remedy = with("hpet acpi_pm \n").remedy.unwrap();
        assert!(remedy.contains("tsc=reliable"), "{remedy}");
    }
}

#[test]
fn bare_metal_guests_and_emulators_are_distinguished() {
    let with = |model: &str, flags: &str| {
        let info = format!("processor\t: 0\nmodel name\t: {model}\nflags\t\t: fpu {flags}\n");
        let system = System::of([
            ("/proc/cpuinfo", info.as_str()),
            ("/sys/class/dmi/id/sys_vendor", "Maker\n"),
            ("/sys/class/dmi/id/product_name", "Box 1\n"),
        ]);
        let finding = finding(&system, "hypervisor");
        (finding.verdict, finding.found)
    };
    assert_eq!(with("Chip", "tsc"), (Verdict::Good, "none".into()));
    let guest = "a virtual machine (Maker Box 1): the host may take CPUs away at any time";
    assert_eq!(
        with("Chip", "hypervisor tsc"),
        (Verdict::Poor, guest.into())
    );
    let emulated = with("QEMU TCG CPU version 2.5+", "hypervisor").1;
    assert!(emulated.starts_with("an emulator"), "{emulated}");
}

#[test]
fn process_without_capabilities_sees_which_are_missing() {
    let system = System::of([(
        "/proc/self/status",
        "Name:\tshiftwork\nCapEff:\t0000000000000000\n",
    )]);
    let finding = finding(&system, "privileges");
    assert_eq!(finding.verdict, Verdict::Missing);
    assert!(finding.found.contains("CAP_SYS_NICE"), "{}", finding.found);
}

#[test]
fn the_limit_of_priorities_matters_only_to_those_without_the_capability() {
    let with = |status| {
        let files = [
            ("/proc/self/status", status),
            ("/proc/self/limits", "Max realtime priority     0      0\n"),
        ];
        finding(&System::of(files), "rtprio").verdict
    };
    assert_eq!(with("CapEff:\t0000000000000000\n"), Verdict::Poor);
    assert_eq!(with("CapEff:\t0000000000800000\n"), Verdict::Good);
}
