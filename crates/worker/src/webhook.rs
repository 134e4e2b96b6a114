//! What is asked for with a webhook, and what is known of one.

use crate::Retry;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What a webhook sends, and how. What is not set stays as it is, or as it is by default.
#[derive(Clone, Debug, Default)]
pub struct WebhookSettings {
    members: Map<String, Value>,
}

impl WebhookSettings {
    /// Nothing is set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another address, for a webhook that exists: `https://HOST/PATH`.
    #[must_use]
    pub fn url(self, url: impl Into<String>) -> Self {
        self.set("url", url.into().into())
    }

    /// Other types of events, for a webhook that exists.
    #[must_use]
    pub fn events<T: Into<String>>(self, types: impl IntoIterator<Item = T>) -> Self {
        self.set("events", texts(types))
    }

    /// Only events of these queues.
    #[must_use]
    pub fn queues<T: Into<String>>(self, queues: impl IntoIterator<Item = T>) -> Self {
        self.filter("queues", texts(queues))
    }

    /// Only events of jobs of these types.
    #[must_use]
    pub fn job_types<T: Into<String>>(self, types: impl IntoIterator<Item = T>) -> Self {
        self.filter("job_types", texts(types))
    }

    /// How long the endpoint has for its answer: from five seconds to a minute, by default thirty seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set("timeout_ms", u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into())
    }

    /// The policy by which deliveries are retried.
    #[must_use]
    pub fn retry(self, retry: &Retry) -> Self {
        self.set("retry", retry.to_json())
    }

    /// What it is for.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        self.set("metadata", json!({ "description": text.into() }))
    }

    fn set(mut self, key: &str, value: Value) -> Self {
        self.members.insert(key.to_owned(), value);
        self
    }

    fn filter(mut self, key: &str, value: Value) -> Self {
        let filter = self.members.entry("filter").or_insert_with(|| json!({}));
        filter[key] = value;
        self
    }

    pub(crate) fn document(self) -> Value {
        self.members.into()
    }
}

fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
    texts.into_iter().map(Into::into).collect::<Vec<String>>().into()
}

/// What is known of a webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookInfo(Value);

impl WebhookInfo {
    pub(crate) const fn new(document: Value) -> Self {
        Self(document)
    }

    /// The id of the subscription.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0["id"].as_str().unwrap_or_default()
    }

    /// Where it sends events.
    #[must_use]
    pub fn url(&self) -> &str {
        self.0["url"].as_str().unwrap_or_default()
    }

    /// The types of events, and patterns.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.0["events"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether it sends them: it may be paused, or disabled by the server.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.0["active"] == true
    }

    /// Why the server has disabled it, where it has.
    #[must_use]
    pub fn disabled_reason(&self) -> Option<&str> {
        self.0["disabled_reason"].as_str()
    }

    /// The secret that deliveries are signed with. Only the answers to a subscription and to a rotation have it.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        self.0["secret"].as_str()
    }

    /// How many deliveries have been answered with success.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.0["deliveries"]["delivered"].as_u64().unwrap_or(0)
    }

    /// How many deliveries have not ended.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.0["deliveries"]["outstanding"].as_u64().unwrap_or(0)
    }

    /// How many deliveries were given up.
    #[must_use]
    pub fn dead(&self) -> u64 {
        self.0["deliveries"]["dead"].as_u64().unwrap_or(0)
    }

    /// Everything that the server reports; the secret is in it where the answer has it.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }
}

/// What came of a test of a webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookTest(Value);

impl WebhookTest {
    pub(crate) const fn new(document: Value) -> Self {
        Self(document)
    }

    /// Whether the endpoint answered with success.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.0["success"] == true
    }

    /// The status of its answer, where there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0["status_code"].as_u64().and_then(|status| u16::try_from(status).ok())
    }

    /// Why there was no answer.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.0["error"].as_str()
    }

    /// Everything that the server reports.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }
}

/// What is known of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryInfo(Value);

impl DeliveryInfo {
    pub(crate) const fn new(document: Value) -> Self {
        Self(document)
    }

    /// Its id, the same for every attempt.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0["id"].as_str().unwrap_or_default()
    }

    /// The subscription that it belongs to.
    #[must_use]
    pub fn subscription_id(&self) -> &str {
        self.0["subscription_id"].as_str().unwrap_or_default()
    }

    /// How far it is: `delivered`, `dead`, `cancelled`, `retrying`, `sending` or `waiting`.
    #[must_use]
    pub fn status(&self) -> &str {
        self.0["status"].as_str().unwrap_or_default()
    }

    /// The type of the event that it carries.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.0["event_type"].as_str().unwrap_or_default()
    }

    /// How often it was sent.
    #[must_use]
    pub fn attempts(&self) -> u64 {
        self.0["attempts"].as_u64().unwrap_or(0)
    }

    /// Everything that the server reports, without the event.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }
}
