//! Conditional requests, alone and racing.

use super::*;

const ETAG: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

#[tokio::test]
async fn reads_obey_their_conditions() {
    let world = World::new().await;
    world.put("k", "hello").await;
    let get = |name: &str, value: &str| world.send(Ask::get("/lake/k").header(name, value));
    get("if-match", ETAG).await.expect_status(StatusCode::OK);
    get("if-match", "\"x\"").await.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    get("if-none-match", "\"x\"").await.expect_status(StatusCode::OK);
    let unchanged = get("if-none-match", ETAG).await.expect_status(StatusCode::NOT_MODIFIED);
    assert!(unchanged.body.is_empty());
    assert_eq!(unchanged.header("etag"), ETAG);
    let past = "Mon, 01 Jan 2001 00:00:00 GMT";
    get("if-modified-since", past).await.expect_status(StatusCode::OK);
    let stale = get("if-unmodified-since", past).await;
    stale.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    let head = world.send(Ask::head("/lake/k").header("if-none-match", ETAG)).await;
    head.expect_status(StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn writes_obey_their_conditions() {
    let world = World::new().await;
    for size in [5, 2 << 20] {
        let key = format!("/lake/k{size}");
        let put = |name: &str, value: &str| {
            let body = if size == 5 { Bytes::from_static(b"hello") } else { Bytes::from(vec![7u8; size]) };
            world.send(Ask::put(&key).header(name, value).body(body))
        };
        put("if-match", ETAG).await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
        let made = put("if-none-match", "*").await.expect_status(StatusCode::OK);
        let etag = made.header("etag").to_owned();
        put("if-none-match", "*").await.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        put("if-match", "\"x\"").await.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        put("if-match", &etag).await.expect_status(StatusCode::OK);
        put("if-match", etag.trim_matches('"')).await.expect_status(StatusCode::OK);
        put("if-none-match", &etag).await.expect_error(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
    }
    let both = Ask::put("/lake/k5").header("if-match", ETAG).header("if-none-match", "*").body("x");
    world.send(both).await.expect_error(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
}

#[tokio::test]
async fn deletions_obey_their_conditions() {
    let world = World::new().await;
    let delete = |name: &str, value: &str| world.send(Ask::delete("/lake/k").header(name, value));
    let failed = "PreconditionFailed";
    for (name, wrong, right) in [
        ("if-match", "\"x\"", ETAG),
        ("if-match", "x", "5d41402abc4b2a76b9719d911017c592"),
        ("if-match", "x", "*"),
        ("x-amz-if-match-size", "6", "5"),
    ] {
        world.put("k", "hello").await;
        delete(name, wrong).await.expect_error(StatusCode::PRECONDITION_FAILED, failed);
        assert_eq!(world.get("k").await.body, "hello");
        delete(name, right).await.expect_status(StatusCode::NO_CONTENT);
        world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    }
    delete("if-match", "*").await.expect_error(StatusCode::PRECONDITION_FAILED, failed);
    let modified = world.put("k", "hello").await;
    assert_eq!(modified.status, StatusCode::OK);
    let date = world.get("k").await.header("last-modified").to_owned();
    let other = delete("x-amz-if-match-last-modified-time", "Mon, 01 Jan 2001 00:00:00 GMT").await;
    other.expect_error(StatusCode::PRECONDITION_FAILED, failed);
    delete("x-amz-if-match-last-modified-time", &date).await.expect_status(StatusCode::NO_CONTENT);
}

/// Sends `writers` bodies at once under one condition; the answers, and the etags of those that won.
async fn race(world: &World, condition: (&'static str, String), size: usize) -> Vec<String> {
    const WRITERS: u8 = 32;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let front = world.front.clone();
        let ask = Ask::put("/lake/race").header(condition.0, &condition.1);
        let mut request = ask.body(vec![writer; size]).signed(SECRET);
        request.headers_mut().insert("content-length", HeaderValue::from(size));
        tasks.spawn(async move { front.handle(request.map(Full::new)).await });
    }
    let replies = tasks.join_all().await;
    let lost = replies.iter().filter(|reply| reply.status() == StatusCode::PRECONDITION_FAILED).count();
    let won = replies.iter().filter(|reply| reply.status() == StatusCode::OK);
    let won: Vec<String> = won.map(|reply| reply.headers()["etag"].to_str().expect("text").to_owned()).collect();
    assert_eq!(lost + won.len(), usize::from(WRITERS));
    won
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_racing_writers_wins() {
    for size in [1, 1024, 300 << 10] {
        let world = World::new().await;
        let won = race(&world, ("if-none-match", "*".to_owned()), size).await;
        assert_eq!(won.len(), 1, "{size}");
        assert_eq!(world.get("race").await.header("etag"), won[0]);
        let etag = won[0].clone();
        let won = race(&world, ("if-match", etag.clone()), size).await;
        // A writer that stores the very bytes that are there leaves the condition of all others true.
        let changed = won.iter().filter(|winner| **winner != etag).count();
        assert_eq!(changed, 1, "{size}");
        assert_eq!(world.get("race").await.header("etag"), won.iter().find(|winner| **winner != etag).expect("one"));
    }
}
