//! Writing jobs: one statement for each kind of change, whatever the number of jobs.

use super::catalogue::{Catalogue, Written};
use super::kept::{Kept, uuids};
use super::pool::Session;
use super::row::{alive, due, encode, encode_failures, lease_us, state_number};
use super::trouble::Trouble;
use super::value::{Order, Param};
use super::{sql, text};
use crate::{Job, NewJob};
use redrive_policy::{Moment, Span};

/// The statements that write what has changed, each answering which jobs it wrote. `queue` knows the numbers
/// of queues.
pub(super) fn changes<'j>(jobs: &[&'j Kept], queue: &dyn Fn(&str) -> Option<i32>) -> Result<Vec<Order<'j>>, Trouble> {
    let moved = |from: bool, to: bool| -> Vec<&'j Kept> {
        let here = |kept: &&&Kept| kept.changed && kept.ended == from && kept.job.state.is_terminal() == to;
        jobs.iter().filter(here).copied().collect()
    };
    let mut orders = Vec::new();
    let stay = moved(false, false);
    if !stay.is_empty() {
        orders.push(Order::new(&sql::CHANGE, waiting(&stay)));
    }
    let gone = moved(false, true);
    if !gone.is_empty() {
        orders.push(Order::new(&sql::END, ended(&gone)));
    }
    let back = moved(true, false);
    if !back.is_empty() {
        orders.push(Order::new(&sql::REDRIVE, placed(waiting(&back), &back, queue)?));
    }
    Ok(orders)
}

/// The statements that keep jobs that were elsewhere, as they are.
pub(super) fn arrivals<'j>(jobs: &'j [Kept], queue: &dyn Fn(&str) -> Option<i32>) -> Result<Vec<Order<'j>>, Trouble> {
    let (gone, here): (Vec<_>, Vec<_>) = jobs.iter().partition(|kept| kept.ended);
    let live = Order::new(&sql::ARRIVE_LIVE, placed(waiting(&here), &here, queue)?);
    let ended = Order::new(&sql::ARRIVE_ENDED, placed(ended(&gone), &gone, queue)?);
    Ok(vec![live, ended])
}

/// What is written of any job.
fn common<'j>(jobs: &[&'j Kept]) -> Vec<Param<'j>> {
    vec![
        Box::new(uuids(jobs.iter().map(|kept| &kept.job.id))),
        Box::new(jobs.iter().map(|kept| kept.revision).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|kept| state_number(kept.job.state)).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|kept| encode(&kept.job)).collect::<Vec<_>>()),
        Box::new(jobs.iter().map(|kept| encode_failures(&kept.job).filter(|_| kept.new_failure)).collect::<Vec<_>>()),
    ]
}

/// What is written of a job that can still run.
fn waiting<'j>(jobs: &[&'j Kept]) -> Vec<Param<'j>> {
    let mut params = common(jobs);
    params.push(Box::new(moments(jobs, |job| job.times.available)));
    params.push(Box::new(moments(jobs, due)));
    params.push(Box::new(moments(jobs, alive)));
    params.push(Box::new(jobs.iter().map(|kept| lease_us(&kept.job)).collect::<Vec<_>>()));
    params
}

/// What is written of a job that has ended.
fn ended<'j>(jobs: &[&'j Kept]) -> Vec<Param<'j>> {
    let mut params = common(jobs);
    params.push(Box::new(moments(jobs, |job| job.times.finished)));
    params.push(Box::new(jobs.iter().map(|kept| kept.job.dead).collect::<Vec<_>>()));
    params
}

/// And what stays as it is while a job is where it is.
fn placed<'j>(
    mut params: Vec<Param<'j>>,
    jobs: &[&'j Kept],
    queue: &dyn Fn(&str) -> Option<i32>,
) -> Result<Vec<Param<'j>>, Trouble> {
    params.push(Box::new(moments(jobs, |job| job.spec.expires)));
    params.push(Box::new(numbers(jobs, queue)?));
    params.push(Box::new(jobs.iter().map(|kept| kept.job.spec.priority).collect::<Vec<_>>()));
    Ok(params)
}

fn moments(jobs: &[&Kept], moment: fn(&Job) -> Option<Moment>) -> Vec<Option<i64>> {
    jobs.iter().map(|kept| moment(&kept.job).map(Moment::micros)).collect()
}

fn numbers(jobs: &[&Kept], queue: &dyn Fn(&str) -> Option<i32>) -> Result<Vec<i32>, Trouble> {
    let number = |kept: &&Kept| {
        let name = &kept.job.spec.queue;
        queue(name).ok_or_else(|| Trouble::Broken(format!("the queue \"{name}\" has no number")))
    };
    jobs.iter().map(number).collect()
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
            Box::new(moments(|job| job.times.available)),
            Box::new(moments(due)),
            Box::new(moments(|job| job.spec.expires)),
            Box::new(queues),
            Box::new(jobs.iter().map(|new| new.spec.priority).collect::<Vec<_>>()),
            Box::new(kept.iter().map(|job| state_number(job.state)).collect::<Vec<_>>()),
            Box::new(kept.iter().map(encode).collect::<Vec<_>>()),
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
