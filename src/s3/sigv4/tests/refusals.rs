//! What is refused, in AWS's codes and words.

use super::*;

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
