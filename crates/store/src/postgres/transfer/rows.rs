//! Jobs that were elsewhere, as rows. This is the only part of a transfer that knows the columns of a job.

use crate::Job;
use crate::postgres::catalogue::Catalogue;
use crate::postgres::columns::Rows;
use crate::postgres::kept::Kept;
use crate::postgres::pool::Session;
use crate::postgres::sql;
use crate::postgres::trouble::Trouble;
use crate::postgres::value::{Order, Param, signed};
use crate::transfer::Portable;
use uuid::Uuid;

/// Keeps jobs as they are. What is said about them is there already.
pub(super) async fn insert(session: &mut Session, catalogue: &Catalogue, jobs: Vec<Portable>) -> Result<(), Trouble> {
    let kept: Vec<Kept> = jobs.into_iter().map(|moved| arrived(moved.job)).collect();
    for (statement, ended) in [(&sql::INSERT_LIVE, false), (&sql::INSERT_ENDED, true)] {
        let mut rows = Vec::new();
        for kept in kept.iter().filter(|kept| kept.ended == ended) {
            let name = &kept.job.spec.queue;
            let number = catalogue.queue(name);
            let number = number.ok_or_else(|| Trouble::Broken(format!("the queue \"{name}\" has no number")))?;
            rows.push((kept, number));
        }
        if !rows.is_empty() {
            let rows = Rows::of(rows.into_iter())?;
            session.query(&Order::new(statement, rows.into_params())).await?;
        }
    }
    if let Some(order) = failures(&kept)? {
        session.query(&order).await?;
    }
    Ok(())
}

/// A job that was elsewhere. Its failures are numbered anew: those that are no longer kept leave no trace.
fn arrived(job: Job) -> Kept {
    let failed = job.failures.len() as u32;
    Kept { failed, ended: job.state.is_terminal(), job, changed: true, new_failure: false }
}

/// All failures of jobs.
fn failures(jobs: &[Kept]) -> Result<Option<Order<'_>>, Trouble> {
    let runs = || jobs.iter().flat_map(|kept| (1_i32..).zip(&kept.job.failures).map(|run| (kept.job.id, run)));
    if runs().next().is_none() {
        return Ok(None);
    }
    let verdicts: Result<Vec<String>, _> = runs().map(|(_, (_, run))| serde_json::to_string(&run.verdict)).collect();
    let verdicts = verdicts.map_err(|error| Trouble::Broken(format!("a verdict cannot be written: {error}")))?;
    let params: Vec<Param<'_>> = vec![
        Box::new(runs().map(|(id, _)| Uuid::from_bytes(id.to_bytes())).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (number, _))| number).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| signed(run.life)).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| signed(run.attempt)).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| run.at.micros()).collect::<Vec<_>>()),
        Box::new(runs().map(|(_, (_, run))| &*run.error).collect::<Vec<_>>()),
        Box::new(verdicts),
    ];
    Ok(Some(Order::new(sql::INSERT_FAILURES, params)))
}
