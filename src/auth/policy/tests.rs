use super::*;

fn parse(statements: &str) -> Result<Policy> {
    Policy::parse(format!("{{\"Statement\":[{statements}]}}").as_bytes(), Place::Bucket("lake"))
}

fn statement(effect: &str, principal: &str, action: &str, resource: &str) -> String {
    format!(r#"{{"Effect":"{effect}","Principal":{principal},"Action":{action},"Resource":{resource}}}"#)
}

fn decide(policy: &Policy, principals: &[&str], action: &str, resource: &str) -> Decision {
    policy.decide(&Ask { principals, action, resource, context: Context::default() })
}

#[test]
fn a_denial_outweighs_what_is_allowed_and_the_rest_is_silence() {
    let policy = [
        statement("Deny", r#"{"AWS":"ann"}"#, r#""s3:*""#, r#""arn:aws:s3:::lake/secret/*""#),
        statement("Allow", r#""*""#, r#"["s3:Get*"]"#, r#"["arn:aws:s3:::lake/*"]"#),
    ];
    let policy = parse(&policy.join(",")).expect("a valid policy");
    assert_eq!(decide(&policy, &[], "GetObject", "lake/a"), Decision::Allowed);
    assert_eq!(decide(&policy, &["ann"], "GetObject", "lake/a"), Decision::Allowed);
    assert_eq!(decide(&policy, &["ann"], "GetObject", "lake/secret/a"), Decision::Denied);
    assert_eq!(decide(&policy, &[], "GetObject", "lake/secret/a"), Decision::Allowed);
    assert_eq!(decide(&policy, &[], "PutObject", "lake/a"), Decision::Silent);
    assert_eq!(decide(&policy, &[], "ListBucket", "lake"), Decision::Silent);
    assert!(policy.is_public());
    assert_eq!(policy.principals().collect::<Vec<_>>(), ["ann"]);
}

#[test]
fn everything_but_what_is_named_can_be_meant() {
    let policy = parse(
        r#"{"Effect":"Deny","NotPrincipal":{"AWS":["arn:aws:iam::123456789012:user/ann"]},"NotAction":"s3:GetObject","NotResource":"arn:aws:s3:::lake/open/*"}"#,
    )
    .expect("a valid policy");
    assert_eq!(decide(&policy, &["bob"], "PutObject", "lake/a"), Decision::Denied);
    assert_eq!(decide(&policy, &[], "PutObject", "lake/a"), Decision::Denied);
    assert_eq!(decide(&policy, &["ann"], "PutObject", "lake/a"), Decision::Silent);
    assert_eq!(decide(&policy, &["bob"], "GetObject", "lake/a"), Decision::Silent);
    assert_eq!(decide(&policy, &["bob"], "PutObject", "lake/open/a"), Decision::Silent);
}

#[test]
fn conditions_must_all_hold() {
    let policy = parse(
        r#"{"Effect":"Allow","Principal":"*","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake",
            "Condition":{"StringLike":{"s3:prefix":["open/*","x"]},"StringNotEquals":{"aws:Referer":"bad"},
            "Bool":{"aws:SecureTransport":false},"StringEqualsIfExists":{"s3:delimiter":"/"}}}"#,
    )
    .expect("a valid policy");
    let ask = |context| policy.decide(&Ask { principals: &[], action: "ListBucket", resource: "lake", context });
    let fitting = Context { prefix: Some("open/a"), ..Context::default() };
    assert_eq!(ask(fitting), Decision::Allowed);
    assert_eq!(ask(Context { delimiter: Some("/"), ..fitting }), Decision::Allowed);
    for misfit in [
        Context { prefix: None, ..fitting },
        Context { prefix: Some("other"), ..fitting },
        Context { referer: Some("bad"), ..fitting },
        Context { secure_transport: true, ..fitting },
        Context { delimiter: Some("-"), ..fitting },
    ] {
        assert_eq!(ask(misfit), Decision::Silent, "{misfit:?}");
    }
    assert!(!policy.is_public());
}

#[test]
fn a_session_s_policy_names_no_principal_and_any_bucket() {
    let session = |document: &str| Policy::parse(document.as_bytes(), Place::Session);
    let policy =
        session(r#"{"Statement":{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::*/open/*"}}"#);
    let policy = policy.expect("a valid policy");
    assert_eq!(decide(&policy, &["x"], "GetObject", "any/open/k"), Decision::Allowed);
    assert_eq!(decide(&policy, &["x"], "GetObject", "any/other"), Decision::Silent);
    let everything =
        session(r#"{"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}"#).expect("a valid policy");
    assert_eq!(decide(&everything, &[], "ListAllMyBuckets", "*"), Decision::Allowed);
    let named = session(r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}}"#);
    assert!(matches!(named, Err(PolicyError::Malformed(_))));
}

#[test]
fn what_is_wrong_is_said_in_aws_s_words() {
    let valid = |principal: &str, action: &str, resource: &str| parse(&statement("Allow", principal, action, resource));
    let objects = r#""arn:aws:s3:::lake/*""#;
    for (refused, text) in [
        (Policy::parse(b"{true}", Place::Bucket("lake")), "This policy contains invalid Json"),
        (Policy::parse(b"[]", Place::Bucket("lake")), "Policies must be valid JSON and the first byte must be '{'"),
        (Policy::parse(b"{}", Place::Bucket("lake")), "Missing required field Statement"),
        (parse(""), "Could not parse the policy: Statement is empty!"),
        (parse(&statement("Perhaps", r#""*""#, r#""s3:*""#, objects)), "Invalid effect: Perhaps"),
        (valid(r#""""#, r#""s3:*""#, objects), "Invalid principal in policy"),
        (valid(r#"["*","a"]"#, r#""s3:*""#, objects), "Invalid principal in policy"),
        (valid(r#""*""#, r#""s4:GetObject""#, objects), "Policy has invalid action"),
        (valid(r#""*""#, r#""s3:Nothing""#, objects), "Policy has invalid action"),
        (valid(r#""*""#, r#""s3:*""#, r#""arn:aws:s3:::other/*""#), "Policy has invalid resource"),
        (valid(r#""*""#, r#""s3:*""#, r#""arn:aws:s3:::lakeside""#), "Policy has invalid resource"),
        (
            valid(r#""*""#, r#""s3:GetObject""#, r#""arn:aws:s3:::lake""#),
            "Action does not apply to any resource(s) in statement",
        ),
        (valid(r#""*""#, r#""s3:ListBucket""#, objects), "Action does not apply to any resource(s) in statement"),
    ] {
        assert_eq!(refused, Err(PolicyError::Malformed(text.into())));
    }
    let with = |condition: &str| {
        let rest = r#""Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::lake/*""#;
        parse(&format!("{{{rest},\"Condition\":{condition}}}"))
    };
    for (condition, text) in [
        (r#"{"stringequals":{"aws:UserAgent":"a"}}"#, "Invalid Condition type : stringequals"),
        (r#"{"NullIfExists":{"aws:UserAgent":"a"}}"#, "Invalid Condition type : NullIfExists"),
        (r#"{"StringEquals":{"aws:Nothing":"a"}}"#, "Policy has an invalid condition key"),
        (r#"{"IpAddress":{"aws:SourceIp":"10.0.0.0/33"}}"#, "Invalid IP address in Conditions"),
        (
            r#"{"StringEquals":{"s3:prefix":"a"}}"#,
            "Conditions do not apply to combination of actions and resources in statement",
        ),
    ] {
        assert_eq!(with(condition), Err(PolicyError::Malformed(text.into())));
    }
    for unserved in [
        r#"{"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}}"#,
        r#"{"StringEquals":{"s3:signatureversion":"AWS4-HMAC-SHA256"}}"#,
        r#"{"StringLike":{"aws:Referer":"${aws:username}/*"}}"#,
    ] {
        assert!(matches!(with(unserved), Err(PolicyError::Unserved(_))), "{unserved}");
    }
    let large = format!("{{\"Statement\":[],\"Id\":\"{}\"}}", "x".repeat(DOCUMENT_BYTES_MAX));
    assert!(matches!(Policy::parse(large.as_bytes(), Place::Session), Err(PolicyError::Malformed(_))));
}

#[test]
fn stars_and_question_marks_stand_for_characters() {
    for (pattern, text, matching) in [
        ("", "", true),
        ("*", "", true),
        ("*", "a/b", true),
        ("a*c*e", "abcde", true),
        ("a*c*e", "abcd", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("?", "ü", true),
        ("*/*", "a", false),
        ("**", "a", true),
    ] {
        assert_eq!(glob(pattern, text), matching, "{pattern} {text}");
    }
}
