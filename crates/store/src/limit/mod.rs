//! Limits: how many jobs of a group run at once, and how many start in a time.
//!
//! A job is in the group of its queue. It may bring a limit of its own, which names the group of its key, and where
//! its type was limited when it was enqueued, it is in the group of its type. A run starts where every limit of every
//! group of the job allows it. How many jobs of a group are active follows from the stored jobs; when runs started is
//! stored in the step that starts them.

mod group_row;
mod lane;
mod room;
mod setting;
mod starts;

pub(crate) use group_row::GroupRow;
pub(crate) use lane::Lane;
pub(crate) use room::{Room, room};
pub use setting::{Setting, Standing};
pub(crate) use starts::Starts;

use redrive_policy::Span;
use std::fmt;
use std::sync::Arc;

/// A group of jobs that share limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// The jobs that bring a limit with this key.
    Key(Arc<str>),
    /// The jobs of a queue.
    Queue(Arc<str>),
    /// The jobs of a type that was limited when they were enqueued.
    Kind(Arc<str>),
}

impl Group {
    /// The group of a written name: `key:stripe`, `queue:email` or `type:report.generate`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (scope, name) = name.split_once(':')?;
        match scope {
            "key" => Some(Self::Key(name.into())),
            "queue" => Some(Self::Queue(name.into())),
            "type" => Some(Self::Kind(name.into())),
            _ => None,
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(name) => write!(f, "key:{name}"),
            Self::Queue(name) => write!(f, "queue:{name}"),
            Self::Kind(name) => write!(f, "type:{name}"),
        }
    }
}

/// So many starts in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many.
    pub limit: u32,
    /// In which time.
    pub period: Span,
}

impl Rate {
    /// The time between two starts that are spaced evenly.
    #[must_use]
    pub fn interval(&self) -> Span {
        self.period.times(1.0 / f64::from(self.limit.max(1)))
    }
}

/// The limits of a group. What is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// How many jobs are active at once, at most; zero holds the group.
    pub concurrency: Option<u32>,
    /// How many runs start within any span of this length, at most.
    pub rate: Option<Rate>,
    /// How many runs start in a time, spaced evenly.
    pub throttle: Option<Rate>,
}

impl Bounds {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These bounds, and for what they leave open, those.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        const fn first<T: Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
            match one {
                Some(_) => one,
                None => other,
            }
        }
        Self {
            concurrency: first(self.concurrency, other.concurrency),
            rate: first(self.rate, other.rate),
            throttle: first(self.throttle, other.throttle),
        }
    }

    /// For how long a start matters.
    pub(crate) fn memory(&self) -> Span {
        let rate = self.rate.map_or(Span::ZERO, |rate| rate.period);
        let interval = self.throttle.map_or(Span::ZERO, |throttle| throttle.interval());
        if rate > interval { rate } else { interval }
    }
}

/// What happens to an available job that a worker could have, if its limit did not hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLimit {
    /// It waits.
    #[default]
    Wait,
    /// It is scheduled for the time at which the limit is expected to allow it.
    Reschedule,
    /// It is discarded.
    Drop,
}

/// The limit that a job brings.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnLimit {
    /// Jobs with the same key share the limit. Each is held to the bounds that it brings.
    pub key: Arc<str>,
    /// The limits.
    pub bounds: Bounds,
    /// What happens when the limit is reached.
    pub on_limit: OnLimit,
}

/// The limits of a job besides that of its queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The one that it brings.
    pub own: Option<OwnLimit>,
    /// Whether its type was limited when it was enqueued.
    pub by_kind: bool,
}

impl Limits {
    /// The limit that a job brings, and no other.
    #[must_use]
    pub fn own(key: impl Into<Arc<str>>, bounds: Bounds) -> Self {
        Self { own: Some(OwnLimit { key: key.into(), bounds, on_limit: OnLimit::Wait }), by_kind: false }
    }
}
