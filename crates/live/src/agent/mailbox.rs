//! Requests of the thread that started an agent, one at a time, and the answers.
//!
//! The agent never waits here, not even for a moment. It may be a real-time thread on the CPU where the other thread was
//! preempted within a call: what that thread was about to do it would not do as long as the agent spins. The channels of
//! the standard library spin there until a message that was begun is complete.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use shiftwork_model::{CpuSet, Priority, TaskId};

use crate::LiveError;
use crate::machine::Parameters;
use crate::sys::word::Word;

/// A request from the thread that started the agent.
pub(super) enum Request {
    Admit(TaskId, Parameters),
    FirstJob(TaskId, u64),
    Dismiss(TaskId),
    Approve(TaskId, CpuSet),
    SetAffinity(TaskId, CpuSet),
    SetPriority(TaskId, Priority),
    SetServer(TaskId, Parameters),
}

/// The answer to a request: whether the task's thread is there.
pub(super) type Reply = Result<bool, LiveError>;

/// No answer yet.
const OPEN: u32 = 0;
/// There is an answer.
const ANSWERED: u32 = 1;
/// The agent has ended.
const CLOSED: u32 = 2;

/// What both ends share.
#[derive(Default)]
struct Mailbox {
    /// Locked by the requester only before `is_pending`, by the agent only after it.
    request: Mutex<Option<Request>>,
    is_pending: AtomicBool,
    reply: Mutex<Option<Reply>>,
    state: Word,
}

/// The end of the thread that started the agent.
pub(super) struct Requester(Arc<Mailbox>);

/// The end of the agent; the other one learns when it is dropped.
pub(super) struct Answerer(Arc<Mailbox>);

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The agent has ended.
    Ended,
    /// It has not answered in time.
    Late,
}

/// Both ends of a new mailbox.
pub(super) fn mailbox() -> (Requester, Answerer) {
    let shared = Arc::new(Mailbox::default());
    (Requester(Arc::clone(&shared)), Answerer(shared))
}

impl Requester {
    /// Leaves a request for the agent. What is left of an earlier one is dropped.
    pub(super) fn send(&self, request: Request) {
        let Mailbox {
            request: slot,
            is_pending,
            reply,
            state,
        } = &*self.0;
        *reply.lock().unwrap_or_else(PoisonError::into_inner) = None;
        state.change(ANSWERED, OPEN);
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
        // After the lock is free: the agent does not wait for it.
        is_pending.store(true, Ordering::Release);
    }

    /// Waits for an answer until this instant of the monotonic clock.
    pub(super) fn wait_until(&self, at_ns: u64) -> Result<Reply, Silence> {
        self.0.state.wait_until(OPEN, at_ns);
        let state = self.0.state.get();
        let reply = self.0.reply.lock();
        match reply.unwrap_or_else(PoisonError::into_inner).take() {
            Some(reply) => Ok(reply),
            None if state == CLOSED => Err(Silence::Ended),
            None => Err(Silence::Late),
        }
    }
}

impl Answerer {
    /// The request that was left, if there is one. Does not wait.
    pub(super) fn next(&self) -> Option<Request> {
        if !self.0.is_pending.load(Ordering::Acquire) {
            return None;
        }
        self.0.is_pending.store(false, Ordering::Relaxed);
        self.0.request.try_lock().ok()?.take()
    }

    /// Answers the request. Does not wait: where the other end has just given up, the answer is dropped.
    pub(super) fn answer(&self, reply: Reply) {
        if let Ok(mut slot) = self.0.reply.try_lock() {
            *slot = Some(reply);
        }
        self.0.state.change(OPEN, ANSWERED);
        self.0.state.wake();
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.0.state.set(CLOSED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;

    fn request(index: usize) -> Request {
        Request::FirstJob(TaskId::from_index(index), 0)
    }

    #[test]
    fn each_request_is_answered() {
        let (requester, answerer) = mailbox();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut served = 0;
                while served < 1_000 {
                    let Some(Request::FirstJob(task, _)) = answerer.next() else {
                        std::hint::spin_loop();
                        continue;
                    };
                    assert_eq!(task.index(), served);
                    answerer.answer(Ok(served % 3 == 0));
                    served += 1;
                }
            });
            for index in 0..1_000 {
                requester.send(request(index));
                let reply = requester.wait_until(NEVER).unwrap().unwrap();
                assert_eq!(reply, index % 3 == 0, "request {index}");
            }
        });
    }

    #[test]
    fn agent_does_not_wait_for_a_request_that_was_begun() {
        let (requester, answerer) = mailbox();
        let begun = requester.0.request.lock().unwrap();
        assert!(answerer.next().is_none());
        drop(begun);
        requester.send(request(0));
        assert!(answerer.next().is_some());
        assert!(answerer.next().is_none());
        let reading = requester.0.reply.lock().unwrap();
        answerer.answer(Ok(true));
        drop(reading);
        assert_eq!(requester.wait_until(0).unwrap_err(), Silence::Late);
    }

    #[test]
    fn end_of_the_agent_ends_the_wait_but_for_its_last_answer() {
        let (requester, answerer) = mailbox();
        answerer.answer(Ok(false));
        drop(answerer);
        assert!(matches!(requester.wait_until(NEVER), Ok(Ok(false))));
        requester.send(request(0));
        assert_eq!(requester.wait_until(NEVER).unwrap_err(), Silence::Ended);
    }
}
