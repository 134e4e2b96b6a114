//! Enqueueing jobs that bring a bound on the depth of their queue.

use super::super::core::{BEGIN, Core};
use super::super::db_error::DbError;
use super::super::{depths, write};
use super::enqueue::{Call, Reply, numbers};
use crate::depth::Depths;
use crate::{Enqueued, EventKind, Job, NewJob, rules};
use std::collections::HashMap;
use std::sync::Arc;

/// Stores calls together that are plainly new, one after the other, as far as their queues have room. A call for which
/// there is none is not answered: that of its ids and keys is decided first.
pub(super) async fn together(core: &Core, calls: &[Call]) -> Result<Vec<Option<Reply>>, DbError> {
    let mut session = core.session().await?;
    let all: Vec<&NewJob> = calls.iter().flat_map(|(jobs, _)| jobs).collect();
    let mut policies = write::policies(&mut session, &core.catalogue, &all).await?.into_iter();
    session.begin(BEGIN, &depths::lock(bounded(&all))).await?;
    // Whoever had the locks before has committed by now, and is seen by the statements that follow.
    let mut depth = depths::read(&mut session, bounded(&all)).await?;
    let fits: Vec<bool> = calls.iter().map(|(jobs, _)| fits(jobs, &mut depth)).collect();
    let (mut jobs, mut stored, mut written): (Vec<&NewJob>, Vec<Job>, Vec<_>) = (Vec::new(), Vec::new(), Vec::new());
    for ((new, now), fits) in calls.iter().zip(&fits) {
        let policies = policies.by_ref().take(new.len());
        if *fits {
            jobs.extend(new);
            stored.extend(new.iter().map(|new| rules::created(new, *now)));
            written.extend(policies);
        } else {
            policies.for_each(drop);
        }
    }
    if jobs.is_empty() {
        session.roll_back().await?;
    } else {
        let (queues, sources) = (numbers(core, &jobs)?, core.sources.next(jobs.len()));
        let mut statements = vec![write::enqueued(&jobs, &stored, written, queues, sources)];
        statements.extend(core.messages_of_jobs(EventKind::Enqueued, stored.iter()).statement());
        session.commit(&statements).await?;
        core.tell(stored.iter());
    }
    let mut stored = stored.into_iter();
    let answers = calls
        .iter()
        .zip(fits)
        .map(|((new, _), fits)| fits.then(|| Ok(stored.by_ref().take(new.len()).map(Enqueued::Created).collect())));
    Ok(answers.collect())
}

/// The queues of those jobs that bring a bound.
pub(super) fn bounded<'j>(jobs: &'j [&NewJob]) -> impl Iterator<Item = &'j Arc<str>> {
    jobs.iter().filter(|new| new.depth.is_some()).map(|new| &new.spec.queue)
}

/// Whether there is room for the jobs of a call; then they count.
fn fits(jobs: &[NewJob], depth: &mut HashMap<Arc<str>, u64>) -> bool {
    let mut depths = Depths::default();
    jobs.iter().enumerate().for_each(|(index, new)| depths.enter(index, new));
    let fits = depths.check(|queue| depth.get(queue).copied().unwrap_or(0)).is_ok();
    if fits {
        jobs.iter().for_each(|new| *depth.entry(Arc::clone(&new.spec.queue)).or_default() += 1);
    }
    fits
}
