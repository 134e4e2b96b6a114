//! What is stored of a limited group besides its jobs.

use super::{Bounds, Room, Setting, Starts, room};
use redrive_policy::{Moment, Span};

/// What is stored of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupRow {
    pub(crate) setting: Option<Setting>,
    pub(crate) starts: Starts,
    /// No run starts before this time.
    pub(crate) held: Option<Moment>,
}

impl GroupRow {
    pub(crate) const EMPTY: Self = Self { setting: None, starts: Starts::EMPTY, held: None };

    /// Whether it can hold runs of jobs that bring no limits. How many may wait is no matter of claims.
    pub(crate) fn holds_runs(&self) -> bool {
        self.held.is_some() || self.setting.as_ref().is_some_and(|setting| !setting.bounds.is_empty())
    }

    /// The limits that are set at a moment.
    pub(crate) fn set(&self, now: Moment) -> Bounds {
        let setting = self.setting.as_ref().filter(|setting| setting.until.is_none_or(|until| until > now));
        setting.map_or(Bounds::default(), |setting| setting.bounds)
    }

    /// Whether another run of a job with these bounds may start where so many jobs of the group are active.
    pub(crate) fn room(&self, own: Bounds, active: usize, now: Moment) -> Room {
        if let Some(held) = self.held.filter(|held| *held > now) {
            return Room::Until(held);
        }
        room(&self.set(now).or(own), active, &self.starts, now)
    }

    /// How many runs of jobs with these bounds may start at once; or why none.
    #[cfg(feature = "postgres")]
    pub(crate) fn most(&self, own: Bounds, active: usize, now: Moment) -> Result<usize, Room> {
        match self.room(own, active, now) {
            Room::Open => {}
            full => return Err(full),
        }
        let Bounds { concurrency, rate, throttle } = self.set(now).or(own);
        let idle = concurrency.map(|most| (most as usize).saturating_sub(active));
        let left = rate.map(|rate| u64::from(rate.limit).saturating_sub(self.starts.within(rate.period, now)));
        let left = left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        Ok([idle, left, throttle.map(|_| 1)].into_iter().flatten().min().unwrap_or(usize::MAX))
    }

    /// Until when the limits are set, where that matters: then others apply.
    pub(crate) fn until(&self, now: Moment) -> Option<Moment> {
        self.setting.as_ref().and_then(|setting| setting.until).filter(|until| *until > now)
    }

    /// A run of a job with these bounds starts. False where that need not be stored.
    pub(crate) fn start(&mut self, own: Bounds, now: Moment) -> bool {
        let (own, set) = (own.memory(), self.setting.as_ref().map_or(Span::ZERO, |setting| setting.bounds.memory()));
        let memory = if own > set { own } else { set };
        if !memory.is_zero() {
            self.starts.push(now, memory);
        }
        !memory.is_zero()
    }

    /// When nothing of it matters any more; `None` where something is set for good.
    pub(crate) fn over(&self) -> Option<Moment> {
        let set = match &self.setting {
            None => Moment::from_micros(i64::MIN),
            Some(setting) => setting.until?,
        };
        self.starts.over().into_iter().chain(self.held).chain([set]).max()
    }
}
