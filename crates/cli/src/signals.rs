//! The signals that stop the program: SIGINT, which Ctrl-C sends, and SIGTERM.

use crate::exit::Failed;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The signals so far: how many, and the number of the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signals {
    pub(crate) count: u32,
    pub(crate) last: i32,
}

/// Counts SIGINT and SIGTERM from now on; they no longer end the program.
pub(crate) fn count() -> Result<watch::Receiver<Signals>, Failed> {
    let listen = |kind| signal(kind).map_err(|error| Failed::unreachable(format!("cannot wait for signals: {error}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (sender, receiver) = watch::channel(Signals::default());
    tokio::spawn(async move {
        loop {
            let last = tokio::select! {
                _ = terminate.recv() => SignalKind::terminate(),
                _ = interrupt.recv() => SignalKind::interrupt(),
            };
            sender.send_modify(|signals| *signals = Signals { count: signals.count + 1, last: last.as_raw_value() });
        }
    });
    Ok(receiver)
}

/// Completes when this many signals have arrived.
pub(crate) async fn wait_for(mut signals: watch::Receiver<Signals>, count: u32) -> Signals {
    let reached = signals.wait_for(|signals| signals.count >= count).await.map(|signals| *signals);
    match reached {
        Ok(signals) => signals,
        // The runtime that counted them has ended, and so has every waiting task.
        Err(_) => std::future::pending().await,
    }
}
