//! Every policy of every crate: what `--policy` takes, in the order in which `policies` lists them.

use shiftwork_policy::PolicyError;
use shiftwork_policy::registry::{self, Entry};

const TABLES: &[&[Entry]] = &[registry::POLICIES, shiftwork_kernel_core::POLICIES];

/// All policies.
pub fn policies() -> impl Iterator<Item = &'static Entry> {
    TABLES.iter().copied().flatten()
}

/// The policy with this name, in any case.
///
/// # Errors
/// [`PolicyError::Unknown`] lists the names there are.
pub fn find(name: &str) -> Result<&'static Entry, PolicyError> {
    registry::find_in(TABLES, name)
}
