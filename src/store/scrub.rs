//! Reads everything stored in the background, again and again, so that damage is found while a copy elsewhere may still
//! exist, and not by the reader who needs it.
//!
//! A pass goes through all bodies in the order of their ids and writes down how far it has come, so that restarts do
//! not keep it from the end. What is wrong is written down too, logged and counted; it stays on the list until the
//! object is gone or found to be right. A body that a reader found to be damaged is looked at next.

use super::{
    Inner, Result, Store,
    index::audit::{self, Stored},
    reaper::{BodyId, Pin},
    verify::{self, Check, Damage, Pass, Step},
};
use metrics::{counter, gauge};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// A pass begins no earlier than this after the one before it began. Milliseconds.
const PASS_EVERY_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// How long at most until it is looked whether a pass is due.
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often a pass writes down how far it has come: each time costs a sync.
const SAVE_EVERY: Duration = Duration::from_secs(60);
/// Pause after a failure that says nothing about what is stored.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// What each body costs besides its bytes: rows of the index are read for it. Bytes.
const BODY_BYTES: u64 = 4 << 10;
/// Sleeps shorter than this are saved up.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Bodies that readers found to be damaged and that wait to be looked at; what is more waits for the next pass.
const SUSPECTS_MAX: usize = 64;

/// Bodies that readers found to be damaged.
#[derive(Default)]
pub(super) struct Suspects {
    waiting: Mutex<VecDeque<BodyId>>,
    added: Notify,
}

impl Suspects {
    pub fn add(&self, body: BodyId) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < SUSPECTS_MAX && !waiting.contains(&body) {
            waiting.push_back(body);
            self.added.notify_one();
        }
    }

    fn take(&self) -> Option<BodyId> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Store {
    /// Looks at everything stored, about `bytes_per_s` each second; 0 looks only at what readers stumble over. Ends when
    /// the store is closed or has failed; may be dropped at any time. `clock` tells the time in milliseconds.
    pub async fn scrub(&self, bytes_per_s: u64, clock: fn() -> i64) {
        let mut scrub = Scrub { store: self.0.clone(), pace: Pace::new(bytes_per_s), clock };
        loop {
            let wait = match scrub.turn().await {
                Ok(wait) => wait,
                Err(_) if self.0.health.check().is_err() => return,
                Err(error) => {
                    tracing::warn!(error = super::error_chain(&error), "the check of stored bytes was interrupted");
                    RETRY_AFTER
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.0.suspects.added.notified() => {}
            }
        }
    }

    /// Damaged objects that are known of, up to 10,000, and the number of damaged bodies.
    pub async fn damages(&self) -> Result<(Vec<Damage>, u64)> {
        self.0.index.look_up(verify::report).await
    }
}

struct Scrub {
    store: Arc<Inner>,
    pace: Pace,
    clock: fn() -> i64,
}

impl Scrub {
    /// Does what is due; answers how long until it is worth looking again.
    async fn turn(&mut self) -> Result<Duration> {
        self.look_at_suspects().await?;
        if self.pace.bytes_per_s == 0 {
            return Ok(LOOK_EVERY);
        }
        let pass = self.store.index.look_up(audit::load_pass).await?;
        let now_ms = (self.clock)();
        let due_ms = pass.started_ms.saturating_add(PASS_EVERY_MS);
        match pass.finished_ms {
            Some(_) if now_ms < due_ms => Ok(LOOK_EVERY.min(Duration::from_millis(due_ms.abs_diff(now_ms)))),
            None if pass.started_ms > 0 => self.pass(pass).await,
            _ => self.pass(Pass { started_ms: now_ms, ..Pass::default() }).await,
        }
    }

    /// Answers as [`Scrub::turn`].
    async fn pass(&mut self, mut pass: Pass) -> Result<Duration> {
        let mut saved = Instant::now();
        self.save(&pass).await?;
        while let Some((stored, pin)) = self.open(pass.at, audit::next_body).await? {
            let (id, size) = (stored.id, stored.size);
            self.look_at(stored, pin).await?;
            pass = Pass { at: id, bodies: pass.bodies + 1, bytes: pass.bytes + size, ..pass };
            self.look_at_suspects().await?;
            if saved.elapsed() >= SAVE_EVERY {
                self.save(&pass).await?;
                saved = Instant::now();
            }
        }
        // A round over nothing does not end: the first objects do not have to wait for the next.
        if pass.bodies == 0 {
            return Ok(LOOK_EVERY);
        }
        pass.finished_ms = Some((self.clock)());
        self.save(&pass).await?;
        tracing::info!(bodies = pass.bodies, bytes = pass.bytes, "everything stored was checked");
        Ok(Duration::ZERO)
    }

    async fn save(&self, pass: &Pass) -> Result<()> {
        let (saved, index) = (pass.clone(), &self.store.index);
        index.change(move |write| audit::save_pass(write, &saved)).await?;
        let (_, damaged) = index.look_up(|index| audit::marked(index, 0)).await?;
        gauge!("tidewater_store_damaged").set(damaged as f64);
        Ok(())
    }

    async fn look_at_suspects(&mut self) -> Result<()> {
        while let Some(whole) = self.store.suspects.take() {
            let mut bodies = self.store.index.look_up(move |index| audit::pieces(index, whole)).await?;
            bodies.push(whole);
            for body in bodies {
                if let Some((stored, pin)) = self.open(body, audit::body).await? {
                    self.look_at(stored, pin).await?;
                }
            }
        }
        Ok(())
    }

    /// Finds a body and keeps it from being removed meanwhile.
    async fn open(
        &self,
        body: BodyId,
        find: fn(&rusqlite::Connection, BodyId) -> Result<Option<Stored>>,
    ) -> Result<Option<(Stored, Pin)>> {
        let pins = self.store.pins.clone();
        let look_up = move |index: &rusqlite::Connection| {
            let pin = |stored: Stored| {
                let pin = pins.pin(stored.id);
                (stored, pin)
            };
            pins.look_up(|| Ok(find(index, body)?.map(pin)))
        };
        self.store.index.look_up(look_up).await
    }

    async fn look_at(&mut self, stored: Stored, pin: Pin) -> Result<()> {
        let size = stored.size;
        let mut check = Check::new(stored);
        self.pace.spend(BODY_BYTES).await;
        let what = loop {
            let store = self.store.clone();
            let (step, looked_at) = self
                .store
                .blocking
                .run(move || {
                    let step = check.step(&store.disk)?;
                    Ok((step, check))
                })
                .await?;
            check = looked_at;
            match step {
                Step::More(bytes) => self.pace.spend(bytes).await,
                Step::Sound => break None,
                Step::Wrong(what) => break Some(what),
            }
        };
        drop(pin);
        counter!("tidewater_store_scrubbed_bytes_total").increment(size);
        match what {
            Some(what) => self.mark(check.id(), what).await,
            None if check.is_marked() => {
                let body = check.id();
                self.store.index.change(move |write| audit::clear(write, body)).await
            }
            None => Ok(()),
        }
    }

    async fn mark(&self, body: BodyId, what: String) -> Result<()> {
        counter!("tidewater_store_damage_found_total").increment(1);
        tracing::error!(body, what, "stored bytes are damaged: `tidewater store damages` lists what they are part of");
        let now_ms = (self.clock)();
        self.store.index.change(move |write| audit::mark(write, body, &what, now_ms)).await
    }
}

/// Keeps to a number of bytes a second.
struct Pace {
    bytes_per_s: u64,
    owed: Duration,
}

impl Pace {
    fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s, owed: Duration::ZERO }
    }

    async fn spend(&mut self, bytes: u64) {
        if self.bytes_per_s > 0 {
            self.owed += Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
        }
        if self.owed >= PAUSE_MIN {
            tokio::time::sleep(std::mem::take(&mut self.owed)).await;
        }
    }
}

#[cfg(test)]
impl Store {
    /// A whole pass at once, whether due or not.
    pub(super) async fn scrub_now(&self) -> Result<()> {
        let mut scrub = Scrub { store: self.0.clone(), pace: Pace::new(0), clock: || 1 };
        scrub.pass(Pass { started_ms: 1, ..Pass::default() }).await.map(drop)
    }

    /// Looks at what readers found to be damaged.
    pub(super) async fn scrub_suspects(&self) -> Result<()> {
        Scrub { store: self.0.clone(), pace: Pace::new(0), clock: || 1 }.look_at_suspects().await
    }
}
