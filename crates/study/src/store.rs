//! The folder of a study: what is there, and what is missing.
//!
//! Parts are named after their contents. So writing one twice is harmless, copying parts from another computer
//! into the folder puts both together, and damage is found by the name. Parts are never changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use crate::cover::{self, Span};
use crate::error::StudyError;
use crate::folder;
use crate::part::{self, PartError};
use crate::plan::{Plan, short_digest};
use crate::tally::Tally;
use crate::work::{Batch, Shard, Work};

/// What was noticed in a folder; nothing of it keeps a study from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// A part was damaged, and is set aside.
    Damaged {
        /// The part.
        part: String,
        /// What is wrong with it.
        problem: String,
        /// What it is called now.
        aside: String,
    },
    /// Files were removed that killed processes had begun.
    Unfinished {
        /// How many.
        files: usize,
    },
    /// Task sets are in several parts that do not cut them alike; each counts once.
    Overlap {
        /// How many sets are there more than once or in parts that cannot be used.
        sets: u64,
    },
}

impl std::fmt::Display for Remark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged {
                part,
                problem,
                aside,
            } => write!(
                f,
                "{part} is damaged ({problem}) and now called {aside}; what it had alone is run again"
            ),
            Self::Unfinished { files } => {
                write!(f, "removed {files} unfinished files of killed runs")
            }
            Self::Overlap { sets } => write!(
                f,
                "the answers to {sets} task sets are there more than once; each counts once"
            ),
        }
    }
}

/// The folder of a study, as it was when it was opened or written to last.
#[derive(Debug)]
pub struct Store<'p> {
    plan: &'p Plan,
    folder: PathBuf,
    /// The parts, in the order of their names.
    parts: Vec<Part>,
    /// For each cell the ranges that count: sorted, without overlaps.
    kept: Vec<Vec<Span>>,
    remarks: Vec<Remark>,
}

/// A part that can be used.
#[derive(Debug)]
struct Part {
    name: String,
    ranges: Vec<Range>,
}

/// A range of a part, without its tallies: these stay on disk, so that memory does not grow with them.
#[derive(Debug)]
struct Range {
    work: Work,
    /// A digest of its tallies.
    digest: u64,
}

impl<'p> Store<'p> {
    /// Opens the folder of a study, which is made if there is none, and checks every part in it. Damaged parts
    /// are renamed, and what killed processes had begun to write is removed.
    ///
    /// # Errors
    /// If the folder cannot be read or written, a part is of another study or has more task sets than are asked
    /// for, or two parts disagree.
    pub fn open(plan: &'p Plan, folder: &Path) -> Result<Self, StudyError> {
        let mut store = Self::unopened(plan, folder)?;
        let files = folder::tidy(folder).map_err(|error| unreadable(folder, &error))?;
        if files > 0 {
            store.remarks.push(Remark::Unfinished { files });
        }
        for name in names(folder).map_err(|error| unreadable(folder, &error))? {
            store.take_in(name)?;
        }
        store.choose()?;
        Ok(store)
    }

    /// The folder, which is made if there is none, without a look at what is in it.
    pub(crate) fn unopened(plan: &'p Plan, folder: &Path) -> Result<Self, StudyError> {
        let store = Self {
            plan,
            folder: folder.to_owned(),
            parts: Vec::new(),
            kept: vec![Vec::new(); plan.cells.len()],
            remarks: Vec::new(),
        };
        match fs::create_dir_all(folder) {
            Ok(()) => Ok(store),
            Err(error) => Err(store.not_written(folder, error)),
        }
    }

    /// The study.
    pub fn plan(&self) -> &'p Plan {
        self.plan
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was noticed when it was opened.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// How many task sets are kept, and in how many parts.
    pub fn kept(&self) -> (u64, usize) {
        let kept = self.kept.iter().flatten();
        (
            kept.map(|span| span.last - span.first).sum(),
            self.parts.len(),
        )
    }

    /// What of this share of the study is not there, cell by cell.
    pub fn missing(&self, shard: Shard) -> Vec<Work> {
        let (first, last) = shard.range(self.plan.file.sets);
        let mut missing = Vec::new();
        for cell in self.plan.cells.iter().filter(|cell| !cell.asked.is_empty()) {
            let kept = self.kept[cell.number].iter();
            let gaps = cover::gaps(kept.map(|span| (span.first, span.last)), first, last);
            missing.extend(gaps.into_iter().map(|(first, last)| Work {
                cell: cell.number,
                first,
                last,
            }));
        }
        missing
    }

    /// Keeps a part, as [`part::encode`] made it here or elsewhere. Afterwards it is on disk, also if the machine
    /// stops. Returns how many task sets it has.
    ///
    /// # Errors
    /// If it is none of this study, or cannot be written. Then the folder is as it was.
    pub fn put(&mut self, bytes: &[u8]) -> Result<u64, StudyError> {
        let name = name_of(bytes);
        let path = self.folder.join(&name);
        let batch = part::decode(self.plan, bytes).map_err(|error| self.refused(&path, error))?;
        self.check_indices(&path, &batch)?;
        folder::write(&self.folder, &name, bytes)
            .map_err(|error| self.not_written(&path, error))?;
        let sets = batch.iter().map(|counted| counted.work.sets()).sum();
        if !self.parts.iter().any(|part| part.name == name) {
            self.parts.push(part_of(name, &batch));
            self.parts.sort_by(|one, other| one.name.cmp(&other.name));
            self.choose()?;
        }
        Ok(sets)
    }

    /// The sums of what is kept: for each cell one tally for each question that is asked there.
    ///
    /// # Errors
    /// If a part cannot be read any more.
    pub fn sums(&self) -> Result<Vec<Vec<Tally>>, StudyError> {
        let cells = self.plan.cells.iter();
        let mut sums: Vec<Vec<Tally>> = cells
            .map(|cell| vec![Tally::default(); cell.asked.len()])
            .collect();
        let mut counts: Vec<usize> = self.kept.iter().flatten().map(|span| span.place).collect();
        counts.sort_unstable();
        let mut place = 0;
        for part in &self.parts {
            let path = self.folder.join(&part.name);
            let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            let batch =
                part::decode(self.plan, &bytes).map_err(|error| self.refused(&path, error))?;
            for counted in batch {
                if counts.binary_search(&place).is_ok() {
                    let both = sums[counted.work.cell].iter_mut().zip(&counted.tallies);
                    both.for_each(|(sum, tally)| sum.add(tally));
                }
                place += 1;
            }
        }
        Ok(sums)
    }

    /// Writes another file into the folder, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, StudyError> {
        let path = self.folder.join(name);
        folder::write(&self.folder, name, bytes).map_err(|error| self.not_written(&path, error))?;
        Ok(path)
    }

    /// Checks a part that lies in the folder.
    fn take_in(&mut self, name: String) -> Result<(), StudyError> {
        let path = self.folder.join(&name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // Another process found it damaged.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        let batch = match name == name_of(&bytes) {
            true => part::decode(self.plan, &bytes),
            false => Err(PartError::Damaged(
                "its content does not fit its name".to_owned(),
            )),
        };
        match batch {
            Ok(batch) => {
                self.check_indices(&path, &batch)?;
                self.parts.push(part_of(name, &batch));
                Ok(())
            }
            Err(PartError::Damaged(problem)) => self.set_aside(name, problem),
            Err(foreign) => Err(self.refused(&path, foreign)),
        }
    }

    fn set_aside(&mut self, part: String, problem: String) -> Result<(), StudyError> {
        let aside = format!("{part}.damaged");
        let path = self.folder.join(&part);
        match fs::rename(&path, self.folder.join(&aside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.not_written(&path, error));
            }
            _ => {}
        }
        self.remarks.push(Remark::Damaged {
            part,
            problem,
            aside,
        });
        Ok(())
    }

    /// Finds out which ranges count.
    fn choose(&mut self) -> Result<(), StudyError> {
        let mut spans: Vec<Vec<(Span, usize, u64)>> = vec![Vec::new(); self.plan.cells.len()];
        let mut place = 0;
        for (number, part) in self.parts.iter().enumerate() {
            for range in &part.ranges {
                let Work { cell, first, last } = range.work;
                let span = Span { first, last, place };
                spans[cell].push((span, number, range.digest));
                place += 1;
            }
        }
        let mut again = 0;
        for (cell, mut spans) in spans.into_iter().enumerate() {
            spans.sort_by_key(|(span, ..)| (span.first, span.last, span.place));
            for pair in spans.windows(2) {
                let [(one, part, digest), (same, other, of_same)] = [pair[0], pair[1]];
                if (one.first, one.last) == (same.first, same.last) && digest != of_same {
                    let path = |part: usize| self.folder.join(&self.parts[part].name);
                    return Err(StudyError::Differs {
                        parts: [part, other].map(|part| path(part).display().to_string()),
                        range: format!("{} to {} of cell {cell}", one.first, one.last - 1),
                    });
                }
            }
            let all: u64 = spans.iter().map(|(span, ..)| span.last - span.first).sum();
            self.kept[cell] = cover::keep(spans.into_iter().map(|(span, ..)| span).collect());
            let kept = self.kept[cell].iter();
            again += all - kept.map(|span| span.last - span.first).sum::<u64>();
        }
        self.remarks
            .retain(|remark| !matches!(remark, Remark::Overlap { .. }));
        if again > 0 {
            self.remarks.push(Remark::Overlap { sets: again });
        }
        Ok(())
    }

    fn check_indices(&self, path: &Path, batch: &Batch) -> Result<(), StudyError> {
        let found = batch.iter().map(|counted| counted.work.last).max();
        let found = found.unwrap_or(0);
        match found > self.plan.file.sets {
            true => Err(StudyError::Fewer {
                path: path.display().to_string(),
                found,
                asked: self.plan.file.sets,
            }),
            false => Ok(()),
        }
    }

    fn refused(&self, path: &Path, error: PartError) -> StudyError {
        let path = path.display().to_string();
        match error {
            PartError::Foreign => StudyError::Foreign { path },
            PartError::Damaged(problem) => StudyError::Read { path, problem },
        }
    }

    fn not_written(&self, path: &Path, error: io::Error) -> StudyError {
        let (kept, parts) = self.kept();
        StudyError::Write {
            path: path.display().to_string(),
            error,
            kept,
            parts,
        }
    }
}

fn part_of(name: String, batch: &Batch) -> Part {
    let range = |counted: &crate::work::Counted| {
        let mut hasher = DefaultHasher::new();
        counted.tallies.hash(&mut hasher);
        Range {
            work: counted.work,
            digest: hasher.finish(),
        }
    };
    Part {
        name,
        ranges: batch.iter().map(range).collect(),
    }
}

/// What a part with these bytes is called.
pub fn name_of(bytes: &[u8]) -> String {
    format!("part-{}.parquet", short_digest(bytes))
}

/// The names of all parts of a folder, sorted.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("part-") && name.ends_with(".parquet") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn unreadable(path: &Path, error: &io::Error) -> StudyError {
    StudyError::Read {
        path: path.display().to_string(),
        problem: format!("cannot be read: {error}"),
    }
}
