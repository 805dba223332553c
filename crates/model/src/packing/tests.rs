use super::*;
use crate::cpu::CpuId;
use crate::random::RandomStream;
use crate::task::Task;
use crate::time::Span;

fn singles(cpus: usize) -> Vec<CpuSet> {
    let single = |cpu| CpuSet::single(CpuId::from_index(cpu));
    (0..cpus).map(single).collect()
}

fn packed(tasks: &[(u64, u64, &str)]) -> Packing {
    let tasks = tasks.iter().map(|&(cost, period, cpus)| {
        let affinity = Affinity::new(cpus.parse().unwrap()).unwrap();
        Task::periodic("t", Span::from_ms(cost), Span::from_ms(period), affinity)
    });
    pack(&TaskSet::new("", 2, tasks.collect()), &singles(2))
}

#[test]
fn pinned_tasks_stay_and_the_others_go_first_fit_decreasing() {
    let packing = packed(&[(1, 4, "0-1"), (1, 2, "1"), (3, 4, "0-1"), (1, 4, "0-1")]);
    assert_eq!(packing.group_of, [Some(0), Some(1), Some(0), Some(1)]);
    assert!(packing.fits());
}

#[test]
fn a_cpu_can_be_filled_to_the_brim() {
    let packing = packed(&[(1, 3, "0-1"), (1, 3, "0-1"), (1, 3, "0-1")]);
    assert_eq!(packing.group_of, [Some(0); 3]);
}

#[test]
fn what_fits_nowhere_goes_to_the_least_loaded_cpu() {
    let packing = packed(&[(2, 3, "0-1"), (2, 3, "0-1"), (2, 3, "0-1")]);
    assert_eq!(packing.group_of, [Some(0), Some(1), Some(0)]);
    assert_eq!(packing.overflowed, [2]);
}

#[test]
fn the_fits_differ_in_which_room_they_take() {
    // Loads of 1/2, 1/4 and 1/3 by pinned tasks; then a task of 1/4.
    let pinned = [(6, 12, 0b001), (3, 12, 0b010), (4, 12, 0b100)];
    for (name, expected) in [("ff", 0), ("bf", 0), ("wf", 1), ("bfd", 0), ("wfd", 1)] {
        let heuristic = Heuristic::ALL.into_iter().find(|h| h.name() == name);
        let tasks = pinned
            .into_iter()
            .chain([(3, 12, 0b111)])
            .collect::<Vec<_>>();
        let packing = pack_tasks(heuristic.unwrap(), &tasks, &singles(3));
        assert_eq!(packing.group_of[3], Some(expected), "{name}");
    }
    // A task of 2/3 finds no room on the first, and the third is fuller than the second.
    let tasks = pinned
        .into_iter()
        .chain([(8, 12, 0b111)])
        .collect::<Vec<_>>();
    for (heuristic, expected) in [(0, 1), (1, 2), (2, 1)] {
        let packing = pack_tasks(Heuristic::ALL[heuristic], &tasks, &singles(3));
        assert_eq!(packing.group_of[3], Some(expected));
    }
}

/// Cost, period, CPUs as bits.
type Plain = (u64, u64, u64);

fn pack_tasks(heuristic: Heuristic, tasks: &[Plain], groups: &[CpuSet]) -> Packing {
    let masks: Vec<CpuSet> = tasks.iter().map(|task| CpuSet::from_bits(task.2)).collect();
    let parcels = tasks.iter().zip(&masks).map(|(task, cpus)| Parcel {
        utilization: Utilization::new(Span::from_ns(task.0), Span::from_ns(task.1)).unwrap(),
        cpus,
    });
    pack_by(heuristic, parcels, groups)
}

/// The definition with fractions only: the group of each task, `None` for a task that fits in none.
fn pack_naively(heuristic: Heuristic, tasks: &[Plain], groups: &[CpuSet]) -> Vec<Option<usize>> {
    let rate = |task: usize| Ratio::new(BigInt::from(tasks[task].0), BigInt::from(tasks[task].1));
    let candidates = |task: usize| within(groups, &CpuSet::from_bits(tasks[task].2));
    let mut room: Vec<Ratio<BigInt>> = groups.iter().map(|g| ratio(g.len() as u128)).collect();
    let mut found = alloc::vec![None; tasks.len()];
    let (fixed, mut movable): (Vec<usize>, Vec<usize>) =
        (0..tasks.len()).partition(|&task| candidates(task).len() < 2);
    for task in fixed {
        for group in candidates(task) {
            if rate(task) <= room[group] {
                found[task] = Some(group);
            }
            room[group] -= rate(task);
        }
    }
    if heuristic.decreasing {
        movable.sort_by_key(|&task| core::cmp::Reverse(rate(task)));
    }
    for task in movable {
        let open = candidates(task)
            .into_iter()
            .filter(|&group| rate(task) <= room[group]);
        let open: Vec<usize> = open.collect();
        let chosen = match heuristic.fit {
            Fit::First => open.first().copied(),
            Fit::Best => open
                .iter()
                .copied()
                .min_by_key(|&group| room[group].clone()),
            Fit::Worst => open
                .iter()
                .copied()
                .min_by_key(|&group| core::cmp::Reverse(room[group].clone())),
        };
        if let Some(group) = chosen {
            room[group] -= rate(task);
        }
        found[task] = chosen;
        if chosen.is_none() {
            // From here on loads are beyond what the definition speaks of.
            break;
        }
    }
    found
}

#[test]
fn every_heuristic_is_its_definition_in_fractions() {
    let mut fitted = [0; 6];
    for seed in 0..1_500 {
        let mut stream = RandomStream::new(seed, 41, 0);
        let cpus = 1 + stream.below(5);
        let groups = match stream.below(3) {
            0 => alloc::vec![CpuSet::from_bits(1), CpuSet::from_bits(0b110)],
            _ => singles(cpus as usize),
        };
        // Few periods, so that sums are often equal or whole, and of no power of two.
        let tasks: Vec<Plain> = (0..1 + stream.below(10))
            .map(|_| {
                let period = [3, 6, 7, 9, 14][stream.below(5) as usize];
                let cpus = match stream.below(2) {
                    0 => 0b11111,
                    _ => 1 + stream.below(31),
                };
                (1 + stream.below(period), period, cpus)
            })
            .collect();
        for (place, heuristic) in Heuristic::ALL.into_iter().enumerate() {
            let packing = pack_tasks(heuristic, &tasks, &groups);
            let expected = pack_naively(heuristic, &tasks, &groups);
            let name = heuristic.name();
            let fits = expected.iter().all(Option::is_some);
            assert_eq!(packing.fits(), fits, "seed {seed}, {name}: {tasks:?}");
            if fits {
                fitted[place] += 1;
                assert_eq!(packing.group_of, expected, "seed {seed}, {name}: {tasks:?}");
            }
        }
    }
    assert!(fitted.iter().all(|&count| count > 200), "{fitted:?}");
}

#[test]
fn a_trace_too_much_does_not_fit() {
    let thirds = [(1, 3, 1), (1, 3, 1), (1, 3, 1)];
    let packing = pack_tasks(Heuristic::FFD, &thirds, &singles(1));
    assert!(packing.fits());
    let mut over = thirds.to_vec();
    over.push((1, u64::MAX, 1));
    let packing = pack_tasks(Heuristic::FFD, &over, &singles(1));
    assert_eq!(packing.overflowed, [3]);
}

#[test]
fn the_longest_costs_overflow_nothing() {
    let tasks = [
        (u64::MAX, 1, 0b11),
        (u64::MAX, 1, 0b11),
        (u64::MAX, u64::MAX, 0b11),
    ];
    for heuristic in Heuristic::ALL {
        let packing = pack_tasks(heuristic, &tasks, &singles(2));
        assert!(!packing.fits());
        assert!(packing.group_of.iter().all(Option::is_some));
    }
}
