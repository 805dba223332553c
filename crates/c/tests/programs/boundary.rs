//! What a program in C meets at the edges: threads, children, signals, late jobs, mistakes.

use std::path::Path;

use crate::built::{Installed, has, said};
use crate::daemon::{methods, with_daemon};

#[test]
fn the_library_keeps_what_the_header_says() {
    if !has("cc", "the edges of the library were not tested") {
        return;
    }
    let library = Installed::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/boundary.c");
    let program = library.link(&source);
    let (calls, output) = with_daemon(|daemon| library.run(&program, Some(daemon)));
    // It says itself what does not hold.
    assert!(output.status.success(), "{}", said(&output));
    let expected = [
        "Admit", "Admit!", "Change", "Change!", "Dismiss", // the first thread
        "Admit", "Admit", "Dismiss", "Dismiss", // again, and beside it the other
    ];
    assert_eq!(methods(&calls), expected);
}
