//! Which known name a misspelt one may stand for.

use alloc::vec::Vec;

/// The known name that `found` most likely stands for; `None` if no name is near enough.
///
/// Case does not count. A name is near if at most a third of the characters of the longer one have to be
/// inserted, removed, replaced or exchanged with their neighbours, or if `found` has three characters or more
/// and only this name begins with it, which goes first; but not if the two differ only in digits, as `T1` and
/// `T2`. Among equally near names the first.
///
/// # Cost
/// O(|`found`| · |name|) steps for each name; a `found` of more than 64 characters is near to none.
///
/// # Source
/// The optimal string alignment distance, as in R. A. Wagner, R. Lowrance, "An Extension of the
/// String-to-String Correction Problem", JACM 22(2), 1975. Written here rather than taken from a crate
/// because the policies, which are `no_std`, name their neighbours, too.
pub fn nearest_name<'n>(found: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    /// No name of ours is nearly as long.
    const FOUND_MAX: usize = 64;
    let found = folded(found.trim());
    if found.is_empty() || found.len() > FOUND_MAX {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    let mut begins = Vec::new();
    for name in known {
        let folded = folded(name);
        if found.len() >= 3 && folded.starts_with(&found) {
            begins.push(name);
        }
        let most = folded.len().max(found.len()) / 3;
        let distance = distance(&found, &folded);
        let is_numbered = distance > 0 && letters(&found).eq(letters(&folded));
        if distance <= most && !is_numbered && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    match begins[..] {
        [only] => Some(only),
        _ => best.map(|(_, name)| name),
    }
}

fn folded(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// What is no digit.
fn letters(text: &[char]) -> impl Iterator<Item = &char> {
    text.iter().filter(|character| !character.is_ascii_digit())
}

/// How many insertions, removals, replacements and exchanges of neighbours lie between the two.
fn distance(one: &[char], other: &[char]) -> usize {
    // Rows of the table: two before, before, and this one; `row[j]` is the distance between what was
    // read of `one` and the first `j` characters of `other`.
    let mut two_before: Vec<usize> = Vec::new();
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (i, &a) in one.iter().enumerate() {
        let mut row = Vec::with_capacity(before.len());
        row.push(i + 1);
        for (j, &b) in other.iter().enumerate() {
            let replaced = before[j] + usize::from(a != b);
            let mut least = replaced.min(before[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == other[j - 1] && one[i - 1] == b {
                least = least.min(two_before[j - 1] + 1);
            }
            row.push(least);
        }
        two_before = core::mem::replace(&mut before, row);
    }
    before[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_each_kind_of_slip_once() {
        let between = |a: &str, b: &str| distance(&folded(a), &folded(b));
        for (a, b, expected) in [
            ("period", "period", 0),
            ("perod", "period", 1),
            ("perioud", "period", 1),
            ("peroid", "period", 1),
            ("pariod", "period", 1),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(between(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn nearest_name_is_found_for_slips_and_for_beginnings() {
        let keys = ["period", "deadline", "priority", "start-cpu", "us", "ms"];
        let near = |found| nearest_name(found, keys);
        assert_eq!(near("perod"), Some("period"));
        assert_eq!(near("Dealine"), Some("deadline"));
        assert_eq!(near("start_cpu"), Some("start-cpu"));
        assert_eq!(near("prio"), Some("priority"));
        assert_eq!(near("MS"), Some("ms"));
        assert_eq!(near("mss"), Some("ms"));
    }

    #[test]
    fn nearest_name_is_none_for_what_resembles_nothing() {
        let none: [&str; 0] = [];
        assert_eq!(nearest_name("period", none), None);
        assert_eq!(nearest_name("x", ["y", "z"]), None);
        assert_eq!(nearest_name("T2", ["T0", "T1"]), None);
        assert_eq!(nearest_name("task10", ["task11"]), None);
        assert_eq!(nearest_name("", ["y"]), None);
        assert_eq!(nearest_name("fastest", ["p-edf", "g-edf", "pd2"]), None);
        assert_eq!(nearest_name("period".repeat(20).as_str(), ["period"]), None);
    }
}
