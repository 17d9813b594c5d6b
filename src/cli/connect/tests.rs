use super::*;
use expect_test::{Expect, expect};
use std::path::Path;

fn check(engine: Engine, format: Option<Format>, expected: Expect) {
    expected.assert_eq(&printed(engine, format, "sec'ret"));
}

fn printed(engine: Engine, format: Option<Format>, secret: &str) -> String {
    let mut settings = Settings::on_free_ports(Path::new("/nowhere"));
    settings.catalog_url = "http://127.0.0.1:8181".to_owned();
    settings.s3_url = "http://127.0.0.1:9000".to_owned();
    text(&settings, &Credential { id: "TWID".to_owned(), secret: secret.into() }, engine, format).unwrap()
}

#[test]
fn spark_command() {
    check(
        Engine::Spark,
        None,
        expect![[r#"
            spark-sql \
              --conf 'spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.apache.iceberg:iceberg-aws-bundle:1.12.0' \
              --conf 'spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions' \
              --conf 'spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog' \
              --conf 'spark.sql.catalog.lake.type=rest' \
              --conf 'spark.sql.catalog.lake.uri=http://127.0.0.1:8181' \
              --conf 'spark.sql.catalog.lake.warehouse=lakehouse' \
              --conf 'spark.sql.catalog.lake.rest.auth.type=oauth2' \
              --conf 'spark.sql.catalog.lake.credential=TWID:sec'\''ret' \
              --conf 'spark.sql.catalog.lake.oauth2-server-uri=http://127.0.0.1:8181/v1/oauth/tokens' \
              --conf 'spark.sql.catalog.lake.scope=catalog' \
              --conf 'spark.sql.catalog.lake.header.X-Iceberg-Access-Delegation=vended-credentials' \
              --conf 'spark.sql.catalog.lake.io-impl=org.apache.iceberg.aws.s3.S3FileIO' \
              --conf 'spark.sql.defaultCatalog=lake'
        "#]],
    );
}

#[test]
fn spark_conf_has_a_property_a_line() {
    let text = printed(Engine::Spark, Some(Format::Conf), "a\\b");
    assert!(text.lines().all(|line| line.starts_with("spark.") && line.split(' ').count() == 2), "{text}");
    assert!(text.contains("\nspark.sql.catalog.lake.credential TWID:a\\\\b\n"), "{text}");
}

#[test]
fn trino_properties() {
    check(
        Engine::Trino,
        None,
        expect![[r#"
            connector.name=iceberg
            iceberg.catalog.type=rest
            iceberg.rest-catalog.uri=http://127.0.0.1:8181
            iceberg.rest-catalog.warehouse=lakehouse
            iceberg.rest-catalog.security=OAUTH2
            iceberg.rest-catalog.oauth2.credential=TWID:sec'ret
            iceberg.rest-catalog.oauth2.server-uri=http://127.0.0.1:8181/v1/oauth/tokens
            iceberg.rest-catalog.oauth2.scope=catalog
            iceberg.rest-catalog.vended-credentials-enabled=true
            fs.native-s3.enabled=true
            s3.endpoint=http://127.0.0.1:9000
            s3.region=us-east-1
            s3.path-style-access=true
        "#]],
    );
}

#[test]
fn flink_statement() {
    check(
        Engine::Flink,
        None,
        expect![[r#"
            CREATE CATALOG lake WITH (
              'type' = 'iceberg',
              'catalog-type' = 'rest',
              'uri' = 'http://127.0.0.1:8181',
              'warehouse' = 'lakehouse',
              'rest.auth.type' = 'oauth2',
              'credential' = 'TWID:sec''ret',
              'oauth2-server-uri' = 'http://127.0.0.1:8181/v1/oauth/tokens',
              'scope' = 'catalog',
              'header.X-Iceberg-Access-Delegation' = 'vended-credentials',
              'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO'
            );
        "#]],
    );
}

#[test]
fn pyiceberg_file() {
    check(
        Engine::Pyiceberg,
        None,
        expect![[r#"
            catalog:
              lake:
                type: "rest"
                uri: "http://127.0.0.1:8181"
                warehouse: "lakehouse"
                credential: "TWID:sec'ret"
                oauth2-server-uri: "http://127.0.0.1:8181/v1/oauth/tokens"
                scope: "catalog"
                header.X-Iceberg-Access-Delegation: "vended-credentials"
        "#]],
    );
}

#[test]
fn pyiceberg_snippet() {
    check(
        Engine::Pyiceberg,
        Some(Format::Python),
        expect![[r#"
            from pyiceberg.catalog import load_catalog

            catalog = load_catalog("lake", **{
                "type": "rest",
                "uri": "http://127.0.0.1:8181",
                "warehouse": "lakehouse",
                "credential": "TWID:sec'ret",
                "oauth2-server-uri": "http://127.0.0.1:8181/v1/oauth/tokens",
                "scope": "catalog",
                "header.X-Iceberg-Access-Delegation": "vended-credentials",
            })
        "#]],
    );
}

#[test]
fn duckdb_statements() {
    check(
        Engine::Duckdb,
        None,
        expect![[r#"
            INSTALL httpfs;
            INSTALL avro;
            INSTALL iceberg;
            LOAD httpfs;
            LOAD avro;
            LOAD iceberg;
            CREATE SECRET tidewater (
              TYPE iceberg,
              CLIENT_ID 'TWID',
              CLIENT_SECRET 'sec''ret',
              OAUTH2_SERVER_URI 'http://127.0.0.1:8181/v1/oauth/tokens',
              OAUTH2_SCOPE 'catalog'
            );
            ATTACH 'lakehouse' AS lake (
              TYPE iceberg,
              SECRET tidewater,
              ENDPOINT 'http://127.0.0.1:8181',
              ACCESS_DELEGATION_MODE 'vended_credentials'
            );
        "#]],
    );
}

#[test]
fn curl_script() {
    check(
        Engine::Curl,
        None,
        expect![[r#"
            CATALOG='http://127.0.0.1:8181'
            TOKEN=$(curl -fsS "$CATALOG/v1/oauth/tokens" -u 'TWID:sec'\''ret' -d grant_type=client_credentials -d scope=catalog |
              sed 's/.*"access_token":"\([^"]*\)".*/\1/')
            PREFIX=$(curl -fsS "$CATALOG/v1/config?warehouse=lakehouse" -H "Authorization: Bearer $TOKEN" |
              sed 's/.*"prefix":"\([^"]*\)".*/\1/')
            curl -fsS -w '\n' "$CATALOG/v1/$PREFIX/namespaces" -H "Authorization: Bearer $TOKEN"
        "#]],
    );
}

#[test]
fn engines_have_their_own_formats_only() {
    let settings = Settings::on_free_ports(Path::new("/nowhere"));
    let credential = Credential::parse("TWID:a:b").unwrap();
    assert_eq!(credential.joined(), "TWID:a:b");
    let error = text(&settings, &credential, Engine::Trino, Some(Format::Sql)).unwrap_err();
    assert_eq!(error.to_string(), "trino has no format sql");
}
