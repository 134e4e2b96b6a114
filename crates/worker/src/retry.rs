//! Retry policies of jobs and workers.

use crate::ClientError;
use redrive_policy::Policy;
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

/// The retry policy of a job or a worker: written in one of five dialects, and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    pub(crate) dialect: Dialect,
    pub(crate) document: Value,
    pub(crate) policy: Policy,
}

/// The order in which the dialects are tried for a policy that was built in Rust.
const ORDER: [Dialect; 5] = [Dialect::Ojs, Dialect::TaskHarbor, Dialect::Azolla, Dialect::Exosphere, Dialect::Mwl];

impl Retry {
    /// A policy that was built in Rust, written in the first dialect that can express all of it.
    ///
    /// # Errors
    /// No dialect can express it without a loss; the message names what is lost in the nearest.
    pub fn policy(policy: &Policy) -> Result<Self, ClientError> {
        let mut nearest: Option<(Dialect, Vec<String>)> = None;
        for dialect in ORDER {
            let writing = dialect.write(policy);
            if writing.lost.is_empty() {
                return Self::written(dialect, writing.value);
            }
            if nearest.as_ref().is_none_or(|(_, lost)| writing.lost.len() < lost.len()) {
                let lost = writing.lost.iter().map(|loss| format!("{}: {}", loss.path, loss.message)).collect();
                nearest = Some((dialect, lost));
            }
        }
        let (dialect, lost) = nearest.unwrap_or((Dialect::Ojs, Vec::new()));
        let lost = lost.join("; ");
        Err(ClientError::Invalid(format!(
            "no dialect can express this policy; the nearest is {dialect}, which loses: {lost}. Leave that \
             part out, or write the policy in a dialect yourself with Retry::written"
        )))
    }

    /// A policy as it stands in a file.
    ///
    /// # Errors
    /// Every problem of the policy.
    pub fn written(dialect: Dialect, document: Value) -> Result<Self, ClientError> {
        let reading = dialect.read(&document);
        let reading = reading
            .map_err(|problems| ClientError::Invalid(format!("the {dialect} policy is not valid: {problems}")))?;
        Ok(Self { dialect, document, policy: reading.policy })
    }

    /// TaskHarbor's split, for a job: the worker decides on the delays, and the job has only this limit. `None`
    /// leaves the limit to the worker too.
    ///
    /// # Errors
    /// Never for a limit above zero.
    pub fn by_worker(max_attempts: Option<u32>) -> Result<Self, ClientError> {
        let document = max_attempts.map_or_else(|| json!({}), |limit| json!({ "job": { "max_attempts": limit } }));
        Self::written(Dialect::TaskHarbor, document)
    }

    /// No retries: the first failure is the last. For a worker, TaskHarbor's `WithRetryPolicy(nil)`.
    ///
    /// # Errors
    /// Never.
    pub fn none() -> Result<Self, ClientError> {
        Self::written(Dialect::TaskHarbor, json!({ "policy": null }))
    }

    /// The policy itself.
    #[must_use]
    pub const fn as_policy(&self) -> &Policy {
        &self.policy
    }

    /// The form in which it is sent: the object of OJS, or the dialect and its document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self.dialect {
            Dialect::Ojs => self.document.clone(),
            dialect => json!({ "dialect": dialect.name(), "policy": self.document }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_policy::Disposition;
    use std::time::Duration;

    #[test]
    fn a_built_policy_is_sent_in_a_dialect_that_expresses_all_of_it() {
        let policy = Policy::builder().fixed(Duration::from_secs(5)).max_attempts(4).build().unwrap();
        let retry = Retry::policy(&policy).unwrap();
        assert_eq!(retry.dialect, Dialect::Exosphere, "fail is not what OJS does in the end");
        assert_eq!(retry.to_json()["dialect"], "exosphere");
        let policy = Policy::builder().ojs_jitter().on_stop(Disposition::DeadLetter).build().unwrap();
        assert_eq!(Retry::policy(&policy).unwrap().dialect, Dialect::Ojs);
    }

    #[test]
    fn an_invalid_document_is_refused_before_anything_is_sent() {
        let error = Retry::written(Dialect::Ojs, json!({ "max_attempts": "3" })).unwrap_err();
        assert!(error.to_string().contains("/max_attempts"), "{error}");
    }
}
