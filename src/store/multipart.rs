//! Completing a multipart upload: its parts become one object without a byte being copied.

use super::{
    Checksum, CompletedPart, Condition, Error, ObjectInfo, Result, checksum,
    index::{
        Write, bodies, buckets, objects,
        uploads::{self, OpenUpload, Part, UploadAddress},
    },
};
use std::collections::BTreeMap;

/// What S3 asks of every part but the last. Bytes.
pub(super) const PART_BYTES_MIN: u64 = 5 << 20;

/// What a client says its object is made of.
pub(super) struct Completion {
    pub parts: Vec<CompletedPart>,
    /// What the whole should have, where the client says so.
    pub checksum: Option<Checksum>,
    pub condition: Condition,
    pub part_bytes_min: u64,
    pub now_ms: i64,
}

/// Checks the list against what arrived and publishes; whatever fails leaves the upload as it was.
pub(super) fn complete(write: &mut Write<'_>, upload: &UploadAddress, completion: &Completion) -> Result<ObjectInfo> {
    let open = uploads::load(write.index, upload)?;
    let mut arrived = uploads::parts(write.index, upload)?;
    let chosen = choose(&mut arrived, completion)?;
    let info = describe(upload, open, &chosen, completion)?;

    let bucket = buckets::require(write.index, &upload.object.bucket)?;
    let old = objects::decide(write.index, bucket, &upload.object.key, &completion.condition)?;
    let whole = bodies::insert_parts(write, info.size)?;
    let mut start = 0;
    for part in &chosen {
        bodies::add_part(write, whole, start, part)?;
        start += part.info.size;
    }
    uploads::close(write, upload)?;
    arrived.into_values().try_for_each(|unused| bodies::release(write, unused.body))?;
    objects::replace(write, bucket, &info, whole, old)?;
    Ok(info)
}

/// Takes the listed parts out of those that arrived.
fn choose(arrived: &mut BTreeMap<u32, Part>, completion: &Completion) -> Result<Vec<Part>> {
    if !completion.parts.is_sorted_by(|a, b| a.number < b.number) {
        return Err(Error::InvalidPartOrder);
    }
    let mut chosen = Vec::with_capacity(completion.parts.len());
    for listed in &completion.parts {
        let part = arrived.remove(&listed.number).ok_or(Error::InvalidPart)?;
        let same_checksum = listed.checksum.as_ref().is_none_or(|listed| {
            part.info
                .checksum
                .as_ref()
                .is_some_and(|checksum| (checksum.algorithm, &checksum.value) == (listed.algorithm, &listed.value))
        });
        if part.info.etag != listed.etag || !same_checksum {
            return Err(Error::InvalidPart);
        }
        chosen.push(part);
    }
    let Some((_, all_but_last)) = chosen.split_last() else { return Err(Error::InvalidPart) };
    if all_but_last.iter().any(|part| part.info.size < completion.part_bytes_min) {
        return Err(Error::EntityTooSmall);
    }
    Ok(chosen)
}

/// # Errors
/// `Error::BadDigest` where the client's checksum of the whole is not what its parts give.
fn describe(upload: &UploadAddress, open: OpenUpload, parts: &[Part], completion: &Completion) -> Result<ObjectInfo> {
    let etag = checksum::multipart_etag(parts.iter().map(|part| part.info.etag.as_str())).ok_or(Error::InvalidPart)?;
    let sums = || parts.iter().map(|part| (part.info.checksum.as_ref(), part.info.size));
    let whole = match open.checksum {
        None => None,
        Some(chosen) => Some(checksum::of_parts(chosen.algorithm, chosen.kind, sums()).ok_or(Error::BadDigest)?),
    };
    let agrees = completion.checksum.as_ref().is_none_or(|expected| Some(expected) == whole.as_ref());
    if !agrees {
        return Err(Error::BadDigest);
    }
    Ok(ObjectInfo {
        key: upload.object.key.clone(),
        size: parts.iter().map(|part| part.info.size).sum(),
        etag,
        last_modified_ms: completion.now_ms,
        headers: open.headers,
        checksum: whole,
        parts: u32::try_from(parts.len()).ok(),
    })
}
