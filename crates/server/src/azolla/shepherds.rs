//! Which shepherds are there, and which tasks they have.

use redrive_store::{Job, JobId, LeaseRef, LeaseToken, Token};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

/// The shepherds that are connected, or were lately.
#[derive(Debug, Default)]
pub(super) struct Shepherds(Mutex<HashMap<Uuid, Arc<Shepherd>>>);

/// A shepherd. It goes by the id that it has drawn at its start, whatever connections it opens.
#[derive(Debug)]
pub(super) struct Shepherd {
    id: Uuid,
    /// The number of its stream, from 1: the newest one is valid.
    stream: watch::Sender<u64>,
    /// The tasks that it was given and has not reported.
    tasks: Mutex<HashMap<JobId, LeaseToken>>,
    /// Notified when a task is taken from it.
    freed: Notify,
}

impl Shepherds {
    fn known(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Shepherd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream of a shepherd begins; its number. The streams before it are over. The third value says that nothing was
    /// known of it.
    pub(super) fn enter(&self, id: Uuid) -> (Arc<Shepherd>, u64, bool) {
        let mut known = self.known();
        let is_new = !known.contains_key(&id);
        let shepherd = known.entry(id).or_insert_with(|| {
            let (stream, tasks, freed) = (watch::Sender::new(0), Mutex::default(), Notify::new());
            Arc::new(Shepherd { id, stream, tasks, freed })
        });
        let mut number = 0;
        shepherd.stream.send_modify(|last| {
            *last += 1;
            number = *last;
        });
        (Arc::clone(shepherd), number, is_new)
    }

    /// Forgets a shepherd that has not come back since this stream of it.
    pub(super) fn forget(&self, shepherd: &Shepherd, number: u64) {
        let mut known = self.known();
        if shepherd.is_current(number) {
            known.remove(&shepherd.id);
        }
    }
}

impl Shepherd {
    /// The name under which it holds its leases.
    pub(super) fn worker(&self) -> Arc<str> {
        format!("azolla-shepherd-{}", self.id).into()
    }

    /// Whether this is its newest stream.
    pub(super) fn is_current(&self, number: u64) -> bool {
        *self.stream.borrow() == number
    }

    /// Completes once a newer stream has begun.
    pub(super) async fn superseded(&self, number: u64) {
        // The sender lives as long as this shepherd.
        let _ = self.stream.subscribe().wait_for(|newest| *newest != number).await;
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<JobId, LeaseToken>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has this job.
    pub(super) fn take(&self, job: &Job) {
        if let Some(lease) = &job.lease {
            self.tasks().insert(job.id, lease.token);
        }
    }

    /// The lease under which it has a task.
    pub(super) fn lease_of(&self, id: JobId) -> Option<LeaseRef> {
        self.tasks().get(&id).map(|token| LeaseRef { id, token: Token::Lease(*token) })
    }

    /// All leases that it has.
    pub(super) fn leases(&self) -> Vec<LeaseRef> {
        self.tasks().iter().map(|(id, token)| LeaseRef { id: *id, token: Token::Lease(*token) }).collect()
    }

    /// It has a task no more, unless it was given it again under another lease.
    pub(super) fn drop_task(&self, held: &LeaseRef) {
        let mut tasks = self.tasks();
        if tasks.get(&held.id).is_some_and(|token| Token::Lease(*token) == held.token) {
            tasks.remove(&held.id);
            self.freed.notify_one();
        }
    }

    /// Completes when it can take another task; how many.
    pub(super) async fn room(&self, most: usize) -> usize {
        loop {
            let room = most.saturating_sub(self.tasks().len());
            if room > 0 {
                return room;
            }
            self.freed.notified().await;
        }
    }
}
