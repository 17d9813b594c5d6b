//! Requests sent again because their answer was lost: an SDK gives all tries of one call the same id.

use super::*;

const FAILED: &str = "PreconditionFailed";

fn put(key: &str, size: usize, condition: (&str, &str), call: &str) -> Ask {
    let ask = Ask::put(&format!("/{BUCKET}/{key}")).header(condition.0, condition.1);
    ask.header("amz-sdk-invocation-id", call).header("amz-sdk-request", "attempt=1; max=3").body(vec![7u8; size])
}

#[tokio::test]
async fn a_conditional_put_sent_again_gets_the_first_answer() {
    // Large ones are judged before their body is read, too.
    for size in [5, 2 << 20] {
        let world = World::new().await;
        let absent = ("if-none-match", "*");
        let first = world.send(put("k", size, absent, "a")).await.expect_status(StatusCode::OK);
        let again = world.send(put("k", size, absent, "a")).await.expect_status(StatusCode::OK);
        for header in ["etag", "x-amz-object-size", "x-amz-checksum-crc64nvme"] {
            assert_eq!(again.header(header), first.header(header), "{size}: {header}");
        }
        let refused = |ask| async { world.send(ask).await.expect_error(StatusCode::PRECONDITION_FAILED, FAILED) };
        refused(put("k", size, absent, "b")).await;
        refused(put("k", size + 1, absent, "a")).await;
        refused(Ask::put("/lake/k").header("if-none-match", "*").body(vec![7u8; size])).await;

        let change = ("if-match", first.header("etag"));
        let changed = world.send(put("k", size + 1, change, "c")).await.expect_status(StatusCode::OK);
        let again = world.send(put("k", size + 1, change, "c")).await.expect_status(StatusCode::OK);
        assert_eq!(again.header("etag"), changed.header("etag"));
        // The object is another's now.
        refused(put("k", size, absent, "a")).await;
        refused(put("k", size + 1, change, "d")).await;
    }
}

#[tokio::test]
async fn a_conditional_copy_sent_again_gets_the_first_answer() {
    let world = World::new().await;
    world.put("from", "hello").await;
    for algorithm in [None, Some("SHA256")] {
        let copy = |call: &str| {
            let to = format!("/lake/to{}", algorithm.unwrap_or_default());
            let ask = Ask::put(&to).header("x-amz-copy-source", "lake/from").header("if-none-match", "*");
            let ask = ask.header("amz-sdk-invocation-id", call);
            algorithm.into_iter().fold(ask, |ask, name| ask.header("x-amz-checksum-algorithm", name))
        };
        let first = world.send(copy("a")).await.document("CopyObjectResult");
        let again = world.send(copy("a")).await.document("CopyObjectResult");
        assert_eq!(texts(&again, "ETag"), texts(&first, "ETag"));
        assert_eq!(texts(&again, "LastModified"), texts(&first, "LastModified"));
        world.send(copy("b")).await.expect_error(StatusCode::PRECONDITION_FAILED, FAILED);
    }
}

#[tokio::test]
async fn a_conditional_completion_sent_again_gets_the_first_answer() {
    let world = World::new().await;
    let begun = world.send(Ask::post("/lake/k?uploads=")).await.document("InitiateMultipartUploadResult");
    let id = texts(&begun, "UploadId")[0].to_owned();
    let part = world.send(Ask::put(&format!("/lake/k?partNumber=1&uploadId={id}")).body("hello")).await;
    let part = part.expect_status(StatusCode::OK);
    let complete = |call: &str| {
        let etag = part.header("etag").trim_matches('"');
        let document = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
             </CompleteMultipartUpload>"
        );
        let ask = Ask::post(&format!("/lake/k?uploadId={id}")).header("if-none-match", "*").body(document);
        ask.header("amz-sdk-invocation-id", call)
    };
    let first = world.send(complete("a")).await.document("CompleteMultipartUploadResult");
    let again = world.send(complete("a")).await.document("CompleteMultipartUploadResult");
    assert_eq!(texts(&again, "ETag"), texts(&first, "ETag"));
    world.put("k", "other").await;
    world.send(complete("a")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
}
