//! Work that others do comes to the same results, whatever is lost, repeated or damaged on the way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::{STUDY, folder, plan, plan_of, run_all};
use shiftwork_model::RandomStream;
use shiftwork_study::{
    Batch, Plan, RESULTS, Shard, Store, StudyError, Work, chunks, conclude, keep, part,
};

fn work_off(plan: &Plan, chunk: &[Work]) -> Vec<u8> {
    let done = chunk.iter().map(|&work| plan.run_work(work, || true));
    part::encode(plan, done.collect::<Result<Batch, _>>().unwrap())
}

fn missing(plan: &Plan, folder: &Path) -> Vec<Work> {
    Store::open(plan, folder).unwrap().missing(Shard::ALL)
}

#[test]
fn chunks_that_come_in_any_order_and_twice_give_the_same_bytes() {
    let plan = plan();
    let here = folder();
    run_all(&plan, here.path());
    for seed in 1..=6 {
        let mut random = RandomStream::new(seed, 2, 0);
        let there = folder();
        let each = Duration::from_micros(1 + random.below(20_000));
        let mut left = chunks(&plan, &missing(&plan, there.path()), each, || true).unwrap();
        let mut waiting = Vec::new();
        while !left.is_empty() {
            let chunk = left.swap_remove(random.below(left.len() as u64) as usize);
            waiting.push(work_off(&plan, &chunk));
            if random.below(4) == 0 {
                left.push(chunk);
            }
            if random.below(3) == 0 {
                keep(&plan, there.path(), &waiting).unwrap();
                waiting.clear();
            }
        }
        keep(&plan, there.path(), &waiting).unwrap();
        assert_eq!(missing(&plan, there.path()), [], "seed {seed}");
        let store = Store::open(&plan, there.path()).unwrap();
        conclude(&store, &plan).unwrap();
        let results = |folder: &Path| fs::read(folder.join(RESULTS)).unwrap();
        assert_eq!(results(there.path()), results(here.path()), "seed {seed}");
    }
}

#[test]
fn chunks_are_what_is_missing() {
    let plan = plan();
    let there = folder();
    let all = missing(&plan, there.path());
    let first = chunks(&plan, &all, Duration::from_nanos(1), || true).unwrap();
    let sets: u64 = all.iter().map(Work::sets).sum();
    assert_eq!(
        first.len() as u64,
        sets,
        "nothing is shorter than one task set"
    );
    let parts: Vec<Vec<u8>> = first[..7]
        .iter()
        .map(|chunk| work_off(&plan, chunk))
        .collect();
    assert_eq!(keep(&plan, there.path(), &parts).unwrap(), 7);
    let rest = chunks(
        &plan,
        &missing(&plan, there.path()),
        Duration::from_nanos(1),
        || true,
    );
    assert_eq!(
        rest.unwrap(),
        first[7..],
        "all that is left, in the same order"
    );
    let one = chunks(&plan, &all, Duration::from_secs(1_000), || true).unwrap();
    assert_eq!(one, [all]);
    assert_eq!(
        chunks(&plan, &[], Duration::from_secs(1), || true).unwrap(),
        [[]; 0]
    );
}

#[test]
fn parts_that_fit_together_become_one() {
    let plan = plan();
    let there = folder();
    let work = |first, last| Work {
        cell: 1,
        first,
        last,
    };
    let [one, two, three] =
        [(0, 2), (2, 5), (4, 6)].map(|(first, last)| work_off(&plan, &[work(first, last)]));
    assert_eq!(
        keep(
            &plan,
            there.path(),
            &[one.clone(), two.clone(), one.clone()]
        )
        .unwrap(),
        5
    );
    let parts = || fs::read_dir(there.path()).unwrap().count();
    assert_eq!(parts(), 1);
    keep(&plan, there.path(), &[one.clone(), two.clone()]).unwrap();
    assert_eq!(parts(), 1, "the same content is the same file");
    assert_eq!(keep(&plan, there.path(), &[one, two, three]).unwrap(), 7);
    assert_eq!(parts(), 4, "overlapping ones stay apart");
    assert_eq!(Store::open(&plan, there.path()).unwrap().kept().0, 5);
    assert_eq!(keep(&plan, there.path(), &[]).unwrap(), 0);
}

#[test]
fn what_cannot_be_used_is_not_kept() {
    let plan = plan();
    let there = folder();
    let work = Work {
        cell: 0,
        first: 0,
        last: 3,
    };
    let good = work_off(&plan, &[work]);
    for place in (0..good.len()).step_by(17) {
        let mut bad = good.clone();
        bad[place] ^= 0x20;
        let error = keep(&plan, there.path(), &[good.clone(), bad]).unwrap_err();
        assert!(
            matches!(error, StudyError::Refused { .. }),
            "byte {place}: {error}"
        );
    }
    let other = plan_of(&STUDY.replace("seed = 7", "seed = 8"));
    let text = keep(&plan, there.path(), &[work_off(&other, &[work])])
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("was not kept: it is of another study"),
        "{text}"
    );
    assert_eq!(Store::open(&plan, there.path()).unwrap().kept(), (0, 0));
}

#[test]
fn a_full_folder_says_what_is_kept() {
    let plan = plan();
    let there = folder();
    let parts = [(0, 2), (2, 4)].map(|(first, last)| {
        work_off(
            &plan,
            &[Work {
                cell: 0,
                first,
                last,
            }],
        )
    });
    keep(&plan, there.path(), &parts[..1]).unwrap();
    // A folder in the way stands for a disk that takes no more.
    let name = shiftwork_study::name_of(&parts[1]);
    fs::create_dir_all(there.path().join("aside")).unwrap();
    fs::create_dir_all(there.path().join(name).join("in the way")).unwrap();
    let text = keep(&plan, there.path(), &parts[1..])
        .unwrap_err()
        .to_string();
    assert!(text.contains("cannot be written"), "{text}");
}
