//! Many writers at once: every acknowledged commit is in the history, nothing else is, and the history is a chain.

use crate::{
    catalog::{Answer, Catalog},
    database::Database,
    history::{self, at_once, create_table, key, location},
    s3::{BUCKET, S3},
    server::Server,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

on_both_databases! {
    sixteen_writers_on_one_table_make_a_chain,
    sixteen_writers_on_a_table_each_make_chains,
    commits_under_two_names_make_one_chain,
    conflicting_commits_have_one_winner,
    racing_creates_have_one_winner_and_leave_one_file,
}

const WRITERS: usize = 16;
const COMMITS: usize = 10;
/// Of one writer on a table that moves; it misses about every other time.
const ATTEMPTS_MAX: usize = 100 * COMMITS;

async fn sixteen_writers_on_one_table_make_a_chain(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let created = create_table(&catalog, "t").await;
    let acknowledged = at_once(WRITERS, |writer| {
        let catalog = catalog.clone();
        async move { commits(&catalog, "t", writer).await }
    })
    .await;
    let acknowledged: Vec<String> = acknowledged.into_iter().flatten().collect();
    assert_eq!(acknowledged.len(), WRITERS * COMMITS);
    check_history(&server, &catalog, "t", created, acknowledged).await;
}

async fn sixteen_writers_on_a_table_each_make_chains(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let mut created = Vec::new();
    for writer in 0..WRITERS {
        created.push(create_table(&catalog, &format!("t{writer}")).await);
    }
    let acknowledged = at_once(WRITERS, |writer| {
        let catalog = catalog.clone();
        async move { commits(&catalog, &format!("t{writer}"), writer).await }
    })
    .await;
    for (writer, (created, acknowledged)) in created.into_iter().zip(acknowledged).enumerate() {
        check_history(&server, &catalog, &format!("t{writer}"), created, acknowledged).await;
    }
}

/// Commits to one name take turns within a process. A table on the move has two, and then the swap alone decides.
async fn commits_under_two_names_make_one_chain(database: Database) {
    const NAMES: [&str; 2] = ["here", "there"];
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let created = create_table(&catalog, NAMES[0]).await;
    let writing = Arc::new(AtomicUsize::new(WRITERS));
    // One task more than the writers: it moves the table until the last of them is done.
    let files = at_once(WRITERS + 1, |task| {
        let (catalog, writing) = (catalog.clone(), Arc::clone(&writing));
        async move {
            if task == WRITERS {
                return vec![move_between(&catalog, NAMES, &writing).await];
            }
            let files = commits_wherever(&catalog, NAMES, task).await;
            writing.fetch_sub(1, Ordering::SeqCst);
            files
        }
    });
    let mut acknowledged = files.await;
    let name = acknowledged.pop().and_then(|names| names.into_iter().next()).expect("the name it has now");
    let acknowledged: Vec<String> = acknowledged.into_iter().flatten().collect();
    assert_eq!(acknowledged.len(), WRITERS * COMMITS);
    check_history(&server, &catalog, &name, created, acknowledged).await;
}

/// All build on the same current schema and change it: one may win, and the others must be told.
async fn conflicting_commits_have_one_winner(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let created = create_table(&catalog, "t").await;
    let answers = at_once(WRITERS, |writer| {
        let catalog = catalog.clone();
        async move {
            let fields = json!([
                {"id": 1, "name": "id", "required": true, "type": "long"},
                {"id": 2, "name": format!("column_{writer}"), "required": false, "type": "string"}
            ]);
            let requirements = json!([{"type": "assert-current-schema-id", "current-schema-id": 0}]);
            let updates = json!([
                {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
                {"action": "set-current-schema", "schema-id": -1}
            ]);
            catalog.commit("ns", "t", requirements, updates).await
        }
    })
    .await;
    let won = one_winner(&answers, "CommitFailedException");
    check_history(&server, &catalog, "t", created, vec![location(&won)]).await;
}

async fn racing_creates_have_one_winner_and_leave_one_file(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let answers = at_once(WRITERS, |_| {
        let catalog = catalog.clone();
        async move {
            let schema = json!({"type": "struct", "fields": []});
            catalog.post("/v1/namespaces/ns/tables", &json!({"name": "t", "schema": schema})).await
        }
    })
    .await;
    let won = one_winner(&answers, "AlreadyExistsException");
    let files = S3::root(&server).keys(BUCKET, "").await;
    assert_eq!(files, [key(&location(&won))]);
}

/// The metadata files of one writer's commits. Each must succeed: they require nothing.
async fn commits(catalog: &Catalog, table: &str, writer: usize) -> Vec<String> {
    let mut files = Vec::new();
    for count in 0..COMMITS {
        let answer = catalog.set_property("ns", table, &format!("writer-{writer}"), &count.to_string()).await;
        files.push(location(&answer.ok()));
    }
    files
}

/// The same on a table that moves: the name it has just left is one of no table.
async fn commits_wherever(catalog: &Catalog, names: [&str; 2], writer: usize) -> Vec<String> {
    let mut files = Vec::new();
    for attempt in 0..ATTEMPTS_MAX {
        let name = names[(writer + attempt) % names.len()];
        let answer = catalog.set_property("ns", name, &format!("writer-{writer}"), &attempt.to_string()).await;
        if answer.status == 404 {
            answer.error(404, "NoSuchTableException");
            continue;
        }
        files.push(location(&answer.ok()));
        if files.len() == COMMITS {
            return files;
        }
    }
    panic!("writer {writer} missed the table {ATTEMPTS_MAX} times");
}

/// Moves the table to and fro while anybody is writing; answers the name it has in the end.
async fn move_between(catalog: &Catalog, names: [&str; 2], writing: &AtomicUsize) -> String {
    let [mut from, mut to] = names;
    while writing.load(Ordering::SeqCst) > 0 {
        let [source, destination] = [from, to].map(|name| json!({"namespace": ["ns"], "name": name}));
        let body = json!({"source": source, "destination": destination});
        catalog.post("/v1/tables/rename", &body).await.ok();
        (from, to) = (to, from);
    }
    from.to_owned()
}

/// The one answer that is a success; all others are this 409.
fn one_winner(answers: &[Answer], refusal: &str) -> Value {
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(won.len(), 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    for answer in lost {
        answer.error(409, refusal);
    }
    won[0].ok()
}

/// The history is exactly what was acknowledged.
async fn check_history(server: &Server, catalog: &Catalog, table: &str, created: String, acknowledged: Vec<String>) {
    let chain = history::chain(server, catalog, table, &created).await;
    let named: BTreeSet<&String> = chain[1..].iter().collect();
    assert_eq!(named, acknowledged.iter().collect(), "the history is what was acknowledged");
    assert_eq!(named.len(), chain.len() - 1, "no file is in the history twice");
}
