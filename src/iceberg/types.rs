//! Column types (table specification, "Schemas and Data Types" and appendix C).
//!
//! Types are read as leniently as the reference reader does (case, blanks) and written in one form, the one the
//! reference writer uses. Which types a format version allows is in `schema_rules`.

use super::{Error, Result, ensure};
use std::fmt;

const DECIMAL_PRECISION_MAX: u32 = 38;
const CRS_DEFAULT: &str = "OGC:CRS84";

/// A type without nested fields: primitive, or the semi-structured `variant`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Primitive {
    Unknown,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Decimal {
        precision: u32,
        scale: u32,
    },
    Date,
    Time,
    Timestamp,
    Timestamptz,
    TimestampNs,
    TimestamptzNs,
    String,
    Uuid,
    /// Length in bytes.
    Fixed(u32),
    Binary,
    Variant,
    /// Coordinate reference system.
    Geometry(Box<str>),
    /// Coordinate reference system and how edges run between points.
    Geography(Box<str>, EdgeAlgorithm),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeAlgorithm {
    Spherical,
    Vincenty,
    Thomas,
    Andoyer,
    Karney,
}

/// Types by the only name they have.
const PLAIN: [(&str, Primitive); 16] = [
    ("unknown", Primitive::Unknown),
    ("boolean", Primitive::Boolean),
    ("int", Primitive::Int),
    ("long", Primitive::Long),
    ("float", Primitive::Float),
    ("double", Primitive::Double),
    ("date", Primitive::Date),
    ("time", Primitive::Time),
    ("timestamp", Primitive::Timestamp),
    ("timestamptz", Primitive::Timestamptz),
    ("timestamp_ns", Primitive::TimestampNs),
    ("timestamptz_ns", Primitive::TimestamptzNs),
    ("string", Primitive::String),
    ("uuid", Primitive::Uuid),
    ("binary", Primitive::Binary),
    ("variant", Primitive::Variant),
];

const ALGORITHMS: [(&str, EdgeAlgorithm); 5] = [
    ("spherical", EdgeAlgorithm::Spherical),
    ("vincenty", EdgeAlgorithm::Vincenty),
    ("thomas", EdgeAlgorithm::Thomas),
    ("andoyer", EdgeAlgorithm::Andoyer),
    ("karney", EdgeAlgorithm::Karney),
];

impl Primitive {
    /// # Errors
    /// `Error::Invalid` for a name that is no type and for parameters out of range.
    pub fn parse(text: &str) -> Result<Self> {
        let unknown = || Error::Invalid(format!("unknown type: {text}"));
        let lower = text.trim().to_ascii_lowercase();
        if let Some((_, primitive)) = PLAIN.iter().find(|(name, _)| *name == lower) {
            return Ok(primitive.clone());
        }
        let (name, parameters) = split(text.trim()).ok_or_else(unknown)?;
        match (name.to_ascii_lowercase().as_str(), parameters) {
            ("decimal", Some(parameters)) => parse_decimal(parameters).ok_or_else(unknown),
            ("fixed", Some(length)) => match number(length) {
                Some(length) if length > 0 => Ok(Primitive::Fixed(length)),
                _ => Err(unknown()),
            },
            ("geometry", parameters) => Ok(Primitive::Geometry(crs(parameters)?)),
            ("geography", parameters) => {
                let (system, algorithm) = match parameters.and_then(|parameters| parameters.rsplit_once(',')) {
                    Some((system, algorithm)) => (Some(system.trim_end()), algorithm.trim()),
                    None => (parameters, "spherical"),
                };
                let lower = algorithm.to_ascii_lowercase();
                let (_, algorithm) = ALGORITHMS.iter().find(|(name, _)| *name == lower).ok_or_else(unknown)?;
                Ok(Primitive::Geography(crs(system)?, *algorithm))
            }
            _ => Err(unknown()),
        }
    }

    /// The first format version that has this type.
    pub fn format_version_min(&self) -> u8 {
        match self {
            Primitive::Unknown
            | Primitive::TimestampNs
            | Primitive::TimestamptzNs
            | Primitive::Variant
            | Primitive::Geometry(_)
            | Primitive::Geography(..) => 3,
            _ => 1,
        }
    }

    pub fn is_geospatial(&self) -> bool {
        matches!(self, Primitive::Geometry(_) | Primitive::Geography(..))
    }

    /// Whether a column of this type may become `wider` (table specification, "Schema Evolution"). Equal types may.
    pub fn promotes_to(&self, wider: &Primitive, format_version: u8) -> bool {
        use Primitive::{Date, Decimal, Double, Float, Int, Long, Timestamp, TimestampNs, Unknown};
        match (self, wider) {
            _ if self == wider => true,
            (Int, Long) | (Float, Double) => true,
            (Decimal { precision: old, scale }, Decimal { precision, scale: new_scale }) => {
                precision > old && scale == new_scale
            }
            (Date, Timestamp | TimestampNs) | (Unknown, _) => format_version >= 3,
            _ => false,
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Primitive::Decimal { precision, scale } => write!(f, "decimal({precision}, {scale})"),
            Primitive::Fixed(length) => write!(f, "fixed[{length}]"),
            Primitive::Geometry(crs) if &**crs == CRS_DEFAULT => f.write_str("geometry"),
            Primitive::Geometry(crs) => write!(f, "geometry({crs})"),
            Primitive::Geography(crs, EdgeAlgorithm::Spherical) if &**crs == CRS_DEFAULT => f.write_str("geography"),
            Primitive::Geography(crs, algorithm) => {
                let name = ALGORITHMS.iter().find(|(_, known)| known == algorithm).map_or("", |(name, _)| name);
                write!(f, "geography({crs}, {name})")
            }
            plain => f.write_str(PLAIN.iter().find(|(_, known)| known == plain).map_or("", |(name, _)| name)),
        }
    }
}

/// `name(parameters)` or `name[parameters]`, or a bare name.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, rest, close) = match (text.split_once('('), text.split_once('[')) {
        (Some((name, rest)), _) => (name, rest, ')'),
        (None, Some((name, rest))) => (name, rest, ']'),
        (None, None) => return Some((text, None)),
    };
    Some((name.trim_end(), Some(rest.strip_suffix(close)?.trim())))
}

fn parse_decimal(parameters: &str) -> Option<Primitive> {
    let (precision, scale) = parameters.split_once(',')?;
    let (precision, scale) = (number(precision.trim_end())?, number(scale.trim_start())?);
    (1..=DECIMAL_PRECISION_MAX).contains(&precision).then_some(Primitive::Decimal { precision, scale })
}

/// Digits only: `parse` would take a sign.
fn number(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Any text that names a system; definitions in PROJJSON belong in a property (table specification, "CRS").
fn crs(parameters: Option<&str>) -> Result<Box<str>> {
    let crs = parameters.unwrap_or(CRS_DEFAULT);
    ensure(!crs.is_empty() && !crs.contains(['{', '}', '(', ')', ',', '"']), || {
        format!("invalid coordinate reference system: {crs}")
    })?;
    Ok(crs.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Each line read and written back.
    fn check(types: &str, expected: Expect) {
        let line = |text: &str| match Primitive::parse(text) {
            Ok(primitive) => format!("{text} -> {primitive}\n"),
            Err(error) => format!("{text} -> error: {error}\n"),
        };
        expected.assert_eq(&types.lines().map(|text| line(text.trim())).collect::<String>());
    }

    #[test]
    fn every_plain_type_is_written_as_read() {
        for (name, primitive) in PLAIN {
            assert_eq!(Primitive::parse(name).as_ref(), Ok(&primitive));
            assert_eq!(primitive.to_string(), name);
        }
    }

    #[test]
    fn parameters_are_read_with_and_without_blanks() {
        check(
            "decimal(9,2)
             decimal( 9 , 2 )
             DECIMAL(38, 0)
             fixed[16]
             fixed[ 16 ]
             geometry
             geometry(OGC:CRS84)
             geometry( srid:4326 )
             geometry(EPSG:4326)
             geography
             geography(OGC:CRS84, spherical)
             geography(srid:4326)
             geography(srid:4326,KARNEY)
             geography(OGC:CRS84, andoyer)
             Long",
            expect![[r#"
                decimal(9,2) -> decimal(9, 2)
                decimal( 9 , 2 ) -> decimal(9, 2)
                DECIMAL(38, 0) -> decimal(38, 0)
                fixed[16] -> fixed[16]
                fixed[ 16 ] -> fixed[16]
                geometry -> geometry
                geometry(OGC:CRS84) -> geometry
                geometry( srid:4326 ) -> geometry(srid:4326)
                geometry(EPSG:4326) -> geometry(EPSG:4326)
                geography -> geography
                geography(OGC:CRS84, spherical) -> geography
                geography(srid:4326) -> geography(srid:4326, spherical)
                geography(srid:4326,KARNEY) -> geography(srid:4326, karney)
                geography(OGC:CRS84, andoyer) -> geography(OGC:CRS84, andoyer)
                Long -> long
            "#]],
        );
    }

    #[test]
    fn what_is_no_type_is_refused() {
        check(
            "decimal
             decimal(39, 2)
             decimal(0, 0)
             decimal(9)
             decimal(+9, 2)
             decimal(9, 2
             fixed[0]
             fixed[-1]
             fixed[99999999999]
             decimal[9,2)
             geometry()
             geometry({\"type\": 1})
             geography(srid:4326, flat)
             int(4)
             bigint",
            expect![[r#"
                decimal -> error: unknown type: decimal
                decimal(39, 2) -> error: unknown type: decimal(39, 2)
                decimal(0, 0) -> error: unknown type: decimal(0, 0)
                decimal(9) -> error: unknown type: decimal(9)
                decimal(+9, 2) -> error: unknown type: decimal(+9, 2)
                decimal(9, 2 -> error: unknown type: decimal(9, 2
                fixed[0] -> error: unknown type: fixed[0]
                fixed[-1] -> error: unknown type: fixed[-1]
                fixed[99999999999] -> error: unknown type: fixed[99999999999]
                decimal[9,2) -> error: unknown type: decimal[9,2)
                geometry() -> error: invalid coordinate reference system: 
                geometry({"type": 1}) -> error: invalid coordinate reference system: {"type": 1}
                geography(srid:4326, flat) -> error: unknown type: geography(srid:4326, flat)
                int(4) -> error: unknown type: int(4)
                bigint -> error: unknown type: bigint
            "#]],
        );
    }

    #[test]
    fn promotions_follow_the_version() {
        let promotes = |from: &str, to: &str, version| {
            Primitive::parse(from).unwrap().promotes_to(&Primitive::parse(to).unwrap(), version)
        };
        for (from, to) in [("int", "long"), ("float", "double"), ("decimal(5, 2)", "decimal(9,2)"), ("uuid", "uuid")] {
            assert!(promotes(from, to, 1), "{from} to {to}");
        }
        for (from, to) in [("date", "timestamp"), ("date", "timestamp_ns"), ("unknown", "string")] {
            assert!(!promotes(from, to, 2) && promotes(from, to, 3), "{from} to {to}");
        }
        for (from, to) in [
            ("long", "int"),
            ("double", "float"),
            ("decimal(9, 2)", "decimal(5, 2)"),
            ("decimal(9, 2)", "decimal(11, 3)"),
            ("date", "timestamptz"),
            ("date", "timestamptz_ns"),
            ("int", "string"),
            ("string", "unknown"),
            ("fixed[4]", "fixed[8]"),
        ] {
            assert!(!promotes(from, to, 3), "{from} to {to}");
        }
    }
}
