//! HTTP manners, over a real connection: what belongs to one answer never spoils the next.

use super::*;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Longest wait for bytes that must come.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(20);

/// A client's end of one connection to a served front.
struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A head as received, and its body.
#[derive(Debug)]
struct Received {
    head: String,
    body: Vec<u8>,
}

impl Connection {
    async fn open(world: &World) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("bound");
        let front = world.front.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("the client connects");
            let service = hyper::service::service_fn(move |request| {
                let front = front.clone();
                async move {
                    let (request, unread) = crate::server::linger::watch(request);
                    let mut response = front.handle(request).await;
                    unread.mark(response.headers_mut());
                    Ok::<_, std::convert::Infallible>(response)
                }
            });
            // The client may go away at any time.
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
        Connection { stream: TcpStream::connect(address).await.expect("the server listens"), unread: Vec::new() }
    }

    /// Sends a head as is, and no body.
    async fn send_head(&mut self, request: &Request<Bytes>) {
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
        for (name, value) in request.headers() {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        self.stream.write_all(&head).await.expect("the head is sent");
    }

    async fn ask(&mut self, ask: Ask) -> Received {
        let is_head = ask.method == http::Method::HEAD;
        let mut request = ask.signed(SECRET);
        if !request.body().is_empty() {
            let length = request.body().len();
            request.headers_mut().insert("content-length", HeaderValue::from(length));
        }
        self.send_head(&request).await;
        self.stream.write_all(request.body()).await.expect("the body is sent");
        self.receive(is_head).await
    }

    async fn receive(&mut self, is_head: bool) -> Received {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.fill().await > 0, "closed before an answer: {}", String::from_utf8_lossy(&self.unread));
        };
        let head = String::from_utf8(self.unread.drain(..end).collect()).expect("text").to_ascii_lowercase();
        let bodiless =
            is_head || ["100", "204", "304"].iter().any(|status| head.starts_with(&format!("http/1.1 {status}")));
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().expect("a number"));
        let length = if bodiless { 0 } else { length };
        while self.unread.len() < length {
            assert!(self.fill().await > 0, "closed inside a body");
        }
        Received { head, body: self.unread.drain(..length).collect() }
    }

    async fn fill(&mut self) -> usize {
        let read = self.stream.read_buf(&mut self.unread);
        tokio::time::timeout(DEADLINE, read).await.expect("bytes come in time").expect("readable")
    }

    /// Whether the server closes without another word.
    async fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && self.fill().await == 0
    }
}

impl Received {
    #[track_caller]
    fn expect(self, status: u16) -> Received {
        assert!(self.head.starts_with(&format!("http/1.1 {status} ")), "{}", self.head);
        self
    }
}

#[tokio::test]
async fn answers_without_bodies_keep_the_connection_in_step() {
    let world = World::new().await;
    world.put("k", "hello").await;
    let mut connection = Connection::open(&world).await;
    for _ in 0..3 {
        let head = connection.ask(Ask::head("/lake/k")).await.expect(200);
        assert!(head.head.contains("content-length: 5\r\n"), "{}", head.head);
        assert!(head.head.contains("date: ") && head.head.contains("server: tidewater\r\n"), "{}", head.head);
        connection.ask(Ask::head("/lake/none")).await.expect(404);
        connection.ask(Ask::head("/nobucket")).await.expect(404);
        let etag = "\"5d41402abc4b2a76b9719d911017c592\"";
        connection.ask(Ask::get("/lake/k").header("if-none-match", etag)).await.expect(304);
        let gone = connection.ask(Ask::delete("/lake/none")).await.expect(204);
        assert!(!gone.head.contains("content-length"), "{}", gone.head);
        connection.ask(Ask::get("/lake/none")).await.expect(404);
        assert_eq!(connection.ask(Ask::get("/lake/k")).await.expect(200).body, b"hello");
    }
}

#[tokio::test]
async fn a_client_that_waits_is_told_to_continue_once_it_is_known_and_may() {
    let world = World::new().await;
    let mut connection = Connection::open(&world).await;
    let put = || Ask::put("/lake/k").header("expect", "100-continue").header("content-length", "5").signed(SECRET);
    connection.send_head(&put()).await;
    connection.receive(false).await.expect(100);
    connection.stream.write_all(b"hello").await.expect("the body is sent");
    connection.receive(false).await.expect(200);
    assert_eq!(connection.ask(Ask::get("/lake/k")).await.expect(200).body, b"hello");
}

#[tokio::test]
async fn a_refused_client_that_waits_sends_nothing_and_is_let_go() {
    let world = World::new().await;
    let waiting = |target: &str| {
        Ask::put(target).header("expect", "100-continue").header("content-length", (1u64 << 30).to_string())
    };
    let stale = "\"00000000000000000000000000000000\"";
    for (request, status) in [
        (waiting("/lake/k").signed("another secret"), 403),
        (waiting("/nobucket/k").signed(SECRET), 404),
        (waiting("/lake/k").header("if-match", stale).signed(SECRET), 404),
        (waiting("/lake/k").header("content-md5", "rubbish").signed(SECRET), 400),
        (waiting("/lake/k?partNumber=1&uploadId=none").signed(SECRET), 404),
    ] {
        let mut connection = Connection::open(&world).await;
        connection.send_head(&request).await;
        let refused = connection.receive(false).await.expect(status);
        assert!(refused.head.contains("connection: close\r\n"), "{}", refused.head);
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn a_small_body_nobody_wanted_does_not_cost_the_connection() {
    let world = World::new().await;
    world.put("k", "hello").await;
    let mut connection = Connection::open(&world).await;
    let refused = Ask::put("/lake/k").header("content-md5", "rubbish").body(vec![7; 100_000]);
    connection.ask(refused).await.expect(400);
    connection.ask(Ask::put("/lake/k").header("if-none-match", "*").body("lost")).await.expect(412);
    connection.ask(Ask::put("/lake/k").header("x-amz-checksum-crc32", "AAAAAA==").body("bad")).await.expect(400);
    connection.ask(Ask::put("/lake?website").body("<WebsiteConfiguration/>")).await.expect(501);
    connection.ask(Ask::get("/lake/k").body("ignored")).await.expect(200);
    assert_eq!(connection.ask(Ask::get("/lake/k")).await.expect(200).body, b"hello");
}

#[tokio::test]
async fn a_body_that_was_not_read_to_its_end_costs_the_connection() {
    let world = World::new().await;
    let mut connection = Connection::open(&world).await;
    let broken = Ask::put("/lake/k").chunked(5).header("content-length", "1000000").signed(SECRET);
    connection.send_head(&broken).await;
    connection.stream.write_all(b"zz\r\nhello\r\n").await.expect("some of the body is sent");
    let refused = connection.receive(false).await.expect(400);
    assert!(refused.head.contains("connection: close\r\n"), "{}", refused.head);
    assert!(connection.is_closed().await);
}

/// More than the kernel takes off a sender's hands.
const LARGE: usize = 32 << 20;

#[tokio::test]
async fn a_client_refused_amid_a_large_body_gets_its_answer() {
    let world = World::new().await;
    let unwanted = Ask::put("/lake/k").header("content-md5", "rubbish").body(vec![7; LARGE]);
    let mut connection = Connection::open(&world).await;
    let refused = connection.ask(unwanted).await.expect(400);
    assert!(refused.head.contains("connection: close\r\n"), "{}", refused.head);
    // The first chunk is wrong: what follows is left unread by whoever had begun to read.
    let broken = Ask::put("/lake/k").chunked(5).header("content-length", LARGE.to_string()).signed(SECRET);
    let mut connection = Connection::open(&world).await;
    connection.send_head(&broken).await;
    connection.stream.write_all(&vec![b'z'; LARGE]).await.expect("the body is sent");
    connection.receive(false).await.expect(400);
}

#[tokio::test]
async fn an_upload_that_breaks_off_stores_nothing() {
    let world = World::new().await;
    let mut connection = Connection::open(&world).await;
    connection.send_head(&Ask::put("/lake/k").header("content-length", "100000").signed(SECRET)).await;
    connection.stream.write_all(&[7; 50_000]).await.expect("half a body is sent");
    connection.stream.shutdown().await.expect("the client goes");
    connection.receive(false).await.expect(400);
    world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
}

#[tokio::test]
async fn an_answer_of_many_pieces_is_whole() {
    let world = World::new().await;
    let bytes: Vec<u8> = (0..5_000_000u32).map(|n| (n % 253) as u8).collect();
    world.put("k", bytes.clone()).await;
    let mut connection = Connection::open(&world).await;
    for _ in 0..2 {
        let got = connection.ask(Ask::get("/lake/k")).await.expect(200);
        assert!(got.head.contains("content-length: 5000000\r\n"), "{}", got.head);
        assert!(got.body == bytes, "the object comes back as it was");
    }
}
