//! The inbox: jobs that applications have enqueued in their own transactions.
//!
//! An entry is deleted in the transaction that stores its job, so that a node that dies in between has done
//! neither.

use super::super::catalogue::StoredPolicy;
use super::super::core::{BEGIN, Core};
use super::super::db_error::DbError;
use super::super::pool::Session;
use super::super::stored_row::uuids;
use super::super::unique::{self, Holders};
use super::super::value::{Reader, Statement, limit};
use super::super::{aside, queues, write};
use super::enqueue::LOOK_UP;
use super::unique::NewJobs;
use crate::rules;
use crate::{Decoder, Drained, EventKind, InboxEntry, JobId, NewJob};
use redrive_policy::Moment;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use uuid::Uuid;

/// How often entries are read again because another transaction took one of their keys meanwhile.
const LOOKS: usize = 16;

/// The next entries, at most $1, or only the one that $2 names.
const TAKE: &str = "SELECT id, at_us, document::text FROM inbox \
     WHERE refused_us IS NULL AND ($2::uuid IS NULL OR id = $2) ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED";
const NAMES: &str = "SELECT id FROM inbox WHERE refused_us IS NULL ORDER BY id LIMIT $1";
const FORGET: &str = "DELETE FROM inbox WHERE id = ANY ($1::uuid[])";
const SET_ASIDE: &str = "UPDATE inbox i SET refused_us = $3, reason = u.reason \
     FROM unnest($1::uuid[], $2::text[]) AS u (id, reason) WHERE i.id = u.id";

/// Makes jobs of the next entries.
pub(in crate::postgres) async fn drain_inbox(
    core: &Core,
    open: &Decoder<'_>,
    most: usize,
    now: Moment,
) -> Result<Drained, DbError> {
    match again(core, open, most, None, now).await {
        // One of them does not fit into the database, whichever it is. It must not hold up the others.
        Err(DbError::Broken(_)) => one_by_one(core, open, most, now).await,
        drained => drained,
    }
}

async fn one_by_one(core: &Core, open: &Decoder<'_>, most: usize, now: Moment) -> Result<Drained, DbError> {
    let rows = core.session().await?.query(&Statement::new(NAMES, vec![Box::new(limit(most))])).await?;
    let mut all = Drained::default();
    for row in &rows {
        let id = Reader::new(row).id()?;
        match again(core, open, 1, Some(id), now).await {
            Ok(Drained { jobs, known, replaced, refused }) => {
                all.jobs.extend(jobs);
                all.replaced.extend(replaced);
                all.known += known;
                all.refused.extend(refused);
            }
            Err(DbError::Broken(why)) => {
                let refused = vec![(id, why)];
                core.session().await?.write(&set_aside(&refused, now)).await?;
                all.refused.extend(refused);
            }
            Err(db_error) => return Err(db_error),
        }
    }
    Ok(all)
}

async fn again(
    core: &Core,
    open: &Decoder<'_>,
    most: usize,
    only: Option<JobId>,
    now: Moment,
) -> Result<Drained, DbError> {
    for _ in 0..LOOKS {
        match core.repeat(|| taken(core, open, most, only, now)).await {
            Err(DbError::Taken) => {}
            drained => return drained,
        }
    }
    Err(DbError::Refused(format!("keys of jobs in the inbox were taken by others {LOOKS} times in a row")))
}

async fn taken(
    core: &Core,
    open: &Decoder<'_>,
    most: usize,
    only: Option<JobId>,
    now: Moment,
) -> Result<Drained, DbError> {
    let mut session = core.session().await?;
    let outcome = transferred(core, &mut session, open, most, only, now).await;
    if outcome.is_err() {
        // The entries must be unlocked immediately: the next read skips those that are locked. Where
        // this fails, the connection is closed.
        let _ = session.roll_back().await;
    }
    outcome
}

async fn transferred(
    core: &Core,
    session: &mut Session,
    open: &Decoder<'_>,
    most: usize,
    only: Option<JobId>,
    now: Moment,
) -> Result<Drained, DbError> {
    let only = only.map(|id| Uuid::from_bytes(id.to_bytes()));
    let rows = session.begin(BEGIN, &Statement::new(TAKE, vec![Box::new(limit(most)), Box::new(only)])).await?;
    if rows.is_empty() {
        session.roll_back().await?;
        return Ok(Drained::default());
    }
    let mut drained = Drained::default();
    let mut opened = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut row = Reader::new(row);
        let id = row.id()?;
        let entry = InboxEntry { id, at: Moment::from_micros(row.next()?), text: row.next()? };
        match made(open, &entry) {
            Ok(new) => opened.push(new),
            Err(reason) => drained.refused.push((id, reason)),
        }
    }
    let (created, mut forgotten) = sorted(session, &opened, &mut drained).await?;
    // On another connection: numbers of policies are cached, and have to be stored whatever becomes of this
    // transaction.
    let policies = write::policies(&mut core.session().await?, &core.catalogue, &created).await?;
    if created.iter().any(|new| new.unique.is_some()) {
        let new: Vec<_> = created.into_iter().zip(policies).collect();
        return store_unique(core, session, &new, &mut forgotten, drained, now).await;
    }
    drained.jobs = created.iter().map(|new| rules::created(new, now)).collect();
    let (queues, numbers) = queues::of(session, &created, now).await?;
    let keep = write::enqueued(&created, &drained.jobs, policies, queues, core.sources.next(created.len()));
    let forget = Statement::new(FORGET, vec![Box::new(uuids(&forgotten))]);
    let mut statements = vec![keep, forget, set_aside(&drained.refused, now)];
    statements.extend(core.messages_of_jobs(EventKind::Enqueued, drained.jobs.iter()).statement());
    session.commit(&statements).await?;
    drop(statements);
    numbers.iter().for_each(|(number, name)| core.catalogue.note_queue(*number, name));
    core.tell(drained.jobs.iter());
    Ok(drained)
}

/// Stores jobs of which some must be unique. A duplicate is set aside, unless its policy says otherwise: the
/// application that enqueued it has its answer already, and this is the way to learn of it.
async fn store_unique(
    core: &Core,
    session: &mut Session,
    created: &[(&NewJob, StoredPolicy)],
    forgotten: &mut Vec<JobId>,
    mut drained: Drained,
    now: Moment,
) -> Result<Drained, DbError> {
    let uniques = || created.iter().filter_map(|(new, _)| new.unique.as_deref());
    session.query(&unique::lock(uniques())).await?;
    let mut jobs = NewJobs::begin(Holders::read(session, uniques(), now).await?, now);
    for (new, policy) in created {
        match jobs.admit(new, policy) {
            Ok(ignored) => drained.known += usize::from(ignored.is_some()),
            Err(duplicate) => {
                forgotten.retain(|id| *id != new.id);
                drained.refused.push((new.id, format!("the job is a duplicate: {duplicate}")));
            }
        }
    }
    let forget = Statement::new(FORGET, vec![Box::new(uuids(&*forgotten))]);
    let aside = drained.refused.clone();
    let locked = jobs.lock_replaced(core, session).await?;
    for (job, replaced) in jobs.store(core, session, locked, vec![forget, set_aside(&aside, now)]).await? {
        drained.jobs.push(job);
        drained.replaced.extend(replaced);
    }
    Ok(drained)
}

/// Which jobs are new, and which entries can be deleted.
async fn sorted<'o>(
    session: &mut Session,
    opened: &'o [NewJob],
    drained: &mut Drained,
) -> Result<(Vec<&'o NewJob>, Vec<JobId>), DbError> {
    let keys: Vec<&[u8]> = opened.iter().filter_map(key).collect();
    let ids = uuids(opened.iter().map(|new| &new.id));
    let rows = session.query(&Statement::new(LOOK_UP, vec![Box::new(ids), Box::new(keys)])).await?;
    let (mut stored_ids, mut stored_keys) = (HashSet::new(), HashSet::new());
    for row in &rows {
        let mut row = Reader::new(row);
        stored_ids.insert(row.id()?);
        stored_keys.extend(row.next::<Option<&[u8]>>()?.map(<[u8]>::to_vec));
    }
    let (mut created, mut forgotten) = (Vec::with_capacity(opened.len()), Vec::with_capacity(opened.len()));
    for new in opened {
        if key(new).is_some_and(|key| !stored_keys.insert(key.to_vec())) {
            drained.known += 1;
        } else if stored_ids.contains(&new.id) {
            drained.refused.push((new.id, "a job with this id is stored already; ids are used once".to_owned()));
            continue;
        } else {
            created.push(new);
        }
        forgotten.push(new.id);
    }
    Ok((created, forgotten))
}

/// The job of an entry, under the id that the application was given. Whatever goes wrong with one entry is
/// no reason to leave the others unread.
fn made(open: &Decoder<'_>, entry: &InboxEntry<'_>) -> Result<NewJob, String> {
    // The function makes no others, but a role that may write to the table can.
    entry.id.to_string().parse::<JobId>()?;
    let opened = catch_unwind(AssertUnwindSafe(|| open(entry)));
    let opened = opened.unwrap_or_else(|_| Err("the server panicked while it read this; this is a bug".to_owned()));
    opened.map(|new| NewJob { id: entry.id, ..new })
}

fn key(new: &NewJob) -> Option<&[u8]> {
    new.idempotency_key.as_deref().map(str::as_bytes)
}

fn set_aside(refused: &[(JobId, String)], now: Moment) -> Statement<'_> {
    let mut params = aside::params(refused.iter().map(|(id, why)| (id, why)));
    params.push(Box::new(now.micros()));
    Statement::new(SET_ASIDE, params)
}
