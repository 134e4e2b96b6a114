//! The limits of the reference model: all starts there ever were, and a look at every job.

use crate::limit::Room;
use crate::{Bounds, Group, Job, Rate, Setting, Spec, Standing, State};
use redrive_policy::{Moment, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known of groups besides their jobs.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) settings: BTreeMap<Group, Setting>,
    pub(super) held: BTreeMap<Group, Moment>,
    /// The starts of each group, oldest first, and for how long they matter at most.
    starts: BTreeMap<Group, (Span, Vec<Moment>)>,
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
            let spans = [own, set].into_iter().flat_map(|bounds| {
                let interval = bounds.throttle.map(|throttle| throttle.interval());
                bounds.rate.map(|rate| rate.period).into_iter().chain(interval)
            });
            let longest = spans.fold(Span::ZERO, |longest, span| if span > longest { span } else { longest });
            if longest.is_zero() {
                continue;
            }
            let (memory, starts) = self.starts.entry(group).or_default();
            *memory = if longest > *memory { longest } else { *memory };
            starts.retain(|at| at.after(*memory) > now);
            // The order stays, even if the clock was set back.
            starts.push(starts.last().map_or(now, |last| now.max(*last)));
        }
    }

    /// Forgets groups of which nothing is set, and nothing stored matters any more.
    pub(super) fn prune(&mut self, now: Moment) {
        let over = |group: &Group, (memory, starts): &(Span, Vec<Moment>)| {
            let set = self.settings.get(group);
            let lasting = set.is_some_and(|setting| setting.until.is_none_or(|until| until > now));
            let held = self.held.get(group).is_some_and(|held| *held > now);
            let started = starts.last().is_some_and(|last| last.after(*memory) > now);
            !lasting && !held && !started
        };
        let none = (Span::ZERO, Vec::new());
        let known: BTreeSet<Group> =
            self.settings.keys().chain(self.held.keys()).chain(self.starts.keys()).cloned().collect();
        let gone = known.into_iter().filter(|group| over(group, self.starts.get(group).unwrap_or(&none)));
        for group in gone.collect::<Vec<_>>() {
            self.settings.remove(&group);
            self.held.remove(&group);
            self.starts.remove(&group);
        }
    }

    /// The groups of which something is set, or was stored that still matters.
    pub(super) fn known(&self) -> impl Iterator<Item = Group> {
        self.settings.keys().chain(self.held.keys()).chain(self.starts.keys()).cloned()
    }

    /// How a group stands.
    pub(super) fn standing<'j>(
        &self,
        group: Group,
        jobs: impl Iterator<Item = &'j Job> + Clone,
        now: Moment,
    ) -> Standing {
        let mine = || jobs.clone().filter(|job| is_in(&job.spec, &group));
        let count = |state| mine().filter(|job| job.state == state).count();
        let own = mine().flat_map(|job| groups(&job.spec)).find(|(of, _)| *of == group).map(|(_, own)| own);
        let bounds = self.bounds(&group, own.unwrap_or_default(), now);
        let within = |rate: Rate| self.starts(&group).filter(|at| at.after(rate.period) > now).count() as u64;
        let timed = Bounds { concurrency: None, ..bounds };
        let unheld = Self { held: BTreeMap::new(), settings: BTreeMap::new(), starts: self.starts.clone() };
        let opens = match unheld.room(&group, timed, 0, now) {
            Room::Until(opens) => Some(opens),
            Room::Open | Room::Busy => None,
        };
        Standing {
            bounds,
            active: count(State::Active),
            waiting: count(State::Available),
            started: bounds.rate.map_or(0, within),
            opens,
            held: self.held.get(&group).copied().filter(|held| *held > now),
            setting: self.settings.get(&group).cloned(),
            group,
        }
    }

    /// The starts of a group, the latest first.
    pub(super) fn starts(&self, group: &Group) -> impl Iterator<Item = Moment> {
        self.starts.get(group).into_iter().flat_map(|(_, starts)| starts.iter().rev().copied())
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
