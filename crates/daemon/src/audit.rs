//! The audit log: who was admitted, changed, refused, gave back or lost a reservation, and why. One line of JSON each.
//!
//! A user can cause thousands of lines in a second, and the daemon writes its log synchronously: of each user only some are
//! logged, and how many were not. No line is longer than about a kilobyte.

use serde::Serialize;
use shiftwork_client::Call;
use shiftwork_model::{Instant, TaskId};

use crate::log_rate_limit::LogRateLimit;
use crate::reservation_table::{ReservedTask, TaskNotice};
use crate::socket::Peer;

/// Maximum number of lines about requests and tasks of one user in a second.
const LINES_MAX: u32 = 20;

/// Maximum length of a reason in bytes.
const REASON_MAX: usize = 400;

/// Maximum length of other texts, which callers may choose.
const TEXT_MAX: usize = 200;

/// One line. Absent: does not apply, or is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct AuditLine {
    event: &'static str,
    /// The user that requested it, or whose task it is.
    uid: u32,
    /// The process that requested it.
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_overrun: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Number of lines about this user that were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<u64>,
}

impl AuditLine {
    /// The line of a request; `None` for one that changes no reservation. Its event is the method's, once it is carried out.
    pub(crate) fn of_call(peer: &Peer<'_>, call: &Call) -> Option<Self> {
        let (event, reservation) = match call {
            Call::Admit(request) => ("admitted", Some(&request.reservation)),
            Call::Change(request) => ("changed", Some(&request.reservation)),
            Call::Dismiss(_) => ("released", None),
            _ => return None,
        };
        let line = Self {
            event,
            uid: peer.user,
            caller: peer.process,
            ..Self::default()
        };
        let line = match call {
            Call::Admit(request) => Self {
                tid: request.thread.or(peer.process),
                name: Some(shortened(&request.name, TEXT_MAX)),
                ..line
            },
            Call::Change(request) => line.of_number(request.task),
            Call::Dismiss(request) => line.of_number(request.task),
            _ => line,
        };
        Some(match reservation {
            None => line,
            Some(it) => Self {
                cost_ns: Some(it.cost.as_ns()),
                period_ns: Some(it.period.as_ns()),
                deadline_ns: it.deadline.map(shiftwork_model::Span::as_ns),
                cpus: it.cpus.as_ref().map(|cpus| shortened(cpus, TEXT_MAX)),
                on_overrun: it.on_overrun.map(|mode| format!("{mode:?}").to_lowercase()),
                ..line
            },
        })
    }

    /// The request was refused.
    pub(crate) fn refused(self, reason: &str) -> Self {
        Self {
            event: "refused",
            reason: Some(shortened(reason, REASON_MAX)),
            ..self
        }
    }

    /// The request was carried out for this task, which has this reservation now, or had it.
    pub(crate) fn about(self, task: TaskId, reserved: &ReservedTask) -> Self {
        let it = &reserved.reservation;
        Self {
            pid: Some(reserved.thread.process),
            tid: Some(reserved.thread.thread),
            name: Some(shortened(&reserved.name, TEXT_MAX)),
            cost_ns: Some(it.cost.as_ns()),
            period_ns: Some(it.period.as_ns()),
            deadline_ns: Some(it.deadline.as_ns()),
            cpus: Some(shortened(&it.cpus.to_string(), TEXT_MAX)),
            on_overrun: Some(format!("{:?}", it.on_overrun).to_lowercase()),
            ..self.of_number(task.index() as u32)
        }
    }

    /// What happened to a task without a request of its owner.
    pub(crate) fn of_notice(notice: &TaskNotice) -> Self {
        let line = Self {
            event: notice.kind.name(),
            uid: notice.of.owner.user,
            reason: Some(shortened(&notice.what, REASON_MAX)),
            ..Self::default()
        };
        line.about(notice.task, &notice.of)
    }

    /// The task's thread has ended.
    pub(crate) fn ended(task: TaskId, reserved: &ReservedTask) -> Self {
        let line = Self {
            event: "ended",
            uid: reserved.owner.user,
            ..Self::default()
        };
        line.about(task, reserved)
    }

    fn of_number(self, task: u32) -> Self {
        Self {
            task: Some(task),
            ..self
        }
    }
}

/// The lines that are not yet logged.
#[derive(Debug)]
pub(crate) struct AuditLog {
    limit: LogRateLimit<u32>,
    lines: Vec<String>,
}

impl Default for AuditLog {
    fn default() -> Self {
        Self {
            limit: LogRateLimit::new(LINES_MAX),
            lines: Vec::new(),
        }
    }
}

impl AuditLog {
    /// Adds a line that `account` caused.
    pub(crate) fn note(&mut self, account: u32, line: &AuditLine, now: Instant) {
        if self.limit.allow(account, now) {
            self.push(line);
        }
    }

    /// The lines since the last call, with the numbers of those that were left out.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<String> {
        for (account, count) in self.limit.take_suppressed(now) {
            self.push(&AuditLine {
                event: "suppressed",
                uid: account,
                suppressed: Some(count),
                ..AuditLine::default()
            });
        }
        std::mem::take(&mut self.lines)
    }

    fn push(&mut self, line: &AuditLine) {
        let text = serde_json::to_string(line);
        self.lines.extend(text.map(|text| format!("audit: {text}")));
    }
}

/// At most so many bytes of the text.
fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let is_boundary = |&at: &usize| text.is_char_boundary(at);
    let end = (0..=bytes_max).rev().find(is_boundary).unwrap_or(0);
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests {
    use shiftwork_model::Span;

    use super::*;

    #[test]
    fn lines_of_a_user_are_limited_in_number_and_length() {
        let mut log = AuditLog::default();
        let line = AuditLine {
            uid: 7,
            name: Some("\u{1}".repeat(64)),
            cpus: Some(shortened(&"é".repeat(9_000), TEXT_MAX)),
            ..AuditLine::default()
        };
        let line = line.refused(&"\"".repeat(9_000));
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        for call in 0..1_000 {
            log.note(7, &line, at(call % 900));
        }
        log.note(8, &line, at(900));
        let lines = log.take(at(900));
        assert_eq!(lines.len(), 21);
        assert!(
            lines
                .iter()
                .all(|line| line.len() < 2_000 && !line.contains('\n'))
        );
        let left_out = r#"audit: {"event":"suppressed","uid":7,"suppressed":980}"#;
        assert_eq!(log.take(at(1_000)), [left_out]);
    }
}
