use shiftwork_model::{Arrival, Invariant, Join, RandomStream, RecordKind, TaskSet, Trigger};

use super::*;
use crate::check::testing::edf;
use crate::explain::Culprit;
use crate::testing::{Script, at, job, noise, set};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Of three tasks on one CPU the first triggers the second; a chain of both wants this latency.
fn triggered(latency: u64) -> TaskSet {
    let mut set = set(1, &[("a", "0"), ("b", "0"), ("c", "0")]);
    set.tasks[1].arrival = Arrival::Triggered(Trigger {
        sources: vec![TaskId::from_index(0)],
        join: Join::Any,
        queue: None,
    });
    set.chains.push(Chain {
        name: "path".into(),
        tasks: [0, 1].map(TaskId::from_index).to_vec(),
        reaction: None,
        age: None,
        latency: Some(Span::from_ns(latency)),
    });
    set
}

/// Job 1 of a, due 100 after its arrival at 0, runs from 0 to 4 and triggers that of b, which runs from 10 to 16, after one of
/// c that is more urgent.
fn script() -> Script {
    Script::default()
        .at(0)
        .release(0, 1, 100)
        .switch(0, Some((0, 1)))
        .at(4)
        .complete(0, 1)
        .record(RecordKind::Triggered {
            by: job(0, 1),
            task: TaskId::from_index(1),
            is_lost: false,
        })
        .release(1, 1, 104)
        .release(2, 1, 50)
        .switch(0, Some((2, 1)))
        .at(10)
        .complete(2, 1)
        .switch(0, Some((1, 1)))
        .at(16)
        .complete(1, 1)
        .switch(0, None)
}

fn explained(set: &TaskSet, script: &Script) -> Option<ChainExplanation> {
    let contract = edf(Invariant::Strong);
    let recording = Recording {
        set,
        contract: Some(&contract),
        records: (&script.records).into(),
        until: at(20),
    };
    let misses = recording.chain_misses();
    recording.explain_chain(misses.first()?)
}

#[test]
fn late_chain_is_explained_by_what_delayed_its_slowest_link() {
    let why = explained(&triggered(12), &script()).unwrap();
    assert_eq!((why.miss.length(), why.slowest), (Span::from_ns(16), 1));
    let Slowest::Late(late) = &why.why else {
        panic!("{:?}", why.why)
    };
    assert_eq!(late.cause, Cause::One(Culprit::Overload));
    assert_eq!(
        why.text(&NAMES),
        "chain path missed its latency of 12ns: 16ns, from the arrival of job 1 of a at 0ns to the completion of \
         job 1 of b at 16ns\n\
         \x20  4ns  job 1 of a, released at 0ns, started at 0ns, completed at 4ns: 4ns executing\n\
         \x20 12ns  job 1 of b, triggered at 4ns, started at 10ns, completed at 16ns: 6ns executing, 6ns waiting for \
         the more urgent c\n\
         \x20 The slowest link is job 1 of b, with 6ns beyond its own execution. Without 6ns of more urgent work, all \
         of it within its costs, (CPU 0) the chain would have met its 12ns.\n\
         \x20 CPU 0:\n\
         \x20   4ns - 10ns: job 1 of c\n\
         \x20   10ns - 16ns: job 1 of b\n"
    );
}

#[test]
fn chain_within_its_requirement_is_not_explained() {
    assert_eq!(explained(&triggered(16), &script()), None);
}

#[test]
fn delay_that_is_shorter_than_the_excess_is_not_the_cause() {
    // Without the delay of 6 it takes 10.
    let why = explained(&triggered(10), &script()).unwrap();
    assert!(matches!(why.why, Slowest::Late(_)), "{why:?}");
    let why = explained(&triggered(9), &script()).unwrap();
    assert_eq!(why.why, Slowest::NotEnough);
    let text = why.text(&NAMES);
    assert!(
        text.contains("Also without them the chain would have taken more than 9ns."),
        "{text}"
    );
}

#[test]
fn chain_without_delays_is_said_to_have_none() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 100)
        .switch(0, Some((0, 1)))
        .at(4)
        .complete(0, 1)
        .switch(0, None);
    let script = script
        .record(RecordKind::Triggered {
            by: job(0, 1),
            task: TaskId::from_index(1),
            is_lost: false,
        })
        .release(1, 1, 104)
        .switch(0, Some((1, 1)));
    // Not complete at the end of the run.
    let mut set = triggered(12);
    set.tasks[1].cost = Span::from_ns(20);
    let why = explained(&set, &script).unwrap();
    assert!(!why.miss.has_ended);
    assert_eq!((why.links[1].completion, why.links[1].to), (None, at(20)));
    let text = why.text(&NAMES);
    assert!(
        text.contains("to the end of the run at 20ns, without an end"),
        "{text}"
    );
    assert!(text.contains("No link was delayed"), "{text}");
}

#[test]
fn sampled_link_is_named_without_a_claim_that_the_chain_would_have_been_in_time() {
    // b reads at 10, what a wrote at 4; an earlier end of a would not have changed that.
    let mut set = triggered(12);
    set.tasks[1].arrival = Arrival::Periodic;
    set.chains[0].latency = None;
    set.chains[0].age = Some(Span::from_ns(1));
    let why = explained(&set, &script()).unwrap();
    assert_eq!(why.miss.time, ChainTime::Age);
    assert!(!why.miss.has_ended);
    let last = why.links.last().unwrap();
    assert_eq!((last.job, last.waited), (None, Span::from_ns(4)));
    assert_eq!(why.links.len(), 3);
    // The job of b lost 6, and the output was not replaced for 4.
    assert_eq!((why.slowest, &why.why), (1, &Slowest::Unknown));
}

#[test]
fn cause_of_a_link_before_a_sampled_one_is_not_named() {
    // An event just after 0 is read by job 2 of a at 7, after more urgent work, and by the next job of c at 12.
    let mut set = triggered(12);
    set.chains[0].tasks = [0, 2].map(TaskId::from_index).to_vec();
    set.chains[0].latency = None;
    set.chains[0].reaction = Some(Span::from_ns(10));
    let script = Script::default()
        .at(0)
        .release(0, 1, 100)
        .switch(0, Some((0, 1)))
        .at(1)
        .complete(0, 1)
        .release(0, 2, 101)
        .release(2, 1, 50)
        .switch(0, Some((2, 1)))
        .at(7)
        .complete(2, 1)
        .switch(0, Some((0, 2)))
        .at(9)
        .complete(0, 2)
        .switch(0, None)
        .at(12)
        .release(2, 2, 60)
        .switch(0, Some((2, 2)))
        .at(14)
        .complete(2, 2)
        .switch(0, None);
    let why = explained(&set, &script).unwrap();
    assert_eq!(
        (why.miss.length(), why.miss.has_ended),
        (Span::from_ns(14), true)
    );
    let link = &why.links[0];
    assert_eq!(
        (link.job, link.waited, link.delay()),
        (Some(2), Span::from_ns(1), Span::from_ns(7))
    );
    assert_eq!(
        (why.links[1].job, why.links[1].waited),
        (Some(2), Span::from_ns(3))
    );
    // Without the delay of 6 a would have written earlier, and c would have read at 12 all the same.
    assert_eq!((why.slowest, why.why), (0, Slowest::Unknown));
}

#[test]
fn records_that_contradict_each_other_are_explained_or_not_without_panic() {
    for seed in 1..=500 {
        let mut random = RandomStream::new(seed, 10, 0);
        let records = noise(&mut random, 3, 1, 400);
        let mut set = triggered(1);
        set.chains[0].reaction = Some(Span::from_ns(1));
        set.chains[0].age = Some(Span::from_ns(1));
        let recording = Recording {
            set: &set,
            contract: None,
            records: (&records).into(),
            until: records.last().map_or(Instant::ZERO, |record| record.at),
        };
        for miss in recording.chain_misses() {
            if let Some(why) = recording.explain_chain(&miss) {
                assert!(why.text(&NAMES).contains("missed its"), "seed {seed}");
            }
        }
    }
}
