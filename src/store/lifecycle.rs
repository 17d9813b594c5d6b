//! Lifecycles of buckets: what expires by itself, and when. The rules are pure; applying them goes bucket by bucket, a
//! bounded page at a time, and decides again on each version in the transaction that removes it.
//!
//! As S3 has it, what is due some days after a moment is due at the midnight (UTC) that follows. Uploads that nobody
//! completes are aborted after [`UPLOAD_DAYS`] where no rule says otherwise.

use super::{
    BucketName, OpenUploadInfo, Result, Store, Tags,
    index::{
        self, buckets,
        lifecycle::{self, Position},
        uploads::{self, UploadAddress},
    },
    types::Address,
};
use serde::{Deserialize, Serialize};

/// Days an open upload is kept where no rule is about it.
pub const UPLOAD_DAYS: u32 = 7;
const DAY_MS: i64 = 86_400_000;

/// Rows looked at in one step, and removed in one transaction.
const STEP_ROWS: usize = 1000;
const BATCH_ROWS: usize = 100;

/// The rules of a bucket. Kept in the index as JSON of this very shape: a field may be added, none renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifecycle {
    pub rules: Vec<LifecycleRule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LifecycleRule {
    pub id: String,
    pub enabled: bool,
    pub filter: LifecycleFilter,
    pub expiration: Option<Expiration>,
    pub noncurrent: Option<NoncurrentExpiration>,
    /// Days from its start until an open upload is aborted.
    pub upload_days: Option<u32>,
}

/// Which objects a rule is about: those for which all that is given is so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LifecycleFilter {
    pub form: FilterForm,
    pub prefix: Option<String>,
    pub tags: Tags,
    /// Bytes.
    pub larger_than: Option<u64>,
    /// Bytes.
    pub smaller_than: Option<u64>,
}

/// How its document spells a filter, to be given back like that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterForm {
    /// A prefix on the rule itself, from before there were filters.
    Prefix,
    #[default]
    One,
    And,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiration {
    /// After its last change.
    Days(u32),
    /// Milliseconds since the epoch.
    AtMs(i64),
    /// Of delete markers that hide nothing any more.
    Markers,
}

/// When versions that are no longer current are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoncurrentExpiration {
    /// Since a newer version took their place.
    pub days: u32,
    /// Newest ones that stay, however old.
    pub kept: u32,
}

/// A version as rules look at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub key: &'a str,
    pub modified_ms: i64,
    /// `None` of a delete marker.
    pub object: Option<CandidateObject<'a>>,
    pub standing: Standing,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CandidateObject<'a> {
    pub size: u64,
    pub tags: &'a Tags,
}

/// Where among the versions of its key one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Newest, with or without others below.
    Newest { alone: bool },
    /// Behind so many that are not current either, since a newer one came.
    Noncurrent { newer: u32, since_ms: i64 },
}

/// What becomes of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    /// As if it were deleted without a version id.
    Expires,
    Removed,
}

impl Lifecycle {
    /// Whether any rule is about objects, so that they must be looked at.
    pub(super) fn concerns_objects(&self) -> bool {
        self.rules.iter().any(|rule| rule.enabled && (rule.expiration.is_some() || rule.noncurrent.is_some()))
    }

    pub(super) fn fate(&self, candidate: &Candidate<'_>, now_ms: i64) -> Fate {
        let rules = self.rules.iter().filter(|rule| rule.enabled && rule.filter.fits(candidate));
        let fates = rules.map(|rule| rule.fate(candidate, now_ms));
        fates.fold(Fate::Stays, |fate, next| if next == Fate::Stays { fate } else { next })
    }

    /// When an upload is aborted. Milliseconds since the epoch.
    fn upload_due_ms(&self, key: &str, started_ms: i64) -> i64 {
        let rules = self.rules.iter().filter(|rule| rule.enabled && key.starts_with(rule.filter.prefix()));
        let days = rules.filter_map(|rule| rule.upload_days).min();
        due_ms(started_ms, days.unwrap_or(UPLOAD_DAYS))
    }
}

impl LifecycleRule {
    fn fate(&self, candidate: &Candidate<'_>, now_ms: i64) -> Fate {
        match candidate.standing {
            Standing::Noncurrent { newer, since_ms } => match self.noncurrent {
                Some(NoncurrentExpiration { days, kept }) if newer >= kept && due_ms(since_ms, days) <= now_ms => {
                    Fate::Removed
                }
                _ => Fate::Stays,
            },
            Standing::Newest { alone } => {
                let is_due = match self.expiration {
                    None => false,
                    Some(Expiration::Days(days)) => due_ms(candidate.modified_ms, days) <= now_ms,
                    Some(Expiration::AtMs(moment_ms)) => moment_ms <= now_ms,
                    Some(Expiration::Markers) => candidate.object.is_none(),
                };
                match candidate.object {
                    Some(_) if is_due => Fate::Expires,
                    // A marker that hides nothing goes in the end, by whichever rule.
                    None if is_due && alone => Fate::Removed,
                    _ => Fate::Stays,
                }
            }
        }
    }
}

impl LifecycleFilter {
    fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or_default()
    }

    /// A marker has neither size nor tags: only a prefix can be about it.
    fn fits(&self, candidate: &Candidate<'_>) -> bool {
        let by_object = match candidate.object {
            None => self.tags.is_empty() && self.larger_than.is_none() && self.smaller_than.is_none(),
            Some(CandidateObject { size, tags }) => {
                self.tags.iter().all(|tag| tags.contains(tag))
                    && self.larger_than.is_none_or(|bound| size > bound)
                    && self.smaller_than.is_none_or(|bound| size < bound)
            }
        };
        by_object && candidate.key.starts_with(self.prefix())
    }
}

/// The midnight (UTC) at or after so many days from `since_ms`.
fn due_ms(since_ms: i64, days: u32) -> i64 {
    let moment = since_ms.saturating_add(i64::from(days).saturating_mul(DAY_MS));
    match moment.rem_euclid(DAY_MS) {
        0 => moment,
        past_midnight => moment.saturating_add(DAY_MS - past_midnight),
    }
}

/// How far a round through all buckets has come; the default is its start.
#[derive(Debug, Clone, Default)]
pub struct LifecycleRound {
    /// `None`: before the first bucket.
    bucket: Option<BucketName>,
    stage: Stage,
}

#[derive(Debug, Clone, Default)]
enum Stage {
    /// Behind this key and upload id.
    Uploads(Option<(String, String)>),
    Versions(Option<Position>),
    #[default]
    Done,
}

/// What a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LifecycleReport {
    /// Objects deleted, or hidden behind a marker.
    pub expired: u64,
    /// Versions and markers removed for ever.
    pub removed: u64,
    /// Uploads aborted.
    pub aborted: u64,
}

impl std::ops::AddAssign for LifecycleReport {
    fn add_assign(&mut self, other: Self) {
        self.expired += other.expired;
        self.removed += other.removed;
        self.aborted += other.aborted;
    }
}

impl Store {
    /// `None` where there are no rules.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn lifecycle(&self, bucket: &BucketName) -> Result<Option<Lifecycle>> {
        let bucket = bucket.clone();
        self.0.index.look_up(move |index| buckets::lifecycle(index, &bucket)).await
    }

    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn set_lifecycle(&self, bucket: &BucketName, lifecycle: Option<Lifecycle>) -> Result<()> {
        let bucket = bucket.clone();
        self.0.index.change(move |write| buckets::set_lifecycle(write, &bucket, lifecycle.as_ref())).await
    }

    /// Goes one bounded step through all buckets and removes what is due by then; answers where to go on, if anywhere.
    /// A round that is given up half way is simply begun again.
    ///
    /// # Errors
    /// Those of the disk.
    pub async fn apply_lifecycle(
        &self,
        round: LifecycleRound,
        now_ms: i64,
    ) -> Result<(LifecycleReport, Option<LifecycleRound>)> {
        let LifecycleRound { bucket, stage } = round;
        let mut report = LifecycleReport::default();
        let (bucket, stage) = match (bucket, stage) {
            (Some(bucket), Stage::Uploads(after)) => {
                let (aborted, stage) = self.abort_due_uploads(&bucket, after, now_ms).await?;
                report.aborted = aborted;
                (bucket, stage)
            }
            (Some(bucket), Stage::Versions(position)) => {
                let (done, stage) = self.remove_due_versions(&bucket, position, now_ms).await?;
                report += done;
                (bucket, stage)
            }
            (bucket, _) => {
                let next = self.0.index.look_up(move |index| buckets::next(index, bucket.as_ref())).await?;
                let Some(bucket) = next else { return Ok((report, None)) };
                (bucket, Stage::Uploads(None))
            }
        };
        Ok((report, Some(LifecycleRound { bucket: Some(bucket), stage })))
    }

    async fn abort_due_uploads(
        &self,
        bucket: &BucketName,
        after: Option<(String, String)>,
        now_ms: i64,
    ) -> Result<(u64, Stage)> {
        let look_up = {
            let bucket = bucket.clone();
            move |index: &_| -> Result<_> {
                // Gone since its name was read: nothing is left to do there.
                let Some(lifecycle) = buckets::lifecycle_if_there(index, &bucket)? else { return Ok(None) };
                Ok(Some((lifecycle, uploads::list(index, &bucket, "", after, STEP_ROWS)?)))
            }
        };
        let Some((lifecycle, (page, more))) = self.0.index.look_up(look_up).await? else {
            return Ok((0, Stage::Done));
        };
        let last = page.last().map(|upload| (upload.key.as_str().to_owned(), upload.id.clone()));
        let due_ms = |upload: &OpenUploadInfo| lifecycle.upload_due_ms(upload.key.as_str(), upload.started_ms);
        let due = page.into_iter().filter(|upload| due_ms(upload) <= now_ms);
        let due = due.map(|upload| UploadAddress { object: Address::new(bucket, &upload.key), id: upload.id });
        let due: Vec<UploadAddress> = due.collect();
        let mut aborted = 0;
        for batch in due.chunks(BATCH_ROWS) {
            let batch = batch.to_vec();
            aborted += self.free(move |write| lifecycle::abort(write, &batch)).await?;
        }
        let stage = match last {
            Some(last) if more => Stage::Uploads(Some(last)),
            _ if lifecycle.concerns_objects() => Stage::Versions(None),
            _ => Stage::Done,
        };
        Ok((aborted, stage))
    }

    async fn remove_due_versions(
        &self,
        bucket: &BucketName,
        position: Option<Position>,
        now_ms: i64,
    ) -> Result<(LifecycleReport, Stage)> {
        let look_up = {
            let bucket = bucket.clone();
            move |index: &_| lifecycle::due(index, &bucket, position, STEP_ROWS, now_ms)
        };
        let lifecycle::Page { due, next } = self.0.index.look_up(look_up).await?;
        let mut report = LifecycleReport::default();
        for batch in due.chunks(BATCH_ROWS) {
            let (bucket, batch) = (bucket.clone(), batch.to_vec());
            let remove = move |write: &mut index::Write<'_>| lifecycle::remove(write, &bucket, &batch, now_ms);
            report += self.free(remove).await?;
        }
        Ok((report, next.map_or(Stage::Done, |position| Stage::Versions(Some(position)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: i64 = 100 * DAY_MS + DAY_MS / 2;

    fn rule(change: impl FnOnce(&mut LifecycleRule)) -> Lifecycle {
        let mut rule = LifecycleRule { enabled: true, ..LifecycleRule::default() };
        change(&mut rule);
        Lifecycle { rules: vec![rule] }
    }

    fn newest(alone: bool) -> Standing {
        Standing::Newest { alone }
    }

    #[test]
    fn days_end_at_midnight() {
        assert_eq!(due_ms(NOON_MS, 1), 102 * DAY_MS);
        assert_eq!(due_ms(100 * DAY_MS, 1), 101 * DAY_MS);
        assert_eq!(due_ms(i64::MAX, u32::MAX), i64::MAX);
    }

    #[test]
    fn filters_are_all_to_be_met() {
        let tags: Tags = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        let fits = |filter: &LifecycleFilter, key, object| {
            filter.fits(&Candidate { key, modified_ms: 0, object, standing: newest(false) })
        };
        let object = |size| Some(CandidateObject { size, tags: &tags });
        let filter = LifecycleFilter {
            prefix: Some("p/".to_owned()),
            tags: tags[..1].to_vec(),
            larger_than: Some(10),
            smaller_than: Some(20),
            ..LifecycleFilter::default()
        };
        assert!(fits(&filter, "p/x", object(11)) && fits(&filter, "p/x", object(19)));
        assert!(!fits(&filter, "x", object(11)));
        assert!(!fits(&filter, "p/x", object(10)) && !fits(&filter, "p/x", object(20)));
        let other = LifecycleFilter { tags: vec![("a".to_owned(), "2".to_owned())], ..LifecycleFilter::default() };
        assert!(!fits(&other, "p/x", object(11)));
        assert!(!fits(&filter, "p/x", None), "a marker has no size");
        assert!(fits(&LifecycleFilter::default(), "x", None));
    }

    #[test]
    fn each_standing_has_its_own_fate() {
        let tags = Tags::new();
        let object = Some(CandidateObject { size: 1, tags: &tags });
        let days = rule(|rule| rule.expiration = Some(Expiration::Days(1)));
        let date = rule(|rule| rule.expiration = Some(Expiration::AtMs(102 * DAY_MS)));
        let markers = rule(|rule| rule.expiration = Some(Expiration::Markers));
        let noncurrent = rule(|rule| rule.noncurrent = Some(NoncurrentExpiration { days: 1, kept: 2 }));
        let off = rule(|rule| {
            rule.expiration = Some(Expiration::Days(1));
            rule.enabled = false;
        });
        let noncurrent_at = |newer| Standing::Noncurrent { newer, since_ms: NOON_MS };
        let (before, due) = (102 * DAY_MS - 1, 102 * DAY_MS);
        for (lifecycle, object, standing, now_ms, fate) in [
            (&days, object, newest(true), before, Fate::Stays),
            (&days, object, newest(true), due, Fate::Expires),
            (&days, None, newest(true), due, Fate::Removed),
            (&days, None, newest(false), due, Fate::Stays),
            (&days, object, noncurrent_at(9), due, Fate::Stays),
            (&date, object, newest(false), before, Fate::Stays),
            (&date, object, newest(false), due, Fate::Expires),
            (&markers, object, newest(true), due, Fate::Stays),
            (&markers, None, newest(true), before, Fate::Removed),
            (&markers, None, newest(false), due, Fate::Stays),
            (&noncurrent, object, newest(false), due, Fate::Stays),
            (&noncurrent, object, noncurrent_at(1), due, Fate::Stays),
            (&noncurrent, object, noncurrent_at(2), before, Fate::Stays),
            (&noncurrent, object, noncurrent_at(2), due, Fate::Removed),
            (&noncurrent, None, noncurrent_at(2), due, Fate::Removed),
            (&off, object, newest(true), due, Fate::Stays),
        ] {
            let candidate = Candidate { key: "k", modified_ms: NOON_MS, object, standing };
            assert_eq!(lifecycle.fate(&candidate, now_ms), fate, "{lifecycle:?} {candidate:?} {now_ms}");
        }
    }

    #[test]
    fn uploads_end_after_a_week_unless_a_rule_is_about_them() {
        let own = rule(|rule| {
            rule.filter.prefix = Some("slow/".to_owned());
            rule.upload_days = Some(30);
        });
        assert_eq!(own.upload_due_ms("slow/x", 0), 30 * DAY_MS);
        assert_eq!(own.upload_due_ms("x", 0), 7 * DAY_MS);
        assert_eq!(Lifecycle::default().upload_due_ms("x", 1), 8 * DAY_MS);
    }
}
