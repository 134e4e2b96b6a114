//! The only place that waits: it runs the sweeps when they are due.

use crate::{Engine, EngineError};
use redrive_policy::Span;
use std::sync::Arc;
use std::time::Duration;

/// However quiet it is, the sweeper looks this often: clocks step, and other nodes write.
const LONGEST_NAP: Duration = Duration::from_secs(1);
/// How often ended jobs are pruned.
const PRUNE_EVERY: Duration = Duration::from_secs(30);

/// Sweeps and prunes until `stopped` completes. Errors of the store are handed to `report`, and the
/// work goes on at the next turn.
pub async fn run(engine: Arc<Engine>, stopped: impl Future<Output = ()>, report: impl Fn(&EngineError)) {
    tokio::pin!(stopped);
    let mut prune = tokio::time::interval(PRUNE_EVERY);
    loop {
        let nap = match turn(&engine).await {
            Ok(nap) => nap,
            Err(error) => {
                report(&error);
                LONGEST_NAP
            }
        };
        tokio::select! {
            () = &mut stopped => return,
            () = tokio::time::sleep(nap) => {}
            () = engine.earlier.notified() => {}
            _ = prune.tick() => {
                if let Err(error) = engine.prune().await {
                    report(&error);
                }
            }
        }
    }
}

/// One sweep; answers how long nothing is due.
async fn turn(engine: &Engine) -> Result<Duration, EngineError> {
    engine.sweep().await?;
    let next = engine.next_sweep().await?;
    let nap = next.map_or(Span::MAX, |next| next.since(engine.now()));
    Ok(Duration::from(nap).min(LONGEST_NAP))
}
