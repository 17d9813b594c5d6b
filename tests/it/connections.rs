//! What one S3 connection bears.

use crate::{
    database::Database,
    s3::{BUCKET, S3},
    server::Server,
};
use reqwest::Method;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

const GETS: usize = 10_000;
/// Requests sent before their answers are read.
const AHEAD: usize = 50;
const HEAD_LINES_MAX: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_reads_go_over_one_connection_and_stay_in_step() {
    let server = Server::start(Database::Sqlite).await;
    let s3 = S3::root(&server);
    let mut requests = Vec::new();
    for (key, body) in [("a", "first"), ("b", "the second"), ("none", "")] {
        if !body.is_empty() {
            assert_eq!(s3.put(BUCKET, key, body).await.status, 200);
        }
        let url = s3.presigned(Method::GET, BUCKET, key, 3600);
        let (target, host) =
            (url.strip_prefix(&s3.url).expect("its own address"), s3.url.trim_start_matches("http://"));
        requests.push((format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n"), body));
    }
    let mut connection = BufReader::new(TcpStream::connect(server.s3_address()).await.expect("a connection"));
    for _ in 0..GETS / AHEAD {
        let asked = requests.iter().cycle().take(AHEAD);
        let ahead: String = asked.clone().map(|(request, _)| request.as_str()).collect();
        connection.write_all(ahead.as_bytes()).await.expect("the connection is open");
        for (_, body) in asked {
            let (status, read) = answer(&mut connection).await;
            match body.is_empty() {
                true => assert_eq!(status, "HTTP/1.1 404 Not Found"),
                false => assert_eq!((status.as_str(), read.as_slice()), ("HTTP/1.1 200 OK", body.as_bytes())),
            }
        }
    }
}

/// Status line and body of one answer that says its length.
async fn answer(connection: &mut BufReader<TcpStream>) -> (String, Vec<u8>) {
    let (mut status, mut length) = (String::new(), 0);
    for _ in 0..HEAD_LINES_MAX {
        let mut line = String::new();
        connection.read_line(&mut line).await.expect("a line");
        let line = line.trim_end();
        if status.is_empty() {
            line.clone_into(&mut status);
        } else if line.is_empty() {
            break;
        } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.expect("the whole body");
    (status, body)
}
