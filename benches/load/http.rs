//! A small blocking HTTP/1.1 client on one kept-alive connection: cheap enough not to be what is measured.

use std::{
    io::{Error, ErrorKind, Read, Result, Write},
    net::{SocketAddr, TcpStream},
};

const HEAD_BYTES_MAX: usize = 64 * 1024;

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

pub struct Answer {
    pub status: u16,
    pub body_bytes: u64,
    /// The body, when it was asked for.
    pub body: Vec<u8>,
    pub etag: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Body {
    Keep,
    Discard,
}

enum Length {
    Known(u64),
    Chunked,
}

impl Connection {
    pub fn open(addr: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::with_capacity(256 * 1024) })
    }

    /// Sends `head` (request line and headers, ending in an empty line) and `body`, and reads the whole answer.
    pub fn send(&mut self, head: &[u8], body: &[u8], keep: Body) -> Result<Answer> {
        if body.len() <= 64 * 1024 {
            let mut whole = Vec::with_capacity(head.len() + body.len());
            whole.extend_from_slice(head);
            whole.extend_from_slice(body);
            self.stream.write_all(&whole)?;
        } else {
            self.stream.write_all(head)?;
            self.stream.write_all(body)?;
        }
        self.read_answer(keep)
    }

    /// Sends a HEAD request: its answer tells the length of a body that does not follow.
    pub fn send_head(&mut self, head: &[u8]) -> Result<Answer> {
        self.stream.write_all(head)?;
        self.buffer.clear();
        let head_end = self.read_head()?;
        let (status, _, etag) = parse_head(&self.buffer[..head_end])?;
        Ok(Answer { status, body_bytes: 0, body: Vec::new(), etag })
    }

    /// Sends a body made of `chunk` repeated until `total` bytes have gone.
    pub fn send_repeated(&mut self, head: &[u8], chunk: &[u8], total: u64) -> Result<Answer> {
        self.stream.write_all(head)?;
        let mut left = total;
        while left > 0 {
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            self.stream.write_all(&chunk[..n])?;
            left -= n as u64;
        }
        self.read_answer(Body::Discard)
    }

    fn read_answer(&mut self, keep: Body) -> Result<Answer> {
        self.buffer.clear();
        let head_end = self.read_head()?;
        let (status, length, etag) = parse_head(&self.buffer[..head_end])?;
        let mut answer = Answer { status, body_bytes: 0, body: Vec::new(), etag };
        let mut rest = self.buffer.split_off(head_end);
        match length {
            Length::Known(n) => self.read_sized(&mut rest, n, keep, &mut answer)?,
            Length::Chunked => self.read_chunked(rest, &mut answer)?,
        }
        Ok(answer)
    }

    fn read_head(&mut self) -> Result<usize> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                return Ok(at + 4);
            }
            if self.buffer.len() > HEAD_BYTES_MAX || self.fill()? == 0 {
                return Err(Error::new(ErrorKind::UnexpectedEof, "no whole response head"));
            }
        }
    }

    fn fill(&mut self) -> Result<usize> {
        let before = self.buffer.len();
        self.buffer.resize(before + 16 * 1024, 0);
        let n = self.stream.read(&mut self.buffer[before..])?;
        self.buffer.truncate(before + n);
        Ok(n)
    }

    fn read_sized(&mut self, first: &mut Vec<u8>, total: u64, keep: Body, answer: &mut Answer) -> Result<()> {
        answer.body_bytes = total;
        let mut left = total - (first.len() as u64).min(total);
        if keep == Body::Keep {
            answer.body.append(first);
        }
        let mut scratch = vec![0; 256 * 1024];
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(scratch.len());
            let n = self.stream.read(&mut scratch[..want])?;
            if n == 0 {
                return Err(Error::new(ErrorKind::UnexpectedEof, "body cut short"));
            }
            if keep == Body::Keep {
                answer.body.extend_from_slice(&scratch[..n]);
            }
            left -= n as u64;
        }
        Ok(())
    }

    fn read_chunked(&mut self, first: Vec<u8>, answer: &mut Answer) -> Result<()> {
        self.buffer = first;
        let mut at = 0;
        loop {
            let line_end = loop {
                if let Some(end) = find(&self.buffer[at..], b"\r\n") {
                    break at + end;
                }
                if self.fill()? == 0 {
                    return Err(Error::new(ErrorKind::UnexpectedEof, "chunk cut short"));
                }
            };
            let text = std::str::from_utf8(&self.buffer[at..line_end]).unwrap_or("");
            let size = usize::from_str_radix(text.split(';').next().unwrap_or("").trim(), 16)
                .map_err(|_| Error::new(ErrorKind::InvalidData, "chunk size"))?;
            let data = line_end + 2;
            while self.buffer.len() < data + size + 2 {
                if self.fill()? == 0 {
                    return Err(Error::new(ErrorKind::UnexpectedEof, "chunk cut short"));
                }
            }
            if size == 0 {
                return Ok(());
            }
            answer.body.extend_from_slice(&self.buffer[data..data + size]);
            answer.body_bytes += size as u64;
            at = data + size + 2;
        }
    }
}

fn parse_head(head: &[u8]) -> Result<(u16, Length, Option<String>)> {
    let text = std::str::from_utf8(head).map_err(|_| Error::new(ErrorKind::InvalidData, "response head"))?;
    let status = text
        .get(9..12)
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| Error::new(ErrorKind::InvalidData, "status line"))?;
    let (mut length, mut etag) = (Length::Known(0), None);
    for line in text.lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = Length::Known(value.trim().parse().unwrap_or(0));
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.trim().eq_ignore_ascii_case("chunked") {
            length = Length::Chunked;
        } else if name.eq_ignore_ascii_case("etag") {
            etag = Some(value.trim().to_owned());
        }
    }
    Ok((status, length, etag))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
