//! Compiles the core as BPF.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A clang with the BPF target: `BPF_CLANG`, else the usual names.
pub fn clang() -> Option<String> {
    let named = std::env::var("BPF_CLANG").ok();
    let usual = ["clang-19", "clang"].map(String::from);
    named.into_iter().chain(usual).find(|clang| {
        let targets = Command::new(clang).arg("--print-targets").output();
        targets.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("bpf"))
    })
}

/// The folder of the probe.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bpf")
}

/// The compiled variants: names and compiler options.
pub const VARIANTS: [(&str, &[&str]); 3] = [
    ("static", &[]),
    ("global", &["-DSW_GLOBAL"]),
    ("v3", &["-mcpu=v3"]),
];

/// Compiles the probe with these options; returns the object.
pub fn compile(clang: &str, options: &[&str], name: &str) -> PathBuf {
    let source = folder().join("probe.bpf.c");
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let common = [
        "-target", "bpf", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c", "-o",
    ];
    let out = Command::new(clang)
        .args(common)
        .arg(&object)
        .args(options)
        .arg("-I")
        .arg(shiftwork_kernel_core::SOURCES)
        .arg(source)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    object
}
