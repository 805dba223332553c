//! What this machine can do, in one line.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_live::host::{Obstacle, System, obstacle_to_fifo, obstacles};

/// What this machine can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ability {
    /// The machines that can run a task set here: `sim`, `kernel` and `agent` unless something is in the
    /// way, and `fifo` unless real-time priorities are not allowed.
    machines: Vec<&'static str>,
    /// What is in the way of `kernel` and `agent`, the most fundamental first.
    obstacles: Vec<ObstacleOutput>,
}

/// Something that keeps this machine from running a task set live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ObstacleOutput {
    /// What is in the way.
    what: String,
    /// What mends it: one command, or one sentence where no command can.
    remedy: String,
}

impl Ability {
    /// What this machine can do.
    pub fn of(system: &System) -> Self {
        let obstacles: Vec<ObstacleOutput> = obstacles(system)
            .into_iter()
            .map(|Obstacle { what, remedy }| ObstacleOutput { what, remedy })
            .collect();
        let mut machines = vec!["sim"];
        if obstacles.is_empty() {
            machines.extend(["kernel", "agent"]);
        }
        if obstacle_to_fifo(system).is_none() {
            machines.push("fifo");
        }
        Self {
            machines,
            obstacles,
        }
    }
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can: simulate")?;
        if let [_, live @ ..] = &self.machines[..]
            && !live.is_empty()
        {
            write!(f, ", run ({})", live.join(", "))?;
        }
        let Some((first, rest)) = self.obstacles.split_first() else {
            return Ok(());
        };
        write!(
            f,
            "\ncannot run {}: {}{}; `make demo` runs it in an emulator",
            match self.machines.len() {
                1 => "live",
                _ => "through sched_ext",
            },
            first.what,
            match rest.len() {
                0 => String::new(),
                more => format!(" (and {more} more, see above)"),
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_works_and_the_next_what_does_not() {
        let free = [
            ("/sys/kernel/sched_ext/state", "disabled\n"),
            ("/proc/self/status", "CapEff:\t000001ffffffffff\n"),
        ];
        let without_types = Ability::of(&System::of(free));
        assert_eq!(without_types.machines, ["sim", "fifo"]);
        assert_eq!(
            without_types.to_string(),
            "can: simulate, run (fifo)\ncannot run through sched_ext: this kernel does not describe its types (BTF): no \
             /sys/kernel/btf/vmlinux; `make demo` runs it in an emulator"
        );
        let old = [
            ("/proc/sys/kernel/osrelease", "6.1.0\n"),
            ("/proc/self/status", "CapEff:\t0\n"),
            (
                "/proc/self/limits",
                "Max realtime priority     0        0\n",
            ),
        ];
        assert_eq!(
            Ability::of(&System::of(old)).to_string(),
            "can: simulate\ncannot run live: kernel 6.1.0 is older than 6.15, the first with all \
             of sched_ext that is needed (and 1 more, see above); `make demo` runs it in an emulator"
        );
        let able = Ability {
            machines: vec!["sim", "kernel", "agent", "fifo"],
            obstacles: vec![],
        };
        assert_eq!(able.to_string(), "can: simulate, run (kernel, agent, fifo)");
    }
}
