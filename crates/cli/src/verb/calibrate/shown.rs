//! What of a calibration is printed, for people and as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shiftwork_calibrate::{
    Aim, Batches, Calibration, Interval, Known, Plan, Quantity, Summary, Verdict, compare, fits,
    may_be_chance, queue_fits,
};
use shiftwork_report::{signed_span as signed, span};
use shiftwork_trace::SCHEMA_VERSION;

use super::list;
use crate::failure::Failure;
use crate::output::{Console, columns};

/// What `calibrate --json` prints.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrateOutput {
    schema_version: u64,
    /// Which machine the overheads describe: `agent`, `fifo` or `in-kernel`.
    machine: String,
    /// On which CPUs it was measured.
    cpus: Vec<usize>,
    /// In how many rounds.
    rounds: usize,
    /// True if it was stopped (Ctrl-C) before its end; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted: Option<bool>,
    /// What could not be measured, and what to do about it.
    notes: Vec<String>,
    quantities: Vec<QuantityOutput>,
    /// What policies take to decide, by the number of tasks.
    fits: Vec<FitOutput>,
    /// What calls of ready queues take, by the number of tasks.
    #[serde(default)]
    queue_fits: Vec<QueueFitOutput>,
    /// How far it agrees with the earlier calibration of `--check`; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreement: Option<CalibrationAgreement>,
}

/// One thing that was measured. Differences may be negative.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuantityOutput {
    /// With the policy or cache distance and what it was measured at.
    name: String,
    /// What kind of thing.
    kind: String,
    /// A policy, a ready queue or a cache distance; null where there is one only.
    variant: Option<String>,
    /// A number of tasks (`decide`, `queue-*`) or of bytes (`preemption`, `migration`); null elsewhere.
    at: Option<u64>,
    samples: usize,
    /// The largest, which `mean_ns` and `worst_ns` leave out: at most 1%.
    dropped: usize,
    /// How many samples found no room on their way, and are counted nowhere else.
    lost: u64,
    min_ns: i64,
    mean_ns: IntervalOutput,
    /// The median of the means of the rounds; this goes into `average` tables.
    typical_ns: i64,
    /// The mean of each round.
    rounds_ns: Vec<i64>,
    median_ns: IntervalOutput,
    p99_ns: IntervalOutput,
    worst_ns: i64,
    max_ns: i64,
}

/// A value and the ends of its 95% confidence interval, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IntervalOutput {
    value: i64,
    low: i64,
    high: i64,
}

/// A cost that grows with the number of tasks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FitOutput {
    policy: String,
    /// `worst` or `average`.
    r#use: String,
    base_ns: u64,
    per_task_ns: u64,
}

/// A cost of a ready queue that grows with the number of tasks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueueFitOutput {
    /// How it is built.
    queue: String,
    /// `queue-insert`, `queue-merge`, `queue-take` or `queue-look`.
    call: String,
    /// `worst` or `average`.
    r#use: String,
    base_ns: u64,
    per_task_ns: u64,
}

/// How far two calibrations agree.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CalibrationAgreement {
    /// How many quantities both have measured.
    compared: usize,
    /// Those with confidence intervals of the mean that do not overlap.
    differing: Vec<DifferenceOutput>,
}

/// A quantity of which two calibrations say different things.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DifferenceOutput {
    name: String,
    before_ns: IntervalOutput,
    after_ns: IntervalOutput,
}

impl From<Interval> for IntervalOutput {
    fn from(Interval { value, low, high }: Interval) -> Self {
        Self { value, low, high }
    }
}

impl From<Verdict> for DifferenceOutput {
    fn from(it: Verdict) -> Self {
        Self {
            name: it.name,
            before_ns: it.before.into(),
            after_ns: it.after.into(),
        }
    }
}

impl QuantityOutput {
    /// `it` is what the batches amount to.
    fn new(quantity: &Quantity, batches: &Batches, it: &Summary) -> Self {
        Self {
            name: quantity.to_string(),
            kind: quantity.kind.name().to_owned(),
            variant: (!quantity.variant.is_empty()).then(|| quantity.variant.to_owned()),
            at: (quantity.at > 0).then_some(quantity.at),
            samples: it.samples,
            dropped: it.dropped,
            lost: batches.lost,
            min_ns: it.min,
            mean_ns: it.mean.into(),
            typical_ns: it.typical,
            rounds_ns: batches.means(it.worst),
            median_ns: it.median.into(),
            p99_ns: it.p99.into(),
            worst_ns: it.worst,
            max_ns: it.max,
        }
    }

    fn known(&self) -> Known {
        let IntervalOutput { value, low, high } = self.mean_ns;
        Known {
            name: self.name.clone(),
            mean: Interval { value, low, high },
        }
    }

    fn row(&self) -> Vec<String> {
        let mean = self.mean_ns;
        let half = mean
            .value
            .abs_diff(mean.low)
            .max(mean.high.abs_diff(mean.value));
        vec![
            self.name.clone(),
            self.samples.to_string(),
            signed(mean.value),
            format!("+- {}", span(half)),
            signed(self.typical_ns),
            signed(self.median_ns.value),
            signed(self.p99_ns.value),
            signed(self.worst_ns),
            signed(self.max_ns),
        ]
    }
}

impl CalibrateOutput {
    /// What was measured, and how far it agrees with what was measured earlier.
    pub fn new(plan: &Plan, done: &Calibration, earlier: Option<&Self>) -> Self {
        let quantities: Vec<QuantityOutput> = done
            .measured
            .iter()
            .filter_map(|(quantity, batches)| {
                let summary = batches.summary()?;
                Some(QuantityOutput::new(quantity, batches, &summary))
            })
            .collect();
        let fits = fits(plan, done).into_iter().map(|fit| FitOutput {
            policy: fit.policy.to_owned(),
            r#use: fit.purpose.name().to_owned(),
            base_ns: fit.cost.base.as_ns(),
            per_task_ns: fit.cost.per_task.as_ns(),
        });
        let queue_fits = queue_fits(done).into_iter().map(|fit| QueueFitOutput {
            queue: fit.queue.to_owned(),
            call: fit.call.name().to_owned(),
            r#use: fit.purpose.name().to_owned(),
            base_ns: fit.cost.base.as_ns(),
            per_task_ns: fit.cost.per_task.as_ns(),
        });
        let agreement = earlier.map(|earlier| agreement(&earlier.quantities, &quantities));
        Self {
            schema_version: SCHEMA_VERSION,
            machine: match plan.aim {
                Aim::InKernel => String::from("in-kernel"),
                Aim::Fifo(_) => String::from("fifo"),
                Aim::Agent(_) => String::from("agent"),
            },
            cpus: list(&plan.cpus),
            rounds: done.rounds,
            interrupted: done.is_interrupted.then_some(true),
            notes: done.notes.clone(),
            quantities,
            fits: fits.collect(),
            queue_fits: queue_fits.collect(),
            agreement,
        }
    }

    /// Whether no more differs from the earlier calibration, if there is one, than may by chance.
    pub fn agrees(&self) -> bool {
        let agreement = self.agreement.as_ref();
        agreement.is_none_or(|it| may_be_chance(it.differing.len(), it.compared))
    }

    /// The same for people.
    pub fn show(&self, console: &mut Console) -> Result<(), Failure> {
        let heads = [
            "", "samples", "mean", "95%", "typical", "median", "p99", "worst", "max",
        ];
        let mut rows = vec![heads.map(str::to_owned).to_vec()];
        // Against the number of tasks there are lines.
        let is_by_tasks =
            |it: &&QuantityOutput| it.kind == "decide" || it.kind.starts_with("queue-");
        let others = self.quantities.iter().filter(|it| !is_by_tasks(it));
        rows.extend(others.map(QuantityOutput::row));
        console.text(&columns(&rows))?;
        console.line(
            "mean, typical (the median of the rounds' means) and worst are without the top 1%, the others of \
             all samples",
        )?;
        for (head, lines) in [
            ("decide", self.decide_lines()),
            ("ready queue", self.queue_lines()),
        ] {
            if !lines.is_empty() {
                console.line("")?;
                console.text(&columns(&line_rows(head, &lines)))?;
            }
        }
        match &self.agreement {
            Some(agreement) => agreement.show(console),
            None => Ok(()),
        }
    }

    fn decide_lines(&self) -> Vec<Line> {
        let line = |fit: &FitOutput| {
            (
                fit.policy.clone(),
                fit.r#use.clone(),
                fit.base_ns,
                fit.per_task_ns,
            )
        };
        self.fits.iter().map(line).collect()
    }

    fn queue_lines(&self) -> Vec<Line> {
        let line = |fit: &QueueFitOutput| {
            let call = fit.call.trim_start_matches("queue-");
            let name = format!("{} {call}", fit.queue);
            (name, fit.r#use.clone(), fit.base_ns, fit.per_task_ns)
        };
        self.queue_fits.iter().map(line).collect()
    }
}

/// A cost by the number of tasks: its name, its use, its base, and what it is more for each task, in ns.
type Line = (String, String, u64, u64);

/// A row for each name, with both uses.
fn line_rows(head: &str, lines: &[Line]) -> Vec<Vec<String>> {
    let heads = [head, "average", "per task", "worst", "per task"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for average in lines.iter().filter(|line| line.1 == "average") {
        let worst = lines
            .iter()
            .find(|line| line.0 == average.0 && line.1 == "worst");
        let pair = |line: &Line| [span(line.2), format!("+ {}", span(line.3))];
        let mut row = vec![average.0.clone()];
        row.extend(pair(average));
        row.extend(worst.map(pair).into_iter().flatten());
        rows.push(row);
    }
    rows
}

impl CalibrationAgreement {
    fn show(&self, console: &mut Console) -> Result<(), Failure> {
        console.line("")?;
        console.line(format!(
            "{} of {} means agree with the earlier calibration",
            self.compared - self.differing.len(),
            self.compared
        ))?;
        let text = |it: IntervalOutput| {
            format!(
                "{} ({} .. {})",
                signed(it.value),
                signed(it.low),
                signed(it.high)
            )
        };
        for it in &self.differing {
            console.line(format!(
                "! {}: {}, and before {}",
                it.name,
                text(it.after_ns),
                text(it.before_ns)
            ))?;
        }
        Ok(())
    }
}

fn agreement(before: &[QuantityOutput], after: &[QuantityOutput]) -> CalibrationAgreement {
    let known = |all: &[QuantityOutput]| all.iter().map(QuantityOutput::known).collect::<Vec<_>>();
    let verdicts = compare(&known(before), &known(after));
    CalibrationAgreement {
        compared: verdicts.len(),
        differing: verdicts
            .into_iter()
            .filter(|it| !it.agrees)
            .map(Into::into)
            .collect(),
    }
}
