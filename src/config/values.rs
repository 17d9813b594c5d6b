//! Values of settings as text with the place each came from, and their parsing against the definitions.

use super::{
    Error,
    definitions::{DEFINITIONS, Default, Definition, Kind, WAREHOUSE_CHARS_MAX},
};
use crate::store::BucketName;
use secrecy::SecretString;
use std::{
    collections::BTreeMap,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
};

/// A value and where it came from.
pub struct Value {
    pub text: String,
    /// `default`, `flag --data`, `variable TIDEWATER_DATA`, `file tidewater.toml`.
    pub place: String,
}

/// One value a setting, taken out as [`super::Settings`] is built.
pub struct Values(BTreeMap<&'static str, Value>);

impl Values {
    /// Fills defaults in.
    pub fn new(mut given: BTreeMap<&'static str, Value>) -> Values {
        for definition in DEFINITIONS {
            if let Default::Value(text) = definition.default {
                let default = || Value { text: text.to_owned(), place: "default".to_owned() };
                given.entry(definition.name).or_insert_with(default);
            }
        }
        Values(given)
    }

    /// Where the value of a setting that nobody took yet came from.
    pub fn place(&self, name: &str) -> String {
        self.0.get(name).map_or_else(|| "default".to_owned(), |value| value.place.clone())
    }

    /// Names nobody took: none, unless a definition has no reader.
    pub fn left(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    fn take<T>(&mut self, name: &str, parse: impl FnOnce(&Kind, &str) -> Option<T>) -> Result<Option<T>, Error> {
        let definition = definition(name);
        let Some(Value { text, place }) = self.0.remove(name) else { return Ok(None) };
        match parse(&definition.kind, &text) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::Bad {
                name: definition.name,
                place,
                value: (!definition.is_secret()).then_some(text),
                bounds: definition.kind.bounds().replace('`', ""),
            }),
        }
    }

    fn required<T>(&mut self, name: &str, parse: impl FnOnce(&Kind, &str) -> Option<T>) -> Result<T, Error> {
        Ok(self.take(name, parse)?.expect("the definition has a default"))
    }

    pub fn path(&mut self, name: &str) -> Result<PathBuf, Error> {
        self.required(name, |_, text| (!text.is_empty() && !text.contains('\0')).then(|| PathBuf::from(text)))
    }

    /// Host names are looked up; the first address counts.
    pub fn address(&mut self, name: &str) -> Result<SocketAddr, Error> {
        self.required(name, |_, text| {
            text.parse().ok().or_else(|| text.to_socket_addrs().ok().and_then(|mut found| found.next()))
        })
    }

    pub fn url(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.take(name, |_, text| {
            let url = reqwest::Url::parse(text).ok()?;
            let plain = matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
            (plain && url.host().is_some() && url.username().is_empty()).then(|| text.trim_end_matches('/').to_owned())
        })
    }

    pub fn postgres_url(&mut self, name: &str) -> Result<Option<SecretString>, Error> {
        self.take(name, |_, text| {
            let known = text.starts_with("postgres://") || text.starts_with("postgresql://");
            (known && reqwest::Url::parse(text).is_ok()).then(|| text.into())
        })
    }

    pub fn text(&mut self, name: &str) -> Result<String, Error> {
        self.required(name, text)
    }

    pub fn bucket_name(&mut self, name: &str) -> Result<BucketName, Error> {
        self.required(name, |_, text| BucketName::parse(text))
    }

    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.take(name, text)
    }

    pub fn secret(
        &mut self,
        name: &str,
        is_valid: impl FnOnce(&SecretString) -> bool,
    ) -> Result<Option<SecretString>, Error> {
        self.take(name, |_, text| Some(SecretString::from(text)).filter(is_valid))
    }

    pub fn integer<T: TryFrom<u64>>(&mut self, name: &str) -> Result<T, Error> {
        self.required(name, |kind, text| {
            let (value, min, max) = match kind {
                Kind::Integer { min, max } => (text.parse().ok()?, *min, *max),
                Kind::Bytes { min, max } => (bytes(text)?, bytes(min)?, bytes(max)?),
                _ => return None,
            };
            (min..=max).contains(&value).then_some(value).and_then(|value| T::try_from(value).ok())
        })
    }

    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<T, Error> {
        self.required(name, |_, text| choices.iter().find(|(choice, _)| *choice == text).map(|(_, value)| *value))
    }

    pub fn log_filter(&mut self, name: &str) -> Result<String, Error> {
        self.required(name, |_, text| tracing_subscriber::EnvFilter::try_new(text).is_ok().then(|| text.to_owned()))
    }
}

fn definition(name: &str) -> &'static Definition {
    DEFINITIONS.iter().find(|definition| definition.name == name).expect("every setting read is defined")
}

fn text(kind: &Kind, text: &str) -> Option<String> {
    let fits = match kind {
        Kind::Text { chars_min, chars_max } => is_printable(text, *chars_min, *chars_max),
        Kind::WarehouseName => is_warehouse_name(text),
        _ => false,
    };
    fits.then(|| text.to_owned())
}

fn is_printable(text: &str, chars_min: usize, chars_max: usize) -> bool {
    (chars_min..=chars_max).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Whether a warehouse can have this name: clients put it into the paths of their requests, and URL libraries take a
/// path's dot segments away.
pub fn is_warehouse_name(text: &str) -> bool {
    is_printable(text, 1, WAREHOUSE_CHARS_MAX) && !matches!(text, "." | "..")
}

/// `1024`, `64KiB`, `1GiB`.
fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let unit = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = unit.unwrap_or((text, 1));
    number.trim_end().parse::<u64>().ok()?.checked_mul(size)
}
