//! Compiles the core natively, and says where its sources are: BPF programs include them.

fn main() {
    println!("cargo::rerun-if-changed=core");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::metadata=include={folder}");
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
