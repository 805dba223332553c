//! The command `shiftwork-emulator`: boots a kernel with `sched_ext` and runs one program in it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use shiftwork_emulator::{
    Accel, Base, Boot, BootError, CarriedFile, Collected, Emulator, KernelChoice, Unavailable,
    guest,
};

/// The exit status if the emulator itself fails, as that of `timeout` and `env`.
const FAILED: u8 = 125;
/// The exit status if this machine cannot.
const UNAVAILABLE: u8 = 3;

/// Boots a stock Debian kernel with sched_ext in QEMU and runs one program in it.
///
/// QEMU and the kernel are fetched once, with the system's package client but without changing the
/// system, into the user's cache. The exit status is that of the program (128 and the number if a
/// signal ended it), 125 if the guest failed, 3 if the emulator cannot be had here.
#[derive(Debug, Parser)]
#[command(name = "shiftwork-emulator", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Boot and run a program
    Run(RunArgs),
    /// Fetch QEMU and a kernel, and print the kernel's release
    Fetch(FetchArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// CPUs of the guest
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=255))]
    cpus: u16,
    /// Memory of the guest in MiB
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,
    /// newest, rt, older-1, older-2, or the beginning of a release
    #[arg(long, default_value_t)]
    kernel: KernelChoice,
    /// auto, kvm, tcg, or icount (a clock that counts instructions, of 2 ns: runs repeat exactly)
    #[arg(long, default_value_t)]
    accel: Accel,
    /// With icount: for how long a CPU is executed at most before the next one is
    #[arg(long, value_parser = humantime::parse_duration)]
    turn: Option<Duration>,
    /// With --turn: another length, by which turns end as well, so that their lengths change all the time
    #[arg(long, requires = "turn", value_parser = humantime::parse_duration)]
    second_turn: Option<Duration>,
    /// With icount: of the random numbers that the guest sees; another seed is another run
    #[arg(long, default_value_t = 1)]
    seed: u32,
    /// How long the program may take, in the guest's time
    #[arg(long, default_value = "1min", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Further words of the kernel's command line
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    append: String,
    /// A further file or folder that the guest sees
    #[arg(long = "file", value_name = "HOST:GUEST", value_parser = carried)]
    files: Vec<CarriedFile>,
    /// A file or folder to bring home when the program has ended
    #[arg(long, value_name = "GUEST:HOST", value_parser = collected)]
    collect: Vec<Collected>,
    /// A variable of the program's environment
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, OsString)>,
    /// In a Debian system with systemd, as a unit
    #[arg(long)]
    debian: bool,
    /// Say on which kernel it ran, and how long it took to boot
    #[arg(long)]
    verbose: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct FetchArgs {
    /// newest, rt, older-1, older-2, or the beginning of a release
    #[arg(long, default_value_t)]
    kernel: KernelChoice,
    /// Look for newer kernels than those that were chosen before
    #[arg(long)]
    refresh: bool,
}

fn pair(text: &str) -> Result<(&str, &str), String> {
    text.split_once(':')
        .filter(|(from, to)| !from.is_empty() && !to.is_empty())
        .ok_or_else(|| format!("`{text}` has no `:` between two paths"))
}

fn carried(text: &str) -> Result<CarriedFile, String> {
    let (host, guest) = pair(text)?;
    Ok(CarriedFile {
        host: PathBuf::from(host),
        guest: guest.to_owned(),
    })
}

fn collected(text: &str) -> Result<Collected, String> {
    let (guest, host) = pair(text)?;
    Ok(Collected {
        guest: PathBuf::from(guest),
        host: PathBuf::from(host),
    })
}

fn variable(text: &str) -> Result<(String, OsString), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.into()))
}

fn fetch(args: &FetchArgs) -> Result<u8, BootError> {
    let emulator = Emulator::find_or_fetch()?;
    if args.refresh {
        emulator.forget_choices()?;
    }
    let kernel = emulator.kernel(&args.kernel)?;
    println!("{}", kernel.release);
    if let Some(why) = kernel.unusable {
        return Err(BootError::Unavailable(Unavailable::new(
            format!("no scheduler can be loaded into {}: {why}", kernel.release),
            "choose another kernel",
        )));
    }
    Ok(0)
}

fn run(args: RunArgs) -> Result<u8, BootError> {
    let mut command = args.command.into_iter();
    let boot = Boot {
        cpus: args.cpus,
        memory_mib: args.memory,
        accel: args.accel,
        turn: args.turn,
        second_turn: args.second_turn,
        seed: args.seed,
        kernel: args.kernel,
        append: args.append,
        files: args.files,
        collect: args.collect,
        environment: args.environment.into_iter().collect(),
        timeout: args.timeout,
        ..Boot::new(command.next().unwrap_or_default())?
    };
    let emulator = Emulator::find_or_fetch()?;
    let boot = Boot {
        arguments: command.collect(),
        base: match args.debian {
            true => Base::System(emulator.system()?),
            false => Base::Bare,
        },
        ..boot
    };
    let exit = emulator.boot(&boot, &mut io::stdout(), &mut io::stderr())?;
    if args.verbose {
        eprintln!(
            "shiftwork-emulator: {} by {}: booted after {} ms, over after {} ms",
            exit.release,
            exit.accel,
            exit.boot_time.as_millis(),
            exit.whole_time.as_millis()
        );
    }
    // Exit statuses have eight bits.
    Ok(u8::try_from(exit.code & 0xff).unwrap_or(FAILED))
}

fn main() -> ExitCode {
    guest::serve_if_first();
    let done = match Cli::parse().verb {
        Verb::Run(args) => run(args),
        Verb::Fetch(args) => fetch(&args),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("shiftwork-emulator: {error}");
            ExitCode::from(match error {
                BootError::Unavailable(_) => UNAVAILABLE,
                _ => FAILED,
            })
        }
    }
}
