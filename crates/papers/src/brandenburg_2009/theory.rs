//! Partitioned, clustered and global EDF with the overheads of the slides: what scheduling theory trades.

use shiftwork_analysis::overheads::Structure;
use shiftwork_analysis::verdicts::{Answer, Candidate, Criterion, Price, Rule, analyse_under};
use shiftwork_model::{CpuSet, TaskSet};
use shiftwork_policy::registry;
use shiftwork_taskset::overheads::{OverheadFile, Use};

use super::CPUS;
use super::derived::FAMILIES;
use super::findings::CAPS;

/// The policies.
pub const POLICIES: [&str; 3] = ["p-edf", "c-edf", "g-edf"];
/// So many hardware threads share a core.
const CLUSTER: usize = 4;
/// How many task sets are drawn for each cap: fewer, since every test is asked.
const SETS: u64 = 5;
/// How much each test may do.
const STEPS: u64 = 50_000;

/// The share of the sets of a family, over all caps, that each of [`POLICIES`] is shown to schedule, in thousandths: hard,
/// then soft.
///
/// # Errors
/// In words, if a set cannot be drawn, or the file lacks a policy.
pub fn means(file: &OverheadFile, family: usize) -> Result<Vec<[u64; 2]>, String> {
    let mut counts = vec![[0; 2]; POLICIES.len()];
    for cap in CAPS {
        for index in 0..SETS {
            let mut set = FAMILIES[family].set(cap, index)?;
            let all = CpuSet::first(CPUS);
            let cpus: Vec<_> = all.iter().collect();
            set.platform.clusters = cpus
                .chunks(CLUSTER)
                .map(|chunk| {
                    chunk
                        .iter()
                        .map(|&cpu| CpuSet::single(cpu))
                        .fold(CpuSet::EMPTY, |a, b| a | b)
                })
                .collect();
            let asked = POLICIES.map(|policy| candidate(&set, policy, file));
            let asked: Vec<_> = asked.into_iter().collect::<Result<_, String>>()?;
            let (analysis, _) = analyse_under(&set, &asked, STEPS);
            for (counts, found) in counts.iter_mut().zip(&analysis.policies) {
                for (count, criterion) in counts.iter_mut().zip([Criterion::Hard, Criterion::Soft])
                {
                    let answer = found.judgement(criterion).answer;
                    *count += u64::from(answer == Answer::Schedulable);
                }
            }
        }
    }
    let all = CAPS.len() as u64 * SETS;
    Ok(counts
        .into_iter()
        .map(|of| of.map(|count| count * 1_000 / all))
        .collect())
}

fn candidate(
    set: &TaskSet,
    policy: &str,
    file: &OverheadFile,
) -> Result<(Candidate, Option<Price>), String> {
    let unknown = || format!("nothing is known of {policy}");
    let entry = registry::find(policy).map_err(|error| error.to_string())?;
    let bound = match entry.build(set) {
        Ok(built) => Ok(built
            .packing()
            .unwrap_or_else(|| set.tasks.iter().map(|task| task.affinity).collect())),
        Err(refusal) => Err(refusal.to_string()),
    };
    let price = Price {
        structure: Structure::of_policy(policy, set).ok_or_else(unknown)?,
        worst: file.find(Use::Worst, policy).cloned(),
        average: file.find(Use::Average, policy).cloned(),
    };
    let candidate = Candidate {
        policy: policy.to_owned(),
        rule: Rule::of_policy(policy).ok_or_else(unknown)?,
        bound,
    };
    Ok((candidate, Some(price)))
}
