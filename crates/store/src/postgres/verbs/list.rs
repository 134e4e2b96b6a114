//! Reading jobs, one or many.

use super::super::core::{BEGIN_SNAPSHOT, Core};
use super::super::db_error::DbError;
use super::super::row::state_number;
use super::super::stored_row::uuids;
use super::super::value::{Param, Reader, Statement, limit};
use super::super::{counts, read, sql, text};
use crate::job::FIXED_BYTES;
use crate::listing::Gathering;
use crate::{Entry, Filter, Job, JobId, Listed, Page, State, end_step};
use redrive_policy::Moment;
use std::collections::HashMap;
use uuid::Uuid;

/// How many jobs the first statement looks at, where some of them may not fit; more where more are asked for.
const FIRST_LOOK: usize = 100;
/// How many times as many the next one looks at.
const GROWTH: usize = 4;
/// How many jobs one statement looks at, at most.
const LONGEST_LOOK: usize = 1_000;
/// How many jobs one statement reads.
const READ: usize = 50;

/// The job of this id, as of one moment.
pub(in crate::postgres) async fn get(core: &Core, id: JobId) -> Result<Option<Job>, DbError> {
    let mut session = core.session().await?;
    let statement = Statement::new(&sql::READ, vec![Box::new(uuids([&id]))]);
    let mut rows = session.begin(BEGIN_SNAPSHOT, &statement).await?;
    if rows.is_empty() {
        rows = session.query(&Statement::new(&sql::READ_ACTIVE, vec![Box::new(uuids([&id]))])).await?;
    }
    let mut found = read::jobs(&mut session, &core.catalogue, &rows).await?;
    session.roll_back().await?;
    drop(session);
    if let Some((id, why)) = found.newer.first() {
        return Err(read::newer(*id, why));
    }
    core.set_aside(&found.damaged).await?;
    Ok(found.jobs.pop().map(|stored| *stored.job))
}

/// Those of these jobs that are stored, in this order: one statement for many of them, each of which sees one moment.
/// Jobs of a newer version are left out, as in lists.
pub(in crate::postgres) async fn get_many(core: &Core, ids: &[JobId]) -> Result<Vec<Job>, DbError> {
    let (filter, page) = (Filter::default(), Page::new(0, ids.len()));
    let mut jobs: HashMap<JobId, Job> = HashMap::with_capacity(ids.len());
    for (step, ids) in ids.chunks(READ).enumerate() {
        if step > 0 {
            end_step().await;
        }
        jobs.extend(read_page(core, &filter, page, ids).await?.into_iter().map(|job| (job.id, job)));
    }
    Ok(ids.iter().filter_map(|id| jobs.get(id).cloned()).collect())
}

/// A list is read in steps: statements that look at a few jobs each, and none of them in a transaction that is open
/// for longer. One that is open keeps old versions of rows from being cleaned up, which writers would have to pass
/// over.
pub(in crate::postgres) async fn list(core: &Core, filter: &Filter, page: Page) -> Result<Listed, DbError> {
    let total = if filter.is_counted() { Some(counts::fitting(core, filter).await?) } else { None };
    if filter.is_by_end() && filter.state.is_some_and(|state| state != State::Discarded) {
        return Ok(Listed { jobs: Vec::new(), next: None, total });
    }
    let mut gathering = Gathering::new(page);
    let goes_on = gather(core, filter, &mut gathering).await?;
    let next = goes_on.then(|| gathering.rest());
    let ids = gathering.into_found();
    let mut jobs = Vec::with_capacity(ids.len());
    for ids in ids.chunks(READ) {
        end_step().await;
        jobs.extend(read_page(core, filter, page, ids).await?);
    }
    Ok(Listed { jobs, next, total })
}

/// Finds the jobs of a page, and whether the list goes on behind it.
async fn gather(core: &Core, filter: &Filter, page: &mut Gathering<JobId>) -> Result<bool, DbError> {
    let mut left = core.pool.options().list_most.max(1);
    let mut look = if all_fit(filter) { 1 } else { FIRST_LOOK };
    loop {
        let wanted = page.rest().offset.saturating_add(page.rest().limit).saturating_add(1);
        let window = look.max(wanted).min(LONGEST_LOOK).min(left);
        let rows = core.session().await?.query(&statement(filter, page.rest(), window)).await?;
        let mut is_last = true;
        for row in &rows {
            let mut row = Reader::new(row);
            let (id, finished) = (row.id()?, row.moment()?);
            let entry = Entry { ended: finished.filter(|_| filter.is_by_end()), id };
            let (fits, bytes, body): (bool, i32, i32) = (row.next()?, row.next()?, row.next()?);
            let body = if page.rest().payloads { body } else { 0 };
            let bytes = FIXED_BYTES + bytes.saturating_add(body).unsigned_abs() as usize;
            if !fits {
                page.pass(entry);
            } else if !page.take(entry, bytes, || id) {
                return Ok(true);
            }
            is_last = !row.next::<bool>()?;
        }
        left -= window;
        if is_last || left == 0 {
            return Ok(!is_last);
        }
        look = window.saturating_mul(GROWTH);
        end_step().await;
    }
}

/// The jobs of a page, as of one moment. Those that were changed since they were found, and no longer fit, are left
/// out.
async fn read_page(core: &Core, filter: &Filter, page: Page, ids: &[JobId]) -> Result<Vec<Job>, DbError> {
    let mut session = core.session().await?;
    session.begin_by(BEGIN_SNAPSHOT).await?;
    let found = read::by_id(&mut session, &core.catalogue, ids, !page.payloads).await?;
    session.roll_back().await?;
    drop(session);
    core.set_aside(&found.damaged).await?;
    let jobs = found.jobs.into_iter().map(|stored| stored.job).filter(|job| filter.fits(job));
    let mut jobs: HashMap<JobId, Job> = jobs.map(|job| (job.id, *job)).collect();
    Ok(ids.iter().filter_map(|id| jobs.remove(id)).map(|job| page.shown(job)).collect())
}

/// Whether every job that is looked at fits.
fn all_fit(filter: &Filter) -> bool {
    filter.kind.is_none() && (filter.is_by_end() || *filter == Filter::default())
}

/// The statement that looks at the next `window` jobs of a list.
fn statement(filter: &Filter, page: Page, window: usize) -> Statement<'_> {
    let kind = filter.kind.as_deref().map(text::stored);
    let queue = filter.queue.as_deref().map(text::stored);
    let since = filter.finished_since.map(Moment::micros);
    let before = filter.finished_before.map(Moment::micros);
    let after = page.after.map_or(Uuid::max(), |after| Uuid::from_bytes(after.id.to_bytes()));
    if !filter.is_by_end() {
        let params: Vec<Param<'_>> = vec![
            Box::new(kind),
            Box::new(queue),
            Box::new(filter.state.map(state_number)),
            Box::new(filter.dead),
            Box::new(after),
            Box::new(limit(window)),
            Box::new(since),
            Box::new(before),
        ];
        return Statement::new(&sql::LIST, params);
    }
    let ended = page.after.map_or(i64::MAX, |after| after.ended.map_or(i64::MIN, Moment::micros));
    let mut params: Vec<Param<'_>> = vec![
        Box::new(kind),
        Box::new(ended),
        Box::new(since.unwrap_or(i64::MIN)),
        Box::new(before.unwrap_or(i64::MAX)),
        Box::new(after),
        Box::new(limit(window)),
    ];
    let Some(queue) = queue else { return Statement::new(&sql::LIST_DEAD, params) };
    params.push(Box::new(queue));
    Statement::new(&sql::LIST_DEAD_OF_QUEUE, params)
}
