//! What the live test of these overheads prints, line by line.

/// A line: the policy, the quantity, and its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub policy: String,
    /// `scheduling` or `dispatch`.
    pub what: String,
    /// How many, then the mean, the median, 95%, 99%, 99.9% and the longest in ns.
    pub figures: [u64; 7],
}

/// What a line that is one begins with.
const MARK: &str = "OVERHEADS ";

/// All lines among those that a test run printed.
///
/// # Errors
/// With the line that is none, though it begins like one.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, String> {
    text.lines()
        .filter_map(|line| Some(line.split_once(MARK)?.1))
        .map(|line| parse(line).ok_or_else(|| format!("`{MARK}{line}` is no line of overheads")))
        .collect()
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split_whitespace();
    let [policy, what] = [words.next()?, words.next()?].map(str::to_owned);
    let figures: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    Some(Line {
        policy,
        what,
        figures: figures?.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_among_others() {
        let text = "test ok\n  OVERHEADS g-fp dispatch 9 1 2 3 4 5 6\nelse\n";
        let wanted = Line {
            policy: "g-fp".to_owned(),
            what: "dispatch".to_owned(),
            figures: [9, 1, 2, 3, 4, 5, 6],
        };
        assert_eq!(lines(text), Ok(vec![wanted]));
        for broken in ["g-fp", "g-fp dispatch 1 2", "g-fp dispatch 1 2 3 4 5 6 x"] {
            assert!(lines(&format!("{MARK}{broken}")).is_err(), "{broken}");
        }
    }
}
