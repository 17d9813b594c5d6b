//! Listings: order, prefixes, delimiters, pages.

use super::*;
use expect_test::{Expect, expect};

/// Keys of an awkward bucket, as in the S3 documentation's corners.
const KEYS: [&str; 16] = [
    "a b",
    "a+b",
    "a%2Bb",
    "a&<b",
    "ü/1",
    "p/1",
    "p/2",
    "p/3",
    "q/1",
    "r",
    "x\u{2}y",
    "f",
    "f/",
    "f//g",
    "/f",
    "\u{10FFFF}/z",
];

async fn fixture(keys: &[&str]) -> Fixture {
    let fixture = Fixture::new().await;
    for key in keys {
        fixture.put(key, b"x").await.unwrap();
    }
    fixture
}

/// All pages, one a line; a `*` marks common prefixes.
async fn pages(fixture: &Fixture, query: ListQuery) -> String {
    let mut text = String::new();
    let mut after = query.after.clone();
    loop {
        let page = fixture.store.list(&fixture.bucket, ListQuery { after, ..query.clone() }).await.unwrap();
        assert!(page.entries.len() <= query.limit);
        let names = page.entries.iter().map(|entry| match entry {
            ListEntry::Object(object) => format!("{:?}", object.key.as_str()),
            ListEntry::CommonPrefix(prefix) => format!("*{prefix:?}"),
        });
        let names = names.collect::<Vec<_>>().join(" ");
        text += if names.is_empty() { "(nothing)" } else { &names };
        text += "\n";
        match page.next {
            Some(next) => after = Some(next),
            None => return text.trim_end().to_owned(),
        }
    }
}

async fn check(fixture: &Fixture, query: ListQuery, expected: Expect) {
    expected.assert_eq(&pages(fixture, query).await);
}

fn query(prefix: &str, delimiter: &str, after: &str, limit: usize) -> ListQuery {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ListQuery { prefix: prefix.to_owned(), delimiter: some(delimiter), after: some(after), limit }
}

#[tokio::test]
async fn keys_come_in_byte_order_each_once() {
    let fixture = fixture(&KEYS).await;
    let mut sorted = KEYS.to_vec();
    sorted.sort_unstable_by_key(|key| key.as_bytes());
    assert_eq!(fixture.keys().await, sorted);
    for limit in 1..=KEYS.len() + 1 {
        let listed = pages(&fixture, query("", "", "", limit)).await;
        assert_eq!(listed.lines().count(), KEYS.len().div_ceil(limit), "{limit}");
    }
}

#[tokio::test]
async fn a_delimiter_groups_and_pages_continue_after_the_whole_prefix() {
    let fixture = fixture(&KEYS).await;
    check(
        &fixture,
        query("", "/", "", 1000),
        expect![[r#"
        *"/" "a b" "a%2Bb" "a&<b" "a+b" "f" *"f/" *"p/" *"q/" "r" "x\u{2}y" *"ü/" *"\u{10ffff}/""#]],
    )
    .await;
    check(
        &fixture,
        query("", "/", "", 3),
        expect![[r#"
        *"/" "a b" "a%2Bb"
        "a&<b" "a+b" "f"
        *"f/" *"p/" *"q/"
        "r" "x\u{2}y" *"ü/"
        *"\u{10ffff}/""#]],
    )
    .await;
    check(
        &fixture,
        query("p", "/", "", 1),
        expect![[r#"
        *"p/""#]],
    )
    .await;
    check(
        &fixture,
        query("p/", "/", "", 2),
        expect![[r#"
        "p/1" "p/2"
        "p/3""#]],
    )
    .await;
    check(
        &fixture,
        query("f/", "/", "", 10),
        expect![[r#"
        "f/" *"f//""#]],
    )
    .await;
    check(
        &fixture,
        query("a", "b", "", 10),
        expect![[r#"
        *"a b" *"a%2Bb" *"a&<b" *"a+b""#]],
    )
    .await;
    check(&fixture, query("nothing", "/", "", 10), expect!["(nothing)"]).await;
}

#[tokio::test]
async fn pages_start_strictly_after_what_was_shown() {
    let fixture = fixture(&["o", "p/1", "p/2", "p/3", "q/1", "r"]).await;
    check(
        &fixture,
        query("", "/", "p", 10),
        expect![[r#"
        *"p/" *"q/" "r""#]],
    )
    .await;
    check(
        &fixture,
        query("", "/", "p/", 10),
        expect![[r#"
        *"q/" "r""#]],
    )
    .await;
    // The common prefix sorts before the key it would start after.
    check(
        &fixture,
        query("", "/", "p/1", 10),
        expect![[r#"
        *"q/" "r""#]],
    )
    .await;
    check(
        &fixture,
        query("p/", "/", "p/1", 10),
        expect![[r#"
        "p/2" "p/3""#]],
    )
    .await;
    check(
        &fixture,
        query("", "", "p/1", 10),
        expect![[r#"
        "p/2" "p/3" "q/1" "r""#]],
    )
    .await;
    check(
        &fixture,
        query("p/", "", "a", 10),
        expect![[r#"
        "p/1" "p/2" "p/3""#]],
    )
    .await;
    check(&fixture, query("p/", "", "z", 10), expect!["(nothing)"]).await;
    check(&fixture, query("", "", "r", 10), expect!["(nothing)"]).await;
}

#[tokio::test]
async fn a_limit_of_nothing_lists_nothing_and_is_the_end() {
    let fixture = fixture(&["a", "b"]).await;
    let page = fixture.store.list(&fixture.bucket, query("", "", "", 0)).await.unwrap();
    assert!(page.entries.is_empty() && page.next.is_none());
}

#[tokio::test]
async fn keys_that_look_like_paths_are_independent() {
    let keys = ["f", "f/", "f/g", "f//g", "/f", "d/", "d/x"];
    let fixture = fixture(&keys).await;
    fixture.put("d/", b"12345").await.unwrap();
    assert!(fixture.delete("f").await.unwrap());
    assert!(fixture.delete("d/").await.unwrap());
    let mut left = vec!["f/", "f/g", "f//g", "/f", "d/x"];
    left.sort_unstable();
    assert_eq!(fixture.keys().await, left);
}

#[tokio::test]
async fn random_listings_equal_those_of_a_plain_list() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_401);
    println!("SEED={seed}");
    let mut random = Random(seed);
    let alphabet = ["a", "b", "/", "-", "ü", "\u{1}", "\u{10FFFF}"];
    let mut word = |length_max: usize| -> String {
        (0..random.below(length_max + 1)).map(|_| alphabet[random.below(alphabet.len())]).collect()
    };
    let keys: std::collections::BTreeSet<String> = (0..120).map(|_| word(5) + "k").collect();
    let keys_listed: Vec<&str> = keys.iter().map(String::as_str).collect();
    let fixture = fixture(&keys_listed).await;
    for round in 0..300 {
        let query = query(&word(2), ["", "/", "-", "a/"][round % 4], &word(3), 1 + round % 7);
        let expected = plain(&keys, &query);
        let mut listed = Vec::new();
        let mut after = query.after.clone();
        loop {
            let page = fixture.store.list(&fixture.bucket, ListQuery { after, ..query.clone() }).await.unwrap();
            listed.extend(page.entries.iter().map(entry_name));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(listed, expected, "{query:?}");
    }
}

/// What S3 lists, said in the plainest way.
fn plain(keys: &std::collections::BTreeSet<String>, query: &ListQuery) -> Vec<String> {
    let mut entries: Vec<String> = keys
        .iter()
        .filter_map(|key| {
            let rest = key.strip_prefix(&query.prefix)?;
            let delimiter = query.delimiter.as_deref().unwrap_or("\0");
            let entry = match rest.find(delimiter) {
                Some(at) => key[..query.prefix.len() + at + delimiter.len()].to_owned(),
                None => key.clone(),
            };
            (query.after.as_deref().is_none_or(|after| entry.as_str() > after)).then_some(entry)
        })
        .collect();
    entries.dedup();
    entries
}
