//! An open store with its clock, and the engine on it: what a program needs to be a node.

use crate::{Clock, Engine, EngineError, Program, Randomness, RunLimits, Settings, SystemClock};
use redrive_store::embedded::{Embedded, OpenError, Opened, Options};
use redrive_store::{Store, StoreError, WriteObserver};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where the jobs of an engine are stored.
#[non_exhaustive]
pub enum Backend {
    /// A folder of this machine, for this process alone.
    Folder {
        /// The store.
        store: Arc<Embedded>,
        /// The clock of this process.
        clock: Arc<SystemClock>,
    },
    /// A database that any number of nodes share. It brings the clock of all of them.
    #[cfg(feature = "postgres")]
    Postgres(Arc<redrive_store::Postgres>),
}

impl Backend {
    /// Opens a store in a folder, which is created where there is none. The second value says what was found. This
    /// blocks while the log is read.
    ///
    /// # Errors
    /// The folder cannot be used: it is damaged, of a newer version, or open elsewhere.
    pub fn open_folder(path: impl AsRef<Path>) -> Result<(Self, Opened), OpenError> {
        let (store, opened) = Embedded::open(path, Options::default())?;
        let store = Arc::new(store);
        let clock = Arc::new(SystemClock::of(&store, &opened));
        Ok((Self::Folder { store, clock }, opened))
    }

    /// Opens a store on PostgreSQL. It lives on the current runtime of tokio.
    ///
    /// # Errors
    /// As for [`redrive_store::Postgres::open`].
    #[cfg(feature = "postgres")]
    pub async fn open_postgres(options: redrive_store::postgres::Options) -> Result<Self, StoreError> {
        Ok(Self::Postgres(Arc::new(redrive_store::Postgres::open(options).await?)))
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Folder { store, .. } => Arc::clone(store) as _,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Arc::clone(store) as _,
        }
    }

    /// The clock by which its times are measured.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Folder { clock, .. } => Arc::clone(clock) as _,
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.clock() as _,
        }
    }

    /// Lets `observer` learn how the store writes from now on. Only the first one counts.
    pub fn observe(&self, observer: Arc<dyn WriteObserver>) {
        match self {
            Self::Folder { store, .. } => store.observe(observer),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.observe(observer),
        }
    }

    /// Its name for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "embedded",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "postgres",
        }
    }

    /// Whether applications can enqueue jobs in their own transactions, so that the engine has an inbox to drain.
    #[must_use]
    pub const fn has_inbox(&self) -> bool {
        match self {
            Self::Folder { .. } => false,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
        }
    }

    /// An engine on it with these programs, which knows which queues are paused and learns what other nodes do. To be
    /// called once.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn engine(
        &self,
        randomness: Arc<dyn Randomness>,
        settings: Settings,
        programs: Vec<Arc<dyn Program>>,
    ) -> Result<Arc<Engine>, EngineError> {
        let engine = Engine::new(self.store(), self.clock(), randomness, settings);
        let engine = Arc::new(engine.with_programs(programs, RunLimits::default()));
        engine.recall_pauses().await?;
        engine.recall_limits().await?;
        engine.recall_maintenance().await?;
        #[cfg(feature = "postgres")]
        if let Self::Postgres(store) = self {
            connect(store, &engine);
        }
        Ok(engine)
    }

    /// Closes the store. What was acknowledged is durable already; this saves the next start some work.
    ///
    /// # Errors
    /// The last writes failed.
    pub async fn close(&self) -> Result<(), StoreError> {
        match self {
            Self::Folder { store, .. } => {
                let store = Arc::clone(store);
                let closed = tokio::task::spawn_blocking(move || store.close()).await;
                closed.unwrap_or_else(|error| Err(StoreError::Broken(format!("cannot close the store: {error}"))))
            }
            // The connections end with the last user of the store.
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(()),
        }
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Backend").field(&self.name()).finish()
    }
}

/// Passes notifications of other nodes to the engine, for as long as it lives.
#[cfg(feature = "postgres")]
fn connect(store: &redrive_store::Postgres, engine: &Arc<Engine>) {
    use redrive_store::postgres::Change;
    let (engine, runtime) = (Arc::downgrade(engine), tokio::runtime::Handle::current());
    store.listen(move |change| {
        let Some(engine) = engine.upgrade() else { return };
        match change {
            Change::Available(queue, jobs) => engine.notified_available(&queue, jobs),
            Change::Opened(group, runs) => engine.notified_opened(&group, runs),
            Change::Inbox => engine.notified_inbox(),
            Change::Runs => engine.notified_runs(),
            // A pause or its end may be among the notifications that were lost, or that a node did not send before it
            // ended.
            Change::Pauses | Change::Anything | Change::Nothing => {
                runtime.spawn(async move {
                    // Where nothing was heard, the next look comes by itself.
                    let recalled = match engine.recall_pauses().await {
                        Ok(()) => engine.recall_limits().await,
                        failed => failed,
                    };
                    if let Err(error) = recalled
                        && change != Change::Nothing
                    {
                        tracing::error!("cannot read which queues are paused, and which types are limited: {error}");
                    }
                    engine.notified_anything();
                });
            }
        }
    });
}
