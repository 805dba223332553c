//! The agent in a fresh Debian system, as its people meet it: who may have time and who is told what, what holds beside
//! other work, and what becomes of programs when the agent is killed, replaced and removed.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shiftwork_client::{Client, socket_path};

use super::PACKAGE;
use super::machine::{ask, lines};
use super::programs::{Programs, expect, own};
use super::user::User;
use crate::faults::{Actor, wait_for, wait_for_state};

/// The configuration of the package, which an administrator changes here.
const CONFIGURATION: &str = "/etc/shiftwork/agent.toml";
/// What Debian's node exporter reads, as the package of it makes the folder.
const METRICS_FOLDER: &str = "/var/lib/prometheus";
const METRICS: &str = "/var/lib/prometheus/node-exporter/shiftwork.prom";
/// Three of these fit on a CPU. The period is long, and no job is stopped: the host may take this machine's CPUs for a
/// while, which counts as what the job uses up.
const THIRD: &str = "--cost 1200ms --period 4s --cpus 1 --on-overrun continue";

/// The story so far.
pub struct Story {
    /// Those of a member of the group.
    programs: Programs,
    stranger: User,
}

type Chapter = fn(&mut Story) -> Result<(), String>;

const CHAPTERS: &[(&str, Chapter)] = &[
    (
        "the service starts, after another scheduler was stopped",
        Story::starts,
    ),
    (
        "members of the group are admitted, strangers told how to become one",
        Story::admits,
    ),
    (
        "more callers are heard than a process has descriptors by default",
        Story::hears_a_crowd,
    ),
    ("who wants to be told of an overrun is told", Story::warns),
    (
        "no more is admitted than limits allow, and than fits",
        Story::refuses,
    ),
    (
        "beside other work on all CPUs deadlines are met",
        Story::keeps_deadlines,
    ),
    ("Prometheus finds its figures", Story::writes_metrics),
    (
        "a killed agent is back at once, with all tasks",
        Story::outlives_a_kill,
    ),
    (
        "an upgrade keeps all tasks, and the configuration",
        Story::outlives_an_upgrade,
    ),
    ("the journal has no complaint", journal_is_calm),
];

impl Story {
    /// Tells it, up to where the package is removed.
    pub fn tell() -> Result<Self, String> {
        let mut story = Self {
            programs: Programs::of(User::create("anna", &["--groups", "shiftwork"])?),
            stranger: User::create("bob", &[])?,
        };
        for (name, chapter) in CHAPTERS {
            println!("{name}");
            chapter(&mut story).map_err(|why| {
                let journal = ["journalctl", "--unit=shiftwork", "--no-pager", "--lines=30"];
                format!("{name}: {why}\n{}", ask(&journal).unwrap_or_default())
            })?;
        }
        Ok(story)
    }

    /// The package is removed: the programs go on as ordinary ones, and nothing else of it is at work. Then they end.
    pub fn ends(self) -> Result<(), String> {
        wait_for_state("disabled")?;
        self.programs.go_on_somehow()?;
        for path in ["/run/shiftwork", METRICS] {
            if Path::new(path).exists() {
                return Err(format!("removed, {path} is still there"));
            }
        }
        let pinned = fs::read_dir("/sys/fs/bpf")
            .map(Iterator::count)
            .unwrap_or(0);
        if pinned != 0 {
            return Err(format!("{pinned} things are left in /sys/fs/bpf"));
        }
        self.programs.end()?;
        self.stranger.remove()?;
        fs::remove_dir_all(METRICS_FOLDER).map_err(|error| error.to_string())
    }

    fn starts(&mut self) -> Result<(), String> {
        const OTHER: &str = "/run/systemd/system/scx.service";
        let other = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nExecStop=/bin/sleep 1\n";
        let written = fs::write(OTHER, other)
            .and_then(|()| fs::create_dir_all(format!("{METRICS_FOLDER}/node-exporter")))
            .and_then(|()| fs::read_to_string(CONFIGURATION))
            .and_then(|text| fs::write(CONFIGURATION, text.replace("#metrics", "metrics")));
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
                "the other one was stopped at {stopped} µs, ours begun at {begun} µs"
            ));
        }
        fs::remove_file(OTHER).map_err(|error| error.to_string())?;
        ask(&["systemctl", "daemon-reload"]).map(drop)
    }

    fn admits(&mut self) -> Result<(), String> {
        for _ in 0..3 {
            self.programs.admit(THIRD)?;
        }
        let refused = self.stranger.shiftwork(&["status"])?;
        expect(
            &refused,
            3,
            "sudo usermod --append --groups shiftwork $USER",
        )?;
        // One's own programs only.
        let roots = std::process::id().to_string();
        let refused = self
            .programs
            .owner
            .exec("--cost 1ms --period 1s --pid", &[&roots])?;
        expect(&refused, 2, "does not belong to user")
    }

    fn hears_a_crowd(&mut self) -> Result<(), String> {
        const CROWD: usize = 1_100;
        let limit = Rlimit {
            // These, and what this process has open already.
            current: Some(CROWD as u64 + 100),
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        setrlimit(Resource::Nofile, limit).map_err(|error| error.to_string())?;
        let crowd: Result<Vec<Client>, _> =
            (0..CROWD).map(|_| Client::connect(socket_path())).collect();
        let mut crowd = crowd.map_err(|failure| failure.to_string())?;
        for (place, client) in crowd.iter_mut().enumerate().rev().step_by(CROWD - 1) {
            let heard = client.status();
            heard.map_err(|failure| format!("number {place} of {CROWD}: {failure}"))?;
        }
        Ok(())
    }

    /// One that takes more than it said, and asks to be told.
    fn warns(&mut self) -> Result<(), String> {
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
        // That it was read again nobody waits for.
        wait_for("the limits to be raised", || {
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
        wait_for("figures of all tasks", || {
            let text = self.stranger.run(&["cat", METRICS]).ok()?;
            let text = String::from_utf8_lossy(&text.stdout).into_owned();
            let tasks = text.matches("\nshiftwork_task_jobs_total{").count();
            (tasks == self.programs.count()).then_some(())
        })
    }

    fn outlives_a_kill(&mut self) -> Result<(), String> {
        let before = self.programs.status()?;
        ask(&[
            "systemctl",
            "kill",
            "--kill-whom=main",
            "--signal=KILL",
            "shiftwork",
        ])?;
        wait_for("systemd to start it again", || {
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

    fn outlives_an_upgrade(&mut self) -> Result<(), String> {
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

/// Neither systemd nor the agent complains.
fn journal_is_calm(_: &mut Story) -> Result<(), String> {
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
