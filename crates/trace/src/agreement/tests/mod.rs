//! What agrees and what does not, told by hand; and at random in `random`.

mod random;
mod waiting;

use shiftwork_model::{Happening, Span, TaskId, TaskSet};

use super::testing::facts;
use super::*;
use crate::check::Order;
use crate::testing::{Story, at, job, set};

/// One ns per reaction: a job that was put on a CPU once may move by 4 ns.
fn compared(set: &TaskSet, order: Order, runs: [&Story; 2], horizon: u64) -> Agreement {
    let basis = Basis {
        facts: &facts(order),
        reaction: Span::from_ns(1),
        horizon: at(horizon),
    };
    compare(set, basis, &runs[0].records, &runs[1].records)
}

fn texts(found: &Agreement) -> Vec<String> {
    let found = found.disagreements.iter();
    found.map(ToString::to_string).collect()
}

fn two_tasks() -> TaskSet {
    set(1, &[("a", "0"), ("b", "0")])
}

/// On one CPU a job of `a` that ends at the first instant, and one of `b` that ends at the second.
fn one_after_the_other(a_ends: u64, b_ends: u64) -> Story {
    Story::default()
        .at(0)
        .release(0, 1, 200)
        .release(1, 1, 300)
        .switch(0, Some((0, 1)))
        .at(a_ends)
        .complete(0, 1)
        .switch(0, Some((1, 1)))
        .at(b_ends)
        .complete(1, 1)
        .switch(0, None)
}

#[test]
fn a_job_may_move_by_its_reactions_and_no_further() {
    let reference = one_after_the_other(10, 20);
    let compared = |a_ends, b_ends| {
        let measured = one_after_the_other(a_ends, b_ends);
        compared(&two_tasks(), Order::Edf, [&reference, &measured], 100)
    };
    // `b` waits for `a`, so its bound is that of two reactions.
    assert_eq!(texts(&compared(14, 28)), [""; 0]);
    assert_eq!(
        texts(&compared(14, 29)),
        [
            "at 20ns: job 1 of b finished at 29ns, expected that it finished at 20ns: 9ns apart, \
             and 2 reactions allow 8ns"
        ]
    );
    let late = compared(15, 24);
    assert_eq!(
        texts(&late),
        [
            "at 10ns: job 1 of a finished at 15ns, expected that it finished at 10ns: 5ns apart, \
             and 1 reaction allows 4ns",
            "at 14ns: job 1 of a executed up to 5ns more than expected by then; 4ns would be its \
             machine's reaction"
        ]
    );
    assert_eq!(late.worst().map(|job| job.job), Some(job(0, 1)));
    assert_eq!(late.sets_differed, Span::from_ns(9));
    assert_eq!(late.sets_differed_outside, Span::from_ns(1));
    let early = compared(5, 15);
    assert_eq!(
        texts(&early)[0],
        "at 5ns: job 1 of a finished at 5ns, expected that it finished at 10ns: 5ns apart, and 1 \
         reaction allows 4ns"
    );
}

#[test]
fn the_wrong_job_on_a_cpu_for_long_is_found_though_both_finish_at_last() {
    let reference = one_after_the_other(30, 60);
    let wrong = Story::default()
        .at(0)
        .release(0, 1, 200)
        .release(1, 1, 300)
        .switch(0, Some((1, 1)))
        .at(30)
        .complete(1, 1)
        .switch(0, Some((0, 1)))
        .at(60)
        .complete(0, 1)
        .switch(0, None);
    let found = compared(&two_tasks(), Order::Edf, [&reference, &wrong], 100);
    // Each waits for the other in one of the runs, which allows both 8 ns.
    assert_eq!(
        texts(&found),
        [
            "at 8ns: job 1 of a executed up to 30ns less than expected by then; 8ns would be its \
             machine's reaction",
            "at 8ns: job 1 of b executed up to 30ns more than expected by then; 8ns would be its \
             machine's reaction",
            "at 30ns: job 1 of a finished at 60ns, expected that it finished at 30ns: 30ns apart, \
             and 2 reactions allow 8ns",
            "at 30ns: job 1 of b finished at 30ns, expected that it finished at 60ns: 30ns apart, \
             and 2 reactions allow 8ns"
        ]
    );
    assert_eq!(found.sets_differed, Span::from_ns(60));
    assert_eq!(found.sets_differed_outside, Span::from_ns(44));
}

#[test]
fn lost_extra_and_moved_jobs_are_found() {
    let two = |number: u64, release: u64, due: u64| {
        Story::default()
            .at(0)
            .release(0, 1, 50)
            .at(release)
            .release(0, number, due)
    };
    let compared = |runs: [&Story; 2]| texts(&compared(&two_tasks(), Order::Edf, runs, 100));
    let reference = two(2, 50, 100);
    assert_eq!(
        compared([&reference, &two(3, 50, 100)]),
        [
            "at 50ns: job 2 of a was not released, as expected",
            "at 50ns: job 3 of a was released, and none was expected"
        ]
    );
    for (release, due) in [(51, 100), (50, 101)] {
        assert_eq!(
            compared([&reference, &two(2, release, due)]),
            [format!(
                "at 50ns: job 2 of a was released at {release}ns and due at {due}ns, expected at \
                 50ns and 100ns"
            )]
        );
    }
    // A release at the horizon is none.
    assert_eq!(
        compared([&reference, &two(2, 50, 100).at(100).release(0, 3, 150)]),
        [""; 0]
    );
}

#[test]
fn a_job_that_never_finishes_is_found_unless_the_horizon_is_near() {
    let reference = one_after_the_other(10, 20);
    let mut endless = reference.clone();
    endless.records.truncate(endless.records.len() - 2);
    let compared = |runs: [&Story; 2], horizon| {
        let found = texts(&compared(&two_tasks(), Order::Edf, runs, horizon));
        let finish = |text: &String| text.contains("not finish");
        found.into_iter().filter(finish).collect::<Vec<_>>()
    };
    assert_eq!(compared([&reference, &endless], 28), [""; 0]);
    assert_eq!(
        compared([&reference, &endless], 29),
        [
            "at 20ns: job 1 of b did not finish, expected that it finished at 20ns: 9ns apart, \
             and 2 reactions allow 8ns"
        ]
    );
    assert_eq!(
        compared([&endless, &reference], 29),
        [
            "at 20ns: job 1 of b finished at 20ns, expected that it did not finish: 9ns apart, \
             and 2 reactions allow 8ns"
        ]
    );
}

/// `b` executes 20 ns from 0 on, and `a` arrives at 20 for 50 ns. In the measured run `b` started
/// late and lacks a little when `a` arrives; the CPU runs `meanwhile` until 70.
#[test]
fn a_finish_says_how_long_the_job_rightly_waited_beside() {
    let it = JobAgreement {
        job: job(0, 1),
        release: at(0),
        expected: Some(at(10)),
        found: Some(at(70)),
        difference: Span::from_ns(20),
        waited: Span::from_ns(40),
        preemptions: 1,
        reactions: 3,
        bound: Span::from_ns(12),
    };
    let text = Disagreement {
        at: at(10),
        job: it.job,
        task: "a".into(),
        what: Finding::Finished(it),
    };
    assert_eq!(
        text.to_string(),
        "at 10ns: job 1 of a finished at 70ns, expected that it finished at 10ns: 20ns apart \
         beside 40ns of waiting for more urgent jobs, and 3 reactions allow 12ns"
    );
}

#[test]
fn nothing_that_happened_before_the_busy_interval_counts() {
    let set = set(2, &[("g", "0-1"), ("h", "0-1"), ("j", "0-1"), ("s", "0-1")]);
    let mut story = Story::default()
        .at(0)
        .release(0, 1, 900)
        .switch(0, Some((0, 1)))
        .at(1)
        .switch(0, None)
        .switch(1, Some((0, 1)));
    let interrupt = |story: Story, at, who, whom, on| {
        let story = story.at(at).release(who, at, at + 5);
        let story = story.switch(on, Some((who, at)));
        let story = story.at(at + 1).complete(who, at);
        story.switch(on, Some(whom))
    };
    for at in [2, 4, 6, 8] {
        story = interrupt(story, at, 3, (0, 1), 1);
    }
    story = story.at(20).release(2, 1, 800).switch(0, Some((2, 1)));
    for at in [22, 24, 26] {
        story = interrupt(story, at, 1, (2, 1), 0);
    }
    let story = story.at(30).complete(2, 1).switch(0, None);
    // `g` was put on a CPU 6 times and waited 4 times for somebody who was so once, which makes 10.
    // `j` was so 4 times, and each of its 3 waits would add those 10. But in all there were only
    // 6 + 4 for `g` and its interrupters, and 4 + 3 for `j` and its.
    let found = compared(&set, Order::Edf, [&story, &story], 1_000);
    let j = found.jobs.iter().find(|it| it.job == job(2, 1)).unwrap();
    assert_eq!((j.reactions, j.preemptions), (17, 3));
}

#[test]
fn waiting_for_the_machine_alone_adds_no_reactions() {
    let set = set(1, &[("a", "0"), ("b", "0")]);
    let measured = |start, next| {
        Story::default()
            .at(0)
            .release(1, 1, 300)
            .switch(0, Some((1, 1)))
            .at(10)
            .release(0, 1, 50)
            .at(start)
            .switch(0, Some((0, 1)))
            .at(20)
            .tell(Happening::Released {
                job: job(0, 2),
                deadline: at(70),
            })
            .at(next)
            .complete(0, 1)
            .ready(0, 2, 70)
            .switch(0, Some((0, 2)))
            .at(next + 9)
            .complete(0, 2)
            .switch(0, None)
    };
    let reactions = |start, next| {
        let reference = measured(10, 20);
        let found = compared(
            &set,
            Order::Edf,
            [&reference, &measured(start, next)],
            1_000,
        );
        let jobs = found.jobs.iter().map(|it| it.reactions);
        jobs.collect::<Vec<_>>()
    };
    // Half of a reaction's 4 ns is spent on the way to the CPU.
    assert_eq!(reactions(12, 22), [1, 1]);
    assert_eq!(reactions(13, 22), [2, 1]);
    assert_eq!(reactions(12, 23), [1, 2]);
}

#[test]
fn a_job_whose_task_left_is_not_compared_beyond_that() {
    let leaves = |when| {
        Story::default()
            .at(0)
            .release(0, 1, 200)
            .switch(0, Some((0, 1)))
            .at(when)
            .tell(Happening::Left {
                task: TaskId::from_index(0),
            })
            .switch(0, None)
    };
    let found = compared(&two_tasks(), Order::Edf, [&leaves(30), &leaves(32)], 100);
    assert_eq!((texts(&found), found.jobs.len()), (vec![], 0));
    let found = compared(&two_tasks(), Order::Edf, [&leaves(30), &leaves(39)], 100);
    assert_eq!(found.disagreement_count, 1);
}

#[test]
fn records_may_come_late_but_not_the_facts() {
    let reference = one_after_the_other(10, 20);
    let mut shuffled = reference.clone();
    // A machine that learns of the releases only afterwards.
    let releases: Vec<Record> = shuffled.records.drain(..4).collect();
    shuffled.records.extend(releases);
    let mut sorted = compared(&two_tasks(), Order::Edf, [&reference, &shuffled], 100);
    assert!(sorted.holds());
    sorted.jobs.retain(|job| !job.difference.is_zero());
    assert_eq!(sorted.jobs, []);
}

#[test]
fn the_json_has_the_documented_keys() {
    let runs = [one_after_the_other(10, 20), one_after_the_other(11, 29)];
    let found = compared(&two_tasks(), Order::Edf, [&runs[0], &runs[1]], 100);
    let expected = serde_json::json!({
        "holds": false, "tolerance": 4, "reaction_ns": 1, "jobs": 2, "near_ties": 0,
        "worst": {
            "task": "b", "job": 1, "difference_ns": 9, "bound_ns": 8, "preemptions": 0,
            "reactions": 2,
        },
        "tightest": {
            "task": "b", "job": 1, "difference_ns": 9, "bound_ns": 8, "preemptions": 0,
            "reactions": 2,
        },
        "sets_differed_ns": 10, "sets_differed_outside_ns": 0, "disagreements": 1,
        "violations": [{
            "at_ns": 20, "task": "b", "job": 1, "kind": "finished",
            "what": "at 20ns: job 1 of b finished at 29ns, expected that it finished at 20ns: \
                     9ns apart, and 2 reactions allow 8ns",
        }],
    });
    assert_eq!(found.to_json(), expected);
}

#[test]
fn without_jobs_there_is_no_worst_one() {
    let empty = Story::default();
    let found = compared(&two_tasks(), Order::Edf, [&empty, &empty], 100);
    assert!(found.holds() && found.worst().is_none() && found.tightest().is_none());
    assert!(found.to_json()["worst"].is_null());
}
