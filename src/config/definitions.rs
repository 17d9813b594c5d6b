//! The one list of settings: flags, variables, file keys, defaults, bounds and the README's table all come from it.

/// One setting. Its name in the file is `name`; the flag has dashes, the variable `TIDEWATER_` and upper case.
pub struct Definition {
    pub name: &'static str,
    pub kind: Kind,
    pub default: Default,
    pub meaning: &'static str,
}

pub enum Default {
    Value(&'static str),
    /// Worked out at start; the text says how.
    Derived(&'static str),
    /// Not set.
    None,
}

/// What a value must be.
pub enum Kind {
    /// A folder or file.
    Path,
    /// `HOST:PORT`; port 0 takes a free one.
    Address,
    /// `http://…` or `https://…`, without query.
    Url,
    /// `postgres://…`. May hold a password.
    PostgresUrl,
    Text {
        chars_min: usize,
        chars_max: usize,
    },
    /// A warehouse's name: clients put it into the paths of their requests.
    WarehouseName,
    /// What AWS calls a general purpose bucket.
    BucketName,
    /// A secret: from the environment or the file, never from a flag, which other users of the machine could see.
    Secret {
        form: &'static str,
    },
    Integer {
        min: u64,
        max: u64,
    },
    /// Bytes, plain or with `KiB`, `MiB`, `GiB`.
    Bytes {
        min: &'static str,
        max: &'static str,
    },
    Choice(&'static [&'static str]),
    /// A filter of the `tracing` kind.
    LogFilter,
}

impl Definition {
    /// `None` for secrets.
    pub fn flag(&self) -> Option<String> {
        match self.kind {
            Kind::Secret { .. } => None,
            _ => Some(self.name.replace('_', "-")),
        }
    }

    pub fn variable(&self) -> String {
        format!("{}{}", super::VARIABLE_PREFIX, self.name.to_ascii_uppercase())
    }

    /// Whether a value may be shown in a message.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret { .. } | Kind::PostgresUrl)
    }
}

impl Kind {
    /// The bounds in words, for messages and the table.
    pub fn bounds(&self) -> String {
        match self {
            Kind::Path => "a path".into(),
            Kind::Address => "`HOST:PORT`".into(),
            Kind::Url => "`http://…` or `https://…`".into(),
            Kind::PostgresUrl => "`postgres://…`".into(),
            Kind::Text { chars_min, chars_max } => format!("{chars_min} to {chars_max} characters"),
            Kind::WarehouseName => {
                format!("1 to {WAREHOUSE_CHARS_MAX} characters without control characters, not `.` or `..`")
            }
            Kind::BucketName => "3 to 63 lower-case letters, digits, dots and dashes, a letter or digit at both ends, \
                                 no two dots in a row, no IP address, no affix that AWS reserves"
                .into(),
            Kind::Secret { form } => (*form).into(),
            Kind::Integer { min, max } => format!("{min} to {max}"),
            Kind::Bytes { min, max } => format!("{min} to {max}"),
            Kind::Choice(choices) => choices.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(" or "),
            Kind::LogFilter => "a `tracing` filter: `debug`, `info,tidewater=trace`".into(),
        }
    }
}

const fn define(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Definition {
    Definition { name, kind, default: Default::Value(default), meaning }
}

const fn optional(name: &'static str, kind: Kind, meaning: &'static str) -> Definition {
    Definition { name, kind, default: Default::None, meaning }
}

const fn derived(name: &'static str, kind: Kind, how: &'static str, meaning: &'static str) -> Definition {
    Definition { name, kind, default: Default::Derived(how), meaning }
}

const SECONDS_OF_A_DAY: u64 = 86_400;
/// The data folder, unless another is named.
pub const DATA: &str = "./data";
pub const WAREHOUSE_CHARS_MAX: usize = 128;

pub static DEFINITIONS: &[Definition] = &[
    define("data", Kind::Path, DATA, "Folder of the embedded database, the objects and the keys; made when missing"),
    define("catalog_addr", Kind::Address, "127.0.0.1:8181", "Where the catalog listens"),
    define("s3_addr", Kind::Address, "127.0.0.1:9000", "Where S3 listens"),
    define("metrics_addr", Kind::Address, "127.0.0.1:9464", "Where `/metrics` listens; it asks for no credential"),
    derived("catalog_url", Kind::Url, "`http://` and `catalog_addr`", "The catalog's address as clients are told it"),
    derived("s3_url", Kind::Url, "`http://` and `s3_addr`", "The S3 address as clients are told it"),
    optional("database_url", Kind::PostgresUrl, "Postgres 15 or newer in place of SQLite in the data folder"),
    define(
        "database_connections_max",
        Kind::Integer { min: 1, max: 1_000 },
        "16",
        "Connections to Postgres that this process opens at most",
    ),
    define("region", Kind::Text { chars_min: 1, chars_max: 64 }, "us-east-1", "The S3 region clients are told"),
    define(
        "warehouse",
        Kind::WarehouseName,
        "lakehouse",
        "The warehouse made at the first start, and the one a client gets that names none",
    ),
    define("bucket", Kind::BucketName, "lakehouse-warehouse", "The bucket made for that warehouse"),
    derived(
        "root_access_key_id",
        Kind::Text { chars_min: 3, chars_max: 128 },
        "made at the first start, kept in `<data>/keys/root`",
        "Id of the root access key; set together with its secret",
    ),
    derived(
        "root_secret_access_key",
        Kind::Secret { form: "16 to 128 characters" },
        "made at the first start, kept in `<data>/keys/root`",
        "Secret of the root access key",
    ),
    derived(
        "master_key",
        Kind::Secret { form: "32 bytes as 64 hexadecimal digits or as base64" },
        "made at the first start, kept in `<data>/keys/master`",
        "Seals stored secrets and signs tokens; replicas on one database need the same",
    ),
    define(
        "token_lifetime_s",
        Kind::Integer { min: 1, max: SECONDS_OF_A_DAY },
        "3600",
        "Seconds a bearer token is valid",
    ),
    define(
        "vended_lifetime_s",
        Kind::Integer { min: 1, max: SECONDS_OF_A_DAY },
        "3600",
        "Seconds vended S3 keys are valid",
    ),
    define(
        "idempotency_lifetime_s",
        Kind::Integer { min: 60, max: 604_800 },
        "1800",
        "Seconds an answer is kept for clients that send its request again with the same Idempotency-Key",
    ),
    define(
        "body_bytes_max",
        Kind::Bytes { min: "64KiB", max: "1GiB" },
        "64MiB",
        "Largest body of a catalog request; S3 objects are bounded by S3's own limits",
    ),
    define(
        "header_bytes_max",
        Kind::Bytes { min: "8KiB", max: "1MiB" },
        "64KiB",
        "Largest head of a request: request line and headers together",
    ),
    define(
        "header_timeout_s",
        Kind::Integer { min: 1, max: 3_600 },
        "75",
        "Seconds a connection may take to bring the whole head of its first or next request",
    ),
    define(
        "connections_max",
        Kind::Integer { min: 1, max: 1_000_000 },
        "8192",
        "Open connections to each listener; more wait to be accepted",
    ),
    define(
        "requests_max",
        Kind::Integer { min: 1, max: 100_000 },
        "1024",
        "Requests each listener works on at once; more wait their turn",
    ),
    define(
        "drain_timeout_s",
        Kind::Integer { min: 0, max: 3_600 },
        "30",
        "Seconds requests under way may take to finish once the server is told to stop",
    ),
    define("page_size_max", Kind::Integer { min: 1, max: 10_000 }, "1000", "Names on one page of a list at most"),
    define(
        "metadata_cache_bytes",
        Kind::Bytes { min: "0", max: "64GiB" },
        "128MiB",
        "Memory for table metadata that was read or written lately",
    ),
    define(
        "small_object_bytes_max",
        Kind::Bytes { min: "0", max: "1MiB" },
        "64KiB",
        "Objects up to this size are kept beside the store's index, larger ones in files of their own",
    ),
    define(
        "disk_reserve_bytes",
        Kind::Bytes { min: "0", max: "1024GiB" },
        "1GiB",
        "Writes are refused when less of the disk is free than this or than 2 % of it, whichever is more",
    ),
    define(
        "scrub_bytes_per_s",
        Kind::Bytes { min: "0", max: "64GiB" },
        "8MiB",
        "Bytes a second at which everything stored is checked in the background, each week once; 0 never does",
    ),
    define(
        "metrics_reports_days",
        Kind::Integer { min: 0, max: 365 },
        "7",
        "Days that engines' reports of scans and commits are kept; 0 keeps none",
    ),
    define(
        "metrics_reports_max",
        Kind::Integer { min: 10, max: 10_000_000 },
        "100000",
        "Reports of scans, and as many of commits, kept per warehouse; a tenth of that per table",
    ),
    define("log", Kind::LogFilter, "info", "What is logged"),
    define("log_format", Kind::Choice(&["text", "json"]), "text", "How a log line looks"),
];

/// The definition list as the README shows it.
pub fn markdown() -> String {
    let mut table = String::from(
        "| Setting | Flag | Environment | Default | Bounds | Meaning |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for definition in DEFINITIONS {
        let flag = definition.flag().map_or("none".to_owned(), |flag| format!("`--{flag}`"));
        let default = match definition.default {
            Default::Value(value) => format!("`{value}`"),
            Default::Derived(how) => how.to_owned(),
            Default::None => "not set".to_owned(),
        };
        let cells = [
            format!("`{}`", definition.name),
            flag,
            format!("`{}`", definition.variable()),
            default,
            definition.kind.bounds(),
            definition.meaning.to_owned(),
        ];
        table.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    table
}
