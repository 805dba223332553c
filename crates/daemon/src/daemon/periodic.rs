//! What the daemon does each second: it finds threads that ended unnoticed, makes up for lost events, and writes metrics.

use shiftwork_model::{Instant, Span, TaskId};

use super::{Daemon, PollOutcome};
use crate::metrics::{self, Totals};
use crate::problems::Subject;

/// Interval between two rounds.
const INTERVAL: Span = Span::from_s(1);

impl Daemon {
    pub(super) fn run_periodic(&mut self, now: Instant, outcome: &mut PollOutcome) {
        if self.periodic_at + INTERVAL > now {
            return;
        }
        self.periodic_at = now;
        self.measure_loads(now);
        self.make_up_for_lost_events(now, outcome);
        for task in self
            .observations
            .expire(now, |it| self.threads.is_alive(it))
        {
            self.end_observing(task);
        }
        self.check_observed_credentials();
        let waiting = self.table.tasks().filter(|(_, it)| !it.is_served);
        let gone = waiting.filter(|(_, it)| !self.threads.is_alive(&it.thread));
        for task in gone.map(|(task, _)| task).collect::<Vec<TaskId>>() {
            self.remove_task(task);
        }
        self.write_metrics(now, outcome);
    }

    /// After events were lost, tasks may have left, or asked for other CPUs, and CPUs may have gone or come without the
    /// daemon's knowledge.
    fn make_up_for_lost_events(&mut self, now: Instant, outcome: &mut PollOutcome) {
        let lost = self.backend.events_lost();
        let since = lost.saturating_sub(std::mem::replace(&mut self.lost, lost));
        if since == 0 {
            return;
        }
        outcome.warnings.push(format!(
            "{since} scheduling events were lost: statistics and explanations may be wrong; tasks and CPUs are checked"
        ));
        self.credentials
            .check_affinities(self.table.tasks().count());
        let Some(online) = self.backend.online() else {
            return;
        };
        let cpus = self.table.rules().cpus;
        for cpu in cpus.iter() {
            let notices = match online.contains(cpu) {
                true => self.table.cpu_online(now, cpu, &mut *self.backend),
                false => self.table.cpu_offline(now, cpu, &mut *self.backend),
            };
            outcome.notices.extend(notices);
        }
    }

    fn write_metrics(&mut self, now: Instant, outcome: &mut PollOutcome) {
        let Some(path) = self.config.metrics.clone() else {
            return;
        };
        let status = self.status(0, now);
        let totals = Totals {
            problems: self.problems.count(),
            reservations_lost: self.reservations_lost,
            loans: self.backend.loans_made(),
        };
        let files = self.state.files();
        let written = metrics::write(&**files, &path, &status, &self.statistics, totals);
        let written =
            written.map_err(|error| format!("{} cannot be written: {error}", path.display()));
        let line = self.problems.note(Subject::Metrics, written);
        outcome.warnings.extend(line);
    }
}
