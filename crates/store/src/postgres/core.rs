//! What all verbs share: connections, the catalogue, and when to try again.

use super::catalogue::Catalogue;
use super::counts::Counts;
use super::db_error::DbError;
use super::lease_cache::LeaseCache;
use super::notifier::Notifier;
use super::options::Options;
use super::pool::{Pool, Session};
use super::read::Found;
use super::sql;
use super::stored_row::{StoredRow, uuids};
use super::vacuum::Vacuum;
use super::value::Statement;
use super::{read, unreadable, write};
use crate::standstill::Grace;
use crate::{Job, JobId, Refusal, Standstill, State};
use redrive_policy::{Policy, Retryable};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio_postgres::Row;

/// A transaction in which each statement sees what is committed by then.
pub(super) const BEGIN: &str = "BEGIN";
/// A transaction that sees one moment.
pub(super) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";

/// How transactions are repeated that were certainly rolled back.
static AGAIN: LazyLock<Option<Policy>> = LazyLock::new(|| {
    let policy = Policy::builder()
        .exponential(Duration::from_millis(5), 3.0)
        .max_delay(Duration::from_millis(200))
        .max_attempts(5);
    policy.build().ok()
});

#[derive(Debug)]
pub(super) struct Core {
    pub(super) pool: Arc<Pool>,
    pub(super) catalogue: Catalogue,
    pub(super) notifier: Arc<Notifier>,
    pub(super) lease_cache: LeaseCache,
    pub(super) counts: Counts,
    pub(super) vacuum: Arc<Vacuum>,
    grace: Mutex<Grace>,
}

impl Core {
    pub(super) fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            pool: Pool::new(options),
            catalogue: Catalogue::default(),
            notifier: Arc::default(),
            lease_cache: LeaseCache::default(),
            counts: Counts::default(),
            vacuum: Arc::default(),
            grace: Mutex::default(),
        })
    }

    /// The extra time of runs after a standstill of this node.
    pub(super) fn grace(&self) -> Grace {
        self.grace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn stood_still(&self, standstill: Standstill) {
        self.grace.lock().unwrap_or_else(PoisonError::into_inner).add(standstill);
    }

    pub(super) async fn session(&self) -> Result<Session, DbError> {
        self.pool.session().await
    }

    /// Runs one transaction, and repeats it where it was rolled back and may succeed when repeated.
    pub(super) async fn repeat<T, F>(&self, mut work: impl FnMut() -> F) -> Result<T, DbError>
    where
        F: Future<Output = Result<T, DbError>>,
    {
        match &*AGAIN {
            Some(policy) => work.retry(policy).when(DbError::may_repeat).await,
            None => work().await,
        }
    }

    /// The jobs of rows that the open transaction is about to change. Jobs that cannot be read are set aside in the
    /// same transaction, so that they hold up no other.
    pub(super) async fn read_locked(&self, session: &mut Session, rows: &[Row]) -> Result<Found, DbError> {
        let found = read::jobs(session, &self.catalogue, rows).await?;
        if !found.damaged.is_empty() {
            unreadable::set_aside(session, &found.damaged).await?;
        }
        Ok(found)
    }

    /// Sets aside jobs that could not be read without a lock, where that is still so.
    pub(super) async fn set_aside(&self, damaged: &[(JobId, String)]) -> Result<(), DbError> {
        if damaged.is_empty() {
            return Ok(());
        }
        let ids: Vec<JobId> = damaged.iter().map(|(id, _)| *id).collect();
        let mut session = self.session().await?;
        self.lock(&mut session, &ids, true).await?;
        session.commit(&[]).await
    }

    /// Begins a transaction that locks these jobs; those that have ended only if `wanted` says so, else they are only
    /// read. Fails where a newer version wrote one of them.
    pub(super) async fn lock_rows(
        &self,
        session: &mut Session,
        ids: &[JobId],
        wanted: bool,
    ) -> Result<HashMap<JobId, StoredRow>, DbError> {
        let (held, newer) = self.lock(session, ids, wanted).await?;
        newer.into_iter().next().map_or(Ok(held), |(id, why)| Err(read::newer(id, &why)))
    }

    /// As [`Core::lock_rows`], and returns which of the jobs a newer version wrote.
    pub(super) async fn lock(
        &self,
        session: &mut Session,
        ids: &[JobId],
        wanted: bool,
    ) -> Result<(HashMap<JobId, StoredRow>, HashMap<JobId, String>), DbError> {
        let mut rows = session.begin(BEGIN, &Statement::new(&sql::LOCK_LIVE, vec![Box::new(uuids(ids))])).await?;
        let (mut held, mut newer) = (HashMap::new(), HashMap::new());
        // A job that moves between the tables meanwhile is found in neither of the two; the next round finds it.
        for look in 0..4 {
            let found = self.read_locked(session, &rows).await?;
            held.extend(found.jobs.into_iter().map(|stored| (stored.job.id, stored)));
            newer.extend(found.newer);
            let missing = uuids(ids.iter().filter(|id| !held.contains_key(id) && !newer.contains_key(id)));
            if missing.is_empty() || look == 3 {
                break;
            }
            let statement: &'static str = match (look, wanted) {
                (1, _) => &sql::LOCK_LIVE,
                (_, true) => &sql::LOCK_ENDED,
                (_, false) => &sql::READ_ENDED,
            };
            rows = session.query(&Statement::new(statement, vec![Box::new(missing)])).await?;
        }
        Ok((held, newer))
    }

    /// Writes what has changed, and commits.
    pub(super) async fn commit(&self, session: &mut Session, jobs: &[&StoredRow]) -> Result<(), DbError> {
        let statements = write::changes(jobs, &|name| self.catalogue.queue(name))?;
        session.commit(&statements).await?;
        let changed = || jobs.iter().filter(|stored| stored.changed);
        self.vacuum.wrote(changed().count());
        self.tell(changed().map(|stored| &stored.job));
        Ok(())
    }

    /// Notifies other nodes of jobs that are available.
    pub(super) fn tell<'j>(&self, jobs: impl Iterator<Item = &'j Job>) {
        jobs.filter(|job| job.state == State::Available).for_each(|job| self.notifier.available(&job.spec.queue));
    }
}

/// The job of an id among those that are locked.
pub(super) fn held(jobs: &mut HashMap<JobId, StoredRow>, id: JobId) -> Result<&mut StoredRow, Refusal> {
    jobs.get_mut(&id).ok_or(Refusal::NotFound)
}
