//! Lists of what must hold, each entry with what holds it: read, and checked against the source.
//!
//! A list is a Markdown page. An entry starts at the margin with its key and a full stop; what belongs to it is
//! indented. Below its text stand bullets, each one of:
//!
//! - tests by their paths, in backticks: `rest::tests::tables::…` below `src`, `it::…` below `tests/it`;
//! - `kit:` and tests of Iceberg's compatibility kit, which `tests/engines/rck` checks to have passed;
//! - `file:` a file and a text in it, both in backticks, for steps of scripts;
//! - `not served:` a path in backticks and why; it is refused once the path is served;
//! - `no test:` the reason.

use std::{fs, path::PathBuf};

#[derive(Debug)]
pub struct Entry {
    pub key: String,
    bullets: Vec<String>,
}

/// The entries of a page, in its order.
pub fn read(page: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut is_open = false;
    for (number, line) in page.lines().enumerate() {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        if line.starts_with(' ') {
            let entry = entries.last_mut().filter(|_| is_open);
            let entry = entry.ok_or_else(|| format!("line {}: belongs to no entry", number + 1))?;
            match (text.strip_prefix("- "), entry.bullets.last_mut()) {
                (Some(bullet), _) => entry.bullets.push(bullet.to_owned()),
                (None, Some(bullet)) => *bullet += &format!(" {text}"),
                (None, None) => {}
            }
            continue;
        }
        let key = text.split_once(". ").map(|(key, _)| key).filter(|key| !key.contains(' '));
        is_open = key.is_some();
        entries.extend(key.map(|key| Entry { key: key.to_owned(), bullets: Vec::new() }));
    }
    Ok(entries)
}

/// What is wrong with a page: keys missing, twice or unknown, entries without a bullet, bullets that are not true.
pub fn problems(page: &str, wanted: &[String]) -> Vec<String> {
    let entries = match read(page) {
        Ok(entries) => entries,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    for key in wanted {
        match entries.iter().filter(|entry| entry.key == *key).count() {
            1 => {}
            count => problems.push(format!("{key}: {count} entries")),
        }
    }
    for entry in &entries {
        if !wanted.contains(&entry.key) {
            problems.push(format!("{}: is not asked for", entry.key));
        }
        if entry.bullets.is_empty() {
            problems.push(format!("{}: neither a test nor a reason", entry.key));
        }
        let found = entry.bullets.iter().filter_map(|bullet| problem(bullet));
        problems.extend(found.map(|problem| format!("{}: {problem}", entry.key)));
    }
    problems
}

fn problem(bullet: &str) -> Option<String> {
    let quoted: Vec<&str> = bullet.split('`').skip(1).step_by(2).collect();
    let reason = |text: &str| text.split_whitespace().count() < 3;
    match (bullet.split_once(": "), quoted.as_slice()) {
        (Some(("no test", text)), _) => reason(text).then(|| "no reason".to_owned()),
        (Some(("not served", text)), [path]) if !reason(text) => is_served(path).then(|| format!("is served: {path}")),
        (Some(("file", _)), [file, text]) => {
            let has_text = fs::read_to_string(root().join(file)).is_ok_and(|content| content.contains(text));
            (!has_text).then(|| format!("{file} does not hold: {text}"))
        }
        (Some(("kit", _)), [_, ..]) => {
            let known = |name: &&str| name.starts_with("Tables.") || name.starts_with("Views.");
            let unknown = quoted.into_iter().find(|name| !known(name))?;
            Some(format!("no test of the kit: {unknown}"))
        }
        (None, [_, ..]) => {
            let missing = quoted.into_iter().find(|path| !is_test(path))?;
            Some(format!("no such test: {missing}"))
        }
        _ => Some(format!("not understood: {bullet}")),
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn is_served(path: &str) -> bool {
    let document = fs::read_to_string(root().join("openapi/tidewater.yaml")).expect("the document is there");
    document.lines().any(|line| line.trim_end() == format!("  {path}:"))
}

/// Whether a path names a test: in the file of its module, or beside the code the module `tests` is in.
fn is_test(path: &str) -> bool {
    let (folder, path) = match path.strip_prefix("it::") {
        Some(path) => ("tests/it", path),
        None => ("src", path),
    };
    let Some((module, name)) = path.rsplit_once("::") else { return false };
    let module = root().join(folder).join(module.replace("::", "/"));
    let beside = module.parent().map(PathBuf::from).filter(|_| module.ends_with("tests"));
    let modules = [Some(module), beside];
    let files = modules.iter().flatten().flat_map(|module| [module.with_extension("rs"), module.join("mod.rs")]);
    files.filter_map(|file| fs::read_to_string(file).ok()).any(|text| declares_test(&text, name))
}

/// A function with a test's attribute, or one in a list that makes tests for both databases.
fn declares_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declares = |line: &str| {
        let declared = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        declared.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| rest.starts_with('('))
    };
    let Some(at) = lines.iter().position(|line| declares(line)) else { return false };
    let mut above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    above.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test")) || is_listed(text, name)
}

fn is_listed(text: &str, name: &str) -> bool {
    let lists = text.split("on_both").skip(1).filter_map(|rest| rest.split_once('!'));
    let lists = lists.filter(|(rest, _)| rest.is_empty() || *rest == "_databases");
    lists
        .filter_map(|(_, list)| list.split(['}', ')']).next())
        .any(|list| list.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name))
}

#[test]
fn gaps_and_untrue_entries_are_found() {
    let page = "\
# A page

Words before the entries.

1. Text
   in two lines.
   - `it::ledger::gaps_and_untrue_entries_are_found`, `rest::path::tests::impossible_names_are_refused`
   - `rest::tests::tables::a_table_is_created_loaded_and_listed`, `it::races::conflicting_commits_have_one_winner`
   - file: `tests/it/ledger.rs`: `A page`
   - not served: `/v1/nowhere`, it is only
     made up
2. No bullets.
3. Untrue ones.
   - `it::ledger::read`
   - `it::nowhere::x`, `x`
   - `rest::tests::tables::on_both`
   - file: `tests/it/readme.rs`: `A page`
   - not served: `/v1/config`, though it is
   - no test: why?
   - kit: `testX`
   - x: `y`
4. Twice.
   - no test: because it is so
4. Twice.
   - no test: because it is so
x. Unknown.
   - kit: `Tables.testX`
";
    let wanted = ["1", "2", "3", "4", "5"].map(str::to_owned);
    expect_test::expect![[r#"
        4: 2 entries
        5: 0 entries
        2: neither a test nor a reason
        3: no such test: it::ledger::read
        3: no such test: it::nowhere::x
        3: no such test: rest::tests::tables::on_both
        3: tests/it/readme.rs does not hold: A page
        3: is served: /v1/config
        3: no reason
        3: no test of the kit: testX
        3: not understood: x: `y`
        x: is not asked for"#]]
    .assert_eq(&problems(page, &wanted).join("\n"));
    assert_eq!(problems("  - indented", &[]), ["line 1: belongs to no entry"]);
}
