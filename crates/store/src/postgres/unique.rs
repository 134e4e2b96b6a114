//! Jobs that must be unique: looking for their keys.
//!
//! Whoever stores or redrives such a job holds the lock of its key from before it looks until it has committed, so that
//! of any number of callers on any number of nodes one is first, and the others find its job. Keys share so many locks
//! as PostgreSQL has room for in each transaction by default. They are taken in order, and before any row is locked.
//!
//! Rows of `unique_jobs` do not follow the states of their jobs, which change often. Where a job is, and so its state,
//! is read in the statement that looks for the key. Jobs that are found to have ended are marked, so that they are not
//! looked at again.

use super::core::{Core, Locked, WAITING_FIRST, Wanted};
use super::db_error::DbError;
use super::pool::Session;
use super::read;
use super::sql::UNIQUE_HOLDERS;
use super::stored_row::uuids;
use super::value::{Param, Reader, Statement, limit};
use crate::unique::Holder;
use crate::{Job, JobId, State, Unique, UniqueKey};
use redrive_policy::Moment;
use std::collections::{BTreeSet, HashMap};

const LOCKS: i32 = 64;
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('redrive unique ' || current_schema()), number) \
     FROM unnest($1::integer[]) AS u (number)";
const ADD: &str = "INSERT INTO unique_jobs (id, key, created_us, over) \
     SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::bigint[], $4::smallint[]) \
     ON CONFLICT (id) DO UPDATE SET key = excluded.key, over = excluded.over";
const MARK: &str = "UPDATE unique_jobs j SET over = u.over FROM unnest($1::uuid[], $2::smallint[]) AS u (id, over) \
     WHERE j.id = u.id";
const FORGET: &str = "DELETE FROM unique_jobs WHERE id = ANY ($1::uuid[])";

/// How many jobs of a key are read at once.
const PAGE: usize = 1_000;

/// The statement that locks keys, in the order that prevents two callers from waiting for each other.
pub(super) fn lock<'u>(uniques: impl IntoIterator<Item = &'u Unique>) -> Statement<'static> {
    let number = |unique: &Unique| i32::from(unique.key.0[0]) % LOCKS;
    let numbers: BTreeSet<i32> = uniques.into_iter().map(number).collect();
    Statement::new(LOCK, vec![Box::new(numbers.into_iter().collect::<Vec<_>>())])
}

/// The jobs that have some keys which are locked.
#[derive(Debug, Default)]
pub(super) struct Holders {
    by_key: HashMap<UniqueKey, Vec<Holder>>,
    /// Jobs that have ended, which is not marked yet.
    ended: Vec<(JobId, State)>,
    /// Jobs that were removed.
    removed: Vec<JobId>,
}

/// A key that is looked for: jobs that were created after a time, or at that time with a higher id.
struct Asked {
    key: UniqueKey,
    since: i64,
    last: uuid::Uuid,
    /// How many jobs were found that are not marked as ended.
    open: usize,
}

impl Holders {
    /// Reads which jobs have the keys of these policies.
    pub(super) async fn read(
        session: &mut Session,
        uniques: impl IntoIterator<Item = &Unique>,
        now: Moment,
    ) -> Result<Self, DbError> {
        let asked: BTreeSet<(UniqueKey, i64)> =
            uniques.into_iter().map(|unique| (unique.key, unique.since(now))).collect();
        let begin = |(key, since)| Asked { key, since, last: uuid::Uuid::max(), open: 0 };
        let mut asked: Vec<Asked> = asked.into_iter().map(begin).collect();
        let mut holders = Self::default();
        while !asked.is_empty() {
            let params: Vec<Param<'_>> = vec![
                Box::new(asked.iter().map(|asked| asked.key.0.to_vec()).collect::<Vec<_>>()),
                Box::new(asked.iter().map(|asked| asked.since).collect::<Vec<_>>()),
                Box::new(asked.iter().map(|asked| asked.last).collect::<Vec<_>>()),
                Box::new(limit(PAGE)),
            ];
            asked.iter_mut().for_each(|asked| asked.open = 0);
            for row in &session.query(&Statement::new(&UNIQUE_HOLDERS, params)).await? {
                holders.read_row(&mut Reader::new(row), &mut asked)?;
            }
            asked.retain(|asked| asked.open == PAGE);
        }
        Ok(holders)
    }

    fn read_row(&mut self, row: &mut Reader<'_>, asked: &mut [Asked]) -> Result<(), DbError> {
        let place = usize::try_from(row.next::<i64>()? - 1).ok().and_then(|place| asked.get_mut(place));
        let asked = place.ok_or_else(|| DbError::Broken("a key was found that was not asked for".to_owned()))?;
        let (id, created): (JobId, i64) = (row.id()?, row.next()?);
        let (marked, stored): (Option<i16>, bool) = (row.next()?, row.next()?);
        let (state, due): (Option<i16>, Option<Moment>) = (row.next()?, row.moment()?);
        if marked.is_none() {
            asked.open += 1;
            (asked.since, asked.last) = (created, uuid::Uuid::from_bytes(id.to_bytes()));
        }
        self.add(asked.key, id, Moment::from_micros(created), marked, stored.then_some(state), due)
    }

    /// Takes note of a job. `found` is the state in which it was found, where it is stored.
    fn add(
        &mut self,
        key: UniqueKey,
        id: JobId,
        created: Moment,
        marked: Option<i16>,
        found: Option<Option<i16>>,
        due: Option<Moment>,
    ) -> Result<(), DbError> {
        let Some(found) = found else {
            self.removed.push(id);
            return Ok(());
        };
        let state = marked.or(found).and_then(|number| State::ALL.get(usize::try_from(number).ok()?).copied());
        let Some(state) = state else {
            return Err(DbError::Broken(format!(
                "a uniqueness key of this batch belongs to the job {id}, which was set aside because it cannot be read; \
                 `redrive store unreadable` lists it"
            )));
        };
        if marked.is_none() && state.is_terminal() {
            self.ended.push((id, state));
        }
        let holders = self.by_key.entry(key).or_default();
        if holders.iter().all(|holder| holder.id != id) {
            holders.push(Holder { created, id, state, due });
        }
        Ok(())
    }

    /// Those that make a job with this policy a duplicate, in the order of their creation, then by id.
    pub(super) fn of(&self, unique: &Unique, now: Moment) -> Vec<Holder> {
        let all = self.by_key.get(&unique.key).into_iter().flatten();
        let mut counting: Vec<Holder> =
            all.filter(|holder| unique.counts(holder.state, holder.created, now)).copied().collect();
        counting.sort_by_key(|holder| (holder.created, holder.id));
        counting
    }

    /// The statements that make the next look cheaper.
    pub(super) fn tidied(&self) -> Vec<Statement<'static>> {
        let mut statements = Vec::new();
        if !self.ended.is_empty() {
            let ids = uuids(self.ended.iter().map(|(id, _)| id));
            let states: Vec<i16> = self.ended.iter().map(|(_, state)| *state as i16).collect();
            statements.push(Statement::new(MARK, vec![Box::new(ids), Box::new(states)]));
        }
        if !self.removed.is_empty() {
            statements.push(forgotten(&self.removed));
        }
        statements
    }
}

/// The statement that stores which keys jobs have, or that a job has another; none where none of them has one.
pub(super) fn stored<'j>(jobs: impl IntoIterator<Item = &'j Job>) -> Option<Statement<'static>> {
    let (mut ids, mut keys, mut created, mut over) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        let Some(unique) = &job.unique else { continue };
        ids.push(uuid::Uuid::from_bytes(job.id.to_bytes()));
        keys.push(unique.key.0.to_vec());
        created.push(job.times.created.micros());
        over.push(job.state.is_terminal().then_some(job.state as i16));
    }
    if ids.is_empty() {
        return None;
    }
    Some(Statement::new(ADD, vec![Box::new(ids), Box::new(keys), Box::new(created), Box::new(over)]))
}

/// The statement that forgets the keys of jobs.
pub(super) fn forgotten(ids: &[JobId]) -> Statement<'static> {
    Statement::new(FORGET, vec![Box::new(uuids(ids))])
}

/// Locks the jobs that are to be replaced. What has happened to one of them since they were looked at makes the
/// transaction repeat.
pub(super) async fn lock_replaced(core: &Core, session: &mut Session, ids: &[JobId]) -> Result<Locked, DbError> {
    if ids.is_empty() {
        return Ok(Locked::default());
    }
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let locked = core.lock_more(session, &sorted, WAITING_FIRST, Wanted::Unended).await?;
    if let Some((id, why)) = locked.newer.iter().next() {
        return Err(read::newer(*id, why));
    }
    let waits = |id: &JobId| locked.jobs.get(id).is_some_and(|stored| !stored.job.state.is_terminal());
    if sorted.iter().all(waits) { Ok(locked) } else { Err(DbError::Collided("a job to replace has ended".to_owned())) }
}
