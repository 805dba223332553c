//! Generated task sets do not depend on the number of threads, and are read back.

use std::fs;

use super::{command, folder, shiftwork, stderr};

#[test]
fn generated_task_sets_do_not_depend_on_the_threads() {
    let generate = |name: &str, threads: &str| {
        let folder = folder(name);
        let arguments = [
            "generate",
            "--cpus",
            "8",
            "--tasks",
            "20",
            "--utilization",
            "6",
            "--affinities",
            "laminar",
            "--feasible",
            "--count",
            "600",
            "--threads",
            threads,
            "--quiet",
            "--out-dir",
        ];
        let output = command().args(arguments).arg(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                (
                    path.file_name().unwrap().to_owned(),
                    fs::read(&path).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    let one = generate("threads-1", "1");
    assert_eq!(one.len(), 600);
    assert!(one == generate("threads-2", "2"));
    assert!(one == generate("threads-5", "5"));
}

#[test]
fn generated_files_are_read_back() {
    let folder = folder("read-back");
    let path = folder.display().to_string();
    shiftwork(&[
        "generate",
        "-n",
        "3",
        "-a",
        "arbitrary",
        "--deadlines",
        "constrained",
        "-o",
        &path,
    ]);
    for number in 0..3 {
        let file = folder
            .join(format!("set-000{number}.toml"))
            .display()
            .to_string();
        let output = shiftwork(&["simulate", &file, "-p", "strong-edf", "--for", "100ms"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}
