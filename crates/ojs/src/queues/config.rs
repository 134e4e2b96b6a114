//! The configuration of a queue, and the limits of a group, as OJS writes them.

use crate::jobs::rate_limit::{bounds, rate_of};
use crate::json::{Members, text};
use crate::time::parse_rfc3339;
use redrive_policy::{Moment, Problem};
use redrive_store::{Bounds, Rate, Setting};
use serde_json::{Map, Value, json};

/// The limits of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LimitConfig {
    /// The limits.
    pub bounds: Bounds,
    /// Until when they apply.
    pub until: Option<Moment>,
}

impl LimitConfig {
    /// Reads the limits of a group.
    #[must_use]
    pub fn read(found: &Members<'_>, problems: &mut Vec<Problem>) -> Self {
        found.only(&["concurrency", "rate", "throttle", "expires_at"], problems);
        let bounds = bounds(found, ["/rate", "/throttle"], problems);
        let allowed = "a timestamp such as \"2026-02-13T13:00:00Z\"";
        let until = found.read("expires_at", allowed, problems, |value| parse_rfc3339(&text(value)?));
        if bounds.is_empty() && problems.is_empty() {
            let message = "sets no limit; write concurrency, rate or throttle, or DELETE to remove what is set";
            problems.push(Problem::with_message("", message));
        }
        Self { bounds, until }
    }

    /// As the store takes it.
    #[must_use]
    pub fn setting(&self) -> Setting {
        Setting { bounds: self.bounds, until: self.until, ..Setting::default() }
    }
}

/// The configuration of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueConfig {
    /// The limits of its runs.
    pub bounds: Bounds,
    /// How many jobs may wait in it; zero is any number, whatever is set for all queues.
    pub depth: Option<u64>,
}

/// The deepest queue.
const DEEPEST: i64 = 1_000_000_000_000;

/// Members of a configuration that this server does not honour, and what to do instead.
const ELSEWHERE: [(&str, &str); 10] = [
    ("max_size_bytes", NO_BYTES),
    ("retention", "is set for all queues in the configuration of the server: retention.finished and retention.dead"),
    ("visibility_timeout", "is up to each job (visibility_timeout_ms) or to the server: lease"),
    ("default_timeout", "is up to each job (timeout_ms) or to the server: timeout"),
    ("default_retry", "is set in the configuration of the server: queue.NAME.retry"),
    ("dead_letter_queue", "jobs that exhaust their retries stay in their queue as dead letters"),
    ("dead_letter_max_size", "is not supported; dead letters are removed by their retention"),
    ("dead_letter_ttl", "is set for all queues in the configuration of the server: retention.dead"),
    ("allowed_job_types", "is not supported"),
    ("producers", "is not supported"),
];

const NO_BYTES: &str = "a bound on bytes is not supported; bound the number of jobs: backpressure.max_depth";
const NO_WARNING: &str = "is not supported: nothing is told before a queue is full; leave it out";
const STRATEGIES: &str = "\"reject\", the only strategy of this server: callers get 429, and call again";

impl QueueConfig {
    /// Reads the configuration of a queue. What is not honoured is refused.
    #[must_use]
    pub fn read(found: &Members<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut known = vec!["concurrency", "rate_limit", "throttle", "backpressure", "max_size", "overflow_policy"];
        for (key, why) in ELSEWHERE {
            known.push(key);
            if found.has(key) {
                found.add_problem(key, Problem::with_message("", why), problems);
            }
        }
        found.only(&known, problems);
        let mut bounds = bounds(found, ["/rate", "/throttle"], problems);
        bounds.rate = found.object("rate_limit", "/rate_limit", problems).and_then(|rate| rate_of(&rate, problems));
        Self { bounds, depth: depth(found, problems) }
    }

    /// What a store has of it.
    #[must_use]
    pub const fn of(setting: &Setting) -> Self {
        Self { bounds: setting.bounds, depth: setting.depth }
    }

    /// As the store takes it; none where nothing is configured.
    #[must_use]
    pub fn setting(&self) -> Option<Setting> {
        let Self { bounds, depth } = *self;
        (*self != Self::default()).then(|| Setting { bounds, depth, ..Setting::default() })
    }

    /// As it is returned: only what is configured.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut config = Map::new();
        let Bounds { concurrency, rate, throttle } = self.bounds;
        config.extend(concurrency.map(|most| ("concurrency".to_owned(), most.into())));
        config.extend(rate.map(|rate| ("rate_limit".to_owned(), rate_json(rate))));
        config.extend(throttle.map(|throttle| ("throttle".to_owned(), rate_json(throttle))));
        let backpressure = |depth| json!({ "max_depth": depth, "strategy": "reject" });
        config.extend(self.depth.map(|depth| ("backpressure".to_owned(), backpressure(depth))));
        Value::Object(config)
    }
}

/// How many jobs may wait, as the page about backpressure writes it, or as the page about queues does.
fn depth(found: &Members<'_>, problems: &mut Vec<Problem>) -> Option<u64> {
    let strategy = |members: &Members<'_>, key: &str, problems: &mut Vec<Problem>| {
        members.read(key, STRATEGIES, problems, |value| (&*text(value)? == "reject").then_some(()));
    };
    strategy(found, "overflow_policy", problems);
    let size = found.whole("max_size", 0..=DEEPEST, problems);
    let backpressure = found.object("backpressure", "/backpressure", problems).and_then(|found| {
        found.only(&["max_depth", "max_size_bytes", "strategy", "warning_threshold"], problems);
        for (key, why) in [("max_size_bytes", NO_BYTES), ("warning_threshold", NO_WARNING)] {
            if found.has(key) {
                found.add_problem(key, Problem::with_message("", why), problems);
            }
        }
        strategy(&found, "strategy", problems);
        found.whole("max_depth", 0..=DEEPEST, problems)
    });
    if size.is_some() && backpressure.is_some() {
        let message = "is another way to write backpressure.max_depth; keep one of the two";
        found.add_problem("max_size", Problem::with_message("", message), problems);
    }
    backpressure.or(size).and_then(|depth| u64::try_from(depth).ok())
}

/// A rate as it is returned.
pub(crate) fn rate_json(rate: Rate) -> Value {
    json!({ "limit": rate.limit, "period": format!("PT{}S", rate.period.secs()) })
}
