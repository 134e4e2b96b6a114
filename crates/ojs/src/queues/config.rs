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
}

/// Members of a configuration that this server does not honour, and what to do instead.
const ELSEWHERE: [(&str, &str); 13] = [
    ("backpressure", "bounds on the depth of queues are not supported yet"),
    ("max_size", "bounds on the depth of queues are not supported yet"),
    ("max_size_bytes", "a bound on bytes is not supported"),
    ("overflow_policy", "bounds on the depth of queues are not supported yet"),
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

impl QueueConfig {
    /// Reads the configuration of a queue. What is not honoured is refused.
    #[must_use]
    pub fn read(found: &Members<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut known = vec!["concurrency", "rate_limit", "throttle"];
        for (key, why) in ELSEWHERE {
            known.push(key);
            if found.has(key) {
                found.add_problem(key, Problem::with_message("", why), problems);
            }
        }
        found.only(&known, problems);
        let mut bounds = bounds(found, ["/rate", "/throttle"], problems);
        bounds.rate = found.object("rate_limit", "/rate_limit", problems).and_then(|rate| rate_of(&rate, problems));
        Self { bounds }
    }

    /// What a store has of it.
    #[must_use]
    pub const fn of(setting: &Setting) -> Self {
        Self { bounds: setting.bounds }
    }

    /// As the store takes it; none where nothing is configured.
    #[must_use]
    pub fn setting(&self) -> Option<Setting> {
        (!self.bounds.is_empty()).then(|| Setting { bounds: self.bounds, ..Setting::default() })
    }

    /// As it is returned: only what is configured.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut config = Map::new();
        let Bounds { concurrency, rate, throttle } = self.bounds;
        config.extend(concurrency.map(|most| ("concurrency".to_owned(), most.into())));
        config.extend(rate.map(|rate| ("rate_limit".to_owned(), rate_json(rate))));
        config.extend(throttle.map(|throttle| ("throttle".to_owned(), rate_json(throttle))));
        Value::Object(config)
    }
}

/// A rate as it is returned.
pub(crate) fn rate_json(rate: Rate) -> Value {
    json!({ "limit": rate.limit, "period": format!("PT{}S", rate.period.secs()) })
}
