//! Reading runs.

use super::rows::{self, Row, uuids};
use super::sql;
use crate::codec::Unreadable;
use crate::postgres::aside;
use crate::postgres::core::Core;
use crate::postgres::db_error::DbError;
use crate::postgres::pool::Session;
use crate::postgres::text;
use crate::postgres::value::{Param, Reader, Statement, limit};
use crate::transfer::{PAGE_JOBS, PortableRun};
use crate::{Interest, JobId, Message, PendingRun, PendingRuns, Run, RunFilter, RunId, RunKeys};
use redrive_policy::Moment;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use uuid::Uuid;

pub(super) fn runs(rows: &[Row]) -> Result<Vec<Run>, DbError> {
    rows.iter().map(|row| rows::run(&mut Reader::new(row))).collect()
}

/// Runs, and those that cannot be read.
#[derive(Default)]
pub(super) struct Found {
    pub(super) runs: Vec<Run>,
    /// Those of a newer version, and those that are damaged, with the reason.
    newer: Vec<RunId>,
    damaged: Vec<(RunId, String)>,
}

impl Found {
    pub(super) fn of(rows: &[Row]) -> Result<Self, DbError> {
        let mut found = Self::default();
        for row in rows {
            match rows::stored(&mut Reader::new(row))? {
                (_, Ok(run)) => found.runs.push(run),
                (id, Err(Unreadable::Newer { .. })) => found.newer.push(id),
                (id, Err(why)) => found.damaged.push((id, format!("the run: {why}"))),
            }
        }
        Ok(found)
    }

    /// The ids of those that cannot be read.
    pub(super) fn unread(&self) -> impl Iterator<Item = RunId> {
        self.newer.iter().copied().chain(self.damaged.iter().map(|(id, _)| *id))
    }

    /// Sets the damaged ones aside, so that they hold up no other; answers the others.
    async fn sound(self, core: &Core, session: &mut Session) -> Result<Vec<Run>, DbError> {
        let Self { runs, damaged, .. } = self;
        if !damaged.is_empty() {
            let damaged: Vec<(JobId, String)> =
                damaged.into_iter().map(|(id, why)| (JobId::from_bytes(id.to_bytes()), why)).collect();
            let params = aside::params(damaged.iter().map(|(id, why)| (id, why)));
            let rows = session.write(&Statement::new(&sql::SET_ASIDE, params)).await?;
            let ids = rows.iter().map(|row| Reader::new(row).id()).collect::<Result<Vec<_>, DbError>>()?;
            let aside: Vec<_> = damaged.into_iter().filter(|(id, _)| ids.contains(id)).collect();
            core.pool.watcher.tell(&aside);
        }
        Ok(runs)
    }
}

async fn read(core: &Core, statement: Statement<'_>) -> Result<Vec<Run>, DbError> {
    runs(&core.session().await?.query(&statement).await?)
}

pub(in crate::postgres) async fn get(core: &Core, id: RunId) -> Result<Option<Run>, DbError> {
    Ok(read(core, Statement::new(&sql::READ, vec![Box::new(uuids([&id]))])).await?.pop())
}

/// The runs that listen to events, and which they want.
pub(in crate::postgres) async fn listening(core: &Core) -> Result<BTreeMap<RunId, Arc<Interest>>, DbError> {
    let found = read(core, Statement::new(&sql::LISTENING, Vec::new())).await?;
    Ok(found.into_iter().filter_map(|run| Some((run.id, run.interest?))).collect())
}

pub(in crate::postgres) async fn of_key(core: &Core, key: &str) -> Result<Option<Run>, DbError> {
    Ok(read(core, Statement::new(&sql::OF_KEY, vec![Box::new(key.as_bytes())])).await?.pop())
}

pub(in crate::postgres) async fn list(core: &Core, filter: &RunFilter, most: usize) -> Result<Vec<Run>, DbError> {
    let program = filter.program.as_deref().map(text::stored);
    let (goes_on, after) = (filter.ended.map(|ended| !ended), filter.after.map(rows::uuid));
    let statement = match (&filter.keys, program) {
        (Some(keys), program) => {
            let (from, below) = bounds(keys);
            let params: Vec<Param<'_>> = vec![
                Box::new(from),
                Box::new(below),
                Box::new(limit(most)),
                Box::new(program),
                Box::new(goes_on),
                Box::new(after),
            ];
            Statement::new(&sql::LIST_OF_KEYS, params)
        }
        (None, Some(program)) => {
            let kinds = goes_on.map_or_else(|| vec![true, false], |goes_on| vec![goes_on]);
            let after = after.unwrap_or(Uuid::max());
            let params: Vec<Param<'_>> =
                vec![Box::new(program), Box::new(after), Box::new(limit(most)), Box::new(kinds)];
            Statement::new(&sql::LIST_OF_PROGRAM, params)
        }
        (None, None) => {
            let params: Vec<Param<'_>> =
                vec![Box::new(None::<&str>), Box::new(goes_on), Box::new(after), Box::new(limit(most))];
            Statement::new(&sql::LIST, params)
        }
    };
    let mut session = core.session().await?;
    let rows = session.query(&statement).await?;
    Found::of(&rows)?.sound(core, &mut session).await
}

/// The bytes that the wanted keys begin with, and those that they are below.
fn bounds(keys: &RunKeys) -> (Vec<u8>, Vec<u8>) {
    let from = match &keys.after {
        // The first text behind another one is that with a zero at its end.
        Some(after) if **after >= *keys.prefix => [after.as_bytes(), &[0]].concat(),
        _ => keys.prefix.as_bytes().to_vec(),
    };
    // No text has this byte.
    (from, [keys.prefix.as_bytes(), &[0xff]].concat())
}

/// The names of programs, each once with its newest version.
fn known<'p>(programs: &[(Arc<str>, u32)]) -> [Param<'p>; 2] {
    let mut newest: BTreeMap<&str, u32> = BTreeMap::new();
    for (program, version) in programs {
        let known = newest.entry(program).or_insert(*version);
        *known = (*known).max(*version);
    }
    let names: Vec<String> = newest.keys().map(|program| text::stored(program).into_owned()).collect();
    let versions: Vec<i64> = newest.values().map(|version| i64::from(*version)).collect();
    [Box::new(names), Box::new(versions)]
}

/// Runs that are pending, and their messages. The messages may be newer than the run: a step that was computed from an
/// older one is refused.
pub(in crate::postgres) async fn pending(
    core: &Core,
    pending: &PendingRuns,
    now: Moment,
) -> Result<Vec<PendingRun>, DbError> {
    let mut session = core.session().await?;
    let mut params: Vec<Param<'_>> = known(&pending.programs).into();
    params.extend([Box::new(now.micros()) as Param<'_>, Box::new(limit(pending.limit))]);
    let statement = match &pending.only {
        None => Statement::new(&sql::PENDING, params),
        Some(only) => {
            params.push(Box::new(uuids(only)));
            Statement::new(&sql::PENDING_ONLY, params)
        }
    };
    let mut found = Found::of(&session.query(&statement).await?)?;
    let mut inboxes = inboxes(&mut session, &found.runs, pending.messages).await?;
    found.runs.retain(|run| match inboxes.get(&run.id).and_then(|inbox| inbox.flaw.as_ref()) {
        Some(Unreadable::Malformed(why)) => {
            found.damaged.push((run.id, format!("a message to the run: {why}")));
            false
        }
        // Those before it are read; it is left to nodes that can read it.
        Some(Unreadable::Newer { .. }) | None => true,
    });
    let runs = found.sound(core, &mut session).await?;
    let with = |run: Run| PendingRun { messages: inboxes.remove(&run.id).unwrap_or_default().messages, run };
    Ok(runs.into_iter().map(with).collect())
}

/// The messages of a run, up to the first that cannot be read.
#[derive(Default)]
struct ReadInbox {
    messages: Vec<Message>,
    flaw: Option<Unreadable>,
}

async fn inboxes(session: &mut Session, runs: &[Run], most: usize) -> Result<HashMap<RunId, ReadInbox>, DbError> {
    let mut inboxes: HashMap<RunId, ReadInbox> = HashMap::new();
    if runs.is_empty() {
        return Ok(inboxes);
    }
    let ids = uuids(runs.iter().map(|run| &run.id));
    let rows = session.query(&Statement::new(&sql::MESSAGES, vec![Box::new(ids), Box::new(limit(most))])).await?;
    for row in &rows {
        let mut row = Reader::new(row);
        let inbox = inboxes.entry(rows::id(&mut row)?).or_default();
        match rows::message(&mut row)? {
            Ok(message) if inbox.flaw.is_none() => inbox.messages.push(message),
            Ok(_) => {}
            Err(why) => inbox.flaw = inbox.flaw.or(Some(why)),
        }
    }
    Ok(inboxes)
}

pub(in crate::postgres) async fn next(core: &Core, programs: &[(Arc<str>, u32)]) -> Result<Option<Moment>, DbError> {
    let statement = Statement::new(&sql::NEXT, known(programs).into());
    let rows = core.session().await?.query(&statement).await?;
    Ok(rows.first().map(|row| Reader::new(row).moment()).transpose()?.flatten())
}

/// The runs behind an id with all their messages, in the snapshot that is open.
pub(in crate::postgres) async fn portable(
    session: &mut Session,
    last: Option<RunId>,
) -> Result<Vec<PortableRun>, DbError> {
    let last = last.map_or(Uuid::nil(), rows::uuid);
    let params: Vec<Param<'_>> = vec![Box::new(last), Box::new(limit(PAGE_JOBS))];
    let found = runs(&session.query(&Statement::new(&sql::PAGE, params)).await?)?;
    let mut inboxes = inboxes(session, &found, usize::MAX).await?;
    let with = |run: Run| {
        let ReadInbox { messages, flaw } = inboxes.remove(&run.id).unwrap_or_default();
        match flaw {
            None => Ok(PortableRun { run, messages }),
            Some(why) => Err(rows::flaw(run.id, &why)),
        }
    };
    found.into_iter().map(with).collect()
}
