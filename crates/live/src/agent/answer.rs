//! How an agent answers the thread of a task that locks or unlocks a mutex.

use crate::sync::Word;
use crate::sys::clock::pause;

/// Whether the thread of a task waits for an agent, after it has requested a mutex or unlocked one.
///
/// The thread waits on its CPU as long as it has one: an agent answers within microseconds, and takes the CPU from a thread that
/// has to wait for longer, unless it is to spin.
#[derive(Debug)]
pub(crate) struct Answer(Word);

const NONE: u32 = 0;
const AWAITED: u32 = 1;

impl Answer {
    pub(crate) fn new() -> Self {
        Self(Word::new(NONE))
    }

    /// For the thread, before it asks the agent.
    pub(crate) fn expect(&self) {
        self.0.change(NONE, AWAITED);
    }

    /// For the agent: the thread may go on.
    pub(crate) fn give(&self) {
        self.0.change(AWAITED, NONE);
    }

    /// For the thread: returns with the answer, or when it need not wait any more.
    pub(crate) fn wait(&self, is_over: impl Fn() -> bool) {
        while self.0.get() == AWAITED && !is_over() {
            pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_waits_for_the_answer_to_its_question_or_until_the_run_is_over() {
        let answer = Answer::new();
        answer.wait(|| false);
        answer.expect();
        answer.wait(|| true);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| answer.wait(|| false));
            answer.give();
            thread.join().unwrap();
        });
        // What was answered before is no answer to a later question.
        answer.give();
        answer.expect();
        assert_eq!(answer.0.get(), AWAITED);
    }
}
