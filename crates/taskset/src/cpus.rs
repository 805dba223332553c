//! CPUs as files name them: by number, in lists, masks and named sets, in clusters and caches.

use std::collections::BTreeMap;

use shiftwork_model::{Affinity, CpuSet};

use crate::error::TasksetError;
use crate::tree::Value;

const CPU_LIST: &str = "CPUs in quotation marks, like \"0-3,7\", \"0xf\" or a named set";

/// The CPUs of a platform and their names.
pub(crate) struct Names<'a> {
    /// How many CPUs there are.
    pub(crate) cpus: usize,
    /// The named sets.
    pub(crate) sets: &'a BTreeMap<String, CpuSet>,
}

impl Names<'_> {
    /// A set of CPUs that the platform has, at least one.
    pub(crate) fn set(&self, value: &Value<'_>) -> Result<CpuSet, TasksetError> {
        let text = value.text(CPU_LIST)?;
        let set = match self.sets.get(text) {
            Some(set) => *set,
            None if looks_like_a_name(text) => return Err(self.unknown(value, text)),
            None => text.parse().map_err(|problem| TasksetError::NoCpuList {
                place: value.place(),
                key: value.key(),
                problem,
            })?,
        };
        if set.is_empty() {
            return Err(TasksetError::NoCpus {
                place: value.place(),
                key: value.key(),
            });
        }
        let beyond = set - CpuSet::first(self.cpus);
        if !beyond.is_empty() {
            return Err(TasksetError::CpusBeyondPlatform {
                place: value.place(),
                key: value.key(),
                cpus: Box::new(beyond),
                platform: self.cpus,
            });
        }
        Ok(set)
    }

    fn unknown(&self, value: &Value<'_>, text: &str) -> TasksetError {
        TasksetError::UnknownSet {
            place: value.place(),
            key: value.key(),
            set: text.to_string(),
            known: self.sets.keys().cloned().collect(),
        }
    }

    /// An affinity.
    pub(crate) fn affinity(&self, value: &Value<'_>) -> Result<Affinity, TasksetError> {
        Ok(Affinity::new(self.set(value)?).expect("a set that was read has a CPU"))
    }

    /// The affinity of a task that says nothing.
    pub(crate) fn all(&self) -> Affinity {
        Affinity::new(CpuSet::first(self.cpus)).expect("a platform has a CPU")
    }

    /// A list of sets.
    pub(crate) fn groups(&self, value: &Value<'_>) -> Result<Vec<CpuSet>, TasksetError> {
        let items = value.list("a list of sets of CPUs, like [\"0-1\", \"2-3\"]")?;
        items.iter().map(|item| self.set(item)).collect()
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
        let missing = CpuSet::first(self.cpus) - seen;
        if !missing.is_empty() {
            return Err(TasksetError::ClustersLeaveOut {
                place: value.place(),
                cpus: Box::new(missing),
            });
        }
        Ok(clusters)
    }
}

/// Whether the text can only be meant as the name of a set: lists and masks begin with a digit.
pub(crate) fn looks_like_a_name(text: &str) -> bool {
    text.trim_start()
        .starts_with(|first: char| !first.is_ascii_digit() && first != ',' && first != '-')
}
