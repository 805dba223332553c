//! However a study is cut, ordered, repeated and interrupted: the results are those of a plain double loop.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;

use common::{STUDY, folder, plan, plan_of, run_all};
use shiftwork_model::RandomStream;
use shiftwork_study::{
    Batch, Counted, Options, PARTIAL, Plan, RESULTS, Remark, Results, Shard, Store, StudyError,
    Tally, Work, conclude, name_of, part, run,
};

/// The definition: every cell, every index, one after the other.
fn by_definition(plan: &Plan) -> Vec<u8> {
    let mut sums: Vec<Vec<Tally>> = Vec::new();
    for cell in &plan.cells {
        let mut tallies = vec![Tally::default(); cell.asked.len()];
        for index in 0..plan.file.sets {
            for (tally, reply) in tallies.iter_mut().zip(plan.trial(cell, index).unwrap()) {
                tally.count(reply);
            }
        }
        sums.push(tallies);
    }
    Results::new(plan, &sums).encode()
}

fn results(folder: &Path) -> Vec<u8> {
    fs::read(folder.join(RESULTS)).unwrap()
}

#[test]
fn a_run_gives_what_the_definition_gives_on_any_number_of_threads() {
    let plan = plan();
    let expected = by_definition(&plan);
    for threads in [1, 2, 4] {
        let folder = folder();
        let options = Options {
            threads,
            shard: Shard::ALL,
        };
        let outcome = run(&plan, folder.path(), options, &mut |_| true).unwrap();
        assert_eq!(outcome.missing, 0, "{threads} threads");
        assert_eq!(outcome.added, plan.file.sets * 5, "{threads} threads");
        assert_eq!(results(folder.path()), expected, "{threads} threads");
        let again = run(&plan, folder.path(), options, &mut |_| true).unwrap();
        assert_eq!((again.added, again.results), (0, outcome.results));
    }
}

/// Cuts the whole study into ranges at random.
fn cut(plan: &Plan, random: &mut RandomStream) -> Vec<Work> {
    let mut works = Vec::new();
    for cell in plan.cells.iter().filter(|cell| !cell.asked.is_empty()) {
        let mut first = 0;
        while first < plan.file.sets {
            let last = plan.file.sets.min(first + 1 + random.below(plan.file.sets));
            works.push(Work {
                cell: cell.number,
                first,
                last,
            });
            first = last;
        }
    }
    works
}

fn count(plan: &Plan, work: Work) -> Counted {
    plan.run_work(work, || true).unwrap()
}

#[test]
fn any_cut_in_any_order_with_any_repetition_gives_the_same_bytes() {
    let plan = plan();
    let expected = by_definition(&plan);
    for seed in 1..=8 {
        let mut random = RandomStream::new(seed, 1, 0);
        let folder = folder();
        let mut store = Store::open(&plan, folder.path()).unwrap();
        // Two cuts, so that ranges overlap; each range once or twice, in parts of some.
        let mut works = [cut(&plan, &mut random), cut(&plan, &mut random)].concat();
        works.extend(works.clone().into_iter().step_by(3));
        random.shuffle(&mut works);
        let mut part = Batch::new();
        for work in works {
            let clashes = |other: &Counted| {
                let other = other.work;
                other.cell == work.cell && other.first < work.last && work.first < other.last
            };
            if part.iter().any(clashes) || random.below(4) == 0 {
                store
                    .put(&part::encode(&plan, std::mem::take(&mut part)))
                    .unwrap();
            }
            part.push(count(&plan, work));
        }
        store.put(&part::encode(&plan, part)).unwrap();
        assert_eq!(store.missing(Shard::ALL), [], "seed {seed}");
        conclude(&store, &plan).unwrap();
        assert_eq!(results(folder.path()), expected, "seed {seed}");
        let fresh = Store::open(&plan, folder.path()).unwrap();
        assert_eq!(fresh.sums().unwrap(), store.sums().unwrap(), "seed {seed}");
        let overlap = |remark: &Remark| matches!(remark, Remark::Overlap { .. });
        assert!(fresh.remarks().iter().any(overlap), "seed {seed}");
    }
}

#[test]
fn interrupted_at_any_point_nothing_is_lost_and_nothing_repeated() {
    let plan = plan();
    let expected = by_definition(&plan);
    for seed in 1..=6 {
        let mut random = RandomStream::new(seed, 2, 0);
        let folder = folder();
        let mut works = cut(&plan, &mut random);
        random.shuffle(&mut works);
        let mut done = 0;
        while let Some(work) = works.pop() {
            // Simulations ask at every instant; some runs are not interrupted, so that this ends.
            let mut patience = match random.below(3) {
                0 => u64::MAX,
                _ => random.below(400),
            };
            let goes_on = std::cell::RefCell::new(&mut patience);
            let counted = plan
                .run_work(work, || {
                    let mut left = goes_on.borrow_mut();
                    **left = left.saturating_sub(1);
                    **left > 0
                })
                .unwrap();
            assert!(counted.work.last <= work.last && counted.work.first == work.first);
            assert_eq!(counted.tallies[0].sets, counted.work.sets());
            let mut store = Store::open(&plan, folder.path()).unwrap();
            assert_eq!(store.kept().0, done, "seed {seed}");
            done += counted.work.sets();
            if counted.work.sets() > 0 {
                store.put(&part::encode(&plan, vec![counted])).unwrap();
            }
            if works.is_empty() {
                works = store.missing(Shard::ALL);
            }
        }
        assert_eq!(done, plan.file.sets * 5, "seed {seed}");
        run_all(&plan, folder.path());
        assert_eq!(results(folder.path()), expected, "seed {seed}");
    }
}

#[test]
fn a_stopped_run_keeps_what_it_has_and_goes_on() {
    let plan = plan_of(&STUDY.replace("sets = 6", "sets = 400"));
    let folder = folder();
    let one_thread = Options {
        threads: 1,
        ..Options::default()
    };
    // Long enough for `watch` to be called.
    let outcome = run(&plan, folder.path(), one_thread, &mut |_| false).unwrap();
    assert!(outcome.missing > 0, "{outcome:?}");
    assert_eq!(outcome.missing, outcome.missing_here);
    assert_eq!(outcome.missing + outcome.kept.0, 400 * 5);
    assert_eq!(outcome.path, folder.path().join(PARTIAL));
    let sets: u64 = outcome.results.rows.iter().map(|row| row.sets).sum();
    assert_eq!(outcome.kept.0 > 0, sets > 0);
    let rest = run(&plan, folder.path(), one_thread, &mut |_| true).unwrap();
    assert_eq!(rest.added, outcome.missing);
    assert_eq!(rest.path, folder.path().join(RESULTS));
    assert!(!folder.path().join(PARTIAL).exists());
}

#[test]
fn shards_are_put_together_by_copying_parts() {
    let plan = plan();
    let together = folder();
    for number in 1..=3 {
        let apart = folder();
        let options = Options {
            threads: 1,
            shard: Shard::new(number, 3).unwrap(),
        };
        let outcome = run(&plan, apart.path(), options, &mut |_| true).unwrap();
        assert_eq!((outcome.missing_here, outcome.added), (0, 2 * 5));
        for entry in fs::read_dir(apart.path()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().to_string_lossy().starts_with("part-") {
                fs::copy(entry.path(), together.path().join(entry.file_name())).unwrap();
            }
        }
    }
    let outcome = run_all(&plan, together.path());
    assert_eq!(outcome.added, 0);
    assert_eq!(results(together.path()), by_definition(&plan));
}

#[test]
fn two_processes_may_share_a_folder() {
    let plan = plan();
    let folder = folder();
    std::thread::scope(|scope| {
        for number in 1..=2 {
            let (plan, folder) = (&plan, folder.path());
            scope.spawn(move || {
                let shard = Shard::new(number, 2).unwrap();
                let options = Options { threads: 1, shard };
                run(plan, folder, options, &mut |_| true).unwrap();
            });
        }
    });
    let outcome = run_all(&plan, folder.path());
    assert_eq!(outcome.added, 0);
    assert_eq!(results(folder.path()), by_definition(&plan));
}

#[test]
fn more_sets_continue_and_fewer_are_refused() {
    let folder = folder();
    let plan = plan();
    run_all(&plan, folder.path());
    let more = plan_of(&STUDY.replace("sets = 6", "sets = 9"));
    let outcome = run_all(&more, folder.path());
    assert_eq!(outcome.added, 3 * 5);
    assert_eq!(results(folder.path()), by_definition(&more));
    let error = Store::open(&plan, folder.path()).unwrap_err();
    assert!(
        matches!(
            error,
            StudyError::Fewer {
                found: 9,
                asked: 6,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn names_and_places_of_files_do_not_make_another_study() {
    let folder = folder();
    run_all(&plan(), folder.path());
    let renamed = plan_of(
        &STUDY
            .replace("label = \"G\"", "label = \"G-EDF\"")
            .replace("name = \"small\"", "name = \"tiny\""),
    );
    let outcome = run_all(&renamed, folder.path());
    assert_eq!(outcome.added, 0);
    assert_eq!(outcome.results.rows[0].label, "G-EDF");
}

fn parts(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("part-") && name.ends_with(".parquet"))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn damaged_parts_are_set_aside_and_run_again() {
    let plan = plan();
    let expected = by_definition(&plan);
    let folder = folder();
    run_all(&plan, folder.path());
    let name = parts(folder.path()).remove(0);
    let path = folder.path().join(&name);
    let whole = fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cut = whole[..whole.len() / 2].to_vec();
    for damaged in [flipped(whole.len() / 3), flipped(0), cut, Vec::new()] {
        for part in parts(folder.path()) {
            fs::remove_file(folder.path().join(part)).unwrap();
        }
        fs::write(&path, damaged).unwrap();
        let outcome = run_all(&plan, folder.path());
        let expected_remark = Remark::Damaged {
            part: name.clone(),
            problem: "its content does not fit its name".to_owned(),
            aside: format!("{name}.damaged"),
        };
        assert_eq!(outcome.remarks, [expected_remark]);
        assert_eq!(outcome.added, plan.file.sets * 5);
        assert_eq!(results(folder.path()), expected);
    }
}

#[test]
fn parts_with_counts_that_cannot_be_are_damaged() {
    let plan = plan();
    let work = Work {
        cell: 0,
        first: 0,
        last: 2,
    };
    let right = count(&plan, work);
    let wrong: [fn(&mut Counted); 5] = [
        |counted| counted.tallies[0].sets = 3,
        |counted| counted.tallies[0].met = 3,
        |counted| counted.tallies[1].bounded = 3,
        |counted| counted.tallies[1].tardiness_max_ns = u64::MAX >> 1,
        |counted| counted.work.last = 0,
    ];
    for (number, spoil) in wrong.into_iter().enumerate() {
        let mut counted = right.clone();
        spoil(&mut counted);
        let bytes = part::encode(&plan, vec![counted]);
        let error = part::decode(&plan, &bytes).unwrap_err();
        assert!(
            matches!(error, part::PartError::Damaged(_)),
            "{number}: {error:?}"
        );
        let folder = folder();
        fs::write(folder.path().join(name_of(&bytes)), &bytes).unwrap();
        let store = Store::open(&plan, folder.path()).unwrap();
        assert_eq!(
            (store.kept(), store.remarks().len()),
            ((0, 0), 1),
            "{number}"
        );
    }
    let bytes = part::encode(&plan, vec![right.clone()]);
    assert_eq!(part::decode(&plan, &bytes), Ok(vec![right]));
}

#[test]
fn parts_of_another_study_are_refused() {
    let folder = folder();
    run_all(&plan(), folder.path());
    let other = plan_of(&STUDY.replace("seed = 7", "seed = 8"));
    let error = Store::open(&other, folder.path()).unwrap_err();
    assert!(matches!(error, StudyError::Foreign { .. }), "{error}");
    assert_eq!(parts(folder.path()).len(), 1, "it is left where it was");
}

#[test]
fn parts_that_disagree_are_named() {
    let plan = plan();
    let folder = folder();
    let work = Work {
        cell: 1,
        first: 2,
        last: 5,
    };
    let one = count(&plan, work);
    let mut other = one.clone();
    other.tallies[0].met = 3 - other.tallies[0].met;
    other.tallies[0].refuted = 0;
    let [one, other] = [one, other].map(|counted| part::encode(&plan, vec![counted]));
    for bytes in [&one, &other] {
        fs::write(folder.path().join(name_of(bytes)), bytes).unwrap();
    }
    let text = Store::open(&plan, folder.path()).unwrap_err().to_string();
    for bytes in [&one, &other] {
        assert!(text.contains(&name_of(bytes)), "{text}");
    }
    assert!(text.contains("2 to 4 of cell 1"), "{text}");
}

#[test]
fn what_cannot_be_written_says_what_is_kept() {
    let plan = plan();
    let folder = folder();
    let options = Options {
        threads: 1,
        shard: Shard::new(1, 2).unwrap(),
    };
    run(&plan, folder.path(), options, &mut |_| true).unwrap();
    let mut store = Store::open(&plan, folder.path()).unwrap();
    let work = store.missing(Shard::ALL).remove(0);
    let bytes = part::encode(&plan, vec![count(&plan, work)]);
    // A folder in the way stands for a disk that takes no more; a full one is tried in `full_disk.rs`.
    fs::create_dir_all(folder.path().join(name_of(&bytes)).join("in the way")).unwrap();
    let text = store.put(&bytes).unwrap_err().to_string();
    assert!(text.contains(&name_of(&bytes)), "{text}");
    assert!(text.contains("15 task sets are kept in 1 parts"), "{text}");
    fs::remove_dir_all(folder.path().join(name_of(&bytes))).unwrap();
    run_all(&plan, folder.path());
    assert_eq!(results(folder.path()), by_definition(&plan));
}
