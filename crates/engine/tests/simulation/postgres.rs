//! The store on PostgreSQL. A restart is another node on the same database.

use super::cluster;
use super::store_kind::StoreKind;
use redrive_store::Store;
use redrive_store::postgres::{Options, Postgres};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Handle, Runtime};

/// One runtime for the connections of all simulations.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
});

/// A store on PostgreSQL, in a schema of its own that goes with it.
#[derive(Default)]
pub(crate) struct InDatabase {
    schema: Option<String>,
}

impl InDatabase {
    fn drop_schema(&mut self) {
        let Some(schema) = self.schema.take() else { return };
        RUNTIME.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(cluster::address(), tokio_postgres::NoTls).await.expect("a connection");
            tokio::spawn(connection);
            let sql = format!("SET client_min_messages = warning; DROP SCHEMA {schema} CASCADE");
            client.batch_execute(&sql).await.expect("the schema can be dropped");
        });
    }
}

impl Drop for InDatabase {
    fn drop(&mut self) {
        self.drop_schema();
    }
}

impl StoreKind for InDatabase {
    fn open(&mut self) -> Arc<dyn Store> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        self.drop_schema();
        self.schema = Some(format!("simulation_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        self.reopen()
    }

    fn reopen(&mut self) -> Arc<dyn Store> {
        let schema = self.schema.as_deref().expect("the store was opened before");
        let options = Options::read(cluster::address()).and_then(|options| options.in_schema(schema));
        let options = options.expect("the address of the cluster").with_connections(2);
        Arc::new(RUNTIME.block_on(Postgres::open(options)).expect("the store opens"))
    }

    fn runtime(&self) -> Option<&Handle> {
        Some(RUNTIME.handle())
    }
}
