//! Studies through the command: killed and gone on with, in shares, on a full disk, with damaged parts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;

const STUDY: &str = r#"
name = "small"
sets = 60
[tasks]
cpus = 2
utilizations = "uniform-medium"
caps = [1, 1.5]
tardiness = true
[[policy]]
name = "g-edf"
simulate = "1s"
[[policy]]
name = "p-edf"
criteria = ["hard"]
"#;

/// A folder with the study, which goes when it is dropped.
fn stage() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, STUDY).unwrap();
    (folder, file)
}

fn study(file: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
    command.args(["study", "run"]).arg(file).args(options);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(file: &Path, options: &[&str]) -> Output {
    study(file, options).output().unwrap()
}

fn done(file: &Path, options: &[&str]) -> Vec<u8> {
    let output = run(file, options);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{options:?}: {}",
        said(&output)
    );
    output.stdout
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn results(file: &Path) -> Vec<u8> {
    fs::read(file.with_extension("").join("results.parquet")).unwrap()
}

/// The results of a run that nothing happened to.
fn expected() -> Vec<u8> {
    let (_stage, file) = stage();
    done(&file, &[]);
    results(&file)
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("part-") && name.ends_with(".parquet")
    };
    paths.retain(is_part);
    paths.sort();
    paths
}

/// How many task sets the last line says to have been done in this run.
fn added(output: &Output) -> u64 {
    let text = said(output);
    let line = text.lines().last().unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn killed_in_the_middle_it_goes_on_and_gives_the_same_bytes() {
    let (_stage, file) = stage();
    let folder = file.with_extension("");
    // Some die before they have written anything, some after everything.
    for wait_ms in [0, 20, 100, 300, 700] {
        let mut child = study(&file, &["--threads", "2"]).spawn().unwrap();
        sleep(Duration::from_millis(wait_ms));
        signal(&child, Signal::KILL);
        child.wait().unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(".writing-missing-1-0"), "half a par").unwrap();
    done(&file, &[]);
    assert_eq!(results(&file), expected());
    let unfinished = fs::read_dir(&folder).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(unfinished.count(), 0);
}

#[test]
fn stopped_by_a_signal_it_keeps_what_it_has() {
    for stop in [Signal::INT, Signal::TERM] {
        let (_stage, file) = stage();
        let child = study(&file, &["--sets", "100000", "--threads", "2"])
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(1_500));
        signal(&child, stop);
        let stopped = child.wait_with_output().unwrap();
        assert_eq!(stopped.status.code(), Some(130), "{}", said(&stopped));
        assert!(
            said(&stopped).contains("the same command goes on"),
            "{}",
            said(&stopped)
        );
        let partial = file.with_extension("").join("partial.parquet");
        assert!(partial.exists());
        let first = added(&stopped);
        assert!(first > 0);
        // More than were done, so that all of those count.
        let sets = (first + 1).to_string();
        let rest = run(&file, &["--sets", &sets, "--threads", "2"]);
        assert_eq!(rest.status.code(), Some(0), "{}", said(&rest));
        assert_eq!(added(&rest) + first, 2 * (first + 1), "{}", said(&rest));
        assert!(!partial.exists());
    }
}

#[test]
fn shares_on_several_computers_are_put_together() {
    let (_stage, file) = stage();
    let together = file.with_extension("");
    fs::create_dir_all(&together).unwrap();
    for shard in ["1/3", "2/3", "3/3"] {
        let (_elsewhere, copy) = stage();
        let output = run(&copy, &["--shard", shard, "--threads", "1"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(
            said(&output).contains("of other shares are not there"),
            "{}",
            said(&output)
        );
        for part in parts(&copy.with_extension("")) {
            fs::copy(&part, together.join(part.file_name().unwrap())).unwrap();
        }
    }
    let output = run(&file, &[]);
    assert_eq!(added(&output), 0, "{}", said(&output));
    assert_eq!(results(&file), expected());
}

#[test]
fn a_damaged_part_is_named_set_aside_and_run_again() {
    let (_stage, file) = stage();
    done(&file, &["--threads", "1"]);
    let part = parts(&file.with_extension("")).remove(0);
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&part, bytes).unwrap();
    let output = run(&file, &[]);
    assert_eq!(output.status.code(), Some(0));
    let name = part.file_name().unwrap().to_string_lossy().into_owned();
    assert!(
        said(&output).contains(&format!("{name} is damaged")),
        "{}",
        said(&output)
    );
    assert!(added(&output) > 0, "{}", said(&output));
    assert_eq!(results(&file), expected());
}

#[test]
fn a_foreign_part_is_refused_and_left_alone() {
    let (_stage, file) = stage();
    done(&file, &[]);
    fs::write(&file, STUDY.replace("caps = [1, 1.5]", "caps = [1, 1.25]")).unwrap();
    let output = run(&file, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("is a part of another study"),
        "{}",
        said(&output)
    );
    fs::write(&file, STUDY).unwrap();
    assert_eq!(added(&run(&file, &[])), 0);
}

/// What a mounted file system is unmounted by.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn on_a_full_disk_it_says_so_and_goes_on_when_there_is_room() {
    if !getuid().is_root() {
        println!("SKIPPED: mounting a small file system needs root");
        return;
    }
    let (stage, file) = stage();
    let disk = stage.path().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=32k", "tmpfs"])
        .arg(&disk);
    if !mount.status().is_ok_and(|status| status.success()) {
        println!("SKIPPED: this machine permits no mount of a small file system");
        return;
    }
    let _mounted = Mounted(disk.clone());
    let out = disk.join("study");
    let out = out.to_str().unwrap();
    done(&file, &["--out", out, "--sets", "20"]);
    // Less room than a part needs.
    fs::write(disk.join("ballast"), vec![1; 64 << 10]).unwrap_err();
    let output = run(&file, &["--out", out]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    for words in [
        "part-",
        "No space left",
        "40 task sets are kept in",
        "goes on from there",
    ] {
        assert!(said(&output).contains(words), "{words}: {}", said(&output));
    }
    fs::remove_file(disk.join("ballast")).unwrap();
    let output = run(&file, &["--out", out]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(added(&output), 80);
    assert_eq!(
        fs::read(disk.join("study/results.parquet")).unwrap(),
        expected()
    );
}

#[test]
fn figures_are_pictures_with_their_data() {
    let (stage, file) = stage();
    done(&file, &[]);
    let out = stage.path().join("figures");
    let plot = |from: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
        command.args(["study", "plot", "--out"]).arg(&out).arg(from);
        command.output().unwrap()
    };
    let folder = file.with_extension("");
    let by_folder = plot(&folder);
    assert!(by_folder.status.success(), "{}", said(&by_folder));
    let printed = String::from_utf8(by_folder.stdout).unwrap();
    let names = [
        "tasks-hard",
        "tasks-soft",
        "tasks-soft-tardiness",
        "tasks-simulated",
    ];
    for name in names {
        assert!(printed.contains(&format!("{name}.svg")), "{printed}");
        let svg = fs::read_to_string(out.join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains(">g-edf<"), "{svg}");
        let csv = fs::read_to_string(out.join(format!("{name}.csv"))).unwrap();
        assert!(csv.lines().count() > 2, "{csv}");
    }
    let by_file = plot(&folder.join("results.parquet"));
    assert_eq!(String::from_utf8(by_file.stdout).unwrap(), printed);
    assert!(
        fs::read_to_string(out.join("index.html"))
            .unwrap()
            .contains("tasks-soft.csv")
    );
}

#[test]
fn damaged_results_are_refused() {
    let (stage, file) = stage();
    done(&file, &["--sets", "1"]);
    let whole = results(&file);
    let path = stage.path().join("damaged.parquet");
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
        let output = command.args(["study", "plot"]).arg(&path).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "byte {at}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains("is not a table of results"),
            "byte {at}: {}",
            said(&output)
        );
    }
}

#[test]
fn the_example_runs_in_seconds_and_has_every_curve() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/example.toml");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let lines = done(&file, &["--out", out, "--sets", "4", "--json"]);
    let lines = String::from_utf8(lines).unwrap();
    let rows: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        rows.len(),
        2 * 8 * 4 * 2,
        "families, loads, contenders, criteria"
    );
    for row in &rows {
        assert_eq!(
            (&row["sets"], &row["cpus"]),
            (&4.into(), &4.into()),
            "{row}"
        );
        let [low, ratio, high] = ["low", "ratio", "high"].map(|key| row[key].as_f64().unwrap());
        assert!(low <= ratio && ratio <= high, "{row}");
    }
}
