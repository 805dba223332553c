//! Switches: at the end of an instant each CPU switches to its assigned job if that differs from the job that
//! it ran before the instant.

use shiftwork_model::{CpuId, Instant, JobId, RecordKind, Recorder, Span, TaskId};

use super::Engine;
use crate::state::{Stage, TaskKind};

impl<R: Recorder> Engine<'_, R> {
    /// Carries out the net changes of an instant, in the order of CPUs. First all jobs that have to stop do,
    /// since a job may migrate from one CPU to another.
    pub(crate) fn commit(&mut self, now: Instant) {
        match self.touched[..] {
            [] => return,
            [cpu] => {
                self.vacate(now, cpu);
                self.occupy(now, cpu);
            }
            _ => self.commit_several(now),
        }
        self.touched.clear();
        if self.reserve.is_some() {
            self.plan_rare();
        }
    }

    #[inline(never)]
    fn commit_several(&mut self, now: Instant) {
        self.touched.sort_unstable();
        for at in 0..self.touched.len() {
            self.vacate(now, self.touched[at]);
        }
        if self.is_structured() {
            self.sort_by_begin(now);
        }
        for at in 0..self.touched.len() {
            self.occupy(now, self.touched[at]);
        }
    }

    /// Stops an incomplete job that has to leave the CPU.
    #[inline(always)]
    fn vacate(&mut self, now: Instant, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        state.touched = false;
        let Some(job) = state.running else { return };
        let task = &mut self.tasks[job.task.index()];
        if task.cpu != Some(cpu) || state.assigned == Some(job.task) {
            return;
        }
        task.cpu = None;
        task.interrupted = true;
        if task.kind == TaskKind::Plain {
            let undone = state.stop.late_since(now.max(state.free_at));
            task.remaining -= state.granted.saturating_sub(undone);
        } else {
            self.set_aside(now, cpu, job.task);
        }
    }

    /// Charges the task for its execution on the CPU, which it leaves.
    #[inline(never)]
    fn set_aside(&mut self, now: Instant, cpu: CpuId, id: TaskId) {
        let done = self.take_done(now, cpu);
        self.consume(id, done);
        if let Some(speeds) = &mut self.speeds {
            speeds.put_aside(id, self.cpus[cpu.index()].begun);
        }
    }

    /// Charges the task, if it runs, for its execution until now, and leaves it running.
    pub(crate) fn charge_so_far(&mut self, now: Instant, id: TaskId) {
        let Some(cpu) = self.tasks[id.index()].cpu else {
            return;
        };
        let done = self.take_done(now, cpu);
        self.consume(id, done);
    }

    /// Makes the CPU run its assigned task.
    #[inline(always)]
    fn occupy(&mut self, now: Instant, cpu: CpuId) {
        match self.cpus[cpu.index()].assigned {
            None => self.idle(now, cpu),
            Some(task) => self.go_on(now, cpu, task),
        }
    }

    /// Makes the CPU idle.
    #[inline(always)]
    fn idle(&mut self, now: Instant, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if state.stop != Instant::NEVER {
            state.stop = Instant::NEVER;
            self.stops.set(cpu.index(), Instant::NEVER);
        }
        let from = state.running.take();
        if from.is_some() {
            self.switched(now, cpu, from, None);
        }
    }

    /// Makes the CPU run the task's current job.
    #[inline(always)]
    fn go_on(&mut self, now: Instant, cpu: CpuId, id: TaskId) {
        let task = &self.tasks[id.index()];
        let starts = task.cpu != Some(cpu);
        let to = Some(JobId {
            task: id,
            number: task.number,
        });
        let state = &mut self.cpus[cpu.index()];
        let from = state.running;
        if from != to {
            state.running = to;
            self.switched(now, cpu, from, to);
        }
        if starts {
            self.start(now, cpu, id);
        }
    }

    /// Records that the CPU runs another job than before, and charges the switch.
    #[inline(always)]
    fn switched(&mut self, now: Instant, cpu: CpuId, from: Option<JobId>, to: Option<JobId>) {
        if self.costs.is_some() {
            self.record_interrupted(now, cpu, from);
        }
        self.record(now, RecordKind::Switched { cpu, from, to });
        if self.reserve.is_some() {
            self.note_busy(now, cpu, from.is_some(), to.is_some());
        }
        if self.costs.is_some() {
            self.charge_switch(now, cpu, (from, to));
        }
    }

    /// Starts or resumes the task's job on this CPU.
    #[inline(always)]
    fn start(&mut self, now: Instant, cpu: CpuId, id: TaskId) {
        debug_assert_eq!(self.tasks[id.index()].cpu, None, "{id:?} runs on two CPUs");
        let stage = self.tasks[id.index()].stage;
        debug_assert!(
            matches!(stage, Stage::Ready | Stage::Spinning),
            "the policy runs {id:?}, which is not ready: {stage:?}"
        );
        if self.costs.is_some() {
            self.charge_caches(cpu, id);
        }
        let state = &mut self.tasks[id.index()];
        state.cpu = Some(cpu);
        if stage == Stage::Spinning {
            let on = &mut self.cpus[cpu.index()];
            (on.granted, on.stop) = (Span::ZERO, Instant::NEVER);
            self.stops.set(cpu.index(), Instant::NEVER);
            return;
        }
        let mut granted = state.remaining;
        let mut lasts = granted;
        if state.kind == TaskKind::General {
            if let Some(server) = &self.plans[id.index()].server {
                granted = granted.min(server.left());
            }
            lasts = self.lasts(cpu, id, granted);
        }
        self.grant(now, cpu, granted, lasts);
    }

    /// The job that runs on the CPU may execute this much work from now on, which takes it so long.
    #[inline(always)]
    pub(crate) fn grant(&mut self, now: Instant, cpu: CpuId, work: Span, lasts: Span) {
        let on = &mut self.cpus[cpu.index()];
        on.interrupted += on.free_at.late_since(now);
        on.granted = work;
        on.stop = now.max(on.free_at) + lasts;
        self.stops.set(cpu.index(), on.stop);
    }
}
