//! Time for kernels where BPF has no timers (PREEMPT_RT): a thread that sleeps until something is due
//! and then lets the scheduler do it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::LiveError;
use crate::sys::bpf::{Command, Loaded, TickNotifier};
use crate::sys::thread::{Class, set_class};

/// Above ordinary real-time threads, below the kernel's own watchdogs.
const PRIORITY: u8 = 90;

/// The thread, while this exists.
pub(crate) struct Ticker {
    should_stop: Arc<AtomicBool>,
    notifier: TickNotifier,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts it.
    pub(crate) fn start(loaded: &Loaded, tick: Command) -> Result<Self, LiveError> {
        let should_stop = Arc::new(AtomicBool::new(false));
        let notifier = loaded
            .tick_notifier()
            .map_err(LiveError::system("listen to the scheduler in the kernel"))?;
        let (handle, stop) = (notifier.clone(), Arc::clone(&should_stop));
        let thread = std::thread::Builder::new()
            .name(String::from("ticker"))
            .spawn(move || {
                // Without the class it is late more often, and still right.
                let _ = set_class(None, Class::Fifo(PRIORITY));
                let Ok(waiter) = handle.waiter() else { return };
                while !stop.load(Ordering::Acquire) {
                    // It answers when it is due again.
                    let mut words = [0];
                    if tick.call(&mut words).is_err() {
                        return;
                    }
                    waiter.wait_until(words[0]);
                }
            })
            .map_err(LiveError::system("make a thread that ticks"))?;
        Ok(Self {
            should_stop,
            notifier,
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.should_stop.store(true, Ordering::Release);
        self.notifier.notify();
        if let Some(thread) = self.thread.take() {
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}
