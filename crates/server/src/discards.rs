//! Discarded jobs are logged, with the command that redrives them.

use crate::app::Server;
use redrive_engine::Discarded;
use std::pin::pin;
use std::time::Duration;

/// How soon a discarded job is logged.
const SOON: Duration = Duration::from_secs(1);
/// How often further ones are logged: a queue whose jobs all fail must not fill the disk.
const AGAIN: Duration = Duration::from_secs(30);

impl Server {
    /// Logs jobs that were discarded and are no dead letters, until `stopped` completes.
    pub async fn log_discarded(&self, stopped: impl Future<Output = ()>) {
        let mut stopped = pin!(stopped);
        let mut interval = SOON;
        loop {
            let over = tokio::select! {
                () = &mut stopped => true,
                () = tokio::time::sleep(interval) => false,
            };
            let discarded = self.app.engine.take_discarded();
            interval = if discarded.is_empty() { SOON } else { AGAIN };
            for (group, count) in &discarded {
                let (queue, kind) = (group.queue.as_deref(), group.kind.as_deref());
                tracing::warn!(queue, r#type = kind, jobs = count, "{}", line(group, *count));
            }
            if over {
                return;
            }
        }
    }
}

fn line(group: &Discarded, count: u64) -> String {
    let jobs = if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
    let kept = if count == 1 { "a dead letter" } else { "dead letters" };
    let (which, filter) = match (&group.kind, &group.queue) {
        (Some(kind), Some(queue)) => {
            (format!("of type {kind} in queue {queue}"), format!("--type {kind} --queue {queue}"))
        }
        _ => ("of further types and queues".to_owned(), "--type TYPE".to_owned()),
    };
    let why = group.why;
    format!(
        "{jobs} {which} discarded, not kept as {kept}: {why}; `redrive jobs retry --state discarded {filter}` redrives \
         what is still there"
    )
}
