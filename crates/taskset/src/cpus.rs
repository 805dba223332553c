//! CPUs as files name them: by number, in lists, masks and named sets, in clusters and caches.

use std::collections::BTreeMap;

use shiftwork_model::{Affinity, CPUS_MAX, CpuId, CpuSet, Platform};

use crate::error::TasksetError;
use crate::tree::{Table, Value};

const CPU_LIST: &str = "CPUs in quotation marks, like \"0-3,7\", \"0xf\" or a named set";

/// The CPUs of a platform and their names, as far as the file could be read so far.
///
/// What seems not to be there because of a mistake elsewhere is answered with that mistake, which is shown once.
pub(crate) struct Names {
    /// The platform; with as many CPUs as there can be if their number could not be read.
    pub(crate) platform: Platform,
    /// The mistake because of which it is not known how many CPUs there are.
    cpus_unknown: Option<TasksetError>,
    /// The mistake because of which it is not known which sets there are.
    sets_unknown: Option<TasksetError>,
    /// The sets that could not be read, by name.
    broken: BTreeMap<String, TasksetError>,
}

impl Names {
    /// The platform with so many CPUs, or what is known without their number.
    pub(crate) fn new(platform: Result<Platform, TasksetError>) -> Self {
        let (platform, cpus_unknown) = match platform {
            Ok(platform) => (platform, None),
            Err(mistake) => (Platform::uniform(CPUS_MAX), Some(mistake)),
        };
        Self {
            platform,
            sets_unknown: cpus_unknown.clone(),
            cpus_unknown,
            broken: BTreeMap::new(),
        }
    }

    /// Reads the named sets that the table has under `sets`; they may redefine what the host calls so.
    pub(crate) fn read_sets(&mut self, table: &Table<'_>) {
        let sets = table.map("sets", |value| {
            let sets = value.any_table("a table like { little = \"0-1\", big = \"2-3\" }")?;
            for entry in sets.entries() {
                match sets.source().note(self.read_set(&entry)) {
                    Ok(set) => drop(self.platform.sets.insert(entry.key(), set)),
                    Err(mistake) => drop(self.broken.insert(entry.key(), mistake)),
                }
            }
            Ok(())
        });
        let mistake = sets.err().or_else(|| table.misspelt(&["sets"]));
        self.sets_unknown = self.sets_unknown.take().or(mistake);
    }

    /// One of the named sets; it is given by numbers.
    fn read_set(&self, entry: &Value<'_>) -> Result<CpuSet, TasksetError> {
        let name = entry.key();
        if !looks_like_a_name(&name) || name.trim() != name {
            return Err(TasksetError::OutOfRange {
                place: entry.place(),
                key: "sets".to_string(),
                found: format!("a set called `{name}`"),
                accepted: "a name that begins with a letter".to_string(),
            });
        }
        let text = entry.text(CPU_LIST)?;
        match looks_like_a_name(text) {
            true => Err(self.unknown(entry, text, Vec::new())),
            false => self.numbered(entry, text),
        }
    }

    /// How many CPUs there are; the most that there can be if that is not known.
    pub(crate) fn cpus(&self) -> usize {
        self.platform.cpus
    }

    /// The mistake, unless it may be a consequence of not knowing how many CPUs there are.
    pub(crate) fn if_sized(&self, mistake: TasksetError) -> TasksetError {
        self.cpus_unknown.clone().unwrap_or(mistake)
    }

    /// A set of CPUs that the platform has, at least one.
    pub(crate) fn set(&self, value: &Value<'_>) -> Result<CpuSet, TasksetError> {
        let text = value.text(CPU_LIST)?;
        match self.platform.sets.get(text) {
            Some(set) => self.checked(value, *set),
            None if looks_like_a_name(text) => Err(self.unnamed(value, text)),
            None => self.numbered(value, text),
        }
    }

    /// A set of CPUs that a text gives by their numbers.
    fn numbered(&self, value: &Value<'_>, text: &str) -> Result<CpuSet, TasksetError> {
        let set = text.parse().map_err(|problem| TasksetError::NoCpuList {
            place: value.place(),
            key: value.key(),
            problem,
        })?;
        self.checked(value, set)
    }

    /// The set, if it has a CPU and none that the platform does not have.
    fn checked(&self, value: &Value<'_>, set: CpuSet) -> Result<CpuSet, TasksetError> {
        if set.is_empty() {
            return Err(TasksetError::NoCpus {
                place: value.place(),
                key: value.key(),
            });
        }
        let beyond = set - CpuSet::first(self.cpus());
        match beyond.is_empty() {
            true => Ok(set),
            false => Err(self.if_sized(TasksetError::CpusBeyondPlatform {
                place: value.place(),
                key: value.key(),
                cpus: Box::new(beyond),
                platform: self.cpus(),
            })),
        }
    }

    /// The mistake of a name that no set has.
    fn unnamed(&self, value: &Value<'_>, text: &str) -> TasksetError {
        let known = || self.platform.sets.keys().cloned().collect();
        let before = self.broken.get(text).or(self.sets_unknown.as_ref());
        before
            .cloned()
            .unwrap_or_else(|| self.unknown(value, text, known()))
    }

    fn unknown(&self, value: &Value<'_>, text: &str, known: Vec<String>) -> TasksetError {
        TasksetError::UnknownSet {
            place: value.place(),
            key: value.key(),
            set: text.to_string(),
            known,
        }
    }

    /// An affinity.
    pub(crate) fn affinity(&self, value: &Value<'_>) -> Result<Affinity, TasksetError> {
        Ok(Affinity::new(self.set(value)?).expect("a set that was read has a CPU"))
    }

    /// The affinity of a task that says nothing.
    pub(crate) fn all(&self) -> Affinity {
        Affinity::new(CpuSet::first(self.cpus())).expect("a platform has a CPU")
    }

    /// Number of one of the CPUs.
    pub(crate) fn cpu(&self, value: &Value<'_>) -> Result<CpuId, TasksetError> {
        value
            .cpu(self.cpus())
            .map_err(|mistake| self.if_sized(mistake))
    }

    /// A list of sets.
    pub(crate) fn groups(&self, value: &Value<'_>) -> Result<Vec<CpuSet>, TasksetError> {
        let accepted = "a list of sets of CPUs, like [\"0-1\", \"2-3\"]";
        value.each(accepted, |item| self.set(item))
    }

    /// Clusters: every CPU is in exactly one.
    pub(crate) fn clusters(&self, value: &Value<'_>) -> Result<Vec<CpuSet>, TasksetError> {
        let clusters = self.groups(value)?;
        let mut seen = CpuSet::EMPTY;
        for cluster in &clusters {
            if let Some(cpu) = (seen & *cluster).lowest() {
                let place = value.place();
                return Err(TasksetError::ClustersOverlap { place, cpu });
            }
            seen = seen | *cluster;
        }
        let missing = CpuSet::first(self.cpus()) - seen;
        if !missing.is_empty() {
            return Err(self.if_sized(TasksetError::ClustersLeaveOut {
                place: value.place(),
                cpus: Box::new(missing),
            }));
        }
        Ok(clusters)
    }
}

/// Whether the text can only be meant as the name of a set: lists and masks begin with a digit.
pub(crate) fn looks_like_a_name(text: &str) -> bool {
    text.trim_start()
        .starts_with(|first: char| !first.is_ascii_digit() && first != ',' && first != '-')
}
