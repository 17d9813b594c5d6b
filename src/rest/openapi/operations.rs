//! What each route takes and answers: one entry a route, beside its row in `route.rs`.
//!
//! A new route needs an entry in [`DESCRIBED`], the schemas that it names in `schemas.rs`, and the document printed
//! anew: `cargo run -q -- openapi > openapi/tidewater.yaml`. Tests fail while one is missing, and when a route answers
//! with a status that its entry does not name.

use crate::{
    config::definitions::WAREHOUSE_CHARS_MAX,
    iceberg::ident::{LEVELS_MAX, NAME_CHARS_MAX},
};
use utoipa::openapi::path::ParameterIn;

/// What the table of routes does not say.
#[derive(Clone, Copy)]
pub struct Described {
    /// The operation's id.
    pub name: &'static str,
    pub tag: &'static str,
    pub parameters: &'static [Parameter],
    /// May be sent again with an `Idempotency-Key`.
    pub takes_key: bool,
    /// The schema of the request's body.
    pub request: Option<&'static str>,
    /// Whether a body is waited for, wanted or not.
    pub reads_body: bool,
    /// 200, or 204 where there is no schema.
    pub answer: Option<&'static str>,
    /// What a success may carry.
    pub headers: &'static [Header],
    /// Besides what every route may answer.
    pub statuses: &'static [u16],
}

/// A parameter, apart from names in the path.
#[derive(Clone)]
pub struct Parameter {
    pub name: &'static str,
    pub place: ParameterIn,
    pub value: Value,
    pub meaning: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy)]
pub enum Value {
    Flag,
    Uuid,
    /// A whole number from 1.
    Size,
    Words(&'static [&'static str]),
    /// Whatever there is room for in a request's head.
    Text,
    /// From so many to so many characters.
    Chars(usize, usize),
}

pub type Header = (&'static str, &'static str);

/// What any route with a warehouse may answer.
pub const ANYWHERE: &[u16] = &[400, 401, 403, 404, 500, 503];
/// What whoever waits for a body may answer.
pub const WITH_BODY: &[u16] = &[408, 413, 415];
/// What changes something: conflicts, and keys that were another request's.
const WITH_KEY: &[u16] = &[409, 422];
/// Tokens are of no warehouse.
pub const TOKENS: &str = "getToken";
pub const OF_TOKENS: &[u16] = &[400, 401, 503];

const NAMESPACE_CHARS_MAX: usize = LEVELS_MAX * (NAME_CHARS_MAX + 1) - 1;

pub const KEY: Parameter = parameter(
    "Idempotency-Key",
    ParameterIn::Header,
    Value::Uuid,
    "Sent again with it, the request is answered as before",
);
const PAGE: &[Parameter] = &[PAGE_TOKEN, PAGE_SIZE];
const PAGE_TOKEN: Parameter = parameter(
    "pageToken",
    ParameterIn::Query,
    Value::Text,
    "Where to go on; empty for the first page; absent for everything at once",
);
const PAGE_SIZE: Parameter =
    parameter("pageSize", ParameterIn::Query, Value::Size, "Names on a page at most; the server may send fewer");
const DELEGATION: Parameter = parameter(
    "X-Iceberg-Access-Delegation",
    ParameterIn::Header,
    Value::Text,
    "vended-credentials: answer with keys for the table's folder; remote-signing: tell where requests to it are \
     signed; both: keys; other words are ignored",
);
const REFERENCED_BY: Parameter = parameter(
    "referenced-by",
    ParameterIn::Query,
    Value::Text,
    "The views through which it is asked for, outermost first, with commas between them; checked for form only",
);

const E_TAG: Header = ("ETag", "For If-None-Match; not with credentials");
const SIGNATURE_CACHE: Header =
    ("Cache-Control", "private: the signature serves the same request again; else no-cache");

/// Everything that is served.
pub static DESCRIBED: &[Described] = &[
    reads("getConfig", "Configuration", "CatalogConfig").with(&[parameter(
        "warehouse",
        ParameterIn::Query,
        Value::Text,
        "Name or location; absent: the default warehouse",
    )]),
    reads(TOKENS, "OAuth2", "OAuthToken").takes("OAuthTokenRequest"),
    reads("listNamespaces", "Namespaces", "ListNamespacesResponse").with(&[
        PAGE_TOKEN,
        PAGE_SIZE,
        parameter(
            "parent",
            ParameterIn::Query,
            Value::Chars(0, NAMESPACE_CHARS_MAX),
            "List below this namespace; absent: the top level",
        ),
    ]),
    changes("createNamespace", "Namespaces").takes("CreateNamespaceRequest").answers("NamespaceResponse"),
    reads("loadNamespaceMetadata", "Namespaces", "NamespaceResponse"),
    tells("namespaceExists", "Namespaces"),
    changes("dropNamespace", "Namespaces"),
    changes("updateProperties", "Namespaces").takes("UpdatePropertiesRequest").answers("UpdatePropertiesResponse"),
    reads("listTables", "Tables", "ListTablesResponse").with(PAGE),
    changes("createTable", "Tables")
        .takes("CreateTableRequest")
        .answers("LoadTableResult")
        .with(&[DELEGATION])
        .carries(&[E_TAG]),
    reads("loadTable", "Tables", "LoadTableResult")
        .with(&[
            DELEGATION,
            REFERENCED_BY,
            parameter("If-None-Match", ParameterIn::Header, Value::Text, "Tags of earlier answers"),
            parameter(
                "snapshots",
                ParameterIn::Query,
                Value::Words(&["all", "refs"]),
                "all, or refs: only those that a branch or tag points at",
            ),
        ])
        .carries(&[E_TAG])
        .or(&[304]),
    changes("updateTable", "Tables").takes("CommitTableRequest").answers("CommitTableResponse").carries(&[E_TAG]),
    changes("dropTable", "Tables").with(&[parameter(
        "purgeRequested",
        ParameterIn::Query,
        Value::Flag,
        "true: delete the table's files too",
    )]),
    tells("tableExists", "Tables"),
    reads("loadCredentials", "Tables", "LoadCredentialsResponse").with(&[REFERENCED_BY]),
    reads("signRequest", "Tables", "RemoteSignResult")
        .takes("RemoteSignRequest")
        .with(&[parameter(
            "place",
            ParameterIn::Query,
            Value::Text,
            "What remote-signing-config named; stands for the table while it is staged and after it was dropped",
        )])
        .carries(&[SIGNATURE_CACHE]),
    reads("signS3Request", "Tables", "RemoteSignResult").takes("RemoteSignRequest").carries(&[SIGNATURE_CACHE]),
    changes("registerTable", "Tables")
        .takes("RegisterTableRequest")
        .answers("LoadTableResult")
        .with(&[DELEGATION])
        .carries(&[E_TAG]),
    changes("unregisterTable", "Tables").answers("CommitTableResponse"),
    tells("reportMetrics", "Tables").takes("ReportMetricsRequest"),
    reads("listFunctions", "Functions", "ListFunctionsResponse").with(PAGE),
    reads("loadFunction", "Functions", "LoadFunctionResult"),
    changes("renameTable", "Tables").takes("RenameTableRequest"),
    changes("commitTransaction", "Tables").takes("CommitTransactionRequest"),
    reads("listViews", "Views", "ListTablesResponse").with(PAGE),
    changes("createView", "Views").takes("CreateViewRequest").answers("LoadViewResult"),
    reads("loadView", "Views", "LoadViewResult").with(&[REFERENCED_BY]),
    changes("replaceView", "Views").takes("CommitViewRequest").answers("LoadViewResult"),
    changes("dropView", "Views"),
    tells("viewExists", "Views"),
    changes("renameView", "Views").takes("RenameTableRequest"),
    changes("registerView", "Views").takes("RegisterViewRequest").answers("LoadViewResult"),
];

/// Characters of a name in the path.
pub fn path_chars_max(name: &str) -> usize {
    match name {
        "prefix" => WAREHOUSE_CHARS_MAX,
        "namespace" => NAMESPACE_CHARS_MAX,
        _ => NAME_CHARS_MAX,
    }
}

const fn parameter(name: &'static str, place: ParameterIn, value: Value, meaning: &'static str) -> Parameter {
    Parameter { name, place, value, meaning }
}

/// Answers 204 and changes nothing.
const fn tells(name: &'static str, tag: &'static str) -> Described {
    Described {
        name,
        tag,
        parameters: &[],
        takes_key: false,
        request: None,
        reads_body: false,
        answer: None,
        headers: &[],
        statuses: &[],
    }
}

/// Answers 200 and changes nothing.
const fn reads(name: &'static str, tag: &'static str, answer: &'static str) -> Described {
    tells(name, tag).answers(answer)
}

/// Answers 204. What its body is, is part of what its key stands for.
const fn changes(name: &'static str, tag: &'static str) -> Described {
    Described { takes_key: true, reads_body: true, statuses: WITH_KEY, ..tells(name, tag) }
}

impl Described {
    const fn answers(self, schema: &'static str) -> Described {
        Described { answer: Some(schema), ..self }
    }

    const fn takes(self, schema: &'static str) -> Described {
        Described { request: Some(schema), reads_body: true, ..self }
    }

    const fn with(self, parameters: &'static [Parameter]) -> Described {
        Described { parameters, ..self }
    }

    const fn carries(self, headers: &'static [Header]) -> Described {
        Described { headers, ..self }
    }

    const fn or(self, statuses: &'static [u16]) -> Described {
        Described { statuses, ..self }
    }
}
