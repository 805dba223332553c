//! `shiftwork doctor`: what this machine can do, and what to change.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_live::host::System;
use shiftwork_trace::SCHEMA_VERSION;

use crate::doctor::{Ability, Finding, SchedDeadline, SchedDeadlineOutput, Verdict, examine};
use crate::failure::{Answer, Failure};
use crate::output::{Console, columns};

/// What `doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorOutput {
    schema_version: u64,
    findings: Vec<Finding>,
    /// The threads that run under SCHED_DEADLINE now.
    sched_deadline: SchedDeadlineOutput,
    #[serde(flatten)]
    ability: Ability,
}

/// Examines this machine.
pub fn run(console: &mut Console) -> Result<Answer, Failure> {
    let system = System::this();
    let deadline = SchedDeadline::of(&system);
    let findings = examine(&system, &deadline);
    let ability = Ability::of(&system);
    if console.json {
        console.json_line(&DoctorOutput {
            schema_version: SCHEMA_VERSION,
            findings,
            sched_deadline: deadline.output(),
            ability,
        })?;
        return Ok(Answer::Yes);
    }
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let mark = mark(finding.verdict, console.color);
            vec![mark, finding.name.to_owned(), finding.found.clone()]
        })
        .collect();
    // Remedies stand below what was found: behind the verdict, the name, and the gaps between them.
    let names = findings.iter().map(|finding| finding.name.len());
    let indent = VERDICT_WIDTH + 2 + names.max().unwrap_or(0) + 2;
    for (line, finding) in columns(&rows).lines().zip(&findings) {
        console.line(line)?;
        if let Some(remedy) = &finding.remedy {
            console.line(format!("{:indent$}-> {remedy}", ""))?;
        }
    }
    console.line("")?;
    console.line(ability.to_string())?;
    Ok(Answer::Yes)
}

/// Characters of the longest verdict.
const VERDICT_WIDTH: usize = 7;

/// The verdict as a word of fixed width; colour only repeats it.
fn mark(verdict: Verdict, color: bool) -> String {
    let word = format!("{:VERDICT_WIDTH$}", verdict.name());
    let code = match verdict {
        Verdict::Good => "32",
        Verdict::Poor => "33",
        Verdict::Missing => "31",
        Verdict::Unknown => "2",
    };
    if color {
        format!("\x1b[{code}m{word}\x1b[0m")
    } else {
        word
    }
}
