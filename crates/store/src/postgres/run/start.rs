//! New runs, signals to runs, and the end of runs that ended long ago.

use super::messages::Messages;
use super::rows::{self, insert, uuid, uuids};
use super::sql;
use crate::postgres::core::Core;
use crate::postgres::db_error::DbError;
use crate::postgres::value::{Param, Reader, Statement, limit};
use crate::run::{INBOX_MESSAGES, rules};
use crate::{MessageBody, NewRun, Run, RunId, RunRefusal, Signal, StartRefusal};
use redrive_policy::{Moment, Span};
use std::collections::{HashMap, HashSet};

/// How often a call is repeated because another transaction took one of its ids or keys meanwhile.
pub(super) const LOOKS: usize = 16;

pub(in crate::postgres) async fn start(
    core: &Core,
    new: &[NewRun],
    now: Moment,
) -> Result<Result<Vec<Run>, StartRefusal>, DbError> {
    if new.is_empty() {
        return Ok(Ok(Vec::new()));
    }
    for _ in 0..LOOKS {
        match core.repeat(|| started(core, new, now)).await {
            Err(DbError::Taken) => {}
            answered => return answered,
        }
    }
    Err(taken())
}

pub(super) fn taken() -> DbError {
    DbError::Refused(format!("ids or keys of this call were taken by others {LOOKS} times in a row"))
}

async fn started(core: &Core, new: &[NewRun], now: Moment) -> Result<Result<Vec<Run>, StartRefusal>, DbError> {
    let mut session = core.session().await?;
    let keys: Vec<&[u8]> = new.iter().filter_map(|run| run.key.as_deref().map(str::as_bytes)).collect();
    let ids = uuids(new.iter().map(|run| &run.id));
    let rows = session.query(&Statement::new(&sql::LOOK_UP, vec![Box::new(ids), Box::new(keys)])).await?;
    let (mut ids, mut keys) = (HashSet::new(), HashMap::new());
    for row in &rows {
        let mut row = Reader::new(row);
        let id = rows::id(&mut row)?;
        ids.insert(id);
        if let Some(key) = row.next::<Option<&[u8]>>()? {
            keys.insert(key.to_vec(), id);
        }
    }
    for (index, run) in new.iter().enumerate() {
        if !ids.insert(run.id) {
            return Ok(Err(StartRefusal::IdTaken(index)));
        }
        let Some(key) = &run.key else { continue };
        if let Some(holder) = keys.insert(key.as_bytes().to_vec(), run.id) {
            return Ok(Err(StartRefusal::KeyTaken(index, holder)));
        }
    }
    let started: Vec<Run> = new.iter().map(|new| rules::created(new, now)).collect();
    session.write(&insert(&started.iter().collect::<Vec<_>>())).await?;
    core.notifier.runs();
    Ok(Ok(started))
}

pub(in crate::postgres) async fn signal(
    core: &Core,
    id: RunId,
    signal: &Signal,
    now: Moment,
) -> Result<Result<Run, RunRefusal>, DbError> {
    let mut session = core.session().await?;
    let params: Vec<Param<'_>> = vec![Box::new(uuid(id)), Box::new(limit(INBOX_MESSAGES))];
    let rows = session.query(&Statement::new(&sql::SIGNALLED, params)).await?;
    let Some(row) = rows.first() else { return Ok(Err(RunRefusal::NotFound)) };
    let mut row = Reader::new(row);
    let run = rows::run(&mut row)?;
    if row.next::<i64>()? >= limit(INBOX_MESSAGES) {
        return Ok(Err(RunRefusal::InboxFull(INBOX_MESSAGES)));
    }
    let mut messages = Messages::default();
    messages.push(id, now, MessageBody::Signal(signal.clone()));
    if let Some(statement) = messages.statement() {
        session.write(&statement).await?;
    }
    core.tell_of(&messages);
    Ok(Ok(run))
}

pub(in crate::postgres) async fn prune(core: &Core, age: Span, most: usize, now: Moment) -> Result<usize, DbError> {
    let before = now.micros().saturating_sub(Moment::ORIGIN.after(age).micros());
    let params: Vec<Param<'_>> = vec![Box::new(before), Box::new(limit(most))];
    let rows = core.session().await?.write(&Statement::new(&sql::PRUNE, params)).await?;
    let count: Option<i64> = rows.first().map(|row| Reader::new(row).next()).transpose()?;
    Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
}
