//! What subscriptions tell of themselves.

use super::delivery::subscription_id;
use redrive_engine::Effect;
use redrive_store::{OtherEvent, RunId};
use serde_json::{Value, json};

/// A subscription was created or deleted, or the server disabled it.
pub(super) fn told(run: RunId, event_type: &str, more: &[(&str, Value)]) -> Effect {
    let id = subscription_id(run);
    let mut data = json!({ "subscription_id": id });
    for (key, value) in more {
        data[*key] = value.clone();
    }
    let data = data.to_string().into_bytes().into();
    let event = OtherEvent { event_type: event_type.into(), subject: id.into(), queue: None, job_type: None, data };
    Effect::Emit { event, with: None }
}
