//! Partition and sort transforms (table specification, "Partition Transforms").
//!
//! A transform this version does not know is kept as text and never bound.

use super::types::Primitive;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transform {
    Identity,
    /// Number of buckets.
    Bucket(u32),
    /// Width.
    Truncate(u32),
    Year,
    Month,
    Day,
    Hour,
    Void,
    Unknown(Box<str>),
}

/// Parameters are 32-bit signed integers to every reader.
const PARAMETER_MAX: u32 = i32::MAX.unsigned_abs();

impl Transform {
    pub fn parse(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "identity" => Transform::Identity,
            "year" => Transform::Year,
            "month" => Transform::Month,
            "day" => Transform::Day,
            "hour" => Transform::Hour,
            "void" => Transform::Void,
            _ => {
                let parameter = |name: &str| {
                    let digits = lower.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
                    let digits = digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)?;
                    digits.parse().ok().filter(|parameter| (1..=PARAMETER_MAX).contains(parameter))
                };
                let bucket = parameter("bucket").map(Transform::Bucket);
                bucket
                    .or_else(|| parameter("truncate").map(Transform::Truncate))
                    .unwrap_or_else(|| Transform::Unknown(text.into()))
            }
        }
    }

    /// Whether values of a primitive type can be transformed.
    pub fn fits(&self, source: &Primitive) -> bool {
        use Primitive::{
            Binary, Date, Decimal, Fixed, Int, Long, String, Time, Timestamp, TimestampNs, Timestamptz, TimestamptzNs,
            Uuid, Variant,
        };
        let is_timestamp = matches!(source, Timestamp | Timestamptz | TimestampNs | TimestamptzNs);
        match self {
            Transform::Identity => !source.is_geospatial() && *source != Variant,
            Transform::Bucket(_) => {
                is_timestamp
                    || matches!(source, Int | Long | Decimal { .. } | Date | Time | String | Uuid | Fixed(_) | Binary)
            }
            Transform::Truncate(_) => matches!(source, Int | Long | Decimal { .. } | String | Binary),
            Transform::Year | Transform::Month | Transform::Day => is_timestamp || *source == Date,
            Transform::Hour => is_timestamp,
            Transform::Void => true,
            Transform::Unknown(_) => false,
        }
    }

    /// Whether a value gives the same result before and after its date column became a timestamp.
    pub fn survives_date_promotion(&self) -> bool {
        matches!(self, Transform::Year | Transform::Month | Transform::Day | Transform::Void)
    }
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transform::Identity => f.write_str("identity"),
            Transform::Bucket(buckets) => write!(f, "bucket[{buckets}]"),
            Transform::Truncate(width) => write!(f, "truncate[{width}]"),
            Transform::Year => f.write_str("year"),
            Transform::Month => f.write_str("month"),
            Transform::Day => f.write_str("day"),
            Transform::Hour => f.write_str("hour"),
            Transform::Void => f.write_str("void"),
            Transform::Unknown(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_transforms_are_written_as_read() {
        for text in ["identity", "bucket[16]", "truncate[20]", "year", "month", "day", "hour", "void"] {
            let transform = Transform::parse(text);
            assert!(!matches!(transform, Transform::Unknown(_)), "{text}");
            assert_eq!(transform.to_string(), text);
            assert_eq!(Transform::parse(&text.to_uppercase()), transform);
        }
    }

    #[test]
    fn other_text_is_kept_and_fits_nothing() {
        for text in
            ["zorder", "Bucket[0]", "bucket[-1]", "bucket[+1]", "bucket[2147483648]", "truncate[]", "bucket", ""]
        {
            let transform = Transform::parse(text);
            assert_eq!(transform, Transform::Unknown(text.into()));
            assert_eq!(transform.to_string(), text);
            assert!(!transform.fits(&Primitive::Int));
        }
    }

    #[test]
    fn sources_follow_the_table_of_the_specification() {
        let fitting = |transform: Transform| {
            let types = [
                "boolean",
                "int",
                "long",
                "float",
                "double",
                "decimal(9, 2)",
                "date",
                "time",
                "timestamp",
                "timestamptz",
                "timestamp_ns",
                "timestamptz_ns",
                "string",
                "uuid",
                "fixed[4]",
                "binary",
                "variant",
                "geometry",
                "geography",
            ];
            types
                .into_iter()
                .filter(|name| transform.fits(&Primitive::parse(name).unwrap()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            fitting(Transform::Identity),
            "boolean int long float double decimal(9, 2) date time timestamp timestamptz timestamp_ns timestamptz_ns \
             string uuid fixed[4] binary"
        );
        assert_eq!(
            fitting(Transform::Bucket(4)),
            "int long decimal(9, 2) date time timestamp timestamptz timestamp_ns timestamptz_ns string uuid fixed[4] binary"
        );
        assert_eq!(fitting(Transform::Truncate(4)), "int long decimal(9, 2) string binary");
        let dates = "date timestamp timestamptz timestamp_ns timestamptz_ns";
        assert_eq!([Transform::Year, Transform::Month, Transform::Day].map(fitting), [dates; 3]);
        assert_eq!(fitting(Transform::Hour), "timestamp timestamptz timestamp_ns timestamptz_ns");
    }
}
