//! Timers for kernels where BPF has none (PREEMPT_RT): a thread that sleeps until an event is due
//! and then calls the scheduler. It runs beside the scheduler's CPUs if it may: on one of them it would keep
//! tasks waiting, however urgent they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};
use shiftwork_model::CpuSet;

use crate::LiveError;
use crate::sys::bpf::{Command, Loaded, TickNotifier};
use crate::sys::thread::{Class, affinity_outside, set_affinity, set_class};

/// Above ordinary real-time threads, below the kernel's own watchdogs.
const PRIORITY: u8 = 90;

/// The thread. Dropping this ends it.
pub(crate) struct Ticker {
    should_stop: Arc<AtomicBool>,
    notifier: TickNotifier,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread, beside the scheduler's CPUs, which are these.
    pub(crate) fn start(loaded: &Loaded, cpus: &CpuSet) -> Result<Self, LiveError> {
        let should_stop = Arc::new(AtomicBool::new(false));
        let notifier = loaded.tick_notifier().map_err(LiveError::system(
            "open the tick ring of the scheduler in the kernel",
        ))?;
        let commands = loaded.tick_command().map_err(LiveError::system(
            "open the timer program of the scheduler in the kernel",
        ))?;
        let (handle, stop) = (notifier.clone(), Arc::clone(&should_stop));
        let outside = affinity_outside(cpus)
            .map_err(LiveError::system("read the CPUs of the timer thread"))?;
        let thread = std::thread::Builder::new()
            .name(String::from("ticker"))
            .spawn(move || {
                // Without them it is late more often, and in the way of tasks, which affects only precision.
                let _ = set_affinity(None, &outside);
                let _ = set_class(None, Class::Fifo(PRIORITY));
                let Ok(waiter) = handle.waiter() else { return };
                // Threads have capabilities of their own: what the creator of this one gives up later would stay here.
                if keep_only_bpf().is_err() {
                    return;
                }
                while !stop.load(Ordering::Acquire) {
                    // The answer is when the next call is due.
                    let mut words = [0];
                    if commands.call(Command::Tick, &mut words).is_err() {
                        return;
                    }
                    waiter.wait_until(words[0]);
                }
            })
            .map_err(LiveError::system("make the timer thread"))?;
        Ok(Self {
            should_stop,
            notifier,
            thread: Some(thread),
        })
    }
}

/// Drops all capabilities of the calling thread but the one to call loaded programs, for good.
fn keep_only_bpf() -> rustix::io::Result<()> {
    let has = capabilities(None)?;
    set_no_new_privs(true)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: has.effective & CapabilitySet::BPF,
            permitted: has.permitted & CapabilitySet::BPF,
            inheritable: CapabilitySet::empty(),
        },
    )
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.should_stop.store(true, Ordering::Release);
        self.notifier.notify();
        if let Some(thread) = self.thread.take() {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}
