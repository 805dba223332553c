//! A study, ready to be run: its cells, its questions, and what it needs from files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};
use shiftwork_analysis::verdicts::{Criterion, TESTS, under_overheads};
use shiftwork_model::{Affinity, Overheads, Span, TaskSet, nearest_name};
use shiftwork_policy::registry::{self, Entry};
use shiftwork_taskset::generate::every_affinity;
use shiftwork_taskset::overheads::{self, OverheadFile, Use};
use shiftwork_taskset::study::{self, Affinities, Family, Load, StudyFile};
use shiftwork_taskset::{Environment, TasksetError};

use crate::error::StudyError;

/// A study that can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the file says.
    pub file: StudyFile,
    /// The contenders, in the order of the file.
    pub contenders: Vec<Contender>,
    /// All questions: those of the first contender first.
    pub questions: Vec<Question>,
    /// All cells: those of the first family first, then by CPUs, then by load.
    pub cells: Vec<Cell>,
}

/// Task sets that are drawn alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The place among the cells; it is part of the key of all random streams.
    pub number: usize,
    /// The place of the family.
    pub family: usize,
    /// How many CPUs there are.
    pub cpus: usize,
    /// The load.
    pub load: Load,
    /// The places of the questions that are asked, in their order.
    pub asked: Vec<usize>,
}

/// A policy with its prices.
#[derive(Clone, Debug)]
pub struct Contender {
    /// What the file says.
    pub file: study::Contender,
    /// The policy.
    pub entry: &'static Entry,
    /// The worst overheads, for deadlines and simulations; `None` if scheduling costs nothing.
    pub worst: Option<Overheads>,
    /// The average, for tardiness; the worst if the file has no average.
    pub average: Option<Overheads>,
}

/// One thing that is asked about a task set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The place of the contender.
    pub contender: usize,
    /// What is asked of it.
    pub kind: QuestionKind,
}

/// What is asked of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// Whether tests show the criterion.
    Shown(Criterion),
    /// Whether no deadline is missed in a simulation of this length.
    Simulated(Span),
}

impl QuestionKind {
    /// The name in tables: `hard`, `soft` or `simulated`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shown(criterion) => criterion.name(),
            Self::Simulated(_) => "simulated",
        }
    }
}

/// Reads a study file, which may name the policies and tests that there are.
///
/// # Errors
/// Everything that is wrong, each mistake with its place.
pub fn read(text: &str) -> Result<StudyFile, TasksetError> {
    let environment = Environment {
        policy: &|name| known_policy(name).map(drop),
        test: &|policy, test| known_test(known_policy(policy)?, test),
        ..Environment::default()
    };
    study::read_in(text, &environment)
}

/// The policy of this name; otherwise the message for people.
fn known_policy(name: &str) -> Result<&'static Entry, String> {
    registry::find(name).map_err(|error| error.to_string())
}

/// That a test of this name speaks of the policy, under overheads at least; otherwise the message for people.
fn known_test(policy: &Entry, name: &str) -> Result<(), String> {
    let tested = under_overheads(&policy.traits);
    let mut known: Vec<&str> = TESTS
        .iter()
        .filter(|test| test.speaks_of(&tested))
        .map(|test| test.name)
        .collect();
    known.dedup();
    if known.contains(&name) {
        return Ok(());
    }
    let meant = nearest_name(name, known.iter().copied());
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
    let known = match known.is_empty() {
        true => "none".to_owned(),
        false => known.join(" "),
    };
    Err(format!(
        "no test `{name}` speaks of it; {meant}there are {known}"
    ))
}

/// Results of different numbers are not put together: raise it when answers change for the same study file.
const ENGINE: u32 = 1;

impl Plan {
    /// Reads a study file, and the overhead files that it names, from beside it.
    ///
    /// # Errors
    /// If a file cannot be read or says something wrong, or no task set of a cell can be drawn.
    pub fn load(path: &Path) -> Result<Self, StudyError> {
        let text = fs::read_to_string(path).map_err(|error| unread(path, &error))?;
        let file = read(&text).map_err(|error| StudyError::File {
            path: path.display().to_string(),
            error,
        })?;
        Self::new(file, path)
    }

    /// The plan of a study file that was read from this path.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn new(file: StudyFile, path: &Path) -> Result<Self, StudyError> {
        Self::with_files(file, path, &mut |path| fs::read_to_string(path))
    }

    /// As [`new`](Self::new), but `files` gives the text of each overhead file, by its path, for
    /// callers that do not have them on a disk. It is called once for each file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn with_files(
        file: StudyFile,
        path: &Path,
        files: &mut Files<'_>,
    ) -> Result<Self, StudyError> {
        let mut known = Known {
            read: BTreeMap::new(),
            files,
        };
        let contenders = file
            .contenders
            .iter()
            .map(|one| contender(one, &file, path, &mut known))
            .collect::<Result<Vec<_>, _>>()?;
        let questions: Vec<Question> = contenders
            .iter()
            .enumerate()
            .flat_map(|(place, one)| asked_of(place, &one.file))
            .collect();
        let mut plan = Self {
            cells: cells(&file, &questions),
            file,
            contenders,
            questions,
        };
        plan.check(path)?;
        plan.file.name = plan.file.name.trim().to_owned();
        Ok(plan)
    }

    /// The family of a cell.
    pub fn family(&self, cell: &Cell) -> &Family {
        &self.file.families[cell.family]
    }

    /// What a cell is called in messages.
    pub fn name_of(&self, cell: &Cell) -> String {
        let family = &self.family(cell).name;
        let cap = cell.load.cap(cell.cpus) as f64 / 1_000.0;
        format!("family `{family}`, {} CPUs, utilization {cap}", cell.cpus)
    }

    /// What distinguishes this study from others: all that its counts depend on, but for how many sets are drawn.
    /// What things are called, and where overheads are read from, is not in it.
    pub fn digest(&self) -> String {
        let mut file = StudyFile {
            name: String::new(),
            sets: 0,
            overheads: None,
            ..self.file.clone()
        };
        for contender in &mut file.contenders {
            contender.label.clear();
            contender.overheads = None;
        }
        let prices: Vec<_> = self
            .contenders
            .iter()
            .map(|one| (&one.worst, &one.average))
            .collect();
        let all = format!("{ENGINE} {file:?} {prices:?}");
        short_digest(all.as_bytes())
    }

    /// Draws the first set of each cell, and looks whether the contenders take all that can be drawn, so that
    /// mistakes are found before anything is run.
    fn check(&self, path: &Path) -> Result<(), StudyError> {
        for cell in &self.cells {
            self.draw(cell, 0)?;
        }
        for cell in self.first_cells() {
            self.check_suitable(cell, path)?;
        }
        Ok(())
    }

    /// Of each family and number of CPUs the first cell; they differ in nothing but the load.
    fn first_cells(&self) -> impl Iterator<Item = &Cell> {
        let alike = |a: &&Cell, b: &&Cell| (a.family, a.cpus) == (b.family, b.cpus);
        let cells = self.cells.iter().enumerate();
        cells.filter_map(move |(place, cell)| {
            let before = place.checked_sub(1).map(|place| &self.cells[place]);
            match before {
                Some(before) if alike(&before, &cell) => None,
                _ => Some(cell),
            }
        })
    }

    /// That every contender that is asked takes every set of a cell: a set that it refuses would count as one
    /// that it cannot schedule.
    fn check_suitable(&self, cell: &Cell, path: &Path) -> Result<(), StudyError> {
        let family = self.family(cell);
        let options = family.options(cell.cpus, cell.load);
        let drawn = self.finished(family, cell.cpus, every_affinity(&options));
        for (place, contender) in self.contenders.iter().enumerate() {
            let is_asked = |&asked: &usize| self.questions[asked].contender == place;
            if !cell.asked.iter().any(is_asked) {
                continue;
            }
            let set = contender.given(&drawn);
            if let Err(error) = contender.entry.build(&set) {
                return Err(StudyError::Unsuitable {
                    path: path.display().to_string(),
                    contender: contender.file.label.clone(),
                    family: family.name.clone(),
                    problem: error.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of these bytes.
pub fn short_digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let first = digest.iter().take(8);
    first.map(|byte| format!("{byte:02x}")).collect()
}

fn unread(path: &Path, error: &io::Error) -> StudyError {
    StudyError::Read {
        path: path.display().to_string(),
        problem: error.to_string(),
    }
}

fn asked_of(contender: usize, file: &study::Contender) -> Vec<Question> {
    let shown = file.criteria.iter().map(|criterion| match criterion {
        study::Criterion::Hard => QuestionKind::Shown(Criterion::Hard),
        study::Criterion::Soft => QuestionKind::Shown(Criterion::Soft),
    });
    let simulated = file.simulate.map(QuestionKind::Simulated);
    let kinds = shown.chain(simulated);
    kinds.map(|kind| Question { contender, kind }).collect()
}

fn cells(file: &StudyFile, questions: &[Question]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (place, family) in file.families.iter().enumerate() {
        let takes = |question: &Question| {
            let families = &file.contenders[question.contender].families;
            families.is_empty() || families.contains(&family.name)
        };
        let asked = questions.iter().enumerate();
        let asked: Vec<usize> = asked
            .filter(|(_, question)| takes(question))
            .map(|(place, _)| place)
            .collect();
        for &cpus in &family.cpus {
            for &load in &family.loads {
                cells.push(Cell {
                    number: cells.len(),
                    family: place,
                    cpus,
                    load,
                    asked: asked.clone(),
                });
            }
        }
    }
    cells
}

/// What gives the text of the file at a path.
pub type Files<'f> = dyn FnMut(&Path) -> io::Result<String> + 'f;

/// Overhead files that were read, by path, and where more come from.
struct Known<'k, 'f> {
    read: BTreeMap<String, OverheadFile>,
    files: &'k mut Files<'f>,
}

fn contender(
    one: &study::Contender,
    file: &StudyFile,
    path: &Path,
    known: &mut Known<'_, '_>,
) -> Result<Contender, StudyError> {
    let refused = |problem: String| StudyError::Policy {
        path: path.display().to_string(),
        contender: one.label.clone(),
        problem,
    };
    let entry = known_policy(&one.policy).map_err(refused)?;
    for test in &one.tests {
        known_test(entry, test).map_err(refused)?;
    }
    let overheads = one.overheads.as_ref().unwrap_or(&file.overheads);
    let [worst, average] = match overheads {
        Some(name) => {
            let beside = path.parent().unwrap_or(Path::new("")).join(name);
            prices(one, entry, &beside, known)?
        }
        None => [None, None],
    };
    Ok(Contender {
        file: one.clone(),
        entry,
        average: average.or_else(|| worst.clone()),
        worst,
    })
}

/// The worst and the average overheads of a contender.
fn prices(
    one: &study::Contender,
    entry: &Entry,
    path: &Path,
    known: &mut Known<'_, '_>,
) -> Result<[Option<Overheads>; 2], StudyError> {
    let name = path.display().to_string();
    if !known.read.contains_key(&name) {
        let text = (known.files)(path).map_err(|error| unread(path, &error))?;
        let read = overheads::read(&text).map_err(|error| StudyError::File {
            path: name.clone(),
            error,
        })?;
        known.read.insert(name.clone(), read);
    }
    let file = &known.read[&name];
    let policy = one.priced_as.as_deref().unwrap_or(entry.name);
    let found = [Use::Worst, Use::Average].map(|purpose| file.find(purpose, policy).cloned());
    // Deadlines that hold with the average only would be no guarantee.
    let needs_worst = one.criteria.contains(&study::Criterion::Hard) || one.simulate.is_some();
    match (&found, needs_worst) {
        ([None, None], _) | ([None, _], true) => {
            let mut known: Vec<String> = file.tables.keys().map(|(_, name)| name.clone()).collect();
            known.sort_unstable();
            known.dedup();
            Err(StudyError::NoOverheads {
                path: name,
                contender: one.label.clone(),
                policy: policy.to_owned(),
                known,
            })
        }
        _ => Ok(found),
    }
}

impl Contender {
    /// The overheads that count for such a question.
    pub const fn overheads(&self, kind: QuestionKind) -> Option<&Overheads> {
        match kind {
            QuestionKind::Shown(Criterion::Soft) => self.average.as_ref(),
            _ => self.worst.as_ref(),
        }
    }

    /// Whether it takes all CPUs to be allowed.
    pub fn ignores_affinities(&self) -> bool {
        self.file.affinities == Affinities::Ignored
    }

    /// The task set as the contender is given it: with the affinities that were drawn, or with all CPUs.
    pub fn given<'s>(&self, set: &'s TaskSet) -> Cow<'s, TaskSet> {
        if !self.ignores_affinities() {
            return Cow::Borrowed(set);
        }
        let mut wide = set.clone();
        let all = Affinity::new(wide.platform.all()).expect("a platform has a CPU");
        wide.tasks.iter_mut().for_each(|task| task.affinity = all);
        Cow::Owned(wide)
    }
}
