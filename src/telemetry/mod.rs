//! Logs, metrics and request ids. No secret ever reaches them.
//!
//! Nothing here sees a credential: types that hold secrets print nothing, the request line carries the path without
//! its query, and libraries that would print what passes through them are kept at `info` or above.

mod chain;
pub mod metrics;
mod request_id;

pub use chain::Chain;
pub use request_id::RequestId;

use std::sync::Arc;
use tracing::Subscriber;
use tracing_subscriber::{EnvFilter, Layer, fmt::MakeWriter, layer::SubscriberExt, registry::LookupSpan};

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// What was asked and by whom, for the request line and the counters; an extension of every answer.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The protocol's name of the operation; `unknown` when nothing is served there.
    pub operation: &'static str,
    /// `None` when nobody was authenticated.
    pub principal: Option<Arc<str>>,
}

/// Libraries whose lines below `info` may show requests as they passed, and `hyper`'s complaints about clients.
/// A filter that names one of them wins.
const QUIET: &str = "h2=info,hyper=error,hyper_util=info,reqwest=info,rustls=info,sqlx=warn";

/// Writes log lines to standard error from here on, panics among them.
///
/// # Errors
/// When `filter` is not one, or logging was started before.
pub fn start(format: Format, filter: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    tracing::subscriber::set_global_default(subscriber(format, filter, std::io::stderr)?)?;
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("a panic without words");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, message, "panicked");
    }));
    Ok(())
}

/// What [`start`] installs, writing to `writer`: tests capture lines with it.
///
/// # Errors
/// When `filter` is not one.
pub fn subscriber<W>(
    format: Format,
    filter: &str,
    writer: W,
) -> Result<impl Subscriber + Send + Sync, tracing_subscriber::filter::ParseError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(format!("{QUIET},{filter}"))?;
    Ok(tracing_subscriber::registry().with(lines(format, writer)).with(filter))
}

fn lines<S, W>(format: Format, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
    match format {
        Format::Text => Box::new(lines),
        Format::Json => Box::new(lines.json().flatten_event(true).with_current_span(true).with_span_list(false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io, sync::Mutex};

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, filter: &str, speak: impl FnOnce()) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = subscriber(format, filter, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, speak);
        String::from_utf8(captured.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn json_lines_are_json_with_their_fields() {
        let text = logged(Format::Json, "info", || {
            let _span = tracing::error_span!("request", request_id = "r1").entered();
            tracing::info!(status = 200, "answered");
        });
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["status"], 200);
        assert_eq!(line["message"], "answered");
        assert_eq!(line["span"]["request_id"], "r1");
    }

    #[test]
    fn libraries_stay_quiet_unless_named() {
        let speak = || {
            tracing::trace!(target: "h2::codec", "frame with a secret");
            tracing::trace!(target: "tidewater::x", "ours");
        };
        let text = logged(Format::Text, "trace", speak);
        assert!(text.contains("ours") && !text.contains("secret"), "{text}");
        assert!(logged(Format::Text, "trace,h2=trace", speak).contains("secret"));
    }

    #[test]
    fn bad_filters_are_refused() {
        assert!(subscriber(Format::Text, "tidewater=loud", io::sink).is_err());
    }
}
