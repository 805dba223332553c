//! Time for kernels where BPF has no timers (PREEMPT_RT): a thread that sleeps until something is due
//! and then lets the scheduler do it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::LiveError;
use crate::sys::bpf::{Alarm, Command, Loaded};
use crate::sys::thread::{Class, set_class};

/// Above ordinary real-time threads, below the kernel's own watchdogs.
const PRIORITY: u8 = 90;

/// The thread, while this exists.
pub(crate) struct Ticker {
    over: Arc<AtomicBool>,
    alarm: Alarm,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts it.
    pub(crate) fn start(loaded: &Loaded, tick: Command) -> Result<Self, LiveError> {
        let over = Arc::new(AtomicBool::new(false));
        let alarm = loaded
            .alarm()
            .map_err(LiveError::system("listen to the scheduler in the kernel"))?;
        let (heard, is_over) = (alarm.clone(), Arc::clone(&over));
        let thread = std::thread::Builder::new()
            .name(String::from("ticker"))
            .spawn(move || {
                // Without the class it is late more often, and still right.
                let _ = set_class(None, Class::Fifo(PRIORITY));
                let Ok(listener) = heard.listen() else { return };
                while !is_over.load(Ordering::Acquire) {
                    // It answers when it is due again.
                    let mut words = [0];
                    if tick.call(&mut words).is_err() {
                        return;
                    }
                    listener.wait_until(words[0]);
                }
            })
            .map_err(LiveError::system("make a thread that ticks"))?;
        Ok(Self {
            over,
            alarm,
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.alarm.ring();
        if let Some(thread) = self.thread.take() {
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}
