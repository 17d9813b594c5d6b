//! AWS's published examples, what else must be accepted, and that garbage does no harm.

mod refusals;

use super::*;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// 2013-05-24T00:00:00Z, the time of all of AWS's examples.
const MAY_24_MS: i64 = 1_369_353_600_000;
const MINUTE_MS: i64 = 60_000;

/// A request as a server receives it.
#[derive(Clone)]
struct Sent {
    method: String,
    path: String,
    query: String,
    headers: HeaderMap,
}

impl Sent {
    fn new(method: &str, path: &str, query: &str, headers: &[(&str, &str)]) -> Sent {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::try_from(*name).expect("a name"),
                HeaderValue::from_bytes(value.as_bytes()).expect("a value"),
            );
        }
        Sent { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers: map }
    }

    fn get() -> Sent {
        Sent::new("GET", "/b/k", "", &[("host", "s3.example")])
    }

    fn request(&self) -> Request<'_> {
        Request { method: &self.method, path: &self.path, query: &self.query, headers: &self.headers, authority: None }
    }

    fn signed(mut self, payload: &Payload) -> Sent {
        let (method, path, query) = (self.method.clone(), self.path.clone(), self.query.clone());
        signer().sign(&method, &path, &query, &mut self.headers, payload, MAY_24_MS).expect("a valid header");
        self
    }

    fn presigned(mut self, expires_s: u32) -> Sent {
        self.query = signer().presign(&self.method, &self.path, &self.query, &self.headers, expires_s, MAY_24_MS);
        self
    }

    fn with(mut self, name: &'static str, value: &str) -> Sent {
        self.headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        self
    }

    /// The signature in the header or the query.
    fn signature(&self) -> String {
        let authorization = Authorization::parse(&self.request(), SERVICE_S3).expect("well-formed").expect("signed");
        let key = SigningKey::derive("another secret", "20130524", "us-east-1", SERVICE_S3);
        let payload = authorization.payload(&self.request()).expect("a payload");
        match authorization.verify(&self.request(), &key, &payload) {
            Err(Error::SignatureDoesNotMatch(mismatch)) => mismatch.signature_provided,
            other => panic!("another secret signs the same: {other:?}"),
        }
    }
}

fn signer() -> Signer<'static> {
    Signer { access_key_id: KEY_ID, secret: SECRET, security_token: None, region: "us-east-1", service: SERVICE_S3 }
}

/// All that a server does before it serves the request.
fn authenticate(sent: &Sent, now_ms: i64) -> Result<Authorization, Error> {
    let request = sent.request();
    let authorization = Authorization::parse(&request, SERVICE_S3)?.expect("the request is not anonymous");
    authorization.check_time(now_ms)?;
    let payload = authorization.payload(&request)?;
    let scope = &authorization.scope;
    let key = SigningKey::derive(SECRET, &scope.date, &scope.region, &scope.service);
    authorization.verify(&request, &key, &payload)?;
    Ok(authorization)
}

fn refused(sent: &Sent, now_ms: i64) -> String {
    match authenticate(sent, now_ms) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => format!("{} {}: {error}", error.status().as_u16(), error.code()),
    }
}

/// A request with these words in its `Authorization` header.
fn with_authorization(value: &str) -> Sent {
    Sent::get()
        .with("x-amz-date", "20130524T000000Z")
        .with("x-amz-content-sha256", EMPTY_SHA256)
        .with("authorization", value)
}

/// A good presigned request with one parameter replaced, or dropped.
fn with_parameter(name: &str, value: Option<&str>) -> Sent {
    let mut sent = Sent::get().presigned(3600);
    let mut found = false;
    let replaced: Vec<String> = sent
        .query
        .split('&')
        .filter_map(|parameter| {
            if parameter.split('=').next() != Some(name) {
                return Some(parameter.to_owned());
            }
            found = true;
            value.map(|value| format!("{name}={}", encode_component(value.as_bytes())))
        })
        .collect();
    assert!(found, "{name} is not in {}", sent.query);
    sent.query = replaced.join("&");
    sent
}

#[test]
fn aws_examples_are_reproduced_and_accepted() {
    let welcome = Payload::of_bytes(b"Welcome to Amazon S3.");
    let empty = Payload::of_bytes(b"");
    let host = ("host", "examplebucket.s3.amazonaws.com");
    let chunked = |extra: &[(&str, &str)]| {
        let headers = [
            ("host", "s3.amazonaws.com"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "66560"),
        ];
        Sent::new("PUT", "/examplebucket/chunkObject.txt", "", &[&headers[..], extra].concat())
    };
    let put = [host, ("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
    for (sent, payload, signature) in [
        (
            Sent::new("GET", "/test.txt", "", &[host, ("range", "bytes=0-9")]),
            empty,
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            Sent::new("PUT", "/test$file.text", "", &put),
            welcome,
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            Sent::new("GET", "/", "lifecycle", &[host]),
            empty,
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            Sent::new("GET", "/", "prefix=J&max-keys=2", &[host]),
            empty,
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
        (
            chunked(&[("content-length", "66824")]),
            Payload::ChunkedSigned,
            "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
        ),
        (
            chunked(&[("x-amz-trailer", "x-amz-checksum-crc32c")]),
            Payload::ChunkedSignedTrailer,
            "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
        ),
    ] {
        let sent = sent.signed(&payload);
        assert_eq!(sent.signature(), signature, "{}", sent.path);
        authenticate(&sent, MAY_24_MS).expect("accepted");
    }
}

#[test]
fn aws_presigned_example_is_reproduced_and_accepted() {
    let sent = Sent::new("GET", "/test.txt", "", &[("host", "examplebucket.s3.amazonaws.com")]).presigned(86_400);
    assert_eq!(
        sent.query,
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F\
         aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=\
         aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    );
    let authorization = authenticate(&sent, MAY_24_MS).expect("accepted");
    assert!(authorization.is_presigned());
    assert_eq!(authorization.payload(&sent.request()).expect("a payload"), Payload::Unsigned);
}

#[test]
fn aws_chunk_signatures_are_reproduced() {
    let key = SigningKey::derive(SECRET, "20130524", "us-east-1", SERVICE_S3);
    let digest = |bytes: &[u8]| aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let seed = |text: &str| text.as_bytes().try_into().expect("64 digits");
    let scope = Scope { date: "20130524".to_owned(), region: "us-east-1".to_owned(), service: SERVICE_S3.to_owned() };
    for (first, chunks, trailer) in [
        (
            "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
            [
                "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
                "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
                "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
            ],
            None,
        ),
        (
            "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
            [
                "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
                "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
                "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
            ],
            Some("d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"),
        ),
    ] {
        let mut signer = ChunkSigner::new(key.clone(), Timestamp::from_ms(MAY_24_MS), &scope, seed(first));
        for (size, signature) in [65_536, 1024, 0].into_iter().zip(chunks) {
            assert_eq!(hex_str(&signer.chunk(digest(&vec![b'a'; size]).as_ref())), signature);
        }
        if let Some(signature) = trailer {
            let lines = b"x-amz-checksum-crc32c:sOO8/Q==\n";
            assert_eq!(hex_str(&signer.trailer(digest(lines).as_ref())), signature);
        }
    }
}

#[test]
fn a_date_header_stands_in_for_the_amz_one() {
    let without_amz_date = |mut sent: Sent| {
        sent.headers.remove("x-amz-date");
        sent
    };
    for date in ["Fri, 24 May 2013 00:00:00 GMT", "20130524T000000Z"] {
        let request = Sent::get().with("date", date).with("x-amz-content-sha256", EMPTY_SHA256);
        let scope = "20130524/us-east-1/s3/aws4_request";
        let names = "date;host;x-amz-content-sha256";
        let canonical = canonical::request(&request.request(), SERVICE_S3, names, EMPTY_SHA256);
        let parsed = Scope { date: "20130524".into(), region: "us-east-1".into(), service: SERVICE_S3.into() };
        let text = canonical::string_to_sign(Timestamp::from_ms(MAY_24_MS), &parsed, &canonical);
        let signature = SigningKey::derive(SECRET, "20130524", "us-east-1", SERVICE_S3).sign(text.as_bytes());
        let value = format!(
            "AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, SignedHeaders={names}, Signature={}",
            hex_str(&signature)
        );
        authenticate(&without_amz_date(request.with("authorization", &value)), MAY_24_MS).expect("accepted");
    }
}

#[test]
fn a_header_signature_is_good_for_fifteen_minutes_around_its_time() {
    let sent = Sent::get().signed(&Payload::of_bytes(b""));
    for minutes in [-15, -14, 0, 14, 15] {
        assert_eq!(refused(&sent, MAY_24_MS + minutes * MINUTE_MS), "accepted", "{minutes}");
    }
    let skewed = "403 RequestTimeTooSkewed: The difference between the request time and the current time is too large.";
    for minutes in [-16, 16, 5 * 24 * 60, -5 * 24 * 60] {
        assert_eq!(refused(&sent, MAY_24_MS + minutes * MINUTE_MS), skewed, "{minutes}");
    }
    assert_eq!(
        authenticate(&sent, MAY_24_MS + 16 * MINUTE_MS).expect_err("skewed").details(),
        [
            ("RequestTime", "20130524T000000Z".to_owned()),
            ("ServerTime", "2013-05-24T00:16:00Z".to_owned()),
            ("MaxAllowedSkewMilliseconds", "900000".to_owned())
        ]
    );
}

#[test]
fn a_presigned_url_lives_as_long_as_it_says() {
    let expired = "403 AccessDenied: Request has expired.";
    let early = "403 AccessDenied: Request is not yet valid.";
    for (expires_s, minutes, outcome) in [
        (3600, 20, "accepted"),
        (3600, 59, "accepted"),
        (3600, 60, expired),
        (3600, 120, expired),
        (604_800, 7 * 24 * 60 - 1, "accepted"),
        (604_800, 7 * 24 * 60, expired),
        (3600, -5, "accepted"),
        (3600, -15, "accepted"),
        (3600, -20, early),
        (0, 0, expired),
        (0, -5, expired),
    ] {
        let sent = Sent::get().presigned(expires_s);
        assert_eq!(refused(&sent, MAY_24_MS + minutes * MINUTE_MS), outcome, "{expires_s} s, {minutes} min");
    }
    assert_eq!(
        authenticate(&Sent::get().presigned(60), MAY_24_MS + 2 * MINUTE_MS).expect_err("expired").details(),
        [
            ("ServerTime", "2013-05-24T00:02:00Z".to_owned()),
            ("X-Amz-Expires", "60".to_owned()),
            ("Expires", "2013-05-24T00:01:00Z".to_owned())
        ]
    );
}

#[test]
fn odd_keys_and_queries_verify_presigned_and_signed() {
    for key in ["a b (1).pdf", "c++/x=y&z.bin", "ü", "[x]", "a%2Fb", "~t", "a*b'!", "//a/../b", "100%", "a\u{1}b"] {
        let path = format!("/bucket/{}", encode_path(key.as_bytes()));
        let query = format!("response-content-disposition={}", encode_component(b"attachment; filename=\"a+b c\""));
        let sent = Sent::new("GET", &path, &query, &[("host", "h")]);
        assert_eq!(refused(&sent.clone().presigned(60), MAY_24_MS), "accepted", "{key}");
        assert_eq!(refused(&sent.signed(&Payload::Unsigned), MAY_24_MS), "accepted", "{key}");
    }
}

#[test]
fn a_key_id_with_a_plus_and_a_session_token_come_back_whole() {
    let vended = Signer { access_key_id: "AK+ID", security_token: Some("to/ken+=="), ..signer() };
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("h"));
    let query = vended.presign("GET", "/b/k", "", &headers, 60, MAY_24_MS);
    let presigned = Sent { query, headers: headers.clone(), ..Sent::new("GET", "/b/k", "", &[]) };
    vended.sign("GET", "/b/k", "", &mut headers, &Payload::Unsigned, MAY_24_MS).expect("a valid header");
    let signed = Sent { headers, ..Sent::new("GET", "/b/k", "", &[]) };
    for sent in [presigned, signed] {
        let authorization = authenticate(&sent, MAY_24_MS).expect("accepted");
        assert_eq!(authorization.access_key_id, "AK+ID");
        assert_eq!(authorization.security_token(), Some("to/ken+=="));
        assert!(!format!("{authorization:?}").contains("to/ken"), "a token must not be shown");
    }
}

#[test]
fn a_presigned_url_may_sign_its_payload_in_query_or_header() {
    let in_query = Sent::new("PUT", "/b/k", &format!("X-Amz-Content-Sha256={EMPTY_SHA256}"), &[("host", "h")]);
    let request = in_query.clone().presigned(60);
    let authorization = Authorization::parse(&request.request(), SERVICE_S3).expect("well-formed").expect("presigned");
    assert_eq!(authorization.payload(&request.request()).expect("a payload"), Payload::of_bytes(b""));
    // The header says something else: the query, which was there when the URL was made, wins.
    let header = request.with("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    assert_eq!(authorization.payload(&header.request()).expect("a payload"), Payload::of_bytes(b""));
}

#[test]
fn a_signature_over_raw_bytes_verifies() {
    for value in [&b"\xc3\xa9"[..], b"\xe9"] {
        let mut sent = Sent::get();
        sent.headers.insert("x-amz-meta-a", HeaderValue::from_bytes(value).expect("a value"));
        assert_eq!(refused(&sent.signed(&Payload::Unsigned), MAY_24_MS), "accepted");
    }
}

#[test]
fn another_service_is_accepted_where_it_is_asked_for() {
    let catalog = Signer { service: "execute-api", ..signer() };
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("h"));
    let payload = Payload::of_bytes(b"{}");
    catalog.sign("POST", "/v1/a%1Fb", "", &mut headers, &payload, MAY_24_MS).expect("a valid header");
    let sent = Sent { headers, ..Sent::new("POST", "/v1/a%1Fb", "", &[]) };
    let authorization = Authorization::parse(&sent.request(), "execute-api").expect("well-formed").expect("signed");
    let key = SigningKey::derive(SECRET, "20130524", "us-east-1", "execute-api");
    authorization.verify(&sent.request(), &key, &payload).expect("accepted");
    assert!(refused(&sent, MAY_24_MS).contains("incorrect service \"execute-api\""));
}

proptest! {
    #[test]
    fn garbage_never_panics(
        value in "(AWS4-HMAC-SHA256 )?[ -~]{0,80}",
        credential in "[a/0-9]{0,20}",
        path in "[ -~é]{0,30}",
        query in "((X-Amz-(Algorithm|Date|Expires|Credential|Signature|SignedHeaders))?[=%&+a-z0-9é]{0,8}&?){0,12}",
        names in "[a-zA-Z;:é-]{0,30}",
        now_ms in any::<i64>(),
    ) {
        let scope = "20130524/us-east-1/s3/aws4_request";
        let signed = format!("AWS4-HMAC-SHA256 Credential=a/{scope},SignedHeaders={names},Signature=x");
        let other = format!("AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={names},Signature=x");
        for authorization in [value.clone(), signed, other] {
            let sent = with_authorization(&authorization);
            let sent = Sent { path: path.clone(), query: query.clone(), ..sent };
            prop_assert!(authenticate(&sent, now_ms).is_err());
        }
        let mut presigned = Sent::get().presigned(60);
        presigned.query.push_str(&query);
        let _ = refused(&presigned, now_ms);
        let bare = Sent::new("GET", &path, &query, &[]);
        let _ = Authorization::parse(&bare.request(), SERVICE_S3);
    }

    #[test]
    fn what_is_signed_verifies(
        key in proptest::collection::vec(any::<u8>(), 1..40),
        parameters in proptest::collection::vec(("[ -~é]{1,10}", "[ -~é]{0,10}"), 0..6),
        meta in "[ -~]{0,20}",
    ) {
        let path = format!("/b/{}", encode_path(&key));
        let encode = |text: &str| encode_component(text.as_bytes());
        let query: Vec<String> = parameters.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        let sent = Sent::new("PUT", &path, &query.join("&"), &[("host", "h"), ("x-amz-meta-m", &meta)]);
        prop_assert_eq!(refused(&sent.clone().signed(&Payload::Unsigned), MAY_24_MS), "accepted");
        prop_assert_eq!(refused(&sent.presigned(60), MAY_24_MS), "accepted");
    }
}
