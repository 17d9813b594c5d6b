//! What the terminal shows at start: where everything is and what to type next.

use crate::{app::App, auth::root_key::Place, config::definitions::DATA};
use std::{fmt::Write, path::Path};

/// A few lines without secrets.
pub fn text(app: &App) -> String {
    let settings = &app.settings;
    let (root_id, place) = app.auth.root_key();
    let root = match place {
        Place::File(path) => format!("{root_id}, its secret in {}", path.display()),
        Place::Settings => format!("{root_id}, its secret as set"),
        Place::Elsewhere => format!("{root_id}, its secret where this database's first server keeps it"),
    };
    // Whatever else the server was told, commands learn from the folder.
    let data_flag = match &settings.data {
        data if data.as_os_str() == DATA => String::new(),
        data => format!(" --data {}", pasteable(&std::path::absolute(data).unwrap_or_else(|_| data.clone()))),
    };
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

/// A path as one word of a shell.
fn pasteable(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c));
    if is_plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_pasted_into_a_shell() {
        for path in ["/var/lib/tidewater", "/home/a b/it's $HOME"] {
            let script = format!("printf %s {}", pasteable(Path::new(path)));
            let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), path);
        }
    }
}
