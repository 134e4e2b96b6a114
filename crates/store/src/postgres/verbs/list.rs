//! Looking.

use super::super::core::{BEGIN_SNAPSHOT, Core};
use super::super::kept::uuids;
use super::super::row::state_number;
use super::super::trouble::Trouble;
use super::super::value::{Order, Param, Reader, limit};
use super::super::{read, sql, text};
use crate::{Filter, Job, JobId, Listed, Page};
use redrive_policy::Moment;

/// The jobs of these names, as of one moment.
pub(in crate::postgres) async fn get(core: &Core, id: JobId) -> Result<Option<Job>, Trouble> {
    let mut session = core.session().await?;
    let order = Order::new(&sql::READ, vec![Box::new(uuids([&id]))]);
    let rows = session.begin(BEGIN_SNAPSHOT, &order).await?;
    let mut jobs = read::jobs(&mut session, &core.catalogue, &rows).await?;
    session.roll_back().await?;
    Ok(jobs.pop().map(|kept| kept.job))
}

pub(in crate::postgres) async fn list(core: &Core, filter: &Filter, page: Page) -> Result<Listed, Trouble> {
    let mut session = core.session().await?;
    let rows = session.begin(BEGIN_SNAPSHOT, &Order::new(&sql::COUNT, fitting(filter))).await?;
    let total: Option<i64> = rows.first().map(|row| Reader::new(row).next()).transpose()?;
    let mut params = fitting(filter);
    params.extend([Box::new(limit(page.offset)) as Param<'_>, Box::new(limit(page.limit))]);
    let rows = session.query(&Order::new(&sql::LIST, params)).await?;
    let jobs = read::jobs(&mut session, &core.catalogue, &rows).await?;
    session.roll_back().await?;
    let total = total.and_then(|total| usize::try_from(total).ok()).unwrap_or(0);
    Ok(Listed { jobs: jobs.into_iter().map(|kept| kept.job).collect(), total })
}

/// A filter as parameters.
fn fitting(filter: &Filter) -> Vec<Param<'_>> {
    vec![
        Box::new(filter.queue.as_deref().map(text::kept)),
        Box::new(filter.kind.as_deref().map(text::kept)),
        Box::new(filter.state.map(state_number)),
        Box::new(filter.dead),
        Box::new(filter.finished_since.map(Moment::micros)),
        Box::new(filter.finished_before.map(Moment::micros)),
    ]
}
