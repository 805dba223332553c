//! What scheduling costs.

use std::sync::Arc;

use pyo3::prelude::*;
use shiftwork_taskset::overheads::{OverheadFile, read, write};

use crate::failure::refused;

/// What an overhead file says.
#[pyclass(frozen, eq, module = "shiftwork._shiftwork")]
#[derive(PartialEq)]
pub struct Overheads(pub Arc<OverheadFile>);

#[pymethods]
impl Overheads {
    /// Reads the text of an overhead file.
    #[staticmethod]
    fn read(text: &str) -> PyResult<Self> {
        let file = read(text).map_err(|error| refused(&error))?;
        Ok(Self(Arc::new(file)))
    }

    /// The same as an overhead file.
    fn write(&self) -> String {
        write(&self.0)
    }

    /// For people.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// `worst` or `average` with the name of a policy in lower case, for each table.
    fn tables(&self) -> Vec<(&'static str, String)> {
        let tables = self.0.tables.keys();
        tables
            .map(|(purpose, policy)| (purpose.name(), policy.clone()))
            .collect()
    }
}
