//! Theorems 2 and 3: their values by hand, and that the fixed point is not above them.

use shiftwork_model::{CpuSet, RandomStream, Span};

use super::super::explicit::{bi_level, by_depth};
use super::super::solve::solve_coarsely;
use super::super::{components, groups, solve};
use super::times_if_long;
use crate::exact::whole;
use crate::{Placed, Sporadic, Steps};

fn placed(cost: u64, period: u64, mask: u64) -> Placed {
    Placed {
        task: Sporadic {
            cost: Span::from_ns(cost),
            period: Span::from_ns(period),
            deadline: Span::from_ns(period),
        },
        cpus: CpuSet::from_bits(mask),
    }
}

#[test]
fn the_example_of_the_document() {
    let tasks = [
        placed(500, 1000, 0b01),
        placed(300, 400, 0b11),
        placed(300, 400, 0b11),
    ];
    let component = &components(&tasks, &groups(&tasks, whole()).unwrap(), None)[0];
    // The global tasks come first, as the root does.
    assert_eq!(by_depth(component, 0.0).late, [1900.0, 1900.0, 2600.0]);
    let late = bi_level(component, 0, 0.0).map(|bounds| bounds.late);
    assert_eq!(late, Some(vec![550.0, 550.0, 900.0]));
    let shown = solve(component, 0, &mut Steps::ordinary()).unwrap();
    let late = shown.in_ns();
    for (late, expected) in late.into_iter().zip([400, 400, 500]) {
        assert!((expected..=expected + 1).contains(&late), "{late}");
    }
}

#[test]
fn the_fixed_point_is_not_above_the_closed_forms() {
    for seed in 1..=times_if_long(40, 50) {
        let mut stream = RandomStream::new(seed, 7, 0);
        let masks = [0b1111u64, 0b11, 0b1100, 0b1, 0b10, 0b100, 0b1000];
        let mut tasks: Vec<Placed> = Vec::new();
        for _ in 0..14 {
            let period = 1000 + stream.below(9000);
            let cost = 1 + stream.below(period);
            let few = if seed % 2 == 0 { 7 } else { 5 };
            // With odd seeds bi-level.
            let mask = match stream.below(few) as usize {
                other if few == 5 && other > 0 => masks[other + 2],
                other => masks[other],
            };
            tasks.push(placed(cost, period, mask));
            if groups(&tasks, whole()).is_err() {
                tasks.pop();
            }
        }
        for component in components(&tasks, &groups(&tasks, whole()).unwrap(), None) {
            for shift in [0, stream.below(1000)] {
                let shown = solve(&component, shift, &mut Steps::ordinary()).unwrap();
                let coarse = solve_coarsely(&component, shift, &mut Steps::ordinary()).unwrap();
                let by_depth = by_depth(&component, 0.0).late;
                let bi_level = bi_level(&component, shift, 0.0).map(|bounds| bounds.late);
                for (task, shown) in shown.in_ns().into_iter().enumerate() {
                    let explicit = bi_level.as_ref().unwrap_or(&by_depth)[task];
                    let what = format!("seed {seed}, task {task}: {shown}");
                    assert!(shown as f64 <= explicit + 1.0, "{what} above {explicit}");
                    assert!(shown as f64 <= by_depth[task] + 1.0, "{what}");
                    assert!(shown <= coarse.in_ns()[task] + 1, "{what} above {coarse:?}");
                }
            }
        }
    }
}
