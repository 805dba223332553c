//! `shiftwork policies`: the names, what they are, where they come from and what they take.

use shiftwork_verbs::policies::output;

use crate::failure::{Answer, Failure};
use crate::output::Console;

/// Lists the policies.
pub fn run(console: &mut Console) -> Result<Answer, Failure> {
    let output = output();
    if console.json {
        console.json_line(&output)?;
        return Ok(Answer::Yes);
    }
    let policies = output.policies;
    let width = policies
        .iter()
        .map(|policy| policy.name.len())
        .max()
        .unwrap_or(0);
    for policy in &policies {
        console.line(format!("{:width$}  {}", policy.name, policy.summary))?;
        console.line(format!("{:width$}  takes: {}", "", policy.domain))?;
        console.line(format!("{:width$}  source: {}", "", policy.source))?;
        if !policy.models.is_empty() {
            let models = policy.models.join(", ");
            console.line(format!("{:width$}  models: {models}", ""))?;
        }
    }
    Ok(Answer::Yes)
}
