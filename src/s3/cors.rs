//! Cross-origin rules of buckets: read from their document, matched against browsers' requests. Pure.
//!
//! The first rule that allows origin, method and headers decides. A preflight is answered from the rules alone; the
//! answer to an actual request carries headers that tell the browser who may see it, whatever its status.

use super::{
    config::ConfigError,
    error::{Error, Result},
    headers,
    xml::{self, Element, Writer},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

/// Rules of one bucket.
const RULES_MAX: usize = 100;
/// The document of a bucket. Bytes.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 10;
/// Names in one `Access-Control-Request-Headers`.
const REQUEST_HEADERS_MAX: usize = 100;

const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];
const VARY: &str = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rule {
    id: Option<String>,
    origins: Vec<String>,
    methods: Vec<String>,
    allowed_headers: Vec<String>,
    exposed_headers: Vec<String>,
    max_age_s: Option<i32>,
}

/// The rules of one bucket, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Reads a `CORSConfiguration`.
    ///
    /// # Errors
    /// `Error::MalformedXml`, `Error::InvalidRequest` for what a rule names, `Error::MaxMessageLengthExceeded`.
    pub fn parse(document: &[u8]) -> Result<Rules> {
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(Error::MaxMessageLengthExceeded(DOCUMENT_BYTES_MAX as u64));
        }
        let configuration = xml::parse(document, "CORSConfiguration")?;
        let rules = configuration.children_named("CORSRule").map(Rule::read).collect::<Result<Vec<_>>>()?;
        if rules.is_empty() || rules.len() > RULES_MAX { Err(Error::MalformedXml) } else { Ok(Rules(rules)) }
    }

    /// The document these rules are read from again.
    pub fn document(&self) -> String {
        xml::document("CORSConfiguration", Some(xml::NAMESPACE), |out| {
            for rule in &self.0 {
                out.element("CORSRule", |out| rule.write(out));
            }
        })
    }

    fn find(&self, asked: &Asked) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.allows(asked))
    }
}

impl Rule {
    fn read(element: &Element) -> Result<Rule> {
        let texts = |name| element.children_named(name).map(|child| child.text.clone()).collect::<Vec<_>>();
        let rule = Rule {
            id: element.child_text("ID").map(str::to_owned),
            origins: texts("AllowedOrigin"),
            methods: texts("AllowedMethod"),
            allowed_headers: texts("AllowedHeader"),
            exposed_headers: texts("ExposeHeader"),
            max_age_s: match element.child_text("MaxAgeSeconds") {
                None => None,
                Some(text) => Some(text.trim().parse().map_err(|_| Error::MalformedXml)?),
            },
        };
        rule.check()?;
        Ok(rule)
    }

    fn check(&self) -> Result<()> {
        if self.origins.is_empty() || self.methods.is_empty() {
            return Err(Error::MalformedXml);
        }
        if let Some(origin) = self.origins.iter().find(|origin| origin.matches('*').count() > 1) {
            let message = format!("AllowedOrigin \"{origin}\" can not have more than one wildcard.");
            return Err(Error::invalid_request(message));
        }
        if let Some(method) = self.methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
            let message = format!("Found unsupported HTTP method in CORS config. Unsupported method is {method}");
            return Err(Error::invalid_request(message));
        }
        let named = self.allowed_headers.iter().chain(&self.exposed_headers);
        if let Some(name) = named.into_iter().find(|name| !name.is_empty() && !is_token(name)) {
            let message = format!("AllowedHeader \"{name}\" contains invalid character.");
            return Err(Error::invalid_request(message));
        }
        Ok(())
    }

    fn write(&self, out: &mut Writer) {
        out.optional("ID", self.id.as_deref());
        for (name, texts) in [
            ("AllowedMethod", &self.methods),
            ("AllowedOrigin", &self.origins),
            ("AllowedHeader", &self.allowed_headers),
        ] {
            texts.iter().for_each(|text| out.text(name, text));
        }
        if let Some(max_age_s) = self.max_age_s {
            out.value("MaxAgeSeconds", max_age_s);
        }
        self.exposed_headers.iter().for_each(|text| out.text("ExposeHeader", text));
    }

    fn allows(&self, asked: &Asked) -> bool {
        let header_allowed =
            |asked: &String| self.allowed_headers.iter().any(|allowed| matches(&allowed.to_ascii_lowercase(), asked));
        self.origins.iter().any(|origin| matches(origin, &asked.origin))
            && self.methods.contains(&asked.method)
            && asked.headers.iter().all(header_allowed)
    }

    /// What the browser is told. The origin is repeated unless any may come.
    fn answer(&self, asked: &Asked, allowed_headers: String, exposed: Vec<&str>) -> Vec<(HeaderName, String)> {
        let any = self.origins.iter().find(|origin| matches(origin, &asked.origin)).is_some_and(|origin| origin == "*");
        let origin = if any { "*" } else { &asked.origin };
        let mut answer = vec![
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.to_owned()),
            (header::ACCESS_CONTROL_ALLOW_METHODS, self.methods.join(", ")),
            (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, (!any).to_string()),
            (header::VARY, VARY.to_owned()),
        ];
        if !allowed_headers.is_empty() {
            answer.push((header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers));
        }
        if !exposed.is_empty() {
            answer.push((header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed.join(", ")));
        }
        if let Some(max_age_s) = self.max_age_s {
            answer.push((header::ACCESS_CONTROL_MAX_AGE, max_age_s.to_string()));
        }
        answer
    }
}

/// What a browser asks for: origin, method, and the names of headers in lower case.
struct Asked {
    origin: String,
    method: String,
    headers: Vec<String>,
}

impl Asked {
    /// `None` for a request of no browser, or of the page's own origin. The method is that which a preflight announces,
    /// and otherwise `method`.
    ///
    /// # Errors
    /// `ConfigError::CorsMethod`, `ConfigError::CorsHeaders`.
    fn of(sent: &HeaderMap, method: &Method) -> Result<Option<Asked>> {
        let text =
            |name: HeaderName| sent.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let Some(origin) = text(header::ORIGIN).filter(|origin| !origin.is_empty()) else { return Ok(None) };
        let method = text(header::ACCESS_CONTROL_REQUEST_METHOD).unwrap_or_else(|| method.as_str().to_owned());
        if !METHODS.contains(&method.as_str()) {
            return Err(ConfigError::CorsMethod(method).into());
        }
        let named = text(header::ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
        let mut headers = Vec::new();
        for name in named.split(',').filter(|_| !named.is_empty()) {
            if !is_token(name.trim_matches(' ')) || headers.len() == REQUEST_HEADERS_MAX {
                return Err(ConfigError::CorsHeaders(name.to_owned()).into());
            }
            headers.push(name.trim_matches(' ').to_ascii_lowercase());
        }
        Ok(Some(Asked { origin, method, headers }))
    }
}

/// A preflight, before its bucket is looked at.
pub struct Preflight(Asked);

impl Preflight {
    /// # Errors
    /// `Error::CorsOriginMissing`, `ConfigError::CorsMethod`, `ConfigError::CorsHeaders`.
    pub fn read(sent: &HeaderMap) -> Result<Preflight> {
        Asked::of(sent, &Method::OPTIONS)?.map(Preflight).ok_or(Error::CorsOriginMissing)
    }

    /// The headers of the answer.
    ///
    /// # Errors
    /// `ConfigError::CorsForbidden`.
    pub fn answer(&self, rules: &Rules) -> Result<Vec<(HeaderName, String)>> {
        let Preflight(asked) = self;
        let rule = rules.find(asked).ok_or(ConfigError::CorsForbidden)?;
        let exposed = rule.exposed_headers.iter().map(String::as_str).chain(["ETag"]).collect();
        Ok(rule.answer(asked, asked.headers.join(", "), exposed))
    }
}

/// Headers for the answer to an actual request; none where no rule allows it, which makes the browser hide the answer.
///
/// # Errors
/// `ConfigError::CorsMethod`, `ConfigError::CorsHeaders`.
pub fn of_actual(rules: &Rules, sent: &HeaderMap, method: &Method) -> Result<Vec<(HeaderName, String)>> {
    let Some(asked) = Asked::of(sent, method)? else { return Ok(Vec::new()) };
    let Some(rule) = rules.find(&asked) else { return Ok(Vec::new()) };
    let allowed = if asked.headers.is_empty() {
        String::new()
    } else {
        rule.allowed_headers.iter().map(|name| name.to_ascii_lowercase()).collect::<Vec<_>>().join(", ")
    };
    Ok(rule.answer(&asked, allowed, rule.exposed_headers.iter().map(String::as_str).collect()))
}

/// Adds headers to an answer.
pub fn write(answer: &mut HeaderMap, cors: &[(HeaderName, String)]) {
    for (name, value) in cors {
        if *name == header::VARY && answer.contains_key(header::VARY) {
            if let Ok(value) = HeaderValue::from_str(value) {
                answer.append(header::VARY, value);
            }
        } else {
            headers::put(answer, name.clone(), value);
        }
    }
}

/// Whether `text` is `pattern`, in which one star stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end),
    }
}

/// A token of RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_token_char = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &str) -> Result<Rules> {
        Rules::parse(format!("<CORSConfiguration>{rules}</CORSConfiguration>").as_bytes())
    }

    const RULE: &str = "<CORSRule><ID>one</ID><AllowedOrigin>http://*.example</AllowedOrigin>\
        <AllowedMethod>GET</AllowedMethod><AllowedMethod>HEAD</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader>\
        <MaxAgeSeconds>-5</MaxAgeSeconds><ExposeHeader>ETag</ExposeHeader></CORSRule>\
        <CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>PUT</AllowedMethod></CORSRule>";

    fn sent(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn shown(answer: &[(HeaderName, String)]) -> String {
        answer.iter().filter(|(name, _)| *name != header::VARY).map(|(_, value)| value.clone() + " | ").collect()
    }

    #[test]
    fn a_document_reads_back_as_the_same_rules() {
        let first = rules(RULE).expect("the rules are valid");
        assert_eq!(Rules::parse(first.document().as_bytes()).expect("our own document"), first);
        assert_eq!(first.0.len(), 2);
        assert_eq!(first.0[0].max_age_s, Some(-5));
    }

    #[test]
    fn bad_rules_are_refused_in_aws_s_words() {
        let with = |origin: &str, method: &str, more: &str| {
            rules(&format!(
                "<CORSRule><AllowedOrigin>{origin}</AllowedOrigin><AllowedMethod>{method}</AllowedMethod>{more}</CORSRule>"
            ))
        };
        for (refused, message) in [
            (with("a*b*", "GET", ""), "AllowedOrigin \"a*b*\" can not have more than one wildcard."),
            (with("*", "get", ""), "Found unsupported HTTP method in CORS config. Unsupported method is get"),
            (
                with("*", "GET", "<AllowedHeader>a b</AllowedHeader>"),
                "AllowedHeader \"a b\" contains invalid character.",
            ),
        ] {
            assert_eq!(refused.expect_err("the rule is bad").describe().message, message);
        }
        let many = "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>";
        for bad in
            ["", "<CORSRule/>", &many.repeat(RULES_MAX + 1), "<CORSRule><AllowedOrigin>*</AllowedOrigin></CORSRule>"]
        {
            assert!(matches!(rules(bad), Err(Error::MalformedXml)));
        }
        assert!(matches!(with("*", "GET", "<MaxAgeSeconds>x</MaxAgeSeconds>"), Err(Error::MalformedXml)));
        let large = "x".repeat(DOCUMENT_BYTES_MAX);
        assert!(matches!(with("*", "GET", &large), Err(Error::MaxMessageLengthExceeded(_))));
    }

    #[test]
    fn the_first_rule_that_allows_it_answers_a_preflight() {
        let rules = rules(RULE).expect("the rules are valid");
        let ask = |origin, method, names| {
            let sent = sent(&[
                ("origin", origin),
                ("access-control-request-method", method),
                ("access-control-request-headers", names),
            ]);
            Preflight::read(&sent)?.answer(&rules).map(|answer| shown(&answer))
        };
        let granted = ask("http://a.example", "GET", "X-Amz-Date, x-amz-acl").expect("allowed");
        assert_eq!(granted, "http://a.example | GET, HEAD | true | x-amz-date, x-amz-acl | ETag, ETag | -5 | ");
        assert_eq!(ask("http://b", "PUT", "").expect("allowed"), "* | PUT | false | ETag | ");
        for (origin, method, names) in
            [("http://a.example", "GET", "range"), ("http://b", "GET", ""), ("http://b", "PUT", "range")]
        {
            let refused = ask(origin, method, names);
            assert!(matches!(refused, Err(Error::Config(ConfigError::CorsForbidden))), "{origin} {method} {names}");
        }
        assert!(matches!(ask("", "GET", ""), Err(Error::CorsOriginMissing)));
        assert!(matches!(ask("http://b", "PATCH", ""), Err(Error::Config(ConfigError::CorsMethod(_)))));
        assert!(matches!(ask("http://b", "PUT", "a,b c"), Err(Error::Config(ConfigError::CorsHeaders(_)))));
    }

    #[test]
    fn an_actual_request_is_told_what_its_own_method_allows() {
        let rules = rules(RULE).expect("the rules are valid");
        let ask =
            |origin, method| of_actual(&rules, &sent(&[("origin", origin)]), &method).map(|answer| shown(&answer));
        assert_eq!(
            ask("http://a.example", Method::GET).expect("valid"),
            "http://a.example | GET, HEAD | true | ETag | -5 | "
        );
        assert_eq!(ask("http://b", Method::PUT).expect("valid"), "* | PUT | false | ");
        assert_eq!(ask("http://b", Method::GET).expect("valid"), "");
        assert!(of_actual(&rules, &HeaderMap::new(), &Method::GET).expect("valid").is_empty());
    }

    #[test]
    fn a_star_stands_for_anything_once() {
        for (pattern, text, matching) in
            [("*", "", true), ("a*b", "ab", true), ("a*b", "axxb", true), ("ab*b", "ab", false), ("a", "b", false)]
        {
            assert_eq!(matches(pattern, text), matching, "{pattern} {text}");
        }
    }
}
