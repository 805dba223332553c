//! The machines that live tests run on: which kernel, how its instructions are executed, and for which
//! groups of tests. Instructions are counted on all of them, so that a run does not depend on what else the host does.

use std::time::Duration;

use shiftwork_emulator::KernelChoice;
use shiftwork_emulator::debian::Program;

use crate::catalogue::Group;
use crate::rt_app::{PLACE, RT_APP};

/// For how long each CPU is executed elsewhere: a timer is late by the turns of all other CPUs at most, which is less than what
/// the comparison with the simulation grants.
pub const LONG_TURN: Duration = Duration::from_micros(40);
/// For how long each CPU is executed where tests of [`Group::Locks`] run: about as long as a decision takes.
pub const TURN: Duration = Duration::from_micros(10);

/// CPUs of each machine.
pub const CPUS: u32 = 4;

/// A kind of guest, and the groups of tests that run on it.
pub struct Machine {
    /// Follows the names of its tests; empty for the usual one.
    pub label: &'static str,
    /// See [`Boot::turn`](shiftwork_emulator::Boot::turn).
    pub turn: Option<Duration>,
    pub kernel: fn() -> KernelChoice,
    pub groups: &'static [Group],
    /// Whether it is a Debian system rather than the tests alone.
    pub is_debian: bool,
    /// A program of Debian that it has, and where.
    pub program: Option<(Program, &'static str)>,
    pub only_long: bool,
}

/// The usual one; others say in what they differ.
const USUAL: Machine = Machine {
    label: "",
    turn: Some(LONG_TURN),
    kernel: || KernelChoice::Newest,
    groups: &[],
    is_debian: false,
    program: None,
    only_long: false,
};

/// The oldest kernel with sched_ext that can be had.
const OLDEST: &str = "_on_a_still_older_kernel";
const OLDEST_KERNEL: fn() -> KernelChoice = || KernelChoice::Older(2);

/// All machines, those that take longest first.
pub const MACHINES: &[Machine] = &[
    Machine {
        groups: &[Group::Latency, Group::Realtime, Group::Deadline],
        ..USUAL
    },
    Machine {
        groups: &[Group::Function, Group::Everywhere],
        ..USUAL
    },
    Machine {
        turn: None,
        groups: &[Group::Reactions],
        ..USUAL
    },
    Machine {
        turn: Some(TURN),
        groups: &[Group::Locks],
        ..USUAL
    },
    Machine {
        groups: &[Group::Clusters],
        ..USUAL
    },
    Machine {
        groups: &[Group::RtApp],
        program: Some((RT_APP, PLACE)),
        ..USUAL
    },
    Machine {
        groups: &[Group::Debian],
        is_debian: true,
        ..USUAL
    },
    Machine {
        kernel: || KernelChoice::Release("6.12".to_owned()),
        groups: &[Group::Fifo],
        ..USUAL
    },
    Machine {
        label: OLDEST,
        kernel: OLDEST_KERNEL,
        groups: &[Group::Everywhere],
        ..USUAL
    },
    Machine {
        label: "_on_6_1",
        kernel: || KernelChoice::Release("6.1".to_owned()),
        groups: &[Group::Fifo],
        only_long: true,
        ..USUAL
    },
    Machine {
        label: "_on_6_12",
        kernel: || KernelChoice::Release("6.12".to_owned()),
        groups: &[Group::Deadline],
        only_long: true,
        ..USUAL
    },
    Machine {
        label: "_on_6_12",
        kernel: || KernelChoice::Release("6.12".to_owned()),
        groups: &[Group::Clusters],
        only_long: true,
        ..USUAL
    },
    Machine {
        label: "_on_an_older_kernel",
        kernel: || KernelChoice::Older(1),
        groups: &[Group::Deadline],
        only_long: true,
        ..USUAL
    },
    Machine {
        groups: &[
            Group::Function,
            Group::Everywhere,
            Group::Kernels,
            Group::Realtime,
        ],
        ..other_kernel("_on_rt", || KernelChoice::Rt)
    },
    other_kernel("_on_an_older_kernel", || KernelChoice::Older(1)),
    Machine {
        groups: &[Group::Function, Group::Kernels],
        ..other_kernel(OLDEST, OLDEST_KERNEL)
    },
];

const fn other_kernel(label: &'static str, kernel: fn() -> KernelChoice) -> Machine {
    Machine {
        label,
        kernel,
        groups: &[Group::Function, Group::Everywhere, Group::Kernels],
        only_long: true,
        ..USUAL
    }
}
