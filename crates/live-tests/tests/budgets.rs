//! Budgets of jobs that never end by themselves: what such a task gets of each period, by the trace.

use shiftwork_model::{Instant, Order, Record, RecordKind, Span, TaskId};

use crate::host::machines::{CPUS, LONG_TURN};
use crate::running::run;

/// Two greedy tasks have jobs that would run for ten times their period, with budgets of some
/// milliseconds and of half a millisecond. Two modest tasks need the time that the greedy ones must
/// not take. They are not released together: where one host CPU emulates all guest CPUs,
/// simultaneous work is executed in turns.
const GREEDY: &str = r#"
name = "greedy"
[platform]
cpus = 2
[[task]]
name = "greedy"
cost = "4ms"
period = "10ms"
affinity = "0"
priority = 1
work = { run = "100ms" }
[[task]]
name = "small-and-greedy"
cost = "500us"
period = "4ms"
offset = "1700us"
affinity = "1"
priority = 2
work = { run = "40ms" }
[[task]]
name = "modest"
cost = "5ms"
period = "10ms"
offset = "300us"
affinity = "0"
priority = 3
work = { run = "4800us" }
[[task]]
name = "roaming"
cost = "2ms"
period = "8ms"
priority = 4
work = { run = "1900us" }
"#;
/// Of the greedy ones: offset, budget, period.
const SERVERS: [[Span; 3]; 2] = [
    [Span::ZERO, Span::from_ms(4), Span::from_ms(10)],
    [Span::from_us(1_700), Span::from_us(500), Span::from_ms(4)],
];
const LENGTH: Span = Span::from_ms(400);

/// Under EDF.
pub fn budgets_are_enforced_under_edf() -> Result<(), String> {
    enforced(Order::Edf)
}

/// Under fixed priorities, where a greedy task would otherwise keep its CPU for ever.
pub fn budgets_are_enforced_under_fp() -> Result<(), String> {
    enforced(Order::FixedPriority)
}

fn enforced(order: Order) -> Result<(), String> {
    let ran = run(GREEDY, order, LENGTH)?;
    let mut wrong = Vec::new();
    for (task, [offset, budget, period]) in SERVERS.into_iter().enumerate() {
        let got = per_period(&ran.records, task, offset, period);
        let name = &ran.set.tasks[task].name;
        let (least, most) = (got.iter().min(), got.iter().max());
        let (Some(&least), Some(&most)) = (least, most) else {
            return Err(format!("{name} has no periods"));
        };
        println!(
            "{order:?}: {name} with a budget of {budget} gets {least} to {most} of each {period}"
        );
        // Granted for the switch to a job and the report of its end.
        let granted = budget + Span::from_ns(budget.as_ns() / 100).max(Span::from_us(20));
        // The emulator computes its CPUs in turns: a timer is late by the turns of all others. What a task got too much it
        // gets less in its next periods.
        let turns = LONG_TURN * (CPUS - 1);
        let late = Span::from_ns(turns.as_nanos() as u64);
        if most > granted + late {
            wrong.push(format!("{name} gets {most}"));
        }
        let mut allowed = late;
        let mut total = Span::ZERO;
        for (period, &got) in got.iter().enumerate() {
            (allowed, total) = (allowed + granted, total + got);
            if total > allowed {
                wrong.push(format!(
                    "{name} gets {total} until the end of period {period}"
                ));
                break;
            }
        }
        if least < budget.saturating_sub(late) {
            wrong.push(format!("{name} gets only {least} of its {budget}"));
        }
    }
    for task in &ran.summary.tasks[SERVERS.len()..] {
        if task.misses > 0 || task.completed < 39 {
            let (name, completed, misses) = (&task.name, task.completed, task.misses);
            wrong.push(format!(
                "{name}: {completed} jobs, {misses} missed their deadlines"
            ));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// For how long the task ran in each of its periods that ends within the run.
fn per_period(records: &[Record], task: usize, offset: Span, period: Span) -> Vec<Span> {
    let task = TaskId::from_index(task);
    let count = (LENGTH - offset).as_ns() / period.as_ns();
    let mut sums = vec![Span::ZERO; usize::try_from(count).unwrap()];
    let mut since: Option<Instant> = None;
    for record in records {
        let RecordKind::Switched { from, to, .. } = &record.kind else {
            continue;
        };
        let is_it =
            |job: &Option<_>| job.is_some_and(|job: shiftwork_model::JobId| job.task == task);
        if is_it(from)
            && let Some(began) = since.take()
        {
            // Before its first release it does not run.
            let [began, ended] = [began, record.at].map(|at| at.late_since(Instant::ZERO + offset));
            share_out(&mut sums, began, ended, period);
        }
        if is_it(to) {
            since = Some(record.at);
        }
    }
    sums
}

/// Adds a stretch of execution to the periods that it lies in.
fn share_out(sums: &mut [Span], began: Span, ended: Span, period: Span) {
    let (mut at, end) = (began.as_ns(), ended.as_ns());
    while at < end {
        let index = at / period.as_ns();
        let until = end.min((index + 1) * period.as_ns());
        if let Some(sum) = usize::try_from(index)
            .ok()
            .and_then(|index| sums.get_mut(index))
        {
            *sum += Span::from_ns(until - at);
        }
        at = until;
    }
}
