//! Whether a default value suits its column (table specification, "Default values" and "JSON single-value
//! serialization").

use super::{Result, json::Reader, schema::Type, types::Primitive};

/// Whether `text`, valid JSON that is not null, is a value of a type.
pub fn fits(r#type: &Type, text: &str) -> bool {
    Reader::only(text, |reader| value_fits(r#type, reader)).unwrap_or(false)
}

/// Reads one value. An error means that it is of another JSON kind than the type calls for.
fn value_fits(r#type: &Type, reader: &mut Reader<'_>) -> Result<bool> {
    match r#type {
        Type::Primitive(primitive) => primitive_fits(primitive, reader),
        // Defaults of a struct's fields stand with the fields.
        Type::Struct(_) => {
            let mut is_empty = true;
            reader.members(|reader, _| {
                is_empty = false;
                reader.skip().map(drop)
            })?;
            Ok(is_empty)
        }
        Type::List(list) => elements_fit(&list.element, list.element_required, reader).map(|count| count.is_some()),
        Type::Map(map) => {
            let (mut keys, mut values) = (None, None);
            reader.members(|reader, key| {
                match key {
                    "keys" => keys = elements_fit(&map.key, true, reader)?,
                    "values" => values = elements_fit(&map.value, map.value_required, reader)?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })?;
            Ok(keys.is_some() && keys == values)
        }
    }
}

/// How many elements there are, if all fit.
fn elements_fit(r#type: &Type, required: bool, reader: &mut Reader<'_>) -> Result<Option<usize>> {
    let (mut count, mut fit) = (0, true);
    reader.elements(|reader| {
        count += 1;
        let element = reader.optional(|reader| value_fits(r#type, reader))?;
        fit &= element.unwrap_or(!required);
        Ok(())
    })?;
    Ok(fit.then_some(count))
}

fn primitive_fits(primitive: &Primitive, reader: &mut Reader<'_>) -> Result<bool> {
    const KEY: &str = "default";
    Ok(match primitive {
        Primitive::Boolean => reader.boolean(KEY).is_ok(),
        Primitive::Int => reader.int32(KEY).is_ok(),
        Primitive::Long => reader.int64(KEY).is_ok(),
        Primitive::Float | Primitive::Double => {
            reader.skip()?.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        }
        Primitive::String => reader.string(KEY).is_ok(),
        Primitive::Decimal { precision, scale } => is_decimal(&reader.string(KEY)?, *precision, *scale),
        Primitive::Date => is_date(&reader.string(KEY)?),
        Primitive::Time => is_time(&reader.string(KEY)?, MICROSECOND_DIGITS),
        Primitive::Timestamp => is_timestamp(&reader.string(KEY)?, MICROSECOND_DIGITS),
        Primitive::TimestampNs => is_timestamp(&reader.string(KEY)?, NANOSECOND_DIGITS),
        Primitive::Timestamptz => is_utc(&reader.string(KEY)?, MICROSECOND_DIGITS),
        Primitive::TimestamptzNs => is_utc(&reader.string(KEY)?, NANOSECOND_DIGITS),
        Primitive::Uuid => is_uuid(&reader.string(KEY)?),
        Primitive::Fixed(length) => {
            let text = reader.string(KEY)?;
            is_hex(&text) && u32::try_from(text.len() / 2) == Ok(*length)
        }
        Primitive::Binary => is_hex(&reader.string(KEY)?),
        // These default to null only.
        Primitive::Unknown | Primitive::Variant | Primitive::Geometry(_) | Primitive::Geography(..) => {
            reader.skip()?;
            false
        }
    })
}

const MICROSECOND_DIGITS: usize = 6;
const NANOSECOND_DIGITS: usize = 9;

fn is_hex(text: &str) -> bool {
    text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(text: &str) -> bool {
    text.len() == uuid::fmt::Hyphenated::LENGTH && uuid::Uuid::parse_str(text).is_ok()
}

/// Digits with exactly `scale` of them after the point; with an exponent for a scale the point cannot show.
fn is_decimal(text: &str, precision: u32, scale: u32) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = whole.trim_start_matches('0').len() + fraction.len();
    let is_number = !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    is_number
        && u32::try_from(fraction.len()) == Ok(scale)
        && u32::try_from(digits).is_ok_and(|digits| digits <= precision)
}

fn is_utc(text: &str, fraction_digits_max: usize) -> bool {
    text.strip_suffix("+00:00").is_some_and(|text| is_timestamp(text, fraction_digits_max))
}

fn is_timestamp(text: &str, fraction_digits_max: usize) -> bool {
    text.split_once('T').is_some_and(|(date, time)| is_date(date) && is_time(time, fraction_digits_max))
}

/// `yyyy-mm-dd`, with more digits and a sign for far years.
fn is_date(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next(), parts.next(), parts.next());
    let (Some(year), Some(month), Some(day), None) = (year, month, day, parts.next()) else {
        return false;
    };
    let year = (4..=9).contains(&year.len()).then(|| digits(year)).flatten();
    let (Some(year), Some(month), Some(day)) = (year, two_digits(month), two_digits(day)) else {
        return false;
    };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// `hh:mm[:ss[.fraction]]`.
fn is_time(text: &str, fraction_digits_max: usize) -> bool {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let (hour, minute, second) = (parts.next(), parts.next(), parts.next());
    let below = |part: Option<&str>, bound| part.and_then(two_digits).is_some_and(|value| value < bound);
    let has_fraction = |fraction: &str| {
        (1..=fraction_digits_max).contains(&fraction.len()) && digits(fraction).is_some() && second.is_some()
    };
    below(hour, 24)
        && below(minute, 60)
        && second.is_none_or(|second| below(Some(second), 60))
        && parts.next().is_none()
        && fraction.is_none_or(has_fraction)
}

fn two_digits(text: &str) -> Option<u32> {
    (text.len() == 2).then(|| digits(text)).flatten()
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let schema = format!(r#"{{"fields":[{{"id":1,"name":"c","required":false,"type":{name}}}]}}"#);
        let schema = Reader::only(&schema, super::super::schema::Schema::read).unwrap();
        let r#type = &schema.fields()[0].r#type;
        for text in good {
            assert!(fits(r#type, text), "{name} refused {text}");
        }
        for text in bad {
            assert!(!fits(r#type, text), "{name} accepted {text}");
        }
    }

    #[test]
    fn values_take_the_form_of_their_type() {
        check(r#""boolean""#, &["true", "false"], &["1", "\"true\"", "[]"]);
        check(r#""int""#, &["34", "-2147483648"], &["2147483648", "1.0", "\"1\""]);
        check(r#""long""#, &["9223372036854775807"], &["9223372036854775808"]);
        check(r#""double""#, &["1.0", "-1", "1e9"], &["\"1.0\"", "true"]);
        check(r#""string""#, &["\"\"", "\"iceberg\""], &["1", "{}"]);
        check(
            r#""uuid""#,
            &["\"f79c3e09-677c-4bbd-a479-3f349cb785e7\""],
            &["\"f79c3e09677c4bbda4793f349cb785e7\"", "\"x\""],
        );
        check(r#""fixed[4]""#, &["\"000102ff\""], &["\"000102\"", "\"000102fg\"", "\"000102ff00\""]);
        check(r#""binary""#, &["\"\"", "\"00ff\""], &["\"0\"", "\"zz\""]);
        check(
            r#""decimal(4, 2)""#,
            &["\"14.20\"", "\"-0.01\"", "\"00.10\""],
            &["\"14.2\"", "\"142.00\"", "\"14\"", "14.20", "\".20\"", "\"1-.20\"", "\"\""],
        );
        check(r#""decimal(4,0)""#, &["\"1420\""], &["\"14200\"", "\"1.0\""]);
    }

    #[test]
    fn times_are_iso_8601() {
        check(
            r#""date""#,
            &["\"2017-11-16\"", "\"2024-02-29\"", "\"-0001-01-01\""],
            &[
                "\"2023-02-29\"",
                "\"2017-13-01\"",
                "\"2017-1-1\"",
                "\"2017-11-16T00:00\"",
                "17486",
                "\"17-11-16\"",
                "\"1900-02-29\"",
            ],
        );
        check(
            r#""time""#,
            &["\"22:31:08.123456\"", "\"22:31\""],
            &["\"24:00:00\"", "\"22:31:08.1234567\"", "\"22:31.5\"", "\"2:31:08\""],
        );
        check(
            r#""timestamp""#,
            &["\"2017-11-16T22:31:08.123456\""],
            &["\"2017-11-16T22:31:08+00:00\"", "\"2017-11-16 22:31:08\""],
        );
        check(
            r#""timestamptz""#,
            &["\"2017-11-16T22:31:08+00:00\""],
            &["\"2017-11-16T22:31:08\"", "\"2017-11-16T22:31:08+01:00\"", "\"2017-11-16T22:31:08Z\""],
        );
        check(r#""timestamp_ns""#, &["\"2017-11-16T22:31:08.123456789\""], &["\"2017-11-16T22:31:08.1234567891\""]);
        check(r#""timestamptz_ns""#, &["\"2017-11-16T22:31:08.123456789+00:00\""], &["\"x+00:00\""]);
    }

    #[test]
    fn nested_values_fit_as_their_parts_do() {
        let list = r#"{"type":"list","element-id":2,"element-required":true,"element":"int"}"#;
        check(list, &["[]", "[1,2]"], &["[null]", "[\"1\"]", "1", "{}"]);
        let map = r#"{"type":"map","key-id":2,"key":"string","value-id":3,"value-required":false,"value":"int"}"#;
        check(
            map,
            &[r#"{"keys":["a","b"],"values":[1,null]}"#, r#"{"keys":[],"values":[]}"#],
            &[r#"{"keys":["a"],"values":[]}"#, r#"{"keys":[null],"values":[1]}"#, "{}", r#"{"a":1}"#],
        );
        let nested = r#"{"type":"struct","fields":[{"id":2,"name":"x","required":false,"type":"int"}]}"#;
        check(nested, &["{}"], &[r#"{"2":1}"#, r#"{"x":1}"#, "[]"]);
    }

    #[test]
    fn some_types_default_to_null_only() {
        for name in ["unknown", "variant", "geometry", "geography"] {
            check(&format!("\"{name}\""), &[], &["1", "\"x\"", "{}"]);
        }
    }
}
