//! The CPUs of a machine: which share a cache, and which there are.

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Platform};

use crate::error::PolicyError;

/// Which CPUs share a cache with which, for the last preference of every placement.
#[derive(Clone, Debug)]
pub(crate) struct CacheMates(Vec<CpuSet>);

impl CacheMates {
    pub fn new(platform: &Platform) -> Self {
        if platform.caches.is_empty() {
            return Self(Vec::new());
        }
        Self(
            (0..platform.cpus)
                .map(|cpu| platform.cache_mates(CpuId::from_index(cpu)))
                .collect(),
        )
    }

    /// The CPUs that share a cache with this one; `None` if nothing is known.
    #[inline]
    pub fn of(&self, cpu: CpuId) -> Option<&CpuSet> {
        self.0.get(cpu.index())
    }
}

/// Refuses an affinity with a CPU that the machine does not have.
pub(crate) fn check_cpus(cpus: usize, name: &str, affinity: &Affinity) -> Result<(), PolicyError> {
    match (*affinity.cpus() - CpuSet::first(cpus)).lowest() {
        Some(cpu) => Err(PolicyError::NoSuchCpu {
            task: name.into(),
            cpu,
            cpus,
        }),
        None => Ok(()),
    }
}
