//! Compiles the core natively.

fn main() {
    println!("cargo::rerun-if-changed=core");
    println!("cargo::rerun-if-env-changed=SHIFTWORK_SANITIZE");
    let mut build = cc::Build::new();
    build
        .file("core/native.c")
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true);
    if std::env::var_os("SHIFTWORK_SANITIZE").is_some() {
        // Ends the program where something is undefined, without a library.
        build
            .flag("-fsanitize=undefined")
            .flag("-fsanitize-undefined-trap-on-error");
    }
    build.compile("shiftwork_kernel_core");
}
