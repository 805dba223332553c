//! Every policy of every crate: what `--policy` takes, in the order in which `policies` lists them.

use shiftwork_policy::PolicyError;
use shiftwork_policy::registry::{self, Entry};
use shiftwork_taskset::Environment;

const TABLES: &[&[Entry]] = &[registry::POLICIES, shiftwork_kernel_core::POLICIES];

/// All policies.
pub fn policies() -> impl Iterator<Item = &'static Entry> {
    TABLES.iter().copied().flatten()
}

/// The policy with this name, in any case.
///
/// # Errors
/// [`PolicyError::Unknown`] names those that may be meant.
pub fn find(name: &str) -> Result<&'static Entry, PolicyError> {
    registry::find_in(TABLES, name)
}

/// What task-set and scenario files may refer to: this machine, and all policies.
pub fn environment() -> Environment<'static> {
    Environment {
        policy: &|name| find(name).map(drop).map_err(|error| error.to_string()),
        ..Environment::default()
    }
}
