//! The reader of traces.

use prost::Message;
use prost::encoding::decode_varint;

use shiftwork_model::{CPUS_MAX, Instant, Record};

use super::records::{RecordReader, VERSION};
use super::schema::{Header, OwnPacket};
use super::{Provenance, RecorderMetadata, TraceError};

/// The contents of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Provenance of the run.
    pub provenance: Provenance,
    /// The task set's name.
    pub name: String,
    /// CPUs of the machine.
    pub cpus: usize,
    /// The names of the tasks, by their index.
    pub tasks: Vec<String>,
    /// The horizon that the run reached; `None` if the writer was not finished.
    pub ended: Option<Instant>,
    /// What a flight recorder knows of its records; `None`: the trace is of a run.
    pub recorder: Option<RecorderMetadata>,
    /// The records, in their order.
    pub records: Vec<Record>,
}

/// Reads a trace of [`Writer`](super::Writer). Skips the packets for Perfetto.
///
/// # Errors
/// If the bytes are not such a trace, with offset and reason. Never panics.
pub fn read(bytes: &[u8]) -> Result<TraceFile, TraceError> {
    read_part(bytes, false)
}

/// Reads what is before the first record; the rest may be missing.
///
/// # Errors
/// As [`read`], of that part.
pub fn read_metadata(bytes: &[u8]) -> Result<TraceFile, TraceError> {
    read_part(bytes, true)
}

fn read_part(bytes: &[u8], stops_at_records: bool) -> Result<TraceFile, TraceError> {
    let mut file = None;
    let mut last = Instant::ZERO;
    let mut offset = 0;
    while offset < bytes.len() {
        let (body, next) = packet_at(bytes, offset)?;
        let packet = OwnPacket::decode(body).map_err(|_| TraceError::NotATrace { offset })?;
        if let Some(header) = packet.header
            && file.replace(begin(header)?).is_some()
        {
            return Err(TraceError::TwoHeaders { offset });
        }
        if let Some(stretch) = packet.records {
            if stops_at_records {
                break;
            }
            let file = file.as_mut().ok_or(TraceError::NoHeader)?;
            read_records(file, &mut last, &stretch)?;
        }
        if let Some(recorder) = packet.recorder {
            file.as_mut().ok_or(TraceError::NoHeader)?.recorder = Some(recorder);
        }
        if let Some(end) = packet.end {
            let file = file.as_mut().ok_or(TraceError::NoHeader)?;
            file.ended = Some(Instant::from_ns(end.horizon_ns));
        }
        offset = next;
    }
    file.ok_or(TraceError::NoHeader)
}

/// The body of the packet at `offset`, and the offset of the next one.
fn packet_at(bytes: &[u8], offset: usize) -> Result<(&[u8], usize), TraceError> {
    /// Field 1 of `Trace`, with a length.
    const PACKET_KEY: u8 = 0x0a;
    let mut rest = &bytes[offset..];
    if rest[0] != PACKET_KEY {
        return Err(TraceError::NotATrace { offset });
    }
    rest = &rest[1..];
    let cut_off = TraceError::CutOff { offset };
    let length = match decode_varint(&mut rest) {
        Ok(length) => length,
        Err(_) if rest.len() < 10 => return Err(cut_off),
        Err(_) => return Err(TraceError::NotATrace { offset }),
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let body = rest.get(..length).ok_or(cut_off)?;
    Ok((body, bytes.len() - rest.len() + length))
}

fn begin(header: Header) -> Result<TraceFile, TraceError> {
    if header.version > VERSION {
        return Err(TraceError::Version {
            found: header.version,
            known: VERSION,
        });
    }
    let cpus = usize::try_from(header.cpus)
        .ok()
        .filter(|&cpus| cpus <= CPUS_MAX);
    Ok(TraceFile {
        provenance: Provenance {
            tool: header.tool,
            policy: header.policy,
            seed: header.seed,
            horizon: Instant::from_ns(header.horizon_ns),
            task_set: header.task_set,
        },
        name: header.name,
        cpus: cpus.ok_or(TraceError::TooManyCpus { found: header.cpus })?,
        tasks: header.tasks,
        ended: None,
        recorder: None,
        records: Vec::new(),
    })
}

fn read_records(
    file: &mut TraceFile,
    last: &mut Instant,
    stretch: &[u8],
) -> Result<(), TraceError> {
    let mut records = RecordReader::new(file.tasks.len(), file.cpus, *last, stretch);
    loop {
        let index = file.records.len();
        match records.next() {
            Ok(Some(record)) => {
                *last = record.at;
                file.records.push(record);
            }
            Ok(None) => return Ok(()),
            Err(what) => return Err(TraceError::Record { index, what }),
        }
    }
}
