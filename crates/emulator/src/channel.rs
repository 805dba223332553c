//! Messages from the guest to the host, through one virtio port: frames of a kind, a length and
//! that many bytes. Standard output and error of the program stay apart, and no output can be
//! mistaken for an exit status.

use std::io::{self, Read, Write};

/// The name of the port.
pub const PORT: &str = "shiftwork";
/// More than any frame has; a longer one shows that the conversation is broken.
const LENGTH_MAX: usize = 1 << 20;

/// One message of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The first process of the guest runs.
    Started,
    /// Another second of the guest's time has passed since the program was started.
    Alive,
    /// The program wrote to its standard output.
    Output(Vec<u8>),
    /// The program wrote to its standard error.
    Error(Vec<u8>),
    /// The next piece of the archive of files to bring home.
    Archive(Vec<u8>),
    /// The program ended with this status; 128 and the number if a signal ended it.
    Exited(i32),
    /// The program did not end within its limit, in the guest's time.
    TimedOut,
    /// The first process could not do its work: why, as text.
    Failed(String),
}

impl Frame {
    const fn kind(&self) -> u8 {
        match self {
            Self::Started => b'S',
            Self::Alive => b'L',
            Self::TimedOut => b'T',
            Self::Output(_) => b'O',
            Self::Error(_) => b'E',
            Self::Archive(_) => b'A',
            Self::Exited(_) => b'X',
            Self::Failed(_) => b'F',
        }
    }

    /// Writes the frame at once, so that frames of several threads do not mix.
    ///
    /// # Errors
    /// Those of `writer`.
    pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let status;
        let bytes: &[u8] = match self {
            Self::Started | Self::Alive | Self::TimedOut => &[],
            Self::Output(bytes) | Self::Error(bytes) | Self::Archive(bytes) => bytes,
            Self::Exited(code) => {
                status = code.to_le_bytes();
                &status
            }
            Self::Failed(text) => text.as_bytes(),
        };
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut frame = vec![self.kind()];
        frame.extend(length.to_le_bytes());
        frame.extend(bytes);
        writer.write_all(&frame)?;
        writer.flush()
    }

    /// Reads the next frame; `None` at the end of the conversation, also if it ends within a frame: the
    /// guest then died in the middle of a word.
    ///
    /// # Errors
    /// Those of `reader`, or `InvalidData` if what comes is no frame.
    pub fn read(reader: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; 5];
        if !filled(reader, &mut head)? {
            return Ok(None);
        }
        let [kind, length @ ..] = head;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > LENGTH_MAX {
            return Err(broken("a frame is too long"));
        }
        let mut bytes = vec![0; length];
        if !filled(reader, &mut bytes)? {
            return Ok(None);
        }
        match kind {
            b'S' => Ok(Self::Started),
            b'L' => Ok(Self::Alive),
            b'T' => Ok(Self::TimedOut),
            b'O' => Ok(Self::Output(bytes)),
            b'E' => Ok(Self::Error(bytes)),
            b'A' => Ok(Self::Archive(bytes)),
            b'X' => match bytes.first_chunk() {
                Some(code) => Ok(Self::Exited(i32::from_le_bytes(*code))),
                None => Err(broken("an exit status is cut off")),
            },
            b'F' => Ok(Self::Failed(String::from_utf8_lossy(&bytes).into_owned())),
            _ => Err(broken("the kind of a frame is unknown")),
        }
        .map(Some)
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// False if the stream ended before.
fn filled(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        vec![
            Frame::Started,
            Frame::Alive,
            Frame::TimedOut,
            Frame::Output(b"X\0\0\0\0 is no exit status".to_vec()),
            Frame::Error(Vec::new()),
            Frame::Archive(vec![7; 70_000]),
            Frame::Failed("no such program".to_owned()),
            Frame::Exited(-1),
        ]
    }

    fn written(frames: &[Frame]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in frames {
            frame.write(&mut bytes).unwrap();
        }
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = written(&all());
        let mut reader = bytes.as_slice();
        for frame in all() {
            assert_eq!(Frame::read(&mut reader).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut reader).unwrap(), None);
    }

    #[test]
    fn a_conversation_that_breaks_off_has_no_last_word() {
        let bytes = written(&[Frame::Exited(0)]);
        for length in 0..bytes.len() {
            assert_eq!(
                Frame::read(&mut &bytes[..length]).unwrap(),
                None,
                "{length}"
            );
        }
    }

    #[test]
    fn noise_is_refused_and_takes_no_memory() {
        let huge = [b'O', 0xff, 0xff, 0xff, 0xff];
        assert!(Frame::read(&mut huge.as_slice()).is_err());
        assert!(Frame::read(&mut [b'?', 0, 0, 0, 0].as_slice()).is_err());
        assert!(Frame::read(&mut [b'X', 1, 0, 0, 0, 9].as_slice()).is_err());
    }
}
