//! One listening socket: accepts connections, speaks HTTP/1.1 and HTTP/2 on them, and drains them at the end.
//!
//! Bounds: open connections, requests at once, the time a head may take, and its size. What does not fit waits in the
//! kernel's queue (connections) or before its handler (requests).

use super::{
    Error,
    health::HEALTH,
    linger::{self, Lingering},
    observe::{self, Observation, ObservedBody},
    shape::Shape,
};
use crate::{
    config::Settings,
    rest, s3,
    telemetry::{self, Chain, metrics::Present},
};
use axum::{Router, body::Body};
use futures_util::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
};
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;
use tracing::Instrument;

/// Pause after a failed accept, as when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Requests a client may have under way on one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 256;
/// An HTTP/2 connection that says nothing is asked this often whether it lives.
const HTTP2_PING_EVERY: Duration = Duration::from_secs(30);
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Headers of one HTTP/1.1 request.
const HEADERS_MAX: usize = 256;
/// Least read buffer of an HTTP/1.1 connection, so that small bounds of heads do not slow bodies. Bytes.
const READ_BUFFER_BYTES_MIN: usize = 256 << 10;

/// A bound socket that does not accept yet.
pub struct Bound {
    pub name: &'static str,
    socket: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// # Errors
    /// `Error::Listen`, naming the flag that gives another address.
    pub async fn bind(name: &'static str, flag: &'static str, address: SocketAddr) -> Result<Bound, Error> {
        let fail = |error: io::Error| {
            let reason = match error.kind() {
                io::ErrorKind::AddrInUse => "another program listens there; give another address".to_owned(),
                kind => kind.to_string(),
            };
            Error::Listen { flag, address, reason, error }
        };
        let socket = TcpListener::bind(address).await.map_err(fail)?;
        let address = socket.local_addr().map_err(fail)?;
        Ok(Bound { name, socket, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[derive(Clone)]
pub struct Limits {
    pub connections_max: usize,
    pub requests_max: usize,
    pub header_bytes_max: usize,
    pub header_timeout: Duration,
}

impl Limits {
    pub fn of(settings: &Settings) -> Limits {
        Limits {
            connections_max: settings.connections_max,
            requests_max: settings.requests_max,
            header_bytes_max: settings.header_bytes_max,
            header_timeout: Duration::from_secs(settings.header_timeout_s),
        }
    }
}

/// What answers on a listener.
#[derive(Clone)]
pub enum Service {
    Catalog(Router),
    S3(Arc<s3::Front>),
    Metrics(Router),
}

impl Service {
    pub fn shape(&self) -> Shape {
        match self {
            Service::Catalog(_) | Service::Metrics(_) => Shape::Iceberg,
            Service::S3(_) => Shape::S3,
        }
    }

    /// Whether a request to `path` takes a place among those at work. Probes are answered however busy the server is;
    /// of requests for a token, which anyone may send, little but the arrival of their forms takes time.
    fn counts(&self, path: &str) -> bool {
        match self {
            Service::Catalog(_) => !path.starts_with(HEALTH) && path != rest::TOKENS_PATH,
            Service::S3(_) | Service::Metrics(_) => true,
        }
    }

    /// Answers one request; what goes wrong is an answer too.
    pub async fn answer(&self, request: Request<Lingering>) -> Response<Body> {
        match self {
            Service::Catalog(router) | Service::Metrics(router) => {
                router.clone().call(request.map(Body::new)).await.unwrap_or_else(|never| match never {})
            }
            Service::S3(front) => front.handle(request).await.map(Body::new),
        }
    }
}

/// A bound socket with everything that answers on it.
pub struct Listener {
    socket: TcpListener,
    connections: Arc<Semaphore>,
    drain: Duration,
    shared: Arc<Shared>,
}

/// What every connection of a listener uses.
struct Shared {
    name: &'static str,
    service: Service,
    limits: Limits,
    requests: Arc<Semaphore>,
    protocol: auto::Builder<TokioExecutor>,
    /// Ends connections that did not finish in time.
    cut: CancellationToken,
}

impl Listener {
    pub fn new(bound: Bound, service: Service, limits: Limits, drain: Duration) -> Listener {
        let shared = Shared {
            name: bound.name,
            service,
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            protocol: protocol(&limits),
            cut: CancellationToken::new(),
            limits,
        };
        Listener {
            socket: bound.socket,
            connections: Arc::new(Semaphore::new(shared.limits.connections_max)),
            drain,
            shared: Arc::new(shared),
        }
    }

    /// Accepts until `stop`, then lets open connections finish their requests within the drain timeout.
    pub async fn run(self, stop: CancellationToken) {
        let graceful = GracefulShutdown::new();
        while let Some((stream, permit)) = self.accept(&stop).await {
            tokio::spawn(converse(Arc::clone(&self.shared), stream, permit, graceful.watcher()));
        }
        let Listener { socket, drain, shared, .. } = self;
        drop(socket);
        let open = graceful.count();
        if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
            tracing::warn!(listener = shared.name, open, "requests under way were cut off: they took too long");
        }
        shared.cut.cancel();
    }

    /// The next connection, or `None` once told to stop.
    async fn accept(&self, stop: &CancellationToken) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        loop {
            let accepted = async {
                let permit = Arc::clone(&self.connections).acquire_owned().await;
                let permit = permit.expect("the semaphore is never closed");
                self.socket.accept().await.map(|(stream, _)| (stream, permit))
            };
            let accepted = tokio::select! {
                () = stop.cancelled() => return None,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
                Err(error) => {
                    tracing::warn!(listener = self.shared.name, %error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn protocol(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    protocol
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(limits.header_bytes_max.max(READ_BUFFER_BYTES_MIN));
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(HTTP2_PING_EVERY)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT);
    protocol
}

/// Speaks on one connection until either side ends it.
async fn converse(shared: Arc<Shared>, stream: TcpStream, permit: OwnedSemaphorePermit, watcher: Watcher) {
    let _present = (permit, Present::connection(shared.name));
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(listener = shared.name, %error, "a connection was gone before it was served");
        return;
    }
    let asked = Arc::new(AtomicBool::new(false));
    let service = hyper::service::service_fn(|request| {
        asked.store(true, Ordering::Relaxed);
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request).await) }
    });
    let connection = watcher.watch(shared.protocol.serve_connection(TokioIo::new(stream), service));
    // Before it knows the protocol, hyper waits for a client's first bytes without a bound of its own.
    let silent = async {
        tokio::time::sleep(shared.limits.header_timeout).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(listener = shared.name, error = %Chain(error.as_ref()), "a connection broke");
            }
        },
        () = silent => {},
        () = shared.cut.cancelled() => {},
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<ObservedBody> {
        let shape = self.service.shape();
        let observation = Observation::begin(self.name, shape, &request);
        let head_bytes = observe::head_bytes(&request);
        if head_bytes > self.limits.header_bytes_max {
            let refusal = shape.head_too_large(observation.request_id());
            return observation.answered(refusal, None);
        }
        let permit = match self.service.counts(request.uri().path()) {
            true => Arc::clone(&self.requests).acquire_owned().await.ok(),
            false => None,
        };
        let (request, unread) = linger::watch(observation.mark(request));
        let answer = AssertUnwindSafe(self.service.answer(request)).catch_unwind();
        let mut response = answer.instrument(observation.span()).await.unwrap_or_else(|_| {
            telemetry::metrics::record_panic(self.name);
            shape.internal_error(observation.request_id())
        });
        unread.mark(response.headers_mut());
        observation.answered(response, permit)
    }
}
