//! The limits of the reference model: all starts there ever were, and a look at every job.

use crate::limit::Room;
use crate::{Bounds, Group, Job, Rate, Setting, Spec, State};
use redrive_policy::Moment;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of groups besides their jobs.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) settings: BTreeMap<Group, Setting>,
    pub(super) held: BTreeMap<Group, Moment>,
    starts: Vec<(Group, Moment)>,
}

impl Ledger {
    /// The first group of a job that allows no other run, and why; of the queue, the key and the type, in this order.
    pub(super) fn holds<'j>(
        &self,
        spec: &Spec,
        jobs: impl Iterator<Item = &'j Job> + Clone,
        now: Moment,
    ) -> Option<(Group, Room)> {
        groups(spec).into_iter().find_map(|(group, own)| {
            let active = jobs.clone().filter(|job| job.state == State::Active && is_in(&job.spec, &group)).count();
            let room = self.room(&group, own, active, now);
            (room != Room::Open).then_some((group, room))
        })
    }

    pub(super) fn room(&self, group: &Group, own: Bounds, active: usize, now: Moment) -> Room {
        if let Some(held) = self.held.get(group).filter(|held| **held > now) {
            return Room::Until(*held);
        }
        let bounds = self.bounds(group, own, now);
        if bounds.concurrency.is_some_and(|most| active >= usize::try_from(most).unwrap_or(usize::MAX)) {
            return Room::Busy;
        }
        let mut opens = now;
        if let Some(Rate { limit, period }) = bounds.rate {
            // Where so many have started within the period, the one that makes the limit has to get older than it.
            let starts: Vec<Moment> = self.starts(group).collect();
            let reached = (limit as usize).checked_sub(1).and_then(|before| starts.get(before));
            opens = reached.map_or(opens, |start| start.after(period).max(opens));
        }
        if let (Some(throttle), Some(last)) = (bounds.throttle, self.starts(group).next()) {
            opens = last.after(throttle.interval()).max(opens);
        }
        if opens > now { Room::Until(opens) } else { Room::Open }
    }

    /// The limits that apply: what is set, and else what the job brings.
    pub(super) fn bounds(&self, group: &Group, own: Bounds, now: Moment) -> Bounds {
        let setting = self.settings.get(group).filter(|setting| setting.until.is_none_or(|until| now < until));
        setting.map_or(own, |setting| setting.bounds.or(own))
    }

    /// When other limits apply to a group.
    pub(super) fn until(&self, group: &Group, now: Moment) -> Option<Moment> {
        self.settings.get(group)?.until.filter(|until| *until > now)
    }

    /// A job starts.
    pub(super) fn started(&mut self, spec: &Arc<Spec>, now: Moment) {
        for (group, own) in groups(spec) {
            let set = self.settings.get(&group).map_or(Bounds::default(), |setting| setting.bounds);
            let timed = |bounds: Bounds| bounds.rate.is_some() || bounds.throttle.is_some();
            if timed(own) || timed(set) {
                self.starts.push((group, now));
            }
        }
    }

    /// The starts of a group, the latest first.
    pub(super) fn starts(&self, group: &Group) -> impl Iterator<Item = Moment> {
        self.starts.iter().rev().filter(move |(of, _)| of == group).map(|(_, at)| *at)
    }
}

/// The groups of a job, each with the bounds that it brings.
pub(super) fn groups(spec: &Spec) -> Vec<(Group, Bounds)> {
    let mut groups = vec![(Group::Queue(Arc::clone(&spec.queue)), Bounds::default())];
    if let Some(limits) = &spec.limits {
        groups.extend(limits.own.as_ref().map(|own| (Group::Key(Arc::clone(&own.key)), own.bounds)));
        groups.extend(limits.by_kind.then(|| (Group::Kind(Arc::clone(&spec.kind)), Bounds::default())));
    }
    groups
}

/// Whether a job is in a group.
pub(super) fn is_in(spec: &Spec, group: &Group) -> bool {
    groups(spec).iter().any(|(of, _)| of == group)
}
