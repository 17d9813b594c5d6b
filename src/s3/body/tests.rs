//! Bodies as connections deliver them.

use super::*;
use futures_util::stream;
use http::HeaderValue;
use http_body::Frame;
use http_body_util::StreamBody;

type Delivery = Result<Frame<Bytes>, &'static str>;

/// What a connection delivers, frame by frame.
fn frames(frames: Vec<Delivery>) -> impl http_body::Body<Data = Bytes, Error = &'static str> + Unpin {
    StreamBody::new(stream::iter(frames))
}

fn data(pieces: &[&'static str]) -> Vec<Delivery> {
    pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))).collect()
}

fn plan(headers: &[(&'static str, &'static str)], payload: &Payload) -> Result<BodyPlan, Error> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_static(value));
    }
    BodyPlan::new(&map, payload, None, 100)
}

async fn read(
    headers: &[(&'static str, &'static str)],
    payload: &Payload,
    deliveries: Vec<Delivery>,
) -> Result<(Bytes, Option<Trailer>), Error> {
    RequestBody::new(frames(deliveries), plan(headers, payload)?).collect().await
}

const CHUNKED: &[(&str, &str)] =
    &[("x-amz-decoded-content-length", "5"), ("x-amz-trailer", "x-amz-checksum-crc64nvme")];

#[tokio::test]
async fn a_plain_body_is_handed_on_as_it_comes() {
    for payload in [Payload::Unsigned, Payload::of_bytes(b"hello")] {
        for headers in [&[("content-length", "5")][..], &[]] {
            let (bytes, trailer) = read(headers, &payload, data(&["he", "", "llo"])).await.expect("whole");
            assert_eq!((&bytes[..], trailer), (&b"hello"[..], None));
        }
    }
    let (bytes, _) = read(&[], &Payload::of_bytes(b""), vec![]).await.expect("empty");
    assert!(bytes.is_empty());
}

#[tokio::test]
async fn an_upper_case_hash_is_the_same_hash() {
    let digits = Payload::of_bytes(b"hello").as_str().to_ascii_uppercase();
    let payload = Payload::parse(digits.as_bytes()).expect("a hash");
    read(&[], &payload, data(&["hello"])).await.expect("whole");
}

#[tokio::test]
async fn a_body_of_another_hash_is_refused_with_both() {
    let error = read(&[], &Payload::of_bytes(b"hello"), data(&["hallo"])).await.expect_err("another body");
    let details = error.details();
    assert_eq!(
        (error.code(), error.status().as_u16(), error.to_string().as_str()),
        (
            "XAmzContentSHA256Mismatch",
            400,
            "The provided 'x-amz-content-sha256' header does not match what was computed."
        )
    );
    assert_eq!(details[0], ("ClientComputedContentSHA256", Payload::of_bytes(b"hello").as_str().to_owned()));
    assert_eq!(details[1], ("S3ComputedContentSHA256", Payload::of_bytes(b"hallo").as_str().to_owned()));
}

#[tokio::test]
async fn a_chunked_body_needs_no_content_length_and_gives_its_trailer() {
    let body = "5\r\nhello\r\n0\r\nx-amz-checksum-crc64nvme:M3eFcAZSQlc=\r\n\r\n";
    let payload = Payload::ChunkedUnsignedTrailer;
    assert_eq!(plan(CHUNKED, &payload).expect("a plan").length(), Some(5));
    for at in 0..=body.len() {
        let (left, right) = body.split_at(at);
        let (bytes, trailer) = read(CHUNKED, &payload, data(&[left, right])).await.expect("whole");
        let trailer = trailer.expect("a trailer");
        assert_eq!((&bytes[..], trailer.name.as_str()), (&b"hello"[..], "x-amz-checksum-crc64nvme"));
        assert_eq!(trailer.value, "M3eFcAZSQlc=");
    }
}

#[tokio::test]
async fn a_body_that_stops_short_is_incomplete() {
    let chunked = Payload::ChunkedUnsignedTrailer;
    let mut broken = data(&["5\r\nhel"]);
    broken.push(Err("connection reset"));
    for (headers, payload, deliveries) in [
        (&[("content-length", "6")][..], Payload::Unsigned, data(&["hello"])),
        (&[], Payload::Unsigned, vec![Err("connection reset")]),
        (CHUNKED, chunked, data(&["5\r\nhello\r\n0\r\n"])),
        (CHUNKED, chunked, vec![]),
        (CHUNKED, chunked, broken),
        (CHUNKED, chunked, data(&["4\r\nhell\r\n0\r\n\r\n"])),
    ] {
        let error = read(headers, &payload, deliveries).await.expect_err("incomplete");
        assert_eq!((error.code(), error.status().as_u16()), ("IncompleteBody", 400), "{error:?}");
    }
}

#[tokio::test]
async fn bytes_unread_or_wrong_cannot_be_finished() {
    let body = RequestBody::new(frames(data(&["hello"])), plan(&[], &Payload::Unsigned).expect("a plan"));
    assert_eq!(body.finish(), Err(Error::Aborted));
    let mut body = RequestBody::new(frames(vec![Err("reset")]), plan(&[], &Payload::Unsigned).expect("a plan"));
    assert_eq!(body.next().await, Some(Err(Error::Aborted)));
    assert_eq!(body.next().await, None);
    assert_eq!(body.finish(), Err(Error::Aborted));
}

#[tokio::test]
async fn a_body_too_large_is_refused_as_soon_as_that_is_known() {
    for (headers, payload) in [
        (&[("content-length", "101")][..], Payload::Unsigned),
        (&[("x-amz-decoded-content-length", "101")], Payload::ChunkedUnsignedTrailer),
    ] {
        let error = plan(headers, &payload).err().expect("too large");
        assert_eq!(error, Error::EntityTooLarge { proposed_bytes: 101, max_bytes: 100 });
        assert_eq!(error.details(), [("ProposedSize", "101".to_owned()), ("MaxSizeAllowed", "100".to_owned())]);
    }
    let endless = StreamBody::new(stream::repeat_with(|| Delivery::Ok(Frame::data(Bytes::from_static(&[0; 60])))));
    let body = RequestBody::new(endless, plan(&[], &Payload::Unsigned).expect("a plan"));
    let outcome = body.collect().await;
    assert_eq!(outcome, Err(Error::EntityTooLarge { proposed_bytes: 120, max_bytes: 100 }));
}

#[tokio::test]
async fn a_silent_client_is_given_up() {
    let mut plan = plan(&[], &Payload::Unsigned).expect("a plan");
    plan.idle_timeout = Duration::from_millis(1);
    let mut body = RequestBody::new(StreamBody::new(stream::pending::<Delivery>()), plan);
    let error = body.next().await.expect("an answer").expect_err("silence");
    assert_eq!((error.code(), error.status().as_u16()), ("RequestTimeout", 400));
}

#[test]
fn a_plan_says_what_a_request_lacks() {
    let chunked = Payload::ChunkedUnsignedTrailer;
    for value in ["", "abc", "12x", "-1", "+5", "99999999999999999999"] {
        let error = plan(&[("x-amz-decoded-content-length", value)], &chunked).err();
        assert_eq!(error, Some(Error::MissingContentLength), "{value}");
    }
    let missing = plan(&[("content-length", "5")], &chunked).err().expect("no decoded length");
    assert_eq!((missing.code(), missing.status().as_u16()), ("MissingContentLength", 411));
    assert_eq!(plan(&[], &Payload::Unsigned).expect("a plan").require_length(), Err(Error::MissingContentLength));
    for payload in [Payload::ChunkedSigned, Payload::ChunkedSignedTrailer] {
        let error = plan(&[("x-amz-decoded-content-length", "5")], &payload).err().expect("no signer");
        assert_eq!((error.code(), error.status().as_u16()), ("InvalidRequest", 400));
    }
    let trailer = &[("x-amz-decoded-content-length", "5"), ("x-amz-trailer", "x-amz-checksum-crc16")];
    let error = plan(trailer, &chunked).err().expect("an unknown checksum");
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("InvalidRequest", "The value specified in the x-amz-trailer header is not supported")
    );
}
