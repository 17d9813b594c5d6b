//! The canonical form of a request, which is what is signed.
//!
//! S3's rules: path and query are decoded once and encoded once, so however a client spelled a byte, one spelling is
//! signed; nothing is normalised, since `a//b` and `..` are keys like any other. Other services encode the path as it was
//! sent once more (dot segments are not removed: a request with them does not verify).

use super::{Request, Scope, Timestamp, key};

/// The only query parameter that a signature in the query does not cover: itself.
const SIGNATURE_PARAMETER: &[u8] = b"X-Amz-Signature";

/// Percent-encodes every byte outside `A–Z a–z 0–9 - . _ ~ /`, in upper case.
pub fn encode_path(path: &[u8]) -> String {
    let mut out = Vec::with_capacity(path.len() + 16);
    path.iter().for_each(|&byte| push_encoded(&mut out, byte, true));
    String::from_utf8(out).unwrap_or_default()
}

/// Percent-encodes every byte outside `A–Z a–z 0–9 - . _ ~`, in upper case; a space is `%20`.
pub fn encode_component(component: &[u8]) -> String {
    let mut out = Vec::with_capacity(component.len() + 16);
    component.iter().for_each(|&byte| push_encoded(&mut out, byte, false));
    String::from_utf8(out).unwrap_or_default()
}

/// "Task 1: Create a Canonical Request". `signed_headers`: names joined by `;`, as sent.
pub(super) fn request(request: &Request<'_>, service: &str, signed_headers: &str, payload: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(request.method.as_bytes());
    out.push(b'\n');
    push_path(&mut out, request.path, service);
    out.push(b'\n');
    push_query(&mut out, request.query);
    out.push(b'\n');
    for name in sorted_names(signed_headers) {
        push_header(&mut out, request, name);
    }
    out.push(b'\n');
    out.extend_from_slice(signed_headers.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(payload.as_bytes());
    out
}

/// "Task 2: Create a String to Sign".
pub(super) fn string_to_sign(timestamp: Timestamp, scope: &Scope, canonical_request: &[u8]) -> String {
    let digest = key::sha256_hex(canonical_request);
    format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", timestamp.as_str(), key::hex_str(&digest))
}

/// `host`, and each `x-amz-*` header of the request, that `signed_headers` leaves out; sorted.
pub(super) fn headers_not_signed(request: &Request<'_>, signed_headers: &str) -> Vec<String> {
    let signed = sorted_names(signed_headers);
    let required = request.headers.keys().map(http::HeaderName::as_str).filter(|name| name.starts_with("x-amz-"));
    let mut names: Vec<String> = required
        .chain(std::iter::once("host"))
        .filter(|name| signed.binary_search(name).is_err())
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names
}

/// The parameters of a raw query, decoded, in the order sent.
pub(super) fn query_parameters(query: &str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    raw_parameters(query)
        .map(|(name, value)| (decode(name, Plus::Space).collect(), decode(value, Plus::Space).collect()))
}

/// Each name once, however often it was sent: a list of a thousand repeats must not cost a thousand long header values.
fn sorted_names(signed_headers: &str) -> Vec<&str> {
    let mut names: Vec<&str> = signed_headers.split(';').filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn push_path(out: &mut Vec<u8>, path: &str, service: &str) {
    if path.is_empty() {
        out.push(b'/');
    } else if service.starts_with(super::SERVICE_S3) {
        decode(path, Plus::Literal).for_each(|byte| push_encoded(out, byte, true));
    } else {
        path.bytes().for_each(|byte| push_encoded(out, byte, true));
    }
}

/// Sorted by encoded name, then encoded value.
fn push_query(out: &mut Vec<u8>, query: &str) {
    if query.is_empty() {
        return;
    }
    let mut encoded = Vec::with_capacity(query.len() + 32);
    let mut spans = Vec::new();
    for (name, value) in raw_parameters(query) {
        let start = encoded.len();
        decode(name, Plus::Space).for_each(|byte| push_encoded(&mut encoded, byte, false));
        let middle = encoded.len();
        decode(value, Plus::Space).for_each(|byte| push_encoded(&mut encoded, byte, false));
        spans.push((start..middle, middle..encoded.len()));
    }
    let mut parameters: Vec<(&[u8], &[u8])> =
        spans.into_iter().map(|(name, value)| (&encoded[name], &encoded[value])).collect();
    parameters.sort_unstable();
    let signed = parameters.into_iter().filter(|(name, _)| *name != SIGNATURE_PARAMETER);
    for (index, (name, value)) in signed.enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value);
    }
}

/// `name:value\n`; several values joined by commas, no value where there is no such header.
fn push_header(out: &mut Vec<u8>, request: &Request<'_>, name: &str) {
    out.extend_from_slice(name.as_bytes());
    out.push(b':');
    let mut values = request.headers.get_all(name).iter().peekable();
    if values.peek().is_none() && name == "host" {
        out.extend_from_slice(request.authority.unwrap_or_default().as_bytes());
    }
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_collapsed(out, value.as_bytes());
    }
    out.push(b'\n');
}

/// Without blanks around it, and with runs of spaces as one.
fn push_collapsed(out: &mut Vec<u8>, value: &[u8]) {
    let mut after_space = false;
    for &byte in value.trim_ascii() {
        if byte != b' ' || !after_space {
            out.push(byte);
        }
        after_space = byte == b' ';
    }
}

fn push_encoded(out: &mut Vec<u8>, byte: u8, keep_slash: bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') || (byte == b'/' && keep_slash) {
        out.push(byte);
    } else {
        out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Splits at `&` and the first `=`; skips what is empty.
fn raw_parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|part| !part.is_empty()).map(|part| part.split_once('=').unwrap_or((part, "")))
}

/// What a `+` means: clients that encode forms write spaces so in queries, and sign them as `%20`.
#[derive(Clone, Copy)]
enum Plus {
    Space,
    Literal,
}

/// Percent-decodes; a `%` without two digits stands for itself.
fn decode(text: &str, plus: Plus) -> impl Iterator<Item = u8> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        let (&first, tail) = rest.split_first()?;
        rest = tail;
        match (first, tail, plus) {
            (b'%', &[high, low, ..], _) => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => {
                    rest = &tail[2..];
                    Some(high << 4 | low)
                }
                _ => Some(b'%'),
            },
            (b'+', _, Plus::Space) => Some(b' '),
            _ => Some(first),
        }
    })
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    fn check(path: &str, query: &str, headers: &[(&str, &[u8])], signed: &str, expected: &str) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                http::HeaderName::try_from(*name).expect("a name"),
                http::HeaderValue::from_bytes(value).expect("a value"),
            );
        }
        let sent = Request { method: "GET", path, query, headers: &map, authority: Some("h2.example") };
        assert_eq!(String::from_utf8_lossy(&request(&sent, "s3", signed, "P")), expected);
    }

    #[test]
    fn a_path_has_one_spelling_however_it_was_sent() {
        for (sent, canonical) in [
            ("", "/"),
            ("/b/a%20b%20(1).pdf", "/b/a%20b%20%281%29.pdf"),
            ("/b/a%20b%20%281%29.pdf", "/b/a%20b%20%281%29.pdf"),
            ("/b/c++/x=y&z.bin", "/b/c%2B%2B/x%3Dy%26z.bin"),
            ("/b/%c3%bc", "/b/%C3%BC"),
            ("/b/ü", "/b/%C3%BC"),
            ("/b/[x]", "/b/%5Bx%5D"),
            ("/b/a%252Fb", "/b/a%252Fb"),
            ("/b/a%2Fb", "/b/a/b"),
            ("/b/%7Et", "/b/~t"),
            ("/b/a*b'!", "/b/a%2Ab%27%21"),
            ("/b//..//./", "/b//..//./"),
            ("/b/100%", "/b/100%25"),
            ("/b/%zz%4", "/b/%25zz%254"),
        ] {
            check(sent, "", &[], "", &format!("GET\n{canonical}\n\n\n\nP"));
        }
    }

    #[test]
    fn other_services_encode_the_path_again() {
        let headers = HeaderMap::new();
        let sent = Request { method: "GET", path: "/v1/a%1Fb", query: "", headers: &headers, authority: None };
        assert_eq!(request(&sent, "execute-api", "", "P"), b"GET\n/v1/a%251Fb\n\n\n\nP");
    }

    #[test]
    fn a_query_is_sorted_after_encoding() {
        for (sent, canonical) in [
            ("lifecycle", "lifecycle="),
            ("prefix=J&max-keys=2", "max-keys=2&prefix=J"),
            ("b=2&a=3&b=1&B=0&&", "B=0&a=3&b=1&b=2"),
            ("a-=1&a=2", "a=2&a-=1"),
            ("p=a+b%2Bc%20d/e=f", "p=a%20b%2Bc%20d%2Fe%3Df"),
            ("ü=%e2%82%ac", "%C3%BC=%E2%82%AC"),
            ("X-Amz-Signature=ab&a=1", "a=1"),
            ("=x", "=x"),
        ] {
            check("/", sent, &[], "", &format!("GET\n/\n{canonical}\n\n\nP"));
        }
    }

    #[test]
    fn header_values_are_trimmed_joined_and_kept_to_the_byte() {
        check(
            "/",
            "",
            &[("x-amz-meta-a", b" \ta  b   c "), ("x-amz-meta-a", b"d"), ("x-amz-meta-u", "\u{e9}".as_bytes())],
            "host;x-amz-meta-a;x-amz-meta-u",
            "GET\n/\n\nhost:h2.example\nx-amz-meta-a:a b c,d\nx-amz-meta-u:\u{e9}\n\nhost;x-amz-meta-a;x-amz-meta-u\nP",
        );
        check("/", "", &[("host", b"h1.example")], "host", "GET\n/\n\nhost:h1.example\n\nhost\nP");
        check("/", "", &[], "expect", "GET\n/\n\nexpect:\n\nexpect\nP");
    }

    #[test]
    fn a_repeated_name_is_canonicalised_once() {
        check("/", "", &[("a", b"1")], "b;a;a;;a", "GET\n/\n\na:1\nb:\n\nb;a;a;;a\nP");
    }

    #[test]
    fn host_and_amz_headers_must_be_signed() {
        let mut headers = HeaderMap::new();
        for name in ["x-amz-tagging", "x-amz-copy-source", "x-amz-date", "content-type", "x-amzn-trace-id"] {
            headers.insert(name, http::HeaderValue::from_static("v"));
        }
        let sent = Request { method: "PUT", path: "/", query: "", headers: &headers, authority: None };
        assert_eq!(headers_not_signed(&sent, "host;x-amz-date"), ["x-amz-copy-source", "x-amz-tagging"]);
        assert_eq!(headers_not_signed(&sent, "x-amz-copy-source;x-amz-date;x-amz-tagging"), ["host"]);
    }

    #[test]
    fn encoders_leave_only_unreserved_bytes() {
        assert_eq!(encode_path("a b/ü+~".as_bytes()), "a%20b/%C3%BC%2B~");
        assert_eq!(encode_component("a b/ü+~".as_bytes()), "a%20b%2F%C3%BC%2B~");
    }
}
