//! Type information built for tests.

use crate::{FUNCTION, HEADER, MAGIC, PROTOTYPE};

/// Builder of a description in which each function has parameters of the given names.
pub struct Sample {
    types: Vec<u8>,
    names: Vec<u8>,
    count: u32,
    is_big_endian: bool,
}

impl Sample {
    /// The bytes of a little-endian description: for each function its name and its parameters'.
    pub fn of(functions: &[(&str, &[&str])]) -> Vec<u8> {
        Self::in_order(functions, false)
    }

    /// The same in either byte order.
    pub(crate) fn in_order(functions: &[(&str, &[&str])], is_big_endian: bool) -> Vec<u8> {
        let mut sample = Self {
            types: Vec::new(),
            names: vec![0],
            count: 0,
            is_big_endian,
        };
        // One type of each kind that the reader skips: kind, members, number of 32-bit words that follow.
        for (kind, members, rest) in [
            (1, 0, 1),
            (2, 0, 0),
            (3, 0, 3),
            (4, 2, 6),
            (5, 1, 3),
            (6, 3, 6),
            (7, 0, 0),
            (14, 0, 1),
            (15, 2, 6),
            (17, 0, 1),
            (19, 2, 6),
        ] {
            sample.add("skipped", kind, members, 1);
            (0..rest).for_each(|_| sample.word(0));
        }
        for (name, parameters) in functions {
            sample.add("", PROTOTYPE, parameters.len() as u32, 1);
            for parameter in *parameters {
                let name = sample.name(parameter);
                sample.word(name);
                sample.word(1);
            }
            sample.add(name, FUNCTION, 1, sample.count);
        }
        sample.finish()
    }

    fn add(&mut self, name: &str, kind: u32, members: u32, target: u32) {
        let name = self.name(name);
        for word in [name, kind << 24 | members, target] {
            self.word(word);
        }
        self.count += 1;
    }

    fn name(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let start = self.names.len() as u32;
        self.names.extend(name.as_bytes());
        self.names.push(0);
        start
    }

    fn word(&mut self, word: u32) {
        let bytes = self.bytes(word);
        self.types.extend(bytes);
    }

    fn bytes(&self, word: u32) -> [u8; 4] {
        if self.is_big_endian {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        }
    }

    fn finish(self) -> Vec<u8> {
        let (types, names) = (self.types.len() as u32, self.names.len() as u32);
        let magic = if self.is_big_endian {
            MAGIC.to_be_bytes()
        } else {
            MAGIC.to_le_bytes()
        };
        let mut bytes = [magic, [1, 0]].concat();
        for word in [HEADER as u32, 0, types, types, names] {
            bytes.extend(self.bytes(word));
        }
        bytes.extend(&self.types);
        bytes.extend(&self.names);
        bytes
    }
}

/// Functions as in a valid description.
pub const SOUND: &[(&str, &[&str])] = &[
    ("scx_bpf_kick_cpu", &["cpu", "flags"]),
    ("scx_bpf_kick_cpu_impl", &["cpu", "flags", "aux"]),
    ("scx_bpf_now", &[]),
    ("bpf_timer_set_callback", &["timer", "callback", "aux"]),
    ("__scx_bpf_select_cpu_and", &["p", "args"]),
    ("bpf_iter_scx_dsq_next", &["it"]),
];

/// Functions whose prototypes contain the implicit parameter.
pub const MALFORMED: &[(&str, &[&str])] = &[
    ("scx_bpf_kick_cpu", &["cpu", "flags", "aux"]),
    ("scx_bpf_now", &[]),
    ("scx_bpf_dsq_insert", &["p"]),
    ("scx_bpf_dsq_insert_impl", &["p", "aux"]),
    ("bpf_iter_scx_dsq_new", &["it", "dsq_id", "aux"]),
];
