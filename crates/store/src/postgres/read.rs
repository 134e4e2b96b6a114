//! Reading jobs whole: the row and the spec.

use super::catalogue::{Catalogue, parsed};
use super::db_error::DbError;
use super::pool::Session;
use super::stored_row::StoredRow;
use super::value::Reader;
use super::{row, sql, text};
use crate::codec::Unreadable;
use crate::{JobId, Spec};
use redrive_policy::Policy;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// What rows hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The jobs, in the order of the rows.
    pub(super) jobs: Vec<StoredRow>,
    /// Jobs that cannot be read, each with the reason.
    pub(super) damaged: Vec<(JobId, String)>,
    /// Jobs that a newer version of this program wrote, each with which version that was.
    pub(super) newer: Vec<(JobId, String)>,
}

impl Found {
    /// The jobs, where all of them can be read.
    pub(super) fn whole(self) -> Result<Vec<StoredRow>, DbError> {
        if let Some((id, why)) = self.damaged.first() {
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
    catalogue.learn_queues(session, &queues).await?;
    let unreadable = catalogue.learn_policies(session, &policies).await?;
    let mut found = Found { jobs: Vec::with_capacity(rows.len()), ..Found::default() };
    for row in rows {
        let mut row = Reader::new(row);
        let id = row.id()?;
        match job(id, row, catalogue, &unreadable) {
            Ok(stored) => found.jobs.push(stored),
            Err(Flaw::Damaged(why)) => found.damaged.push((id, why)),
            Err(Flaw::Newer(why)) => found.newer.push((id, why)),
            Err(Flaw::Table(db_error)) => return Err(db_error),
        }
    }
    Ok(found)
}

/// The columns come in the order of the list of columns, the id before them.
fn job(
    id: JobId,
    mut row: Reader<'_>,
    catalogue: &Catalogue,
    unreadable: &HashMap<i32, String>,
) -> Result<StoredRow, Flaw> {
    let revision = row.next()?;
    let expires = row.moment()?;
    let (queue, priority) = (row.next()?, row.next()?);
    let (rest, failures): (&[u8], Option<&[u8]>) = (row.next()?, row.next()?);
    let (kind, body): (&str, &[u8]) = (row.next()?, row.next()?);
    let (number, own): (Option<i32>, Option<&[u8]>) = (row.next()?, row.next()?);
    let (timeout, lease) = (row.span()?, row.span()?);
    // First, because it has the version: what a newer program wrote is not damaged.
    let decoded = row::decode(rest, failures, row.next()?)?;
    let spec = Spec {
        queue: catalogue.queue_name(queue).ok_or_else(|| missing("queue", queue))?,
        priority,
        expires,
        kind: text::read(kind).into(),
        body: body.into(),
        policy: policy(number, own, catalogue, unreadable)?,
        timeout,
        lease,
    };
    Ok(decoded.into_stored(id, revision, Arc::new(spec)))
}

fn policy(
    number: Option<i32>,
    own: Option<&[u8]>,
    catalogue: &Catalogue,
    unreadable: &HashMap<i32, String>,
) -> Result<Arc<Policy>, Flaw> {
    match (number, own) {
        (Some(number), _) => catalogue.policy(number).ok_or_else(|| match unreadable.get(&number) {
            Some(why) => Flaw::Damaged(format!("policy {number}: {why}")),
            None => missing("policy", number),
        }),
        (None, Some(json)) => parsed(json).map(Arc::new).map_err(Flaw::Damaged),
        (None, None) => Err(Flaw::Damaged("it has no policy".to_owned())),
    }
}

fn missing(what: &str, number: i32) -> Flaw {
    Flaw::Damaged(format!("it has the {what} {number}, which is not stored"))
}
