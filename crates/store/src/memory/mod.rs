//! The reference model of a store: obviously right rather than fast, and gone with the process.

mod book;

use crate::standstill::Grace;
use crate::{
    Answer, Cancelled, Claim, Decider, DuplicateId, Enqueued, Filter, Held, Hold, Job, JobId, Listed, Missing, NewJob,
    Page, Queue, QueueRefusal, Redrive, Refusal, Retention, Settlement, Standstill, Store,
};
use book::Book;
use redrive_policy::{Moment, Span};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store in memory. It settles what the verbs mean: other stores are compared with it, answer by
/// answer. Every verb looks at every job, so it is meant for tests and small trials.
///
/// A clone is the same store. Answers are ready at the first poll.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    book: Arc<Mutex<Book>>,
    grace: Arc<Mutex<Grace>>,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same jobs for a server that has just started: what concerned only the one before it is forgotten.
    #[must_use]
    pub fn reopened(&self) -> Self {
        Self { book: Arc::clone(&self.book), grace: Arc::default() }
    }

    fn grace(&self) -> MutexGuard<'_, Grace> {
        self.grace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The book, also after a ruling panicked: it runs before its job is changed.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> Answer<'_, Result<Vec<Enqueued>, DuplicateId>> {
        Box::pin(async move { Ok(self.book().enqueue(&jobs, now)) })
    }

    fn claim(&self, claim: Claim, now: Moment) -> Answer<'_, Vec<Job>> {
        Box::pin(async move { Ok(self.book().claim(&claim, now)) })
    }

    fn extend(&self, holds: Vec<Hold>, span: Option<Span>, now: Moment) -> Answer<'_, Vec<Result<Job, Refusal>>> {
        Box::pin(async move {
            let mut book = self.book();
            Ok(holds.iter().map(|hold| book.extend(hold, span, now)).collect())
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> Answer<'_, Vec<Result<Job, Refusal>>> {
        Box::pin(async move {
            let mut book = self.book();
            Ok(settlements.iter().map(|settlement| book.settle(settlement, now)).collect())
        })
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> Answer<'a, Vec<Job>> {
        Box::pin(async move { Ok(self.book().reclaim(decide, limit, &self.grace(), now)) })
    }

    fn stood_still(&self, standstill: Standstill) -> Answer<'_, ()> {
        self.grace().add(standstill);
        Box::pin(std::future::ready(Ok(())))
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> Answer<'a, Vec<Job>> {
        Box::pin(async move { Ok(self.book().promote(held, limit, now)) })
    }

    fn cancel(&self, id: JobId, now: Moment) -> Answer<'_, Result<Cancelled, Refusal>> {
        Box::pin(async move { Ok(self.book().cancel(id, now)) })
    }

    fn activate(&self, id: JobId, now: Moment) -> Answer<'_, Result<Job, Refusal>> {
        Box::pin(async move { Ok(self.book().activate(id, now)) })
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> Answer<'_, Result<Job, Refusal>> {
        Box::pin(async move { Ok(self.book().redrive(id, &redrive, now)) })
    }

    fn remove(&self, id: JobId) -> Answer<'_, Result<Job, Refusal>> {
        Box::pin(async move { Ok(self.book().remove(id)) })
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> Answer<'_, usize> {
        Box::pin(async move { Ok(self.book().prune(retention, limit, now)) })
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> Answer<'_, Option<Queue>> {
        Box::pin(async move { Ok(self.book().pause(&queue, paused, missing, now)) })
    }

    fn forget_queue(&self, queue: Arc<str>) -> Answer<'_, Result<Queue, QueueRefusal>> {
        Box::pin(async move { Ok(self.book().forget_queue(&queue)) })
    }

    fn prune_queues(&self, age: Span, now: Moment) -> Answer<'_, Vec<Arc<str>>> {
        Box::pin(async move { Ok(self.book().prune_queues(age, now)) })
    }

    fn get(&self, id: JobId) -> Answer<'_, Option<Job>> {
        Box::pin(async move { Ok(self.book().get(id)) })
    }

    fn list(&self, filter: Filter, page: Page) -> Answer<'_, Listed> {
        Box::pin(async move { Ok(self.book().list(&filter, page)) })
    }

    fn queues(&self) -> Answer<'_, Vec<Queue>> {
        Box::pin(async move { Ok(self.book().queues()) })
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> Answer<'a, Option<Moment>> {
        Box::pin(async move { Ok(self.book().next_wake(held, &self.grace())) })
    }
}
