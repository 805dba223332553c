//! Which overhead file counts, and what it says.

use shiftwork_model::TaskSet;
use shiftwork_taskset::overheads::{self, OverheadFile};

use crate::failure::Failure;
use crate::input::Input;

/// In place of a file: scheduling costs nothing, whatever the task-set file says.
const NONE: &str = "none";

/// The path of the overhead file: that of the command line, otherwise that of the task-set file.
pub fn path(option: Option<&str>, input: &Input, set: &TaskSet) -> Option<String> {
    match (option, &set.scheduler.overheads) {
        (Some(NONE), _) => None,
        (Some(path), _) => Some(path.to_owned()),
        (None, of_file) => of_file.as_ref().map(|name| input.beside(name)),
    }
}

/// The overhead file, if there is one, with its path.
///
/// # Errors
/// If it cannot be read, with the place of the first mistake.
pub fn file(
    option: Option<&str>,
    input: &Input,
    set: &TaskSet,
) -> Result<Option<(String, OverheadFile)>, Failure> {
    let Some(path) = path(option, input, set) else {
        return Ok(None);
    };
    let input = Input::read(&path)?;
    let file = overheads::read(&input.text).map_err(|error| input.refused(&error))?;
    Ok(Some((input.path, file)))
}
