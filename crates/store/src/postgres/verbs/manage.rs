//! Changes to single jobs and queues.

use super::super::core::{BEGIN, Core, Wanted};
use super::super::db_error::DbError;
use super::super::pool::Session;
use super::super::queues;
use super::super::row::encode_revisions;
use super::super::run::Messages;
use super::super::tally::number;
use super::super::unique::{self, Holders};
use super::super::value::{Param, Reader, Statement};
use super::super::{limits, sql, text, write};
use crate::rules;
use crate::run::queue_paused;
use crate::{Duplicate, EventBody, Job, JobId, Missing, Queue, Redrive, Refusal, Transition};
use redrive_policy::{Moment, Span};
use std::sync::Arc;
use uuid::Uuid;

/// Changes one job by a rule.
pub(in crate::postgres) async fn change(
    core: &Core,
    id: JobId,
    rule: impl Fn(Job) -> Result<Transition, Refusal>,
) -> Result<Result<Transition, Refusal>, DbError> {
    let mut session = core.session().await?;
    let mut locked = core.lock_rows(&mut session, &[id], Wanted::Unended).await?;
    let answer = locked.job(id).and_then(|stored| stored.change(rule));
    let messages = core.messages(&answer);
    core.commit(&mut session, &locked.jobs.values().collect::<Vec<_>>(), &locked.blocks, &messages).await?;
    Ok(answer)
}

pub(in crate::postgres) async fn redrive(
    core: &Core,
    id: JobId,
    redrive: &Redrive,
    now: Moment,
) -> Result<Result<Transition, Refusal>, DbError> {
    let mut session = core.session().await?;
    let policy = match &redrive.spec {
        Some(spec) => Some(core.catalogue.write(&mut session, &spec.policy).await?),
        None => None,
    };
    let mut locked = core.lock_rows(&mut session, &[id], Wanted::Ended).await?;
    if let Ok(stored) = locked.job(id)
        && let Some(duplicate) = duplicate(&mut session, &stored.job, redrive, now).await?
    {
        session.roll_back().await?;
        return Ok(Err(Refusal::Duplicate(duplicate)));
    }
    let ended_in = locked.job(id).map(|stored| Arc::clone(&stored.job.spec.queue));
    let was_unique = locked.job(id).is_ok_and(|stored| stored.job.unique.is_some());
    let answer = locked.job(id).and_then(|stored| stored.change(|job| rules::redrive(job, redrive, now)));
    let (Ok(Transition { job, .. }), Ok(ended_in), Ok(stored)) = (&answer, ended_in, locked.job(id)) else {
        session.roll_back().await?;
        return Ok(answer);
    };
    let queue = queues::number(&mut session, &job.spec.queue, now).await?;
    let ended_in = number(&|name| core.catalogue.queue(name), &ended_in)?;
    let mut statements = vec![write::redriven(stored, ended_in, &|_: &str| Some(queue))?];
    if let (Some(spec), Some(policy)) = (&redrive.spec, policy) {
        let (number, own) = policy.into_columns();
        let params: Vec<Param<'_>> = vec![
            Box::new(Uuid::from_bytes(id.to_bytes())),
            Box::new(text::stored(&spec.kind)),
            Box::new(&*spec.body),
            Box::new(number),
            Box::new(own),
            Box::new(spec.timeout.map(Span::ms)),
            Box::new(spec.lease.map(Span::ms)),
            Box::new(encode_revisions(job)),
            Box::new(limits::limits(spec)),
        ];
        statements.push(Statement::new(sql::UPDATE_SPEC, params));
    }
    if job.spec.limits.is_some() {
        statements.push(queues::limited([&job.spec.queue]));
    }
    statements.extend(match unique::stored([job]) {
        Some(statement) => Some(statement),
        None => was_unique.then(|| unique::forgotten(&[id])),
    });
    let messages = core.messages(&answer);
    statements.extend(messages.statement());
    session.commit(&statements).await?;
    core.tell_of(&messages);
    core.catalogue.note_queue(queue, &job.spec.queue);
    core.tell(std::iter::once(job));
    Ok(answer)
}

/// What a locked job is a duplicate of if it is redriven. The lock of its key is taken behind that of its row, other
/// than elsewhere: it has ended, and those who have the lock of a key lock no job that has.
async fn duplicate(
    session: &mut Session,
    job: &Job,
    redrive: &Redrive,
    now: Moment,
) -> Result<Option<Duplicate>, DbError> {
    let unique = if redrive.spec.is_some() { &redrive.unique } else { &job.unique };
    let Some(unique) = unique.as_deref().filter(|_| job.state.is_terminal()) else { return Ok(None) };
    session.query(&unique::lock([unique])).await?;
    let holders = Holders::read(session, [unique], now).await?;
    Ok(unique.redriven(job.id, holders.of(unique, now)))
}

pub(in crate::postgres) async fn pause(
    core: &Core,
    name: &Arc<str>,
    paused: bool,
    missing: Missing,
    now: Moment,
) -> Result<Option<Queue>, DbError> {
    let mut session = core.session().await?;
    let mut messages = Messages::default();
    let mut changes = false;
    messages.tell(None, &EventBody::Other(queue_paused(name, paused)), now, &core.listeners.all());
    let messages = messages.statement();
    if messages.is_some() {
        // What it was before decides whether there is anything to tell.
        let was = session.begin(BEGIN, &Statement::new(queues::WAS_PAUSED, vec![Box::new(text::stored(name))])).await?;
        let was: Option<bool> = was.first().map(|row| Reader::new(row).next()).transpose()?;
        changes = was.unwrap_or(false) != paused;
    }
    let mut params: Vec<Param<'_>> = vec![Box::new(text::stored(name)), Box::new(paused)];
    let sql = match missing {
        Missing::Refuse => queues::PAUSE,
        Missing::Create => {
            params.push(Box::new(now.micros()));
            queues::PAUSE_OR_CREATE
        }
    };
    let statement = Statement::new(sql, params);
    let found = match messages {
        None => session.write(&statement).await?,
        Some(messages) => {
            let found = session.query(&statement).await?;
            // A queue that is not there is neither paused nor told of.
            let told = Some(messages).filter(|_| changes && !found.is_empty());
            session.commit(&told.into_iter().collect::<Vec<_>>()).await?;
            found
        }
    };
    if found.is_empty() {
        return Ok(None);
    }
    core.notifier.pauses();
    drop(session);
    Ok(queues::read(core, Some(name)).await?.pop())
}
