//! The runs that listen to events, as far as this node knows. It learns of those that other nodes have written from
//! notifications, and reads them every few seconds in any case.

use super::core::Core;
use super::db_error::DbError;
use super::run;
use crate::{Interest, RunId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The runs that listen, and which events they want.
pub(super) type Listening = Arc<BTreeMap<RunId, Arc<Interest>>>;

/// What is known of the runs that listen.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    listening: Listening,
    /// How often this node has written one of them.
    written: u64,
}

impl Listeners {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Listening {
        Arc::clone(&self.known().listening)
    }

    /// Notes what this node has written of a run; answers whether that is news.
    pub(super) fn note(&self, id: RunId, interest: Option<&Arc<Interest>>) -> bool {
        let mut known = self.known();
        if known.listening.get(&id) == interest {
            return false;
        }
        let mut listening = BTreeMap::clone(&known.listening);
        match interest {
            Some(interest) => listening.insert(id, Arc::clone(interest)),
            None => listening.remove(&id),
        };
        known.listening = Arc::new(listening);
        known.written += 1;
        true
    }
}

/// Reads which runs listen. What this node writes meanwhile counts more than what was read.
pub(super) async fn look(core: &Core) -> Result<(), DbError> {
    loop {
        let before = core.listeners.known().written;
        let found = run::listening(core).await?;
        let mut known = core.listeners.known();
        if known.written == before {
            known.listening = Arc::new(found);
            return Ok(());
        }
    }
}
