//! What is fuzzed of S3: everything that is read of a request before or after its signature is checked.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tidewater::{
    auth::policy::{Ask, Context, Place, Policy},
    s3::{
        chunked::{Decoder, Signing, TrailerName},
        inputs,
        sigv4::{Authorization, Payload, Request, SigningKey},
    },
};

/// 2013-05-24, the day of AWS's own examples.
const NOW_MS: i64 = 1_369_353_600_000;

fn owned(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub fn authorizations() -> Vec<Vec<u8>> {
    let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    let credential = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";
    let header =
        format!("AWS4-HMAC-SHA256 Credential={credential},SignedHeaders=host;range;x-amz-date,Signature={signature}\n");
    let query = format!(
        "\nX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400\
         &X-Amz-SignedHeaders=host&X-Amz-Signature={signature}",
        credential.replace('/', "%2F")
    );
    vec![header.into_bytes(), query.into_bytes(), b"AWS a:b\n".to_vec(), b"\nAWSAccessKeyId=a&Signature=b".to_vec()]
}

/// An `Authorization` header, and in the next line a query: no key makes its signature true.
pub fn authorization(input: &[u8]) -> Result<String, String> {
    let mut lines = input.splitn(2, |byte| *byte == b'\n');
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("examplebucket.s3.amazonaws.com"));
    headers.insert("x-amz-date", HeaderValue::from_static("20130524T000000Z"));
    if let Ok(value) = HeaderValue::from_bytes(lines.next().unwrap_or_default())
        && !value.is_empty()
    {
        headers.insert("authorization", value);
    }
    let query = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let request = Request { method: "GET", path: "/test.txt", query: &query, headers: &headers, authority: None };
    let authorization = match Authorization::parse(&request, "s3") {
        Ok(Some(authorization)) => authorization,
        Ok(None) => return Ok("anonymous".to_owned()),
        Err(error) => return Ok(error.to_string()),
    };
    if let Err(error) = authorization.check_time(NOW_MS) {
        return Ok(error.to_string());
    }
    let scope = &authorization.scope;
    let key = SigningKey::derive("a secret nobody signs with", &scope.date, &scope.region, &scope.service);
    match authorization.verify(&request, &key, &Payload::Unsigned) {
        Ok(()) => Err("a signature fits a key it was not made with".to_owned()),
        Err(error) => Ok(error.to_string()),
    }
}

pub fn chunked_bodies() -> Vec<Vec<u8>> {
    let long = format!("2000\r\n{}\r\n5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", "x".repeat(0x2000));
    let signature = "0".repeat(64);
    let signed = format!("5;chunk-signature={signature}\r\nhello\r\n0;chunk-signature={signature}\r\n\r\n");
    let mut bodies = owned(&["5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", "0\r\n\r\n", &long, &signed]);
    bodies.iter_mut().for_each(|body| body.insert(0, 5));
    bodies
}

/// The first byte says how many bytes are announced; what comes out is the same wherever the connection cuts.
pub fn chunked_body(input: &[u8]) -> Result<String, String> {
    let Some((announced, body)) = input.split_first() else { return Ok("nothing".to_owned()) };
    let announced = if *announced == 255 { 0x2005 } else { u64::from(*announced) };
    let read = |cut: usize| -> (Vec<u8>, String) {
        let trailer = TrailerName::parse(b"x-amz-checksum-crc32").ok();
        let mut decoder = Decoder::new(Signing::Unsigned, announced, trailer);
        let mut out = Vec::new();
        for piece in body.chunks(cut.max(1)) {
            let mut piece = Bytes::copy_from_slice(piece);
            loop {
                match decoder.decode(&mut piece) {
                    Ok(Some(bytes)) => out.extend_from_slice(&bytes),
                    Ok(None) => break,
                    Err(error) => return (out, error.to_string()),
                }
            }
        }
        let end = decoder.finish().map_or_else(|error| error.to_string(), |_| "whole".to_owned());
        (out, end)
    };
    let (whole, end) = read(body.len());
    if whole.len() as u64 > announced {
        return Err("more bytes than were announced".to_owned());
    }
    if end == "whole" && whole.len() as u64 != announced {
        return Err("fewer bytes than were announced".to_owned());
    }
    for cut in [1, 7] {
        if read(cut) != (whole.clone(), end.clone()) {
            return Err(format!("read otherwise in pieces of {cut}"));
        }
    }
    Ok(end)
}

pub fn documents() -> Vec<Vec<u8>> {
    owned(&[
        "<CORSConfiguration><CORSRule><ID>a</ID><AllowedOrigin>http://*.x</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
         <AllowedHeader>x-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>5</MaxAgeSeconds></CORSRule>\
         </CORSConfiguration>",
        "<?xml version=\"1.0\"?><Tagging xmlns=\"x\"><TagSet><Tag><Key>a &amp; b</Key><Value>&#233;</Value></Tag></TagSet></Tagging>",
        "<Delete><Quiet>true</Quiet><Object><Key>a<![CDATA[<b>]]></Key><VersionId>null</VersionId></Object></Delete>",
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"ab\"</ETag></Part><Part><PartNumber>2</PartNumber>\
         <ETag>cd</ETag><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></CompleteMultipartUpload>",
        "<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls></PublicAccessBlockConfiguration>",
    ])
}

pub fn document(input: &[u8]) -> Result<String, String> {
    inputs::document(input)
}

pub fn policies() -> Vec<Vec<u8>> {
    owned(&[
        r#"{"Version":"2012-10-17","Id":"x","Statement":[{"Sid":"1","Effect":"Allow","Principal":"*","Action":"s3:GetObject",
            "Resource":"arn:aws:s3:::lake/*"},{"Effect":"Deny","NotPrincipal":{"AWS":["ann","bob"]},"NotAction":["s3:Get*"],
            "NotResource":"arn:aws:s3:::lake/open/?","Condition":{"StringLike":{"s3:prefix":["a*","b"]},
            "BoolIfExists":{"aws:SecureTransport":"true"}}}]}"#,
        r#"{"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}"#,
        r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::lake","Condition":
            {"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}}}"#,
    ])
}

/// What is accepted decides the same twice, and never lets somebody do what it denies everybody.
pub fn policy(input: &[u8]) -> Result<String, String> {
    let mut ends = String::new();
    for place in [Place::Bucket("lake"), Place::Session] {
        match Policy::parse(input, place) {
            Err(error) => ends.push_str(&error.to_string()),
            Ok(policy) => {
                for (action, resource) in
                    [("GetObject", "lake/open/k"), ("ListBucket", "lake"), ("PutObject", "lake/k")]
                {
                    let ask = |principals: &'static [&'static str]| {
                        let context = Context { prefix: Some("a/b"), ..Context::default() };
                        policy.decide(&Ask { principals, action, resource, context })
                    };
                    if ask(&["ann"]) != ask(&["ann"]) {
                        return Err("two answers to one question".to_owned());
                    }
                    ends.push_str(&format!("{:?}", ask(&[])));
                }
            }
        }
    }
    Ok(ends)
}

/// In clear; they are sent in base64.
pub fn post_policies() -> Vec<Vec<u8>> {
    owned(&[
        r#"{"expiration":"2100-01-01T00:00:00.000Z","conditions":[{"bucket":"lake"},["starts-with","$key","in/"],
            ["eq","$Content-Type","text/x"],["content-length-range",1,"10"]]}"#,
        r#"{"expiration":"1969-01-01T00:00:00Z","conditions":[]}"#,
    ])
}

pub fn post_policy(input: &[u8]) -> Result<String, String> {
    inputs::post_policy(&String::from_utf8_lossy(input))?;
    inputs::post_policy(&BASE64_STANDARD.encode(input))
}

pub fn ranges() -> Vec<Vec<u8>> {
    owned(&["bytes=0-9", "bytes=5-", "bytes=-3", "bytes=18446744073709551615-", "bytes=0-0,1-2", "bits=0-1"])
}

pub fn range(input: &[u8]) -> Result<String, String> {
    let header = String::from_utf8_lossy(input);
    let ends = [0, 1, 10, u64::MAX].map(|size| inputs::range(&header, size));
    ends.into_iter().collect::<Result<Vec<_>, _>>().map(|ends| ends.concat())
}

pub fn request_lines() -> Vec<Vec<u8>> {
    owned(&[
        "GET /",
        "GET /lake?list-type=2&prefix=a%2Fb&max-keys=1&encoding-type=url",
        "PUT /lake/a//b/../c%20d?partNumber=1&uploadId=u",
        "POST /lake?delete",
        "GET /lake?uploads&key-marker=k&upload-id-marker=u&max-uploads=3",
        "GET /lake/k?versionId=null&response-content-type=a%0Db",
        "DELETE /lake/%FF",
        "OPTIONS /lake/k",
        "PUT /lake?cors",
        "POST /lake/k?uploads",
    ])
}

pub fn request_line(input: &[u8]) -> Result<String, String> {
    inputs::request_line(&String::from_utf8_lossy(input))
}
