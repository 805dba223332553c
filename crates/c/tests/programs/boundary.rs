//! Edge cases of programs in C: threads, children, signals, late jobs, invalid arguments.

use std::path::Path;

use crate::built::{Installed, has, said};
use crate::daemon::{methods, with_daemon};

#[test]
fn library_fulfils_contract_of_header() {
    if !has("cc", "the edge cases of the library were not tested") {
        return;
    }
    let library = Installed::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/boundary.c");
    let program = library.link(&source);
    let (calls, output) = with_daemon(|daemon| library.run(&program, Some(daemon)));
    // The program names the failing check.
    assert!(output.status.success(), "{}", said(&output));
    let expected = [
        "Admit", "Admit!", "Change", "Change!", "Dismiss", // the first thread
        "Admit", "Admit", "Dismiss", "Dismiss", // again, and the other thread
    ];
    assert_eq!(methods(&calls), expected);
}
