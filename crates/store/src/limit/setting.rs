//! What operators set for a group, and how it stands.

use super::{Bounds, Group, GroupRow, Room};
use crate::Blob;
use redrive_policy::Moment;

/// What is set for a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// Its limits. For the group of a key they replace those that its jobs bring, each for itself.
    pub bounds: Bounds,
    /// Until when they apply; absent, until they are changed.
    pub until: Option<Moment>,
    /// How many jobs may wait in a queue; only for the group of a queue. Stores hold new jobs to what they bring
    /// themselves, and not to this: [`crate::NewJob::depth`].
    pub depth: Option<u64>,
    /// Everything else that is set; the store does not read it.
    pub text: Blob,
}

/// How a group stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The group.
    pub group: Group,
    /// The limits that apply: what is set for it, and else what the next of its jobs brings.
    pub bounds: Bounds,
    /// How many of its jobs are active.
    pub active: usize,
    /// How many of its jobs are available.
    pub waiting: usize,
    /// How many of its runs started within the period of its rate.
    pub started: u64,
    /// When the next run may start as far as rate and throttle are concerned; absent where that is now.
    pub opens: Option<Moment>,
    /// No run starts before this time, because a worker asked for that.
    pub held: Option<Moment>,
    /// What is set for it.
    pub setting: Option<Setting>,
}

impl Standing {
    /// How a group stands of which this is stored, whose jobs bring these bounds.
    pub(crate) fn new(group: Group, row: &GroupRow, own: Bounds, active: usize, waiting: usize, now: Moment) -> Self {
        let bounds = row.set(now).or(own);
        let held = row.held.filter(|held| *held > now);
        let started = bounds.rate.map_or(0, |rate| row.starts.within(rate.period, now));
        let timed = Bounds { concurrency: None, ..bounds };
        let opens = match super::room(&timed, active, &row.starts, now) {
            Room::Until(opens) => Some(opens),
            Room::Open | Room::Busy => None,
        };
        Self { group, bounds, active, waiting, started, opens, held, setting: row.setting.clone() }
    }
}
