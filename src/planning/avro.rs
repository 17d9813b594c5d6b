//! Avro object container files (Avro specification, "Object Container Files"): one text of each record, all else stepped
//! over.
//!
//! Files come from clients, so what they cost is bounded: one block is in memory at a time, no larger than
//! [`BLOCK_BYTES_MAX`] inflated; values are stepped over, not built; nesting and steps have an end. Damage is an error,
//! never a panic.

use apache_avro::{
    Codec, DeflateSettings, Schema, ZstandardSettings,
    schema::{InnerDecimalSchema, NamesRef, RecordSchema, ResolvedSchema, UuidSchema},
    util::max_allocation_bytes,
};
use std::borrow::Cow;

const MAGIC: &[u8] = b"Obj\x01";
const SYNC_BYTES: usize = 16;
/// A block, inflated. Writers begin a new one after some tens of KiB; PyIceberg writes a manifest as one.
pub const BLOCK_BYTES_MAX: usize = 64 << 20;
/// All blocks of a file, inflated.
pub const INFLATED_BYTES_MAX: usize = 1 << 30;
/// Records of a file: more than any writer puts into one.
pub const RECORDS_MAX: u64 = 10_000_000;
/// Types within types. Manifests need five.
const DEPTH_MAX: usize = 64;
/// Values stepped over in a file. Most take a byte at least; those that take none would never end.
const STEPS_MAX: u64 = 4 << 30;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not an Avro file")]
    NotAvro,
    #[error("the file's schema cannot be read")]
    Schema(#[source] Box<apache_avro::Error>),
    #[error("a codec this program does not read")]
    Codec,
    #[error("a block cannot be inflated to at most {BLOCK_BYTES_MAX} bytes")]
    Inflate(#[source] Box<apache_avro::Error>),
    #[error("the file breaks off or is damaged")]
    Damaged,
    #[error("a type that is named and nowhere defined")]
    Unknown,
    #[error("types nested more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error("more than {RECORDS_MAX} records, {INFLATED_BYTES_MAX} bytes or {STEPS_MAX} values")]
    TooMuch,
    #[error("an entry has no {0}")]
    Missing(&'static str),
}

/// The text at `path` (names of fields, outermost first) in every record, in order.
///
/// # Errors
/// [`Error`]; [`Error::Missing`] names the field that a record lacks.
pub fn texts(bytes: &[u8], path: &[&'static str]) -> Result<Vec<String>, Error> {
    // The crate's own bound of what it inflates, set once for the process.
    max_allocation_bytes(BLOCK_BYTES_MAX);
    let mut file = Cursor { rest: bytes };
    let header = Header::read(&mut file)?;
    let schema = ResolvedSchema::new(&header.schema).map_err(|error| Error::Schema(Box::new(error)))?;
    let Schema::Record(record) = &header.schema else { return Err(Error::NotAvro) };
    let mut walk = Walk { names: schema.get_names(), steps: 0 };
    let (mut found, mut inflated, mut records) = (Vec::new(), 0, 0);
    while !file.rest.is_empty() {
        let count = file.count()?;
        let block = file.sized()?;
        records += count;
        let block = inflate(header.codec, block)?;
        inflated += block.len();
        if records > RECORDS_MAX || inflated > INFLATED_BYTES_MAX {
            return Err(Error::TooMuch);
        }
        let mut block = Cursor { rest: &block };
        for _ in 0..count {
            let text = walk.record(&mut block, record, Some(path), 0)?;
            found.push(text.ok_or_else(|| Error::Missing(lacking(record, path)))?.to_owned());
        }
        if file.take(SYNC_BYTES)? != header.sync {
            return Err(Error::Damaged);
        }
    }
    Ok(found)
}

/// The field to name where `path` leads nowhere.
fn lacking(record: &RecordSchema, path: &[&'static str]) -> &'static str {
    let first = path.first().copied().unwrap_or_default();
    let has_first = record.fields.iter().any(|field| field.name == first);
    if has_first { path.last().copied().unwrap_or_default() } else { first }
}

struct Header<'a> {
    schema: Schema,
    codec: Codec,
    sync: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(file: &mut Cursor<'a>) -> Result<Header<'a>, Error> {
        if file.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(Error::NotAvro);
        }
        let (mut schema, mut codec) = (None, &b"null"[..]);
        // A map of bytes; each entry takes some, so it ends with the file.
        loop {
            let count = file.long()?;
            if count == 0 {
                break;
            }
            if count < 0 {
                file.long()?;
            }
            for _ in 0..count.unsigned_abs() {
                match (file.sized()?, file.sized()?) {
                    (b"avro.schema", value) => schema = Some(value),
                    (b"avro.codec", value) => codec = value,
                    _ => {}
                }
            }
        }
        let sync = file.take(SYNC_BYTES)?;
        let schema = schema.and_then(|schema| std::str::from_utf8(schema).ok()).ok_or(Error::NotAvro)?;
        let schema = Schema::parse_str(schema).map_err(|error| Error::Schema(Box::new(error)))?;
        Ok(Header { schema, codec: codec_named(codec)?, sync })
    }
}

fn codec_named(name: &[u8]) -> Result<Codec, Error> {
    match name {
        b"null" => Ok(Codec::Null),
        b"deflate" => Ok(Codec::Deflate(DeflateSettings::default())),
        b"snappy" => Ok(Codec::Snappy),
        b"zstandard" => Ok(Codec::Zstandard(ZstandardSettings::default())),
        _ => Err(Error::Codec),
    }
}

fn inflate(codec: Codec, block: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if codec == Codec::Null {
        return Ok(Cow::Borrowed(block));
    }
    let mut bytes = block.to_vec();
    codec.decompress(&mut bytes).map_err(|error| Error::Inflate(Box::new(error)))?;
    Ok(Cow::Owned(bytes))
}

/// Bytes not read yet.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Error::Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A zigzag variable-length integer.
    fn long(&mut self) -> Result<i64, Error> {
        let mut bits = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else { return Err(Error::Damaged) };
            bits |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
            }
        }
        Err(Error::Damaged)
    }

    fn count(&mut self) -> Result<u64, Error> {
        u64::try_from(self.long()?).map_err(|_| Error::Damaged)
    }

    /// Bytes that say their length first.
    fn sized(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::try_from(self.long()?).map_err(|_| Error::Damaged)?;
        self.take(length)
    }
}

/// Steps over values as a schema describes them.
struct Walk<'s> {
    names: &'s NamesRef<'s>,
    steps: u64,
}

impl<'s> Walk<'s> {
    /// Steps over a record; answers the text at `path` in it.
    fn record<'a>(
        &mut self,
        bytes: &mut Cursor<'a>,
        record: &'s RecordSchema,
        path: Option<&[&'static str]>,
        depth: usize,
    ) -> Result<Option<&'a str>, Error> {
        let mut found = None;
        for field in &record.fields {
            let within = path.and_then(|path| path.split_first()).filter(|(name, _)| **name == field.name);
            let text = self.value(bytes, &field.schema, within.map(|(_, rest)| rest), depth + 1)?;
            found = found.or(text);
        }
        Ok(found)
    }

    fn value<'a>(
        &mut self,
        bytes: &mut Cursor<'a>,
        schema: &'s Schema,
        path: Option<&[&'static str]>,
        depth: usize,
    ) -> Result<Option<&'a str>, Error> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(Error::TooMuch);
        }
        if depth > DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        match schema {
            Schema::Record(record) => return self.record(bytes, record, path, depth),
            Schema::Union(union) => {
                let variant = usize::try_from(bytes.long()?).ok().and_then(|index| union.variants().get(index));
                return self.value(bytes, variant.ok_or(Error::Damaged)?, path, depth + 1);
            }
            Schema::Ref { name } => {
                let named = self.names.get(name).copied().ok_or(Error::Unknown)?;
                return self.value(bytes, named, path, depth + 1);
            }
            Schema::String => {
                let text = std::str::from_utf8(bytes.sized()?).map_err(|_| Error::Damaged)?;
                return Ok(path.is_some_and(<[_]>::is_empty).then_some(text));
            }
            Schema::Array(array) => self.items(bytes, &array.items, None, depth)?,
            Schema::Map(map) => self.items(bytes, &map.types, Some(()), depth)?,
            leaf => Self::leaf(bytes, leaf)?,
        }
        Ok(None)
    }

    /// The blocks of an array, or of a map, whose items have keys.
    fn items(&mut self, bytes: &mut Cursor<'_>, item: &'s Schema, keys: Option<()>, depth: usize) -> Result<(), Error> {
        loop {
            let count = bytes.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                // Such a block says its length.
                bytes.sized()?;
                continue;
            }
            for _ in 0..count {
                let before = bytes.rest.len();
                if keys.is_some() {
                    bytes.sized()?;
                }
                self.value(bytes, item, None, depth + 1)?;
                // What takes no bytes once never takes any: the rest of the block is stepped over at once.
                if bytes.rest.len() == before {
                    break;
                }
            }
        }
    }

    fn leaf(bytes: &mut Cursor<'_>, schema: &Schema) -> Result<(), Error> {
        match schema {
            Schema::Null => Ok(()),
            Schema::Boolean => bytes.take(1).map(drop),
            Schema::Float => bytes.take(4).map(drop),
            Schema::Double => bytes.take(8).map(drop),
            Schema::Int
            | Schema::Long
            | Schema::Enum(_)
            | Schema::Date
            | Schema::TimeMillis
            | Schema::TimeMicros
            | Schema::TimestampMillis
            | Schema::TimestampMicros
            | Schema::TimestampNanos
            | Schema::LocalTimestampMillis
            | Schema::LocalTimestampMicros
            | Schema::LocalTimestampNanos => bytes.long().map(drop),
            Schema::Bytes
            | Schema::String
            | Schema::BigDecimal
            | Schema::Uuid(UuidSchema::String | UuidSchema::Bytes) => bytes.sized().map(drop),
            Schema::Fixed(fixed) | Schema::Duration(fixed) | Schema::Uuid(UuidSchema::Fixed(fixed)) => {
                bytes.take(fixed.size).map(drop)
            }
            Schema::Decimal(decimal) => match &decimal.inner {
                InnerDecimalSchema::Bytes => bytes.sized().map(drop),
                InnerDecimalSchema::Fixed(fixed) => bytes.take(fixed.size).map(drop),
            },
            Schema::Record(_) | Schema::Union(_) | Schema::Ref { .. } | Schema::Array(_) | Schema::Map(_) => {
                Err(Error::Damaged)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apache_avro::{Writer, types::Value};

    fn long(n: i64) -> Vec<u8> {
        let mut rest = ((n << 1) ^ (n >> 63)).cast_unsigned();
        let mut bytes = Vec::new();
        while rest > 0x7f {
            bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    fn sized(bytes: &[u8]) -> Vec<u8> {
        [long(bytes.len() as i64), bytes.to_vec()].concat()
    }

    /// A file written by hand, for what the crate's writer would not write: blocks of so many records and such bytes.
    fn file(schema: &str, codec: &str, blocks: &[(i64, &[u8])]) -> Vec<u8> {
        let sync = [7_u8; SYNC_BYTES];
        let entry = |key: &str, value: &str| [sized(key.as_bytes()), sized(value.as_bytes())].concat();
        let head =
            [MAGIC.to_vec(), long(2), entry("avro.schema", schema), entry("avro.codec", codec), vec![0], sync.into()];
        let blocks = blocks.iter().flat_map(|(count, bytes)| [long(*count), sized(bytes), sync.into()].concat());
        [head.concat(), blocks.collect()].concat()
    }

    fn record(fields: &str) -> String {
        format!(r#"{{"type":"record","name":"r","fields":[{fields}]}}"#)
    }

    const TEXT: &str = r#"{"name":"t","type":"string"}"#;

    #[test]
    fn everything_beside_the_text_is_stepped_over() {
        let schema = Schema::parse_str(&record(&format!(
            r#"{{"name":"n","type":"null"}},{{"name":"b","type":"boolean"}},{{"name":"i","type":"int"}},
               {{"name":"l","type":"long"}},{{"name":"f","type":"float"}},{{"name":"d","type":"double"}},
               {{"name":"y","type":"bytes"}},{{"name":"x","type":{{"type":"fixed","name":"x","size":3}}}},
               {{"name":"x2","type":"x"}},{{"name":"e","type":{{"type":"enum","name":"e","symbols":["A","B"]}}}},
               {{"name":"a","type":{{"type":"array","items":["null","long"]}}}},
               {{"name":"m","type":{{"type":"map","values":{{"type":"array","items":"string"}}}}}},
               {{"name":"when","type":{{"type":"long","logicalType":"timestamp-micros"}}}},
               {{"name":"dec","type":{{"type":"bytes","logicalType":"decimal","precision":4}}}},
               {{"name":"in","type":{{"type":"record","name":"in","fields":[{TEXT},{{"name":"o","type":"int"}}]}}}}"#
        )))
        .unwrap();
        let value = |text: &str| {
            let strings = Value::Array(vec![Value::String("t".into()); 300]);
            let inner = vec![("t".into(), Value::String(text.into())), ("o".into(), Value::Int(-1))];
            Value::Record(vec![
                ("n".into(), Value::Null),
                ("b".into(), Value::Boolean(true)),
                ("i".into(), Value::Int(i32::MIN)),
                ("l".into(), Value::Long(i64::MAX)),
                ("f".into(), Value::Float(1.5)),
                ("d".into(), Value::Double(1.5)),
                ("y".into(), Value::Bytes(vec![1; 200])),
                ("x".into(), Value::Fixed(3, vec![1, 2, 3])),
                ("x2".into(), Value::Fixed(3, vec![1, 2, 3])),
                ("e".into(), Value::Enum(1, "B".into())),
                ("a".into(), Value::Array(vec![Value::Union(0, Box::new(Value::Null)); 70])),
                ("m".into(), Value::Map([("k".to_owned(), strings)].into())),
                ("when".into(), Value::TimestampMicros(1)),
                ("dec".into(), Value::Decimal(vec![1, 2].into())),
                ("in".into(), Value::Record(inner)),
            ])
        };
        for codec in ["null", "deflate", "snappy", "zstandard"] {
            let codec = codec_named(codec.as_bytes()).unwrap();
            let mut writer = Writer::with_codec(&schema, Vec::new(), codec).unwrap();
            for text in ["one", "two"] {
                writer.append_value(value(text)).unwrap();
                writer.flush().unwrap();
            }
            assert_eq!(texts(&writer.into_inner().unwrap(), &["in", "t"]).unwrap(), ["one", "two"], "{codec:?}");
        }
    }

    #[test]
    fn blocks_that_inflate_beyond_the_bound_are_refused() {
        let schema = record(&format!(r#"{{"name":"y","type":"bytes"}},{TEXT}"#));
        let deflated = |bytes: usize| {
            let record = [sized(&vec![0; bytes]), sized(b"text")].concat();
            let mut block = record;
            Codec::Deflate(DeflateSettings::default()).compress(&mut block).unwrap();
            file(&schema, "deflate", &[(1, &block)])
        };
        let fits = deflated(BLOCK_BYTES_MAX - 64);
        assert_eq!(texts(&fits, &["t"]).unwrap(), ["text"]);
        let bomb = deflated(BLOCK_BYTES_MAX);
        assert!(bomb.len() < BLOCK_BYTES_MAX / 500, "{} bytes", bomb.len());
        assert!(matches!(texts(&bomb, &["t"]), Err(Error::Inflate(_))));
    }

    #[test]
    fn values_without_bytes_cost_nothing_however_many_there_are() {
        let schema = record(&format!(r#"{{"name":"a","type":{{"type":"array","items":"null"}}}},{TEXT}"#));
        let block = [long(i64::MAX), long(0), sized(b"text")].concat();
        assert_eq!(texts(&file(&schema, "null", &[(1, &block)]), &["t"]).unwrap(), ["text"]);
        // Records without fields: each of so many has no text.
        let empty = file(&record(""), "null", &[(i64::MAX, b"")]);
        assert!(matches!(texts(&empty, &["t"]), Err(Error::TooMuch)));
        let empty = file(&record(""), "null", &[(1, b"")]);
        assert!(matches!(texts(&empty, &["t"]), Err(Error::Missing("t"))));
    }

    #[test]
    fn types_nest_only_so_deep() {
        for field in [r#""r""#, r#"{"type":"record","name":"i","fields":[{"name":"b","type":"r"}]}"#] {
            let itself = file(&record(&format!(r#"{{"name":"a","type":{field}}}"#)), "null", &[(1, &[0; 4])]);
            assert!(matches!(texts(&itself, &["t"]), Err(Error::TooDeep)), "{field}");
        }
        for field in [r#"["null","r"]"#, r#"{"type":"array","items":"r"}"#, r#"{"type":"map","values":"r"}"#] {
            let schema = record(&format!(r#"{{"name":"a","type":{field}}},{TEXT}"#));
            let ended = file(&schema, "null", &[(1, &[0, 2, b'x'])]);
            assert_eq!(texts(&ended, &["t"]).unwrap(), ["x"], "{field}");
            let endless = file(&schema, "null", &[(1, &[2; 1_000])]);
            assert!(matches!(texts(&endless, &["t"]), Err(Error::TooDeep | Error::Damaged)), "{field}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        let whole = file(&record(TEXT), "null", &[(1, &sized(b"text"))]);
        assert_eq!(texts(&whole, &["t"]).unwrap(), ["text"]);
        for length in 0..whole.len() {
            let cut = texts(&whole[..length], &["t"]);
            assert!(cut.is_err() || cut.unwrap().is_empty(), "{length}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x81;
            // Any answer will do: it must end, and not in a panic.
            texts(&damaged, &["t"]).ok();
        }
        let unknown = file(&record(TEXT), "lzma", &[]);
        assert!(matches!(texts(&unknown, &["t"]), Err(Error::Codec)));
    }
}
