//! AWS's published examples, and what servers must refuse.

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
fn malformed_authorization_headers_get_awss_words() {
    let malformed = "400 AuthorizationHeaderMalformed: The authorization header is malformed; ";
    let three = "the authorization header requires three components: Credential, SignedHeaders, and Signature.";
    let good = "AWS4-HMAC-SHA256 Credential=a/20130524/us-east-1/s3/aws4_request";
    for (value, message) in [
        (
            "invalid_header".to_owned(),
            "400 InvalidArgument: Authorization header is invalid -- one and only one ' ' (space) required.".to_owned(),
        ),
        (format!("AWS2-HMAC-SHA1 {good}"), "400 InvalidArgument: Unsupported Authorization Type".to_owned()),
        ("Bearer abc".to_owned(), "400 InvalidArgument: Unsupported Authorization Type".to_owned()),
        (
            "AWS a:b".to_owned(),
            "400 InvalidRequest: The authorization mechanism you have provided is not supported. Please use \
             AWS4-HMAC-SHA256."
                .to_owned(),
        ),
        (format!("{good},Signature=ab"), format!("{malformed}{three}")),
        (
            format!("{good},SignedHeaders-Content-Length,Signature=ab"),
            format!("{malformed}the authorization component \"SignedHeaders-Content-Length\" is malformed."),
        ),
        (
            "AWS4-HMAC-SHA256 missing=a/b,SignedHeaders=host,Signature=ab".to_owned(),
            format!("{malformed}missing Credential."),
        ),
        (format!("{good},missing=host,Signature=ab"), format!("{malformed}missing SignedHeaders.")),
        (format!("{good},SignedHeaders=host,missing=ab"), format!("{malformed}missing Signature.")),
        (
            String::new(),
            "400 InvalidArgument: Authorization header is invalid -- one and only one ' ' (space) required.".to_owned(),
        ),
    ] {
        assert_eq!(refused(&with_authorization(&value), MAY_24_MS), message, "{value}");
    }
}

#[test]
fn malformed_credentials_get_awss_words_in_header_and_query() {
    let expecting = "the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".";
    for (credential, message) in [
        ("a/32234/us-east-1/s3/extra/things", expecting),
        ("access/hello/world", expecting),
        (
            "a/32234/us-east-1/s3/aws_request",
            "incorrect terminal \"aws_request\". This endpoint uses \"aws4_request\".",
        ),
        ("a/32234/us-east-1/ec2/aws4_request", "incorrect service \"ec2\". This endpoint belongs to \"s3\"."),
        (
            "a/3223423234/us-east-1/s3/aws4_request",
            "incorrect date format \"3223423234\". This date in the credential must be in the format \"yyyyMMdd\".",
        ),
    ] {
        let header = format!("AWS4-HMAC-SHA256 Credential={credential},SignedHeaders=host,Signature=ab");
        assert_eq!(
            refused(&with_authorization(&header), MAY_24_MS),
            format!("400 AuthorizationHeaderMalformed: The authorization header is malformed; {message}")
        );
        assert_eq!(
            refused(&with_parameter("X-Amz-Credential", Some(credential)), MAY_24_MS),
            format!("400 AuthorizationQueryParametersError: Error parsing the X-Amz-Credential parameter; {message}")
        );
    }
}

#[test]
fn a_wrong_region_is_named_with_the_right_one() {
    for sent in [Sent::get().signed(&Payload::of_bytes(b"")), Sent::get().presigned(60)] {
        let authorization = authenticate(&sent, MAY_24_MS).expect("any region is taken as sent");
        authorization.require_region("us-east-1").expect("the region signed for");
        let error = authorization.require_region("eu-west-1").expect_err("another region");
        assert!(error.to_string().ends_with("the region \"us-east-1\" is wrong; expecting \"eu-west-1\""), "{error}");
        let expected = if authorization.is_presigned() { vec![] } else { vec![("Region", "eu-west-1".to_owned())] };
        assert_eq!(error.details(), expected);
    }
}

#[test]
fn a_signed_request_needs_a_date_that_is_its_credentials() {
    let good = Sent::get().signed(&Payload::of_bytes(b""));
    let missing = "403 AccessDenied: AWS authentication requires a valid Date or x-amz-date header.";
    assert_eq!(refused(&good.clone().with("x-amz-date", ""), MAY_24_MS), missing);
    assert_eq!(refused(&good.clone().with("x-amz-date", "03032006"), MAY_24_MS), missing);
    let mut without = good.clone();
    without.headers.remove("x-amz-date");
    assert_eq!(refused(&without, MAY_24_MS), missing);
    assert_eq!(
        refused(&good.with("x-amz-date", "20130525T000000Z"), MAY_24_MS),
        "400 AuthorizationHeaderMalformed: The authorization header is malformed; The authorization header is \
         malformed; Invalid credential date. Date is not the same as X-Amz-Date."
    );
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
fn malformed_presigned_urls_get_awss_words() {
    let code = "400 AuthorizationQueryParametersError: ";
    let too_large = "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be \
                     less than 604800 seconds";
    for (name, value, message) in [
        ("X-Amz-Expires", "604801", too_large),
        ("X-Amz-Expires", "60580000", too_large),
        ("X-Amz-Expires", "99999999999999999999", too_large),
        ("X-Amz-Expires", "-1", "X-Amz-Expires must be non-negative"),
        ("X-Amz-Expires", "abc", "X-Amz-Expires should be a number"),
        ("X-Amz-Expires", "+60", "X-Amz-Expires should be a number"),
        ("X-Amz-Expires", "-", "X-Amz-Expires should be a number"),
        (
            "X-Amz-Algorithm",
            "AWS4-SHA256",
            "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256 and AWS4-ECDSA-P256-SHA256\"",
        ),
        ("X-Amz-Algorithm", "AWS4-ECDSA-P256-SHA256", "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\""),
        ("X-Amz-Date", "2013-05-24", "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\""),
        (
            "X-Amz-Credential",
            "a/20060102/us-east-1/s3/aws4_request",
            "Invalid credential date \"20060102\". This date is not the same as X-Amz-Date: \"20130524\".",
        ),
    ] {
        assert_eq!(refused(&with_parameter(name, Some(value)), MAY_24_MS), format!("{code}{message}"), "{value}");
    }
    let missing = "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, \
                   X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.";
    for name in ["Algorithm", "Credential", "Signature", "Date", "SignedHeaders", "Expires"] {
        for value in [None, Some("")] {
            let sent = with_parameter(&format!("X-Amz-{name}"), value);
            assert_eq!(refused(&sent, MAY_24_MS), format!("{code}{missing}"), "{name} {value:?}");
        }
    }
}

#[test]
fn other_mechanisms_are_refused_and_none_is_anonymous() {
    let mut sent = Sent::get();
    assert!(Authorization::parse(&sent.request(), SERVICE_S3).expect("well-formed").is_none());
    sent.query = "AWSAccessKeyId=a&Expires=1&Signature=s".to_owned();
    assert!(matches!(Authorization::parse(&sent.request(), SERVICE_S3), Err(Error::SignatureV2)));
    // A query that only looks like it: object listings may ask for anything.
    sent.query = "Expires=1&prefix=X-Amz-Signature".to_owned();
    assert!(Authorization::parse(&sent.request(), SERVICE_S3).expect("well-formed").is_none());
    let both = Sent::get().presigned(60).with("authorization", "AWS4-HMAC-SHA256 x");
    assert!(refused(&both, MAY_24_MS).starts_with("400 InvalidArgument: Only one auth mechanism allowed"));
}

#[test]
fn what_was_not_signed_is_refused() {
    for sent in [
        Sent::new("PUT", "/b/k", "", &[("host", "h")]).signed(&Payload::Unsigned),
        Sent::new("PUT", "/b/k", "", &[("host", "h")]).presigned(60),
    ] {
        let more = sent.clone().with("x-amz-tagging", "a=b").with("x-amz-copy-source", "b/k");
        let error = authenticate(&more, MAY_24_MS).expect_err("unsigned headers");
        assert_eq!((error.code(), error.status().as_u16()), ("AccessDenied", 403));
        assert_eq!(error.to_string(), "There were headers present in the request which were not signed");
        assert_eq!(error.details(), [("HeadersNotSigned", "x-amz-copy-source, x-amz-tagging".to_owned())]);
        let harmless = sent.with("content-type", "text/plain").with("x-custom", "v").with("x-amzn-trace-id", "t");
        assert_eq!(refused(&harmless, MAY_24_MS), "accepted");
    }
    let mut hostless = Sent::new("GET", "/b/k", "", &[]).signed(&Payload::Unsigned);
    assert!(refused(&hostless, MAY_24_MS).starts_with("403 AccessDenied: There were headers"));
    hostless.headers.insert("host", HeaderValue::from_static("h"));
    assert!(refused(&hostless, MAY_24_MS).starts_with("403 AccessDenied: There were headers"));
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
fn a_url_signed_for_one_method_is_no_good_for_another() {
    let sent = Sent { method: "HEAD".to_owned(), ..Sent::get().presigned(60) };
    assert!(refused(&sent, MAY_24_MS).starts_with("403 SignatureDoesNotMatch: The request signature we calculated"));
}

#[test]
fn a_mismatch_tells_the_client_what_was_computed_and_debug_tells_nothing() {
    let sent = Sent::get().with("x-amz-security-token", "hush").signed(&Payload::Unsigned).with("host", "other");
    let error = authenticate(&sent, MAY_24_MS).expect_err("another host");
    let details = error.details();
    let names: Vec<&str> = details.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "AWSAccessKeyId",
            "StringToSign",
            "SignatureProvided",
            "StringToSignBytes",
            "CanonicalRequest",
            "CanonicalRequestBytes"
        ]
    );
    assert_eq!(details[0].1, KEY_ID);
    assert!(details[1].1.starts_with("AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n"));
    assert!(details[4].1.starts_with("GET\n/b/k\n\nhost:other\n"), "{}", details[4].1);
    assert!(details[3].1.starts_with("41 57 53 34 2d "), "{}", details[3].1);
    assert!(!format!("{error:?}").contains("hush"));
}

#[test]
fn payload_kinds_are_told_apart() {
    let sent = Sent::get().signed(&Payload::of_bytes(b""));
    let mut missing = sent.clone();
    missing.headers.remove("x-amz-content-sha256");
    assert_eq!(
        refused(&missing, MAY_24_MS),
        "400 InvalidRequest: Missing required header for this request: x-amz-content-sha256"
    );
    let invalid = sent.clone().with("x-amz-content-sha256", "invalid_sha256");
    let error = authenticate(&invalid, MAY_24_MS).expect_err("not a hash");
    assert_eq!((error.code(), error.status().as_u16()), ("InvalidArgument", 400));
    assert!(error.to_string().starts_with("x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-"));
    assert_eq!(
        error.details(),
        [("ArgumentName", "x-amz-content-sha256".to_owned()), ("ArgumentValue", "invalid_sha256".to_owned())]
    );
    let ecdsa = sent.with("x-amz-content-sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD");
    assert_eq!(
        refused(&ecdsa, MAY_24_MS),
        "501 NotImplemented: The chunk encoding algorithm STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD is not supported."
    );
    for payload in [
        Payload::Unsigned,
        Payload::ChunkedUnsignedTrailer,
        Payload::ChunkedSigned,
        Payload::ChunkedSignedTrailer,
        Payload::of_bytes(b"x"),
    ] {
        assert_eq!(Payload::parse(payload.as_str().as_bytes()).expect("a kind"), payload);
    }
    assert_eq!(Payload::of_bytes(b"").as_str(), EMPTY_SHA256);
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

#[test]
fn a_flipped_bit_anywhere_in_what_was_signed_is_refused() {
    let headers = [("host", "s3.example"), ("range", "bytes=0-9"), ("x-amz-meta-a", "value"), ("x-amz-date", "")];
    let sent = Sent::new("GET", "/bucket/key", "list-type=2&prefix=abc", &headers);
    for good in [sent.clone().signed(&Payload::Unsigned), {
        let mut sent = sent;
        sent.headers.remove("x-amz-date");
        sent.presigned(600)
    }] {
        assert_eq!(refused(&good, MAY_24_MS), "accepted");
        let mut flips = Vec::new();
        for bad in flipped(&good.method) {
            flips.push(Sent { method: bad, ..good.clone() });
        }
        for bad in flipped(&good.path) {
            flips.push(Sent { path: bad, ..good.clone() });
        }
        for bad in flipped(&good.query) {
            flips.push(Sent { query: bad, ..good.clone() });
        }
        for (name, value) in &good.headers {
            for bad in flipped(value.to_str().expect("text")) {
                let Ok(value) = HeaderValue::from_str(&bad) else { continue };
                let mut headers = good.headers.clone();
                headers.insert(name, value);
                flips.push(Sent { headers, ..good.clone() });
            }
        }
        assert!(flips.len() > 100);
        for flip in flips {
            let Ok(Some(authorization)) = Authorization::parse(&flip.request(), SERVICE_S3) else { continue };
            // The key id is not signed itself: it names the secret.
            if authorization.access_key_id != KEY_ID {
                continue;
            }
            let accepted = authenticate(&flip, MAY_24_MS).is_ok();
            assert!(!accepted, "{} {}?{} {:?}", flip.method, flip.path, flip.query, flip.headers);
        }
    }
}

/// The text with the lowest bit of each byte flipped in turn.
fn flipped(text: &str) -> impl Iterator<Item = String> {
    (0..text.len()).filter_map(|at| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1;
        String::from_utf8(bytes).ok()
    })
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
