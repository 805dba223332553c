//! Received bytes, split into messages.

/// Splits a stream of bytes into messages that are terminated by NUL.
///
/// No byte is searched for NUL twice: the cost does not depend on how the stream is cut.
///
/// Invariant: `start <= searched <= bytes.len()`; there is no NUL in `start..searched`, and `end` is the position of the
/// first NUL beyond if that is known.
///
/// ```text
/// bytes  taken | the message so far ... | not searched yet ...
///              start                    searched
/// ```
#[derive(Debug)]
pub struct MessageBuffer {
    bytes: Vec<u8>,
    start: usize,
    searched: usize,
    end: Option<usize>,
    longest: usize,
}

/// A message exceeds the maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTooLong {
    /// Maximum length of a message in bytes, without its NUL.
    pub longest: usize,
}

impl MessageBuffer {
    /// An empty buffer for messages of at most `longest` bytes without their NUL.
    pub const fn new(longest: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            end: None,
            longest,
        }
    }

    /// Appends the next bytes of the stream.
    ///
    /// Buffers all of them: to bound the memory, read only while there is no message ([`Self::has_message`]) and close the
    /// stream at a [`MessageTooLong`].
    pub fn push(&mut self, bytes: &[u8]) {
        // Removes consumed messages first; each byte moves at most once per push.
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.end = self.end.map(|end| end - self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
        self.search();
    }

    /// The next message without its NUL, `None` until it is complete.
    ///
    /// # Errors
    /// If it exceeds the maximum length, as soon as that is certain. The stream cannot be used further.
    pub fn next_message(&mut self) -> Result<Option<&[u8]>, MessageTooLong> {
        let so_far = self.end.unwrap_or(self.searched) - self.start;
        if so_far > self.longest {
            return Err(MessageTooLong {
                longest: self.longest,
            });
        }
        let Some(end) = self.end.take() else {
            return Ok(None);
        };
        let begin = std::mem::replace(&mut self.start, end + 1);
        self.searched = self.start;
        self.search();
        Ok(Some(&self.bytes[begin..end]))
    }

    /// Whether [`Self::next_message`] would return a message or an error.
    pub fn has_message(&self) -> bool {
        self.end.is_some() || self.searched - self.start > self.longest
    }

    /// Whether the buffer ends with an incomplete message and has no complete one.
    pub fn has_partial(&self) -> bool {
        self.bytes
            .get(self.start..)
            .is_some_and(|rest| !rest.is_empty())
            && self.end.is_none()
    }

    /// Number of buffered bytes.
    pub fn held(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn search(&mut self) {
        if self.end.is_some() {
            return;
        }
        let rest = &self.bytes[self.searched..];
        match rest.iter().position(|&byte| byte == 0) {
            Some(place) => {
                self.searched += place;
                self.end = Some(self.searched);
            }
            None => self.searched = self.bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: a message is the bytes between two NULs.
    fn messages_of(stream: &[u8]) -> Vec<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = stream.split(|&byte| byte == 0).map(Vec::from).collect();
        parts.pop();
        parts
    }

    /// Consumes all complete messages.
    fn take(buffer: &mut MessageBuffer, into: &mut Vec<Vec<u8>>) {
        while let Some(message) = buffer.next_message().unwrap() {
            into.push(message.to_vec());
        }
    }

    #[test]
    fn messages_do_not_depend_on_cuts_of_stream() {
        let streams: [&[u8]; 5] = [
            b"",
            b"\0\0\0",
            b"ab\0c\0\0defg\0h",
            b"abcdefghij",
            b"a\0b\0c\0",
        ];
        for stream in streams {
            let bits = stream.len().saturating_sub(1) as u32;
            for cuts in 0..1_u32 << bits {
                let mut buffer = MessageBuffer::new(100);
                let mut found = Vec::new();
                let mut begin = 0;
                for end in 1..=stream.len() {
                    let cut_here = end == stream.len() || cuts >> (end - 1) & 1 == 1;
                    if cut_here {
                        buffer.push(&stream[begin..end]);
                        begin = end;
                        // In half of the cases messages are consumed only at the end.
                        if cuts.count_ones() % 2 == 0 {
                            take(&mut buffer, &mut found);
                            let partial = stream[..end].last().is_some_and(|&byte| byte != 0);
                            assert_eq!(buffer.has_partial(), partial, "{stream:?} cut {cuts:b}");
                        }
                    }
                }
                take(&mut buffer, &mut found);
                assert_eq!(found, messages_of(stream), "{stream:?} cut {cuts:b}");
                assert!(!buffer.has_message());
            }
        }
    }

    #[test]
    fn message_beyond_maximum_length_is_an_error() {
        for length in 0..8 {
            for chunk in 1..=8 {
                let mut buffer = MessageBuffer::new(4);
                let mut stream = vec![b'a'; length];
                stream.push(0);
                let mut outcome = Ok(None);
                for part in stream.chunks(chunk) {
                    buffer.push(part);
                    outcome = buffer.next_message().map(|message| message.map(Vec::from));
                    if outcome.is_err() {
                        break;
                    }
                }
                let expected = if length <= 4 {
                    Ok(Some(vec![b'a'; length]))
                } else {
                    Err(MessageTooLong { longest: 4 })
                };
                assert_eq!(outcome, expected, "length {length}, chunks of {chunk}");
            }
        }
    }

    #[test]
    fn too_long_message_is_detected_before_its_end() {
        let mut buffer = MessageBuffer::new(4);
        buffer.push(b"abcd");
        assert!(!buffer.has_message());
        buffer.push(b"e");
        assert!(buffer.has_message());
        assert_eq!(buffer.next_message(), Err(MessageTooLong { longest: 4 }));
    }

    #[test]
    fn consumed_messages_are_removed() {
        let mut buffer = MessageBuffer::new(100);
        for _ in 0..1_000 {
            buffer.push(b"a message\0and a part");
            while buffer.next_message().unwrap().is_some() {}
            buffer.push(b" of another\0");
            while buffer.next_message().unwrap().is_some() {}
            assert_eq!(buffer.held(), 0);
        }
        assert!(buffer.bytes.capacity() < 1_000);
    }
}
