//! A blocking call under a policy that is data: `cargo run --example retry_from_file`.
//!
//! The policy is in the words of Open Job Spec. Which errors are worth a retry stands in it, and
//! not in the code.

use redrive_policy::dialect::Dialect;
use redrive_policy::{BlockingRetryable, Failure, wire};
use std::fmt;

const POLICY: &str = r#"{
    "max_attempts": 4,
    "initial_interval": "PT0.02S",
    "max_interval": "PT1S",
    "non_retryable_errors": ["config.*"]
}"#;

#[derive(Debug)]
enum StartError {
    PortTaken,
    UnknownOption,
}

impl StartError {
    /// The name by which policies know this error.
    fn type_name(&self) -> &'static str {
        match self {
            Self::PortTaken => "network.port_taken",
            Self::UnknownOption => "config.unknown_option",
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Dialect::Ojs.read(&wire::parse_json(POLICY)?)?.policy;
    let mut errors = [StartError::PortTaken, StartError::PortTaken, StartError::UnknownOption].into_iter();
    let start = || errors.next().map_or(Ok("started"), Err);

    let result = start
        .retry_blocking(&policy)
        .classify(|error: &StartError| Failure::of_type(error.type_name()))
        .before_retry(|error, verdict| {
            let wait = verdict.delay().unwrap_or_default();
            eprintln!("attempt {}: {error}; the next one in {wait}", verdict.attempt);
        })
        .on_stop(|error, verdict| eprintln!("attempt {}: {error}; {:?}", verdict.attempt, verdict.outcome))
        .call();
    eprintln!("{}", result.unwrap_or("not started"));
    Ok(())
}
