//! A BPF interpreter in user space that counts instructions: exact, the same on every machine, and without
//! root privileges.

use std::path::Path;

use crate::object::{Object, Symbol};

/// Number of instructions to which the kernel expands one `may_goto`: load the counter, compare, decrement,
/// store.
const MAY_GOTO: u64 = 4;

const STACK: usize = 8 * 512;
/// Address range of a section: section `n` begins at `n` times this; the stack is section 0.
const SPACE: u64 = 1 << 32;

#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    to: usize,
    from: usize,
    offset: i16,
    immediate: i32,
    /// The 64-bit constant of a load, or the target of a call.
    target: u64,
}

/// A loaded object: its code, its sections as memory, and a stack.
pub struct Machine {
    code: Vec<Instruction>,
    memory: Vec<Vec<u8>>,
    /// Start of each function.
    functions: Vec<(String, usize)>,
    /// Section and offset of each other symbol.
    symbols: Vec<(String, usize, usize)>,
    /// Instructions executed so far.
    pub count: u64,
}

impl Machine {
    /// Loads an object. The stack is section 0.
    pub fn load(path: &Path) -> Self {
        let object = Object::read(path);
        let mut memory: Vec<Vec<u8>> = object
            .sections
            .iter()
            .map(|section| match section.kind {
                8 => vec![0; section.size],
                _ => object.bytes[section.offset..][..section.size].to_vec(),
            })
            .collect();
        memory[0] = vec![0; STACK];
        let mut machine = Self {
            code: Vec::new(),
            memory,
            functions: Vec::new(),
            symbols: Vec::new(),
            count: 0,
        };
        machine.load_code(&object);
        machine
    }

    fn load_code(&mut self, object: &Object) {
        let named = |symbol: &&Symbol| symbol.section != 0 && !symbol.name.is_empty();
        let mut sections: Vec<usize> = object
            .symbols
            .iter()
            .filter(|symbol| symbol.is_function)
            .map(|symbol| symbol.section)
            .collect();
        sections.sort_unstable();
        sections.dedup();
        let mut starts = vec![0; object.sections.len()];
        let mut next = 0;
        for &section in &sections {
            starts[section] = next;
            next += object.sections[section].size / 8;
        }
        for section in sections {
            for place in (0..object.sections[section].size as u64).step_by(8) {
                self.code.push(decode(object, section, place, &starts));
            }
        }
        for symbol in object.symbols.iter().filter(named) {
            let place = symbol.value as usize;
            if symbol.is_function {
                let start = starts[symbol.section] + place / 8;
                self.functions.push((symbol.name.clone(), start));
            } else {
                self.symbols
                    .push((symbol.name.clone(), symbol.section, place));
            }
        }
    }

    /// The memory from this variable on.
    pub fn variable(&mut self, name: &str) -> &mut [u8] {
        let named = |symbol: &&(String, usize, usize)| symbol.0 == name;
        let &(_, section, place) = self.symbols.iter().find(named).unwrap();
        &mut self.memory[section][place..]
    }

    /// Runs a program to its end; returns what it returns.
    pub fn run(&mut self, program: &str) -> u64 {
        let named = |function: &&(String, usize)| function.0 == program;
        let mut next = self.functions.iter().find(named).unwrap().1;
        let mut registers = [0_u64; 11];
        registers[10] = STACK as u64;
        let mut callers: Vec<(usize, [u64; 5])> = Vec::new();
        loop {
            let instruction = self.code[next];
            next += 1;
            self.count += 1;
            match instruction.code {
                0x85 => {
                    let kept = [6, 7, 8, 9, 10].map(|register| registers[register]);
                    callers.push((next, kept));
                    assert!(callers.len() < 8, "too many frames");
                    registers[10] -= 512;
                    next = instruction.target as usize;
                }
                0x95 => {
                    let Some((caller, kept)) = callers.pop() else {
                        return registers[0];
                    };
                    registers[6..].copy_from_slice(&kept);
                    next = caller;
                }
                0x18 => {
                    registers[instruction.to] = instruction.target;
                    next += 1;
                }
                0xe5 => self.count += MAY_GOTO - 1,
                _ => self.step(instruction, &mut registers, &mut next),
            }
        }
    }

    fn step(&mut self, instruction: Instruction, registers: &mut [u64; 11], next: &mut usize) {
        let Instruction {
            code,
            to,
            from,
            offset,
            immediate,
            ..
        } = instruction;
        let operand = match code & 0x08 {
            0 => immediate as i64 as u64,
            _ => registers[from],
        };
        match code & 7 {
            1 => {
                assert_eq!(code & 0xe0, 0x60, "no loads that extend signs");
                registers[to] = self.read(registers[from], offset, size(code));
            }
            2 => self.write(registers[to], offset, size(code), immediate as i64 as u64),
            3 => {
                assert_eq!(code & 0xe0, 0x60, "no atomic instructions");
                self.write(registers[to], offset, size(code), registers[from]);
            }
            4 => {
                let (a, b) = (registers[to] as u32, operand as u32);
                registers[to] = u64::from(arithmetic_32(code, a, b));
            }
            7 => registers[to] = arithmetic_64(code, registers[to], operand),
            5 | 6 => {
                let wide = code & 7 == 5;
                let (a, b) = (registers[to], operand);
                if (wide && holds(code, a, b, a as i64, b as i64))
                    || (!wide && holds_32(code, a, b))
                {
                    *next = next.wrapping_add_signed(isize::from(offset));
                }
            }
            _ => panic!("instruction {code:#x} is not known"),
        }
    }

    fn place(&self, base: u64, offset: i16) -> (usize, usize) {
        let address = base.wrapping_add_signed(i64::from(offset));
        ((address / SPACE) as usize, (address % SPACE) as usize)
    }

    /// Panics if the access leaves its section.
    fn read(&self, base: u64, offset: i16, size: usize) -> u64 {
        let (section, place) = self.place(base, offset);
        let mut word = [0; 8];
        word[..size].copy_from_slice(&self.memory[section][place..][..size]);
        u64::from_le_bytes(word)
    }

    fn write(&mut self, base: u64, offset: i16, size: usize, value: u64) {
        let (section, place) = self.place(base, offset);
        self.memory[section][place..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

fn decode(object: &Object, section: usize, place: u64, starts: &[usize]) -> Instruction {
    let at = object.sections[section].offset + place as usize;
    let mut instruction = Instruction {
        code: object.bytes[at],
        to: usize::from(object.bytes[at + 1] & 15),
        from: usize::from(object.bytes[at + 1] >> 4),
        offset: object.word(at + 2, 2) as i16,
        immediate: object.word(at + 4, 4) as i32,
        target: 0,
    };
    if instruction.code == 0x85 {
        assert_eq!(instruction.from, 1, "the core calls no external function");
        let (called, start) = object.called(section, place);
        instruction.target = starts[called] as u64 + start / 8;
    }
    if instruction.code == 0x18 {
        instruction.target = object.word(at + 4, 4) | object.word(at + 12, 4) << 32;
        if let Some(symbol) = object.relocated(section, place) {
            instruction.target += symbol.section as u64 * SPACE + symbol.value;
        }
    }
    instruction
}

fn size(code: u8) -> usize {
    [4, 2, 1, 8][usize::from(code >> 3 & 3)]
}

fn arithmetic_64(code: u8, a: u64, b: u64) -> u64 {
    match code & 0xf0 {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 => a.checked_div(b).unwrap_or(0),
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a << (b & 63),
        0x70 => a >> (b & 63),
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(b).unwrap_or(a),
        0xa0 => a ^ b,
        0xb0 => b,
        0xc0 => (a as i64 >> (b & 63)) as u64,
        _ => panic!("instruction {code:#x} is not known"),
    }
}

fn arithmetic_32(code: u8, a: u32, b: u32) -> u32 {
    match code & 0xf0 {
        0x60 => a << (b & 31),
        0x70 => a >> (b & 31),
        0xc0 => (a as i32 >> (b & 31)) as u32,
        _ => arithmetic_64(code, u64::from(a), u64::from(b)) as u32,
    }
}

fn holds_32(code: u8, a: u64, b: u64) -> bool {
    let (a, b) = (a as u32, b as u32);
    let signed = |word: u32| i64::from(word as i32);
    holds(code, u64::from(a), u64::from(b), signed(a), signed(b))
}

fn holds(code: u8, a: u64, b: u64, signed_a: i64, signed_b: i64) -> bool {
    match code & 0xf0 {
        0x00 => true,
        0x10 => a == b,
        0x20 => a > b,
        0x30 => a >= b,
        0x40 => a & b != 0,
        0x50 => a != b,
        0x60 => signed_a > signed_b,
        0x70 => signed_a >= signed_b,
        0xa0 => a < b,
        0xb0 => a <= b,
        0xc0 => signed_a < signed_b,
        0xd0 => signed_a <= signed_b,
        _ => panic!("instruction {code:#x} is not known"),
    }
}
