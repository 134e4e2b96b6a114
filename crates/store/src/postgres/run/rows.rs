//! Runs as rows.

use super::sql;
use crate::codec::{Decoder, Unreadable, run as bytes};
use crate::postgres::db_error::DbError;
use crate::postgres::text;
use crate::postgres::value::{Param, Reader, Statement};
use crate::{Message, Run, RunId};
use redrive_policy::Moment;
use uuid::Uuid;

pub(in crate::postgres) type Row = tokio_postgres::Row;

/// The statement that stores runs that are new.
pub(in crate::postgres) fn insert(runs: &[&Run]) -> Statement<'static> {
    Statement::new(&sql::INSERT, params(runs))
}

/// The statement that writes runs as they are now.
pub(super) fn update(runs: &[&Run]) -> Statement<'static> {
    Statement::new(&sql::UPDATE, params(runs))
}

fn params(runs: &[&Run]) -> Vec<Param<'static>> {
    fn each<T>(runs: &[&Run], column: impl Fn(&Run) -> T) -> Vec<T> {
        runs.iter().map(|run| column(run)).collect()
    }
    vec![
        Box::new(each(runs, |run| uuid(run.id))),
        Box::new(each(runs, |run| text::stored(&run.program).into_owned())),
        Box::new(each(runs, |run| i64::from(run.version))),
        Box::new(each(runs, |run| i64::try_from(run.revision).unwrap_or(i64::MAX))),
        Box::new(each(runs, |run| run.timer.map(Moment::micros))),
        Box::new(each(runs, |run| run.created.micros())),
        Box::new(each(runs, |run| run.advanced.micros())),
        Box::new(each(runs, |run| run.end.as_ref().map(|end| end.at.micros()))),
        Box::new(each(runs, |run| run.end.as_ref().map(|end| end.succeeded))),
        Box::new(each(runs, |run| run.parent.map(|parent| uuid(parent.run)))),
        Box::new(each(runs, |run| run.key.as_ref().map(|key| key.as_bytes().to_vec()))),
        Box::new(each(runs, |run| {
            let mut out = Vec::new();
            bytes::encode(run, &mut out);
            out
        })),
        Box::new(each(runs, |run| run.interest.is_some())),
    ]
}

pub(super) fn uuid(id: RunId) -> Uuid {
    Uuid::from_bytes(id.to_bytes())
}

pub(super) fn uuids<'r>(ids: impl IntoIterator<Item = &'r RunId>) -> Vec<Uuid> {
    ids.into_iter().map(|id| uuid(*id)).collect()
}

/// The number of a message as the database has it.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads the id of a run.
pub(super) fn id(row: &mut Reader<'_>) -> Result<RunId, DbError> {
    Ok(RunId::from_bytes(row.next::<Uuid>()?.into_bytes()))
}

/// Reads a run: its id and its bytes.
pub(super) fn run(row: &mut Reader<'_>) -> Result<Run, DbError> {
    let (id, run) = stored(row)?;
    run.map_err(|why| flaw(id, &why))
}

/// Reads a run: its id, and the run, or what is wrong with its bytes.
pub(super) fn stored(row: &mut Reader<'_>) -> Result<(RunId, Result<Run, Unreadable>), DbError> {
    let (id, stored): (RunId, &[u8]) = (id(row)?, row.next()?);
    Ok((id, whole(stored, |from| bytes::decode(id, from))))
}

/// Reads a message to a run: its number and its bytes; or what is wrong with it.
pub(super) fn message(row: &mut Reader<'_>) -> Result<Result<Message, Unreadable>, DbError> {
    let (number, stored): (i64, &[u8]) = (row.next()?, row.next()?);
    let number = u64::try_from(number).unwrap_or(0);
    Ok(whole(stored, |from| bytes::decode_message(number, from)))
}

fn whole<T>(stored: &[u8], decode: impl FnOnce(&mut Decoder<'_>) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
    let mut from = Decoder::new(stored);
    let read = decode(&mut from)?;
    if from.is_empty() { Ok(read) } else { Err(Unreadable::Malformed("it goes on behind its end")) }
}

pub(super) fn flaw(id: RunId, why: &Unreadable) -> DbError {
    match why {
        Unreadable::Newer { .. } => DbError::Newer(format!("the run {id} was written by a newer version: {why}")),
        Unreadable::Malformed(_) => DbError::Broken(format!("the run {id}, or a message to it, cannot be read: {why}")),
    }
}
