//! Push and pull follow their definition: after every event every CPU runs the job, and every task
//! has the queue, that the definition gives.
//!
//! `oracle.rs` is the definition, executed naively; `drive.rs` sends events to it and to the policy and
//! compares; `exhaustive.rs` and `random.rs` choose the events; `promises.rs` is what has to hold of any
//! such policy, whatever its definition says.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod drive;
mod exhaustive;
mod oracle;
mod promises;
mod random;

use shiftwork_model::Repairs;
use shiftwork_policy::Ties;

/// All that changes what the placement does.
fn all_rules() -> Vec<(Repairs, Ties)> {
    let mut rules = Vec::new();
    for no_bypass in [false, true] {
        for push_without_itself in [false, true] {
            let repairs = Repairs {
                no_bypass,
                push_without_itself,
                ..Repairs::NONE
            };
            rules.extend([(repairs, Ties::Fifo), (repairs, Ties::Running)]);
        }
    }
    rules
}
