//! Names the library as programs that were linked with it ask for it.

fn main() {
    // As long as the first number of the version is 0, that of the interface is, too; it grows when a program that was
    // linked with an older library could not go on with a newer one.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libshiftwork.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
