//! Notifications between nodes, by `NOTIFY`: that jobs are available, or that runs have something to do. They are sent
//! outside of the transactions that they are about, because a notification in a transaction serialises all commits of
//! the database. They may get lost; so listeners are notified periodically that anything may have happened.

use super::db_error::DbError;
use super::options::Options;
use super::pool::reach;
use super::text;
use crate::Group;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, Client};

/// Notifications of this span are sent together.
const GATHER: Duration = Duration::from_millis(2);
/// How often [`Change::Nothing`] is reported, with a connection that listens and without one.
const CHECK_LISTENING: Duration = Duration::from_secs(5);
const CHECK_DEAF: Duration = Duration::from_secs(1);
/// How long the connection may be silent before it is closed.
const SILENCE: Duration = Duration::from_secs(15);
/// PostgreSQL takes 7,999 bytes.
const LONGEST: usize = 7_000;
/// Stands for a queue that was paused or resumed. No line about jobs begins like that.
const PAUSES: &str = "!";
/// Stands for runs that have something to do.
const RUNS: &str = "~";
const ANYTHING: &str = "*";
/// The payload of the SQL function that enqueues jobs. Older nodes take it for anything.
const INBOX: &str = "@";

/// Begins a line about a group that may allow runs again. Older nodes take it for anything.
const OPENED: &str = "~";

/// What happened on another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This many jobs of a queue became available.
    Available(Arc<str>, usize),
    /// This many runs of a group have ended, which has limits.
    Opened(Group, usize),
    /// A queue was paused or resumed.
    Pauses,
    /// Runs have got messages, timers, or their first step to take.
    Runs,
    /// An application has enqueued a job in its own transaction.
    Inbox,
    /// Anything may have happened: notifications may have been lost.
    Anything,
    /// No notification came for some seconds.
    Nothing,
}

/// Notifications that were not sent yet.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    /// False where the engine does not listen; then this node sends no notifications either.
    on: AtomicBool,
    notifications: Mutex<Notifications>,
    notified: Notify,
}

#[derive(Debug, Default)]
struct Notifications {
    available: HashMap<Arc<str>, usize>,
    opened: HashMap<Group, usize>,
    pauses: bool,
    /// Something that has no line of its own.
    anything: bool,
    runs: bool,
}

impl Notifier {
    /// So many jobs of a queue became available.
    pub(super) fn available(&self, queue: &Arc<str>, jobs: usize) {
        if self.on.load(Ordering::Acquire) {
            let mut notifications = self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
            *notifications.available.entry(Arc::clone(queue)).or_default() += jobs;
            drop(notifications);
            self.notified.notify_one();
        }
    }

    /// A run of a group that has limits has ended.
    pub(super) fn opened(&self, group: Group) {
        if self.on.load(Ordering::Acquire) {
            let mut notifications = self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
            *notifications.opened.entry(group).or_default() += 1;
            drop(notifications);
            self.notified.notify_one();
        }
    }

    /// A queue was paused or resumed.
    pub(super) fn pauses(&self) {
        if self.on.load(Ordering::Acquire) {
            self.notifications.lock().unwrap_or_else(PoisonError::into_inner).pauses = true;
            self.notified.notify_one();
        }
    }

    /// Which runs listen has changed, or something else that is rare.
    pub(super) fn anything(&self) {
        if self.on.load(Ordering::Acquire) {
            self.notifications.lock().unwrap_or_else(PoisonError::into_inner).anything = true;
            self.notified.notify_one();
        }
    }

    /// Runs have something to do. The node that has written it does it; others look after a while.
    pub(super) fn runs(&self) {
        if self.on.load(Ordering::Acquire) {
            self.notifications.lock().unwrap_or_else(PoisonError::into_inner).runs = true;
            self.notified.notify_one();
        }
    }

    fn take(&self) -> Notifications {
        std::mem::take(&mut *self.notifications.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Notifications {
    /// One line for each queue: the number of jobs, and the queue.
    fn written(&self) -> String {
        let mut lines: Vec<String> =
            self.available.iter().map(|(queue, jobs)| format!("{jobs} {}", text::stored(queue))).collect();
        let opened = self.opened.iter();
        lines.extend(opened.map(|(group, runs)| format!("{OPENED}{runs} {}", text::stored(&group.to_string()))));
        lines.extend(self.pauses.then(|| PAUSES.to_owned()));
        lines.extend(self.runs.then(|| RUNS.to_owned()));
        let written = lines.join("\n");
        // A queue with a line break in its name would be read as two.
        let readable = self.available.keys().all(|queue| !queue.contains('\n'))
            && self.opened.keys().all(|group| !group.to_string().contains('\n'));
        if readable && !self.anything && written.len() <= LONGEST { written } else { ANYTHING.to_owned() }
    }
}

fn read(line: &str) -> Change {
    let counted = |line: &str| {
        let (count, name) = line.split_once(' ')?;
        Some((count.parse().ok()?, text::read(name).into_owned()))
    };
    if let Some((runs, name)) = line.strip_prefix(OPENED).and_then(counted) {
        return Group::parse(&name).map_or(Change::Anything, |group| Change::Opened(group, runs));
    }
    let jobs = counted(line);
    match (line, jobs) {
        (PAUSES, _) => Change::Pauses,
        (RUNS, _) => Change::Runs,
        (INBOX, _) => Change::Inbox,
        (_, Some((jobs, queue))) => Change::Available(queue.into(), jobs),
        // Also the lines of newer versions.
        _ => Change::Anything,
    }
}

/// Notifies other nodes of what happens here, and `heard` of what happens there, until the store is dropped.
pub(super) async fn run(options: Options, notifier: Weak<Notifier>, heard: impl Fn(Change)) {
    if let Some(notifier) = notifier.upgrade() {
        notifier.on.store(true, Ordering::Release);
    }
    while notifier.strong_count() > 0 {
        // Notifications that were sent while the connection was down are lost, and so are those of this node.
        if let Ok(mut line) = heard_of(Line::open(&options)).await {
            heard(Change::Anything);
            let _ = line.serve(&notifier, &heard).await;
        }
        tokio::time::sleep(CHECK_DEAF).await;
        heard(Change::Nothing);
    }
}

/// The answer of the connection, or an error after the timeout.
async fn heard_of<T>(answer: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    let late = || DbError::Silent(format!("PostgreSQL gave no answer for {} s", SILENCE.as_secs()));
    tokio::time::timeout(SILENCE, answer).await.map_err(|_| late())?
}

/// The connection that listens and notifies.
struct Line {
    client: Client,
    heard: mpsc::UnboundedReceiver<tokio_postgres::Notification>,
    channel: String,
    own: i32,
}

impl Line {
    async fn open(options: &Options) -> Result<Self, DbError> {
        let mut config = options.config.clone();
        config.application_name(format!("redrive listener {}", options.schema));
        let (client, mut connection) = reach(&config, &options.tls).await?;
        let (sender, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message {
                    // The receiver is gone: the connection ends with its client.
                    let _ = sender.send(notification);
                }
            }
        });
        let channel = format!("redrive_{}", options.schema);
        // Notifications may be lost, and need no flush.
        client.batch_execute(&format!("SET synchronous_commit = off; LISTEN {channel}")).await?;
        let own = client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
        Ok(Self { client, heard, channel, own })
    }

    async fn serve(&mut self, notifier: &Weak<Notifier>, heard: &impl Fn(Change)) -> Result<(), DbError> {
        let tell = heard_of(async { Ok(self.client.prepare("SELECT pg_notify($1, $2)").await?) }).await?;
        let mut check = tokio::time::interval(CHECK_LISTENING);
        loop {
            let Some(stored) = notifier.upgrade() else { return Ok(()) };
            tokio::select! {
                said = self.heard.recv() => {
                    let Some(said) = said else { return Ok(()) };
                    if said.process_id() != self.own {
                        said.payload().lines().map(read).for_each(heard);
                    }
                }
                () = stored.notified.notified() => {
                    tokio::time::sleep(GATHER).await;
                    let notifications = stored.take().written();
                    heard_of(async { Ok(self.client.execute(&tell, &[&self.channel, &notifications]).await?) }).await?;
                }
                _ = check.tick() => {
                    heard(Change::Nothing);
                    // A dead connection without traffic would go unnoticed.
                    heard_of(async { Ok(self.client.batch_execute("").await?) }).await?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_read_as_they_were_written() {
        let notifier = Notifier::default();
        notifier.available(&"nobody listens".into(), 1);
        notifier.on.store(true, Ordering::Release);
        for queue in ["a", "a b", "a", "\0"] {
            notifier.available(&queue.into(), 1);
        }
        notifier.opened(Group::Key("stripe api".into()));
        notifier.pauses();
        notifier.runs();
        let mut heard: Vec<Change> = notifier.take().written().lines().map(read).collect();
        heard.sort_by_key(|change| format!("{change:?}"));
        let available = |queue: &str, jobs| Change::Available(queue.into(), jobs);
        let group = Group::Key("stripe api".into());
        let opened = Change::Opened(group, 1);
        let [a, b, zero] = [available("a", 2), available("a b", 1), available("\0", 1)];
        let mut told = [a, b, zero, opened, Change::Pauses, Change::Runs];
        told.sort_by_key(|change| format!("{change:?}"));
        assert_eq!(heard, told);
    }

    #[test]
    fn what_cannot_be_told_in_short_may_be_anything() {
        let notifier = Notifier { on: AtomicBool::new(true), ..Notifier::default() };
        notifier.available(&"a\nb".into(), 1);
        assert_eq!(read(&notifier.take().written()), Change::Anything);
        for number in 0..2_000 {
            notifier.available(&format!("queue {number}").into(), 1);
        }
        assert_eq!(read(&notifier.take().written()), Change::Anything);
        assert_eq!(read("something new"), Change::Anything);
    }
}
