//! Reads what gungraun left.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Instructions by position in `counted()`.
#[derive(Debug, Default)]
pub struct Counts(BTreeMap<usize, u64>);

impl Counts {
    /// All counts below the folder; none without one.
    pub fn read(folder: Option<String>) -> Self {
        let mut counts = Self::default();
        if let Some(folder) = folder {
            counts.collect(Path::new(&folder));
        }
        counts
    }

    /// `None` if it was not counted.
    pub fn get(&self, position: usize) -> Option<u64> {
        self.0.get(&position).copied()
    }

    fn collect(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                self.collect(&path);
            } else if let Some((position, count)) = count_in(&path) {
                self.0.insert(position, count);
            }
        }
    }
}

/// The count of a file `callgrind.event.of_POSITION.out`; other files have none.
fn count_in(path: &Path) -> Option<(usize, u64)> {
    let name = path.file_name()?.to_str()?;
    let position = name
        .strip_prefix("callgrind.event.of_")?
        .strip_suffix(".out")?;
    let text = fs::read_to_string(path).ok()?;
    let totals = text.lines().find_map(|line| {
        line.strip_prefix("totals: ")
            .or(line.strip_prefix("summary: "))
    })?;
    let count = totals.split_whitespace().next()?.parse().ok()?;
    Some((position.parse().ok()?, count))
}
