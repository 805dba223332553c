//! The core compiles as BPF, calls nothing that the kernel does not have, and stays within the eight
//! frames that the verifier allows. It decides the same as the native build, in an interpreter and, on
//! request, in the running kernel, which also verifies it.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

mod compile;
mod lockstep;
mod machine;
mod object;
mod probe;

use compile::{VARIANTS, clang, compile, folder};
use object::Object;

/// Maximum number of frames from this function on.
fn depth(calls: &BTreeMap<&str, Vec<&str>>, function: &str, path: &mut Vec<String>) -> usize {
    assert!(
        !path.iter().any(|caller| caller == function),
        "{path:?} recurses"
    );
    path.push(function.into());
    let called = calls.get(function).into_iter().flatten();
    let deepest = called
        .map(|called| depth(calls, called, path))
        .max()
        .unwrap_or(0);
    path.pop();
    1 + deepest
}

#[test]
fn core_compiles_as_bpf_within_the_limits_of_the_verifier() {
    let Some(clang) = clang() else {
        eprintln!(
            "SKIPPED: the core as BPF: there is no clang with the BPF target; install clang-19"
        );
        return;
    };
    for (name, options) in VARIANTS {
        let object = Object::read(&compile(&clang, options, &format!("{name}.o")));
        assert_eq!(object.undefined(), [""; 0], "{name}");
        let calls = object.calls();
        assert!(calls.values().flatten().count() > 20, "{name}: {calls:?}");
        let frames = depth(&calls, "step", &mut Vec::new());
        // The program, and six of the core; a caller may have one function of its own.
        assert_eq!(frames, 7, "{name}: frames of the longest chain of calls");
    }
}

#[test]
fn bpf_interpreter_and_native_build_decide_the_same() {
    let Some(clang) = clang() else {
        eprintln!(
            "SKIPPED: BPF in an interpreter: there is no clang with the BPF target; install clang-19"
        );
        return;
    };
    for (name, options) in VARIANTS {
        let object = compile(&clang, options, &format!("interpreted-{name}.o"));
        let mut machine = machine::Machine::load(&object);
        for seed in 1..=4 {
            lockstep::play(&mut machine, name, seed, 1_500);
        }
    }
}

/// Compiles the driver, which needs libbpf.
fn driver() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lockstep");
    let compiler = std::env::var("CC").unwrap_or_else(|_| String::from("cc"));
    let out = Command::new(compiler)
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(shiftwork_kernel_core::SOURCES)
        .arg(folder().join("lockstep.c"))
        .arg("-o")
        .arg(&program)
        .arg("-lbpf")
        .output();
    out.is_ok_and(|out| out.status.success()).then_some(program)
}

#[test]
fn kernel_and_native_build_decide_the_same() {
    const REQUEST: &str = "SHIFTWORK_LOAD_BPF";
    if std::env::var_os(REQUEST).is_none() {
        eprintln!("SKIPPED: the core inside this kernel: set {REQUEST}=1, as root, to load it");
        return;
    }
    let clang = clang().expect("loading BPF was asked for: install clang-19");
    let driver = driver().expect("loading BPF was asked for: install libbpf-dev");
    for (name, options) in VARIANTS {
        let object = compile(&clang, options, &format!("run-{name}.o"));
        let out = Command::new(&driver)
            .arg(object)
            .args(["12", "12000"])
            .output()
            .unwrap();
        let output = [out.stdout, out.stderr].concat();
        assert!(
            out.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output)
        );
    }
}
