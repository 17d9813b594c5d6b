//! The database goes away under a running server, and comes back.

use crate::{
    catalog::{Answer, Catalog},
    database::{Database, PostgresDatabase},
    s3::{BUCKET, S3},
    server::{Server, Setup, until},
    transactions::{change, transaction},
};
use serde_json::json;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_database_the_server_says_so_and_recovers_by_itself() {
    let server = Server::start(Database::Postgres).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let before = catalog.set_property("ns", "t", "key", "before").await.ok();
    S3::root(&server).put(BUCKET, "kept", "bytes").await;

    server.postgres().cut_off().await;
    catalog.load_table("ns", "t").await.error(503, "ServiceUnavailableException");
    catalog.get("/v1/namespaces").await.error(503, "ServiceUnavailableException");
    catalog.set_property("ns", "t", "key", "lost").await.error(503, "ServiceUnavailableException");
    let create = json!({"name": "u", "schema": {"type": "struct", "fields": []}});
    catalog.post("/v1/namespaces/ns/tables", &create).await.error(503, "ServiceUnavailableException");
    assert_eq!(catalog.get("/health/live").await.status, 200);
    assert_eq!(catalog.get("/health/ready").await.status, 503);
    // The store needs the database only for the key, which may be remembered for some seconds.
    let read = S3::root(&server).get(BUCKET, "kept").await;
    assert!(read.status == 200 || read.status == 503, "{} {}", read.status, read.text());

    server.postgres().bring_back().await;
    until(async || catalog.get("/health/ready").await.status == 200).await;
    let after = catalog.load_table("ns", "t").await.ok();
    assert_eq!(after["metadata-location"], before["metadata-location"], "a commit that was refused changed nothing");
    catalog.set_property("ns", "t", "key", "after").await.ok();
    catalog.post("/v1/namespaces/ns/tables", &create).await.ok();
    assert_eq!(S3::root(&server).get(BUCKET, "kept").await.body, "bytes");
}

/// Commits run while connections die under them: each is whole or absent, and an answer that says so is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_cut_off_from_its_database_is_whole_or_absent() {
    cut_off_under_load(&["t"], |catalog, value| async move { catalog.set_property("ns", "t", "count", &value).await })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_cut_off_from_its_database_is_whole_or_absent() {
    const TABLES: [&str; 3] = ["t", "u", "v"];
    cut_off_under_load(&TABLES, |catalog, value| async move {
        let updates = json!([{"action": "set-properties", "updates": {"count": value}}]);
        let changes = TABLES.map(|table| change(table, json!([]), updates.clone()));
        catalog.post("/v1/transactions/commit", &transaction(changes)).await
    })
    .await;
}

/// `commit` sets the property `count` of all `tables`.
async fn cut_off_under_load<F: Future<Output = Answer> + Send>(
    tables: &[&str],
    commit: impl Fn(Catalog, String) -> F + Clone + Send + 'static,
) {
    let server = Server::start(Database::Postgres).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    for table in tables {
        catalog.create_table("ns", table).await;
    }
    for round in 0..5 {
        let writer = tokio::spawn({
            let (catalog, commit) = (catalog.clone(), commit.clone());
            async move {
                let (mut acknowledged, mut last) = (None, 200);
                for count in 0..u64::MAX {
                    let answer = commit(catalog.clone(), format!("{round}-{count}")).await;
                    last = answer.status;
                    match last {
                        200 | 204 => acknowledged = Some(count),
                        500 => drop(answer.error(500, "CommitStateUnknownException")),
                        _ => drop(answer.error(503, "ServiceUnavailableException")),
                    }
                    if last >= 500 {
                        break;
                    }
                }
                (acknowledged, last)
            }
        });
        server.postgres().cut_off().await;
        let (acknowledged, last) = writer.await.expect("the writer ends");
        server.postgres().bring_back().await;
        until(async || catalog.get("/health/ready").await.status == 200).await;

        let next = acknowledged.map_or(0, |count| count + 1);
        let allowed = if last == 500 { vec![acknowledged, Some(next)] } else { vec![acknowledged] };
        let mut counts = Vec::new();
        for table in tables {
            let loaded = catalog.load_table("ns", table).await.ok();
            let count = loaded["metadata"]["properties"]["count"].as_str().and_then(|text| text.split_once('-'));
            let count = count.filter(|(of, _)| *of == format!("{round}"));
            counts.push(count.map(|(_, count)| count.parse::<u64>().expect("a number")));
        }
        assert!(allowed.contains(&counts[0]), "{counts:?} found, {acknowledged:?} acknowledged, then a {last}");
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}: half done");
    }
}

/// What the server sent may have landed, and then its file is the table's: it must ask before it says or deletes anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_that_was_lost_on_the_wire_is_settled_by_asking() {
    let database = PostgresDatabase::create().await;
    let wire = Wire::to(&database).await;
    // Its Postgres is the one behind the wire.
    let setup = Setup::on(Database::Sqlite).await.variable("TIDEWATER_DATABASE_URL", &wire.url);
    let mut server = setup.start().await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;

    for (loss, value) in [(Loss::Answer, "landed"), (Loss::Statement, "sent again")] {
        wire.lose(loss);
        let committed = catalog.set_property("ns", "t", "key", value).await.ok();
        assert_eq!(wire.losing(), Loss::Nothing, "the wire lost it");
        let loaded = catalog.load_table("ns", "t").await.ok();
        assert_eq!(loaded["metadata-location"], committed["metadata-location"], "{value}");
        assert_eq!(loaded["metadata"]["properties"]["key"], value);
    }
    wire.lose(Loss::EveryAnswer);
    let unknown = catalog.set_property("ns", "t", "key", "unknown").await;
    unknown.error(500, "CommitStateUnknownException");
    wire.lose(Loss::Nothing);
    // With nothing in memory: the file that may have been published is there.
    server.kill();
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    assert_eq!(catalog.load_table("ns", "t").await.ok()["metadata"]["properties"]["key"], "unknown");
    let after = catalog.set_property("ns", "t", "key", "after").await.ok();
    let log = after["metadata"]["metadata-log"].as_array().expect("a metadata log").len();
    assert_eq!(log, 4, "the creation and three commits, each once, came before");
}

/// What a [`Wire`] does to statements that name a metadata file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Nothing,
    /// The next is not passed on.
    Statement,
    /// The next is passed on and takes effect, and nobody hears of it.
    Answer,
    EveryAnswer,
}

/// The way from a server to its Postgres. A loss takes the connection with it.
struct Wire {
    url: String,
    loss: Arc<Mutex<Loss>>,
}

impl Wire {
    async fn to(database: &PostgresDatabase) -> Wire {
        let mut url = reqwest::Url::parse(&database.url()).expect("a URL");
        let host = url.host_str().expect("a host");
        let postgres = format!("{host}:{}", url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("a bound address");
        url.set_ip_host(address.ip()).expect("a URL with a host");
        url.set_port(Some(address.port())).expect("a URL with a host");
        let loss = Arc::new(Mutex::new(Loss::Nothing));
        tokio::spawn({
            let loss = Arc::clone(&loss);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let (postgres, loss) = (postgres.clone(), Arc::clone(&loss));
                    // Either side may hang up: that ends this connection.
                    tokio::spawn(async move { carry(client, &postgres, &loss).await.ok() });
                }
            }
        });
        Wire { url: url.into(), loss }
    }

    fn lose(&self, loss: Loss) {
        *self.loss.lock().unwrap() = loss;
    }

    fn losing(&self) -> Loss {
        *self.loss.lock().unwrap()
    }
}

async fn carry(mut client: TcpStream, postgres: &str, loss: &Mutex<Loss>) -> std::io::Result<()> {
    let mut postgres = TcpStream::connect(postgres).await?;
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            length = client.read(&mut asked) => {
                let statement = &asked[..length?];
                let lost = if names_a_metadata_file(statement) { take(loss) } else { Loss::Nothing };
                if statement.is_empty() || lost == Loss::Statement {
                    return Ok(());
                }
                postgres.write_all(statement).await?;
                if lost != Loss::Nothing {
                    // Postgres answers once it has committed.
                    postgres.read_u8().await?;
                    return Ok(());
                }
            }
            length = postgres.read(&mut answered) => {
                let answer = &answered[..length?];
                if answer.is_empty() {
                    return Ok(());
                }
                client.write_all(answer).await?;
            }
        }
    }
}

/// The swap binds one, and so does the question what became of it; reads of the table bind none.
fn names_a_metadata_file(statement: &[u8]) -> bool {
    const ENDING: &[u8] = b".metadata.json";
    statement.windows(ENDING.len()).any(|bytes| bytes == ENDING)
}

fn take(loss: &Mutex<Loss>) -> Loss {
    let mut loss = loss.lock().unwrap();
    let taken = *loss;
    if taken != Loss::EveryAnswer {
        *loss = Loss::Nothing;
    }
    taken
}
