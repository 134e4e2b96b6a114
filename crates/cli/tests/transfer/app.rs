//! An application with its own tables in the database.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, Row};

/// A connection of the application, and what drives it.
pub(crate) struct App {
    runtime: Runtime,
    client: Client,
}

impl App {
    pub(crate) fn connect() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(crate::cluster::address(), NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Self { runtime, client }
    }

    /// Runs statements that answer nothing.
    pub(crate) fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Runs statements that change tables in use, again where the database has chosen them to end a deadlock: as nodes
    /// do that migrate.
    pub(crate) fn migrate(&self, sql: &str) {
        let again = |error: &tokio_postgres::Error| error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED);
        while let Err(error) = self.runtime.block_on(self.client.batch_execute(sql)) {
            assert!(again(&error), "{sql}: {error:?}");
        }
    }

    /// A statement with one result, or the error of the database.
    pub(crate) fn ask(&self, sql: &str) -> Result<Row, tokio_postgres::Error> {
        self.runtime.block_on(self.client.query_one(sql, &[]))
    }

    /// A number.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.ask(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    /// A text.
    pub(crate) fn text(&self, sql: &str) -> String {
        self.ask(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }
}

/// The name of an unused schema.
pub(crate) fn new_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("cli_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The address of a store in a schema.
pub(crate) fn address(schema: &str) -> String {
    let address = crate::cluster::address();
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}schema={schema}")
}
