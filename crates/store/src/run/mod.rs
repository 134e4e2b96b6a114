//! Runs: durable actors above single jobs.
//!
//! A run has a program, which only the engine knows, and a state, which only the program reads. The store holds both
//! as bytes, with an inbox of messages and at most one timer. A job that was started by a run leaves a message in the
//! inbox when it ends, in the same atomic step that ends it; [`crate::Store::advance`] writes what the program made of
//! the messages, also in one step.

mod interest;
mod message;
pub(crate) mod rules;
mod step;

pub use interest::Interest;
pub(crate) use interest::{events_of, queue_paused};
pub use message::{ChildEnd, Message, MessageBody, Signal};
pub(crate) use step::INBOX_MESSAGES;
pub use step::{Advanced, PendingRun, PendingRuns, RunRefusal, RunStep, Stepped};

use crate::{Blob, JobId};
use redrive_policy::Moment;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The id of a run: a UUID of version 7, as that of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(JobId);

impl RunId {
    /// A new id from the time and 74 random bits.
    #[must_use]
    pub fn new(now: Moment, random: u128) -> Self {
        Self(JobId::new(now, random))
    }

    /// The sixteen bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_bytes()
    }

    /// From sixteen bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(JobId::from_bytes(bytes))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = |_| {
            format!("\"{text}\" is not the id of a run; allowed is a UUID of version 7 in lower case, with hyphens")
        };
        text.parse().map(Self).map_err(malformed)
    }
}

/// The run that started a job or another run, and the number that it gave to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The run.
    pub run: RunId,
    /// The number of the child. The program chooses it; it is unique among the children of the run.
    pub child: u64,
}

/// A run to be stored. It is pending until its first step.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The kind of its program.
    pub program: Arc<str>,
    /// The version of the program that wrote the state.
    pub version: u32,
    /// The state before the first step: the input of the program.
    pub state: Blob,
    /// Only one run has this key. A run that ends loses its key.
    pub key: Option<Arc<str>>,
    /// The run that starts it.
    pub parent: Option<Parent>,
    /// How many runs are above it.
    pub depth: u32,
    /// Random bits, from which the ids of its children and its draws are derived.
    pub seed: u64,
}

/// A run as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The kind of its program.
    pub program: Arc<str>,
    /// The version of the program that wrote the state.
    pub version: u32,
    /// The state, which only the program reads.
    pub state: Blob,
    /// How many times it has advanced. A step is written only if this is what it was when the step was computed.
    pub revision: u64,
    /// When the program is to be called without a message.
    pub timer: Option<Moment>,
    /// Only one run has this key. A run that ends loses its key.
    pub key: Option<Arc<str>>,
    /// The run that started it.
    pub parent: Option<Parent>,
    /// How many runs are above it.
    pub depth: u32,
    /// How many jobs and runs it has started.
    pub children: u64,
    /// Random bits, from which the ids of its children and its draws are derived.
    pub seed: u64,
    /// When it was stored.
    pub created: Moment,
    /// When it last advanced, at first when it was stored.
    pub advanced: Moment,
    /// How it ended; absent while it goes on.
    pub end: Option<RunEnd>,
    /// Which events it learns of. A run that ends wants none any more.
    pub interest: Option<Arc<Interest>>,
}

/// How a run ended. A message that arrives later can make it go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// When.
    pub at: Moment,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// Its result, or what went wrong: bytes of its program.
    pub result: Blob,
}

/// Which runs to list: by their keys where keys are given, else the newest first. What is absent fits all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFilter {
    /// Of this program.
    pub program: Option<Arc<str>>,
    /// Those that have ended, or those that have not.
    pub ended: Option<bool>,
    /// Only runs that come after this one in the list, which need not exist any more.
    pub after: Option<RunId>,
    /// Only runs that have such a key, in the order of the bytes of their keys.
    pub keys: Option<RunKeys>,
}

/// Keys of runs, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunKeys {
    /// They begin like this.
    pub prefix: Arc<str>,
    /// They come after this one, which need not exist any more.
    pub after: Option<Arc<str>>,
}

impl RunKeys {
    /// Whether a key is one of them.
    #[must_use]
    pub fn fit(&self, key: &str) -> bool {
        key.starts_with(&*self.prefix) && self.after.as_ref().is_none_or(|after| *key > **after)
    }
}

impl RunFilter {
    /// Whether a run fits.
    #[must_use]
    pub fn fits(&self, run: &Run) -> bool {
        self.program.as_ref().is_none_or(|program| *program == run.program)
            && self.ended.is_none_or(|ended| ended == run.end.is_some())
            && self.after.is_none_or(|after| run.id < after)
            && self.keys.as_ref().is_none_or(|keys| run.key.as_ref().is_some_and(|key| keys.fit(key)))
    }
}

/// Runs that cannot be stored; none of the batch is.
#[derive(Clone, Debug, PartialEq)]
pub enum StartRefusal {
    /// The id at this position of the batch is taken.
    IdTaken(usize),
    /// The key at this position of the batch is that of this run.
    KeyTaken(usize, RunId),
}
