//! The canonical form of a request, which is what is signed.

/// Percent-encodes every byte outside `A–Z a–z 0–9 - . _ ~ /`, in upper case.
pub fn encode_path(_path: &[u8]) -> String {
    todo!()
}

/// Percent-encodes every byte outside `A–Z a–z 0–9 - . _ ~`, in upper case; a space is `%20`.
pub fn encode_component(_component: &[u8]) -> String {
    todo!()
}
