//! The definition of Theorem 1 in exact fractions, as it is stated, with changes that ought to be noticed.

use num_bigint::BigInt;
use num_rational::Ratio;

use crate::system::Plain;

pub type Exact = Ratio<BigInt>;

pub fn exact(numerator: u64, denominator: u64) -> Exact {
    Ratio::new(numerator.into(), denominator.into())
}

pub fn size(mask: u64) -> u64 {
    u64::from(mask.count_ones())
}

pub fn is_inside(mask: u64, node: u64) -> bool {
    mask & !node == 0
}

/// The least of these sets around `node`, other than itself.
fn parent(node: u64, family: &[u64]) -> Option<u64> {
    let around = family.iter().copied();
    let around = around.filter(|&mask| mask != node && is_inside(node, mask));
    around.min_by_key(|&mask| size(mask))
}

/// Theorem 1, or that with one of its constants changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    True,
    /// |g| - 2 in place of |g| - 1.
    OwnLess,
    /// The least density in place of the greatest.
    OwnLeast,
    /// No term for own tasks.
    NoOwn,
    /// No term for children.
    NoChild,
    /// U(h) in place of U(h) + alpha(h).
    ChildWithoutAlpha,
    /// Without the last alpha(h).
    ChildDropsAlpha,
    /// |g| - |h| - 1 in place of |g| - |h|.
    ChildLess,
    /// The least child in place of the greatest.
    ChildLeast,
    /// C/T in place of C/min(D, T).
    Utilization,
}

pub const WRONG_DENSITIES: [Density; 9] = [
    Density::OwnLess,
    Density::OwnLeast,
    Density::NoOwn,
    Density::NoChild,
    Density::ChildWithoutAlpha,
    Density::ChildDropsAlpha,
    Density::ChildLess,
    Density::ChildLeast,
    Density::Utilization,
];

/// (U + alpha) / m of the worst component; the set passes if it is at most 1.
pub fn load(tasks: &[Plain], variant: Density) -> Exact {
    let family: Vec<u64> = tasks.iter().map(|task| task.mask).collect();
    let roots = family
        .iter()
        .filter(|&&node| parent(node, &family).is_none());
    let load = |&root: &u64| {
        (demand(tasks, root, variant) + alpha(tasks, &family, root, variant)) / exact(size(root), 1)
    };
    roots.map(load).max().unwrap_or_else(|| exact(0, 1))
}

fn density(task: &Plain, variant: Density) -> Exact {
    match variant {
        Density::Utilization => exact(task.cost, task.period),
        _ => exact(task.cost, task.window()),
    }
}

fn demand(tasks: &[Plain], node: u64, variant: Density) -> Exact {
    let inside = tasks.iter().filter(|task| is_inside(task.mask, node));
    inside.map(|task| density(task, variant)).sum()
}

fn alpha(tasks: &[Plain], family: &[u64], node: u64, variant: Density) -> Exact {
    let own = tasks.iter().filter(|task| task.mask == node);
    let own = own.map(|task| density(task, variant));
    let zero = || exact(0, 1);
    let (own, factor) = match variant {
        Density::NoOwn => (None, 0),
        Density::OwnLeast => (own.min(), size(node) - 1),
        Density::OwnLess => (own.max(), size(node).saturating_sub(2)),
        _ => (own.max(), size(node) - 1),
    };
    let own = own.unwrap_or_else(zero) * exact(factor, 1);
    let children = family
        .iter()
        .filter(|&&mask| parent(mask, family) == Some(node));
    let children = children.map(|&child| {
        let inner = alpha(tasks, family, child, variant);
        let used = demand(tasks, child, variant);
        let cpus = match variant {
            Density::ChildLess => size(node) - size(child) - 1,
            _ => size(node) - size(child),
        };
        let before = match variant {
            Density::ChildWithoutAlpha => used,
            _ => used + &inner,
        };
        let waiting = before * exact(cpus, size(child));
        match variant {
            Density::ChildDropsAlpha => waiting,
            _ => waiting + inner,
        }
    });
    let child = match variant {
        Density::NoChild => None,
        Density::ChildLeast => children.min(),
        _ => children.max(),
    };
    own.max(child.unwrap_or_else(zero))
}
