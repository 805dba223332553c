//! The values of another implementation: plain Python in exact rationals, written from the statement
//! of the theorem alone, with all deadlines as priority points. `reference.txt` has what it printed
//! for random systems of seven shapes: shape, CPUs, number of tasks, and per task cost, period,
//! affinity as a hexadecimal mask and the bound on tardiness, all times in milliseconds.

use shiftwork_model::{CpuSet, Span};

use super::super::{bounds, components, groups, solve};
use crate::exact::whole;
use crate::{Placed, Sporadic, Steps};

/// Both are above the least fixed point by a margin, which differs.
const TOLERANCE_NS: f64 = 100.0;

struct System {
    line: usize,
    tasks: Vec<Placed>,
    late_ms: Vec<f64>,
}

fn systems() -> impl Iterator<Item = System> {
    let lines = include_str!("reference.txt").lines().enumerate();
    lines.map(|(line, text)| {
        let mut system = System {
            line: line + 1,
            tasks: Vec::new(),
            late_ms: Vec::new(),
        };
        for task in text.split(' ').skip(3) {
            let [cost, period, mask, late] = task.split(',').collect::<Vec<_>>()[..] else {
                panic!("line {}: {task}", line + 1);
            };
            let ms = |text: &str| Span::from_ms(text.parse().unwrap());
            system.tasks.push(Placed {
                task: Sporadic {
                    cost: ms(cost),
                    period: ms(period),
                    deadline: ms(period),
                },
                cpus: CpuSet::from_bits(u64::from_str_radix(mask, 16).unwrap()),
            });
            system.late_ms.push(late.parse().unwrap());
        }
        system
    })
}

#[test]
fn the_bounds_are_those_of_the_reference() {
    let mut different = 0;
    for system in systems() {
        let groups = groups(&system.tasks, whole()).unwrap();
        for component in components(&system.tasks, &groups, None) {
            let shown = solve(&component, 0, &mut Steps::ordinary()).unwrap();
            for (member, late) in component.tasks.iter().zip(shown.in_ns()) {
                let expected = system.late_ms[member.place] * 1e6;
                let tolerance = TOLERANCE_NS + 1e-7 * expected;
                let off = late as f64 - expected;
                if off.abs() > tolerance {
                    println!(
                        "line {}, task {}: {late} {expected}",
                        system.line, member.place
                    );
                    different += 1;
                }
            }
        }
    }
    assert_eq!(different, 0);
}

#[test]
fn earlier_priority_points_only_help() {
    for system in systems() {
        let groups = groups(&system.tasks, whole()).unwrap();
        for component in components(&system.tasks, &groups, None) {
            let responses = bounds(&component, &mut Steps::ordinary()).unwrap();
            for (member, response) in component.tasks.iter().zip(responses) {
                let late = system.late_ms[member.place] * 1e6;
                let reference = late * (1.0 + 1e-7) + TOLERANCE_NS + member.task.period_ns() as f64;
                assert!(
                    response as f64 <= reference,
                    "line {}, task {}: {response} above {reference}",
                    system.line,
                    member.place,
                );
            }
        }
    }
}
