//! Reading jobs whole: the row, and what was said about the job.

use super::catalogue::{Catalogue, parsed};
use super::db_error::DbError;
use super::pool::Session;
use super::stored_row::StoredRow;
use super::value::Reader;
use super::{row, sql, text};
use crate::Spec;
use redrive_policy::Policy;
use std::sync::Arc;
use tokio_postgres::Row;

/// Reads the jobs of rows, in the order of the rows, with all that belongs to them.
pub(super) async fn jobs(
    session: &mut Session,
    catalogue: &Catalogue,
    rows: &[Row],
) -> Result<Vec<StoredRow>, DbError> {
    let column = |error: tokio_postgres::Error| DbError::Broken(error.to_string());
    let (mut queues, mut policies) = (Vec::new(), Vec::new());
    for row in rows {
        queues.push(row.try_get(sql::QUEUE).map_err(column)?);
        policies.extend(row.try_get::<_, Option<i32>>(sql::POLICY).map_err(column)?);
    }
    catalogue.learn_queues(session, &queues).await?;
    catalogue.learn_policies(session, &policies).await?;
    rows.iter().map(|row| job(row, catalogue)).collect()
}

/// The columns come in the order of the list of columns.
fn job(row: &Row, catalogue: &Catalogue) -> Result<StoredRow, DbError> {
    let mut row = Reader::new(row);
    let id = row.id()?;
    let revision = row.next()?;
    let expires = row.moment()?;
    let (queue, priority) = (row.next()?, row.next()?);
    let (rest, failures): (&[u8], Option<&[u8]>) = (row.next()?, row.next()?);
    let spec = Spec {
        queue: catalogue.queue_name(queue).ok_or_else(|| missing("queue", queue))?,
        priority,
        expires,
        kind: text::read(row.next()?).into(),
        body: row.next::<&[u8]>()?.into(),
        policy: policy(row.next()?, row.next()?, catalogue)?,
        timeout: row.span()?,
        lease: row.span()?,
    };
    row::decode(id, revision, Arc::new(spec), rest, failures, row.next()?)
}

fn policy(number: Option<i32>, own: Option<&[u8]>, catalogue: &Catalogue) -> Result<Arc<Policy>, DbError> {
    match (number, own) {
        (Some(number), _) => catalogue.policy(number).ok_or_else(|| missing("policy", number)),
        (None, Some(json)) => Ok(Arc::new(parsed(json)?)),
        (None, None) => Err(DbError::Broken("found a job without a policy".to_owned())),
    }
}

fn missing(what: &str, number: i32) -> DbError {
    DbError::Broken(format!("found a job with the {what} {number}, which is not kept"))
}
