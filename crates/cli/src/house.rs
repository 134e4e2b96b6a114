//! Where the server's jobs live: the store, the clock that goes with it, and its end.

use crate::config::StoreLocation;
use crate::exit::Failed;
use crate::log;
use redrive_engine::{Clock, Engine, Step, SystemClock, Wall};
use redrive_policy::Moment;
use redrive_server::LocalStore;
use redrive_store::embedded::{Access, Notice, Opened, Options, Repair};
use redrive_store::postgres::{Change, DatabaseClock};
use redrive_store::{Embedded, Postgres, State, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open store.
pub(crate) enum House {
    Folder(Arc<Embedded>, PathBuf, Arc<SystemClock>),
    Postgres(Arc<Postgres>),
}

/// The clock of all nodes on one database.
struct ClusterClock(Arc<DatabaseClock>);

impl Clock for ClusterClock {
    fn now(&self) -> Moment {
        self.0.now()
    }

    fn wall(&self) -> Wall {
        self.0.wall()
    }

    fn look(&self) -> Option<Step> {
        self.0.stepped()
    }
}

impl House {
    /// Opens the store; the lines say to people what was found.
    pub(crate) async fn open(place: &StoreLocation) -> Result<(Self, Vec<String>), Failed> {
        match place {
            StoreLocation::Folder(data) => open_folder(data),
            StoreLocation::Postgres(options) => {
                let store = Postgres::open((**options).clone()).await.map_err(Failed::unreachable)?;
                let line =
                    format!("store: PostgreSQL, {options}; every answer waits until its transaction is committed");
                Ok((Self::Postgres(Arc::new(store)), vec![line]))
            }
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Folder(store, ..) => Arc::clone(store) as _,
            Self::Postgres(store) => Arc::clone(store) as _,
        }
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Folder(.., clock) => Arc::clone(clock) as _,
            Self::Postgres(store) => Arc::new(ClusterClock(store.clock())),
        }
    }

    /// Lets the engine hear what other nodes on the same store do.
    pub(crate) fn connect(&self, engine: &Arc<Engine>) {
        let Self::Postgres(store) = self else { return };
        let (engine, runtime) = (Arc::clone(engine), tokio::runtime::Handle::current());
        store.listen(move |change| match change {
            Change::Available(queue, jobs) => engine.notified_available(&queue, jobs),
            Change::Inbox => engine.notified_inbox(),
            Change::Nothing => engine.notified_anything(),
            // A pause or its end may be among the news that were lost.
            Change::Pauses | Change::Anything => {
                let engine = Arc::clone(&engine);
                runtime.spawn(async move {
                    if let Err(error) = engine.recall_pauses().await {
                        log::error(format_args!("cannot read which queues are closed: {error}"));
                    }
                    engine.notified_anything();
                });
            }
        });
    }

    /// Tells what happens to the store while it runs.
    pub(crate) fn watch(&self, tell: impl Fn(&Notice) + Send + Sync + 'static) {
        match self {
            Self::Folder(store, ..) => store.watch(tell),
            Self::Postgres(store) => store.watch_unreadable(|id, why| {
                log::error(format_args!(
                    "job {id} cannot be read and was set aside: {why}; `redrive store unreadable` lists such jobs"
                ));
            }),
        }
    }

    /// The store in a folder, which the server looks after itself, and where its backups go.
    pub(crate) fn local(&self, backups: Option<PathBuf>) -> Option<LocalStore> {
        match self {
            Self::Folder(store, ..) => Some(LocalStore::new(Arc::clone(store), backups)),
            Self::Postgres(_) => None,
        }
    }

    /// What programs are told about the store.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Folder(..) => "embedded",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Closes the store; what was acknowledged is safe already, this only spares the next start work.
    pub(crate) async fn close(self) -> Result<(), Failed> {
        let Self::Folder(store, data, _) = self else {
            log::info("stopped");
            return Ok(());
        };
        let closed = tokio::task::spawn_blocking(move || store.close()).await;
        let closed = closed.map_err(|error| Failed::unreachable(format!("cannot close the store: {error}")))?;
        closed.map_err(Failed::unreachable)?;
        log::info(format_args!("stopped; the store in {} is closed", data.display()));
        Ok(())
    }
}

fn open_folder(data: &Path) -> Result<(House, Vec<String>), Failed> {
    let (store, opened) = Embedded::open(data, Options::default()).map_err(Failed::unreachable)?;
    let store_line = format!("store: {}; every answer waits until its write is flushed to disk", data.display());
    let mut lines = vec![store_line, found(&opened)];
    lines.extend(opened.repairs.iter().map(repaired));
    lines.extend(opened.access.iter().map(closed_to_others));
    if !opened.confirmed {
        lines.push(
            "WARNING: the high-water mark of the store was missing or unreadable, so that a lost end of the log would \
             not have been noticed; a new one was made"
                .to_owned(),
        );
    }
    let store = Arc::new(store);
    let clock = Arc::new(SystemClock::of(&store, &opened));
    Ok((House::Folder(store, data.to_owned(), clock), lines))
}

/// What the store held when the server started, in a line.
fn found(opened: &Opened) -> String {
    let present = State::ALL.into_iter().filter(|state| opened.count(*state) > 0);
    let mut parts: Vec<String> = present.map(|state| format!("{} {state}", opened.count(state))).collect();
    if opened.dead > 0 {
        parts.push(format!("{} of them dead letters", opened.dead));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let total: usize = opened.jobs.iter().sum();
    let ending = match (opened.clean, opened.confirmed) {
        (true, _) => "",
        (false, true) => "; the store was not closed cleanly; its log is complete up to the high-water mark",
        (false, false) => "; the store was not closed cleanly",
    };
    format!("found {total} jobs{parts} in {} ms{ending}", opened.took.as_millis())
}

/// What was done about a file or a folder that other users had access to, in a line.
fn closed_to_others(access: &Access) -> String {
    let path = access.path.display();
    match (&access.error, access.mode) {
        (Some(error), _) => format!(
            "WARNING: other users of this machine may be able to read {path}, and that cannot be changed: {error}; \
             set its permissions yourself: 0700 for the folder, 0600 for its files"
        ),
        (None, mode) => {
            let mode = mode.unwrap_or_default();
            format!("{path} was open to other users of this machine (permissions {mode:04o}); now only to its owner")
        }
    }
}

/// What was done about something that a crash had left, in a line.
fn repaired(repair: &Repair) -> String {
    match repair {
        Repair::CutOff { file, offset, bytes } => {
            let file = file.display();
            format!("cut off {bytes} bytes of {file} at {offset}: a write that was never acknowledged")
        }
        Repair::Removed(file) => format!("removed {}, which a crash had left", file.display()),
    }
}
