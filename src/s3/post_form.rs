//! Reads a browser's form (`multipart/form-data`, RFC 7578): named fields in memory, then the file as a stream.
//!
//! Memory is bounded by the fields' bound and one frame of the connection. What follows the file is read and ignored.

use super::{
    body::RequestBody,
    error::{Error, Result},
    post_policy::PostError,
};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, header};

/// All fields before the file, with what frames them. Bytes, as AWS documents.
const FIELDS_BYTES_MAX: usize = 20 << 10;
/// Headers of one part. Bytes.
const PART_HEAD_BYTES_MAX: usize = 4 << 10;
/// RFC 2046 section 5.1.1. Bytes.
const BOUNDARY_BYTES_MAX: usize = 70;
const FILE_FIELD: &str = "file";

/// The text between parts, from the request's head.
///
/// # Errors
/// `PostError::NotAForm`, `PostError::Malformed`.
pub fn boundary(headers: &HeaderMap) -> Result<String> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let (essence, parameters) = kind.split_once(';').unwrap_or((kind, ""));
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Err(PostError::NotAForm.into());
    }
    let named = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let found = named.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"));
    let boundary = found.map(|(_, value)| value.trim().trim_matches('"').to_owned()).unwrap_or_default();
    if (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()) { Ok(boundary) } else { Err(PostError::Malformed.into()) }
}

/// What came before the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Names in lower case, in the order sent.
    pub fields: Vec<(String, String)>,
    /// As the browser named it.
    pub file_name: String,
}

impl Fields {
    /// The first value under `name`, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// A form being read.
pub struct Form<B> {
    body: RequestBody<B>,
    scanner: Scanner,
}

impl<B> Form<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    pub fn new(body: RequestBody<B>, boundary: &str) -> Form<B> {
        Form { body, scanner: Scanner::new(boundary) }
    }

    /// Reads up to the start of the file.
    ///
    /// # Errors
    /// `PostError::Malformed`, `PostError::FieldsTooLarge`, `PostError::NoFile`, `Error::Body`.
    pub async fn fields(&mut self) -> Result<Fields> {
        let mut fields = Fields::default();
        let mut bytes = 0;
        loop {
            let Some(part) = self.part_head().await? else { return Err(PostError::NoFile.into()) };
            if part.name.eq_ignore_ascii_case(FILE_FIELD) {
                fields.file_name = part.file_name;
                return Ok(fields);
            }
            let mut value = BytesMut::new();
            while let Some(piece) = self.chunk().await? {
                bytes += piece.len();
                if bytes > FIELDS_BYTES_MAX {
                    return Err(PostError::FieldsTooLarge.into());
                }
                value.extend_from_slice(&piece);
            }
            bytes += part.name.len() + PART_COST;
            if bytes > FIELDS_BYTES_MAX {
                return Err(PostError::FieldsTooLarge.into());
            }
            let value = String::from_utf8(value.to_vec()).map_err(|_| PostError::Malformed)?;
            fields.fields.push((part.name.to_ascii_lowercase(), value));
        }
    }

    /// The next bytes of the part that was begun; `None` at its end.
    ///
    /// # Errors
    /// `PostError::Malformed` where the form ends inside the part, `Error::Body`.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        loop {
            match self.scanner.content() {
                Scanned::Piece(piece) => return Ok(Some(piece)),
                Scanned::End => return Ok(None),
                Scanned::More => self.more().await?,
            }
        }
    }

    /// Reads whatever is left, so that the connection stays in step.
    ///
    /// # Errors
    /// `Error::Body`.
    pub async fn finish(mut self) -> Result<()> {
        while let Some(bytes) = self.body.next().await {
            bytes.map_err(Error::Body)?;
        }
        self.body.finish().map(|_| ()).map_err(Error::Body)
    }

    async fn part_head(&mut self) -> Result<Option<PartHead>> {
        loop {
            match self.scanner.head()? {
                Head::Part(part) => return Ok(Some(part)),
                Head::Last => return Ok(None),
                Head::More => self.more().await?,
            }
        }
    }

    async fn more(&mut self) -> Result<()> {
        match self.body.next().await {
            Some(bytes) => {
                self.scanner.buffer.extend_from_slice(&bytes.map_err(Error::Body)?);
                Ok(())
            }
            None => Err(PostError::Malformed.into()),
        }
    }
}

/// What a part costs beside its name and value. Bytes; keeps many empty fields from being free.
const PART_COST: usize = 32;

struct PartHead {
    name: String,
    file_name: String,
}

enum Head {
    Part(PartHead),
    Last,
    More,
}

enum Scanned {
    Piece(Bytes),
    /// The delimiter follows; it is still in the buffer.
    End,
    More,
}

/// Finds delimiters in what arrived.
struct Scanner {
    buffer: BytesMut,
    /// Line end, two dashes, boundary.
    delimiter: Vec<u8>,
}

impl Scanner {
    fn new(boundary: &str) -> Scanner {
        // The first delimiter stands at the very beginning, without a line end of its own.
        Scanner { buffer: BytesMut::from(&b"\r\n"[..]), delimiter: format!("\r\n--{boundary}").into_bytes() }
    }

    /// The head of the part that begins at the delimiter in front of the buffer, once all of it is there.
    fn head(&mut self) -> Result<Head> {
        let Some(at) = self.find() else {
            return if self.buffer.len() > PART_HEAD_BYTES_MAX {
                Err(PostError::Malformed.into())
            } else {
                Ok(Head::More)
            };
        };
        let after = self.buffer.get(at + self.delimiter.len()..).unwrap_or_default();
        if after.starts_with(b"--") {
            return Ok(Head::Last);
        }
        let Some(end) = after.windows(4).position(|window| window == b"\r\n\r\n") else {
            return if after.len() > PART_HEAD_BYTES_MAX { Err(PostError::Malformed.into()) } else { Ok(Head::More) };
        };
        let part = part_head(after.get(..end).unwrap_or_default()).ok_or(PostError::Malformed)?;
        self.buffer.advance(at + self.delimiter.len() + end + 4);
        Ok(Head::Part(part))
    }

    fn content(&mut self) -> Scanned {
        if let Some(at) = self.find() {
            return if at == 0 { Scanned::End } else { Scanned::Piece(self.buffer.split_to(at).freeze()) };
        }
        // A delimiter may have begun.
        match self.buffer.len().saturating_sub(self.delimiter.len() - 1) {
            0 => Scanned::More,
            sure => Scanned::Piece(self.buffer.split_to(sure).freeze()),
        }
    }

    fn find(&self) -> Option<usize> {
        let mut from = 0;
        loop {
            let rest = self.buffer.get(from..)?;
            let at = from + rest.iter().position(|byte| *byte == b'\r')?;
            if self.buffer.get(at..)?.starts_with(&self.delimiter) {
                return Some(at);
            }
            from = at + 1;
        }
    }
}

/// Name and file name of a part, from `Content-Disposition`.
fn part_head(head: &[u8]) -> Option<PartHead> {
    let head = std::str::from_utf8(head).ok()?;
    let disposition = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let name = parameter(disposition, "name")?;
    Some(PartHead { name, file_name: parameter(disposition, "filename").unwrap_or_default() })
}

/// A quoted parameter; browsers write a quote inside as `%22` and older ones as `\"`.
fn parameter(disposition: &str, name: &str) -> Option<String> {
    let start = disposition.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = disposition.get(..*at).unwrap_or_default();
        before.ends_with([';', ' ']) && disposition.get(at + name.len()..).is_some_and(|rest| rest.starts_with("=\""))
    })?;
    let quoted = disposition.get(start + name.len() + 2..)?;
    let mut value = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(value),
            '\\' if characters.as_str().starts_with('"') => value.extend(characters.next()),
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::{body::BodyPlan, sigv4::Payload};
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;

    const FORM: &[u8] = b"--XX\r\nContent-Disposition: form-data; name=\"Key\"\r\n\r\na/${filename}\r\n--XX\r\n\
        Content-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--XX\r\nContent-Type: text/plain\r\n\
        content-disposition: form-data; filename=\"a \\\"b\\\".txt\"; name=\"file\"\r\n\r\none\r\n--X two\r\r\n\r\n--XX--\r\ntail";

    /// Reads a form that arrives in pieces of `size` bytes.
    async fn read(form: &[u8], size: usize) -> Result<(Fields, Vec<u8>)> {
        let pieces: Vec<_> = form.chunks(size).map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
        let body = StreamBody::new(stream::iter::<Vec<Result<Frame<Bytes>, std::convert::Infallible>>>(pieces));
        let plan = BodyPlan::new(&HeaderMap::new(), &Payload::Unsigned, None, 1 << 20).map_err(Error::Body)?;
        let mut form = Form::new(RequestBody::new(body, plan), "XX");
        let fields = form.fields().await?;
        let mut file = Vec::new();
        while let Some(piece) = form.chunk().await? {
            file.extend_from_slice(&piece);
        }
        form.finish().await?;
        Ok((fields, file))
    }

    #[tokio::test]
    async fn a_form_reads_alike_wherever_the_connection_cuts_it() {
        for size in 1..=FORM.len() {
            let (fields, file) = read(FORM, size).await.expect("the form is whole");
            assert_eq!(fields.get("key"), Some("a/${filename}"), "{size}");
            assert_eq!(fields.get("empty"), Some(""));
            assert_eq!(fields.file_name, "a \"b\".txt");
            assert_eq!(file, b"one\r\n--X two\r\r\n");
        }
    }

    #[tokio::test]
    async fn a_broken_form_is_refused() {
        let refused = async |form: &[u8]| match read(form, 7).await {
            Err(Error::Post(error)) => error,
            other => panic!("not refused: {:?}", other.map(|(fields, _)| fields)),
        };
        assert_eq!(refused(b"").await, PostError::Malformed);
        assert_eq!(refused(&FORM[..FORM.len() - 12]).await, PostError::Malformed);
        assert_eq!(refused(b"--XX\r\nContent-Disposition: form-data\r\n\r\nx\r\n--XX--").await, PostError::Malformed);
        assert_eq!(
            refused(b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--XX--").await,
            PostError::Malformed
        );
        assert_eq!(
            refused(b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--XX--").await,
            PostError::NoFile
        );
        assert_eq!(refused(&b"x".repeat(PART_HEAD_BYTES_MAX + 10)).await, PostError::Malformed);
        let field = |value: &str| format!("--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{value}\r\n");
        let large = field(&"v".repeat(FIELDS_BYTES_MAX + 100));
        assert_eq!(refused(large.as_bytes()).await, PostError::FieldsTooLarge);
        assert_eq!(refused(field("").repeat(2000).as_bytes()).await, PostError::FieldsTooLarge);
    }

    #[test]
    fn the_boundary_comes_from_the_content_type() {
        let of = |kind: &'static str| {
            boundary(&[(header::CONTENT_TYPE, http::HeaderValue::from_static(kind))].into_iter().collect())
        };
        assert_eq!(of("Multipart/Form-Data; charset=x; Boundary=\"a b\"").expect("a form"), "a b");
        assert!(matches!(of("application/json"), Err(Error::Post(PostError::NotAForm))));
        assert!(matches!(of("multipart/form-data"), Err(Error::Post(PostError::Malformed))));
        assert!(matches!(boundary(&HeaderMap::new()), Err(Error::Post(PostError::NotAForm))));
    }
}
