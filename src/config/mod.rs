//! Settings: flags, `TIDEWATER_…` variables and an optional TOML file, the same names everywhere.
//!
//! A flag beats a variable, a variable the file, the file the default. A name nobody knows and a value out of bounds
//! stop the start with a message that says which, where it came from, and what it must be. What each setting means
//! stands once, in [`definitions`].

pub mod definitions;
mod flags;
pub mod running;
mod values;

pub use flags::{Flags, with_fitting_help};
pub use values::is_warehouse_name;

use crate::store::BucketName;
use base64::{Engine, engine::general_purpose::STANDARD};
use definitions::DEFINITIONS;
use figment::{
    Figment, Metadata, Profile, Provider,
    providers::{Format, Toml},
    value::{Dict, Map},
};
use secrecy::{ExposeSecret, SecretString};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};
use values::{Value, Values};

pub const VARIABLE_PREFIX: &str = "TIDEWATER_";
/// Names the TOML file, as `--config` does.
const CONFIG_VARIABLE: &str = "TIDEWATER_CONFIG";
/// Variables of the test suite: ignored.
const TEST_PREFIX: &str = "TIDEWATER_TEST_";

/// Everything `tidewater serve` can be told. Defaults and bounds are in the README's table.
#[derive(Debug, Clone)]
pub struct Settings {
    pub data: PathBuf,
    pub catalog_addr: SocketAddr,
    pub s3_addr: SocketAddr,
    pub metrics_addr: SocketAddr,
    /// Postgres; `None`: SQLite in the data folder.
    pub database_url: Option<SecretString>,
    pub database_connections_max: u32,
    /// What clients are told; default: the listeners' addresses. No trailing slash.
    pub catalog_url: String,
    pub s3_url: String,
    pub region: String,
    /// The warehouse made at first start, and its bucket.
    pub warehouse: String,
    pub bucket: BucketName,
    pub root_access_key_id: Option<String>,
    pub root_secret_access_key: Option<SecretString>,
    pub master_key: Option<SecretString>,
    pub token_lifetime_s: u64,
    pub vended_lifetime_s: u64,
    pub idempotency_lifetime_s: u64,
    /// Largest body of a catalog request. Bytes.
    pub body_bytes_max: usize,
    pub header_bytes_max: usize,
    pub header_timeout_s: u64,
    pub connections_max: usize,
    pub requests_max: usize,
    pub drain_timeout_s: u64,
    pub page_size_max: u32,
    pub metadata_cache_bytes: u64,
    pub small_object_bytes_max: u64,
    pub disk_reserve_bytes: u64,
    pub scrub_bytes_per_s: u64,
    pub metrics_reports_days: u32,
    pub metrics_reports_max: u32,
    pub log_format: LogFormat,
    /// A tracing filter: `info`, `tidewater=debug`, ….
    pub log: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Why settings cannot be used. Values of secret settings are never shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("unknown setting {name} ({place}){}", hint(nearest))]
    Unknown { name: String, place: String, nearest: Option<&'static str> },
    #[error("bad setting {name} ({place}){}: must be {bounds}", shown(value))]
    Bad { name: &'static str, place: String, value: Option<String>, bounds: String },
    #[error("settings {one} and {other} name the same address, {address}: each listener needs one of its own")]
    SameAddress { one: String, other: String, address: SocketAddr },
    #[error("setting {name} needs {other} beside it: both or neither")]
    Alone { name: &'static str, other: &'static str },
    #[error("config file {} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        error: std::io::Error,
    },
    #[error("config file {} is not TOML: {message}", path.display())]
    NotToml { path: PathBuf, message: String },
}

fn hint(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |nearest| format!("; did you mean {nearest}?"))
}

fn shown(value: &Option<String>) -> String {
    value.as_ref().map_or(String::new(), |value| format!(" is {value:?}"))
}

impl Settings {
    /// The host whose subdomains are buckets: that of the told S3 address, unless it is a bare IP address.
    pub fn s3_base_host(&self) -> Option<String> {
        reqwest::Url::parse(&self.s3_url).ok()?.domain().map(str::to_owned)
    }

    /// Reads flags, this process's environment and the file they name.
    ///
    /// # Errors
    /// The first name or value that cannot be used.
    pub fn load(flags: &Flags) -> Result<Settings, Error> {
        Settings::from_sources(flags, variables())
    }

    /// As [`Settings::load`], for commands that talk to a server: what nobody said is what the server running on the
    /// data folder said, if one is.
    ///
    /// # Errors
    /// As [`Settings::load`]'s.
    pub fn load_with_running(flags: &Flags) -> Result<Settings, Error> {
        let given = given_by(flags, variables())?;
        let data = given.find_value("data").ok().and_then(|value| value.into_string());
        let running = running::layer(Path::new(data.as_deref().unwrap_or(definitions::DATA)))?;
        Settings::from_values(&mut Values::new(given_values(&Figment::new().merge(running).merge(given))?))
    }

    /// As [`Settings::load`], with the environment given.
    pub fn from_sources(
        flags: &Flags,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Settings, Error> {
        let mut values = Values::new(given_values(&given_by(flags, variables)?)?);
        let places = LISTENERS.map(|name| values.place(name));
        let settings = Settings::from_values(&mut values)?;
        check_apart(&settings, &places)?;
        Ok(settings)
    }

    /// The defaults with everything under `data`, and every listener on a free port of the loopback.
    pub fn on_free_ports(data: &Path) -> Settings {
        let zero = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut settings =
            Settings::from_sources(&Flags::default(), []).expect("a test holds that the defaults are within bounds");
        settings.data = data.to_owned();
        settings.metrics_addr = zero;
        settings.listening_on(zero, zero)
    }

    fn from_values(values: &mut Values) -> Result<Settings, Error> {
        let catalog_addr = values.address("catalog_addr")?;
        let s3_addr = values.address("s3_addr")?;
        let settings = Settings {
            data: values.path("data")?,
            catalog_addr,
            s3_addr,
            metrics_addr: values.address("metrics_addr")?,
            database_url: values.postgres_url("database_url")?,
            database_connections_max: values.integer("database_connections_max")?,
            catalog_url: values.url("catalog_url")?.unwrap_or_else(|| url_of(catalog_addr)),
            s3_url: values.url("s3_url")?.unwrap_or_else(|| url_of(s3_addr)),
            region: values.text("region")?,
            warehouse: values.text("warehouse")?,
            bucket: values.bucket_name("bucket")?,
            root_access_key_id: values.optional_text("root_access_key_id")?,
            root_secret_access_key: values.secret("root_secret_access_key", |secret| {
                (16..=128).contains(&secret.expose_secret().chars().count())
            })?,
            master_key: values.secret("master_key", is_master_key)?,
            token_lifetime_s: values.integer("token_lifetime_s")?,
            vended_lifetime_s: values.integer("vended_lifetime_s")?,
            idempotency_lifetime_s: values.integer("idempotency_lifetime_s")?,
            body_bytes_max: values.integer("body_bytes_max")?,
            header_bytes_max: values.integer("header_bytes_max")?,
            header_timeout_s: values.integer("header_timeout_s")?,
            connections_max: values.integer("connections_max")?,
            requests_max: values.integer("requests_max")?,
            drain_timeout_s: values.integer("drain_timeout_s")?,
            page_size_max: values.integer("page_size_max")?,
            metadata_cache_bytes: values.integer("metadata_cache_bytes")?,
            small_object_bytes_max: values.integer("small_object_bytes_max")?,
            disk_reserve_bytes: values.integer("disk_reserve_bytes")?,
            scrub_bytes_per_s: values.integer("scrub_bytes_per_s")?,
            metrics_reports_days: values.integer("metrics_reports_days")?,
            metrics_reports_max: values.integer("metrics_reports_max")?,
            log_format: values.choice("log_format", &[("text", LogFormat::Text), ("json", LogFormat::Json)])?,
            log: values.log_filter("log")?,
        };
        debug_assert_eq!(values.left().next(), None, "every definition has a reader");
        match (&settings.root_access_key_id, &settings.root_secret_access_key) {
            (Some(_), None) => Err(Error::Alone { name: "root_access_key_id", other: "root_secret_access_key" }),
            (None, Some(_)) => Err(Error::Alone { name: "root_secret_access_key", other: "root_access_key_id" }),
            _ => Ok(settings),
        }
    }

    /// These settings once the listeners are bound: port 0 became a real one, and clients are told so.
    pub fn listening_on(mut self, catalog: SocketAddr, s3: SocketAddr) -> Settings {
        if self.catalog_url == url_of(self.catalog_addr) {
            self.catalog_url = url_of(catalog);
        }
        if self.s3_url == url_of(self.s3_addr) {
            self.s3_url = url_of(s3);
        }
        Settings { catalog_addr: catalog, s3_addr: s3, ..self }
    }

    /// `<data>/keys`: master key and root key.
    pub fn keys_folder(&self) -> PathBuf {
        self.data.join("keys")
    }
}

/// How a client on this machine reaches a listener: an address that means "all" is no destination.
pub fn url_of(address: SocketAddr) -> String {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) | IpAddr::V6(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Whether a text is 32 bytes in one of the spellings that `auth::MasterKey` reads.
fn is_master_key(text: &SecretString) -> bool {
    let text = text.expose_secret().trim();
    let decoded = if text.len() == 64 { hex::decode(text).ok() } else { STANDARD.decode(text).ok() };
    decoded.is_some_and(|bytes| bytes.len() == 32)
}

const LISTENERS: [&str; 3] = ["catalog_addr", "s3_addr", "metrics_addr"];

/// Two listeners cannot share an address; port 0 is another port each time. `places` say where each came from.
fn check_apart(settings: &Settings, places: &[String; 3]) -> Result<(), Error> {
    let addresses = [settings.catalog_addr, settings.s3_addr, settings.metrics_addr];
    let name = |listener: usize| format!("{} ({})", LISTENERS[listener], places[listener]);
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        if overlap(addresses[one], addresses[other]) {
            return Err(Error::SameAddress { one: name(one), other: name(other), address: addresses[other] });
        }
    }
    Ok(())
}

/// Whether binding one keeps the other from being bound: "all addresses" holds each of its family, and `[::]` all.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let holds = |one: IpAddr, other: IpAddr| one.is_unspecified() && (one.is_ipv6() || other.is_ipv4());
    let (port, one, other) = ((one.port(), other.port()), one.ip(), other.ip());
    port.0 == port.1 && port.0 != 0 && (one == other || holds(one, other) || holds(other, one))
}

/// This process's environment.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
}

/// What flags, variables and the file they name say, merged.
fn given_by(flags: &Flags, variables: impl IntoIterator<Item = (String, String)>) -> Result<Figment, Error> {
    let (environment, config_variable) = environment(variables);
    let config = flags.config().map(Path::to_owned).or(config_variable);
    let file = config.as_deref().map(file).transpose()?.unwrap_or_default();
    Ok(Figment::new().merge(file).merge(environment).merge(flags.layer()))
}

/// Values of one place.
#[derive(Debug, Clone, Default)]
struct Layer {
    /// `flag`, `variable`, `file …`.
    place: String,
    values: Dict,
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.place.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Our variables, by setting name, and the file that `TIDEWATER_CONFIG` names. An empty variable counts as not set.
fn environment(variables: impl IntoIterator<Item = (String, String)>) -> (Layer, Option<PathBuf>) {
    let mut values = Dict::new();
    let mut config = None;
    for (name, value) in variables.into_iter().filter(|(_, value)| !value.is_empty()) {
        if name == CONFIG_VARIABLE {
            config = Some(PathBuf::from(value));
        } else if let Some(setting) = name.strip_prefix(VARIABLE_PREFIX).filter(|_| !name.starts_with(TEST_PREFIX)) {
            values.insert(setting.to_ascii_lowercase(), value.into());
        }
    }
    (Layer { place: "variable".to_owned(), values }, config)
}

fn file(path: &Path) -> Result<Layer, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Unreadable { path: path.to_owned(), error })?;
    let values = Toml::from_str(&text)
        // The error's own text would show the line, which may hold a secret.
        .map_err(|error: <Toml as Format>::Error| Error::NotToml {
            path: path.to_owned(),
            message: match error.span().and_then(|span| text.get(..span.start)) {
                Some(before) => format!("{} (line {})", error.message(), before.matches('\n').count() + 1),
                None => error.message().to_owned(),
            },
        })?;
    Ok(Layer { place: format!("file {}", path.display()), values })
}

/// The winning value of each setting as text.
fn given_values(merged: &Figment) -> Result<BTreeMap<&'static str, Value>, Error> {
    let dict = merged.find_value("").ok().and_then(|value| value.into_dict()).unwrap_or_default();
    let mut given = BTreeMap::new();
    for (name, value) in dict {
        let place = merged.get_metadata(value.tag()).map_or(String::new(), |metadata| metadata.name.to_string());
        let Some(definition) = DEFINITIONS.iter().find(|definition| definition.name == name) else {
            let place = if place == "variable" { variable_of(&name) } else { place };
            return Err(Error::Unknown { nearest: nearest(&name), name, place });
        };
        let place = match place.as_str() {
            "variable" => variable_of(&name),
            "flag" => format!("flag --{}", name.replace('_', "-")),
            _ => place,
        };
        let Some(text) = as_text(&value) else {
            let bounds = definition.kind.bounds().replace('`', "");
            return Err(Error::Bad { name: definition.name, place, value: None, bounds });
        };
        given.insert(definition.name, Value { text, place });
    }
    Ok(given)
}

fn variable_of(name: &str) -> String {
    format!("variable {VARIABLE_PREFIX}{}", name.to_ascii_uppercase())
}

fn as_text(value: &figment::value::Value) -> Option<String> {
    use figment::value::Value;
    match value {
        Value::String(_, text) => Some(text.clone()),
        Value::Num(_, number) => number
            .to_u128()
            .map(|number| number.to_string())
            .or_else(|| number.to_i128().map(|number| number.to_string()))
            .or_else(|| number.to_f64().map(|number| number.to_string())),
        Value::Bool(_, value) => Some(value.to_string()),
        Value::Char(_, value) => Some(value.to_string()),
        Value::Empty(..) | Value::Dict(..) | Value::Array(..) => None,
    }
}

/// The setting whose name is within two slips of the pen of `name`.
fn nearest(name: &str) -> Option<&'static str> {
    let slips = |definition: &&definitions::Definition| edit_distance(name, definition.name);
    let closest = DEFINITIONS.iter().min_by_key(slips)?;
    (slips(&closest) <= 2).then_some(closest.name)
}

fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests;
