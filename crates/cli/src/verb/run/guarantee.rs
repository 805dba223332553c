//! Whether what admission promised was kept, and if not what the likely cause is.

use serde_json::{Value, json};
use shiftwork_analysis::admission::{Guarantee, Verdict as Admitted};
use shiftwork_model::{CpuId, Instant, RecordKind, Span, TaskSet};
use shiftwork_report::span;
use shiftwork_trace::replay::{DisagreementKind, Verdict};
use shiftwork_trace::{ReactionStatistics, Records};
use shiftwork_verbs::admission::Admission;

use super::measured::Measured;
use crate::verb::outputs::Finished;

/// What became of the guarantee of a run.
pub struct Kept {
    promised: &'static str,
    is_hard: bool,
    misses: u64,
    cause: Option<String>,
}

impl Kept {
    /// Looks at what was promised, what was missed, and what the machine did.
    pub fn of(
        admission: &Admission,
        set: &TaskSet,
        run: &Finished,
        measured: &Measured,
        window: Span,
    ) -> Self {
        let misses = run.summary.deadline_misses;
        let evidence = Evidence {
            set,
            records: run.all_records(),
            horizon: run.summary.horizon,
            measured,
            window,
        };
        let promised = match admission.verdict() {
            Admitted::Admitted(guarantee) => Some(guarantee),
            Admitted::Refused => None,
        };
        Self {
            promised: promised.map_or("none", Guarantee::name),
            is_hard: promised == Some(Guarantee::Hard),
            misses,
            cause: (misses > 0).then(|| evidence.cause()).flatten(),
        }
    }

    /// Whether deadlines were promised and missed.
    pub const fn is_broken(&self) -> bool {
        self.is_hard && self.misses > 0
    }

    /// What to say before anything else; `None` if no deadline was missed.
    pub fn headline(&self) -> Option<String> {
        let missed = match self.misses {
            0 => return None,
            1 => "1 deadline missed".to_owned(),
            misses => format!("{misses} deadlines missed"),
        };
        let said = match (self.is_hard, self.promised) {
            (true, _) => format!("GUARANTEE BROKEN: {missed}"),
            (false, "none") => format!("{missed}, no guarantee was given"),
            (false, promised) => format!("{missed}, which a guarantee of {promised} allows"),
        };
        Some(match &self.cause {
            Some(cause) => format!("{said}; likely cause: {cause}"),
            None if self.is_hard => {
                format!("{said}; no cause was found, --explain shows where the time went")
            }
            None => said,
        })
    }

    /// The value of the key `guarantee`.
    pub fn to_json(&self) -> Value {
        json!({
            "promised": self.promised,
            "kept": !self.is_broken(),
            "misses": self.misses,
            "likely_cause": self.cause,
        })
    }
}

/// What may explain missed deadlines.
struct Evidence<'a> {
    set: &'a TaskSet,
    records: Records<'a>,
    horizon: Instant,
    measured: &'a Measured,
    window: Span,
}

impl Evidence<'_> {
    /// The first of the known causes for which there is evidence, those first that make the others.
    fn cause(&self) -> Option<String> {
        let noise = || {
            self.noisy("reaction", self.measured.reaction.as_ref())
                .or_else(|| self.noisy("timer", self.measured.lateness.as_ref()))
        };
        let verdict = self.measured.verdict();
        noise()
            .or_else(|| stall(verdict?))
            .or_else(|| self.cpu_away())
            .or_else(|| other_set(verdict?))
            .or_else(|| self.overrun())
    }

    fn noisy(&self, what: &str, measured: Option<&ReactionStatistics>) -> Option<String> {
        let p99_9_ns = measured?.p99_9_ns;
        (p99_9_ns > self.window.as_ns()).then(|| {
            format!(
                "the host is too noisy, p99.9 {what} {}",
                span(Span::from_ns(p99_9_ns).as_ns())
            )
        })
    }

    /// The CPU that was away for longest, if that was beyond the window.
    fn cpu_away(&self) -> Option<String> {
        let cpus = self.set.platform.cpus;
        let mut since = vec![None; cpus];
        let mut away = vec![Span::ZERO; cpus];
        for record in self.records.iter() {
            match record.kind {
                RecordKind::CpuOffline { cpu } | RecordKind::CpuTaken { cpu } => {
                    if let Some(since) = since.get_mut(cpu.index()) {
                        since.get_or_insert(record.at);
                    }
                }
                RecordKind::CpuOnline { cpu } | RecordKind::CpuReturned { cpu } => {
                    let begun = since.get_mut(cpu.index()).and_then(Option::take);
                    if let Some(begun) = begun {
                        away[cpu.index()] += record.at.late_since(begun);
                    }
                }
                _ => {}
            }
        }
        for (away, since) in away.iter_mut().zip(since) {
            *away += since.map_or(Span::ZERO, |since| self.horizon.late_since(since));
        }
        let (cpu, &longest) = away.iter().enumerate().max_by_key(|(_, away)| **away)?;
        (longest > self.window).then(|| {
            let cpu = CpuId::from_index(cpu);
            format!(
                "CPU {cpu} was offline or taken by other work for {}",
                span(longest.as_ns())
            )
        })
    }

    /// The task that used up its budget most often.
    fn overrun(&self) -> Option<String> {
        let mut counts = vec![0_u64; self.set.tasks.len()];
        for record in self.records.iter() {
            if let RecordKind::BudgetSpent { job } = record.kind
                && let Some(count) = counts.get_mut(job.task.index())
            {
                *count += 1;
            }
        }
        let (task, &count) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
        let name = &self.set.tasks[task].name;
        match count {
            0 => None,
            1 => Some(format!("task {name} used up its budget once")),
            _ => Some(format!("task {name} used up its budget {count} times")),
        }
    }
}

/// The longest stall, if there is one.
fn stall(verdict: &Verdict) -> Option<String> {
    let stalls = verdict.disagreements.iter();
    let stalls = stalls.filter(|it| {
        matches!(
            it.kind,
            DisagreementKind::Stall | DisagreementKind::Unnoticed
        )
    });
    let longest = stalls.max_by_key(|it| it.length())?;
    Some(format!("a stall, {}", verdict.describe(longest)))
}

fn other_set(verdict: &Verdict) -> Option<String> {
    let longest = verdict.disagreements.iter().max_by_key(|it| it.length())?;
    Some(format!(
        "the machine did not do as the policy decides, {}",
        verdict.describe(longest)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    use shiftwork_model::{JobId, Record, TaskId};
    use shiftwork_trace::Reactions;

    fn set() -> TaskSet {
        let text =
            "[platform]\ncpus = 2\n[[task]]\nname = \"a\"\ncost = \"1ms\"\nperiod = \"10ms\"\n";
        shiftwork_taskset::read(text).unwrap()
    }

    fn kept(is_hard: bool, misses: u64, cause: Option<&str>) -> Kept {
        Kept {
            promised: if is_hard { "hard" } else { "bounded-tardiness" },
            is_hard,
            misses,
            cause: cause.map(str::to_owned),
        }
    }

    #[test]
    fn a_broken_guarantee_is_said_with_its_cause() {
        let cause = Some("the host is too noisy, p99.9 reaction 4.5 ms");
        assert_eq!(
            kept(true, 134, cause).headline().unwrap(),
            "GUARANTEE BROKEN: 134 deadlines missed; likely cause: the host is too noisy, p99.9 reaction 4.5 ms"
        );
        assert_eq!(
            kept(false, 1, None).headline().unwrap(),
            "1 deadline missed, which a guarantee of bounded-tardiness allows"
        );
        assert_eq!(kept(true, 0, None).headline(), None);
        assert_eq!(kept(true, 1, None).to_json()["kept"], false);
        assert_eq!(kept(false, 1, None).to_json()["kept"], true);
    }

    fn cause(records: &[Record], reaction: Option<Span>) -> Option<String> {
        let set = set();
        let mut reactions = Reactions::default();
        reaction
            .into_iter()
            .for_each(|reaction| reactions.add(reaction));
        let measured = Measured {
            reaction: reactions.statistics(),
            ..Measured::default()
        };
        let evidence = Evidence {
            set: &set,
            records: records.into(),
            horizon: Instant::from_ns(100_000_000),
            measured: &measured,
            window: Span::from_us(200),
        };
        evidence.cause()
    }

    #[test]
    fn the_likely_cause_is_the_first_with_evidence() {
        let at = |ms: u64, kind| Record {
            at: Instant::from_ns(ms * 1_000_000),
            kind,
        };
        let cpu = CpuId::from_index(1);
        let job = JobId {
            task: TaskId::from_index(0),
            number: 1,
        };
        let spent = at(2, RecordKind::BudgetSpent { job });
        let taken = at(3, RecordKind::CpuTaken { cpu });
        let returned = at(15, RecordKind::CpuReturned { cpu });
        assert_eq!(cause(&[], Some(Span::from_us(77))), None);
        let all = [spent.clone(), taken, returned];
        assert_eq!(
            cause(&all[..1], None).unwrap(),
            "task a used up its budget once"
        );
        assert_eq!(
            cause(&all, Some(Span::from_us(77))).unwrap(),
            "CPU 1 was offline or taken by other work for 12 ms"
        );
        assert_eq!(
            cause(&all[..2], None).unwrap(),
            "CPU 1 was offline or taken by other work for 97 ms"
        );
        assert_eq!(
            cause(&all, Some(Span::from_us(4_500))).unwrap(),
            "the host is too noisy, p99.9 reaction 4.5 ms"
        );
    }
}
