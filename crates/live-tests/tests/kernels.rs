//! What must hold on every kernel: a run with budgets that are used up, judged by the checkers. No time
//! is asserted, since these kernels run as quick as they go.

use shiftwork_model::{Instant, Invariant, Order, RecordKind, Span};
use shiftwork_trace::check::{PolicyContract, check};

use crate::running::run;

const SPAN: Span = Span::from_s(1);
/// One task overruns in each job, one sleeps, one has a single CPU and one may go anywhere.
const MIXED: &str = r#"
name = "mixed"
[platform]
cpus = 3
[[task]]
name = "greedy"
cost = "4ms"
period = "20ms"
priority = 1
work = { run = "50ms" }
[[task]]
name = "sleeping"
cost = "5ms"
period = "40ms"
affinity = "0-1"
priority = 2
work = { phases = [{ run = "1ms" }, { sleep = "2ms" }, { run = "1ms" }] }
[[task]]
name = "pinned"
cost = "10ms"
period = "50ms"
affinity = "0"
priority = 3
work = { run = "5ms" }
[[task]]
name = "roaming"
cost = "20ms"
period = "100ms"
priority = 4
work = { run = "10ms" }
"#;

/// Under both orders.
pub fn run_with_budgets_keeps_its_rules() -> Result<(), String> {
    judged(Order::Edf, Order::Edf)?;
    judged(Order::FixedPriority, Order::FixedPriority)
}

fn judged(order: Order, ranked: Order) -> Result<(), String> {
    let ran = run(MIXED, order, SPAN)?;
    let contract = PolicyContract {
        invariant: Invariant::Strong,
        order: ranked,
        packing: None,
        immediate: false,
    };
    let violations = check(&ran.set, contract, Instant::ZERO + SPAN, &ran.records);
    if !violations.is_empty() {
        return Err(format!("{order:?}: {violations:?}"));
    }
    let is_spent = |kind: &RecordKind| matches!(kind, RecordKind::BudgetSpent { job } if job.task.index() == 0);
    let spent = ran.records.iter().filter(|record| is_spent(&record.kind));
    let (spent, tasks) = (spent.count(), &ran.summary.tasks);
    let completed: Vec<u64> = tasks.iter().map(|task| task.completed).collect();
    println!("{order:?}: {spent} budgets spent, completed {completed:?}");
    // An emulator without a clock of its own stalls for tens of milliseconds. The task that runs
    // just then is charged for them and pays them back in later periods. So the number of budgets
    // to spend is open; their sum is tested in `budgets.rs`, by a clock that counts instructions.
    match completed[1..].iter().all(|&jobs| jobs >= 3) {
        true => Ok(()),
        false => Err(format!("{order:?}: fewer jobs are done than expected")),
    }
}
