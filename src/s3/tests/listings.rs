//! Listings: order, groups, pages, encoding.

use super::*;

const KEYS: [&str; 10] = ["a b", "a&<b", "a+b", "p/1", "p/2", "p/3", "q/1", "r", "x\u{2}y", "ü/1"];

async fn filled() -> World {
    let world = World::new().await;
    for key in KEYS {
        let path: String = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC).collect();
        world.put(&path, key).await;
    }
    world
}

async fn list(world: &World, query: &str) -> Element {
    world.send(Ask::get(&format!("/lake?{query}"))).await.document("ListBucketResult")
}

#[tokio::test]
async fn keys_come_in_byte_order_and_escaped() {
    let world = filled().await;
    for version in ["", "list-type=2"] {
        let document = list(&world, version).await;
        let mut sorted = KEYS.to_vec();
        sorted.sort_unstable();
        assert_eq!(texts(&document, "Contents/Key"), sorted);
        assert_eq!(texts(&document, "IsTruncated"), ["false"]);
        assert_eq!(texts(&document, "Contents/Size")[0], "3");
    }
    let raw = world.send(Ask::get("/lake?list-type=2")).await.body;
    let raw = String::from_utf8(raw.to_vec()).expect("text");
    assert!(raw.contains("<Key>x&#x2;y</Key>") && raw.contains("<Key>a&amp;&lt;b</Key>"), "{raw}");
    assert!(!raw.contains("<Owner>"));
    assert_eq!(list(&world, "list-type=2&max-keys=1000").await.child_text("KeyCount"), Some("10"));
}

#[tokio::test]
async fn names_are_encoded_when_asked_for() {
    let world = filled().await;
    let document = list(&world, "list-type=2&encoding-type=url&prefix=a&start-after=a%20&delimiter=%2B").await;
    assert_eq!(texts(&document, "EncodingType"), ["url"]);
    assert_eq!(texts(&document, "Contents/Key"), ["a%20b", "a%26%3Cb"]);
    assert_eq!(texts(&document, "CommonPrefixes/Prefix"), ["a%2B"]);
    assert_eq!(texts(&document, "StartAfter"), ["a%20"]);
    assert_eq!(texts(&document, "Delimiter"), ["%2B"]);
    let document = list(&world, "encoding-type=url&marker=p/3&max-keys=1").await;
    assert_eq!(texts(&document, "NextMarker"), ["q/1"]);
    assert_eq!(texts(&document, "Owner").len(), 0);
    assert_eq!(texts(&document, "Contents/Owner/ID"), [ACCESS_KEY]);
}

#[tokio::test]
async fn groups_come_once_whatever_the_page_size() {
    let world = filled().await;
    let whole = ["a b", "a&<b", "a+b", "p/", "q/", "r", "x\u{2}y", "ü/"];
    for max_keys in 1..=9 {
        for v2 in [false, true] {
            let mut seen: Vec<String> = Vec::new();
            let mut after: Option<String> = None;
            for _ in 0..=whole.len() {
                let kind = if v2 { "list-type=2&continuation-token" } else { "marker" };
                let from = after.as_deref().map_or_else(String::new, |after| {
                    let after = percent_encoding::utf8_percent_encode(after, percent_encoding::NON_ALPHANUMERIC);
                    format!("&{kind}={after}")
                });
                let query = format!("delimiter=/&max-keys={max_keys}{from}");
                let query = if v2 && after.is_none() { format!("list-type=2&{query}") } else { query };
                let document = list(&world, &query).await;
                let mut page = [texts(&document, "Contents/Key"), texts(&document, "CommonPrefixes/Prefix")].concat();
                page.sort_unstable();
                assert!(page.len() <= max_keys);
                seen.extend(page.into_iter().map(str::to_owned));
                let next = if v2 { "NextContinuationToken" } else { "NextMarker" };
                after = document.child_text(next).map(str::to_owned);
                assert_eq!(document.child_text("IsTruncated"), Some(if after.is_some() { "true" } else { "false" }));
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, whole, "{max_keys}");
        }
    }
}

#[tokio::test]
async fn prefixes_and_starts_narrow() {
    let world = filled().await;
    for (query, keys, groups) in [
        ("prefix=p", &["p/1", "p/2", "p/3"][..], &[][..]),
        ("prefix=p/", &["p/1", "p/2", "p/3"], &[]),
        ("prefix=p&delimiter=/", &[], &["p/"]),
        ("prefix=p/&delimiter=/", &["p/1", "p/2", "p/3"], &[]),
        ("prefix=p&delimiter=", &["p/1", "p/2", "p/3"], &[]),
        ("prefix=none", &[], &[]),
        ("start-after=p&delimiter=/&prefix=p", &[], &["p/"]),
        ("start-after=p/1&prefix=p", &["p/2", "p/3"], &[]),
        ("start-after=r&delimiter=/", &["x\u{2}y"], &["ü/"]),
        ("start-after=z&max-keys=5&prefix=a", &[], &[]),
        ("max-keys=0", &[], &[]),
    ] {
        let document = list(&world, &format!("list-type=2&{query}")).await;
        assert_eq!(texts(&document, "Contents/Key"), keys, "{query}");
        assert_eq!(texts(&document, "CommonPrefixes/Prefix"), groups, "{query}");
        assert_eq!(texts(&document, "IsTruncated"), ["false"], "{query}");
    }
}

#[tokio::test]
async fn foreign_tokens_are_refused() {
    let world = filled().await;
    for token in ["", "p/1", "cC8x"] {
        let reply = world.send(Ask::get(&format!("/lake?list-type=2&continuation-token={token}"))).await;
        let reply = reply.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
        assert!(reply.error().ends_with("The continuation token provided is incorrect"));
    }
}

#[tokio::test]
async fn the_one_version_of_each_object_is_listed() {
    let world = filled().await;
    let first = world.send(Ask::get("/lake?versions&prefix=p/&max-keys=2")).await.document("ListVersionsResult");
    assert_eq!(texts(&first, "Version/Key"), ["p/1", "p/2"]);
    assert_eq!(texts(&first, "Version/VersionId"), ["null", "null"]);
    assert_eq!(texts(&first, "Version/IsLatest"), ["true", "true"]);
    assert_eq!(texts(&first, "NextKeyMarker"), ["p/2"]);
    assert_eq!(texts(&first, "NextVersionIdMarker"), ["null"]);
    let second = "/lake?versions&prefix=p/&max-keys=2&key-marker=p/2&version-id-marker=null";
    let second = world.send(Ask::get(second)).await.document("ListVersionsResult");
    assert_eq!(texts(&second, "Version/Key"), ["p/3"]);
    assert_eq!(texts(&second, "IsTruncated"), ["false"]);
    let grouped = world.send(Ask::get("/lake?versions&delimiter=/&prefix=p")).await.document("ListVersionsResult");
    assert_eq!(texts(&grouped, "CommonPrefixes/Prefix"), ["p/"]);
    let negative = world.send(Ask::get("/lake?versions&max-keys=-1")).await;
    assert_eq!(negative.error(), "400 InvalidArgument: max-keys cannot be negative");
}
