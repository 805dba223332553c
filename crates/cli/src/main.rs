//! The `shiftwork` command; everything is in the library beside it, so that tests reach it.

fn main() -> std::process::ExitCode {
    shiftwork_cli::run(std::env::args_os())
}
