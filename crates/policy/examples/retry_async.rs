//! An async call under a policy that is built in code: `cargo run --example retry_async`.

use redrive_policy::{Policy, Retryable};
use std::time::Duration;

#[derive(Debug)]
enum Refusal {
    /// The service is busy and says for how long.
    Busy { retry_after: Duration },
    /// The connection was lost.
    Lost,
}

/// A service that is busy, then unreachable, then well.
struct Service {
    calls: u32,
}

impl Service {
    fn ask(&mut self) -> impl Future<Output = Result<&'static str, Refusal>> + use<> {
        self.calls += 1;
        let call = self.calls;
        async move {
            match call {
                1 => Err(Refusal::Busy { retry_after: Duration::from_millis(50) }),
                2 => Err(Refusal::Lost),
                _ => Ok("the answer"),
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Policy::builder()
        .exponential(Duration::from_millis(20), 2.0)
        .max_delay(Duration::from_secs(1))
        .max_attempts(5)
        .max_elapsed(Duration::from_secs(10))
        .build()?;

    let mut service = Service { calls: 0 };
    let answer = (|| service.ask())
        .retry(&policy)
        .retry_after(|refusal| match refusal {
            Refusal::Busy { retry_after } => Some(*retry_after),
            Refusal::Lost => None,
        })
        .before_retry(|refusal, verdict| {
            let wait = verdict.delay().unwrap_or_default();
            eprintln!("attempt {}: {refusal:?}; the next one in {wait}", verdict.attempt);
        })
        .await;
    match answer {
        Ok(answer) => eprintln!("got {answer}"),
        Err(refusal) => eprintln!("gave up: {refusal:?}"),
    }
    Ok(())
}
