//! Lines in which commits to one table wait for their turn.
//!
//! Within one process contention then costs waiting, not files and conflicts; between processes the swap decides.
//! Turns come in the order of arrival, lines are bounded, and a line that nobody stands in takes no memory.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Commits waiting or running per table; one more is told to come back later.
pub const WAITING_MAX: usize = 1_024;

/// All lines by what they stand for.
pub struct Queues<K: Eq + Hash + Clone>(Arc<Mutex<Lines<K>>>);

type Lines<K> = HashMap<K, Line>;

struct Line {
    /// One permit, handed on first come, first served.
    turn: Arc<Semaphore>,
    people: usize,
}

/// The right to commit; dropping it lets the next in line.
pub struct Turn<K: Eq + Hash + Clone> {
    // Declared before `place`: the permit goes back before the line may be taken down.
    _permit: OwnedSemaphorePermit,
    _place: Place<K>,
}

/// A place in a line, kept while waiting and while having the turn.
struct Place<K: Eq + Hash + Clone> {
    lines: Arc<Mutex<Lines<K>>>,
    key: K,
}

impl<K: Eq + Hash + Clone> Default for Queues<K> {
    fn default() -> Self {
        Queues(Arc::default())
    }
}

impl<K: Eq + Hash + Clone> Queues<K> {
    /// Waits for the turn; `None` when [`WAITING_MAX`] are in the line already.
    pub async fn turn(&self, key: &K) -> Option<Turn<K>> {
        let (place, turn) = self.join(key)?;
        let permit = turn.acquire_owned().await.ok()?;
        Some(Turn { _permit: permit, _place: place })
    }

    fn join(&self, key: &K) -> Option<(Place<K>, Arc<Semaphore>)> {
        let mut lines = lock(&self.0);
        let line = lines.entry(key.clone()).or_insert_with(|| Line { turn: Arc::new(Semaphore::new(1)), people: 0 });
        if line.people >= WAITING_MAX {
            return None;
        }
        line.people += 1;
        Some((Place { lines: Arc::clone(&self.0), key: key.clone() }, Arc::clone(&line.turn)))
    }
}

impl<K: Eq + Hash + Clone> Drop for Place<K> {
    fn drop(&mut self) {
        let mut lines = lock(&self.lines);
        if let Some(line) = lines.get_mut(&self.key) {
            line.people -= 1;
            if line.people == 0 {
                lines.remove(&self.key);
            }
        }
    }
}

/// The map is whole even after a panic elsewhere: nothing in between its changes can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn turns_come_in_order_of_arrival() {
        let queues = Queues::<u8>::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = queues.turn(&1).await.unwrap();
        let mut waiting = Vec::new();
        for n in 0..16 {
            let mut turn = Box::pin(queues.turn(&1));
            assert!((&mut turn).now_or_never().is_none());
            let order = Arc::clone(&order);
            waiting.push(async move {
                let _turn = turn.await.unwrap();
                lock(&order).push(n);
            });
        }
        drop(first);
        waiting.reverse();
        futures_util::future::join_all(waiting).await;
        assert_eq!(*lock(&order), (0..16).collect::<Vec<_>>());
        assert!(lock(&queues.0).is_empty(), "a line nobody stands in is taken down");
    }

    #[tokio::test]
    async fn lines_do_not_hold_each_other_up() {
        let queues = Queues::<u8>::default();
        let _one = queues.turn(&1).await;
        assert!(queues.turn(&2).now_or_never().is_some());
    }

    #[tokio::test]
    async fn whoever_leaves_the_line_gives_up_the_place() {
        let queues = Queues::<u8>::default();
        let first = queues.turn(&1).await;
        let mut second = Box::pin(queues.turn(&1));
        assert!((&mut second).now_or_never().is_none());
        drop(second);
        drop(first);
        assert!(lock(&queues.0).is_empty());
        assert!(queues.turn(&1).now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn a_full_line_refuses_at_once() {
        let queues = Queues::<u8>::default();
        let _first = queues.turn(&1).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 1..WAITING_MAX {
            let mut turn = Box::pin(queues.turn(&1));
            let _ = (&mut turn).now_or_never();
            waiting.push(turn);
        }
        assert!(queues.turn(&1).now_or_never().is_some_and(|turn| turn.is_none()));
    }
}
