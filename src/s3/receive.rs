//! Takes the bytes of an object or part off a request and checks them, up to but not including publication.

use super::{
    body::BodyPlan,
    checksum::{self, Claim},
    error::{Error, Result, Subject},
    front::Call,
};
use crate::store::{Checksum, ChecksumAlgorithm, Hasher, Sealed};

/// A body that is about to be read.
pub(super) struct Incoming {
    pub plan: BodyPlan,
    pub claim: Option<Claim>,
    pub md5: Option<[u8; 16]>,
}

/// A body that was read and is what its client says it is.
pub(super) struct Received {
    pub sealed: Sealed,
    /// The checksum the client stated, now known to be true.
    pub verified: Option<Checksum>,
}

impl Incoming {
    /// What the headers say about the body.
    ///
    /// # Errors
    /// `Error::Body` for a length missing or too large, and whatever is wrong with stated digests.
    pub fn plan(call: &mut Call<'_>) -> Result<Incoming> {
        let md5 = checksum::content_md5(&call.parts.headers)?;
        let plan = call.plan_body(call.front.limits.object_bytes_max)?;
        plan.require_length().map_err(Error::Body)?;
        let claim = checksum::claim(&call.parts.headers, plan.trailer())?;
        Ok(Incoming { plan, claim, md5 })
    }

    /// Decoded bytes to come.
    pub fn length(&self) -> u64 {
        self.plan.length().unwrap_or(0)
    }

    /// Reads the body into the store, with a digest by `algorithm` to be kept.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes; the store's errors as `subject` has them.
    pub async fn receive(
        self,
        call: &mut Call<'_>,
        algorithm: ChecksumAlgorithm,
        subject: &Subject<'_>,
    ) -> Result<Received> {
        let mut upload = call.front.store.begin(Some(algorithm));
        // A client may state a checksum by another algorithm than the one kept.
        let other = self.claim.as_ref().filter(|claim| claim.algorithm != algorithm);
        let mut hasher = other.map(|claim| Hasher::new(claim.algorithm));
        let mut body = call.open_body(self.plan);
        while let Some(bytes) = body.next().await {
            let bytes = bytes.map_err(Error::Body)?;
            call.bytes_in += bytes.len() as u64;
            if let Some(hasher) = &mut hasher {
                hasher.update(&bytes);
            }
            upload.write(bytes).await.map_err(|error| subject.error(error))?;
        }
        let trailer = body.finish().map_err(Error::Body)?;
        let sealed = upload.seal().await.map_err(|error| subject.error(error))?;
        checksum::verify_md5(self.md5, &sealed.md5)?;
        let verified = match &self.claim {
            None => None,
            Some(claim) => {
                let digest = match hasher {
                    Some(hasher) => hasher.finish(),
                    None => sealed.checksum.as_ref().map(|(_, digest)| digest.clone()).unwrap_or_default(),
                };
                claim.verify(&digest, trailer.as_ref())?;
                Some(checksum::of_digest(claim.algorithm, &digest))
            }
        };
        Ok(Received { sealed, verified })
    }
}
