//! Files that are read and written: the same seed gives the same bytes, and a failure loses no result.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{GOOD, SERVER, command, folder, shiftwork, stderr, stdout};

#[test]
fn a_file_that_is_no_text_is_refused() {
    let path = folder("binary").join("noise.toml").display().to_string();
    fs::write(&path, [b'a', 0xff, 0xfe]).unwrap();
    for verb in ["simulate", "scenario", "convert", "report"] {
        let output = shiftwork(&[verb, &path]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(
            stderr(&output).contains("byte"),
            "{verb}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_full_disk_loses_the_file_and_not_the_result() {
    for option in ["--trace", "--jobs", "--report"] {
        // A page shows inversions, and so they are counted where there is one.
        let simulate = ["simulate", GOOD, "--json", "--inversions"];
        let output = shiftwork(&[&simulate[..], &[option, "/dev/full"]].concat());
        assert_eq!(
            output.status.code(),
            Some(3),
            "{option}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("/dev/full"),
            "{option}: {}",
            stderr(&output)
        );
        assert_eq!(output.stdout, shiftwork(&simulate).stdout, "{option}");
    }
}

/// Everything that one simulation writes, by file name.
fn written(name: &str, seed: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = folder(name);
    let path = |file: &str| folder.join(file).display().to_string();
    let policies = "p-edf,weak-edf,hpa-edf";
    let mut arguments = vec![
        "simulate", SERVER, "--for", "500ms", "--json", "--seed", seed,
    ];
    let (jobs, trace, report) = (path("jobs.csv"), path("run.pftrace"), path("page.html"));
    arguments.extend(["--policy", policies, "--jobs", &jobs, "--trace", &trace]);
    arguments.extend(["--report", &report]);
    let output = shiftwork(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut files = contents(&folder);
    files.insert("stdout".into(), output.stdout);
    files
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_every_file() {
    let (first, second) = (written("seed-a", "7"), written("seed-b", "7"));
    let other = written("seed-c", "8");
    assert_eq!(first.len(), 3 + 3 + 1 + 1, "{:?}", first.keys());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "{name} differs between two runs");
        assert!(other[name] != *bytes, "{name} does not depend on the seed");
    }
}

#[test]
fn a_page_is_made_of_traces_as_of_simulations() {
    let folder = folder("pages");
    let path = |file: &str| folder.join(file).display().to_string();
    let (trace, page) = (path("run.pftrace"), path("simulated.html"));
    let starvation = "../../examples/dubey-2021/starvation.toml";
    let mut arguments = vec![
        "simulate",
        starvation,
        "-p",
        "weak-fp,strong-fp",
        "--for",
        "100ms",
    ];
    arguments.extend(["--trace", &trace, "--report", &page]);
    assert_eq!(shiftwork(&arguments).status.code(), Some(0));
    let (weak, strong) = (path("run.weak-fp.pftrace"), path("run.strong-fp.pftrace"));
    let reported = stdout(&shiftwork(&["report", &weak, &strong]));
    let simulated = fs::read_to_string(&page).unwrap();
    // All but where it comes from.
    let body = |page: &str| {
        let lines = page.lines().filter(|line| !line.starts_with("<dt>"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(body(&reported), body(&simulated));
    assert!(reported.len() > 10_000 && reported.contains("motor-control"));
}

#[test]
fn a_page_names_the_policies_that_do_not_take_the_task_set() {
    let page = folder("left-out").join("page.html").display().to_string();
    let overlap = "tests/command/files/overlap.toml";
    let simulate = ["simulate", overlap, "-p", "hpa-edf,weak-edf", "--report"];
    let output = shiftwork(&[&simulate[..], &[&page]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    let left_out: Vec<&str> = said
        .lines()
        .filter(|it| it.starts_with("left out: "))
        .collect();
    assert_eq!(left_out.len(), 1, "{said}");
    let why = left_out[0].trim_start_matches("left out: ");
    let page = fs::read_to_string(&page).unwrap();
    assert!(
        why.starts_with("hpa-edf")
            && page.contains(&format!("Left out: {}", why.replace('\'', "&#39;")))
    );
}

/// docs/formats.md names these keys, and others rely on them.
#[test]
fn the_table_of_jobs_has_its_header_and_a_line_for_each_job() {
    let jobs = folder("jobs").join("jobs.csv").display().to_string();
    shiftwork(&["simulate", GOOD, "--for", "25ms", "--jobs", &jobs]);
    let text = fs::read_to_string(&jobs).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let header = "task,job,release_ns,deadline_ns,start_ns,finish_ns,response_ns,tardiness_ns";
    assert_eq!(lines.remove(0), header);
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "a,1,0,10000000,0,2000000,2000000,0",
            "a,2,10000000,20000000,10000000,12000000,2000000,0",
            "a,3,20000000,30000000,20000000,22000000,2000000,0",
            "b,1,0,10000000,0,5000000,5000000,0",
            "b,2,10000000,20000000,10000000,15000000,5000000,0",
            "b,3,20000000,30000000,20000000,25000000,5000000,0",
        ]
    );
}

/// A task set, and the trace and the measurements that other verbs read, by file name.
fn inputs(folder: &Path) {
    let path = |name: &str| folder.join(name).display().to_string();
    fs::copy(GOOD, path("set.toml")).unwrap();
    fs::copy("tests/command/files/rt_app.json", path("rt-app.json")).unwrap();
    fs::copy("tests/command/files/overheads.toml", path("overheads.toml")).unwrap();
    let simulate = ["simulate", GOOD, "--for", "10ms", "--trace"];
    let traced = shiftwork(&[&simulate[..], &[&path("run.pftrace")]].concat());
    assert_eq!(traced.status.code(), Some(0), "{}", stderr(&traced));
    fs::write(path("earlier.json"), "{}").unwrap();
}

#[test]
fn no_verb_writes_over_what_it_reads_or_to_one_file_twice() {
    let folder = folder("overwrite");
    inputs(&folder);
    let before = contents(&folder);
    std::os::unix::fs::symlink("set.toml", folder.join("link.toml")).unwrap();
    for line in [
        "simulate set.toml --report set.toml",
        "simulate set.toml --jobs ./set.toml",
        "simulate set.toml --trace link.toml",
        "simulate set.toml --policy g-edf --overheads overheads.toml --jobs overheads.toml",
        "simulate set.toml --report x.html --jobs x.html",
        "simulate set.toml --policy p-edf,g-edf --report x.g-edf.csv --jobs x.csv",
        "run set.toml --machine sim --report set.toml",
        "run set.toml --machine sim --jobs x.csv --trace ./x.csv",
        "export set.toml --as rt-app -o set.toml",
        "export set.toml --as chrt -o link.toml",
        "convert rt-app.json -o rt-app.json",
        "report run.pftrace -o run.pftrace",
        "calibrate --check earlier.json --report earlier.json",
        "calibrate --output x.toml --report x.toml",
    ] {
        let arguments = line.split(' ');
        let output = command().current_dir(&folder).args(arguments).output();
        let output = output.unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(message.contains("overwrite"), "{line}: {message}");
        let errors = message.lines().filter(|it| it.starts_with("error: "));
        assert_eq!(errors.count(), 1, "{line}: {message}");
        assert!(contents(&folder) == before, "{line}");
    }
}

/// All regular files of a folder, by name.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let named = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap())
    };
    files.map(named).collect()
}

#[test]
fn two_outputs_may_go_to_one_device() {
    let output = shiftwork(&[
        "simulate",
        GOOD,
        "--jobs",
        "/dev/null",
        "--trace",
        "/dev/null",
        "--report",
        "/dev/null",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
