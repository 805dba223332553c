//! The vocabulary that every other crate of shiftwork speaks: time, CPU sets, affinities, tasks,
//! jobs, task sets, and the facts that a run records.
//!
//! This crate owns *meanings*, and no algorithm beyond what a meaning needs (set algebra, the kind
//! of a family of affinities, exact sums of utilizations, which CPU a task of a partitioned policy
//! is bound to), and the properties of policies. It must never contain scheduling, text formats or anything that needs an operating
//! system: it is `no_std`.
//!
//! Start reading at [`TaskSet`], which holds everything that a task-set file says.
#![no_std]

extern crate alloc;

mod affinity;
mod chain;
mod cpu;
mod curve;
mod linux;
mod locking;
mod nearest;
mod overheads;
mod packing;
mod policy_traits;
mod random;
mod record;
mod resource;
mod slots;
mod task;
mod taskset;
mod thread;
mod time;
mod trigger;
mod utilization;

pub use affinity::{Affinity, AffinityKind, first_overlap};
pub use chain::Chain;
pub use cpu::{CPUS_MAX, CpuId, CpuSet, ParseCpuSetError};
pub use curve::{ArrivalCurve, CurveError};
pub use linux::{Lagging, Repairs};
pub use locking::NestedLock;
pub use nearest::nearest_name;
pub use overheads::{LinearCost, Overheads};
pub use packing::{Fit, Heuristic, Packing, Parcel, groups_within, pack, pack_by};
pub use policy_traits::{
    Affinities, Alignment, Budgets, Interrupts, Invariant, LinuxRules, Machines, Order, Placement,
    PolicyTraits, Preemption, ReadyQueue, Role, Structure,
};
pub use random::RandomStream;
pub use record::{NotReadyReason, Record, RecordKind, Recorder};
pub use resource::{Protocol, Resource, ResourceId};
pub use slots::{Slots, Weight, WindowSource, pack_weights, weights_fit};
pub use task::{
    Arrival, Job, JobId, Join, OnOverrun, Pace, Phase, Priority, Task, TaskId, Trigger, Work,
};
pub use taskset::{Action, Change, Frequency, Platform, SchedulerOptions, Share, TaskSet};
pub use thread::ThreadName;
pub use time::{InWholeUnits, Instant, Span};
pub use utilization::{CapacitySum, Utilization};
