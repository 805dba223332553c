//! The kernel's description of its own types (BTF), read as far as it says whether BPF schedulers can
//! be loaded.
//!
//! This crate owns that format. It must never touch a file or a kernel: it is given bytes. Start reading
//! at [`kfuncs`].
//!
//! What is wanted are the parameters of the sched_ext functions; so the types are walked once, and all
//! but functions and their prototypes is skipped. Nothing in a description is believed: every offset
//! and length is checked before it is used.

mod error;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
#[cfg(test)]
mod tests;

pub use error::BtfError;

/// Bytes of the oldest header; newer ones are longer.
const HEADER: usize = 24;
/// The first two bytes of a description, as a number of its byte order.
const MAGIC: u16 = 0xeb9f;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
/// Name, flags and size (or type), with which every type begins.
const TYPE: usize = 12;
/// What a parameter of a prototype takes: its name and its type.
const PARAMETER: usize = 8;
/// The bits of a type's flags that are defined: the number of members, the kind, the kind's own flag.
const FLAGS: u32 = 0x9f00_ffff;

/// The parameter that the kernel fills in by itself and that no BPF program may see.
const IMPLICIT: &[u8] = b"aux";
/// How the twin of a function is called that has the implicit parameter.
const TWIN: &str = "_impl";

/// The functions that a kernel offers to sched_ext schedulers, by name and in alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kfuncs {
    /// All of them; the twins with an implicit parameter do not count. Empty: a kernel without
    /// sched_ext.
    pub all: Vec<String>,
    /// Those that no program can call, because the description shows a parameter that the kernel adds
    /// by itself: the verifier finds that the program's declaration is another.
    ///
    /// Kernels whose type information was made by pahole 1.30 are like that. A sound description has
    /// `NAME` without and a twin `NAME_impl` with the parameter.
    pub malformed: Vec<String>,
}

/// The names of the malformed functions alone; see [`kfuncs`].
///
/// # Errors
/// If the bytes are no type information.
pub fn malformed_kfuncs(bytes: &[u8]) -> Result<Vec<String>, BtfError> {
    kfuncs(bytes).map(|kfuncs| kfuncs.malformed)
}

/// The sched_ext functions in type information as `/sys/kernel/btf/vmlinux` and the section `.BTF` of
/// a kernel image hold it, in either byte order.
///
/// # Errors
/// If the bytes are no type information.
///
/// # Cost
/// One walk over the types: milliseconds for a kernel's 100,000.
pub fn kfuncs(bytes: &[u8]) -> Result<Kfuncs, BtfError> {
    let description = Description::of(bytes)?;
    let mut starts = Vec::new();
    let mut functions = Vec::new();
    let mut at = 0;
    while at < description.types.len() {
        let found = description.type_at(at)?;
        if found.kind == FUNCTION {
            let name = description.name(found.name)?;
            if is_sched_ext(name) {
                functions.push((name, found.target));
            }
        }
        starts.push(at);
        at = found.end;
    }
    functions.sort_unstable();
    functions.dedup();

    let mut kfuncs = Kfuncs::default();
    for (name, prototype) in &functions {
        let implicit = description.is_implicit(&starts, *prototype)?;
        let name = String::from_utf8_lossy(name).into_owned();
        if name.ends_with(TWIN) {
            continue;
        }
        let twin = format!("{name}{TWIN}");
        let has_twin = functions.iter().any(|(name, _)| *name == twin.as_bytes());
        if implicit && !has_twin {
            kfuncs.malformed.push(name.clone());
        }
        kfuncs.all.push(name);
    }
    kfuncs.all.dedup();
    kfuncs.malformed.dedup();
    Ok(kfuncs)
}

fn is_sched_ext(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"__").unwrap_or(name);
    name.starts_with(b"scx_bpf_") || name.starts_with(b"bpf_iter_scx_dsq")
}

/// The two parts of a description: types, one after the other, and names, each ended by a zero.
struct Description<'a> {
    types: &'a [u8],
    names: &'a [u8],
    is_big_endian: bool,
}

/// The beginning of a type, and where the next one begins.
struct Type {
    name: u32,
    kind: u32,
    members: usize,
    /// The number of another type, or a size: the kind says which.
    target: u32,
    end: usize,
}

impl<'a> Description<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, BtfError> {
        let magic = bytes.first_chunk().ok_or(BtfError::Truncated)?;
        let is_big_endian = match (u16::from_le_bytes(*magic), u16::from_be_bytes(*magic)) {
            (MAGIC, _) => false,
            (_, MAGIC) => true,
            _ => return Err(BtfError::NotBtf { magic: *magic }),
        };
        let field = |index: usize| number(bytes, 4 + 4 * index, is_big_endian);
        let version = *bytes.get(2).ok_or(BtfError::Truncated)?;
        if version != 1 {
            return Err(BtfError::Version(version));
        }
        let header = field(0)?;
        let body = bytes.get(header..).filter(|_| header >= HEADER);
        let body = body.ok_or(BtfError::Header(header))?;
        let part = |name, first| {
            let (start, length) = (field(first)?, field(first + 1)?);
            let end = start.checked_add(length);
            end.and_then(|end| body.get(start..end))
                .ok_or(BtfError::Part {
                    name,
                    start,
                    length,
                    available: body.len(),
                })
        };
        let description = Self {
            types: part("types", 1)?,
            names: part("names", 3)?,
            is_big_endian,
        };
        // So every name that begins inside ends inside.
        if description.names.last() != Some(&0) {
            return Err(BtfError::NamesUnended);
        }
        Ok(description)
    }

    /// The type that begins at this byte of the types.
    fn type_at(&self, at: usize) -> Result<Type, BtfError> {
        let word = |index: usize| number(self.types, at + 4 * index, self.is_big_endian);
        let (name, flags, target) = (word(0)? as u32, word(1)? as u32, word(2)? as u32);
        let (kind, members) = (flags >> 24 & 0x1f, (flags & 0xffff) as usize);
        let unknown = BtfError::UnknownKind { at, flags };
        if flags & !FLAGS != 0 {
            return Err(unknown);
        }
        let rest = match kind {
            // Pointer, forward, typedef, volatile, const, restrict, function, float, type tag.
            2 | 7..=12 | 16 | 18 => 0,
            // Integer, variable, declaration tag.
            1 | 14 | 17 => 4,
            3 => 12,
            6 | PROTOTYPE => 8 * members,
            // Structure, union, section, 64-bit enumeration.
            4 | 5 | 15 | 19 => 12 * members,
            _ => return Err(unknown),
        };
        let end = at + TYPE + rest;
        if end > self.types.len() {
            return Err(BtfError::Truncated);
        }
        Ok(Type {
            name,
            kind,
            members,
            target,
            end,
        })
    }

    /// Whether a prototype, by type number, has the implicit parameter. Types count from 1.
    fn is_implicit(&self, starts: &[usize], prototype: u32) -> Result<bool, BtfError> {
        let lost = BtfError::NoPrototype(prototype);
        let index = (prototype as usize).checked_sub(1);
        let Some(&start) = index.and_then(|index| starts.get(index)) else {
            return Err(lost);
        };
        let found = self.type_at(start)?;
        if found.kind != PROTOTYPE {
            return Err(lost);
        }
        for member in 0..found.members {
            let at = start + TYPE + PARAMETER * member;
            let name = number(self.types, at, self.is_big_endian)?;
            if self.name(name as u32)? == IMPLICIT {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The name that begins at this byte of the names, without its end.
    fn name(&self, start: u32) -> Result<&'a [u8], BtfError> {
        let rest = self.names.get(start as usize..);
        rest.and_then(|rest| rest.split(|&byte| byte == 0).next())
            .filter(|_| (start as usize) < self.names.len())
            .ok_or(BtfError::Name(start))
    }
}

/// The 32-bit number at this byte.
fn number(bytes: &[u8], at: usize, is_big_endian: bool) -> Result<usize, BtfError> {
    let digits = bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(BtfError::Truncated)?;
    let number = if is_big_endian {
        u32::from_be_bytes(*digits)
    } else {
        u32::from_le_bytes(*digits)
    };
    Ok(number as usize)
}
