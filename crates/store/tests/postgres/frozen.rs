//! A database that accepts connections and does not answer, as behind a network that drops everything.

use crate::cluster::Cluster;
use crate::subject::runtime;
use crate::work::{claim, job, now};
use redrive_store::postgres::{Options, Postgres};
use redrive_store::{JobId, Store, StoreError};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A store gives up on an answer after 15 s, and on a connection after what the address says, here 1 s. The
/// rest is for a machine that is busy with other tests.
const ANSWERED: Duration = Duration::from_secs(35);

/// Processes that are stopped until this is dropped.
struct Frozen(Vec<String>);

impl Frozen {
    /// The server itself, so that it accepts no connection, and all its sessions.
    async fn all(address: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let own = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1) \
                   UNION SELECT pid::text FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
        let pids = client.query(own, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let frozen = Self(pids);
        frozen.signal("-STOP");
        frozen
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").arg(signal).args(&self.0).status().unwrap().success());
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

/// One of many callers.
async fn call(store: Arc<Postgres>, number: u64, known: JobId) -> Option<StoreError> {
    match number % 3 {
        0 => store.enqueue(vec![job("q")], now()).await.err(),
        1 => store.claim(claim("q", 1, number), now()).await.err(),
        _ => store.get(known).await.err(),
    }
}

#[test]
fn a_database_that_does_not_answer_is_reported_in_time_to_all_callers() {
    let cluster = Cluster::start();
    runtime().block_on(async {
        let options = Options::read(&cluster.address_with("connect_timeout=1")).unwrap().with_connections(4);
        let store = Arc::new(Postgres::open(options).await.unwrap());
        let kept = job("q");
        store.enqueue(vec![kept.clone()], now()).await.unwrap().unwrap();

        let frozen = Frozen::all(&cluster.address).await;
        let began = Instant::now();
        let callers: Vec<_> = (0..24).map(|number| tokio::spawn(call(Arc::clone(&store), number, kept.id))).collect();
        for caller in callers {
            let error = tokio::time::timeout(ANSWERED, caller).await.expect("every caller has an answer").unwrap();
            assert!(matches!(error, Some(StoreError::Unavailable(_))), "{error:?}");
        }
        assert!(began.elapsed() < ANSWERED, "it took {:?}", began.elapsed());
        // Nothing is known to work now: a single call has to wait for a connection only.
        let late = store.get(kept.id).await;
        assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");

        drop(frozen);
        let found = store.get(kept.id).await.unwrap();
        assert!(found.is_some(), "all is there");
    });
}
