//! `shiftwork doctor`: what this machine can do, and what to change.

use schemars::JsonSchema;
use serde::Serialize;

use crate::doctor::{Finding, Verdict, examine};
use crate::failure::{Answer, Failure};
use crate::json::SCHEMA_VERSION;
use crate::output::{Console, columns};
use crate::system::System;

/// What `doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorOutput {
    schema_version: u64,
    findings: Vec<Finding>,
}

/// Examines this machine.
pub fn run(console: &mut Console) -> Result<Answer, Failure> {
    let findings = examine(&System::this());
    if console.json {
        console.json_line(&DoctorOutput {
            schema_version: SCHEMA_VERSION,
            findings,
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
    for (line, finding) in columns(&rows).lines().zip(&findings) {
        console.line(line)?;
        if let Some(remedy) = &finding.remedy {
            console.line(format!("{:26}-> {remedy}", ""))?;
        }
    }
    console.line("")?;
    console.line(
        "Simulating works on every machine; all of this matters to scheduling live on this one.",
    )?;
    Ok(Answer::Yes)
}

/// The verdict as a word of fixed width; colour only repeats it.
fn mark(verdict: Verdict, color: bool) -> String {
    let word = format!("{:7}", verdict.name());
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
