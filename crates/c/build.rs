//! Sets the soname of the library.

fn main() {
    // The number of the ABI is 0 while the major version is 0. It increases with each change that breaks programs linked
    // with an older library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libshiftwork.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
