//! Bodies as clients send them, cut anywhere, and what must be refused.

use super::super::sigv4::{Payload, Signer};
use super::*;
use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

const CRC64: &[u8] = b"x-amz-checksum-crc64nvme";

/// How a test's body is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Chunks,
    ChunksAndTrailer,
}

impl Kind {
    fn signing(self) -> Signing {
        match self {
            Kind::Unsigned => Signing::Unsigned,
            Kind::Chunks => Signing::Chunks(signer()),
            Kind::ChunksAndTrailer => Signing::ChunksAndTrailer(signer()),
        }
    }
}

/// The chain of a request signed in May 2013.
fn signer() -> ChunkSigner {
    let signer = Signer { access_key_id: "a", secret: "s", security_token: None, region: "r", service: "s3" };
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("h"));
    signer.sign("PUT", "/b/k", "", &mut headers, &Payload::ChunkedSigned, 1_369_353_600_000).expect("a valid header")
}

/// A body of these chunks, as a client makes it; the trailer is a whole line without its end.
fn encode(kind: Kind, chunks: &[&[u8]], trailer: Option<&str>) -> Vec<u8> {
    let mut signer = signer();
    let mut body = Vec::new();
    for chunk in chunks.iter().copied().chain([&b""[..]]) {
        body.extend_from_slice(format!("{:x}", chunk.len()).as_bytes());
        if kind != Kind::Unsigned {
            let signature = signer.chunk(digest(&SHA256, chunk).as_ref());
            body.extend_from_slice(format!(";chunk-signature={}", hex_str(&signature)).as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(chunk);
        body.extend_from_slice(if chunk.is_empty() { b"" } else { b"\r\n" });
    }
    if let Some(trailer) = trailer {
        body.extend_from_slice(format!("{trailer}\r\n").as_bytes());
        if kind == Kind::ChunksAndTrailer {
            let signature = signer.trailer(digest(&SHA256, format!("{trailer}\n").as_bytes()).as_ref());
            body.extend_from_slice(format!("x-amz-trailer-signature:{}\r\n", hex_str(&signature)).as_bytes());
        }
    }
    body.extend_from_slice(b"\r\n");
    body
}

type Outcome = Result<(Vec<u8>, Option<String>), Error>;

/// Feeds the pieces one by one; answers the object and the trailer's value.
fn decode<'a>(
    kind: Kind,
    decoded_bytes: usize,
    announced: Option<&[u8]>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    let announced = announced.map(TrailerName::parse).transpose()?;
    let mut decoder = Decoder::new(kind.signing(), decoded_bytes as u64, announced);
    let mut object = Vec::new();
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(bytes) = decoder.decode(&mut input)? {
            assert!(!bytes.is_empty());
            object.extend_from_slice(&bytes);
            assert!(object.len() <= decoded_bytes, "more bytes than announced");
        }
        assert!(input.is_empty());
        assert!(decoder.line.capacity() <= LINE_BYTES_MAX, "the line buffer outgrew its bound");
    }
    Ok((object, decoder.finish()?.map(|trailer| trailer.value)))
}

/// Whole, and byte by byte: both must agree.
fn check(kind: Kind, decoded_bytes: usize, announced: Option<&[u8]>, body: &[u8]) -> Outcome {
    let whole = decode(kind, decoded_bytes, announced, [body]);
    assert_eq!(decode(kind, decoded_bytes, announced, body.chunks(1)), whole, "{}", body.escape_ascii());
    whole
}

fn unsigned(decoded_bytes: usize, announced: Option<&str>, body: &str) -> Outcome {
    check(Kind::Unsigned, decoded_bytes, announced.map(str::as_bytes), body.as_bytes())
}

fn object(bytes: &str, trailer: Option<&str>) -> Outcome {
    Ok((bytes.as_bytes().to_vec(), trailer.map(str::to_owned)))
}

#[test]
fn framing_is_not_content() {
    let crc64 = Some("x-amz-checksum-crc64nvme");
    for (length, announced, body, expected) in [
        (
            5,
            crc64,
            "5\r\nhello\r\n0\r\nx-amz-checksum-crc64nvme:M3eFcAZSQlc=\r\n\r\n",
            object("hello", Some("M3eFcAZSQlc=")),
        ),
        (5, None, "5\r\nhello\r\n0\r\n\r\n", object("hello", None)),
        (0, None, "0\r\n\r\n", object("", None)),
        (5, None, "0005;extension=1\r\nhello\r\n000\r\n\r\n", object("hello", None)),
        (10, None, "A\r\ndummy data\r\n0\r\n\r\n", object("dummy data", None)),
        (7, None, "7\r\n5\r\nhi\r\n\r\n0\r\n\r\n", object("5\r\nhi\r\n", None)),
        (
            5,
            Some("X-Amz-Checksum-CRC32"),
            "5\r\nhello\r\n0\r\nX-Amz-Checksum-Crc32: NhCmhg== \r\n\r\n",
            object("hello", Some("NhCmhg==")),
        ),
        (
            5,
            Some("x-amz-checksum-sha1"),
            "5\r\nhello\r\n0\r\nx-amz-checksum-sha1:qvTGHdzF6KLavt4PO0gs2a6pQ00=\r\n\r\n\r\n",
            object("hello", Some("qvTGHdzF6KLavt4PO0gs2a6pQ00=")),
        ),
    ] {
        assert_eq!(unsigned(length, announced, body), expected, "{body:?}");
    }
}

#[test]
fn signed_bodies_of_every_kind_are_decoded() {
    let large = vec![b'a'; 65_536];
    let crc = "x-amz-checksum-crc32c:sOO8/Q==";
    for (kind, announced, trailer) in [
        (Kind::Unsigned, Some(&b"x-amz-checksum-crc32c"[..]), Some(crc)),
        (Kind::Chunks, None, None),
        (Kind::ChunksAndTrailer, Some(b"x-amz-checksum-crc32c"), Some(crc)),
    ] {
        for chunks in [vec![], vec![&b"hello"[..]], vec![&large, &large[..1024]], vec![&large[..8192], b"x"]] {
            let whole = chunks.concat();
            let body = encode(kind, &chunks, trailer);
            let expected = Ok((whole.clone(), trailer.map(|_| "sOO8/Q==".to_owned())));
            assert_eq!(decode(kind, whole.len(), announced, [&body[..]]), expected, "{kind:?}");
            if body.len() < 20_000 {
                assert_eq!(decode(kind, whole.len(), announced, body.chunks(1)), expected, "{kind:?}");
            }
        }
    }
}

#[test]
fn a_body_cut_in_two_anywhere_is_the_same_body() {
    let body = encode(Kind::ChunksAndTrailer, &[b"hello"], Some("x-amz-checksum-crc64nvme:M3eFcAZSQlc="));
    for at in 0..=body.len() {
        let (left, right) = body.split_at(at);
        let outcome = decode(Kind::ChunksAndTrailer, 5, Some(CRC64), [left, right]);
        assert_eq!(outcome, object("hello", Some("M3eFcAZSQlc=")), "cut at {at}");
    }
}

#[test]
fn a_body_that_ends_early_is_incomplete_wherever_it_ends() {
    for (kind, announced, trailer) in [
        (Kind::Unsigned, None, None),
        (Kind::Chunks, None, None),
        (Kind::ChunksAndTrailer, Some(CRC64), Some("x-amz-checksum-crc64nvme:M3eFcAZSQlc=")),
    ] {
        let body = encode(kind, &[b"hello"], trailer);
        for end in 0..body.len() {
            assert_eq!(decode(kind, 5, announced, [&body[..end]]), Err(Error::Truncated), "{kind:?} to {end}");
        }
    }
}

#[test]
fn broken_framing_is_an_incomplete_body() {
    for body in [
        "A\ndummy data\r\n0\r\n\r\n",
        "A\r\ndummy data0\r\n\r\n",
        "A\r\nXYZ\r\ndummy data\r\n0\r\n\r\n",
        "B\r\ndummy data\r\n0\r\n\r\n",
        "A\r\ndummy data\r\n0\r\n",
        "A\r\ndummy data\r\n0\r\nx-amz-checksum-crc64nvme:dPVWc2vU1+Q=\r\n",
        "A\r\n",
        "A\r\nA\r\ndummy data\r\n0\r\n\r\n",
        "invalid_chunk_size\r\ndummy data\r\n0\r\nx-amz-checksum-crc64nvme:dPVWc2vU1+Q=\r\n\r\n",
        "A\r\ndummy data\r\nJ\r\nx-amz-checksum-crc64nvme:dPVWc2vU1+Q=\r\n\r\n",
        "\r\n",
        "-1\r\n",
        "+A\r\ndummy data\r\n0\r\n\r\n",
        "10000000000000000\r\ndummy data\r\n0\r\n\r\n",
        "A\r\ndummy data\r\n0\r\nx-amz-checksum-crc64nvme:dPVWc2vU1+Q=\r\nmore:1\r\n\r\n",
        "A\r\ndummy data\r\n0\r\nx-amz-checksum-crc64nvme:dPVWc2vU1+Q=\r\n\r\nx",
        "A\r\ndummy data\r\n0\r\nx-amz-checksum-crc64nvme:dPVWc2vU1+Q=\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
    ] {
        assert_eq!(unsigned(10, Some("x-amz-checksum-crc64nvme"), body), Err(Error::Truncated), "{body:?}");
    }
}

#[test]
fn a_line_without_end_is_refused_before_the_body_ends() {
    let mut decoder = Decoder::new(Signing::Unsigned, 10, None);
    let mut piece = Bytes::from("1".repeat(LINE_BYTES_MAX - 1));
    assert_eq!(decoder.decode(&mut piece), Ok(None));
    assert_eq!(decoder.decode(&mut Bytes::from_static(b"1")), Err(Error::Truncated));
}

#[test]
fn an_object_of_another_length_is_refused_without_a_byte_too_many() {
    for (length, announced, body) in [
        (5, None, "b\r\nabcdefghijk\r\n0\r\n\r\n"),
        (200, None, "b\r\nabcdefghijk\r\n0\r\n\r\n"),
        (
            128,
            Some("x-amz-checksum-crc64nvme"),
            "a\r\ndummy data\r\n0\r\nx-amz-checksum-crc64nvme:dPVWc2vU1+Q=\r\n\r\n",
        ),
        (7, Some("x-amz-checksum-crc64nvme"), "a\r\ndummy data\r\n0\r\nx-amz-checksum-sha256:e=\r\n\r\n"),
        (4, None, "5\r\nhello\r\n0\r\n\r\n"),
        (6, None, "5\r\nhello\r\n0\r\n\r\n"),
        (0, None, "5\r\nhello\r\n0\r\n\r\n"),
        (0, None, "ffffffffffffffff\r\nhello"),
    ] {
        assert_eq!(unsigned(length, announced, body), Err(Error::LengthMismatch), "{body:?}");
    }
    for length in [8, 12] {
        let body = encode(Kind::Chunks, &[&vec![b'a'; length]], None);
        assert_eq!(check(Kind::Chunks, 10, None, &body), Err(Error::LengthMismatch));
    }
}

#[test]
fn only_the_last_chunk_may_be_small() {
    for (sizes, expected) in [
        (&[8192, 8192, 100][..], None),
        (&[100], None),
        (&[10_000, 9500, 20], None),
        (&[8200, 8201, 10_000, 10], None),
        (&[100, 8192, 100], Some((1, 100))),
        (&[8192, 10, 100], Some((2, 10))),
        (&[10, 10, 10], Some((1, 10))),
        (&[10_000, 10, 8192, 8192], Some((2, 10))),
    ] {
        for kind in [Kind::Unsigned, Kind::Chunks] {
            let chunks: Vec<Vec<u8>> = sizes.iter().map(|size| vec![b'c'; *size]).collect();
            let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let whole = chunks.concat();
            let outcome = decode(kind, whole.len(), None, [&encode(kind, &chunks, None)[..]]);
            match expected {
                None => assert_eq!(outcome, Ok((whole, None)), "{sizes:?}"),
                Some((chunk, bytes)) => {
                    assert_eq!(outcome, Err(Error::ChunkTooSmall { chunk, bytes }), "{sizes:?}");
                }
            }
        }
    }
}

#[test]
fn what_trails_is_what_was_announced() {
    let crc64 = Some("x-amz-checksum-crc64nvme");
    let invalid = Error::InvalidTrailerValue { name: "x-amz-checksum-crc64nvme" };
    for (announced, trailer, error) in [
        (crc64, "", Error::MalformedTrailer),
        (crc64, ":M3eFcAZSQlc=\r\n", Error::MalformedTrailer),
        (None, "x-amz-checksum-crc64nvme:M3eFcAZSQlc=\r\n", Error::MalformedTrailer),
        (crc64, "invalid_trailer:M3eFcAZSQlc=\r\n", Error::MalformedTrailer),
        (crc64, "x-amz-checksum-crc32:NhCmhg==\r\n", Error::MalformedTrailer),
        (crc64, "x-amz-checksum-crc64nvme\r\n", Error::MalformedTrailer),
        (crc64, "x-amz-checksum-crc64nvme:invalid_checksum\r\n", invalid),
        (
            crc64,
            "x-amz-checksum-crc64nvme:NhCmhg==\r\n",
            Error::InvalidTrailerValue { name: "x-amz-checksum-crc64nvme" },
        ),
        (crc64, "x-amz-checksum-crc64nvme:\r\n", Error::InvalidTrailerValue { name: "x-amz-checksum-crc64nvme" }),
    ] {
        assert_eq!(unsigned(5, announced, &format!("5\r\nhello\r\n0\r\n{trailer}\r\n")), Err(error), "{trailer:?}");
    }
    for (announced, trailer) in [
        (Some(CRC64), Some("x-amz-invalid:invalid")),
        (Some(CRC64), Some("")),
        (Some(CRC64), None),
        (Some(b"x-amz-checksum-sha1"), Some("x-amz-checksum-crc32:QWaN2w==")),
        (None, Some("x-amz-checksum-crc32:NhCmhg==")),
        (None, None),
    ] {
        let body = encode(Kind::ChunksAndTrailer, &[b"dummy data"], trailer);
        assert_eq!(check(Kind::ChunksAndTrailer, 10, announced, &body), Err(Error::MalformedTrailer), "{trailer:?}");
    }
}

#[test]
fn every_checksum_name_of_s3_may_be_announced_and_no_other() {
    for name in ["crc32", "crc32c", "crc64nvme", "sha1", "sha256", "sha512", "md5", "xxhash64", "xxhash3", "xxhash128"]
    {
        let name = format!("x-amz-checksum-{name}");
        assert_eq!(TrailerName::parse(name.as_bytes()).expect("a known name").as_str(), name);
        let body = encode(Kind::ChunksAndTrailer, &[b"dummy data"], Some(&format!("{name}:invalid")));
        let outcome = check(Kind::ChunksAndTrailer, 10, Some(name.as_bytes()), &body);
        let Err(Error::InvalidTrailerValue { name: refused }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(refused, name);
    }
    for name in ["", "x-amz-checksum-", "x-amz-checksum-crc16", "crc32", "x-amz-checksum-crc32,x-amz-checksum-sha1"] {
        assert_eq!(TrailerName::parse(name.as_bytes()), Err(Error::UnsupportedTrailer));
    }
}

/// Offsets are of `12;chunk-signature=…`: size 0..2, name 3..19, signature 19..83, bytes 85..103, second line 105..187.
#[test]
fn a_signed_body_with_broken_framing_is_incomplete() {
    let good = encode(Kind::Chunks, &[b"dummy data paylaod"], None);
    assert_eq!(good.len(), 191);
    for (from, to, put) in [
        (0, 2, &b"j"[..]),
        (83, 85, b""),
        (83, 85, b"dd"),
        (103, 105, b""),
        (103, 105, b"something invalid"),
        (187, 191, b"bbbb"),
        (190, 191, b"s"),
        (2, 3, b":"),
        (3, 19, b""),
        (19, 24, b""),
    ] {
        let mut body = good.clone();
        body.splice(from..to, put.iter().copied());
        assert_eq!(check(Kind::Chunks, 18, None, &body), Err(Error::Truncated), "{from}..{to}");
    }
}

/// Offsets are of the trailer: checksum line 177..216, signature line 216..306, empty line 306..308.
#[test]
fn a_signed_trailer_with_broken_framing_is_incomplete() {
    let good = encode(Kind::ChunksAndTrailer, &[b"abcdefg"], Some("x-amz-checksum-crc64nvme:SmzZ/LTp1CA="));
    assert_eq!(good.len(), 308);
    for (from, to, put) in [
        (175, 176, &b"k"[..]),
        (175, 177, b"cc"),
        (215, 216, b"bcd"),
        (220, 223, b"invalid"),
        (230, 235, b"abcd"),
        (241, 245, b"abcde"),
        (306, 308, b"pp"),
        (304, 308, b"erty"),
    ] {
        let mut body = good.clone();
        body.splice(from..to, put.iter().copied());
        assert_eq!(check(Kind::ChunksAndTrailer, 7, Some(CRC64), &body), Err(Error::Truncated), "{from}..{to}");
    }
}

#[test]
fn a_flipped_bit_anywhere_in_a_signed_body_is_refused() {
    let trailer = "x-amz-checksum-crc64nvme:SmzZ/LTp1CA=";
    for (kind, announced, trailer) in [(Kind::Chunks, None, None), (Kind::ChunksAndTrailer, Some(CRC64), Some(trailer))]
    {
        let good = encode(kind, &[&[b'a'; 8192], b"abcdefg"], trailer);
        for at in 0..good.len() {
            for bit in [0, 5] {
                let mut body = good.clone();
                body[at] ^= 1 << bit;
                let outcome = decode(kind, 8199, announced, [&body[..]]);
                // Trailers' names are the same in either case: 24 bytes from 131 before the end, 23 from 92.
                let from_end = good.len() - at;
                let in_name = (108..=131).contains(&from_end) || (70..=92).contains(&from_end);
                let case_only =
                    kind == Kind::ChunksAndTrailer && in_name && bit == 5 && body.eq_ignore_ascii_case(&good);
                assert!(outcome.is_err() || case_only, "{kind:?}: bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn chunks_cannot_change_places() {
    let (first, second) = (vec![b'a'; 8192], vec![b'b'; 8192]);
    let body = encode(Kind::Chunks, &[&first, &second], None);
    let line = body.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    let chunk = line + 8192 + 2;
    let swapped = [&body[chunk..2 * chunk], &body[..chunk], &body[2 * chunk..]].concat();
    assert_eq!(decode(Kind::Chunks, 16_384, None, [&swapped[..]]), Err(Error::SignatureDoesNotMatch));
}

#[test]
fn a_chunk_larger_than_memory_streams() {
    let mut decoder = Decoder::new(Signing::Unsigned, u64::MAX, None);
    let mut line = Bytes::from_static(b"ffffffffffffffff\r\n");
    assert_eq!(decoder.decode(&mut line), Ok(None));
    let piece = Bytes::from(vec![7; 65_536]);
    for _ in 0..100 {
        let out = decoder.decode(&mut piece.clone()).expect("in order").expect("bytes");
        assert_eq!(out.as_ptr(), piece.as_ptr(), "object bytes must not be copied");
        assert_eq!(out.len(), piece.len());
    }
    assert_eq!(decoder.finish(), Err(Error::Truncated));
}

/// Cuts of a body as the network may make them.
fn cut<'a>(body: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = body;
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, tail) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_make_no_difference(
        sizes in proptest::collection::vec(8192_usize..12_000, 0..3),
        last in 0_usize..300,
        cuts in proptest::collection::vec(0_usize..3000, 0..30),
        kind in prop_oneof![Just(Kind::Unsigned), Just(Kind::Chunks), Just(Kind::ChunksAndTrailer)],
    ) {
        let chunks: Vec<Vec<u8>> =
            sizes.iter().copied().chain([last]).filter(|size| *size > 0).map(|size| (0..size).map(|at| at.to_le_bytes()[0]).collect()).collect();
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let trailer = (kind != Kind::Chunks).then_some("x-amz-checksum-crc32:NhCmhg==");
        let announced = trailer.map(|_| &b"x-amz-checksum-crc32"[..]);
        let body = encode(kind, &chunks, trailer);
        let whole = chunks.concat();
        let outcome = decode(kind, whole.len(), announced, cut(&body, &cuts));
        prop_assert_eq!(outcome, Ok((whole, trailer.map(|_| "NhCmhg==".to_owned()))));
    }

    #[test]
    fn garbage_never_panics_and_cuts_do_not_change_the_outcome(
        body in proptest::collection::vec(prop_oneof![
            Just(b'\r'), Just(b'\n'), Just(b'0'), Just(b'5'), Just(b';'), Just(b':'), Just(b'a'), any::<u8>()
        ], 0..200),
        length in 0_usize..20,
        cuts in proptest::collection::vec(0_usize..20, 0..20),
        kind in prop_oneof![Just(Kind::Unsigned), Just(Kind::Chunks), Just(Kind::ChunksAndTrailer)],
    ) {
        let whole = decode(kind, length, Some(CRC64), [&body[..]]);
        prop_assert_eq!(decode(kind, length, Some(CRC64), cut(&body, &cuts)), whole);
    }
}
