//! Threads of this process that execute the orders of a test.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet as RawCpuSet, gettid, sched_setaffinity, sched_yield};
use shiftwork_model::CpuSet;

use crate::faults::compute;

/// What a worker does until it gets another order.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Doing {
    /// Computes for 300 us, sleeps for 3 ms.
    Naps,
    /// Computes.
    Hogs,
    /// Computes for 300 us, yields.
    Yields,
    /// Renames a file to and fro, see [`Worker::renames`].
    Renames,
    /// Nothing any more.
    Ends,
}

#[derive(Default)]
struct Orders {
    doing: AtomicU32,
    /// CPUs that it is to bind itself to, once; 0: none.
    bind: AtomicU64,
}

/// A thread of this process. It ends at the latest when this is dropped.
pub struct Worker {
    pub id: Pid,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub fn start(doing: Doing) -> Self {
        Self::start_with(doing, Default::default())
    }

    fn start_with(doing: Doing, names: [PathBuf; 2]) -> Self {
        let orders = Arc::new(Orders::default());
        orders.doing.store(doing as u32, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel();
        let heard = Arc::clone(&orders);
        let thread = thread::spawn(move || {
            // The thread that started it waits for this.
            let _ = sender.send(gettid());
            work(&heard, names);
        });
        Self {
            id: receiver.recv().unwrap(),
            orders,
            thread: Some(thread),
        }
    }

    /// Renames a file to and fro.
    pub fn renames(names: [PathBuf; 2]) -> Self {
        Self::start_with(Doing::Renames, names)
    }

    pub fn does(&self, doing: Doing) {
        self.orders.doing.store(doing as u32, Ordering::Relaxed);
    }

    pub fn binds_itself(&self, cpus: u64) {
        self.orders.bind.store(cpus, Ordering::Relaxed);
    }

    /// Waits until it is gone.
    pub fn end(&mut self) {
        self.does(Doing::Ends);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub fn number(&self) -> u32 {
        self.id.as_raw_nonzero().get().cast_unsigned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

fn work(orders: &Orders, mut names: [PathBuf; 2]) {
    loop {
        let doing = orders.doing.load(Ordering::Relaxed);
        if doing == Doing::Ends as u32 {
            return;
        }
        let cpus = orders.bind.swap(0, Ordering::Relaxed);
        if cpus != 0 {
            let mut raw = RawCpuSet::new();
            for cpu in CpuSet::from_bits(cpus).iter() {
                raw.set(cpu.index());
            }
            sched_setaffinity(None, &raw).unwrap();
        }
        if doing == Doing::Renames as u32 {
            fs::rename(&names[0], &names[1]).unwrap();
            names.swap(0, 1);
            continue;
        }
        compute(Duration::from_micros(300));
        if doing == Doing::Naps as u32 {
            thread::sleep(Duration::from_millis(3));
        } else if doing == Doing::Yields as u32 {
            sched_yield();
        }
    }
}
