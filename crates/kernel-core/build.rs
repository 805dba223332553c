//! Compiles the core natively.

fn main() {
    println!("cargo::rerun-if-changed=core");
    cc::Build::new()
        .file("core/native.c")
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("shiftwork_kernel_core");
}
