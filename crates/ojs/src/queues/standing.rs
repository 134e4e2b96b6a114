//! How limited groups stand, as it is returned.

use super::config::rate_json;
use crate::time::rfc3339;
use redrive_store::{Group, Standing};
use serde_json::{Map, Value, json};

/// How a group stands.
#[must_use]
pub fn standing_json(standing: &Standing) -> Value {
    let mut out = group_json(&standing.group);
    let bounds = &standing.bounds;
    if let Some(most) = bounds.concurrency {
        let free = (most as usize).saturating_sub(standing.active);
        let concurrency = json!({ "limit": most, "active": standing.active, "available": free });
        out.insert("concurrency".to_owned(), concurrency);
    }
    if let Some(rate) = bounds.rate {
        let mut rate = rate_json(rate);
        rate["current_count"] = standing.started.into();
        if let Some(opens) = standing.opens {
            rate["window_resets_at"] = rfc3339(opens).into();
        }
        out.insert("rate".to_owned(), rate);
    }
    if let Some(throttle) = bounds.throttle {
        let mut throttle = rate_json(throttle);
        if let Some(opens) = standing.opens {
            throttle["next_allowed_at"] = rfc3339(opens).into();
        }
        out.insert("throttle".to_owned(), throttle);
    }
    if let Some(held) = standing.held {
        out.insert("held_until".to_owned(), rfc3339(held).into());
    }
    if let Some(setting) = &standing.setting {
        let until = setting.until.map(rfc3339);
        out.insert("override".to_owned(), json!({ "expires_at": until }));
    }
    out.insert("active_count".to_owned(), standing.active.into());
    out.insert("waiting_count".to_owned(), standing.waiting.into());
    Value::Object(out)
}

/// The name of a group.
#[must_use]
pub fn group_json(group: &Group) -> Map<String, Value> {
    let (scope, name) = match group {
        Group::Key(name) => ("key", name),
        Group::Queue(name) => ("queue", name),
        Group::Kind(name) => ("type", name),
    };
    let members = [("key", &**name), ("scope", scope)];
    members.into_iter().map(|(key, text)| (key.to_owned(), text.into())).collect()
}
