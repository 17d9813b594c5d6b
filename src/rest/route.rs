//! What a request asks for: method and raw path to an operation. Pure.
//!
//! One table lists what is served. The router, the `endpoints` of `/v1/config` and the OpenAPI document are made from
//! it, so they cannot disagree.

use super::{path, tokens};
use crate::{
    catalog::{self, Result},
    iceberg::ident::{Namespace, TableIdent},
};
use http::Method;

/// An operation of the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    GetConfig,
    GetToken,
    /// On a warehouse.
    On(Named),
}

/// An operation on a warehouse, with the names in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    ListNamespaces,
    CreateNamespace,
    LoadNamespaceMetadata(Namespace),
    NamespaceExists(Namespace),
    DropNamespace(Namespace),
    UpdateProperties(Namespace),
    ListTables(Namespace),
    CreateTable(Namespace),
    LoadTable(TableIdent),
    UpdateTable(TableIdent),
    DropTable(TableIdent),
    TableExists(TableIdent),
    LoadCredentials(TableIdent),
    SignRequest(TableIdent),
    SignS3Request,
    RegisterTable(Namespace),
    UnregisterTable(TableIdent),
    ReportMetrics(TableIdent),
    ListFunctions(Namespace),
    LoadFunction(TableIdent),
    RenameTable,
    ListViews(Namespace),
    CreateView(Namespace),
    LoadView(TableIdent),
    ReplaceView(TableIdent),
    DropView(TableIdent),
    ViewExists(TableIdent),
    RenameView,
    RegisterView(Namespace),
    CommitTransaction,
}

/// A served route.
#[derive(Debug)]
pub struct Endpoint {
    /// The specification's operation id.
    pub name: &'static str,
    pub method: Method,
    /// The path as the specification writes it.
    pub template: &'static str,
    pub summary: &'static str,
    operation: fn(&Names<'_>) -> Result<Operation>,
}

/// A request that is served.
#[derive(Debug)]
pub struct Route {
    pub endpoint: &'static Endpoint,
    /// The warehouse that the prefix names; `None` without prefix.
    pub warehouse: Option<String>,
    pub operation: Operation,
}

/// A request that is not.
#[derive(Debug)]
pub enum Unrouted {
    NoRoute,
    WrongMethod { allowed: Vec<&'static Method> },
    BadName(catalog::Error),
}

/// Raw names found in a path.
#[derive(Debug, Default)]
struct Names<'a> {
    prefix: Option<&'a str>,
    namespace: &'a str,
    /// Of a table, view or function.
    table: &'a str,
}

impl Names<'_> {
    fn namespace(&self) -> Result<Namespace> {
        path::namespace(self.namespace)
    }
    fn table(&self) -> Result<TableIdent> {
        path::table(self.namespace, self.table)
    }
}

const PREFIX: &str = "{prefix}";
const NAMESPACE: &str = "{namespace}";
const TABLE: &str = "{table}";
const VIEW: &str = "{view}";
const FUNCTION: &str = "{function}";

const NAMESPACES_PATH: &str = "/v1/{prefix}/namespaces";
const NAMESPACE_PATH: &str = "/v1/{prefix}/namespaces/{namespace}";
const PROPERTIES_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/properties";
const TABLES_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/tables";
const TABLE_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/tables/{table}";
const CREDENTIALS_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials";
const VIEWS_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/views";
const VIEW_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/views/{view}";
const REGISTER_VIEW_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/register-view";
const SIGN_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign";
const REGISTER_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/register";
const UNREGISTER_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister";
const METRICS_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics";
const FUNCTIONS_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/functions";
const FUNCTION_PATH: &str = "/v1/{prefix}/namespaces/{namespace}/functions/{function}";

/// Everything that is served.
pub static ENDPOINTS: &[Endpoint] = &[
    endpoint("getConfig", Method::GET, "/v1/config", "Settings a client starts with", |_| Ok(Operation::GetConfig)),
    endpoint("getToken", Method::POST, tokens::PATH, "Get or refresh a bearer token", |_| Ok(Operation::GetToken)),
    endpoint("listNamespaces", Method::GET, NAMESPACES_PATH, "List the direct children of a namespace", |_| {
        Ok(Operation::On(Named::ListNamespaces))
    }),
    endpoint("createNamespace", Method::POST, NAMESPACES_PATH, "Create a namespace", |_| {
        Ok(Operation::On(Named::CreateNamespace))
    }),
    endpoint("loadNamespaceMetadata", Method::GET, NAMESPACE_PATH, "Load a namespace's properties", |names| {
        Ok(Operation::On(Named::LoadNamespaceMetadata(names.namespace()?)))
    }),
    endpoint("namespaceExists", Method::HEAD, NAMESPACE_PATH, "Whether a namespace exists", |names| {
        Ok(Operation::On(Named::NamespaceExists(names.namespace()?)))
    }),
    endpoint("dropNamespace", Method::DELETE, NAMESPACE_PATH, "Drop an empty namespace", |names| {
        Ok(Operation::On(Named::DropNamespace(names.namespace()?)))
    }),
    endpoint("updateProperties", Method::POST, PROPERTIES_PATH, "Set and remove a namespace's properties", |names| {
        Ok(Operation::On(Named::UpdateProperties(names.namespace()?)))
    }),
    endpoint("listTables", Method::GET, TABLES_PATH, "List the tables of a namespace", |names| {
        Ok(Operation::On(Named::ListTables(names.namespace()?)))
    }),
    endpoint("createTable", Method::POST, TABLES_PATH, "Create or stage a table", |names| {
        Ok(Operation::On(Named::CreateTable(names.namespace()?)))
    }),
    endpoint("loadTable", Method::GET, TABLE_PATH, "Load a table", |names| {
        Ok(Operation::On(Named::LoadTable(names.table()?)))
    }),
    endpoint("updateTable", Method::POST, TABLE_PATH, "Commit to a table, or complete a staged one", |names| {
        Ok(Operation::On(Named::UpdateTable(names.table()?)))
    }),
    endpoint("dropTable", Method::DELETE, TABLE_PATH, "Drop a table, with or without its files", |names| {
        Ok(Operation::On(Named::DropTable(names.table()?)))
    }),
    endpoint("tableExists", Method::HEAD, TABLE_PATH, "Whether a table exists", |names| {
        Ok(Operation::On(Named::TableExists(names.table()?)))
    }),
    endpoint("loadCredentials", Method::GET, CREDENTIALS_PATH, "Fresh storage credentials for a table", |names| {
        Ok(Operation::On(Named::LoadCredentials(names.table()?)))
    }),
    endpoint("signRequest", Method::POST, SIGN_PATH, "Sign a request to a table's objects", |names| {
        Ok(Operation::On(Named::SignRequest(names.table()?)))
    }),
    endpoint("signS3Request", Method::POST, "/v1/aws/s3/sign", "Sign a request to some table's objects", |_| {
        Ok(Operation::On(Named::SignS3Request))
    }),
    endpoint("registerTable", Method::POST, REGISTER_PATH, "Register a table by its metadata file", |names| {
        Ok(Operation::On(Named::RegisterTable(names.namespace()?)))
    }),
    endpoint("unregisterTable", Method::POST, UNREGISTER_PATH, "Forget a table and leave its files", |names| {
        Ok(Operation::On(Named::UnregisterTable(names.table()?)))
    }),
    endpoint("reportMetrics", Method::POST, METRICS_PATH, "Report what a scan or commit did", |names| {
        Ok(Operation::On(Named::ReportMetrics(names.table()?)))
    }),
    endpoint("listFunctions", Method::GET, FUNCTIONS_PATH, "List the functions of a namespace", |names| {
        Ok(Operation::On(Named::ListFunctions(names.namespace()?)))
    }),
    endpoint("loadFunction", Method::GET, FUNCTION_PATH, "Load a function with all its definitions", |names| {
        Ok(Operation::On(Named::LoadFunction(names.table()?)))
    }),
    endpoint("renameTable", Method::POST, "/v1/{prefix}/tables/rename", "Rename a table", |_| {
        Ok(Operation::On(Named::RenameTable))
    }),
    endpoint("commitTransaction", Method::POST, "/v1/{prefix}/transactions/commit", "Commit to several tables", |_| {
        Ok(Operation::On(Named::CommitTransaction))
    }),
    endpoint("listViews", Method::GET, VIEWS_PATH, "List the views of a namespace", |names| {
        Ok(Operation::On(Named::ListViews(names.namespace()?)))
    }),
    endpoint("createView", Method::POST, VIEWS_PATH, "Create a view", |names| {
        Ok(Operation::On(Named::CreateView(names.namespace()?)))
    }),
    endpoint("loadView", Method::GET, VIEW_PATH, "Load a view", |names| {
        Ok(Operation::On(Named::LoadView(names.table()?)))
    }),
    endpoint("replaceView", Method::POST, VIEW_PATH, "Commit to a view", |names| {
        Ok(Operation::On(Named::ReplaceView(names.table()?)))
    }),
    endpoint("dropView", Method::DELETE, VIEW_PATH, "Drop a view", |names| {
        Ok(Operation::On(Named::DropView(names.table()?)))
    }),
    endpoint("viewExists", Method::HEAD, VIEW_PATH, "Whether a view exists", |names| {
        Ok(Operation::On(Named::ViewExists(names.table()?)))
    }),
    endpoint("renameView", Method::POST, "/v1/{prefix}/views/rename", "Rename a view", |_| {
        Ok(Operation::On(Named::RenameView))
    }),
    endpoint("registerView", Method::POST, REGISTER_VIEW_PATH, "Register a view by its metadata file", |names| {
        Ok(Operation::On(Named::RegisterView(names.namespace()?)))
    }),
];

const fn endpoint(
    name: &'static str,
    method: Method,
    template: &'static str,
    summary: &'static str,
    operation: fn(&Names<'_>) -> Result<Operation>,
) -> Endpoint {
    Endpoint { name, method, template, summary, operation }
}

/// Words that a path without prefix starts with.
pub fn is_reserved(segment: &str) -> bool {
    matches!(segment, "config" | "oauth" | "namespaces" | "tables" | "transactions" | "views")
}

/// Finds the route of a request. `raw_path` starts with `/v1` and is as it was sent.
///
/// # Errors
/// [`Unrouted`] when nothing is served there.
pub fn parse(method: &Method, raw_path: &str) -> Result<Route, Unrouted> {
    let mut allowed = Vec::new();
    for endpoint in ENDPOINTS {
        let Some(names) = matches(endpoint.template, raw_path) else { continue };
        if endpoint.method != *method {
            allowed.push(&endpoint.method);
            continue;
        }
        let warehouse = names.prefix.map(path::decode).transpose().map_err(Unrouted::BadName)?;
        let operation = (endpoint.operation)(&names).map_err(Unrouted::BadName)?;
        return Ok(Route { endpoint, warehouse, operation });
    }
    if allowed.is_empty() { Err(Unrouted::NoRoute) } else { Err(Unrouted::WrongMethod { allowed }) }
}

/// Fits a raw path to a template, segment by segment. The prefix may be left out.
fn matches<'a>(template: &str, raw_path: &'a str) -> Option<Names<'a>> {
    let mut names = Names::default();
    let mut segments = raw_path.split('/').peekable();
    for part in template.split('/') {
        if part == PREFIX && segments.peek().is_some_and(|segment| is_reserved(segment)) {
            continue;
        }
        let segment = segments.next()?;
        match part {
            PREFIX => names.prefix = Some(segment),
            NAMESPACE => names.namespace = segment,
            TABLE | VIEW | FUNCTION => names.table = segment,
            literal if literal == segment => {}
            _ => return None,
        }
    }
    segments.next().is_none().then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(request: &str, expected: Expect) {
        let (method, path) = request.split_once(' ').unwrap();
        let shown = match parse(&method.parse().unwrap(), path) {
            Ok(route) => match route.operation {
                Operation::On(named) => format!("{named:?} in {:?}", route.warehouse),
                operation => format!("{operation:?}"),
            },
            Err(Unrouted::NoRoute) => "no route".to_owned(),
            Err(Unrouted::WrongMethod { allowed }) => format!("allowed: {allowed:?}"),
            Err(Unrouted::BadName(error)) => format!("bad name: {error}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn requests_with_and_without_prefix_are_told_apart() {
        check("GET /v1/config", expect!["GetConfig"]);
        check("POST /v1/oauth/tokens", expect!["GetToken"]);
        check("GET /v1/namespaces", expect!["ListNamespaces in None"]);
        check("GET /v1/lakehouse/namespaces", expect![[r#"ListNamespaces in Some("lakehouse")"#]]);
        check("GET /v1/team%20a%2Fprod/namespaces", expect![[r#"ListNamespaces in Some("team a/prod")"#]]);
        check("GET /v1/%6Eamespaces/namespaces", expect![[r#"ListNamespaces in Some("namespaces")"#]]);
        check("POST /v1/tables/rename", expect!["RenameTable in None"]);
        check("POST /v1/w/tables/rename", expect![[r#"RenameTable in Some("w")"#]]);
        check("POST /v1/transactions/commit", expect!["CommitTransaction in None"]);
    }

    #[test]
    fn names_keep_what_they_hold() {
        check(
            "GET /v1/w/namespaces/a%1Fb/tables/t%2Fu",
            expect![[r#"LoadTable(TableIdent { namespace: Namespace(["a", "b"]), name: "t/u" }) in Some("w")"#]],
        );
        check(
            "GET /v1/namespaces/namespaces/tables/tables",
            expect![[r#"LoadTable(TableIdent { namespace: Namespace(["namespaces"]), name: "tables" }) in None"#]],
        );
        check("HEAD /v1/namespaces/a+b", expect![[r#"NamespaceExists(Namespace(["a b"])) in None"#]]);
    }

    #[test]
    fn what_is_not_served_is_said() {
        check("GET /v1/", expect!["no route"]);
        check("GET /v1", expect!["no route"]);
        check("GET /v1/w/namespaces/n/tables/t/", expect!["no route"]);
        check("GET /v1/w/namespaces/n/tables/t/u", expect!["no route"]);
        check("GET /v1/w/namespaces/n/views/v/credentials", expect!["no route"]);
        check("PUT /v1/w/namespaces/n/views/v", expect!["allowed: [GET, POST, DELETE, HEAD]"]);
        check("PUT /v1/config", expect!["allowed: [GET]"]);
        check("PATCH /v1/w/namespaces/n/tables/t", expect!["allowed: [GET, POST, DELETE, HEAD]"]);
    }

    #[test]
    fn every_endpoint_is_reached_by_its_own_template() {
        for endpoint in ENDPOINTS {
            let route = parse(&endpoint.method, &endpoint.template.replace(['{', '}'], "")).unwrap();
            assert_eq!(route.endpoint.name, endpoint.name);
        }
    }
}
