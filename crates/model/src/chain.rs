//! Cause-effect chains: tasks that pass data on, one to the next.

use alloc::string::String;
use alloc::vec::Vec;

use crate::task::TaskId;
use crate::time::Span;

/// A cause-effect chain. Its first task samples the environment, each further task processes the output of the one before,
/// and the last one acts on the environment. Its tasks arrive by time, or the one before triggers them.
///
/// Communication is implicit, by buffers that hold the last value written. A job reads at its *start*, the first
/// instant after which it executes, and writes at its completion. A read sees everything that was written at or before its
/// instant. A job that is dropped writes nothing.
///
/// # Source
/// M. Dürr, G. von der Brüggen, K.-H. Chen, J.-J. Chen, "End-to-End Timing Analysis of Sporadic Cause-Effect Chains in
/// Distributed Systems", ACM Transactions on Embedded Computing Systems 18(5s), 2019: immediate forward and backward job
/// chains, augmented by the instants of the cause and of the last effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Unique in the task set.
    pub name: String,
    /// The path of the data: at least two tasks, all different.
    pub tasks: Vec<TaskId>,
    /// The longest reaction time that is wanted; `None`: any.
    ///
    /// A reaction time begins with an event at or after the first read of the first task, and ends with the first
    /// completion of a job of the last task whose output rests on a sample taken after the event. It is longest for an event
    /// just after a read.
    pub reaction: Option<Span>,
    /// The longest data age that is wanted; `None`: any.
    ///
    /// A data age begins with the read of the first task on which an output of the last task rests, and ends when
    /// that output is replaced: at the next completion of a job of the last task.
    pub age: Option<Span>,
    /// The longest end-to-end latency that is wanted; `None`: any. Only where each task triggers the next.
    ///
    /// It begins with the arrival of a job of the first task, and ends with the completion of a job of the last task that
    /// stems from it: that it triggered, directly or through the tasks between.
    pub latency: Option<Span>,
}
