//! Why type information could not be read.

use std::fmt;

/// Why type information could not be read. Sizes and places are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BtfError {
    /// It ends in the middle of something.
    Truncated,
    /// It begins with something else.
    NotBtf {
        /// What it begins with.
        magic: [u8; 2],
    },
    /// Of a version that is not known.
    Version(u8),
    /// The header cannot be as long as it says it is.
    Header(usize),
    /// A part lies outside of it.
    Part {
        /// Which: `types` or `names`.
        name: &'static str,
        /// Where the part begins, behind the header.
        start: usize,
        /// How long it is.
        length: usize,
        /// How much there is behind the header.
        available: usize,
    },
    /// The last name has no end.
    NamesUnended,
    /// A type of a kind that did not exist yet when this was written, so that nobody knows where the
    /// next one begins. Whoever made it need not be at fault.
    UnknownKind {
        /// Where in the types.
        at: usize,
        /// Its flags.
        flags: u32,
    },
    /// A name lies outside the names.
    Name(u32),
    /// A function whose prototype is none.
    NoPrototype(u32),
}

impl fmt::Display for BtfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the type information ends in the middle of something"),
            Self::NotBtf { magic: [a, b] } => write!(
                f,
                "no type information: it begins with {a:02x} {b:02x} instead of 9f eb"
            ),
            Self::Version(version) => {
                write!(f, "type information of version {version}, where 1 is known")
            }
            Self::Header(length) => write!(
                f,
                "the header of the type information claims {length} bytes; it has at least 24 and \
                 no more than there are"
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
            Self::NamesUnended => f.write_str("the last name of the type information has no end"),
            Self::UnknownKind { at, flags } => write!(
                f,
                "the type information has a type of an unknown kind, flags {flags:#010x}, at byte {at} \
                 of its types"
            ),
            Self::Name(start) => write!(
                f,
                "the type information has a name at byte {start} of its names, which is outside"
            ),
            Self::NoPrototype(number) => write!(
                f,
                "the type information has a function of type {number}, which is no prototype"
            ),
        }
    }
}

impl std::error::Error for BtfError {}
