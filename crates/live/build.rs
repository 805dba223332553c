//! Compiles the scheduler in `bpf/` for the kernel, and makes the Rust side of it.

use std::env;
use std::process::Command;

use scx_cargo::BpfBuilder;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    // In this repository beside this crate; where cargo has fetched both, in a folder with another name.
    let core = env::var("DEP_SHIFTWORK_KERNEL_CORE_INCLUDE").expect("its build script says so");
    println!("cargo::rerun-if-changed={core}/core");
    let clang = env::var("BPF_CLANG").unwrap_or_else(|_| "clang".to_owned());
    if Command::new(&clang).arg("--version").output().is_err() {
        println!(
            "cargo::error=`{clang}`, which compiles the programs for the kernel, is not here; run \
             `make setup`, or name another clang in BPF_CLANG"
        );
        return;
    }
    let built = BpfBuilder::new().and_then(|mut builder| {
        builder
            .add_include_path(&core)
            .enable_skel("bpf/main.bpf.c", "bpf")
            .build()
    });
    if let Err(error) = built {
        println!("cargo::error={error:#}");
    }
}
