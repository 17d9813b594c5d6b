//! Decodes `aws-chunked` bodies incrementally, without copying object bytes.
//!
//! ```text
//! SIZE[;chunk-signature=HEX]\r\n BYTES \r\n        any number of times; SIZE in hexadecimal
//! 0[;chunk-signature=HEX]\r\n
//! [x-amz-checksum-…:BASE64\r\n]                    as announced in x-amz-trailer
//! [x-amz-trailer-signature:HEX\r\n]                when the trailer is signed
//! \r\n
//! ```
//! Framing never reaches the object, and the object has exactly the length announced. A chunk's bytes are handed on before
//! its signature is known, so what came out counts for nothing until [`Decoder::finish`] succeeded. Memory is bounded by
//! one line, whatever a chunk's size. Comparing the checksum with the bytes is the caller's.

use super::sigv4::{ChunkSigner, Signature, hex_str, same_signature};
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Buf, Bytes};

/// The longest line: a size with its signature, or a trailer. Bytes, with its end.
const LINE_BYTES_MAX: usize = 1024;

/// Chunks other than the last must be this large. Bytes. See AWS's `InvalidChunkSizeError`.
const CHUNK_BYTES_MIN: u64 = 8192;

/// Line ends tolerated after the end of the body. Bytes.
const EPILOGUE_BYTES_MAX: usize = 8;

/// Every checksum S3 knows, with the length of its digest. Those that the store cannot compute are the caller's to refuse.
const TRAILER_NAMES: [TrailerName; 10] = [
    TrailerName { name: "x-amz-checksum-crc32", digest_bytes: 4 },
    TrailerName { name: "x-amz-checksum-crc32c", digest_bytes: 4 },
    TrailerName { name: "x-amz-checksum-crc64nvme", digest_bytes: 8 },
    TrailerName { name: "x-amz-checksum-md5", digest_bytes: 16 },
    TrailerName { name: "x-amz-checksum-sha1", digest_bytes: 20 },
    TrailerName { name: "x-amz-checksum-sha256", digest_bytes: 32 },
    TrailerName { name: "x-amz-checksum-sha512", digest_bytes: 64 },
    TrailerName { name: "x-amz-checksum-xxhash128", digest_bytes: 16 },
    TrailerName { name: "x-amz-checksum-xxhash3", digest_bytes: 8 },
    TrailerName { name: "x-amz-checksum-xxhash64", digest_bytes: 8 },
];

/// Which signatures a body carries.
pub enum Signing {
    Unsigned,
    Chunks(ChunkSigner),
    /// The trailer is signed too.
    ChunksAndTrailer(ChunkSigner),
}

/// A checksum header that may trail: `x-amz-checksum-…`. Only names S3 knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailerName {
    name: &'static str,
    digest_bytes: usize,
}

impl TrailerName {
    /// From the value of `x-amz-trailer`, in any case.
    ///
    /// # Errors
    /// `UnsupportedTrailer`.
    pub fn parse(value: &[u8]) -> Result<TrailerName, Error> {
        let value = value.trim_ascii();
        let known = TRAILER_NAMES.into_iter().find(|known| value.eq_ignore_ascii_case(known.name.as_bytes()));
        known.ok_or(Error::UnsupportedTrailer)
    }

    /// Lower case, `x-amz-checksum-` included.
    pub fn as_str(&self) -> &'static str {
        self.name
    }
}

/// The checksum that followed the body: well-formed base64 of the right length, not yet compared with the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    pub name: TrailerName,
    pub value: String,
}

/// `Display` is AWS's message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Ended early, or the framing is broken.
    #[error("The request body terminated unexpectedly")]
    Truncated,
    /// More or fewer object bytes than `x-amz-decoded-content-length` says.
    #[error("You did not provide the number of bytes specified by the Content-Length HTTP header")]
    LengthMismatch,
    #[error("Only the last chunk is allowed to have a size less than 8192 bytes")]
    ChunkTooSmall { chunk: u64, bytes: u64 },
    #[error(
        "The request signature we calculated does not match the signature you provided. Check your key and signing \
         method."
    )]
    SignatureDoesNotMatch,
    #[error("The request contained trailing data that was not well-formed or did not conform to our published schema.")]
    MalformedTrailer,
    #[error("The value specified in the x-amz-trailer header is not supported")]
    UnsupportedTrailer,
    #[error("Value for {name} trailing header is invalid.")]
    InvalidTrailerValue { name: &'static str },
}

/// Where in the body the decoder stands: what the next byte belongs to.
enum State {
    ChunkLine,
    ChunkBytes {
        left: u64,
    },
    /// The line end after a chunk's bytes.
    ChunkEnd,
    /// A chunk goes on past the announced length.
    Excess,
    Checksum,
    TrailerSignature,
    /// The empty line.
    Terminator,
    Epilogue {
        bytes: usize,
    },
}

pub struct Decoder {
    signing: Signing,
    announced: Option<TrailerName>,
    /// Object bytes still to come.
    left: u64,
    state: State,
    /// A line, or the start of one that its input cut off.
    line: Vec<u8>,
    /// Chunks begun so far, and the size of the latest.
    chunks: u64,
    chunk_bytes: u64,
    sha256: digest::Context,
    /// The signature that the current chunk carries.
    claimed: Signature,
    trailer: Option<Trailer>,
}

impl Decoder {
    /// `decoded_bytes`: exactly how many object bytes the body holds. `trailer`: the checksum announced.
    pub fn new(signing: Signing, decoded_bytes: u64, trailer: Option<TrailerName>) -> Decoder {
        Decoder {
            signing,
            announced: trailer,
            left: decoded_bytes,
            state: State::ChunkLine,
            line: Vec::new(),
            chunks: 0,
            chunk_bytes: 0,
            sha256: digest::Context::new(&digest::SHA256),
            claimed: [b'0'; 64],
            trailer: None,
        }
    }

    /// The next slice of object bytes, taken from the front of `input`; `None` once `input` is used up.
    ///
    /// # Errors
    /// Any; the decoder is of no use afterwards.
    pub fn decode(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Error> {
        while !input.is_empty() {
            match self.state {
                State::ChunkBytes { left } => return self.chunk_bytes(input, left).map(Some),
                State::Excess => self.excess(input)?,
                State::Epilogue { bytes } => self.epilogue(input, bytes)?,
                State::ChunkLine | State::ChunkEnd | State::Checksum | State::TrailerSignature | State::Terminator => {
                    if self.take_line(input)? {
                        self.state = self.end_line()?;
                        self.line.clear();
                    }
                }
            }
        }
        Ok(None)
    }

    /// After the last input: whether all of the body was there and right.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn finish(self) -> Result<Option<Trailer>, Error> {
        match self.state {
            State::Epilogue { .. } => Ok(self.trailer),
            _ => Err(Error::Truncated),
        }
    }

    fn chunk_bytes(&mut self, input: &mut Bytes, chunk_left: u64) -> Result<Bytes, Error> {
        let wanted = usize::try_from(chunk_left.min(self.left)).unwrap_or(usize::MAX);
        let bytes = input.split_to(wanted.min(input.len()));
        if !matches!(self.signing, Signing::Unsigned) {
            self.sha256.update(&bytes);
        }
        let taken = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.left -= taken;
        self.state = match chunk_left - taken {
            0 => State::ChunkEnd,
            _ if self.left == 0 => State::Excess,
            left => State::ChunkBytes { left },
        };
        Ok(bytes)
    }

    /// Tells a chunk that claims too much, whose bytes end here, from an object that is too long.
    fn excess(&mut self, input: &mut Bytes) -> Result<(), Error> {
        let room = 2_usize.saturating_sub(self.line.len());
        let bytes = input.split_to(room.min(input.len()));
        self.line.extend_from_slice(&bytes);
        match self.line.as_slice() {
            b"\r" => Ok(()),
            b"\r\n" => Err(Error::Truncated),
            _ => Err(Error::LengthMismatch),
        }
    }

    fn epilogue(&mut self, input: &mut Bytes, before: usize) -> Result<(), Error> {
        let bytes = before.saturating_add(input.len());
        if bytes > EPILOGUE_BYTES_MAX || !input.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
            return Err(Error::Truncated);
        }
        input.clear();
        self.state = State::Epilogue { bytes };
        Ok(())
    }

    /// Moves bytes from `input` into `line`, to the end of the line; whether it is complete (and without its end).
    fn take_line(&mut self, input: &mut Bytes) -> Result<bool, Error> {
        let room = LINE_BYTES_MAX - self.line.len();
        let within = input.get(..room.min(input.len())).unwrap_or_default();
        let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
            if input.len() >= room {
                return Err(Error::Truncated);
            }
            self.line.extend_from_slice(within);
            input.clear();
            return Ok(false);
        };
        self.line.extend_from_slice(within.get(..end).unwrap_or_default());
        input.advance(end + 1);
        // A line ends with both; neither occurs inside.
        match self.line.pop() {
            Some(b'\r') if !self.line.contains(&b'\r') => Ok(true),
            _ => Err(Error::Truncated),
        }
    }

    /// Acts on a complete line; answers what follows it.
    fn end_line(&mut self) -> Result<State, Error> {
        match self.state {
            State::ChunkLine => self.begin_chunk(),
            State::ChunkEnd => {
                self.require_empty_line()?;
                self.verify_chunk()?;
                Ok(State::ChunkLine)
            }
            State::Checksum => self.end_checksum(),
            State::TrailerSignature => {
                self.verify_trailer()?;
                Ok(State::Terminator)
            }
            State::Terminator => {
                self.require_empty_line()?;
                Ok(State::Epilogue { bytes: 0 })
            }
            // These are not made of lines.
            State::ChunkBytes { .. } | State::Excess | State::Epilogue { .. } => Err(Error::Truncated),
        }
    }

    fn require_empty_line(&self) -> Result<(), Error> {
        if self.line.is_empty() { Ok(()) } else { Err(Error::Truncated) }
    }

    fn begin_chunk(&mut self) -> Result<State, Error> {
        let (size, signature) = parse_chunk_line(&self.line).ok_or(Error::Truncated)?;
        if !matches!(self.signing, Signing::Unsigned) {
            self.claimed = signature.ok_or(Error::Truncated)?;
        }
        if size == 0 {
            return self.end_chunks();
        }
        if self.chunks > 0 && self.chunk_bytes < CHUNK_BYTES_MIN {
            return Err(Error::ChunkTooSmall { chunk: self.chunks, bytes: self.chunk_bytes });
        }
        self.chunks += 1;
        self.chunk_bytes = size;
        Ok(if self.left == 0 { State::Excess } else { State::ChunkBytes { left: size } })
    }

    fn end_chunks(&mut self) -> Result<State, Error> {
        if self.left > 0 {
            return Err(Error::LengthMismatch);
        }
        self.verify_chunk()?;
        Ok(match self.signing {
            Signing::Chunks(_) => State::Terminator,
            Signing::Unsigned | Signing::ChunksAndTrailer(_) => State::Checksum,
        })
    }

    fn verify_chunk(&mut self) -> Result<(), Error> {
        let (Signing::Chunks(signer) | Signing::ChunksAndTrailer(signer)) = &mut self.signing else {
            return Ok(());
        };
        let sha256 = std::mem::replace(&mut self.sha256, digest::Context::new(&digest::SHA256)).finish();
        if same_signature(&signer.chunk(sha256.as_ref()), &self.claimed) {
            Ok(())
        } else {
            Err(Error::SignatureDoesNotMatch)
        }
    }

    /// Exactly what was announced trails, neither less nor more; a signed trailer must be announced.
    fn end_checksum(&mut self) -> Result<State, Error> {
        let unsigned = matches!(self.signing, Signing::Unsigned);
        let Some(name) = self.announced else {
            let done = unsigned && self.line.is_empty();
            return if done { Ok(State::Epilogue { bytes: 0 }) } else { Err(Error::MalformedTrailer) };
        };
        let (sent, value) = split_trailer(&self.line).ok_or(Error::MalformedTrailer)?;
        if !sent.eq_ignore_ascii_case(name.name) {
            return Err(Error::MalformedTrailer);
        }
        if !STANDARD.decode(value).is_ok_and(|digest| digest.len() == name.digest_bytes) {
            return Err(Error::InvalidTrailerValue { name: name.name });
        }
        self.trailer = Some(Trailer { name, value: value.to_owned() });
        Ok(if unsigned { State::Terminator } else { State::TrailerSignature })
    }

    fn verify_trailer(&mut self) -> Result<(), Error> {
        let (Signing::ChunksAndTrailer(signer), Some(trailer)) = (&mut self.signing, &self.trailer) else {
            return Err(Error::MalformedTrailer);
        };
        let claimed = split_trailer(&self.line)
            .filter(|(name, value)| name.eq_ignore_ascii_case("x-amz-trailer-signature") && value.len() == 64)
            .map(|(_, value)| value)
            .ok_or(Error::Truncated)?;
        let lines = format!("{}:{}\n", trailer.name.name, trailer.value);
        let sha256 = digest::digest(&digest::SHA256, lines.as_bytes());
        if same_signature(&signer.trailer(sha256.as_ref()), claimed.as_bytes()) {
            Ok(())
        } else {
            Err(Error::SignatureDoesNotMatch)
        }
    }
}

/// `SIZE`, then `;` and extensions, of which only the signature matters.
fn parse_chunk_line(line: &[u8]) -> Option<(u64, Option<Signature>)> {
    let mut parts = line.splitn(2, |byte| *byte == b';');
    let size = parts.next()?;
    // `from_str_radix` would take a sign.
    if !size.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let size = u64::from_str_radix(hex_str(size), 16).ok()?;
    let signature = parts.next().and_then(|extension| extension.strip_prefix(b"chunk-signature="));
    Some((size, signature.and_then(|digits| digits.try_into().ok())))
}

/// `name:value`, without blanks around either.
fn split_trailer(line: &[u8]) -> Option<(&str, &str)> {
    let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
    Some((name.trim(), value.trim()))
}

#[cfg(test)]
mod tests;
