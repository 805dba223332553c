//! A machine without threads: simulated kernel operations, and the calls of an agent.

use std::io;

use rustix::thread::Pid;
use shiftwork_model::{CpuId, OnOverrun, Priority, Span};

use super::*;
use crate::event::Kind;
use crate::fifo::thread_handshake::ThreadState;
use crate::machine::Excess;
use crate::sys::thread::Class;
use crate::work::Effects;

/// Numbers of the simulated threads begin here: no thread of this process has such a number.
pub(super) const THREADS: i32 = 2_000_000_000;

/// Simulated kernel operations, which are recorded.
#[derive(Debug, Default)]
pub(super) struct Fake {
    pub(super) now_ns: u64,
    /// By thread: its CPU time, its affinity, and its level; 0 is an ordinary thread.
    pub(super) ran_ns: [u64; 4],
    pub(super) cpu: [Option<CpuSet>; 4],
    pub(super) level: [u8; 4],
    /// Operations on this thread fail, with this error.
    pub(super) failure: Option<(usize, i32)>,
    pub(super) calls: Vec<String>,
}

impl Fake {
    pub(super) fn index_of(&self, thread: Pid) -> io::Result<usize> {
        let index = (thread.as_raw_nonzero().get() - THREADS) as usize;
        match self.failure {
            Some((about, error)) if about == index => Err(io::Error::from_raw_os_error(error)),
            _ => Ok(index),
        }
    }
}

impl ThreadOps for Fake {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn ran_ns(&mut self, thread: Pid) -> io::Result<u64> {
        Ok(self.ran_ns[self.index_of(thread)?])
    }

    fn bind(&mut self, thread: Pid, cpus: &CpuSet) -> io::Result<()> {
        let index = self.index_of(thread)?;
        self.cpu[index] = Some(*cpus);
        self.calls.push(format!("bind {} {cpus}", name(index)));
        Ok(())
    }

    fn set_class(&mut self, thread: Pid, class: Class) -> io::Result<()> {
        let index = self.index_of(thread)?;
        self.level[index] = match class {
            Class::Ordinary | Class::Idle => 0,
            Class::Fifo(level) | Class::FifoAlone(level) => level,
        };
        let level = self.level[index];
        self.calls.push(format!("level {} {level}", name(index)));
        Ok(())
    }

    fn block(&mut self, blocker: usize, is_blocked: bool) {
        self.calls.push(format!("block {blocker} {is_blocked}"));
    }
}

pub(super) fn name(task: usize) -> String {
    ["a", "b", "c", "d"][task].to_owned()
}

pub(super) fn cpus(list: &[usize]) -> CpuSet {
    list.iter().copied().map(CpuId::from_index).collect()
}

/// A machine of CPUs 0 and 1, with four tasks that may use both.
pub(super) struct Bench {
    pub(super) fifo: FifoEnactor<Fake>,
    pub(super) epochs: [u32; 4],
    pub(super) stops: [u32; 4],
}

impl Bench {
    pub(super) fn new() -> Self {
        let (shared, receivers) = SharedState::new(&cpus(&[0, 1]), 4);
        let names = (0..4).map(name).collect();
        Self {
            fifo: FifoEnactor::new(Arc::new(shared), Fake::default(), receivers, names),
            epochs: [0; 4],
            stops: [0; 4],
        }
    }

    /// With one admitted task per start CPU, and without pending reports.
    pub(super) fn with(starts: &[usize]) -> Self {
        let mut bench = Self::new();
        for (task, &start) in starts.iter().enumerate() {
            assert_eq!(bench.admit(task, start).unwrap(), Some(true));
        }
        bench.clear_log();
        bench
    }

    /// Drops the calls and reports so far.
    pub(super) fn clear_log(&mut self) {
        self.calls();
        self.reports();
    }

    pub(super) fn parameters(task: usize, start: usize) -> Parameters {
        Parameters {
            thread: Pid::from_raw(THREADS + task as i32).unwrap(),
            cpus: cpus(&[0, 1]),
            cost: Span::from_ms(1),
            period: Span::from_ms(10),
            deadline: Span::from_ms(10),
            on_overrun: OnOverrun::Continue,
            excess: Excess::in_run(OnOverrun::Continue, false),
            priority: Priority::new(1).unwrap(),
            follows: true,
            start: Some(CpuId::from_index(start)),
        }
    }

    pub(super) fn admit(&mut self, task: usize, start: usize) -> Result<Option<bool>, LiveError> {
        let of = Self::parameters(task, start);
        let admitted = self.fifo.admit(TaskId::from_index(task), &of)?;
        self.epochs[task] += u32::from(admitted.is_some());
        self.stops[task] = 0;
        Ok(admitted)
    }

    pub(super) fn dismiss(&mut self, task: usize) {
        self.fifo.dismiss(TaskId::from_index(task)).unwrap();
    }

    /// Fills slots with tasks, as an agent that knows all of their stops.
    pub(super) fn assign(&mut self, slots: &[(usize, Option<usize>)]) {
        let slots: Vec<_> = slots
            .iter()
            .map(|&(cpu, task)| Slot {
                cpu: CpuId::from_index(cpu),
                task: task.map(TaskId::from_index),
                stops: task.map_or(0, |task| self.stops[task]),
            })
            .collect();
        self.fifo.assign(&slots).unwrap();
    }

    pub(super) fn send(&mut self, task: usize, kind: Kind, cpu: usize, value: u64) {
        let event = Event {
            at: self.fifo.controller.ops.now_ns,
            value,
            task: self.epochs[task],
            cpu: Some(cpu as u16),
            kind,
        };
        self.fifo.controller.on_thread_event(task, event);
    }

    /// The thread reports that it runs, on this CPU.
    pub(super) fn report_running(&mut self, task: usize, cpu: usize) {
        assert_eq!(self.state(task), ThreadState::ManagedInJob);
        let ran_ns = self.fifo.controller.ops.ran_ns[task];
        self.send(task, Kind::Running, cpu, ran_ns);
    }

    /// The thread stops by itself.
    pub(super) fn stops(&mut self, task: usize, cpu: usize, kind: Kind, value: u64) {
        self.fifo.shared.handshakes[task].end_job(kind, value, Effects::default());
        let ran_ns = self.fifo.controller.ops.ran_ns[task];
        self.send(task, Kind::Stopped, cpu, ran_ns);
        self.send(task, kind, cpu, value);
        self.stops[task] += u32::from(kind != Kind::LastJob);
    }

    /// Advances the time; these tasks run meanwhile.
    pub(super) fn pass(&mut self, ns: u64, running: &[usize]) {
        self.fifo.controller.ops.now_ns += ns;
        for &task in running {
            self.fifo.controller.ops.ran_ns[task] += ns;
        }
    }

    pub(super) fn state(&self, task: usize) -> ThreadState {
        self.fifo.shared.handshakes[task].state()
    }

    /// The operations since the last call.
    pub(super) fn calls(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fifo.controller.ops.calls)
    }

    /// The reports since the last call, as `INSTANT KIND TASK CPU VALUE`.
    pub(super) fn reports(&mut self) -> Vec<String> {
        let mut reports = Vec::new();
        self.fifo.take_reports(&mut reports).unwrap();
        let text = |event: &Event| {
            let task = event.task.checked_sub(1);
            let task = task.map_or(String::from("-"), |task| name(task as usize));
            let cpu = event.cpu.map_or(String::from("-"), |cpu| cpu.to_string());
            format!("{} {:?} {task} {cpu} {}", event.at, event.kind, event.value)
        };
        reports.iter().map(text).collect()
    }
}

/// The event by which the thread of the first task reports, in its first admission, that it runs on CPU 0.
pub(super) fn running_event(at: u64) -> Event {
    Event {
        at,
        value: 0,
        task: 1,
        cpu: Some(0),
        kind: Kind::Running,
    }
}
