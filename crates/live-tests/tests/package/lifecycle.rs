//! The daemon in a fresh Debian system: permissions and messages, guarantees beside other work, and programs while the
//! daemon is killed, upgraded and removed.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shiftwork_client::{Client, socket_path};

use super::PACKAGE;
use super::machine::{ask, lines};
use super::programs::{Programs, expect, own};
use super::user::User;
use crate::faults::{Actor, wait_for, wait_for_state};

/// The configuration file of the package.
const CONFIGURATION: &str = "/etc/shiftwork/daemon.toml";
/// The folder that Debian's package of the node exporter creates.
const METRICS_FOLDER: &str = "/var/lib/prometheus";
const METRICS: &str = "/var/lib/prometheus/node-exporter/shiftwork.prom";
/// Three of these fit on a CPU. The period is long and jobs are not throttled: time in which the host does not run this
/// machine's CPUs counts as execution time.
const THIRD: &str = "--cost 1200ms --period 4s --cpus 1 --on-overrun continue";

/// The state between two phases.
pub struct Lifecycle {
    /// Programs of a member of the group.
    programs: Programs,
    /// A user outside the group.
    outsider: User,
}

/// What the reservations of the programs need.
const REQUESTS: &str =
    "[requests]\nperiod-max = \"10s\"\non-overrun = [\"throttle\", \"signal\", \"continue\"]\n";

type Phase = fn(&mut Lifecycle) -> Result<(), String>;

const PHASES: &[(&str, Phase)] = &[
    (
        "the service starts after another scheduler was stopped",
        Lifecycle::starts,
    ),
    (
        "members of the group are admitted, and others learn how to join it",
        Lifecycle::admits,
    ),
    (
        "more callers are served than a process has descriptors by default",
        Lifecycle::serves_many_callers,
    ),
    (
        "an overrun is signalled on request",
        Lifecycle::signals_overrun,
    ),
    (
        "reservations beyond quotas and capacity are refused",
        Lifecycle::refuses,
    ),
    (
        "deadlines are met beside other work on all CPUs",
        Lifecycle::keeps_deadlines,
    ),
    (
        "the metrics file has samples of all tasks",
        Lifecycle::writes_metrics,
    ),
    (
        "a killed daemon is restarted with all tasks",
        Lifecycle::survives_kill,
    ),
    (
        "an upgrade keeps all tasks and the configuration",
        Lifecycle::survives_upgrade,
    ),
    ("the journal has no errors", journal_has_no_errors),
];

impl Lifecycle {
    /// Runs all phases before the removal of the package.
    pub fn run() -> Result<Self, String> {
        let mut lifecycle = Self {
            programs: Programs::of(User::create("anna", &["--groups", "shiftwork"])?),
            outsider: User::create("bob", &[])?,
        };
        for (name, phase) in PHASES {
            println!("{name}");
            phase(&mut lifecycle).map_err(|why| {
                let journal = ["journalctl", "--unit=shiftwork", "--no-pager", "--lines=30"];
                format!("{name}: {why}\n{}", ask(&journal).unwrap_or_default())
            })?;
        }
        Ok(lifecycle)
    }

    /// After the removal of the package: the programs continue as ordinary work, and nothing else of it runs. Ends them.
    pub fn end(self) -> Result<(), String> {
        wait_for_state("disabled")?;
        self.programs.make_progress()?;
        for path in ["/run/shiftwork", METRICS] {
            if Path::new(path).exists() {
                return Err(format!("after removal {path} still exists"));
            }
        }
        let pinned = fs::read_dir("/sys/fs/bpf")
            .map(Iterator::count)
            .unwrap_or(0);
        if pinned != 0 {
            return Err(format!("{pinned} objects are left in /sys/fs/bpf"));
        }
        self.programs.end()?;
        self.outsider.remove()?;
        fs::remove_dir_all(METRICS_FOLDER).map_err(|error| error.to_string())
    }

    fn starts(&mut self) -> Result<(), String> {
        const OTHER: &str = "/run/systemd/system/scx.service";
        let other = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecStop=/bin/sleep 1\n";
        let written = fs::write(OTHER, other)
            .and_then(|()| fs::create_dir_all(format!("{METRICS_FOLDER}/node-exporter")))
            .and_then(|()| fs::read_to_string(CONFIGURATION))
            .and_then(|text| {
                let text = text.replace("#metrics", "metrics");
                fs::write(CONFIGURATION, format!("{text}\n{REQUESTS}"))
            });
        written.map_err(|error| error.to_string())?;
        ask(&["systemctl", "daemon-reload"])?;
        ask(&["systemctl", "start", "scx"])?;
        ask(&["systemctl", "start", "shiftwork"])?;
        let at = |unit: &str, what: &str| -> Result<u64, String> {
            let said = ask(&["systemctl", "show", "--value", "--property", what, unit])?;
            said.trim()
                .parse()
                .map_err(|_| format!("{what} of {unit} is {said:?}"))
        };
        let stopped = at("scx", "InactiveEnterTimestampMonotonic")?;
        let begun = at("shiftwork", "InactiveExitTimestampMonotonic")?;
        if stopped == 0 || begun < stopped {
            return Err(format!(
                "the other scheduler stopped at {stopped} µs, the daemon started at {begun} µs"
            ));
        }
        fs::remove_file(OTHER).map_err(|error| error.to_string())?;
        ask(&["systemctl", "daemon-reload"]).map(drop)
    }

    fn admits(&mut self) -> Result<(), String> {
        for _ in 0..3 {
            self.programs.admit(THIRD)?;
        }
        let refused = self.outsider.shiftwork(&["status"])?;
        expect(
            &refused,
            3,
            "sudo usermod --append --groups shiftwork $USER",
        )?;
        // A thread of another user.
        let roots = std::process::id().to_string();
        let refused = self
            .programs
            .owner
            .exec("--cost 1ms --period 1s --pid", &[&roots])?;
        expect(&refused, 2, "does not belong to user")
    }

    fn serves_many_callers(&mut self) -> Result<(), String> {
        const CROWD: usize = 1_100;
        let limit = Rlimit {
            // For these, and the descriptors already open.
            current: Some(CROWD as u64 + 100),
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        setrlimit(Resource::Nofile, limit).map_err(|error| error.to_string())?;
        let crowd: Result<Vec<Client>, _> =
            (0..CROWD).map(|_| Client::connect(socket_path())).collect();
        let mut crowd = crowd.map_err(|failure| failure.to_string())?;
        for (place, client) in crowd.iter_mut().enumerate().rev().step_by(CROWD - 1) {
            let heard = client.status();
            heard.map_err(|failure| format!("client {place} of {CROWD}: {failure}"))?;
        }
        Ok(())
    }

    /// Runs a program that exceeds its cost, with `--on-overrun signal`.
    fn signals_overrun(&mut self) -> Result<(), String> {
        let own = own()?;
        let greedy = ["--", &own, "--act", "hog"];
        let ended = self.programs.owner.exec(
            "--cost 50ms --period 1s --cpus 2-3 --on-overrun signal",
            &greedy,
        )?;
        match std::os::unix::process::ExitStatusExt::signal(&ended.status) {
            // SIGXCPU.
            Some(24) => Ok(()),
            _ => Err(format!("it ended by {}", ended.status)),
        }
    }

    fn refuses(&mut self) -> Result<(), String> {
        let fourth = |user: &User| user.exec(THIRD, &["--", "/bin/true"]);
        expect(
            &fourth(&self.programs.owner)?,
            1,
            "would reserve 1.200 CPUs, and the maximum is 1.000",
        )?;
        let text = fs::read_to_string(CONFIGURATION).map_err(|error| error.to_string())?;
        let raised = format!("{text}[limits.user]\nshare = 4.0\n[limits.cgroup]\nshare = 4.0\n");
        fs::write(CONFIGURATION, raised).map_err(|error| error.to_string())?;
        ask(&["systemctl", "reload", "shiftwork"])?;
        // `systemctl reload` returns before the configuration is reloaded.
        wait_for("the quotas to be raised", || {
            let refused = fourth(&self.programs.owner).ok()?;
            expect(&refused, 1, "need 1.20 CPUs there, of which there are 0.95").ok()
        })?;
        self.programs.admit(&THIRD.replace("--cpus 1", "--cpus 2"))
    }

    fn keeps_deadlines(&mut self) -> Result<(), String> {
        let before = self.programs.status()?;
        let hogs: Vec<Actor> = (0..4)
            .map(|cpu| Actor::start(&format!("hog {cpu}")))
            .collect::<Result<_, _>>()?;
        self.programs.go_on(&before)?;
        drop(hogs);
        Ok(())
    }

    fn writes_metrics(&mut self) -> Result<(), String> {
        wait_for("samples of all tasks", || {
            let text = self.outsider.run(&["cat", METRICS]).ok()?;
            let text = String::from_utf8_lossy(&text.stdout).into_owned();
            let tasks = text.matches("\nshiftwork_task_jobs_total{").count();
            (tasks == self.programs.count()).then_some(())
        })
    }

    fn survives_kill(&mut self) -> Result<(), String> {
        let before = self.programs.status()?;
        ask(&[
            "systemctl",
            "kill",
            "--kill-whom=main",
            "--signal=KILL",
            "shiftwork",
        ])?;
        wait_for("systemd to restart it", || {
            let restarts = ask(&[
                "systemctl",
                "show",
                "--value",
                "--property=NRestarts",
                "shiftwork",
            ]);
            (restarts.ok()?.trim() == "1").then_some(())
        })?;
        self.programs.are_as(&before)
    }

    fn survives_upgrade(&mut self) -> Result<(), String> {
        let before = self.programs.status()?;
        let configuration = fs::read_to_string(CONFIGURATION).map_err(|error| error.to_string())?;
        ask(&["dpkg", "--install", PACKAGE])?;
        self.programs.are_as(&before)?;
        match fs::read_to_string(CONFIGURATION).is_ok_and(|text| text == configuration) {
            true => Ok(()),
            false => Err("the changed configuration was replaced".to_owned()),
        }
    }
}

/// The journal has no error of systemd or the daemon.
fn journal_has_no_errors(_: &mut Lifecycle) -> Result<(), String> {
    let journal = [
        "journalctl",
        "--unit=shiftwork",
        "--quiet",
        "--no-pager",
        "--output=cat",
    ];
    let errors = ask(&[&journal[..], &["--priority=err"]].concat())?;
    let complaints = ["cannot", "configuration unchanged", "metrics disabled"];
    let complaint = lines(&journal)?
        .into_iter()
        .find(|line| complaints.iter().any(|words| line.contains(words)));
    match complaint {
        None if errors.is_empty() => Ok(()),
        line => Err(format!("{errors}{}", line.unwrap_or_default())),
    }
}
