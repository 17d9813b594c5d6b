//! What the terminal shows at start: where everything is and what to type next.

use crate::{app::App, auth::root_key::Place};
use std::fmt::Write;

/// A few lines without secrets.
pub fn text(app: &App) -> String {
    let settings = &app.settings;
    let (root_id, place) = app.auth.root_key();
    let root = match place {
        Place::File(path) => format!("{root_id}, its secret in {}", path.display()),
        Place::Settings => format!("{root_id}, its secret as set"),
        Place::Elsewhere => format!("{root_id}, its secret where this database's first server keeps it"),
    };
    let data = &settings.data;
    let data_flag = if data.as_os_str() == "./data" { String::new() } else { format!(" --data {}", data.display()) };
    let mut text = String::new();
    for (name, value) in [
        ("catalog", settings.catalog_url.as_str()),
        ("s3", &settings.s3_url),
        ("warehouse", &settings.warehouse),
        ("metrics", &format!("http://{}/metrics", settings.metrics_addr)),
        ("docs", &format!("{}/docs", settings.catalog_url)),
        ("root key", &root),
    ] {
        writeln!(text, "  {name:<11}{value}").expect("a string takes all text");
    }
    format!(
        "Tidewater {} is ready.\n\n{text}\nNext: tidewater connect spark{data_flag}   \
         (or trino, flink, pyiceberg, duckdb, curl)\n",
        env!("CARGO_PKG_VERSION")
    )
}
