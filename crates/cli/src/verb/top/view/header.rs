//! The state of the scheduler, and what is wrong.

use ratatui::text::Line;
use shiftwork_client::{State as ReservationState, Status};
use shiftwork_model::{Instant, Span};

use super::super::state::State;
use super::text::{Theme, bar, line};
use crate::output::plural;
use crate::table::cut;
use crate::verb::status::capacity::{Capacity, all_cpus};

/// Three lines: the scheduler, its threads, and their CPU time.
pub fn lines(status: &Status, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let capacity = Capacity::of(status);
    let up = status.now.late_since(status.since);
    let missed = match status.misses {
        0 => "no deadline missed".to_owned(),
        misses => format!("{} missed !", plural(misses as usize, "deadline")),
    };
    let free = capacity.free.map_or_else(String::new, |free| {
        format!(", {free:.2} free for one thread")
    });
    let used = capacity.used / capacity.reserved.max(f64::MIN_POSITIVE);
    let shown = [
        format!(
            "{} on CPUs {} for {}, guarantee {}",
            status.policy,
            all_cpus(status),
            duration(up),
            status.guarantee
        ),
        format!("{}, {missed}", plural(status.tasks.len(), "thread")),
        format!(
            "reserved {:.2} of {:.2} CPUs{free}",
            capacity.reserved, capacity.available
        ),
        format!(
            "used now {:.2} {} {:.0}% of what is reserved",
            capacity.used,
            bar(used, 20),
            used * 100.0
        ),
    ];
    let [scheduler, threads, reserved, used] = shown.map(|text| cut(&text, width));
    let missed_style = match status.misses {
        0 => theme.faint(),
        _ => theme.alert(),
    };
    vec![
        line(&scheduler, theme.strong()),
        line(&threads, missed_style),
        line(&reserved, theme.faint()),
        line(&used, theme.faint()),
    ]
}

/// The first sentences of what is wrong, each in a line.
pub fn alert_lines(
    state: &State,
    now: Instant,
    count: usize,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let mut alerts = alerts(state, now);
    let more = alerts.len().saturating_sub(count);
    if more > 0 {
        alerts.truncate(count);
        if let Some(last) = alerts.last_mut().filter(|_| count > 1) {
            *last = format!("{} more, which key c shows", more + 1);
        }
    }
    let mut lines: Vec<Line<'static>> = alerts
        .iter()
        .map(|alert| line(&cut(&format!("! {alert}"), width), theme.alert()))
        .collect();
    if state.is_paused {
        lines.insert(0, line(&cut("paused; p goes on", width), theme.warning()));
    }
    lines
}

/// What is wrong, the most urgent first.
pub fn alerts(state: &State, now: Instant) -> Vec<String> {
    let status = &state.status;
    let mut alerts = Vec::new();
    if let Some((since, reason)) = &state.lost {
        alerts.push(format!(
            "connection lost {} ago, trying again: {reason}",
            duration(now.late_since(*since))
        ));
    }
    if let Some(waited) = state.waiting(now) {
        alerts.push(format!(
            "the daemon has not answered for {}",
            duration(waited)
        ));
    }
    let demoted = status.tasks.iter();
    let demoted = demoted.filter(|it| it.state == ReservationState::Demoted);
    let names: Vec<&str> = demoted.map(|it| it.name.as_str()).collect();
    if !names.is_empty() {
        let lost = plural(names.len(), "reservation");
        alerts.push(format!("{lost} lost: {}", names.join(", ")));
    }
    let offline = status.cpus.iter().filter(|it| !it.online);
    let offline: Vec<String> = offline.map(|it| it.cpu.to_string()).collect();
    if !offline.is_empty() {
        alerts.push(format!("offline: CPU {}", offline.join(", ")));
    }
    alerts.extend(status.problems.iter().cloned());
    if status.lost > 0 {
        let lost = plural(status.lost as usize, "scheduling event");
        alerts.push(format!("{lost} lost: the statistics are incomplete"));
    }
    alerts
}

/// In the two largest units: `2h 3min`.
pub fn duration(time: Span) -> String {
    let seconds = time.as_ns() / 1_000_000_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}min {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}
