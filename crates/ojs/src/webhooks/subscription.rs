//! What is stored of a subscription: the state of its run. Secrets are in it as they are.

use redrive_policy::Moment;
use redrive_store::Interest;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// For how long deliveries are signed with the old secret too, in microseconds: a day.
const TRANSITION_US: i64 = 86_400_000_000;

/// What a caller says of a subscription.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Where events are sent.
    pub url: String,
    /// Types of events, and patterns.
    pub events: Vec<String>,
    /// Only of these queues; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Only of jobs of these types; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub job_types: Vec<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// The retry policy of deliveries, as a job has it; absent for the table of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<RawValue>>,
    /// How long an endpoint has for its answer, in milliseconds.
    pub timeout_ms: u64,
    /// Whether events are delivered.
    pub active: bool,
}

impl Definition {
    /// Which events the run wants.
    pub(super) fn interest(&self) -> Option<Interest> {
        let texts = |texts: &[String]| texts.iter().map(|text| Arc::from(text.as_str())).collect();
        let (types, queues, job_types) = (texts(&self.events), texts(&self.queues), texts(&self.job_types));
        self.active.then_some(Interest { types, queues, job_types })
    }
}

/// A secret that was replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Previous {
    secret: String,
    /// Until when deliveries are signed with it too.
    until_us: i64,
}

/// A subscription as it stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subscription {
    /// What the caller said.
    pub definition: Definition,
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<Previous>,
    /// Why the server disabled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// How many deliveries there were, and how many of them have not ended.
    pub deliveries: u64,
    /// Those that have not ended.
    pub outstanding: u64,
    /// Those that were answered with success.
    pub delivered: u64,
    /// Those that were given up.
    pub dead: u64,
    /// Events that were dropped because it was disabled.
    pub lost: u64,
    /// How many events it has read in a row while more of them waited.
    #[serde(default)]
    pub(super) behind: u32,
}

impl Subscription {
    /// A new one.
    #[must_use]
    pub const fn new(definition: Definition, secret: String) -> Self {
        let (deliveries, outstanding, delivered, dead, lost) = (0, 0, 0, 0, 0);
        let (previous, disabled, behind) = (None, None, 0);
        Self { definition, secret, previous, disabled, deliveries, outstanding, delivered, dead, lost, behind }
    }

    /// Reads what is stored.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the subscription cannot be read: {error}"))
    }

    /// What is stored.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        // Writing into memory cannot fail, and every key is a text.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The secrets that a delivery is signed with at a time, the present one first.
    #[must_use]
    pub fn secrets(&self, now: Moment) -> Vec<&str> {
        let previous = self.previous.as_ref().filter(|previous| now.micros() < previous.until_us);
        [Some(&self.secret), previous.map(|previous| &previous.secret)]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect()
    }

    pub(super) fn rotate(&mut self, secret: String, now: Moment) {
        let old = std::mem::replace(&mut self.secret, secret);
        self.previous = Some(Previous { secret: old, until_us: now.micros().saturating_add(TRANSITION_US) });
    }
}
