use super::*;
use crate::catalog::publish::faults::{Fault, Statement};
use futures_util::future::join_all;

const TABLE: &str = "/lakehouse/namespaces/n/tables/t";

async fn send(server: &Server, key: &Uuid, method: &str, path: &str, body: &Value) -> Reply {
    let key = key.to_string().to_uppercase();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(method, path, &[("idempotency-key", &key)], body).await
}

fn set(value: &str) -> Value {
    json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": value}}]})
}

async fn server(db: Db) -> Server {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    server
}

/// Sends a request twice under one key and expects the same status and body.
async fn twice(server: &Server, method: &str, path: &str, body: Value, status: u16) -> Value {
    let key = Uuid::now_v7();
    let first = send(server, &key, method, path, &body).await;
    assert_eq!(first.status.as_u16(), status, "{method} {path}: {}", first.body);
    let second = send(server, &key, method, path, &body).await;
    assert_eq!((second.status, &second.body), (first.status, &first.body), "{method} {path}");
    first.body
}

async fn every_change_is_made_once_and_answered_twice(db: Db) {
    let server = server(db).await;
    let properties = json!({"a": "1", "b": "2"});
    twice(&server, "POST", "/namespaces", json!({"namespace": ["m"], "properties": properties}), 200).await;
    let change = json!({"removals": ["a", "never"], "updates": {"c": "3"}});
    let changed = twice(&server, "POST", "/namespaces/m/properties", change, 200).await;
    assert_eq!(changed, json!({"updated": ["c"], "removed": ["a"], "missing": ["never"]}));
    twice(&server, "DELETE", "/namespaces/m", Value::Null, 204).await;
    let created = twice(&server, "POST", "/namespaces/n/tables", new_table("u"), 200).await;
    assert!(created["metadata-location"].is_string());
    let committed = twice(&server, "POST", TABLE, set("1"), 200).await;
    let loaded = server.get(TABLE).await.expect(200);
    assert_eq!(loaded["metadata-location"], committed["metadata-location"]);
    assert_eq!(loaded["metadata"]["metadata-log"].as_array().unwrap().len(), 1, "committed once");
    let names = |name: &str| json!({"namespace": ["n"], "name": name});
    twice(&server, "POST", "/tables/rename", json!({"source": names("u"), "destination": names("v")}), 204).await;
    let changes = json!({"table-changes": [
        {"identifier": names("t"), "requirements": [], "updates": set("2")["updates"]},
        {"identifier": names("v"), "requirements": [], "updates": set("2")["updates"]},
    ]});
    twice(&server, "POST", "/transactions/commit", changes, 204).await;
    assert_eq!(server.get(TABLE).await.expect(200)["metadata"]["metadata-log"].as_array().unwrap().len(), 2);
    let gone = twice(&server, "POST", "/namespaces/n/tables/v/unregister", Value::Null, 200).await;
    let registration = json!({"name": "v", "metadata-location": gone["metadata-location"]});
    twice(&server, "POST", "/namespaces/n/register", registration.clone(), 200).await;
    twice(&server, "POST", "/namespaces/n/register", registration.clone(), 409).await;
    let mut over = registration;
    over["overwrite"] = json!(true);
    twice(&server, "POST", "/namespaces/n/register", over, 200).await;
    twice(&server, "DELETE", "/namespaces/n/tables/v", Value::Null, 204).await;
    twice(&server, "DELETE", "/namespaces/n/tables/t?purgeRequested=true", Value::Null, 204).await;
}

async fn an_answer_shows_the_version_that_the_request_made(db: Db) {
    let server = server(db).await;
    let key = Uuid::now_v7();
    let first = send(&server, &key, "POST", TABLE, &set("1")).await.expect(200);
    server.post(TABLE, set("2")).await.expect(200);
    assert_eq!(send(&server, &key, "POST", TABLE, &set("1")).await.expect(200), first);
    assert_eq!(server.get(TABLE).await.expect(200)["metadata"]["properties"]["k"], "2", "and undoes nothing");
}

async fn an_answer_is_given_again_whatever_became_of_what_it_was_about(db: Db) {
    let server = server(db).await;
    let keys: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let (tables, namespace) = ("/namespaces/n/tables", json!({"namespace": ["m"], "properties": {"a": "b"}}));
    let made = send(&server, &keys[0], "POST", "/namespaces", &namespace).await.expect(200);
    let created = send(&server, &keys[1], "POST", tables, &new_table("u")).await.expect(200);
    let committed = send(&server, &keys[2], "POST", TABLE, &set("1")).await.expect(200);
    server.delete("/namespaces/m").await.expect(204);
    let names = |name: &str| json!({"namespace": ["n"], "name": name});
    server.post("/tables/rename", json!({"source": names("u"), "destination": names("v")})).await.expect(204);
    server.delete(TABLE).await.expect(204);
    assert_eq!(send(&server, &keys[0], "POST", "/namespaces", &namespace).await.expect(200), made);
    assert_eq!(send(&server, &keys[1], "POST", tables, &new_table("u")).await.expect(200), created);
    assert_eq!(send(&server, &keys[2], "POST", TABLE, &set("1")).await.expect(200), committed);
    server.get("/namespaces/m").await.expect(404);
    server.get(TABLE).await.expect(404);
}

async fn refusals_are_answered_again_even_once_they_would_not_be(db: Db) {
    let server = server(db).await;
    let key = Uuid::now_v7();
    let taken = send(&server, &key, "POST", "/namespaces/n/tables", &new_table("t")).await;
    assert_eq!(taken.error(), "409 AlreadyExistsException Table already exists: n.t");
    server.delete("/namespaces/n/tables/t").await.expect(204);
    let again = send(&server, &key, "POST", "/namespaces/n/tables", &new_table("t")).await;
    assert_eq!(again.error(), taken.error());
    twice(&server, "POST", "/namespaces/n/tables", json!({"name": "x"}), 400).await;
    twice(&server, "DELETE", "/namespaces/n/tables/none", Value::Null, 404).await;
    let overlap = json!({"removals": ["a"], "updates": {"a": "b"}});
    twice(&server, "POST", "/namespaces/n/properties", overlap, 422).await;
}

async fn a_key_stands_for_one_request(db: Db) {
    let server = server(db).await;
    let key = Uuid::now_v7();
    send(&server, &key, "POST", TABLE, &set("1")).await.expect(200);
    for (method, path, body) in [
        ("POST", TABLE, set("2")),
        ("POST", "/namespaces/n/tables", new_table("u")),
        ("DELETE", TABLE, Value::Null),
        ("DELETE", "/namespaces/n", Value::Null),
    ] {
        let reply = send(&server, &key, method, path, &body).await;
        let expected =
            format!("422 UnprocessableEntityException the Idempotency-Key was used for another request: {key}");
        assert_eq!(reply.error(), expected, "{method} {path}");
    }
    assert_eq!(server.get(TABLE).await.expect(200)["metadata"]["properties"]["k"], "1");
    send(&server, &key, "POST", TABLE, &set("1")).await.expect(200);
}

async fn what_is_no_key_is_refused(db: Db) {
    let server = server(db).await;
    let braces = format!("{{{}}}", Uuid::now_v7());
    for key in ["", "x", "0123456789", "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz", &braces] {
        let reply = server.send("POST", TABLE, &[("idempotency-key", key)], set("1").to_string()).await;
        assert!(reply.error().starts_with("400 BadRequestException Idempotency-Key is not one UUID"), "{key}");
    }
    let keys = [Uuid::now_v7().to_string(), Uuid::now_v7().to_string()];
    let two = [("idempotency-key", keys[0].as_str()), ("idempotency-key", keys[1].as_str())];
    server.send("POST", TABLE, &two, set("1").to_string()).await.expect(400);
    assert_eq!(server.get(TABLE).await.expect(200)["metadata"]["properties"].get("k"), None);
    // Requests that change nothing have no use for one.
    server.send("GET", TABLE, &[("idempotency-key", "x")], "").await.expect(200);
}

async fn keys_of_others_mean_nothing(db: Db) {
    let server = server(db).await;
    let mut other = Server::replica_of(&server).await;
    let theirs = server.app.auth.create_key("bob", None, now_ms()).await.unwrap();
    let token = server.app.auth.issue(&theirs.id, &theirs.secret, now_ms()).await.unwrap();
    other.token = token.access_token.expose_secret().to_owned();
    let (key, create) = (Uuid::now_v7(), json!({"namespace": ["m"]}));
    send(&server, &key, "POST", "/namespaces", &create).await.expect(200);
    let refused = send(&other, &key, "POST", "/namespaces", &create).await;
    assert_eq!(refused.error(), "409 AlreadyExistsException Namespace already exists: m");
    let again = send(&other, &key, "POST", "/namespaces", &create).await;
    assert_eq!(again.error(), refused.error());
    send(&server, &key, "POST", "/namespaces", &create).await.expect(200);
    let reused = send(&other, &key, "POST", "/namespaces", &json!({"namespace": ["o"]})).await;
    assert!(reused.error().starts_with("422 "));
}

async fn after_its_time_a_key_is_new(db: Db) {
    let server = Server::start_with(db, |settings| settings.idempotency_lifetime_s = 0).await;
    let key = Uuid::now_v7();
    for name in ["a", "b"] {
        send(&server, &key, "POST", "/namespaces", &json!({"namespace": [name]})).await.expect(200);
        send(&server, &key, "POST", "/namespaces", &json!({"namespace": [name]})).await.expect(409);
    }
}

fn lost_request(statement: Statement, name: &str, value: &str) -> (&'static str, Value, u16) {
    match statement {
        Statement::Swap => (TABLE, set(value), 200),
        Statement::Create => ("/namespaces/n/tables", new_table(name), 200),
        _ => {
            let identifier = json!({"namespace": ["n"], "name": "t"});
            let change = json!({"identifier": identifier, "updates": set(value)["updates"]});
            ("/transactions/commit", json!({"table-changes": [change]}), 204)
        }
    }
}

async fn a_request_whose_answer_was_lost_is_answered_when_it_comes_again(db: Db) {
    let server = server(db).await;
    for (at, statement) in [Statement::Swap, Statement::Create, Statement::Transaction].into_iter().enumerate() {
        let (path, body, status) = lost_request(statement, "lost", &format!("lost-{at}"));
        let key = Uuid::now_v7();
        let lost = std::iter::repeat_n((Statement::Settle, Fault::StatementLost), 6);
        server.app.catalog.faults.plan([(statement, Fault::AnswerLost)].into_iter().chain(lost));
        send(&server, &key, "POST", path, &body).await.expect(500);
        send(&server, &key, "POST", path, &body).await.expect(status);
        // What was lost on its way there left no record, and is done now.
        let (path, body, status) = lost_request(statement, "late", &format!("late-{at}"));
        let key = Uuid::now_v7();
        server.app.catalog.faults.plan([(statement, Fault::NoConnection)]);
        send(&server, &key, "POST", path, &body).await.expect(503);
        send(&server, &key, "POST", path, &body).await.expect(status);
    }
    let loaded = server.get(TABLE).await.expect(200);
    assert_eq!(loaded["metadata"]["properties"]["k"], "late-2");
    assert_eq!(loaded["metadata"]["metadata-log"].as_array().unwrap().len(), 4);
}

async fn the_second_of_two_at_once_waits_and_gets_the_first_ones_answer(db: Db) {
    let server = Arc::new(server(db).await);
    let key = Uuid::now_v7();
    let requests = (0..8).map(|_| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { send(&server, &key, "POST", "/namespaces/n/tables", &new_table("u")).await })
    });
    let replies = join_all(requests.collect::<Vec<_>>()).await;
    let bodies: Vec<Value> = replies.into_iter().map(|reply| reply.unwrap().expect(200)).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "one create, told to all");
}

async fn another_replica_may_have_answered_meanwhile(db: Db) {
    let server = Arc::new(server(db).await);
    for (at, statement) in [Statement::Swap, Statement::Create, Statement::Transaction].into_iter().enumerate() {
        let key = Uuid::now_v7();
        let (path, body, status) = lost_request(statement, "u", &at.to_string());
        let files = server.keys("wh/").await.len();
        server.app.catalog.faults.plan([(statement, Fault::Held)]);
        let held = tokio::spawn({
            let (server, body) = (Arc::clone(&server), body.clone());
            async move { send(&server, &key, "POST", path, &body).await }
        });
        while server.keys("wh/").await.len() < files + 1 {
            tokio::task::yield_now().await;
        }
        // The same request through a replica that shares nothing but the database.
        let other = Server::replica_of(&server).await;
        let first = send(&other, &key, "POST", path, &body).await.expect(status);
        server.app.catalog.faults.release();
        let second = held.await.unwrap().expect(status);
        assert_eq!(second["metadata-location"], first["metadata-location"], "{statement:?}");
        assert_eq!(server.keys("wh/").await.len(), files + 1, "{statement:?}: the second's file is gone");
    }
    assert_eq!(server.get(TABLE).await.expect(200)["metadata"]["metadata-log"].as_array().unwrap().len(), 2);
}

async fn staged_tables_are_made_anew(db: Db) {
    let server = server(db).await;
    let (key, mut request) = (Uuid::now_v7(), new_table("s"));
    request["stage-create"] = json!(true);
    for _ in 0..2 {
        let staged = send(&server, &key, "POST", "/namespaces/n/tables", &request).await.expect(200);
        assert_eq!(staged.get("metadata-location"), None);
    }
    server.get("/namespaces/n/tables/s").await.expect(404);
}

async fn the_lifetime_is_told(db: Db) {
    let server = Server::start_with(db, |settings| settings.idempotency_lifetime_s = 90).await;
    assert_eq!(server.get("/config").await.expect(200)["idempotency-key-lifetime"], "PT90S");
}

on_both! {
    every_change_is_made_once_and_answered_twice,
    an_answer_shows_the_version_that_the_request_made,
    refusals_are_answered_again_even_once_they_would_not_be,
    a_key_stands_for_one_request,
    keys_of_others_mean_nothing,
    after_its_time_a_key_is_new,
    an_answer_is_given_again_whatever_became_of_what_it_was_about,
    what_is_no_key_is_refused,
    a_request_whose_answer_was_lost_is_answered_when_it_comes_again,
    the_second_of_two_at_once_waits_and_gets_the_first_ones_answer,
    another_replica_may_have_answered_meanwhile,
    staged_tables_are_made_anew,
    the_lifetime_is_told,
}
