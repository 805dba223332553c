//! What `analyze --json` prints.

mod affinities;
mod as_written;
mod chains;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shiftwork_analysis::Sporadic;
use shiftwork_analysis::verdicts::{
    Account, Charged, Criterion, Found, Judgement, Names, PolicyAnalysis, Table, decimal, fraction,
    left_out, witness,
};
use shiftwork_model::{Span, Task, TaskSet};
use shiftwork_trace::SCHEMA_VERSION;

use super::found::{Findings, Tardiness};
use super::remedy::Remedies;
use crate::admission::AdmissionOutput;
use affinities::{AffinityLossOutput, AssignmentOutput, affinity_loss, assignment};
use as_written::{AsWrittenOutput, as_written};
use chains::{ChainsOutput, chains};

/// What `analyze --json` prints.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnalyzeOutput {
    schema_version: u64,
    /// The name of the task set.
    name: String,
    /// CPUs of the platform.
    cpus: u64,
    /// The sum of all C/T as a reduced fraction; as a decimal, rounded down, if the fraction would have
    /// hundreds of digits.
    utilization: String,
    /// `global`, `partitioned`, `bi-level`, `clustered`, `laminar` or `arbitrary`.
    affinity_kind: String,
    /// The path of the overhead file; null if scheduling is free.
    overheads: Option<String>,
    feasible: FeasibleOutput,
    admission: AdmissionOutput,
    /// Two for each policy, hard and soft.
    verdicts: Vec<VerdictOutput>,
    /// Bounds on response times, one entry for each policy and test that shows some.
    bounds: Vec<BoundsOutput>,
    /// For each policy the least of all bounds.
    best: Vec<BestOutput>,
    /// For each policy what is known if tasks release their jobs as the file says.
    as_written: Vec<AsWrittenOutput>,
    /// For each policy what is known of the cause-effect chains; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chains: Option<Vec<ChainsOutput>>,
    answer: AnswerOutput,
    /// What the task set says and no test takes into account, for people.
    left_out: Vec<String>,
    /// With `--scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<Vec<ScaleOutput>>,
    /// With `--assign`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assignment: Option<AssignmentOutput>,
    /// With `--assign`, unless there is no task that could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    affinity_loss: Option<AffinityLossOutput>,
}

/// Whether any scheduler meets all deadlines.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FeasibleOutput {
    /// `yes`, `no` or `unknown`.
    verdict: String,
    /// `flow`, `laminar`, `flow-density`, `laminar-density` or `task`; or the test that shows that a policy meets all deadlines.
    by: String,
    /// The tasks that need more than the CPUs provide, as text; null unless the verdict is `no`.
    witness: Option<String>,
}

/// What is known of one criterion under one policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerdictOutput {
    policy: String,
    /// `hard` (all deadlines are met) or `soft` (tardiness is bounded).
    criterion: String,
    /// `schedulable`, `unschedulable` or `unknown`.
    verdict: String,
    /// The tests that decide, the cheapest of each part; `feasibility` if the demand does not fit,
    /// `simulation` if a simulated job is late.
    by: Vec<String>,
    /// Of an unschedulable set: what proves it, for people.
    witness: Option<String>,
    /// Why the policy does not take the task set; null if it does.
    refusal: Option<String>,
    /// Every test that speaks of the policy and the criterion.
    tests: Vec<TestOutput>,
    /// Which overheads are taken into account: `worst` or `average`; null: none.
    overheads: Option<String>,
    /// What tests are asked about with these overheads; null without.
    inflated: Option<Vec<InflatedOutput>>,
}

/// What a task is once overheads are charged to it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InflatedOutput {
    name: String,
    /// Null, as the next two, if nothing can stand for the task.
    cost_ns: Option<u64>,
    period_ns: Option<u64>,
    deadline_ns: Option<u64>,
    /// Why the task cannot meet its deadlines then, for people; null if nothing is in the way.
    obstacle: Option<String>,
}

/// What one test found.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestOutput {
    test: String,
    /// `pass`, `fail`, `not-applicable` or `step-limit`.
    verdict: String,
}

/// What one test shows of response times.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BoundsOutput {
    policy: String,
    test: String,
    /// Which overheads are taken into account: `worst` or `average`; null: none.
    overheads: Option<String>,
    /// The tasks of which it shows something.
    tasks: Vec<BoundOutput>,
}

/// What one test shows of one task.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BoundOutput {
    name: String,
    /// No job finishes later after its deadline.
    tardiness_ns: u64,
    /// No job takes longer from its release.
    response_ns: u64,
    /// What is left to the deadline at least.
    slack_ns: u64,
}

/// The best bounds under one policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BestOutput {
    policy: String,
    /// Which overheads are taken into account: `worst` or `average`; null: none.
    overheads: Option<String>,
    /// Those of which anything is known.
    tasks: Vec<BestBoundOutput>,
}

/// The best bound of one task.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BestBoundOutput {
    name: String,
    tardiness_ns: u64,
    response_ns: u64,
    slack_ns: u64,
    /// The test that shows it.
    by: String,
}

/// What the exit status says.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerOutput {
    /// The policies that are asked about; empty if none is named: then any of those listed will do.
    policies: Vec<String>,
    /// `hard` (all deadlines are met) or `soft` (tardiness is bounded).
    criterion: String,
    /// `sporadic` (any releases a period or more apart) or `as-written` (those of the file).
    releases: String,
    /// `schedulable`, `unschedulable` or `unknown`.
    verdict: String,
    /// The answer for each of the policies that are asked about, in their order.
    by_policy: Vec<PolicyAnswerOutput>,
    /// What would make the answer yes, as far as a short search finds it; null if it is. From Python, null unless asked for.
    remedies: Option<RemediesOutput>,
}

/// The answer for one policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PolicyAnswerOutput {
    policy: String,
    /// `schedulable`, `unschedulable` or `unknown`, by the criterion and the releases of the answer.
    verdict: String,
    /// As in the list of verdicts, or in that of releases as written.
    by: Vec<String>,
    /// Whether tardiness is bounded: `schedulable` (it is), `unschedulable` or `unknown`.
    tardiness_bounded: String,
    /// The task that may be latest; null if there is no number, or no task.
    latest: Option<LatestOutput>,
}

/// The largest bound on tardiness, which is zero where all deadlines are met.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LatestOutput {
    task: String,
    tardiness_ns: u64,
}

/// What would make the answer yes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemediesOutput {
    /// Other policies that meet the criterion with this very task set; those that are admitted come first.
    policies: Vec<SubstituteOutput>,
    /// What would do under each policy that is asked about and does not meet the criterion.
    changes: Vec<ChangeOutput>,
}

/// A policy that meets the criterion.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubstituteOutput {
    policy: String,
    /// `admitted` or `refused`: what `run` says, which keeps the reserve free.
    admission: String,
}

/// What in the task set would have to change for one policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangeOutput {
    policy: String,
    /// Affinities with which the policy meets the criterion; null if none were found.
    assignment: Option<AssignmentOutput>,
    /// The names of the tasks in an order of fixed priorities with which it does, the most urgent first; null if none was
    /// found, under policies by other orders, and for `soft`.
    priorities: Option<Vec<String>>,
    /// The largest factor on all costs with which it does, a reduced fraction; null if none of a tenth or more was found, and with
    /// overheads.
    factor: Option<String>,
}

/// By how much all costs may grow under one policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScaleOutput {
    policy: String,
    /// What stays so: `hard` or `soft`.
    criterion: String,
    /// A reduced fraction, to a millionth or exact; null if it is not so with any factor.
    factor: Option<String>,
}

/// Everything that was found out.
pub fn output(set: &TaskSet, findings: &Findings) -> AnalyzeOutput {
    let analysis = &findings.analysis;
    let names = Names(set);
    let feasibility = &analysis.feasibility;
    let utilization = &analysis.utilization;
    AnalyzeOutput {
        schema_version: SCHEMA_VERSION,
        name: set.name.clone(),
        cpus: set.platform.cpus as u64,
        utilization: fraction(utilization).unwrap_or_else(|| decimal(utilization, 12)),
        affinity_kind: set.affinity_kind().name().to_owned(),
        overheads: findings.overheads.as_ref().map(|(path, _)| path.clone()),
        feasible: FeasibleOutput {
            verdict: feasibility.verdict.name().to_owned(),
            by: feasibility.by.to_owned(),
            witness: feasibility.witness.as_ref().map(|it| witness(it, names)),
        },
        admission: findings.admission.output(false),
        verdicts: findings
            .accounted()
            .flat_map(|(found, account)| verdicts(set, (found, account), findings))
            .collect(),
        bounds: findings
            .accounted()
            .flat_map(|(found, account)| bounds(set, found, account))
            .collect(),
        best: findings
            .accounted()
            .map(|(found, account)| best(set, found, account))
            .collect(),
        as_written: as_written(findings),
        chains: chains(set, findings),
        answer: answer(set, findings),
        left_out: left_out(set),
        scale: findings.scales.as_ref().map(|scales| {
            let scale = scales.iter().map(|scale| ScaleOutput {
                policy: scale.policy.clone(),
                criterion: scale.criterion.name().to_owned(),
                factor: scale.factor.map(|factor| factor.to_string()),
            });
            scale.collect()
        }),
        assignment: findings
            .proposal
            .as_ref()
            .map(|proposal| assignment(set, proposal)),
        affinity_loss: findings
            .loss
            .as_ref()
            .map(|found| affinity_loss(set, found)),
    }
}

fn answer(set: &TaskSet, findings: &Findings) -> AnswerOutput {
    let by_policy = findings.asked().map(|found| {
        let (known, by) = findings.answer_by(findings.criterion, found);
        let latest = match findings.tardiness(set, found) {
            Tardiness::Bounded(latest) => latest,
            Tardiness::Unbounded | Tardiness::Unknown => None,
        };
        PolicyAnswerOutput {
            policy: found.policy.clone(),
            verdict: known.name().to_owned(),
            by: by.iter().map(|&by| by.to_owned()).collect(),
            tardiness_bounded: findings.answer(Criterion::Soft, found).name().to_owned(),
            latest: latest.map(|(place, late)| LatestOutput {
                task: set.tasks[place].name.clone(),
                tardiness_ns: late.as_ns(),
            }),
        }
    });
    AnswerOutput {
        policies: findings.chosen.clone(),
        criterion: findings.criterion.name().to_owned(),
        releases: findings.releases.name().to_owned(),
        verdict: findings.known().name().to_owned(),
        by_policy: by_policy.collect(),
        remedies: findings.remedies.as_ref().map(|found| remedies(set, found)),
    }
}

fn remedies(set: &TaskSet, found: &Remedies) -> RemediesOutput {
    let policies = found.policies.iter().map(|one| SubstituteOutput {
        policy: one.policy.clone(),
        admission: one.admission.name().to_owned(),
    });
    let changes = found.changes.iter().map(|change| ChangeOutput {
        policy: change.policy.clone(),
        assignment: change.proposal.as_ref().map(|found| assignment(set, found)),
        priorities: change.priorities.as_ref().map(|order| {
            let tasks = order.iter().map(|task| &set.tasks[task.index()]);
            tasks.map(|task| task.name.clone()).collect()
        }),
        factor: change.factor.map(|factor| factor.to_string()),
    });
    RemediesOutput {
        policies: policies.collect(),
        changes: changes.collect(),
    }
}

fn verdicts(
    set: &TaskSet,
    (found, account): (&PolicyAnalysis, &Account),
    findings: &Findings,
) -> [VerdictOutput; 2] {
    let names = Names(set);
    let example = |criterion| {
        findings
            .example(found)
            .filter(|_| criterion == Criterion::Hard)
    };
    [Criterion::Hard, Criterion::Soft].map(|criterion| {
        let Judgement {
            answer,
            by,
            witness: proof,
            tests,
        } = found.judgement(criterion);
        let test = |&(test, found): &(&str, Found)| TestOutput {
            test: test.to_owned(),
            verdict: found.name().to_owned(),
        };
        VerdictOutput {
            policy: found.policy.clone(),
            criterion: criterion.name().to_owned(),
            verdict: answer.name().to_owned(),
            by: by.iter().map(|&by| by.to_owned()).collect(),
            witness: match proof {
                Some(proof) => Some(witness(proof, names)),
                None => example(criterion).map(str::to_owned),
            },
            refusal: found.refusal.clone(),
            tests: tests.iter().map(test).collect(),
            overheads: table(account.of(criterion).map(|charged| charged.table)),
            inflated: account.of(criterion).map(|charged| inflated(set, charged)),
        }
    })
}

fn table(table: Option<Table>) -> Option<String> {
    table.map(|table| table.name().to_owned())
}

fn inflated(set: &TaskSet, charged: &Charged) -> Vec<InflatedOutput> {
    let tasks = set.tasks.iter().zip(&charged.inflated);
    let output = tasks.map(|(task, inflated)| {
        let ns = |of: fn(&Sporadic) -> Span| inflated.task.map(|task| of(&task).as_ns());
        InflatedOutput {
            name: task.name.clone(),
            cost_ns: ns(|task| task.cost),
            period_ns: ns(|task| task.period),
            deadline_ns: ns(|task| task.deadline),
            obstacle: inflated
                .obstacle
                .map(|obstacle| obstacle.words().to_owned()),
        }
    });
    output.collect()
}

fn bounds(set: &TaskSet, found: &PolicyAnalysis, account: &Account) -> Vec<BoundsOutput> {
    let of_test = |bounds: &shiftwork_analysis::verdicts::Bounds| {
        let tasks = set.tasks.iter().zip(&bounds.responses);
        let tasks = tasks.filter_map(|(task, &response)| Some(bound(task, response?)));
        BoundsOutput {
            policy: found.policy.clone(),
            test: bounds.test.to_owned(),
            overheads: table(account.of_bounds(bounds.test).map(|charged| charged.table)),
            tasks: tasks.collect(),
        }
    };
    found.bounds.iter().map(of_test).collect()
}

fn bound(task: &Task, response: Span) -> BoundOutput {
    BoundOutput {
        name: task.name.clone(),
        tardiness_ns: less(response, task.deadline),
        response_ns: response.as_ns(),
        slack_ns: less(task.deadline, response),
    }
}

fn best(set: &TaskSet, found: &PolicyAnalysis, account: &Account) -> BestOutput {
    let tasks = set.tasks.iter().zip(&found.best);
    let tasks = tasks.filter_map(|(task, best)| {
        let best = best.as_ref()?;
        Some(BestBoundOutput {
            name: task.name.clone(),
            tardiness_ns: less(best.response, task.deadline),
            response_ns: best.response.as_ns(),
            slack_ns: less(task.deadline, best.response),
            by: best.by.to_owned(),
        })
    });
    BestOutput {
        policy: found.policy.clone(),
        overheads: table(account.best),
        tasks: tasks.collect(),
    }
}

/// How much longer one is than the other; zero if it is not.
const fn less(one: Span, other: Span) -> u64 {
    one.as_ns().saturating_sub(other.as_ns())
}
