//! Stores to test with, each in a schema of its own.

use crate::cluster;
use redrive_store::Store;
use redrive_store::conformance::Subject;
use redrive_store::postgres::{Options, Postgres};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use tokio::runtime::Runtime;

/// One runtime for all tests, so that connections outlive the test that made them.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    &RUNTIME
}

/// The name of an unused schema.
pub(crate) fn new_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn options(schema: &str) -> Options {
    let address = cluster::address();
    let joint = if address.contains('?') { '&' } else { '?' };
    // The connections bear the name of the schema, so that a test can find its own.
    let address = format!("{address}{joint}application_name={schema}&schema={schema}");
    Options::read(&address).unwrap().with_connections(6)
}

/// A store in a schema.
pub(crate) fn open(schema: &str) -> Postgres {
    open_with(options(schema))
}

fn open_with(options: Options) -> Postgres {
    // A case opens its stores inside of the future that the runtime waits for; blocking there would
    // block the runtime, so that another thread waits.
    std::thread::scope(|scope| scope.spawn(|| runtime().block_on(Postgres::open(options)).unwrap()).join().unwrap())
}

/// A schema of its own for each case.
#[derive(Default)]
pub(crate) struct InSchema(Mutex<String>);

impl Subject for InSchema {
    fn open(&self) -> Box<dyn Store> {
        *self.0.lock().unwrap() = new_schema();
        self.reopen()
    }

    fn reopen(&self) -> Box<dyn Store> {
        // Lists stop so early that the suite sees it.
        Box::new(open_with(options(&self.0.lock().unwrap()).with_list_most(5)))
    }

    fn wait(&self, work: Pin<Box<dyn Future<Output = ()> + '_>>) {
        runtime().block_on(work);
    }
}

/// A connection of an application.
pub(crate) async fn plain_client() -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(cluster::address(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Cuts the connections of this name, as a network or an operator does; returns how many there were.
pub(crate) async fn cut(name: &str) -> usize {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    plain_client().await.query(sql, &[&name]).await.unwrap().len()
}

/// What the database's clock shows, in microseconds.
pub(crate) async fn database_time() -> i64 {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    plain_client().await.query_one(sql, &[]).await.unwrap().get(0)
}
