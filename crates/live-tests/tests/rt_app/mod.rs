//! rt-app itself, beside the task sets that its files become: the same threads compute at the same times and for as long.
//!
//! The importer has a test of its own against an interpreter of rt-app's rules; this one shows that these are its rules.

mod bursts;
mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use shiftwork_emulator::debian::{LIBRARIES, LOADER, Program};
use shiftwork_trace::perfetto::read;

use self::bursts::{Burst, Bursts, of_records, of_trace};
use self::files::{FILES, File};
use crate::command::{folder, on_three_cpus, shiftwork};
use crate::faults::wait_for;
use crate::ftrace;

/// Where the guest finds rt-app.
pub const PLACE: &str = "/opt/rt-app";
/// What it is: its package also has programs in Python, which are not used here.
pub const RT_APP: Program = Program {
    package: "rt-app",
    libraries: &["libjson-c5"],
    files: &[
        "usr/bin/rt-app",
        "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        "usr/lib/x86_64-linux-gnu/libc.so.6",
        "usr/lib/x86_64-linux-gnu/libm.so.6",
        "usr/lib/x86_64-linux-gnu/libjson-c.so.5",
    ],
};

/// How long each program runs, and until when bursts begin that are compared.
const SPAN: Duration = Duration::from_millis(200);
const COMPARED_NS: u64 = 150_000_000;
/// How far apart two beginnings may be: threads of rt-app start one after the other, and in the emulator a CPU waits while
/// others are executed.
const LATE_NS: u64 = 3_000_000;
/// By how much the computing of a burst may differ, since in the emulator loops take longer beside other threads, the kernel's too; and
/// that of all bursts of a thread: by this part, and for each burst by what a wait takes beside them.
const MORE_NS: u64 = 2_000_000;
const PART: u64 = 10;
const WAIT_NS: u64 = 100_000;
/// The threads of all files, as the kernel knows them.
const NAMES: &str = "t?";
/// What a loop of rt-app's computing is taken to last while it is measured, and the loops of that.
const ASSUMED_LOOP_NS: u64 = 1_000;
const CALIBRATION: File = File {
    about: "calibration",
    pi: false,
    tasks: r#""t0": { "delay": 5000, "loop": -1, "run": 20000, "timer": { "ref": "unique", "period": 60000 } }"#,
    policy: "strong-edf",
};
const CALIBRATION_LOOPS: u64 = 20_000;

/// All files: what rt-app does, and what the task set does that is made of its file.
pub fn threads_of_rt_app_do_what_their_task_set_does() -> Result<(), String> {
    let loop_ns = loop_ns()?;
    println!("a loop of rt-app takes {loop_ns} ns");
    let mut differences = Vec::new();
    for file in &FILES {
        let text = file.text(loop_ns);
        let theirs = by_rt_app(&text)?;
        println!("{}: {}", file.about, summary(&theirs));
        let compared = by_shiftwork(&text, file.policy).and_then(|ours| compare(&theirs, &ours));
        differences.extend(compared.err().map(|why| format!("{}: {why}", file.about)));
    }
    match differences.is_empty() {
        true => Ok(()),
        false => Err(differences.join("\n")),
    }
}

/// How long a loop of rt-app's computing takes here.
fn loop_ns() -> Result<u64, String> {
    let bursts = by_rt_app(&CALIBRATION.text(ASSUMED_LOOP_NS))?;
    let first = bursts.get(&0).and_then(|all| all.first());
    let first = first.ok_or("rt-app does not compute")?;
    Ok(first.computed_ns.div_ceil(CALIBRATION_LOOPS).max(1))
}

/// What rt-app does with this file, by the kernel's trace.
fn by_rt_app(text: &str) -> Result<Bursts, String> {
    let file = save(text)?;
    let at = |path: &str| format!("{PLACE}/{path}");
    ftrace::begin(&format!(
        r#"prev_comm ~ "{NAMES}" || next_comm ~ "{NAMES}""#
    ))?;
    let mut program = Command::new(at(LOADER))
        .args([
            "--library-path",
            &at(LIBRARIES),
            &at("usr/bin/rt-app"),
            &file,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("rt-app: {error}"))?;
    let threads = format!("/proc/{}/task", program.id());
    wait_for("threads of rt-app", || {
        let count = fs::read_dir(&threads).map_or(0, Iterator::count);
        (count > 1).then_some(())
    })?;
    thread::sleep(SPAN);
    let ended = program.try_wait().map_err(|error| error.to_string())?;
    program.kill().map_err(|error| error.to_string())?;
    let output = program.wait_with_output();
    let output = output.map_err(|error| error.to_string())?;
    let trace = ftrace::stop()?;
    match ended {
        Some(status) if !status.success() => Err(format!(
            "rt-app ended by {status}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
        _ => Ok(of_trace(&ftrace::read(&trace)?, &places(&trace))),
    }
}

/// The place of each thread in its file, by the names in the trace, as `prev_comm=t0 prev_pid=71`: rt-app starts them in this order.
fn places(trace: &str) -> BTreeMap<u32, usize> {
    let named = trace.split("_comm=").filter_map(|text| {
        let (name, rest) = text.split_once(' ')?;
        let (_, rest) = rest.split_once("_pid=")?;
        let (number, _) = rest.split_once(' ')?;
        name.strip_prefix('t')?.parse::<usize>().ok()?;
        number.parse::<u32>().ok()
    });
    let numbers: BTreeSet<u32> = named.collect();
    numbers.into_iter().zip(0..).collect()
}

/// What the task set does that is made of it, by its records.
fn by_shiftwork(text: &str, policy: &str) -> Result<Bursts, String> {
    let file = save(text)?;
    let at = |name: &str| folder().join(name).to_string_lossy().into_owned();
    let (set, trace) = (at("set.toml"), at("run.pftrace"));
    shiftwork(&["convert", &file, "--cpus", "3", "--output", &set])?;
    let span = format!("{}ms", SPAN.as_millis());
    let mut arguments = vec!["run", &set, "--policy", policy, "--for", &span, "--json"];
    arguments.extend(["--best-effort", "--no-compare", "--trace", &trace]);
    arguments.extend(on_three_cpus("fifo"));
    shiftwork(&arguments)?;
    let bytes = fs::read(&trace).map_err(|error| format!("{trace}: {error}"))?;
    let trace = read(&bytes).map_err(|error| error.to_string())?;
    Ok(of_records(&trace.records))
}

fn save(text: &str) -> Result<String, String> {
    let path = folder().join("file.json");
    fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
    fs::write(&path, text).map_err(|error| format!("{path:?}: {error}"))?;
    Ok(path.to_string_lossy().into_owned())
}

/// How many bursts each thread has, and what they add up to.
fn summary(bursts: &Bursts) -> String {
    let thread = |(place, bursts): (&usize, &Vec<Burst>)| {
        let computed: u64 = bursts.iter().map(|burst| burst.computed_ns).sum();
        format!(
            "t{place} {} bursts of {} us",
            bursts.len(),
            computed / 1_000
        )
    };
    bursts.iter().map(thread).collect::<Vec<_>>().join(", ")
}

/// Whether both begin the same bursts at about the same times, and compute in them for about as long.
fn compare(theirs: &Bursts, ours: &Bursts) -> Result<(), String> {
    if theirs.keys().ne(ours.keys()) {
        return Err(format!("threads {:?} and {:?}", theirs.keys(), ours.keys()));
    }
    for (place, theirs) in theirs {
        let counted =
            |bursts: &[Burst]| bursts.partition_point(|burst| burst.begin_ns < COMPARED_NS);
        let ours = &ours[place];
        let count = counted(theirs).max(counted(ours));
        if count == 0 {
            return Err(format!("t{place} does not compute"));
        }
        let (mut totals, mut most) = ((0, 0), (0, 0));
        for number in 0..count {
            let both = (theirs.get(number), ours.get(number));
            let (Some(their), Some(our)) = both else {
                return Err(format!("t{place}, burst {number}: {both:?}"));
            };
            let late = their.begin_ns.abs_diff(our.begin_ns);
            let more = their.computed_ns.abs_diff(our.computed_ns);
            most = (late.max(most.0), more.max(most.1));
            if late > LATE_NS || more > MORE_NS {
                return Err(format!("t{place}, burst {number}: {their:?}, but {our:?}"));
            }
            totals.0 += their.computed_ns;
            totals.1 += our.computed_ns;
        }
        let more = totals.0.abs_diff(totals.1);
        println!(
            "  t{place}, {count} bursts: begin within {}, compute within {} ns, together {more}",
            most.0, most.1
        );
        if more > totals.1 / PART + count as u64 * WAIT_NS {
            return Err(format!(
                "t{place} computes for {} and {} ns",
                totals.0, totals.1
            ));
        }
    }
    Ok(())
}
