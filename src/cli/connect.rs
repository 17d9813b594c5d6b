//! `tidewater connect`: what an engine needs to reach this server, ready to paste.
//!
//! An address, a warehouse and an access key; never a storage key: those come vended with each table.

use super::{Result, client::Credential};
use crate::config::Settings;
use clap::ValueEnum;
use secrecy::ExposeSecret;

/// What the catalog is called inside the engine.
const CATALOG: &str = "lake";
const SPARK_RUNTIME: &str = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0";
const AWS_BUNDLE: &str = "org.apache.iceberg:iceberg-aws-bundle:1.12.0";
const DELEGATION: (&str, &str) = ("header.X-Iceberg-Access-Delegation", "vended-credentials");

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    Spark,
    Trino,
    Flink,
    Pyiceberg,
    Duckdb,
    Curl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A command to paste into a shell (spark)
    Shell,
    /// Lines of a properties file (spark, trino)
    Conf,
    /// A statement (flink, duckdb)
    Sql,
    /// `.pyiceberg.yaml` (pyiceberg)
    Yaml,
    /// A Python snippet (pyiceberg)
    Python,
}

/// What an engine is told.
struct Connection<'a> {
    uri: &'a str,
    oauth2_uri: String,
    warehouse: &'a str,
    s3_url: &'a str,
    region: &'a str,
    credential: &'a Credential,
}

/// The configuration of `engine`, in its usual form or in `format`.
///
/// # Errors
/// When the engine has no such form.
pub fn text(settings: &Settings, credential: &Credential, engine: Engine, format: Option<Format>) -> Result<String> {
    let connection = Connection {
        uri: &settings.catalog_url,
        oauth2_uri: format!("{}/v1/oauth/tokens", settings.catalog_url),
        warehouse: &settings.warehouse,
        s3_url: &settings.s3_url,
        region: &settings.region,
        credential,
    };
    Ok(match (engine, format) {
        (Engine::Spark, None | Some(Format::Shell)) => spark_shell(&connection),
        (Engine::Spark, Some(Format::Conf)) => spark_conf(&connection),
        (Engine::Trino, None | Some(Format::Conf)) => trino(&connection),
        (Engine::Flink, None | Some(Format::Sql)) => flink(&connection),
        (Engine::Pyiceberg, None | Some(Format::Yaml)) => pyiceberg_yaml(&connection),
        (Engine::Pyiceberg, Some(Format::Python)) => pyiceberg_python(&connection),
        (Engine::Duckdb, None | Some(Format::Sql)) => duckdb(&connection),
        (Engine::Curl, None | Some(Format::Shell)) => curl(&connection),
        (engine, Some(format)) => {
            return Err(format!("{} has no format {}", name(&engine), name(&format)).into());
        }
    })
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

impl Connection<'_> {
    /// Properties of Iceberg's Java client. Endpoint, region and keys of the storage come with each table.
    fn java_properties(&self) -> Vec<(&'static str, String)> {
        vec![
            ("uri", self.uri.to_owned()),
            ("warehouse", self.warehouse.to_owned()),
            ("rest.auth.type", "oauth2".to_owned()),
            ("credential", self.credential.joined()),
            ("oauth2-server-uri", self.oauth2_uri.clone()),
            ("scope", "catalog".to_owned()),
            (DELEGATION.0, DELEGATION.1.to_owned()),
            ("io-impl", "org.apache.iceberg.aws.s3.S3FileIO".to_owned()),
        ]
    }
}

fn spark_properties(connection: &Connection<'_>) -> Vec<(String, String)> {
    let catalog = format!("spark.sql.catalog.{CATALOG}");
    let mut properties = vec![
        ("spark.jars.packages".to_owned(), format!("{SPARK_RUNTIME},{AWS_BUNDLE}")),
        (
            "spark.sql.extensions".to_owned(),
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions".to_owned(),
        ),
        (catalog.clone(), "org.apache.iceberg.spark.SparkCatalog".to_owned()),
        (format!("{catalog}.type"), "rest".to_owned()),
    ];
    properties.extend(connection.java_properties().into_iter().map(|(key, value)| (format!("{catalog}.{key}"), value)));
    properties.push(("spark.sql.defaultCatalog".to_owned(), CATALOG.to_owned()));
    properties
}

fn spark_shell(connection: &Connection<'_>) -> String {
    let settings = spark_properties(connection);
    let lines = settings.iter().map(|(key, value)| format!("  --conf {}", shell_quoted(&format!("{key}={value}"))));
    format!("spark-sql \\\n{}\n", lines.collect::<Vec<_>>().join(" \\\n"))
}

/// Lines of `spark-defaults.conf`.
fn spark_conf(connection: &Connection<'_>) -> String {
    spark_properties(connection).iter().map(|(key, value)| format!("{key} {}\n", properties_escaped(value))).collect()
}

/// `etc/catalog/lake.properties`. Trino needs the storage's address in its own words, keys it takes vended.
fn trino(connection: &Connection<'_>) -> String {
    let properties = [
        ("connector.name", "iceberg"),
        ("iceberg.catalog.type", "rest"),
        ("iceberg.rest-catalog.uri", connection.uri),
        ("iceberg.rest-catalog.warehouse", connection.warehouse),
        ("iceberg.rest-catalog.security", "OAUTH2"),
        ("iceberg.rest-catalog.oauth2.credential", &connection.credential.joined()),
        ("iceberg.rest-catalog.oauth2.server-uri", &connection.oauth2_uri),
        ("iceberg.rest-catalog.oauth2.scope", "catalog"),
        ("iceberg.rest-catalog.vended-credentials-enabled", "true"),
        ("fs.native-s3.enabled", "true"),
        ("s3.endpoint", connection.s3_url),
        ("s3.region", connection.region),
        ("s3.path-style-access", "true"),
    ];
    properties.iter().map(|(key, value)| format!("{key}={}\n", properties_escaped(value))).collect()
}

fn flink(connection: &Connection<'_>) -> String {
    let fixed = [("type", "iceberg".to_owned()), ("catalog-type", "rest".to_owned())];
    let properties = fixed.into_iter().chain(connection.java_properties());
    let lines = properties.map(|(key, value)| format!("  {} = {}", sql_quoted(key), sql_quoted(&value)));
    format!("CREATE CATALOG {CATALOG} WITH (\n{}\n);\n", lines.collect::<Vec<_>>().join(",\n"))
}

fn pyiceberg_properties(connection: &Connection<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("type", "rest".to_owned()),
        ("uri", connection.uri.to_owned()),
        ("warehouse", connection.warehouse.to_owned()),
        ("credential", connection.credential.joined()),
        ("oauth2-server-uri", connection.oauth2_uri.clone()),
        ("scope", "catalog".to_owned()),
        (DELEGATION.0, DELEGATION.1.to_owned()),
    ]
}

/// `~/.pyiceberg.yaml`.
fn pyiceberg_yaml(connection: &Connection<'_>) -> String {
    let lines = pyiceberg_properties(connection);
    let lines = lines.iter().map(|(key, value)| format!("    {key}: {}\n", json_quoted(value)));
    format!("catalog:\n  {CATALOG}:\n{}", lines.collect::<String>())
}

fn pyiceberg_python(connection: &Connection<'_>) -> String {
    let lines = pyiceberg_properties(connection);
    let lines = lines.iter().map(|(key, value)| format!("    {}: {},\n", json_quoted(key), json_quoted(value)));
    format!(
        "from pyiceberg.catalog import load_catalog\n\ncatalog = load_catalog(\"{CATALOG}\", **{{\n{}}})\n",
        lines.collect::<String>()
    )
}

fn duckdb(connection: &Connection<'_>) -> String {
    format!(
        "INSTALL httpfs;\nINSTALL avro;\nINSTALL iceberg;\nLOAD httpfs;\nLOAD avro;\nLOAD iceberg;\n\
         CREATE SECRET tidewater (\n  TYPE iceberg,\n  CLIENT_ID {},\n  CLIENT_SECRET {},\n  OAUTH2_SERVER_URI {},\n  \
         OAUTH2_SCOPE 'catalog'\n);\n\
         ATTACH {} AS {CATALOG} (\n  TYPE iceberg,\n  SECRET tidewater,\n  ENDPOINT {},\n  \
         ACCESS_DELEGATION_MODE 'vended_credentials'\n);\n",
        sql_quoted(&connection.credential.id),
        sql_quoted(connection.credential.secret.expose_secret()),
        sql_quoted(&connection.oauth2_uri),
        sql_quoted(connection.warehouse),
        sql_quoted(connection.uri),
    )
}

/// Gets a token, finds the warehouse's prefix, lists namespaces. Needs curl and sed.
fn curl(connection: &Connection<'_>) -> String {
    let warehouse = percent_encoding::utf8_percent_encode(connection.warehouse, percent_encoding::NON_ALPHANUMERIC);
    format!(
        "CATALOG={}\n\
         TOKEN=$(curl -fsS \"$CATALOG/v1/oauth/tokens\" -u {} -d grant_type=client_credentials -d scope=catalog |\n  \
         sed 's/.*\"access_token\":\"\\([^\"]*\\)\".*/\\1/')\n\
         PREFIX=$(curl -fsS \"$CATALOG/v1/config?warehouse={warehouse}\" -H \"Authorization: Bearer $TOKEN\" |\n  \
         sed 's/.*\"prefix\":\"\\([^\"]*\\)\".*/\\1/')\n\
         curl -fsS -w '\\n' \"$CATALOG/v1/$PREFIX/namespaces\" -H \"Authorization: Bearer $TOKEN\"\n",
        shell_quoted(connection.uri),
        shell_quoted(&connection.credential.joined()),
    )
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// As Java reads properties files.
fn properties_escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
}

fn sql_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// JSON's strings are YAML's and Python's too.
fn json_quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
