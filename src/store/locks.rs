//! Object lock: which versions may not be removed, and until when. Pure.
//!
//! A retention keeps one version until a moment: in compliance mode from everyone, in governance mode from all who do
//! not say that they bypass it (who may say so is not decided here). A legal hold keeps it until it is lifted. Both
//! are kept with the version and enforced in the transaction that would remove it.

use super::{Error, Result};
use serde::{Deserialize, Serialize};

const DAY_MS: i64 = 86_400_000;
const YEAR_DAYS: u32 = 365;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionMode {
    #[serde(rename = "GOVERNANCE")]
    Governance,
    #[serde(rename = "COMPLIANCE")]
    Compliance,
}

/// Until when a version is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    pub mode: RetentionMode,
    pub until_ms: i64,
}

/// What keeps one version. Kept in the index as JSON of this very shape: a field may be added, none renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectLock {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// `None` where a hold was neither placed nor lifted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal_hold: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionPeriod {
    Days(u32),
    /// Of 365 days.
    Years(u32),
}

/// The retention that a new version gets when its writer states none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRetention {
    pub mode: RetentionMode,
    pub period: RetentionPeriod,
}

/// Of a bucket whose versions can be locked. Kept in the index as JSON of this very shape.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockConfiguration {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultRetention>,
}

/// Whether its caller, who may, sets governance retention aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Governance {
    #[default]
    Obeyed,
    Bypassed,
}

impl Retention {
    fn is_active(self, now_ms: i64) -> bool {
        self.until_ms > now_ms
    }
}

impl DefaultRetention {
    fn starting(self, now_ms: i64) -> Retention {
        let days = match self.period {
            RetentionPeriod::Days(days) => days,
            RetentionPeriod::Years(years) => years.saturating_mul(YEAR_DAYS),
        };
        Retention { mode: self.mode, until_ms: now_ms.saturating_add(i64::from(days).saturating_mul(DAY_MS)) }
    }
}

impl ObjectLock {
    /// # Errors
    /// `Error::Locked`.
    pub(super) fn check_removal(&self, governance: Governance, now_ms: i64) -> Result<()> {
        let kept = match self.retention.filter(|retention| retention.is_active(now_ms)) {
            None => false,
            Some(Retention { mode: RetentionMode::Compliance, .. }) => true,
            Some(Retention { mode: RetentionMode::Governance, .. }) => governance == Governance::Obeyed,
        };
        if kept || self.legal_hold == Some(true) { Err(Error::Locked) } else { Ok(()) }
    }

    /// Replaces the retention. An active one is only prolonged, in its mode; who bypasses governance may do anything to
    /// that.
    ///
    /// # Errors
    /// `Error::Locked`.
    pub(super) fn retain(&mut self, new: Option<Retention>, governance: Governance, now_ms: i64) -> Result<()> {
        if let Some(old) = self.retention.filter(|retention| retention.is_active(now_ms)) {
            let bypassed = old.mode == RetentionMode::Governance && governance == Governance::Bypassed;
            let prolonged = new.is_some_and(|new| new.mode == old.mode && new.until_ms >= old.until_ms);
            if !bypassed && !prolonged {
                return Err(Error::Locked);
            }
        }
        self.retention = new;
        Ok(())
    }

    /// The lock of a new version of a bucket with this configuration, if it has one.
    ///
    /// # Errors
    /// `Error::LockNotEnabled`.
    pub(super) fn of_new_version(self, configuration: Option<&LockConfiguration>, now_ms: i64) -> Result<Self> {
        let Some(configuration) = configuration else {
            return if self == Self::default() { Ok(self) } else { Err(Error::LockNotEnabled) };
        };
        let by_default = || configuration.default.map(|default| default.starting(now_ms));
        Ok(Self { retention: self.retention.or_else(by_default), ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_000_000;

    fn lock(mode: RetentionMode, until_ms: i64) -> ObjectLock {
        ObjectLock { retention: Some(Retention { mode, until_ms }), legal_hold: None }
    }

    #[test]
    fn removal_waits_for_retention_and_hold() {
        use Governance::{Bypassed, Obeyed};
        use RetentionMode::{Compliance, Governance as Governed};
        let held = |hold| ObjectLock { legal_hold: Some(hold), ..ObjectLock::default() };
        for (lock, governance, removable) in [
            (ObjectLock::default(), Obeyed, true),
            (lock(Governed, NOW_MS + 1), Obeyed, false),
            (lock(Governed, NOW_MS + 1), Bypassed, true),
            (lock(Governed, NOW_MS), Obeyed, true),
            (lock(Compliance, NOW_MS + 1), Bypassed, false),
            (lock(Compliance, NOW_MS), Obeyed, true),
            (held(true), Bypassed, false),
            (held(false), Obeyed, true),
        ] {
            assert_eq!(lock.check_removal(governance, NOW_MS).is_ok(), removable, "{lock:?} {governance:?}");
        }
    }

    #[test]
    fn an_active_retention_is_only_prolonged() {
        use Governance::{Bypassed, Obeyed};
        use RetentionMode::{Compliance, Governance as Governed};
        let (sooner, same, later) = (NOW_MS + 5, NOW_MS + 10, NOW_MS + 20);
        let to = |mode, until_ms| Some(Retention { mode, until_ms });
        for (old, new, governance, taken) in [
            (Governed, to(Governed, later), Obeyed, true),
            (Governed, to(Governed, same), Obeyed, true),
            (Governed, to(Governed, sooner), Obeyed, false),
            (Governed, to(Governed, sooner), Bypassed, true),
            (Governed, to(Compliance, later), Obeyed, false),
            (Governed, to(Compliance, sooner), Bypassed, true),
            (Governed, None, Obeyed, false),
            (Governed, None, Bypassed, true),
            (Compliance, to(Compliance, later), Obeyed, true),
            (Compliance, to(Compliance, sooner), Bypassed, false),
            (Compliance, to(Governed, later), Bypassed, false),
            (Compliance, None, Bypassed, false),
        ] {
            let mut changed = lock(old, same);
            assert_eq!(changed.retain(new, governance, NOW_MS).is_ok(), taken, "{old:?} {new:?} {governance:?}");
            assert_eq!(changed.retention == new, taken || new == to(old, same));
        }
        let mut past = lock(Compliance, NOW_MS);
        assert!(past.retain(None, Obeyed, NOW_MS).is_ok(), "an end that has come keeps nothing");
    }

    #[test]
    fn new_versions_get_the_buckets_retention_unless_they_state_their_own() {
        let default = Some(DefaultRetention { mode: RetentionMode::Governance, period: RetentionPeriod::Years(1) });
        let configuration = LockConfiguration { default };
        let given = ObjectLock::default().of_new_version(Some(&configuration), NOW_MS).unwrap();
        assert_eq!(given, lock(RetentionMode::Governance, NOW_MS + 365 * DAY_MS));
        let own = lock(RetentionMode::Compliance, NOW_MS + 1);
        assert_eq!(own.clone().of_new_version(Some(&configuration), NOW_MS).unwrap(), own);
        assert!(matches!(own.of_new_version(None, NOW_MS), Err(Error::LockNotEnabled)));
    }
}
