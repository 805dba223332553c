//! Every policy that runs live, on a task set of its domain with something of everything: affinities,
//! overruns, suspensions and random work.

use serde_json::Value;
use shiftwork_cli::catalogue;
use shiftwork_model::{
    Affinities, Affinity, Arrival, CpuSet, Invariant, Machines, Phase, Placement, RecordKind, Span,
    Task, TaskSet, Work,
};
use shiftwork_policy::registry::Entry;
use shiftwork_trace::check;
use shiftwork_trace::perfetto::TraceFile;

use crate::agreement::does_as_the_policy_decides;
use crate::command::{number, on_three_cpus, run_with_trace};
use crate::long;

/// The task that would run for longer than its cost.
const OVERRUNS: &str = "overruns";

/// The task that sleeps within its jobs.
const SLEEPS: &str = "sleeps";

/// The affinities that a policy takes, of six tasks on three CPUs.
fn affinities(policy: &str) -> [&'static str; 6] {
    let traits = named(policy).traits;
    match traits.affinities {
        // Every CPU, or every cluster, of which there is one.
        Affinities::Global | Affinities::Clusters => ["0-2"; 6],
        Affinities::WithinClusters | Affinities::SemiPartitioned => {
            ["0", "0-1", "0-1", "2", "0-1", "0-1"]
        }
        Affinities::Laminar => ["0", "0-1", "0-2", "2", "0-1", "0-2"],
        Affinities::Any if traits.placement.is_packed() => ["0", "0-2", "0-2", "2", "0-2", "0-2"],
        Affinities::Any => ["0", "0-1", "1-2", "2", "0,2", "0-2"],
    }
}

pub fn named(policy: &str) -> &'static Entry {
    let mut all = catalogue::policies();
    all.find(|entry| entry.name == policy).unwrap()
}

/// The policies, or unless the tests are long those that differ from all before them in their order, or in how and
/// where they place: that each decides what it decides in the simulation is tested natively, and loading the programs
/// takes seconds here.
fn of_each_kind(
    policies: impl Iterator<Item = &'static Entry>,
) -> impl Iterator<Item = &'static Entry> {
    let mut orders = Vec::new();
    let mut places = Vec::new();
    policies.filter(move |entry| {
        let traits = &entry.traits;
        let order_is_new = !orders.contains(&traits.order);
        orders.push(traits.order);
        let place = (traits.placement, traits.invariant, traits.affinities);
        let place_is_new = !places.contains(&place);
        places.push(place);
        order_is_new || place_is_new || long()
    })
}

/// Each keeps what it promises, and does what it does in the simulation.
pub fn every_policy_that_runs_live_keeps_what_it_promises() -> Result<(), String> {
    let ms = if long() { 2_000 } else { 150 };
    let in_kernel = |entry: &&Entry| entry.traits.machines == Machines::KernelOrAgent;
    of_each_kind(catalogue::policies().filter(in_kernel))
        .try_for_each(|entry| keeps_its_promise(entry.name, "kernel", ms))
}

/// The policies of one test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Packed,
    Global,
    Nested,
    Linux,
    Quanta,
    Implementation,
    Strong,
}

/// A policy of none of the other families is strong, so that no policy is left out.
fn family(entry: &Entry) -> Family {
    let traits = &entry.traits;
    if traits.structure.is_some() {
        return Family::Implementation;
    }
    if traits.invariant == Invariant::Quanta {
        return Family::Quanta;
    }
    match traits.placement {
        Placement::Partitioned | Placement::Clustered => Family::Packed,
        Placement::Global | Placement::Weak => Family::Global,
        Placement::Hierarchical => Family::Nested,
        Placement::PushPull => Family::Linux,
        _ => Family::Strong,
    }
}

/// The same where an agent decides, for those that pack.
pub fn policies_that_pack_keep_what_they_promise_under_an_agent() -> Result<(), String> {
    keep_what_they_promise_under_an_agent(Family::Packed)
}

/// The same for global and weak ones.
pub fn global_policies_keep_what_they_promise_under_an_agent() -> Result<(), String> {
    keep_what_they_promise_under_an_agent(Family::Global)
}

/// The same for the strong ones of any affinities.
pub fn strong_policies_keep_what_they_promise_under_an_agent() -> Result<(), String> {
    keep_what_they_promise_under_an_agent(Family::Strong)
}

/// The same for those of nested affinities.
pub fn policies_of_nested_affinities_keep_what_they_promise_under_an_agent() -> Result<(), String> {
    keep_what_they_promise_under_an_agent(Family::Nested)
}

/// The same for Linux and its repair.
pub fn policies_of_linux_keep_what_they_promise_under_an_agent() -> Result<(), String> {
    keep_what_they_promise_under_an_agent(Family::Linux)
}

/// The same for those that decide in quanta.
pub fn policies_in_quanta_keep_what_they_promise_under_an_agent() -> Result<(), String> {
    keep_what_they_promise_under_an_agent(Family::Quanta)
}

/// The same for the implementations of global EDF.
pub fn implementations_of_global_edf_keep_what_they_promise_under_an_agent() -> Result<(), String> {
    keep_what_they_promise_under_an_agent(Family::Implementation)
}

fn keep_what_they_promise_under_an_agent(tried: Family) -> Result<(), String> {
    let ms = if long() { 2_000 } else { 150 };
    // Of implementations that differ in what their queues cost, an agent knows two.
    // Quanta are aligned or staggered, in clusters or not: each once.
    let is_selected = |name: &str| match tried {
        Family::Implementation => long() || ["CE1", "S-CQm"].contains(&name),
        Family::Quanta => long() || ["c-pd2", "s-pd2"].contains(&name),
        _ => true,
    };
    let of_family = catalogue::policies()
        .filter(|entry| entry.traits.machines != Machines::None)
        .filter(|entry| family(entry) == tried && is_selected(entry.name));
    let mut all = of_each_kind(of_family).peekable();
    if all.peek().is_none() {
        return Err("no policy is of this family".to_owned());
    }
    all.try_for_each(|entry| keeps_its_promise(entry.name, "agent", ms))
}

/// The same for one policy of each kind, where fixed priorities carry out.
pub fn policy_of_each_kind_keeps_what_it_promises_under_fifo() -> Result<(), String> {
    let ms = if long() { 2_000 } else { 150 };
    ["strong-edf", "hpa-edf", "p-fp", "weak-fp", "np-g-edf"]
        .iter()
        .try_for_each(|policy| keeps_its_promise(policy, "fifo", ms))
}

/// Whether the policy keeps its contract, and does what it does in the simulation.
fn keeps_its_promise(policy: &str, machine: &str, ms: u64) -> Result<(), String> {
    let set = something_of_everything(affinities(policy));
    let on = on_three_cpus(machine);
    let (json, trace) = run_with_trace(&set, policy, ms, &on)?;
    println!(
        "{policy}: {} jobs, judged by {}, {} disagreements, the first: {}, same sets: {}, like {}",
        json["jobs"],
        json["replay"]["rule"],
        json["replay"]["disagreements"],
        json["replay"]["intervals"][0]["what"],
        json["replay"]["same_sets"],
        json["replay"]["alike"]
    );
    judge(&set, policy, &json, &trace)
        .and_then(|()| does_as_much(&set, &json))
        .and_then(|()| does_as_the_policy_decides(&json["replay"]))
        .map_err(|why| format!("{policy}: {why}"))
}

/// So do those of any affinities on any kernel, however slow the machine.
pub fn runs_with_something_of_everything_keep_their_rules() -> Result<(), String> {
    for (policy, machine) in [
        ("strong-edf", "kernel"),
        ("strong-fp", "kernel"),
        ("weak-fp", "agent"),
    ] {
        let set = something_of_everything(affinities(policy));
        let on = on_three_cpus(machine);
        let (json, trace) = run_with_trace(&set, policy, 500, &on)?;
        judge(&set, policy, &json, &trace).map_err(|why| format!("{policy}: {why}"))?;
    }
    Ok(())
}

fn something_of_everything(affinities: [&str; 6]) -> TaskSet {
    let task = |index: usize, name: &str, cost_ms, period_ms| {
        let cpus: CpuSet = affinities[index].parse().unwrap();
        let affinity = Affinity::new(cpus).unwrap();
        let (cost, period) = (Span::from_ms(cost_ms), Span::from_ms(period_ms));
        Task {
            // No two are released at once, nor one when another ends alone: under some policies the order
            // decides about more than these two.
            offset: Span::from_us(311 * index as u64),
            ..Task::periodic(name, cost, period, affinity)
        }
    };
    let tasks = vec![
        task(0, "pinned", 2, 10),
        task(1, "wider", 2, 16),
        Task {
            // One long job in four, and what it is late is made up for before the next: debts that add up
            // would in time let some job end just with its budget, where a microsecond decides on a period.
            work: Work::Trace([4_700, 500, 500, 500].map(Span::from_us).to_vec()),
            ..task(2, OVERRUNS, 2, 12)
        },
        Task {
            work: Work::Phases(vec![
                Phase::Run(Span::from_ms(1)),
                Phase::Sleep(Span::from_ms(2)),
                Phase::Run(Span::from_ms(1)),
            ]),
            ..task(3, SLEEPS, 2, 20)
        },
        task(4, "long", 3, 25),
        Task {
            work: Work::Uniform(Span::from_ms(1), Span::from_ms(2)),
            arrival: Arrival::Sporadic,
            ..task(5, "sporadic", 2, 15)
        },
    ];
    let mut set = TaskSet::new("something-of-everything", 3, tasks);
    set.platform.clusters = ["0-1", "2"].map(|cpus| cpus.parse().unwrap()).to_vec();
    set
}

fn judge(set: &TaskSet, policy: &str, json: &Value, trace: &TraceFile) -> Result<(), String> {
    let (jobs, simulated) = (number(json, "/jobs")?, number(json, "/simulated/jobs")?);
    let lost = number(json, "/lost_records")?;
    if lost > 0 || jobs != simulated {
        return Err(format!(
            "{lost} records were lost; {jobs} jobs were released, and {simulated} in the simulation"
        ));
    }
    let is_spent = |kind: &RecordKind| matches!(kind, RecordKind::BudgetSpent { .. });
    if !trace.records.iter().any(|record| is_spent(&record.kind)) {
        return Err(format!("{OVERRUNS} never uses up its budget"));
    }
    keeps_its_rules(set, policy, trace)
}

/// No checker of traces finds that a rule of the policy is broken.
pub fn keeps_its_rules(set: &TaskSet, policy: &str, trace: &TraceFile) -> Result<(), String> {
    let entry = named(policy);
    let packing = entry
        .build(set)
        .map_err(|error| error.to_string())?
        .packing();
    let promised = check::PolicyContract {
        immediate: false,
        ..check::PolicyContract::of(&entry.traits, packing)
    };
    let horizon = trace.ended.ok_or("the trace has no end")?;
    let violations = check::check(set, promised, horizon, &trace.records);
    match violations.first() {
        None => Ok(()),
        Some(first) => Err(format!("{first}, and {} more", violations.len() - 1)),
    }
}

/// Every task finishes as many jobs as in the simulation, but for what happens at the very end.
fn does_as_much(set: &TaskSet, json: &Value) -> Result<(), String> {
    for (index, task) in set.tasks.iter().enumerate() {
        let completed = |run: &str| number(json, &format!("{run}/tasks/{index}/completed"));
        let (live, simulated) = (completed("")?, completed("/simulated")?);
        if live == 0 || live.abs_diff(simulated) > 1 {
            return Err(format!(
                "{} finishes {live} jobs live and {simulated} in the simulation",
                task.name
            ));
        }
    }
    Ok(())
}
