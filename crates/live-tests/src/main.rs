//! The `shiftwork` command as the live tests run it: the same library as the command itself.

fn main() -> std::process::ExitCode {
    shiftwork_cli::run(std::env::args_os())
}
