//! What threads of members do.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use rustix::thread::{CpuSet, MembarrierCommand, membarrier, sched_setaffinity, sched_yield};
use shiftwork_model::RandomStream;

use super::FOLDERS;
use crate::faults::compute;
use crate::mutexes::futex::InheritingMutex;

/// Those of this process, with priority inheritance.
static MUTEXES: LazyLock<[InheritingMutex; 2]> = LazyLock::new(Default::default);

/// Does this for ever; `own` is the number of the thread.
pub fn work(doing: &str, own: i32) {
    let mut random = RandomStream::new(own.unsigned_abs().into(), 0, 0);
    if doing == "renames" {
        renames(own);
    }
    loop {
        match doing {
            "naps" => {
                compute(Duration::from_micros(random.below(2_000)));
                std::thread::sleep(Duration::from_micros(random.below(5_000)));
            }
            "yields" => {
                compute(Duration::from_micros(random.below(500)));
                sched_yield();
            }
            "opens" => drop(File::open("/proc/self/status")),
            // Waits until every CPU has been in a quiescent state of RCU.
            "barriers" => drop(membarrier(MembarrierCommand::Global)),
            "locks" => locks(&mut random),
            "forks" => forks(),
            "wanders" => wanders(&mut random),
            _ => compute(Duration::from_millis(1)),
        }
    }
}

/// Renames a file to and fro.
fn renames(own: i32) {
    let mut names = FOLDERS.map(|folder| format!("{folder}/{own}"));
    if fs::write(&names[0], "").is_err() {
        return;
    }
    // Fails only when the folders are gone.
    while fs::rename(&names[0], &names[1]).is_ok() {
        names.swap(0, 1);
    }
}

/// One within the other, in the same order in all threads.
fn locks(random: &mut RandomStream) {
    let [outer, inner] = &*MUTEXES;
    if outer.lock().is_err() {
        return;
    }
    compute(Duration::from_micros(random.below(500)));
    if random.below(2) == 0 && inner.lock().is_ok() {
        compute(Duration::from_micros(random.below(500)));
        let _ = inner.unlock();
    }
    let _ = outer.unlock();
    compute(Duration::from_micros(random.below(300)));
}

fn forks() {
    let Ok(own) = std::env::current_exe() else {
        return;
    };
    let child = Command::new(own)
        .args(["--act", "quits", "100"])
        .stdin(Stdio::null())
        .spawn();
    if let Ok(mut child) = child {
        let _ = child.wait();
    }
}

fn wanders(random: &mut RandomStream) {
    let bits = 1 + random.below(15);
    let mut set = CpuSet::new();
    (0..4)
        .filter(|cpu| bits >> cpu & 1 == 1)
        .for_each(|cpu| set.set(cpu));
    // It asks; what comes of that is what is tested.
    let _ = sched_setaffinity(None, &set);
    compute(Duration::from_micros(random.below(1_000)));
}
