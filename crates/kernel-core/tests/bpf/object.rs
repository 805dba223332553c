//! Reader of BPF object files.

use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Copy)]
pub struct Section {
    /// 1 is contents, 8 is zeroes, 9 is relocations.
    pub kind: u32,
    pub offset: usize,
    pub size: usize,
    link: usize,
    info: usize,
}

pub struct Symbol {
    pub name: String,
    pub is_function: bool,
    pub section: usize,
    pub value: u64,
}

/// The parts of a 64-bit little-endian ELF object that the tests need.
pub struct Object {
    pub bytes: Vec<u8>,
    pub sections: Vec<Section>,
    pub symbols: Vec<Symbol>,
}

impl Object {
    pub fn read(path: &Path) -> Self {
        let mut object = Self {
            bytes: std::fs::read(path).unwrap(),
            sections: Vec::new(),
            symbols: Vec::new(),
        };
        let (table, count) = (object.word(40, 8) as usize, object.word(60, 2) as usize);
        object.sections = (0..count)
            .map(|index| table + 64 * index)
            .map(|at| Section {
                kind: object.word(at + 4, 4) as u32,
                offset: object.word(at + 24, 8) as usize,
                size: object.word(at + 32, 8) as usize,
                link: object.word(at + 40, 4) as usize,
                info: object.word(at + 44, 4) as usize,
            })
            .collect();
        let table = object
            .sections
            .iter()
            .find(|section| section.kind == 2)
            .unwrap();
        let names = object.sections[table.link].offset;
        object.symbols = (0..table.size / 24)
            .map(|index| table.offset + 24 * index)
            .map(|at| Symbol {
                name: object.text(names + object.word(at, 4) as usize),
                is_function: object.bytes[at + 4] & 0xf == 2,
                section: object.word(at + 6, 2) as usize,
                value: object.word(at + 8, 8),
            })
            .collect();
        object
    }

    /// A little-endian number of `size` bytes.
    pub fn word(&self, at: usize, size: usize) -> u64 {
        let bytes = self.bytes[at..at + size].iter().rev();
        bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    fn text(&self, at: usize) -> String {
        let bytes = self.bytes[at..].iter().take_while(|&&byte| byte != 0);
        bytes.map(|&byte| char::from(byte)).collect()
    }

    pub fn undefined(&self) -> Vec<&str> {
        let missing = |symbol: &&Symbol| symbol.section == 0 && !symbol.name.is_empty();
        self.symbols
            .iter()
            .filter(missing)
            .map(|symbol| symbol.name.as_str())
            .collect()
    }

    /// The function at this offset of a section.
    fn function_at(&self, section: usize, place: u64) -> &Symbol {
        let before = |symbol: &&Symbol| {
            symbol.is_function && symbol.section == section && symbol.value <= place
        };
        self.symbols
            .iter()
            .filter(before)
            .max_by_key(|symbol| symbol.value)
            .unwrap()
    }

    /// The call graph: callees by caller.
    pub fn calls(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut calls: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let code = self.symbols.iter().filter(|symbol| symbol.is_function);
        let mut code: Vec<usize> = code.map(|symbol| symbol.section).collect();
        code.sort_unstable();
        code.dedup();
        for section in code {
            let Section { offset, size, .. } = self.sections[section];
            for place in (0..size as u64).step_by(8) {
                let at = offset + place as usize;
                // BPF_JMP | BPF_CALL with the source register BPF_PSEUDO_CALL.
                if self.bytes[at] != 0x85 || self.bytes[at + 1] >> 4 != 1 {
                    continue;
                }
                let (called, start) = self.called(section, place);
                let called = self.function_at(called, start);
                let caller = &self.function_at(section, place).name;
                calls.entry(caller).or_default().push(&called.name);
            }
        }
        calls
    }

    /// Section and offset of the function that the instruction at this offset calls.
    pub fn called(&self, section: usize, place: u64) -> (usize, u64) {
        let at = self.sections[section].offset + place as usize;
        let distance = 8 * (self.word(at + 4, 4) as u32 as i32 as i64 + 1);
        match self.relocated(section, place) {
            Some(symbol) if symbol.is_function => (symbol.section, symbol.value),
            Some(symbol) => (symbol.section, distance as u64),
            None => (section, place.wrapping_add_signed(distance)),
        }
    }

    /// The symbol to which the instruction at this offset refers.
    pub fn relocated(&self, section: usize, place: u64) -> Option<&Symbol> {
        let tables = self
            .sections
            .iter()
            .filter(|table| table.kind == 9 && table.info == section);
        let mut entries = tables
            .flat_map(|table| (0..table.size / 16).map(move |index| table.offset + 16 * index));
        let entry = entries.find(|&at| self.word(at, 8) == place)?;
        Some(&self.symbols[self.word(entry + 12, 4) as usize])
    }
}
