//! When misses are explained: beside the agent's other work, one after the other, and no more of them than there is time
//! for. An explanation reads all that is remembered, which takes long; callers do not wait for it.

use std::collections::VecDeque;
use std::thread::{Builder, JoinHandle};

use shiftwork_model::Instant;

use crate::accounts::Miss;

/// How many misses may wait for their explanations. Where more happen at once the first ones tell why.
const WAITING_MAX: usize = 16;

/// After an explanation there is none for so many times as long as it took: misses are told anyway.
const REST: u64 = 9;

/// Explains misses in a thread of its own, which is ordinary work.
#[derive(Debug, Default)]
pub struct Explainer {
    waiting: VecDeque<Miss>,
    at_work: Option<(Instant, JoinHandle<Option<String>>)>,
    rests_until: Instant,
}

impl Explainer {
    /// Somebody has missed a deadline.
    pub fn tell(&mut self, miss: Miss) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(miss);
        }
    }

    /// It is now so late: takes the explanation that is finished, if one is, and begins with the next. `work` makes of a
    /// miss what is to be done; its result is `None` where nothing can be said.
    pub fn advance<W>(&mut self, now: Instant, work: impl FnOnce(Miss) -> W) -> Option<String>
    where
        W: FnOnce() -> Option<String> + Send + 'static,
    {
        let finished = self.at_work.take_if(|(_, thread)| thread.is_finished());
        let said = finished.and_then(|(began, thread)| {
            let rest = now.late_since(began).as_ns().saturating_mul(REST);
            self.rests_until = now + shiftwork_model::Span::from_ns(rest);
            // One that panicked has said nothing.
            thread.join().ok().flatten()
        });
        if self.at_work.is_none()
            && now >= self.rests_until
            && let Some(miss) = self.waiting.pop_front()
        {
            let thread = Builder::new().name("explainer".to_owned());
            // Where no thread can be had there is no explanation either.
            let begun = thread.spawn(work(miss)).ok();
            self.at_work = begun.map(|thread| (now, thread));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use shiftwork_model::{Span, TaskId};

    use super::*;

    fn miss(began_ns: u64) -> Miss {
        Miss {
            task: TaskId::from_index(1),
            began_ns,
            due_ns: began_ns + 5,
        }
    }

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Span::from_ns(ns)
    }

    /// Says which miss it is about once it may.
    fn after(may: Receiver<()>) -> impl FnOnce(Miss) -> Box<dyn FnOnce() -> Option<String> + Send> {
        |miss| {
            Box::new(move || {
                let _ = may.recv();
                Some(miss.began_ns.to_string())
            })
        }
    }

    /// Waits until the thread at work is finished.
    fn finish(explainer: &Explainer) {
        while explainer
            .at_work
            .as_ref()
            .is_some_and(|(_, thread)| !thread.is_finished())
        {
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_is_explained_after_the_other_and_nobody_waits_for_it() {
        let mut explainer = Explainer::default();
        explainer.tell(miss(7));
        explainer.tell(miss(8));
        let (go, may) = channel();
        assert_eq!(explainer.advance(at(100), after(may)), None);
        let (other, not_yet) = channel();
        assert_eq!(explainer.advance(at(101), after(not_yet)), None);
        assert!(other.send(()).is_err(), "the second has not begun");
        go.send(()).unwrap();
        finish(&explainer);
        let (go, may) = channel();
        // It took 10 ns, so there is none for 90.
        let said = explainer.advance(at(110), after(may));
        assert_eq!(said.as_deref(), Some("7"));
        assert!(go.send(()).is_err());
        let (go, may) = channel();
        assert_eq!(explainer.advance(at(199), after(may)), None);
        assert!(go.send(()).is_err());
        let (go, may) = channel();
        assert_eq!(explainer.advance(at(200), after(may)), None);
        go.send(()).unwrap();
        finish(&explainer);
        let (_go, may) = channel();
        assert_eq!(explainer.advance(at(300), after(may)).as_deref(), Some("8"));
    }

    #[test]
    fn of_many_misses_the_first_are_explained() {
        let mut explainer = Explainer::default();
        for began_ns in 0..100 {
            explainer.tell(miss(began_ns));
        }
        assert_eq!(explainer.waiting.front(), Some(&miss(0)));
        assert_eq!(explainer.waiting.len(), WAITING_MAX);
    }

    #[test]
    fn an_explanation_that_fails_is_none() {
        let mut explainer = Explainer::default();
        explainer.tell(miss(1));
        explainer.advance(at(1), |_| || None);
        finish(&explainer);
        assert_eq!(explainer.advance(at(1), |_| || None), None);
        explainer.tell(miss(2));
        explainer.advance(at(2), |_| || -> Option<String> { panic!("as it may") });
        finish(&explainer);
        assert_eq!(explainer.advance(at(9), |_| || None), None);
        assert!(explainer.at_work.is_none());
    }
}
