//! Jobs and runs that cannot be read: set aside, so that they hold up no other, and listed for people.

use super::aside::{self, Aside};
use super::block::{Block, Blocks};
use super::db_error::DbError;
use super::options::Options;
use super::pool::Session;
use super::read::Damaged;
use super::stored_row::uuids;
use super::value::{Param, Reader, Statement, Tid};
use super::{sql, text};
use crate::{JobId, StoreError};
use redrive_policy::Moment;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use tokio_postgres::Row;
use uuid::Uuid;

/// Jobs that wait. The row leaves its table, and with it every index that claims and sweeps go by. Its spec stays, so
/// that the id and the idempotency key are not used again.
const SET_ASIDE: &str = "WITH u AS (SELECT * FROM unnest($1::uuid[], $2::text[]) AS u (id, reason)), \
     waiting AS (DELETE FROM live j USING u WHERE j.id = u.id \
       RETURNING j.id, j.queue, j.state AS was, u.reason, to_jsonb(j) AS row), \
     counted AS (INSERT INTO counts (queue, was, jobs) \
       SELECT queue, was, count(*) FROM waiting GROUP BY queue, was) \
     INSERT INTO unreadable (id, queue, origin, reason, row) SELECT id, queue, 'live', reason, row FROM waiting \
     RETURNING id";
const LIST: &str = "SELECT u.id, coalesce(q.name, ''), (extract(epoch FROM u.since) * 1000000)::bigint, u.reason, \
       u.row::text, u.origin = 'run_states' FROM unreadable u LEFT JOIN queue_names q ON q.id = u.queue ORDER BY u.id LIMIT $1";
pub(super) const COUNT: &str = "SELECT count(*) FROM unreadable";
/// A job that was active or has ended comes back into a row of its own. A run has never left its table.
const RESTORE: &str = "WITH back AS (\
       DELETE FROM unreadable WHERE $1::uuid[] IS NULL OR id = ANY ($1) RETURNING id, queue, origin, row), \
     waiting AS (INSERT INTO live SELECT j.* FROM back, jsonb_populate_record(NULL::live, back.row) j \
       WHERE back.origin = 'live'), \
     active AS (INSERT INTO claims (source, due_us, alive_us, lease_us, expires_us, queue, priority, version, gone, ids, \
         rests, failures, lane, state, jobs) \
       SELECT j.source, j.due_us, j.alive_us, j.lease_us, j.expires_us, j.queue, j.priority, j.version, '\\x00', \
         ARRAY[j.id], ARRAY[j.rest], ARRAY[j.failures], j.lane, j.state, 1 \
       FROM back, jsonb_to_record(back.row) AS j (id uuid, source bigint, version smallint, queue integer, \
         state smallint, \
         priority integer, expires_us bigint, due_us bigint, alive_us bigint, lease_us bigint, rest bytea, \
         failures bytea, lane bytea) WHERE back.origin = 'claims'), \
     over AS (INSERT INTO ended (source, finished_us, expires_us, queue, priority, bytes, state, dead, jobs, ids, \
         rests, failures) \
       SELECT j.source, j.finished_us, j.expires_us, j.queue, j.priority, \
         octet_length(j.rest) + coalesce(octet_length(j.failures), 0), j.state, j.dead, 1, ARRAY[j.id], ARRAY[j.rest], ARRAY[j.failures] \
       FROM back, jsonb_to_record(back.row) AS j (id uuid, source bigint, finished_us bigint, expires_us bigint, \
         queue integer, priority integer, state smallint, dead boolean, rest bytea, failures bytea) \
       WHERE back.origin = 'ended'), \
     counted AS (INSERT INTO counts (queue, state, jobs) SELECT queue, \
         CASE WHEN (row ->> 'dead')::boolean THEN 8 ELSE (row ->> 'state')::smallint END, 1 FROM back \
       WHERE origin <> 'run_states') \
     SELECT id FROM back ORDER BY id";
const DELETE: &str = "WITH gone AS (DELETE FROM unreadable WHERE $1::uuid[] IS NULL OR id = ANY ($1) RETURNING id), \
     said AS (DELETE FROM specs USING gone WHERE specs.id = gone.id), \
     unique_key AS (DELETE FROM unique_jobs USING gone WHERE unique_jobs.id = gone.id), \
     runs AS (DELETE FROM run_states r USING gone WHERE r.id = gone.id), \
     told AS (DELETE FROM run_messages m USING gone WHERE m.run = gone.id) \
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
/// `blocks` are the locked claims of those that are active, and become what is left of them.
pub(super) async fn set_aside(session: &mut Session, damaged: &[Damaged], blocks: &mut Blocks) -> Result<(), DbError> {
    let (active, others): (Vec<&Damaged>, Vec<&Damaged>) = damaged.iter().partition(|one| one.claim.is_some());
    if !others.is_empty() {
        let rows = session.query(&Statement::new(SET_ASIDE, params_of(&others))).await?;
        note(session, &rows, &others)?;
        let waited = rows.iter().map(|row| Reader::new(row).id()).collect::<Result<Vec<_>, DbError>>()?;
        for one in others.iter().filter(|one| !waited.contains(&one.id)) {
            set_aside_ended(session, one).await?;
        }
    }
    if !active.is_empty() {
        let mut after: BTreeMap<i64, Block> = BTreeMap::new();
        for (no, place) in active.iter().filter_map(|one| one.claim) {
            let Some(block) = blocks.get(&no) else { continue };
            after.entry(no).or_insert_with(|| block.next()).leave(place);
        }
        let left = |block: &Block| (!block.is_empty()).then(|| block.gone.clone());
        let mut params = params_of(&active);
        params.push(Box::new(after.keys().copied().collect::<Vec<_>>()));
        params.push(Box::new(after.values().map(left).collect::<Vec<_>>()));
        params.push(Box::new(after.values().map(Block::left).collect::<Vec<_>>()));
        let rows = session.query(&Statement::new(&sql::SET_ASIDE_ACTIVE, params)).await?;
        note(session, &rows, &active)?;
        blocks.extend(after);
    }
    Ok(())
}

/// Sets one job aside that has ended: out of a row with others, which has another place then.
async fn set_aside_ended(session: &mut Session, one: &Damaged) -> Result<(), DbError> {
    let rows = session.query(&Statement::new(&sql::LOCK_ENDED, vec![Box::new(uuids([&one.id]))])).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let mut row = Reader::new(row);
    row.id()?;
    let tid: Option<Tid> = row.next()?;
    let mut params: Vec<Param<'_>> = vec![Box::new(Uuid::from_bytes(one.id.to_bytes()))];
    params.push(Box::new(aside::reason(&one.why)));
    params.push(Box::new(tid));
    let rows = session.query(&Statement::new(&sql::SET_ASIDE_ENDED, params)).await?;
    note(session, &rows, &[one])
}

fn params_of(damaged: &[&Damaged]) -> Vec<Param<'static>> {
    aside::params(damaged.iter().map(|one| (&one.id, &one.why)))
}

/// Takes note of those that were set aside.
fn note(session: &mut Session, rows: &[Row], damaged: &[&Damaged]) -> Result<(), DbError> {
    for row in rows {
        let id = Reader::new(row).id()?;
        session.aside.extend(damaged.iter().find(|one| one.id == id).map(|one| (id, one.why.clone())));
    }
    Ok(())
}

/// How many jobs and runs are set aside.
pub(super) async fn count(session: &mut Session) -> Result<usize, DbError> {
    aside::numbers(session, COUNT).await.map(|[count]| count)
}

/// The jobs and runs of a store that cannot be read. Servers may run meanwhile.
#[derive(Debug)]
pub struct UnreadableJobs(Aside);

/// What cannot be read in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableList {
    /// How many jobs and runs were set aside.
    pub total: usize,
    /// How many have rows of a newer version than this program reads. They are left to nodes that can read them.
    pub newer: usize,
    /// Those that were set aside, the oldest first, as many as were asked for.
    pub jobs: Vec<UnreadableJob>,
}

/// A job or a run that was set aside because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableJob {
    /// Its id.
    pub id: JobId,
    /// Whether it is a run.
    pub is_run: bool,
    /// The queue of a job; empty where that is not there any more.
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
                let (id, queue) = (row.id()?, text::read(row.next()?).into_owned());
                let (since, reason) = (Moment::from_micros(row.next()?), text::read(row.next()?).into_owned());
                Ok(UnreadableJob { id, queue, since, reason, row: row.next()?, is_run: row.next()? })
            });
            Ok::<_, DbError>(UnreadableList { total, newer, jobs: jobs.await? })
        };
        Ok(list.await?)
    }

    /// Puts jobs and runs back as they were, these or all, for servers to read again. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn restore(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        self.0.change(RESTORE, ids).await
    }

    /// Deletes jobs and runs that were set aside: these, or all. Returns which there were.
    ///
    /// # Errors
    /// What the database says.
    pub async fn delete(&self, ids: Option<&[JobId]>) -> Result<Vec<JobId>, StoreError> {
        self.0.change(DELETE, ids).await
    }
}
