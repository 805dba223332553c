//! Policies that guarantee nothing under any condition that is known, and why.

/// Why nothing is guaranteed under the policy with this name, in a sentence without its end; for policies
/// of which admission knows no condition.
pub fn why_nothing_is_guaranteed(policy: &str) -> &'static str {
    match policy {
        "dl-linux" => {
            "Linux only adds up the utilizations, and that does not bound tardiness under SCHED_DEADLINE as it \
             is (docs/sched-deadline.md says why); `dl-sp` is the same with four repairs, and has a condition \
             under which it is bounded"
        }
        "CQm" | "S-CQm" | "CQ1" | "S-CQ1" => {
            "jobs wait for the next quantum to begin, and so does a CPU that is free, of which no condition takes \
             account; `CEm` and `CE1` decide at once, and have one"
        }
        _ => "no condition is known under which this policy guarantees anything",
    }
}
