//! A buffer for protobuf primitives, without a bounds check per byte.

/// A byte buffer. [`ProtoBuffer::ensure`] reserves space; afterwards as many bytes may be written.
///
/// Invariant: the first `at` bytes of `bytes` are written, the rest is reserved space.
#[derive(Clone, Debug, Default)]
pub(super) struct ProtoBuffer {
    bytes: Vec<u8>,
    at: usize,
}

/// A varint is stored in whole words, which may write this many bytes beyond its end.
const SLACK: usize = 16;

impl ProtoBuffer {
    /// Reserves space for `count` bytes.
    #[inline]
    pub fn ensure(&mut self, count: usize) {
        if self.at + count + SLACK > self.bytes.len() {
            self.grow(count);
        }
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        let needed = self.at + count + SLACK;
        self.bytes.resize(needed.next_power_of_two().max(4096), 0);
    }

    /// Number of written bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.at
    }

    pub fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// Removes the written bytes and keeps the allocation.
    pub const fn clear(&mut self) {
        self.at = 0;
    }

    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    #[inline]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    /// Appends any number of bytes; reserves space itself.
    pub fn slice(&mut self, bytes: &[u8]) {
        self.ensure(bytes.len());
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// A protobuf varint: seven bits per byte, lowest first. At most 10 bytes.
    #[inline]
    pub fn varint(&mut self, value: u64) {
        if value < 1 << 7 {
            self.byte(value as u8);
        } else if value < 1 << 56 {
            self.wide_varint(value);
        } else {
            self.widest_varint(value);
        }
    }

    /// Spreads 8 x 7 bits to 8 bytes at once instead of byte by byte.
    #[inline]
    fn wide_varint(&mut self, value: u64) {
        let fours = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
        let twos = (fours & 0x0000_3fff_0000_3fff) | (fours & 0x0fff_c000_0fff_c000) << 2;
        let ones = (twos & 0x007f_007f_007f_007f) | (twos & 0x3f80_3f80_3f80_3f80) << 1;
        let length = (value | 1).ilog2() as usize / 7 + 1;
        let more = 0x8080_8080_8080_8080 & ((1 << (8 * (length - 1))) - 1);
        let end = self.at + length;
        self.put((ones | more).to_le_bytes());
        self.at = end;
    }

    #[cold]
    fn widest_varint(&mut self, mut value: u64) {
        while value >= 1 << 7 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// A signed varint with zigzag encoding.
    #[inline]
    pub fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// Reserves a byte for the length of the following bytes, at most 127; [`ProtoBuffer::close`] fills it in.
    #[inline]
    pub fn open(&mut self) -> usize {
        self.at += 1;
        self.at
    }

    /// Fills in the length of the bytes written since [`ProtoBuffer::open`] returned `start`.
    #[inline]
    pub fn close(&mut self, start: usize) {
        let length = self.at - start;
        debug_assert!(length < 1 << 7, "one byte holds the length of a hot packet");
        self.bytes[start - 1] = length as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::RandomStream;

    #[test]
    fn varints_equal_those_of_prost() {
        let mut random = RandomStream::new(1, 0, 0);
        let random = (0..10_000).map(|_| random.bits() >> random.below(64));
        let edges = (0..64)
            .flat_map(|bit| [(1u64 << bit) - 1, 1 << bit])
            .chain([u64::MAX]);
        for value in edges.chain(random.collect::<Vec<_>>()) {
            let (mut buffer, mut expected) = (ProtoBuffer::default(), Vec::new());
            buffer.ensure(10);
            buffer.varint(value);
            prost::encoding::encode_varint(value, &mut expected);
            assert_eq!(buffer.written(), expected, "{value}");
        }
    }

    #[test]
    fn lengths_are_filled_in() {
        let mut buffer = ProtoBuffer::default();
        buffer.ensure(10);
        let start = buffer.open();
        buffer.put([1, 2, 3]);
        buffer.close(start);
        assert_eq!(buffer.written(), [3, 1, 2, 3]);
    }
}
