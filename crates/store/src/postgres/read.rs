//! Reading jobs whole: the row and the spec.

use super::block::{Block, Blocks};
use super::catalogue::{Catalogue, parsed};
use super::db_error::DbError;
use super::pool::Session;
use super::stored_row::{Place, StoredRow, uuids};
use super::value::{Reader, Statement, Tid};
use super::{row, sql, text};
use crate::codec::{self, Decoder, Unreadable};
use crate::{JobId, Spec};
use redrive_policy::Policy;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// What rows hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The jobs, in the order of the rows.
    pub(super) jobs: Vec<StoredRow>,
    /// The claims of those that are active.
    pub(super) blocks: Blocks,
    /// Jobs that cannot be read.
    pub(super) damaged: Vec<Damaged>,
    /// Jobs that a newer version of this program wrote, each with which version that was.
    pub(super) newer: Vec<(JobId, String)>,
}

/// A job that cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Damaged {
    pub(super) id: JobId,
    /// Its claim and its place there, where it is active.
    pub(super) claim: Option<(i64, usize)>,
    pub(super) why: String,
}

impl Found {
    /// Adds what other rows hold.
    pub(super) fn extend(&mut self, other: Self) {
        self.jobs.extend(other.jobs);
        self.blocks.extend(other.blocks);
        self.damaged.extend(other.damaged);
        self.newer.extend(other.newer);
    }

    /// The jobs, where all of them can be read.
    pub(super) fn whole(self) -> Result<Vec<StoredRow>, DbError> {
        if let Some(Damaged { id, why, .. }) = self.damaged.first() {
            return Err(DbError::Broken(format!("the job {id} cannot be read: {why}")));
        }
        self.newer.first().map_or(Ok(()), |(id, why)| Err(newer(*id, why)))?;
        Ok(self.jobs)
    }
}

/// A job that only a newer node can work on.
pub(super) fn newer(id: JobId, why: &str) -> DbError {
    DbError::Newer(format!("the job {id} was written by a newer version of redrive: {why}, or ask a newer node"))
}

/// Why a row is no job.
enum Flaw {
    Damaged(String),
    Newer(String),
    /// The table itself is not what this program needs.
    Table(DbError),
}

impl From<DbError> for Flaw {
    fn from(db_error: DbError) -> Self {
        Self::Table(db_error)
    }
}

impl From<Unreadable> for Flaw {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Newer { .. } => Self::Newer(unreadable.to_string()),
            Unreadable::Malformed(why) => Self::Damaged(why.to_owned()),
        }
    }
}

/// Reads the jobs of rows with all that belongs to them. A row that cannot be read does not affect others.
pub(super) async fn jobs(session: &mut Session, catalogue: &Catalogue, rows: &[Row]) -> Result<Found, DbError> {
    let column = |error: tokio_postgres::Error| DbError::Broken(error.to_string());
    let (mut queues, mut policies) = (Vec::new(), Vec::new());
    for row in rows {
        queues.push(row.try_get(sql::QUEUE).map_err(column)?);
        policies.extend(row.try_get::<_, Option<i32>>(sql::POLICY).map_err(column)?);
    }
    // Rows that are alike mostly stand together.
    queues.dedup();
    policies.dedup();
    catalogue.learn_queues(session, &queues).await?;
    let unreadable = catalogue.learn_policies(session, &policies).await?;
    let mut common = Common { catalogue, unreadable, kind: None, queue: None, policy: None };
    let mut found = Found { jobs: Vec::with_capacity(rows.len()), ..Found::default() };
    for row in rows {
        let mut row = Reader::new(row);
        let is_active = row.len() == sql::ACTIVE;
        let id = row.id()?;
        let read = job(id, &mut row, &mut common);
        if let Err(Flaw::Table(db_error)) = read {
            return Err(db_error);
        }
        let (mut read, mut claim) = (read, None);
        if is_active {
            row.skip_to(sql::BLOCK - 1);
            let source = row.next()?;
            let (no, version, place, block) = Block::read(&mut row, source)?;
            claim = Some((no, place));
            read = claimed(read, version, Place::Claim(no, place));
            found.blocks.insert(no, block);
        }
        match read {
            Ok(stored) => found.jobs.push(stored),
            Err(Flaw::Damaged(why)) => found.damaged.push(Damaged { id, claim, why }),
            Err(Flaw::Newer(why)) => found.newer.push((id, why)),
            Err(Flaw::Table(db_error)) => return Err(db_error),
        }
    }
    Ok(found)
}

/// A job of a claim of this version. Whoever wrote the newest job of a claim can work on all of them.
fn claimed(read: Result<StoredRow, Flaw>, version: i16, place: Place) -> Result<StoredRow, Flaw> {
    let found = u8::try_from(version).unwrap_or(u8::MAX);
    if found > codec::row::VERSION {
        return Err(Unreadable::Newer { what: "a row", found, known: codec::row::VERSION }.into());
    }
    Ok(StoredRow { place, ..read? })
}

/// Reads jobs by id, wherever they are, in the snapshot that is open.
pub(super) async fn by_id<'i>(
    session: &mut Session,
    catalogue: &Catalogue,
    ids: impl IntoIterator<Item = &'i JobId>,
    bare: bool,
) -> Result<Found, DbError> {
    let mut wanted = uuids(ids);
    let [others, active]: [&'static str; 2] =
        if bare { [&sql::READ_BARE, &sql::READ_ACTIVE_BARE] } else { [&sql::READ, &sql::READ_ACTIVE] };
    let rows = session.query(&Statement::new(others, vec![Box::new(wanted.clone())])).await?;
    let mut found = jobs(session, catalogue, &rows).await?;
    if rows.len() < wanted.len() {
        let seen: Result<HashSet<Uuid>, DbError> = rows.iter().map(|row| Reader::new(row).next()).collect();
        let seen = seen?;
        wanted.retain(|id| !seen.contains(id));
        let rows = session.query(&Statement::new(active, vec![Box::new(wanted)])).await?;
        found.extend(jobs(session, catalogue, &rows).await?);
    }
    Ok(found)
}

/// What jobs have in common, as the last of them had it: most have the same as the one before.
struct Common<'c> {
    catalogue: &'c Catalogue,
    /// Policies that cannot be read, each with the reason.
    unreadable: HashMap<i32, String>,
    kind: Option<Arc<str>>,
    queue: Option<(i32, Arc<str>)>,
    policy: Option<(i32, Arc<Policy>)>,
}

impl Common<'_> {
    fn kind(&mut self, kind: &str) -> Arc<str> {
        if self.kind.as_deref() != Some(kind) {
            self.kind = None;
        }
        Arc::clone(self.kind.get_or_insert_with(|| kind.into()))
    }

    fn queue(&mut self, number: i32) -> Result<Arc<str>, Flaw> {
        if let Some((_, name)) = self.queue.as_ref().filter(|(last, _)| *last == number) {
            return Ok(Arc::clone(name));
        }
        let name = self.catalogue.queue_name(number).ok_or_else(|| missing("queue", number))?;
        self.queue = Some((number, Arc::clone(&name)));
        Ok(name)
    }

    fn policy(&mut self, number: Option<i32>, own: Option<&[u8]>) -> Result<Arc<Policy>, Flaw> {
        let Some(number) = number else {
            let json = own.ok_or_else(|| Flaw::Damaged("it has no policy".to_owned()))?;
            return parsed(json).map(Arc::new).map_err(Flaw::Damaged);
        };
        if let Some((_, policy)) = self.policy.as_ref().filter(|(last, _)| *last == number) {
            return Ok(Arc::clone(policy));
        }
        let policy = self.catalogue.policy(number).ok_or_else(|| match self.unreadable.get(&number) {
            Some(why) => Flaw::Damaged(format!("policy {number}: {why}")),
            None => missing("policy", number),
        })?;
        self.policy = Some((number, Arc::clone(&policy)));
        Ok(policy)
    }
}

/// The columns come in the order of the list of columns, the id before them.
fn job(id: JobId, row: &mut Reader<'_>, common: &mut Common<'_>) -> Result<StoredRow, Flaw> {
    let tid: Option<Tid> = row.next()?;
    let expires = row.moment()?;
    let (queue, priority) = (row.next()?, row.next()?);
    let (rest, failures): (&[u8], Option<&[u8]>) = (row.next()?, row.next()?);
    let (kind, body): (&str, &[u8]) = (row.next()?, row.next()?);
    let (number, own): (Option<i32>, Option<&[u8]>) = (row.next()?, row.next()?);
    let (timeout, lease) = (row.span()?, row.span()?);
    let limits: Option<&[u8]> = row.next()?;
    let (revisions, source) = (row.next()?, row.next()?);
    // First, because it has the version: what a newer program wrote is not damaged.
    let decoded = row::decode(rest, failures, revisions)?;
    let spec = Spec {
        queue: common.queue(queue)?,
        priority,
        expires,
        kind: common.kind(&text::read(kind)),
        body: body.into(),
        policy: common.policy(number, own)?,
        timeout,
        lease,
        limits: limits.map(|bytes| codec::limits::decode(&mut Decoder::new(bytes)).map(Arc::new)).transpose()?,
    };
    let job = decoded.into_job(id, Arc::new(spec));
    let tid = tid.unwrap_or_default();
    let place = if job.state.is_terminal() { Place::Ended(tid) } else { Place::Live(tid) };
    Ok(StoredRow::new(job, source, place))
}

fn missing(what: &str, number: i32) -> Flaw {
    Flaw::Damaged(format!("it has the {what} {number}, which is not stored"))
}
