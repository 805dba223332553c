//! What placements are built from.
//!
//! | file | what |
//! |---|---|
//! | `ready` | the table of tasks, and heaps of backlogged jobs |
//! | `tournament`, `least_urgent` | the smallest of a fixed number of slots; the least urgent of the running jobs |
//! | `cpus` | which CPUs share a cache, and which there are |
//! | `domains` | global scheduling within disjoint groups of CPUs |
//! | `mask`, `backlogs`, `arbitrary` | arbitrary affinities: sets of CPUs, waiting jobs by set, the assignment |
//! | `laminar` | families of nested or disjoint affinities |
//! | `fewest_shifts` | the placement nearest to the present one |

pub(super) mod arbitrary;
pub(super) mod backlogs;
pub(super) mod cpus;
pub(super) mod domains;
pub(super) mod fewest_shifts;
pub(super) mod laminar;
pub(super) mod least_urgent;
pub(super) mod mask;
pub(super) mod ready;
pub(super) mod tournament;
