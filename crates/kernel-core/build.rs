//! Compiles the core natively.

fn main() {
    println!("cargo::rerun-if-changed=core");
    cc::Build::new()
        .file("core/native.c")
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(std::env::var_os("CI").is_some())
        .compile("shiftwork_kernel_core");
}
