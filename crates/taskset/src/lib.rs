//! Task sets as text and as random draws: task-set files in and out, scenario, study, overhead and daemon
//! files, importers and exporters of other tools' formats, and generators.
//!
//! This crate owns the file formats and every message about a mistake in one. It must never contain
//! scheduling or analysis, and it knows no policy: the name of one is a text here, and an [`Environment`]
//! says whether there is such a policy. Every reader takes a text and gives a value or a [`TasksetError`] that
//! says where, what, and what would be accepted; no text, however bad, makes one panic.
//!
//! Start reading at [`read`], then `tree.rs`, which all TOML formats share.

mod cpus;
pub mod daemon;
mod error;
pub mod export;
mod file;
pub mod generate;
mod host;
pub mod import;
mod keys;
mod kind;
pub mod overheads;
mod place;
pub mod scenario;
mod schema;
mod span;
pub mod study;
mod tree;

pub use error::TasksetError;
pub use file::{Comments, read, read_in, write, write_with_comments};
pub use keys::Environment;
pub use kind::Kind;
pub use place::Place;
pub use schema::schema;
pub use span::{positive_span, span};
