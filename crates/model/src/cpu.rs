//! CPU numbers and sets of CPUs.

use core::fmt;
use core::ops::{BitAnd, BitOr, Sub};
use core::str::FromStr;

use alloc::string::{String, ToString};

/// How many CPUs a machine may have: CPU numbers are `0..CPUS_MAX`.
pub const CPUS_MAX: usize = 1024;

const WORDS: usize = CPUS_MAX / 64;

/// Number of a CPU, `0..CPUS_MAX`. Not a queue position, not a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(u16);

impl CpuId {
    /// The CPU with this number; `None` at or above [`CPUS_MAX`].
    pub const fn new(number: usize) -> Option<Self> {
        if number < CPUS_MAX {
            Some(Self(number as u16))
        } else {
            None
        }
    }

    /// The CPU with this number, which the caller knows to be below [`CPUS_MAX`].
    ///
    /// # Panics
    /// At or above [`CPUS_MAX`].
    pub const fn from_index(number: usize) -> Self {
        assert!(number < CPUS_MAX, "a CPU number is below CPUS_MAX");
        Self(number as u16)
    }

    /// The number, to index a table with.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of CPUs, possibly empty. Written as a CPU list (`0-3,7`); read from a list (`0-31:2/8`
/// too, as taskset does) or from a mask (`0xf`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet {
    words: [u64; WORDS],
}

impl CpuSet {
    /// No CPU.
    pub const EMPTY: Self = Self { words: [0; WORDS] };

    /// The CPUs `0..count`.
    ///
    /// # Panics
    /// If `count` exceeds [`CPUS_MAX`].
    pub fn first(count: usize) -> Self {
        assert!(count <= CPUS_MAX, "at most CPUS_MAX CPUs");
        (0..count).map(CpuId::from_index).collect()
    }

    /// One CPU.
    pub fn single(cpu: CpuId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(cpu);
        set
    }

    /// The CPUs whose bits are set; bit 0 is CPU 0.
    pub const fn from_bits(bits: u64) -> Self {
        let mut words = [0; WORDS];
        words[0] = bits;
        Self { words }
    }

    /// The set as bits if no CPU of it is above 63, which is where policies on small machines
    /// become fast.
    pub fn as_bits(&self) -> Option<u64> {
        self.words[1..]
            .iter()
            .all(|&word| word == 0)
            .then_some(self.words[0])
    }

    /// The set as words of 64 CPUs, lowest first.
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// Adds a CPU; one that is already in the set changes nothing.
    pub const fn insert(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] |= 1 << (cpu.index() % 64);
    }

    /// Takes a CPU out; one that is not in the set changes nothing.
    pub const fn remove(&mut self, cpu: CpuId) {
        self.words[cpu.index() / 64] &= !(1 << (cpu.index() % 64));
    }

    /// Whether the CPU is in the set.
    pub const fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() / 64] >> (cpu.index() % 64) & 1 == 1
    }

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Whether every CPU of this set is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words
            .iter()
            .zip(&other.words)
            .all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Whether some CPU is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words
            .iter()
            .zip(&other.words)
            .any(|(mine, theirs)| mine & theirs != 0)
    }

    /// The lowest CPU, `None` if the set is empty.
    #[inline]
    pub fn lowest(&self) -> Option<CpuId> {
        let index = self.words.iter().position(|&word| word != 0)?;
        let number = index * 64 + self.words[index].trailing_zeros() as usize;
        Some(CpuId::from_index(number))
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            core::iter::successors((word != 0).then_some(word), |rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| CpuId::from_index(index * 64 + rest.trailing_zeros() as usize))
        })
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut set = Self::EMPTY;
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

fn zip_words(left: CpuSet, right: CpuSet, combine: impl Fn(u64, u64) -> u64) -> CpuSet {
    CpuSet {
        words: core::array::from_fn(|i| combine(left.words[i], right.words[i])),
    }
}

impl BitAnd for CpuSet {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        zip_words(self, other, |a, b| a & b)
    }
}

impl BitOr for CpuSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        zip_words(self, other, |a, b| a | b)
    }
}

/// The CPUs of the left set that are not in the right one.
impl Sub for CpuSet {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        zip_words(self, other, |a, b| a & !b)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut cpus = self.iter().map(CpuId::index).peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&first.to_string());
            if last > first {
                text.push(if last == first + 1 { ',' } else { '-' });
                text.push_str(&last.to_string());
            }
        }
        f.pad(&text)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// Why a text is no set of CPUs. The message says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseCpuSetError {
    /// A part of the list is neither `N`, `N-M` nor `N-M:USED/GROUP`.
    Part(String),
    /// A range runs backwards or a stride is impossible.
    Range(String),
    /// A CPU number is not below [`CPUS_MAX`].
    TooLarge(String),
    /// A mask has a character that is no hexadecimal digit.
    Mask(String),
}

impl fmt::Display for ParseCpuSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(part) => {
                write!(
                    f,
                    "`{part}` is no CPU list; write one like `0-3,7` or a mask like `0xf`"
                )
            }
            Self::Range(part) => write!(
                f,
                "`{part}` is no range of CPUs; write `FIRST-LAST` or `FIRST-LAST:USED/GROUP` \
                 with FIRST <= LAST and 1 <= USED <= GROUP"
            ),
            Self::TooLarge(part) => {
                write!(
                    f,
                    "CPU `{part}` does not exist; CPU numbers are 0 to {}",
                    CPUS_MAX - 1
                )
            }
            Self::Mask(text) => write!(f, "`{text}` is no mask; write hexadecimal, like `0xf`"),
        }
    }
}

impl core::error::Error for ParseCpuSetError {}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    fn from_str(text: &str) -> Result<Self, ParseCpuSetError> {
        let text = text.trim();
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            return parse_mask(text, digits);
        }
        let mut set = Self::EMPTY;
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            insert_part(&mut set, part.trim())?;
        }
        Ok(set)
    }
}

fn parse_mask(text: &str, digits: &str) -> Result<CpuSet, ParseCpuSetError> {
    let mut set = CpuSet::EMPTY;
    if digits.is_empty() {
        return Err(ParseCpuSetError::Mask(text.to_string()));
    }
    for (place, digit) in digits
        .chars()
        .rev()
        .filter(|&c| c != ',' && c != '_')
        .enumerate()
    {
        let value = digit
            .to_digit(16)
            .ok_or_else(|| ParseCpuSetError::Mask(text.to_string()))? as usize;
        for bit in (0..4).filter(|bit| value >> bit & 1 == 1) {
            let cpu = CpuId::new(place * 4 + bit)
                .ok_or_else(|| ParseCpuSetError::TooLarge((place * 4 + bit).to_string()))?;
            set.insert(cpu);
        }
    }
    Ok(set)
}

fn insert_part(set: &mut CpuSet, part: &str) -> Result<(), ParseCpuSetError> {
    let number = |digits: &str| -> Result<usize, ParseCpuSetError> {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseCpuSetError::Part(part.to_string()));
        }
        digits
            .parse()
            .ok()
            .filter(|&cpu| cpu < CPUS_MAX)
            .ok_or_else(|| ParseCpuSetError::TooLarge(digits.to_string()))
    };
    let (range, stride) = match part.split_once(':') {
        Some((range, stride)) => (range, Some(stride)),
        None => (part, None),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(range)?, number(range)?),
    };
    let (used, group) = match stride.map(|s| s.split_once('/').unwrap_or(("1", s))) {
        Some((used, group)) => (number(used)?, number(group)?),
        None => (1, 1),
    };
    if first > last || used == 0 || used > group {
        return Err(ParseCpuSetError::Range(part.to_string()));
    }
    (first..=last)
        .filter(|cpu| (cpu - first) % group < used)
        .for_each(|cpu| set.insert(CpuId::from_index(cpu)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn lists_masks_and_strides_are_read() {
        assert_eq!(
            set("0-3,7").iter().map(CpuId::index).collect::<Vec<_>>(),
            [0, 1, 2, 3, 7]
        );
        assert_eq!(set("0-31:2/8"), set("0-1,8-9,16-17,24-25"));
        assert_eq!(set("0xf"), set("0-3"));
        assert_eq!(set("0x1,00000000"), set("32"));
        assert_eq!(set(""), CpuSet::EMPTY);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["0", "0,1", "0-2", "0-3,7", "5,9-11,1023"] {
            assert_eq!(set(text).to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_accepted() {
        for (text, message) in [
            (
                "a",
                "`a` is no CPU list; write one like `0-3,7` or a mask like `0xf`",
            ),
            (
                "1,",
                "`` is no CPU list; write one like `0-3,7` or a mask like `0xf`",
            ),
            (
                "1024",
                "CPU `1024` does not exist; CPU numbers are 0 to 1023",
            ),
            ("0xg", "`0xg` is no mask; write hexadecimal, like `0xf`"),
            ("0x", "`0x` is no mask; write hexadecimal, like `0xf`"),
        ] {
            assert_eq!(text.parse::<CpuSet>().unwrap_err().to_string(), message);
        }
        for text in ["3-1", "0-7:0/2", "0-7:3/2"] {
            assert!(
                matches!(text.parse::<CpuSet>(), Err(ParseCpuSetError::Range(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn set_algebra_agrees_with_membership() {
        let (a, b) = (set("0-40,100"), set("30-70"));
        for cpu in (0..CPUS_MAX).map(CpuId::from_index) {
            assert_eq!((a & b).contains(cpu), a.contains(cpu) && b.contains(cpu));
            assert_eq!((a | b).contains(cpu), a.contains(cpu) || b.contains(cpu));
            assert_eq!((a - b).contains(cpu), a.contains(cpu) && !b.contains(cpu));
        }
        assert!((a & b).is_subset(&a) && a.intersects(&b) && !a.is_subset(&b));
        assert_eq!(a.as_bits(), None);
        assert_eq!(set("0-2").as_bits(), Some(7));
    }
}
