//! The target of requests, and what a missing answer means.

use crate::harness::call;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};

/// A status and a document; or nothing, if it is unknown whether the request was carried out.
pub(crate) type Reply = Option<(u64, Value)>;

/// No response came, and none will: the server was killed.
pub(crate) struct Gone;

/// Servers under load.
pub(crate) trait Target: Sync {
    /// One request, to any server; fails the test if an answer is missing without a reason.
    fn ask(&self, agent: &ureq::Agent, method: &str, path: &str, body: &Value) -> Result<Reply, Gone>;
}

/// One server, whose end is the end of the load.
pub(crate) struct SingleServer {
    pub(crate) url: String,
    /// Set just before the server is killed: from then on, and only then, answers may be missing.
    pub(crate) killed: AtomicBool,
}

impl SingleServer {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.to_owned(), killed: AtomicBool::new(false) }
    }
}

impl Target for SingleServer {
    fn ask(&self, agent: &ureq::Agent, method: &str, path: &str, body: &Value) -> Result<Reply, Gone> {
        match call(agent, &self.url, method, path, body) {
            Ok((status, answer)) => {
                assert!(status < 500, "{method} {path}: {status} {answer}");
                Ok(Some((status.into(), answer)))
            }
            Err(error) => {
                assert!(self.killed.load(Ordering::SeqCst), "{method} {path}: no answer from a living server: {error}");
                Err(Gone)
            }
        }
    }
}
