//! What must be true of limits when a run starts: at no moment do more jobs of a group run, and within no time do more
//! of them start, than the job is held to.

use super::watch::Seen;
use redrive_policy::Moment;
use redrive_store::{Bounds, Claimed, Group, JobId, State};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The groups of a job, each with the bounds that the job brings.
fn groups(seen: &Seen, id: JobId) -> Vec<(Group, Bounds)> {
    let Some(asked) = seen.asked.get(&id) else { return Vec::new() };
    let own = asked.limit.as_ref().map(|own| (Group::Key(Arc::clone(&own.key)), own.bounds));
    let others = [Group::Queue(Arc::clone(&asked.queue)), Group::Kind(Arc::clone(&asked.kind))];
    others.into_iter().map(|group| (group, Bounds::default())).chain(own).collect()
}

/// Runs start, in this order.
pub(crate) fn claimed(seen: &mut Seen, claimed: &Claimed, now: Moment) {
    let elapsed = seen.at(now);
    seen.full += u64::from(!claimed.full.is_empty());
    let active = seen.jobs.values().filter(|job| job.state == State::Active).map(|job| job.id);
    let mut active: BTreeSet<JobId> = active.collect();
    for job in &claimed.jobs {
        for (group, own) in groups(seen, job.id) {
            let bounds = seen.settings.get(&group).map_or(own, |set| set.or(own));
            if let Some(broken) = broken(seen, &group, &bounds, &active, elapsed) {
                seen.wrong(format!("{broken} as {} started: {bounds:?}", job.id));
            }
            if bounds.rate.is_some() || bounds.throttle.is_some() {
                seen.starts.entry(group).or_default().push(elapsed);
            }
        }
        active.insert(job.id);
    }
}

/// Which of the bounds of a group allows no other run.
fn broken(seen: &Seen, group: &Group, bounds: &Bounds, active: &BTreeSet<JobId>, elapsed: Moment) -> Option<String> {
    if seen.held.get(group).is_some_and(|until| elapsed < *until) {
        return Some(format!("held: {group} was held"));
    }
    let running = active.iter().filter(|id| groups(seen, **id).iter().any(|(of, _)| of == group)).count();
    if bounds.concurrency.is_some_and(|most| running >= most as usize) {
        return Some(format!("limit: {running} jobs of {group} ran"));
    }
    let starts = seen.starts.get(group).map_or(&[][..], Vec::as_slice);
    if let Some(rate) = bounds.rate {
        let within = starts.iter().filter(|start| start.after(rate.period) > elapsed).count();
        if within >= rate.limit as usize {
            return Some(format!("rate: {within} runs of {group} had started"));
        }
    }
    let throttle = bounds.throttle.and_then(|throttle| Some(starts.last()?.after(throttle.interval())));
    throttle.filter(|opens| *opens > elapsed).map(|_| format!("rate: a run of {group} had just started"))
}
