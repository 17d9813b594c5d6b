//! Bodies of requests: bounded in size and time, and leniently JSON.
//!
//! The content type is not looked at: clients differ, and what does not parse is refused anyway. A compressed body is
//! refused rather than misread. `serde_json` bounds the depth of nesting at 128.

use super::error::{Error, Result};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::Instant;

/// A body may take this long, and a second more for each [`BYTES_A_SECOND_MIN`] that came: one that drips is cut off.
const TIME_MAX: Duration = Duration::from_secs(30);
const BYTES_A_SECOND_MIN: usize = 64 << 10;
/// A declared length reserves memory up front, up to this. Bytes.
const RESERVED_BYTES_MAX: usize = 1 << 20;

/// Reads a whole body of at most `bytes_max` bytes.
///
/// # Errors
/// `Error::BodyEncoded`, `Error::BodyTooLarge` as soon as it is known, `Error::BodyTooSlow`, `Error::BodyBroken`.
pub async fn read(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Bytes> {
    read_within(TIME_MAX, headers, body, bytes_max).await
}

async fn read_within(time_max: Duration, headers: &HeaderMap, mut body: Body, bytes_max: usize) -> Result<Bytes> {
    if let Some(encoding) = headers.get_all(header::CONTENT_ENCODING).iter().find(|value| !is_identity(value)) {
        return Err(Error::BodyEncoded(String::from_utf8_lossy(encoding.as_bytes()).into_owned()));
    }
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > bytes_max) {
        return Err(Error::BodyTooLarge { bytes_max });
    }
    let mut bytes = BytesMut::with_capacity(declared.unwrap_or_default().min(RESERVED_BYTES_MAX));
    let started = Instant::now();
    loop {
        let deadline = started + time_max + Duration::from_secs((bytes.len() / BYTES_A_SECOND_MIN) as u64);
        let frame = tokio::time::timeout_at(deadline, body.frame()).await.map_err(|_| Error::BodyTooSlow)?;
        let Some(frame) = frame else { return Ok(bytes.freeze()) };
        let Ok(data) = frame.map_err(|_| Error::BodyBroken)?.into_data() else { continue };
        if bytes.len() + data.len() > bytes_max {
            return Err(Error::BodyTooLarge { bytes_max });
        }
        bytes.extend_from_slice(&data);
    }
}

/// Whether a content encoding leaves the body as it is.
fn is_identity(encoding: &HeaderValue) -> bool {
    encoding.is_empty() || encoding.as_bytes().eq_ignore_ascii_case(b"identity")
}

/// # Errors
/// `catalog::Error::Invalid` saying where the JSON is wrong.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| Error::invalid(format!("request body is not as expected: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};

    /// A byte, and the next one a moment later, so often that all would take a hundred times as long as is allowed.
    #[tokio::test]
    async fn a_body_that_drips_is_cut_off_though_each_piece_is_quick() {
        let (time_max, pause) = (Duration::from_millis(50), Duration::from_millis(5));
        let drops = stream::iter(0..1_000).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, std::io::Error>(Bytes::from_static(b" "))
        });
        let body = Body::from_stream(drops);
        let read = read_within(time_max, &HeaderMap::new(), body, 10_000).await;
        assert!(matches!(read, Err(Error::BodyTooSlow)), "{read:?}");
    }
}
