//! The arrows between modules and the page that describes them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What each folder or file directly under `src` may use of the others. Its own module is always allowed.
/// `*` stands for the pieces that put the server together and may use everything.
const ARROWS: &[(&str, &[&str])] = &[
    ("iceberg", &[]),
    ("store", &[]),
    ("telemetry", &[]),
    ("config", &["auth", "db", "store"]),
    ("db", &["iceberg"]),
    ("auth", &["db"]),
    ("app", &["auth", "catalog", "config", "db", "store", "telemetry"]),
    ("planning", &["iceberg"]),
    (
        "catalog",
        &["app", "auth", "config", "db", "iceberg", "planning", "s3::intent", "s3::sigv4", "store", "telemetry"],
    ),
    ("rest", &["app", "auth", "catalog", "config", "iceberg", "telemetry"]),
    ("api", &["app", "auth", "catalog", "config", "iceberg", "rest::catalog_status", "telemetry"]),
    ("s3", &["app", "auth", "config", "store", "telemetry"]),
    ("jobs", &["app", "catalog", "config", "db", "iceberg", "planning", "store", "telemetry"]),
    ("server", &["*"]),
    ("cli", &["*"]),
    ("main", &["*"]),
    ("lib", &["*"]),
];

/// Parts that are values in, values out: they name no runtime, no database, no HTTP server, no file and no clock.
const PURE: &[&str] =
    &["iceberg", "auth/grants", "auth/policy", "s3/cors", "s3/intent", "s3/operation", "s3/post_policy", "s3/sigv4"];
const IMPURE: &[&str] = &[
    "tokio::",
    "sqlx::",
    "rusqlite::",
    "reqwest::",
    "axum::",
    "std::fs",
    "std::net",
    "SystemTime",
    "Instant::now",
    "now_ms()",
];

#[test]
fn imports_follow_the_arrows() {
    let mut wrong = Vec::new();
    for file in sources() {
        let module = top_module(&file);
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{}: the module {module} has no arrows", file.display()));
            continue;
        };
        for used in crate_paths(&shipped(&file)) {
            let reached = |to: &str| to == "*" || used == to || used.starts_with(&format!("{to}::"));
            if !reached(&module) && !allowed.iter().any(|to| reached(to)) {
                wrong.push(format!("{}: {module} must not use {used}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_parts_do_no_io_and_read_no_clock() {
    let mut wrong = Vec::new();
    for file in sources() {
        let inside = file.strip_prefix(source_folder()).unwrap().with_extension("");
        if PURE.iter().any(|pure| inside.starts_with(pure)) {
            let text = shipped(&file);
            let found = IMPURE.iter().filter(|word| text.contains(**word));
            wrong.extend(found.map(|word| format!("{}: {word}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Calls that take a statement's text.
const STATEMENTS: &[&str] = &["sqlx::query", ".prepare(", ".prepare_cached(", ".execute_batch(", ".query_row("];

#[test]
fn sql_stands_only_in_db_and_in_the_stores_index() {
    let mut wrong = Vec::new();
    for file in sources() {
        let inside = file.strip_prefix(source_folder()).unwrap();
        let text = shipped(&file);
        let queries = STATEMENTS.iter().any(|call| text.contains(call));
        if queries
            && !inside.starts_with("db")
            && !inside.starts_with("store/index")
            && inside != Path::new("store/index.rs")
        {
            wrong.push(file.display().to_string());
        }
    }
    assert!(wrong.is_empty(), "statements outside db/ and store/index:\n{}", wrong.join("\n"));
}

#[test]
fn architecture_page_names_every_folder() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut folders: Vec<PathBuf> = sources()
        .iter()
        .filter(|file| !is_for_tests(file))
        .filter_map(|file| file.parent().map(Path::to_owned))
        .collect();
    folders.sort();
    folders.dedup();
    let inside = folders.iter().map(|folder| folder.strip_prefix(source_folder()).unwrap());
    let missing: Vec<String> = inside
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| format!("{}/", folder.display()))
        .filter(|folder| !page.contains(&format!("`{folder}`")))
        .collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not name {missing:?}");
}

#[test]
fn no_file_is_longer_than_700_lines() {
    let lines = |file: &PathBuf| fs::read_to_string(file).unwrap().lines().count();
    let long: Vec<_> =
        sources().into_iter().map(|file| (lines(&file), file)).filter(|(lines, _)| *lines > 700).collect();
    assert!(long.is_empty(), "{long:?}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn source_folder() -> PathBuf {
    root().join("src")
}

fn sources() -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![source_folder()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// `src/rest/tables.rs` and `src/rest.rs` are both of `rest`.
fn top_module(file: &Path) -> String {
    let inside = file.strip_prefix(source_folder()).unwrap();
    let first = inside.components().next().expect("a file has a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// Files named so: `tests/`, `tests.rs`, `testing.rs`, `…_tests.rs`.
fn is_for_tests(file: &Path) -> bool {
    let inside = file.strip_prefix(source_folder()).unwrap();
    let is_test = |name: &str| matches!(name, "tests" | "tests.rs" | "testing.rs") || name.ends_with("_tests.rs");
    inside.iter().any(|name| is_test(&name.to_string_lossy()))
}

/// The text without comments and without what only tests compile: a file for tests, or all from
/// `#[cfg(test)] mod tests {` on.
fn shipped(file: &Path) -> String {
    if is_for_tests(file) {
        return String::new();
    }
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Every `crate::a::b` of a text, groups taken apart: `crate::{a, b::{c, d}}` gives `a`, `b::c`, `b::d`.
fn crate_paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in text.match_indices("crate::") {
        let is_part_of_a_name = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if !is_part_of_a_name {
            // Up to the statement's end: a use tree goes over several lines.
            let statement = text[at + word.len()..].split(';').next().unwrap_or_default();
            let compact: String = statement.split_whitespace().collect();
            expand(&compact, "", &mut found);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Reads one use tree at the start of `text`; answers how many bytes it took.
fn expand(text: &str, prefix: &str, found: &mut Vec<String>) -> usize {
    if let Some(group) = text.strip_prefix('{') {
        let mut at = 0;
        while at < group.len() && !group[at..].starts_with('}') {
            at += expand(&group[at..], prefix, found);
            if group[at..].starts_with(',') {
                at += 1;
            } else if !group[at..].starts_with('}') {
                break;
            }
        }
        return at + 2;
    }
    let name = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let path = if prefix.is_empty() { text[..name].to_owned() } else { format!("{prefix}::{}", &text[..name]) };
    match text[name..].strip_prefix("::") {
        Some(rest) if rest.starts_with('{') || rest.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            name + 2 + expand(rest, &path, found)
        }
        _ => {
            found.push(path);
            name
        }
    }
}

#[test]
fn use_trees_are_taken_apart() {
    let check = |text: &str, want: &[&str]| assert_eq!(crate_paths(text), want, "{text}");
    check("use crate::db;", &["db"]);
    check(
        "use crate::{\n    app::App,\n    s3::sigv4::{Signer, self},\n};",
        &["app::App", "s3::sigv4::Signer", "s3::sigv4::self"],
    );
    check("pub(in crate::s3) use key::hex; let x = crate::app::now_ms();", &["app::now_ms", "s3"]);
    check("use mycrate::db;", &[]);
}
