//! Writing jobs back: one statement for each kind of change, whatever the number of jobs.

use super::catalogue::{Catalogue, Written};
use super::columns::{Rows, state_number};
use super::kept::{Kept, uuids};
use super::pool::Session;
use super::sql;
use super::text;
use super::trouble::Trouble;
use super::value::{Order, Param, signed};
use crate::{FailedRun, Job, KEPT_FAILURES, Lease, NewJob};
use redrive_policy::{Moment, Span, Verdict};
use uuid::Uuid;

/// The statements that write what has changed.
pub(super) fn changes<'j>(jobs: &[&'j Kept], queue: &dyn Fn(&str) -> Option<i32>) -> Result<Vec<Order<'j>>, Trouble> {
    let changed = || jobs.iter().copied().filter(|kept| kept.changed);
    let moved =
        |from: bool, to: bool| changed().filter(move |kept| kept.ended == from && kept.job.state.is_terminal() == to);
    let mut orders = Vec::new();
    let stay = rows(moved(false, false), queue)?;
    if !stay.is_empty() {
        orders.push(Order::new(&sql::UPDATE_LIVE, stay.into_params()));
    }
    for (delete, insert, from) in
        [(sql::DELETE_LIVE, &sql::INSERT_ENDED, false), (sql::DELETE_ENDED, &sql::INSERT_LIVE, true)]
    {
        let ids = uuids(moved(from, !from).map(|kept| &kept.job.id));
        if !ids.is_empty() {
            orders.push(Order::new(delete, vec![Box::new(ids)]));
            orders.push(Order::new(insert, rows(moved(from, !from), queue)?.into_params()));
        }
    }
    orders.extend(failures(changed().filter(|kept| kept.new_failure))?);
    Ok(orders)
}

/// The statement that writes what became of runs, each on the condition that its lease is as it was: pairs
/// of before and after.
pub(super) fn guarded<'j>(
    pairs: &[(&Kept, &'j Kept)],
    queue: &dyn Fn(&str) -> Option<i32>,
) -> Result<Order<'j>, Trouble> {
    let lease = |moment: fn(&Lease) -> i64| -> Vec<Option<i64>> {
        pairs.iter().map(|(before, _)| before.job.lease.as_ref().map(moment)).collect()
    };
    let failure = |kept: &'j Kept| kept.job.failures.last().filter(|_| kept.new_failure);
    let runs: Vec<Option<&FailedRun>> = pairs.iter().map(|(_, after)| failure(after)).collect();
    let mut verdicts = Vec::with_capacity(runs.len());
    for run in &runs {
        verdicts.push(run.map(|run| verdict(&run.verdict)).transpose()?);
    }
    let mut params = rows(pairs.iter().map(|(_, after)| *after), queue)?.into_params();
    params.extend([
        Box::new(lease(|lease| lease.token.nonce.cast_signed())) as Param<'j>,
        Box::new(lease(|lease| lease.until.micros())),
        Box::new(lease(|lease| lease.alive.micros())),
        Box::new(runs.iter().map(|run| run.map(|run| signed(run.life))).collect::<Vec<_>>()),
        Box::new(runs.iter().map(|run| run.map(|run| signed(run.attempt))).collect::<Vec<_>>()),
        Box::new(runs.iter().map(|run| run.map(|run| run.at.micros())).collect::<Vec<_>>()),
        Box::new(runs.iter().map(|run| run.map(|run| &*run.error)).collect::<Vec<_>>()),
        Box::new(verdicts),
    ]);
    Ok(Order::new(&sql::GUARDED, params))
}

fn rows<'j>(jobs: impl Iterator<Item = &'j Kept>, queue: &dyn Fn(&str) -> Option<i32>) -> Result<Rows<'j>, Trouble> {
    let number = |kept: &'j Kept| {
        let name = &kept.job.spec.queue;
        let number = queue(name).ok_or_else(|| Trouble::Broken(format!("the queue \"{name}\" has no number")))?;
        Ok((kept, number))
    };
    Rows::of(jobs.map(number).collect::<Result<Vec<_>, Trouble>>()?.into_iter())
}

fn verdict(verdict: &Verdict) -> Result<String, Trouble> {
    serde_json::to_string(verdict).map_err(|error| Trouble::Broken(format!("a verdict cannot be written: {error}")))
}

/// The statements that write the last failure of each job, and forget what is too old.
fn failures<'j>(failed: impl Iterator<Item = &'j Kept>) -> Result<Vec<Order<'j>>, Trouble> {
    let (mut jobs, mut numbers, mut lives, mut attempts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut times, mut errors, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut full, mut up_to) = (Vec::new(), Vec::new());
    for kept in failed {
        let Some(run) = kept.job.failures.last() else { continue };
        let id = Uuid::from_bytes(kept.job.id.to_bytes());
        jobs.push(id);
        numbers.push(signed(kept.failed));
        lives.push(signed(run.life));
        attempts.push(signed(run.attempt));
        times.push(run.at.micros());
        errors.push(&*run.error);
        verdicts.push(verdict(&run.verdict)?);
        if kept.failed as usize > KEPT_FAILURES {
            full.push(id);
            up_to.push(signed(kept.failed - KEPT_FAILURES as u32));
        }
    }
    let mut orders = Vec::new();
    if !jobs.is_empty() {
        let params: Vec<Param<'j>> = vec![
            Box::new(jobs),
            Box::new(numbers),
            Box::new(lives),
            Box::new(attempts),
            Box::new(times),
            Box::new(errors),
            Box::new(verdicts),
        ];
        orders.push(Order::new(sql::INSERT_FAILURES, params));
    }
    if !full.is_empty() {
        orders.push(Order::new(sql::FORGET_FAILURES, vec![Box::new(full), Box::new(up_to)]));
    }
    Ok(orders)
}

/// The statement that keeps new jobs, with their policies as they are to be written down. `kept` are the
/// same jobs as they begin.
pub(super) fn enqueued<'j>(jobs: &[&'j NewJob], kept: &[Job], policies: Vec<Written>, queues: Vec<i32>) -> Order<'j> {
    let spans = |span: fn(&NewJob) -> Option<Span>| -> Vec<Option<f64>> {
        jobs.iter().map(|new| span(new).map(Span::ms)).collect()
    };
    let moments = |moment: fn(&Job) -> Option<Moment>| -> Vec<Option<i64>> {
        kept.iter().map(|job| moment(job).map(Moment::micros)).collect()
    };
    let (numbers, own): (Vec<_>, Vec<_>) = policies.into_iter().map(Written::into_columns).unzip();
    Order::new(
        &sql::ENQUEUE,
        vec![
            Box::new(uuids(jobs.iter().map(|new| &new.id))),
            Box::new(jobs.iter().map(|new| text::kept(&new.spec.kind)).collect::<Vec<_>>()),
            Box::new(jobs.iter().map(|new| &*new.spec.body).collect::<Vec<_>>()),
            Box::new(numbers),
            Box::new(own),
            Box::new(spans(|new| new.spec.timeout)),
            Box::new(spans(|new| new.spec.lease)),
            Box::new(jobs.iter().map(|new| new.idempotency_key.as_deref().map(str::as_bytes)).collect::<Vec<_>>()),
            Box::new(moments(|job| Some(job.times.created))),
            Box::new(moments(|job| job.times.available)),
            Box::new(moments(|job| job.due)),
            Box::new(moments(|job| job.spec.expires)),
            Box::new(queues),
            Box::new(jobs.iter().map(|new| new.spec.priority).collect::<Vec<_>>()),
            Box::new(kept.iter().map(|job| state_number(job.state)).collect::<Vec<_>>()),
        ],
    )
}

/// How the policies of new jobs are written down.
pub(super) async fn policies(
    session: &mut Session,
    catalogue: &Catalogue,
    jobs: &[&NewJob],
) -> Result<Vec<Written>, Trouble> {
    let mut written = Vec::with_capacity(jobs.len());
    for new in jobs {
        written.push(catalogue.write(session, &new.spec.policy).await?);
    }
    Ok(written)
}
