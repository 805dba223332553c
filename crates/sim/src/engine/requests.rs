//! Requests to Linux's cpusets, under the policies that model Linux.

use shiftwork_machine::RequestRefused;
use shiftwork_model::{Affinity, Change, Instant, Recorder, TaskId};

use super::Engine;
use crate::state::changed_attributes;

/// The change that a granted request makes.
pub(crate) enum Granted {
    /// The requested change.
    AsAsked,
    /// New affinities of these tasks.
    Affinities(Vec<(TaskId, Affinity)>),
}

impl<R: Recorder> Engine<'_, R> {
    /// Requests the change; the error is the reason for a refusal. Under policies that do not model Linux, and
    /// for changes of priorities, which `SCHED_DEADLINE` does not have, every request is granted.
    pub(crate) fn ask(&mut self, now: Instant, change: &Change) -> Result<Granted, String> {
        if self.actions.cpusets.is_none() {
            return Ok(Granted::AsAsked);
        }
        let until = match change {
            Change::Leave(task) => self.zero_lag(now, *task),
            _ => now,
        };
        self.ask_cpusets(now, change, until)
            .map_err(|refused| refused.to_string())
    }

    /// `until`: the end of the time for which a departing server counts.
    fn ask_cpusets(
        &mut self,
        now: Instant,
        change: &Change,
        until: Instant,
    ) -> Result<Granted, RequestRefused> {
        let Some(cpusets) = &mut self.actions.cpusets else {
            return Ok(Granted::AsAsked);
        };
        cpusets.advance(now);
        match change {
            Change::Enter(task) => cpusets.enter(*task)?,
            Change::Leave(task) => cpusets.leave(*task, until)?,
            Change::SetAttributes {
                task,
                cost,
                period,
                deadline,
            } => {
                let old = self.tasks[task.index()].attributes;
                let new = changed_attributes(old, [*cost, *period, *deadline]);
                cpusets.set_attributes(*task, new)?;
            }
            Change::SetAffinity(task, to) => {
                let cut = cpusets.set_affinity(*task, to)?;
                return Ok(Granted::Affinities(vec![(*task, cut)]));
            }
            Change::Move(task, cluster) => {
                let whole = cpusets.move_to(*task, *cluster)?;
                return Ok(Granted::Affinities(vec![(*task, whole)]));
            }
            Change::SetClusters(clusters) => {
                return cpusets.set_clusters(clusters).map(Granted::Affinities);
            }
            Change::SetReserve(reserve) => cpusets.set_reserve(*reserve)?,
            Change::CpuOffline(cpu) => cpusets.cpu_offline(*cpu)?,
            Change::CpuOnline(cpu) => cpusets.cpu_online(*cpu)?,
            Change::SetPriority(..) => {}
        }
        Ok(Granted::AsAsked)
    }

    /// The zero-lag time of the task's server if it leaves now.
    fn zero_lag(&mut self, now: Instant, id: TaskId) -> Instant {
        self.charge_so_far(now, id);
        let server = self.plans[id.index()].server.as_ref();
        server
            .and_then(shiftwork_machine::Server::zero_lag)
            .unwrap_or(now)
    }
}
