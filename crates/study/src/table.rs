//! Tables as Parquet, and back: the same rows are always the same bytes.
//!
//! Among the facts that a file keeps beside its rows there is a digest of the file itself, computed with zeros in its
//! place. It is looked at before anything else, because the Parquet reader trusts what it reads.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::plan::short_digest;

/// What wrote a file.
pub const PROGRAM: &str = concat!("shiftwork ", env!("CARGO_PKG_VERSION"));

/// A column with its name. All columns of a table are equally long; whether one may have gaps is part of the
/// table's shape, also where there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it is called.
    pub name: &'static str,
    /// What it has, row by row.
    pub values: Values,
}

/// What a column has, row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers, below 2⁶³.
    Whole(Vec<u64>),
    /// The same, perhaps with gaps.
    WholeOrNot(Vec<Option<u64>>),
    /// Numbers.
    Real(Vec<f64>),
    /// Numbers, perhaps with gaps.
    RealOrNot(Vec<Option<f64>>),
    /// Text.
    Text(Vec<String>),
    /// Text, perhaps with gaps.
    TextOrNot(Vec<Option<String>>),
}

impl Values {
    fn schema(&self) -> (Physical, Option<LogicalType>, Repetition) {
        let physical = match self {
            Self::Whole(_) | Self::WholeOrNot(_) => Physical::INT64,
            Self::Real(_) | Self::RealOrNot(_) => Physical::DOUBLE,
            Self::Text(_) | Self::TextOrNot(_) => Physical::BYTE_ARRAY,
        };
        let logical = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let repetition = match self {
            Self::Whole(_) | Self::Real(_) | Self::Text(_) => Repetition::REQUIRED,
            _ => Repetition::OPTIONAL,
        };
        (physical, logical, repetition)
    }
}

/// The bytes of a table. `facts` are kept beside it, by name.
pub fn encode(columns: &[Column], facts: &[(&str, String)]) -> Vec<u8> {
    let own = (CHECKSUM, "0".repeat(DIGITS));
    let facts = facts
        .iter()
        .chain([&own])
        .map(|(name, value)| KeyValue::new((*name).to_owned(), value.clone()))
        .collect();
    let properties = WriterProperties::builder()
        .set_created_by(PROGRAM.to_owned())
        .set_key_value_metadata(Some(facts))
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build();
    let written = write(columns, properties);
    let mut bytes =
        written.expect("memory takes everything, and the columns fit the schema made of them");
    let place = checksum_place(&bytes).expect("it was just written");
    let digest = short_digest(&bytes);
    bytes[place].copy_from_slice(digest.as_bytes());
    bytes
}

const CHECKSUM: &str = "shiftwork.checksum";

/// How many digits a checksum has.
const DIGITS: usize = 16;

/// Where the digits of the checksum are; `None` if there is none.
fn checksum_place(bytes: &[u8]) -> Option<Range<usize>> {
    let mut windows = bytes.windows(CHECKSUM.len());
    let key = windows.rposition(|window| window == CHECKSUM.as_bytes())?;
    // In between there are the head of the next field, and its length: a byte each.
    let start = key + CHECKSUM.len() + 2;
    let digits = start..start + DIGITS;
    let found = bytes.get(digits.clone())?;
    let is_one = found
        .iter()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    is_one.then_some(digits)
}

/// Whether these bytes are as [`encode`] made them.
fn check(bytes: &[u8]) -> Result<(), String> {
    if !(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")) {
        return Err("no Parquet".to_owned());
    }
    let Some(place) = checksum_place(bytes) else {
        return Err("without a checksum of shiftwork's".to_owned());
    };
    let mut bytes = bytes.to_vec();
    let said = bytes[place.clone()].to_vec();
    bytes[place].fill(b'0');
    match short_digest(&bytes).as_bytes() == said {
        true => Ok(()),
        false => Err("its checksum does not fit: it is damaged, or was changed".to_owned()),
    }
}

fn write(columns: &[Column], properties: WriterProperties) -> Result<Vec<u8>, ParquetError> {
    let schema = schema(columns)?;
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let mut writer = group.next_column()?.expect("one for each column");
        put(&mut writer, &column.values)?;
        writer.close()?;
    }
    group.close()?;
    file.into_inner()
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical, repetition) = column.values.schema();
        Type::primitive_type_builder(column.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("schema").with_fields(fields);
    schema.build().map(Arc::new)
}

fn put(writer: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    let whole = |&value: &u64| i64::try_from(value).unwrap_or(i64::MAX);
    let text = |text: &String| ByteArray::from(text.as_str());
    match values {
        Values::Whole(all) => all_of::<Int64Type, _>(writer, all, whole),
        Values::WholeOrNot(all) => some_of::<Int64Type, _>(writer, all, whole),
        Values::Real(all) => all_of::<DoubleType, _>(writer, all, |&value| value),
        Values::RealOrNot(all) => some_of::<DoubleType, _>(writer, all, |&value| value),
        Values::Text(all) => all_of::<ByteArrayType, _>(writer, all, text),
        Values::TextOrNot(all) => some_of::<ByteArrayType, _>(writer, all, text),
    }
}

fn all_of<T: DataType, V>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[V],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = values.iter().map(convert).collect();
    writer.typed::<T>().write_batch(&values, None, None)?;
    Ok(())
}

fn some_of<T: DataType, V>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Option<V>],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|one| i16::from(one.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().map(convert).collect();
    let typed = writer.typed::<T>();
    typed.write_batch(&values, Some(&levels), None)?;
    Ok(())
}

/// A table that was read.
pub struct Table {
    /// Its columns, in the order in which they were asked for.
    pub columns: Vec<Values>,
    /// What is kept beside it, by name.
    pub facts: Vec<(String, String)>,
}

impl Table {
    /// What is kept under this name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let mut facts = self.facts.iter();
        let found = facts.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads a table of exactly the shape of `like`, whose rows do not count. The error says what is wrong.
pub fn decode(bytes: &[u8], like: &[Column]) -> Result<Table, String> {
    check(bytes)?;
    let file = SerializedFileReader::new(Bytes::copy_from_slice(bytes))
        .map_err(|error| format!("no Parquet: {error}"))?;
    let schema = schema(like).expect("the shapes of our tables are sound");
    let found = file.metadata().file_metadata();
    if found.schema().get_fields() != schema.get_fields() {
        return Err("a table of other columns".to_owned());
    }
    let facts = found.key_value_metadata().into_iter().flatten();
    let facts = facts
        .map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default()))
        .collect();
    let mut columns: Vec<Values> = like.iter().map(|column| emptied(&column.values)).collect();
    for group in 0..file.num_row_groups() {
        let group = file
            .get_row_group(group)
            .map_err(|error| error.to_string())?;
        for (place, column) in columns.iter_mut().enumerate() {
            get(&*group, place, column).map_err(|error| error.to_string())?;
        }
    }
    Ok(Table { columns, facts })
}

fn emptied(values: &Values) -> Values {
    match values {
        Values::Whole(_) => Values::Whole(Vec::new()),
        Values::WholeOrNot(_) => Values::WholeOrNot(Vec::new()),
        Values::Real(_) => Values::Real(Vec::new()),
        Values::RealOrNot(_) => Values::RealOrNot(Vec::new()),
        Values::Text(_) => Values::Text(Vec::new()),
        Values::TextOrNot(_) => Values::TextOrNot(Vec::new()),
    }
}

/// Reads the column at this place of a group of rows, behind what there is.
fn get(group: &dyn RowGroupReader, place: usize, values: &mut Values) -> Result<(), ParquetError> {
    let wrong = |what: &str| ParquetError::General(what.to_owned());
    let whole = |value: i64| u64::try_from(value).map_err(|_| wrong("a negative count"));
    let text = |value: ByteArray| value.as_utf8().map(str::to_owned);
    match values {
        Values::Whole(all) => all.extend(present(read::<Int64Type, _>(group, place, whole)?)?),
        Values::WholeOrNot(all) => all.extend(read::<Int64Type, _>(group, place, whole)?),
        Values::Real(all) => all.extend(present(read::<DoubleType, _>(group, place, Ok)?)?),
        Values::RealOrNot(all) => all.extend(read::<DoubleType, _>(group, place, Ok)?),
        Values::Text(all) => all.extend(present(read::<ByteArrayType, _>(group, place, text)?)?),
        Values::TextOrNot(all) => all.extend(read::<ByteArrayType, _>(group, place, text)?),
    }
    Ok(())
}

fn present<V>(values: Vec<Option<V>>) -> Result<Vec<V>, ParquetError> {
    let all: Option<Vec<V>> = values.into_iter().collect();
    all.ok_or_else(|| ParquetError::General("a gap where none may be".to_owned()))
}

fn read<T: DataType, V>(
    group: &dyn RowGroupReader,
    place: usize,
    convert: impl Fn(T::T) -> Result<V, ParquetError>,
) -> Result<Vec<Option<V>>, ParquetError> {
    let short = || ParquetError::General("fewer rows than it says".to_owned());
    let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| short())?;
    let has_gaps = group
        .metadata()
        .column(place)
        .column_descr()
        .max_def_level()
        > 0;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(place)?);
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut records = 0;
    while records < rows {
        let (read, _, _) =
            reader.read_records(rows - records, Some(&mut levels), None, &mut values)?;
        if read == 0 {
            return Err(short());
        }
        records += read;
    }
    if !has_gaps {
        return values
            .into_iter()
            .map(|value| convert(value).map(Some))
            .collect();
    }
    let mut values = values.into_iter();
    let mut next = |level: i16| match level {
        0 => Ok(None),
        _ => values.next().ok_or_else(short).and_then(&convert).map(Some),
    };
    levels.into_iter().map(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<Column> {
        let column = |name, values| Column { name, values };
        let text = |text: &str| text.to_owned();
        vec![
            column("a", Values::Whole(vec![0, 7, i64::MAX as u64])),
            column("b", Values::WholeOrNot(vec![None, Some(3), None])),
            column("c", Values::Real(vec![0.5, -1.0, 1e300])),
            column("d", Values::RealOrNot(vec![Some(0.25), None, Some(0.0)])),
            column("e", Values::Text(vec![text(""), text("ä"), text("x\n")])),
            column("f", Values::TextOrNot(vec![None, Some(text("y")), None])),
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        let table = table();
        let bytes = encode(&table, &[("author", "me".to_owned())]);
        assert_eq!(bytes, encode(&table, &[("author", "me".to_owned())]));
        let read = decode(&bytes, &table).unwrap();
        assert_eq!(read.fact("author"), Some("me"));
        assert_eq!(read.fact("what"), None);
        for (column, values) in table.iter().zip(&read.columns) {
            assert_eq!(&column.values, values, "{}", column.name);
        }
    }

    #[test]
    fn tables_without_rows_are_tables() {
        let table: Vec<Column> = table()
            .into_iter()
            .map(|column| Column {
                values: emptied(&column.values),
                ..column
            })
            .collect();
        let read = decode(&encode(&table, &[]), &table).unwrap();
        assert_eq!(read.columns[4], Values::Text(Vec::new()));
    }

    #[test]
    fn other_tables_are_refused() {
        let table = table();
        let said = |bytes: &[u8], like: &[Column]| decode(bytes, like).err().unwrap();
        assert_eq!(
            said(&encode(&table[1..], &[]), &table),
            "a table of other columns"
        );
        assert_eq!(said(b"", &table), "no Parquet");
        assert_eq!(
            said(b"PAR1 but nothing else PAR1", &table),
            "without a checksum of shiftwork's"
        );
    }

    #[test]
    fn every_damage_is_found() {
        let table = table();
        let bytes = encode(&table, &[]);
        for at in 0..bytes.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= mask;
                assert!(decode(&damaged, &table).is_err(), "byte {at}");
            }
            assert!(decode(&bytes[..at], &table).is_err(), "cut at {at}");
        }
    }
}
