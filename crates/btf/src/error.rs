//! Why type information could not be read.

use std::fmt;

/// Why type information could not be read. Sizes and offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BtfError {
    /// The bytes end within the header, a type or a name.
    Truncated,
    /// The bytes do not begin with the magic number.
    NotBtf {
        /// The first two bytes.
        magic: [u8; 2],
    },
    /// The version is not supported.
    Version(u8),
    /// The header's own length is impossible.
    Header(usize),
    /// A section lies outside the bytes.
    Part {
        /// Name of the section: `types` or `names`.
        name: &'static str,
        /// Offset of the section, from the end of the header.
        start: usize,
        /// Length of the section.
        length: usize,
        /// Number of bytes after the header.
        available: usize,
    },
    /// The last name is not terminated.
    NamesUnended,
    /// The kind of a type is unknown, and with it the type's length: the next type cannot be found.
    /// The description may be valid and newer than this reader.
    UnknownKind {
        /// Offset of the type within the types.
        at: usize,
        /// Flags of the type.
        flags: u32,
    },
    /// A name lies outside the names.
    Name(u32),
    /// The type number of a function's prototype is not that of a prototype.
    NoPrototype(u32),
}

impl fmt::Display for BtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the type information is truncated"),
            Self::NotBtf { magic: [a, b] } => write!(
                f,
                "no type information: it begins with {a:02x} {b:02x} instead of 9f eb"
            ),
            Self::Version(version) => {
                write!(f, "type information of version {version}; supported: 1")
            }
            Self::Header(length) => write!(
                f,
                "the header of the type information claims {length} bytes; expected at least 24 and \
                 at most the length of the whole"
            ),
            Self::Part {
                name,
                start,
                length,
                available,
            } => write!(
                f,
                "the {name} of the type information claim {length} bytes from byte {start} on, of \
                 {available}"
            ),
            Self::NamesUnended => {
                f.write_str("the last name of the type information is not terminated")
            }
            Self::UnknownKind { at, flags } => write!(
                f,
                "the type information has a type of an unknown kind, flags {flags:#010x}, at byte {at} \
                 of its types"
            ),
            Self::Name(start) => write!(
                f,
                "a name in the type information begins at byte {start}, beyond the end of the names"
            ),
            Self::NoPrototype(number) => write!(
                f,
                "a function in the type information has type {number}, which is not a prototype"
            ),
        }
    }
}

impl std::error::Error for BtfError {}
