//! What was measured, in words: the comments of the file, and the summary.

use shiftwork_model::{Span, TaskSet};
use shiftwork_taskset::Comments;

use super::{Chosen, LeftOut, Options};
use crate::event::Waker;
use crate::measure::{Activity, Measurement, Source, ThreadMeasurement};
use crate::wakeups::Relation;

/// So many wakers of a thread are named.
const WAKERS_MAX: usize = 4;
/// So many threads are named in the summary.
const BUSIEST_MAX: usize = 5;

/// `1 job`, `2 jobs`.
pub(super) fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// To three or four digits, in one unit.
pub(super) fn span(span: Span) -> String {
    let ns = span.as_ns();
    let (unit, name) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let thousandths = u128::from(ns) * 1_000 / unit;
    let (whole, part) = (thousandths / 1_000, thousandths % 1_000);
    let digits = match whole {
        0..10 => format!("{whole}.{part:03}"),
        10..100 => format!("{whole}.{:02}", part / 10),
        _ => format!("{whole}.{}", part / 100),
    };
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits} {name}")
}

/// A part of a whole, in percent.
pub(super) fn percent(part: Span, whole: Span) -> String {
    let tenths = u128::from(part.as_ns()) * 1_000 / u128::from(whole.as_ns().max(1));
    match tenths {
        0 if !part.is_zero() => "less than 0.1%".to_owned(),
        0..100 => format!("{}.{}%", tenths / 10, tenths % 10),
        _ => format!("{}%", tenths / 10),
    }
}

/// Jobs in a second.
fn rate(jobs: u64, length: Span) -> String {
    let tenths = u128::from(jobs) * 10_000_000_000 / u128::from(length.as_ns().max(1));
    match tenths {
        0..100 => format!("{}.{}", tenths / 10, tenths % 10),
        _ => format!("{}", (tenths + 5) / 10),
    }
}

/// What was seen, in a sentence: `main thread idle; busiest: control 228 jobs/s, vision 29`.
pub fn summary(measurement: &Measurement) -> String {
    let mut parts = Vec::new();
    match measurement.main().map(|main| main.activity) {
        Some(Activity::Idle) => parts.push("main thread idle".to_owned()),
        Some(Activity::Busy) => parts.push("main thread busy".to_owned()),
        Some(Activity::Rare) => parts.push("main thread hardly ever active".to_owned()),
        Some(Activity::Periodic | Activity::Sporadic) | None => {}
    }
    let others = measurement.threads.iter();
    let mut busy: Vec<&ThreadMeasurement> = others
        .filter(|it| it.id != measurement.process && it.activity == Activity::Busy)
        .collect();
    busy.sort_by_key(|it| std::cmp::Reverse(it.executed));
    if !busy.is_empty() {
        let names = busy.iter().take(BUSIEST_MAX);
        let names: Vec<String> = names.map(|it| it.label(measurement)).collect();
        parts.push(format!("never asleep: {}", names.join(", ")));
    }
    let mut active: Vec<&ThreadMeasurement> = measurement.threads.iter().collect();
    active.retain(|it| matches!(it.activity, Activity::Periodic | Activity::Sporadic));
    active.sort_by_key(|it| std::cmp::Reverse(it.executed));
    let named = active
        .iter()
        .take(BUSIEST_MAX)
        .enumerate()
        .map(|(index, it)| {
            let rate = rate(it.jobs, measurement.length);
            let unit = if index == 0 { " jobs/s" } else { "" };
            format!("{} {rate}{unit}", it.label(measurement))
        });
    let named: Vec<String> = named.collect();
    match named.is_empty() {
        false => parts.push(format!("busiest: {}", named.join(", "))),
        true => parts.push("no thread with regular jobs".to_owned()),
    }
    parts.join("; ")
}

pub(super) fn comments(
    measurement: &Measurement,
    options: &Options,
    chosen: &[Chosen<'_>],
    set: &TaskSet,
    left_out: &[LeftOut],
) -> Comments {
    Comments {
        head: head(measurement, options),
        tasks: chosen
            .iter()
            .map(|it| of_task(it, measurement, options))
            .collect(),
        chains: of_chains(measurement, chosen, set),
        tail: tail(measurement, left_out),
    }
}

fn head(measurement: &Measurement, options: &Options) -> Vec<String> {
    let Measurement {
        process, length, ..
    } = measurement;
    let name = measurement.main().map_or("", |it| &it.name);
    let is_alone = measurement.threads.iter().all(|it| it.process == *process);
    let others = if is_alone {
        ""
    } else {
        " and those that it started"
    };
    let how = match measurement.source {
        Source::Trace => "by the kernel's trace, to the microsecond",
        Source::Daemon => "by the daemon, to the microsecond",
        Source::Counters => "by counters of its threads, read now and then",
    };
    let percentile = match options.percentile.percent() {
        _ if measurement.source == Source::Counters => {
            "the largest mean of a short time".to_owned()
        }
        100 => "the longest measured CPU time of a job".to_owned(),
        percent => format!("the CPU time that {percent}% of the jobs kept to"),
    };
    let mut head = vec![
        format!("Proposed by `shiftwork init --pid {process}`, process `{name}`{others}."),
        format!("Measured for {}, {how}.", span(*length)),
        format!(
            "Costs are {percentile} plus {}%, which is no bound on the worst case. Edit what you know better, then",
            options.margin_percent
        ),
        "`shiftwork analyze FILE` says what is guaranteed, `shiftwork simulate FILE` shows it, and"
            .to_owned(),
        "`shiftwork apply FILE` reserves it for the threads of the running program.".to_owned(),
    ];
    match measurement.source {
        Source::Trace => {}
        Source::Daemon => head.push("Not measured: which thread wakes which.".to_owned()),
        Source::Counters => head.extend([
            "Not measured: single jobs (means over short times are shorter than the longest job), the least".to_owned(),
            "distance of wake-ups, and which thread wakes which. As root, without --sampled, these are measured, too.".to_owned(),
        ]),
    }
    if measurement.gaps > 0 {
        let times = count(measurement.gaps as u64, "time");
        head.push(format!(
            "Events were lost {times}; jobs at these times are left out."
        ));
    }
    if measurement.unreadable > 0 {
        let lines = count(measurement.unreadable, "line");
        head.push(format!("{lines} of the trace could not be read."));
    }
    head
}

fn of_task(chosen: &Chosen<'_>, measurement: &Measurement, options: &Options) -> Vec<String> {
    let thread = chosen.thread;
    let costs = &thread.costs;
    let has_jobs = measurement.source != Source::Counters;
    let mut lines = vec![format!(
        "Thread {}{}: {}, {} a second, {} of a CPU, {}.",
        thread.id,
        match thread.process == measurement.process {
            true => String::new(),
            false => format!(" of process {} (`{}`)", thread.process, thread.process_name),
        },
        count(thread.jobs, "job"),
        rate(thread.jobs, measurement.length),
        percent(thread.executed, measurement.length),
        thread.activity.name(),
    )];
    lines.push(match has_jobs {
        true => format!(
            "CPU time of a job: {} (median), {} (99%), {} (max).",
            span(costs.p50),
            span(costs.p99),
            span(costs.max)
        ),
        false => format!(
            "CPU time of a job: {} (mean), {} (largest mean of a short time).",
            span(costs.p50),
            span(costs.max)
        ),
    });
    if let Some(distances) = &thread.distances {
        lines.push(match has_jobs {
            true => format!(
                "From wake-up to wake-up: {} (median), {} (min).",
                span(distances.median),
                span(distances.min)
            ),
            false => format!(
                "From wake-up to wake-up: {} (mean).",
                span(distances.median)
            ),
        });
    }
    if measurement.source == Source::Trace {
        lines.push(format!("Woken by {}.", wakers(thread, measurement)));
    }
    lines.extend(relation(chosen, measurement));
    if thread.suspended > 0 {
        lines.push(format!(
            "{} of its jobs waited for a device or a lock of the kernel, which the cost does not contain.",
            thread.suspended
        ));
    }
    if thread.continued > 0 {
        lines.push(format!(
            "{} by other threads within these jobs, as when a lock is handed over, began no job.",
            count(thread.continued, "wake-up")
        ));
    }
    if !chosen.parameters.has_margin {
        lines.push(format!(
            "The cost has no margin: with {}% it would be longer than the period.",
            options.margin_percent
        ));
    }
    if chosen.parameters.uses_median {
        lines.push(
            "The period is the median: some wake-ups came sooner than a job takes.".to_owned(),
        );
    }
    lines
}

fn wakers(thread: &ThreadMeasurement, measurement: &Measurement) -> String {
    let all: u64 = thread.wakers.iter().map(|share| share.jobs).sum();
    let share = |jobs: u64| format!("{}%", jobs * 100 / all.max(1));
    let mut outside = 0;
    let mut named: Vec<(u64, String)> = Vec::new();
    for it in &thread.wakers {
        match it.waker {
            Waker::Interrupt => named.push((it.jobs, "timers or devices".to_owned())),
            Waker::Unknown => named.push((it.jobs, "what was not seen".to_owned())),
            Waker::Thread(id) => match measurement.find(id) {
                Some(other) => {
                    named.push((it.jobs, format!("thread `{}`", other.label(measurement))));
                }
                None => outside += it.jobs,
            },
        }
    }
    if outside > 0 {
        named.push((outside, "other processes and the kernel".to_owned()));
    }
    named.sort_by_key(|(jobs, _)| std::cmp::Reverse(*jobs));
    let shown = named.iter().take(WAKERS_MAX);
    let shown: Vec<String> = shown
        .map(|(jobs, what)| format!("{what} ({})", share(*jobs)))
        .collect();
    shown.join(", ")
}

/// Which thread triggers it, or why none does that wakes it often.
fn relation(chosen: &Chosen<'_>, measurement: &Measurement) -> Option<String> {
    let name = |id: u32| {
        let thread = measurement.find(id);
        thread.map_or_else(
            || format!("thread {id}"),
            |it| format!("`{}`", it.label(measurement)),
        )
    };
    match &chosen.thread.relation {
        Relation::None => None,
        Relation::Triggered {
            by,
            sources,
            within,
        } => {
            let place = match within {
                None => "at the end of a job".to_owned(),
                Some(within) => format!(
                    "{} into a job of {} (medians)",
                    span(within.executed),
                    span(within.cost)
                ),
            };
            let but = match chosen.trigger {
                Some(_) => "",
                None => "; that thread is no task here, so this task has a period of its own",
            };
            Some(format!(
                "Triggered by {} in {}, {place}{but}.",
                name(*by),
                count(*sources, "job")
            ))
        }
        Relation::NotOneToOne {
            by,
            woken,
            sources,
            of,
        } => Some(format!(
            "No trigger: {} woke it for {woken} of its {}, in {sources} of {}, which is not one for one, as with a lock.",
            name(*by),
            count(chosen.thread.jobs, "job"),
            count(*of, "job")
        )),
        Relation::Circle(circle) => {
            let names: Vec<String> = circle.iter().map(|id| name(*id)).collect();
            let first = names.first().cloned().unwrap_or_default();
            Some(format!(
                "No trigger: in a circle each thread triggers the next: {}, {first}.",
                names.join(", ")
            ))
        }
    }
}

fn of_chains(measurement: &Measurement, chosen: &[Chosen<'_>], set: &TaskSet) -> Vec<Vec<String>> {
    let of = |tasks: &[shiftwork_model::TaskId]| {
        let threads: Vec<u32> = tasks
            .iter()
            .map(|id| chosen[id.index()].thread.id)
            .collect();
        let mut paths = measurement.paths.iter();
        let path = paths.find(|path| path.threads == threads)?;
        Some(vec![
            format!(
                "Seen {}: {} (median), {} (max) from the first wake-up to the last completion.",
                count(path.seen, "time"),
                span(path.latency_median),
                span(path.latency_max)
            ),
            "Add `latency = \"..\"` with the longest time that is wanted.".to_owned(),
        ])
    };
    let chains = set.chains.iter();
    chains.map(|it| of(&it.tasks).unwrap_or_default()).collect()
}

fn tail(measurement: &Measurement, left_out: &[LeftOut]) -> Vec<String> {
    let shown = left_out.iter().filter_map(|it| {
        let thread = measurement.find(it.id)?;
        Some(format!(
            "`{}` (thread {}): {}",
            thread.label(measurement),
            it.id,
            it.reason
        ))
    });
    let shown: Vec<String> = shown.collect();
    match shown.is_empty() {
        true => Vec::new(),
        false => [vec!["Threads that are no tasks here:".to_owned()], shown].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shares_have_few_digits() {
        for (ns, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (1_312_450, "1.312 ms"),
            (12_345_678, "12.34 ms"),
            (123_456_789, "123.4 ms"),
            (10_000_000_000, "10 s"),
        ] {
            assert_eq!(span(Span::from_ns(ns)), expected);
        }
        let share = |part| percent(Span::from_us(part), Span::from_ms(10));
        assert_eq!([share(0), share(5)], ["0.0%", "less than 0.1%"]);
        assert_eq!([share(30), share(4_567)], ["0.3%", "45%"]);
        assert_eq!(rate(2_280, Span::from_s(10)), "228");
        assert_eq!(rate(29, Span::from_s(10)), "2.9");
    }
}
