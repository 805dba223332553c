//! Errors of the trace reader.

use std::fmt;

use shiftwork_model::CPUS_MAX;

/// Why a trace cannot be read. Offsets count bytes from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The bytes are not a Perfetto trace.
    NotATrace {
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The file ends within a packet.
    CutOff {
        /// Offset of the packet.
        offset: usize,
    },
    /// The trace has no shiftwork header before its records: another tool wrote it.
    NoHeader,
    /// The trace has two headers: two traces were concatenated.
    TwoHeaders {
        /// Offset of the second one.
        offset: usize,
    },
    /// The version of the records is newer than supported.
    Version {
        /// The version of the records.
        found: u32,
        /// The newest supported version.
        known: u32,
    },
    /// The header has more CPUs than supported.
    TooManyCpus {
        /// Number of CPUs in the header.
        found: u32,
    },
    /// A record is invalid.
    Record {
        /// Index of the record, from 0.
        index: usize,
        /// The defect.
        what: &'static str,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace { offset } => write!(
                f,
                "byte {offset}: this is no Perfetto trace; a file written by `simulate --trace` or \
                 `run` would be accepted"
            ),
            Self::CutOff { offset } => {
                write!(
                    f,
                    "byte {offset}: the file ends in the midst of this packet; it was cut off"
                )
            }
            Self::NoHeader => write!(
                f,
                "the trace has no shiftwork header before its records; only traces written by \
                 `simulate --trace` or `run` can be read back"
            ),
            Self::TwoHeaders { offset } => write!(
                f,
                "byte {offset}: a second header; traces that were joined cannot be read back, give \
                 them one by one"
            ),
            Self::Version { found, known } => write!(
                f,
                "the records have version {found}, and this program reads up to version {known}; \
                 use a newer program"
            ),
            Self::TooManyCpus { found } => {
                write!(
                    f,
                    "the header names {found} CPUs, and at most {CPUS_MAX} are possible"
                )
            }
            Self::Record { index, what } => write!(f, "record {index} is broken: {what}"),
        }
    }
}

impl std::error::Error for TraceError {}
