//! Compiles the scheduler in `bpf/` for the kernel, and makes the Rust side of it.

use std::env;
use std::process::Command;

use scx_cargo::BpfBuilder;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=../kernel-core/core");
    let clang = env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned());
    if Command::new(&clang).arg("--version").output().is_err() {
        println!(
            "cargo::error=`{clang}`, which compiles the programs for the kernel, is not here; run \
             `make setup`, or name another clang in BPF_CLANG"
        );
        return;
    }
    let built = BpfBuilder::new()
        .and_then(|mut builder| builder.enable_skel("bpf/main.bpf.c", "bpf").build());
    if let Err(error) = built {
        println!("cargo::error={error:#}");
    }
}
