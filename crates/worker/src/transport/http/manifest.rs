//! What a server can do beyond the specification.

use super::ANSWER;
use super::call::Caller;
use crate::ClientError;
use serde::Deserialize;
use serde_json::Value;

/// The extensions that matter to a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extensions {
    pub(super) long_poll: bool,
    pub(super) settle_many: bool,
    pub(super) lease_tokens: bool,
    pub(super) snooze: bool,
    pub(super) retry_after: bool,
    pub(super) worker_policies: bool,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    extensions: Value,
}

impl Extensions {
    /// Asks a server. One that has no manifest has no extensions.
    pub(super) async fn ask(caller: &Caller) -> Result<Self, ClientError> {
        match caller.get("/ojs/manifest", ANSWER).await {
            Ok(answer) => {
                let manifest: Manifest = serde_json::from_slice(&answer)
                    .map_err(|error| ClientError::Garbled(format!("this is not a server of Open Job Spec: {error}")))?;
                Ok(Self::named(&manifest.extensions))
            }
            Err(ClientError::Refused(refused)) if refused.status == 404 => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// From the manifest's list, of names or of objects with a `uri`.
    fn named(list: &Value) -> Self {
        let names: Vec<&str> = list
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|item| item.as_str().or_else(|| item["uri"].as_str()))
            .filter_map(|name| name.strip_prefix("urn:redrive:ext:"))
            .collect();
        let has = |name| names.contains(&name);
        Self {
            long_poll: has("long-poll"),
            settle_many: has("settle-many"),
            lease_tokens: has("lease-tokens"),
            snooze: has("snooze"),
            retry_after: has("retry-after"),
            worker_policies: has("worker-policies"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_named_is_used() {
        let list = json!(["urn:redrive:ext:snooze", { "uri": "urn:redrive:ext:long-poll" }, "urn:other:settle-many"]);
        let extensions = Extensions { snooze: true, long_poll: true, ..Extensions::default() };
        assert_eq!(Extensions::named(&list), extensions);
        assert_eq!(Extensions::named(&json!({ "snooze": true })), Extensions::default());
    }
}
