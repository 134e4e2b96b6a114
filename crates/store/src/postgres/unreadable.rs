//! Jobs that cannot be read: set aside, so that they hold up no other, and listed for people.

use super::aside::{self, Aside};
use super::db_error::DbError;
use super::options::Options;
use super::pool::Session;
use super::value::{Reader, Statement};
use super::{sql, text};
use crate::{JobId, StoreError};
use redrive_policy::Moment;
use std::fmt;
use std::sync::OnceLock;

/// The row leaves its table, and with it every index that claims and sweeps go by. Its spec stays, so that the id and
/// the idempotency key are not used again.
const SET_ASIDE: &str = "WITH u AS (SELECT * FROM unnest($1::uuid[], $2::text[]) AS u (id, reason)), \
     waiting AS (DELETE FROM live j USING u WHERE j.id = u.id RETURNING j.id, j.queue, u.reason, to_jsonb(j) AS row), \
     over AS (DELETE FROM ended j USING u WHERE j.id = u.id RETURNING j.id, j.queue, u.reason, to_jsonb(j) AS row) \
     INSERT INTO unreadable (id, queue, ended, reason, row) \
     SELECT id, queue, false, reason, row FROM waiting UNION ALL SELECT id, queue, true, reason, row FROM over \
     RETURNING id";
const LIST: &str = "SELECT u.id, coalesce(q.name, ''), (extract(epoch FROM u.since) * 1000000)::bigint, u.reason, \
       u.row::text FROM unreadable u LEFT JOIN queues q ON q.id = u.queue ORDER BY u.id LIMIT $1";
pub(super) const COUNT: &str = "SELECT count(*) FROM unreadable";
const RESTORE: &str = "WITH back AS (\
       DELETE FROM unreadable WHERE $1::uuid[] IS NULL OR id = ANY ($1) RETURNING id, ended, row), \
     waiting AS (INSERT INTO live SELECT j.* FROM back, jsonb_populate_record(NULL::live, back.row) j \
       WHERE NOT back.ended), \
     over AS (INSERT INTO ended SELECT j.* FROM back, jsonb_populate_record(NULL::ended, back.row) j \
       WHERE back.ended) \
     SELECT id FROM back ORDER BY id";
const DELETE: &str = "WITH gone AS (DELETE FROM unreadable WHERE $1::uuid[] IS NULL OR id = ANY ($1) RETURNING id), \
     said AS (DELETE FROM specs USING gone WHERE specs.id = gone.id) \
     SELECT id FROM gone ORDER BY id";

/// The listener for jobs that were set aside, called once that is committed.
#[derive(Default)]
pub(super) struct Watcher(OnceLock<Box<Tell>>);

/// Takes the id of a job and the reason.
type Tell = dyn Fn(JobId, &str) + Send + Sync;

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("is_set", &self.0.get().is_some()).finish()
    }
}

impl Watcher {
    pub(super) fn set(&self, tell: impl Fn(JobId, &str) + Send + Sync + 'static) {
        // The first one stays: a store is wired up once.
        let _ = self.0.set(Box::new(tell));
    }

    pub(super) fn tell(&self, aside: &[(JobId, String)]) {
        if let Some(tell) = self.0.get() {
            aside.iter().for_each(|(id, why)| tell(*id, why));
        }
    }
}

/// Sets jobs aside in the transaction that is open, each with the reason. They are reported once it is committed.
pub(super) async fn set_aside(session: &mut Session, damaged: &[(JobId, String)]) -> Result<(), DbError> {
    let rows = session.query(&Statement::new(SET_ASIDE, aside::params(damaged))).await?;
    for row in &rows {
        let id = Reader::new(row).id()?;
        session.aside.extend(damaged.iter().find(|(other, _)| *other == id).cloned());
    }
    Ok(())
}

/// How many jobs are set aside.
pub(super) async fn count(session: &mut Session) -> Result<usize, DbError> {
    aside::numbers(session, COUNT).await.map(|[count]| count)
}

/// The jobs of a store that cannot be read. Servers may run meanwhile.
#[derive(Debug)]
pub struct UnreadableJobs(Aside);

/// What cannot be read in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableList {
    /// How many jobs were set aside.
    pub total: usize,
    /// How many jobs have rows of a newer version than this program reads. They are left to nodes that can read them.
    pub newer: usize,
    /// Those that were set aside, oldest job first, as many as were asked for.
    pub jobs: Vec<UnreadableJob>,
}

/// A job that was set aside because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableJob {
    /// Its id.
    pub id: JobId,
    /// Its queue; empty where that is not there any more.
    pub queue: String,
    /// When it was set aside, by the database's clock.
    pub since: Moment,
    /// What is wrong with it.
    pub reason: String,
    /// Its row, as JSON text.
    pub row: String,
}

impl UnreadableJobs {
    /// Connects.
    ///
    /// # Errors
    /// The database cannot be reached, or holds no store of this version.
    pub async fn open(options: Options) -> Result<Self, StoreError> {
        Aside::open(options, "unreadable", "store of this version").await.map(Self)
    }

    /// What cannot be read, with at most `most` of what was set aside.
    ///
    /// # Errors
    /// What the database says.
    pub async fn list(&self, most: usize) -> Result<UnreadableList, StoreError> {
        let list = async {
            let mut session = self.0.session().await?;
            let total = count(&mut session).await?;
            let [newer] = aside::numbers(&mut session, &sql::COUNT_NEWER).await?;
            let jobs = aside::rows(&mut session, LIST, most, |row| {
                Ok(UnreadableJob {
                    id: row.id()?,
                    queue: text::read(row.next()?).into_owned(),
                    since: Moment::from_micros(row.next()?),
                    reason: text::read(row.next()?).into_owned(),
                    row: row.next()?,
                })
            });
            Ok::<_, DbError>(UnreadableList { total, newer, jobs: jobs.await? })
        };
        Ok(list.await?)
    }

    /// Puts jobs back as they were, these or all, for servers to read again. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn restore(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        self.0.change(RESTORE, ids).await
    }

    /// Deletes jobs that were set aside: these, or all. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn delete(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        self.0.change(DELETE, ids).await
    }
}
