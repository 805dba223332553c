//! Task sets as text and as random draws: task-set files in and out, scenario and overhead files,
//! importers of other tools' formats, and generators.
//!
//! This crate owns the file formats and every message about a mistake in one. It must never contain
//! scheduling or analysis, and it knows no policy: the name of one is a text here. Every reader
//! takes a text and gives a value or a [`TasksetError`] that says where, what, and what would be
//! accepted; no text, however bad, makes one panic.
//!
//! Start reading at [`read`], then `tree.rs`, which all TOML formats share.

mod cpus;
mod error;
mod file;
pub mod generate;
mod host;
pub mod import;
pub mod overheads;
mod place;
pub mod scenario;
mod span;
pub mod study;
mod tree;

pub use error::TasksetError;
pub use file::{read, read_with_sysfs, write};
pub use place::Place;
pub use span::{positive_span, span};
