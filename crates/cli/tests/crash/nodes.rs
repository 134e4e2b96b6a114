//! Three servers on one database, each of which may be killed and started again, as may the database.

use crate::cluster::Cluster;
use crate::harness::{Server, TIMEOUT, call, killed_while_starting, until};
use crate::target::{Gone, Reply, Target};
use crate::webhooks::LOOPBACK;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

/// How many servers there are.
pub(crate) const NODES: usize = 3;

/// How long a client waits after a failed request, so that the servers get the processors.
const BREATH: Duration = Duration::from_millis(10);

/// The servers and the database as clients see them, and why an answer may be missing.
#[derive(Default)]
pub(crate) struct Endpoints {
    addresses: RwLock<Vec<Arc<Address>>>,
    turn: AtomicUsize,
    /// From just before the database is stopped until every server has found it again.
    unreachable: AtomicBool,
    outages: AtomicUsize,
    /// How often a server that was killed gave no answer, and how often one had no database.
    pub(crate) silent: AtomicUsize,
    pub(crate) refused: AtomicUsize,
}

struct Address {
    url: String,
    /// Set just before the server is killed: from then on, and only then, answers may be missing.
    killed: AtomicBool,
}

impl Target for Endpoints {
    fn ask(&self, agent: &ureq::Agent, method: &str, path: &str, body: &Value) -> Result<Reply, Gone> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let address = {
            let addresses = self.addresses.read().unwrap();
            Arc::clone(&addresses[turn % addresses.len()])
        };
        let (was_unreachable, outages) = (self.unreachable.load(Ordering::SeqCst), self.outages.load(Ordering::SeqCst));
        match call(agent, &address.url, method, path, body) {
            Ok((503, answer)) => {
                let excused = was_unreachable || self.outages.load(Ordering::SeqCst) > outages;
                assert!(excused, "{method} {path}: refused while the database was there: {answer}");
                self.refused.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(BREATH);
                Ok(None)
            }
            Ok((status, answer)) => {
                assert!(status < 500, "{method} {path}: {status} {answer}");
                Ok(Some((status.into(), answer)))
            }
            Err(error) => {
                let killed = address.killed.load(Ordering::SeqCst);
                assert!(killed, "{method} {path}: no answer from a living server: {error}");
                self.silent.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(BREATH);
                Ok(None)
            }
        }
    }
}

/// One server, and the name by which its connections are known to the database.
struct Node {
    server: Server,
    address: Arc<Address>,
    name: String,
}

impl Node {
    fn start(database: &Cluster, start: usize) -> Self {
        let name = name(start);
        let server = Server::start_under(&LOOPBACK, &["--store", &store_address(database, &name)], &[]);
        let address = Arc::new(Address { url: server.url.clone(), killed: AtomicBool::new(false) });
        Self { server, address, name }
    }
}

/// The servers and their database.
pub(crate) struct Nodes {
    pub(crate) endpoints: Arc<Endpoints>,
    nodes: Vec<Node>,
    database: Cluster,
    starts: usize,
    runtime: Runtime,
}

impl Nodes {
    /// All at the same time on an empty database: one of them creates the tables.
    pub(crate) fn start(database: Cluster) -> Self {
        let nodes: Vec<Node> = std::thread::scope(|scope| {
            let database = &database;
            let starting: Vec<_> = (0..NODES).map(|start| scope.spawn(move || Node::start(database, start))).collect();
            starting.into_iter().map(|started| started.join().unwrap()).collect()
        });
        let endpoints = Arc::new(Endpoints::default());
        *endpoints.addresses.write().unwrap() = nodes.iter().map(|node| Arc::clone(&node.address)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { endpoints, nodes, database, starts: NODES, runtime }
    }

    pub(crate) fn server(&self, number: usize) -> &Server {
        &self.nodes[number].server
    }

    /// As `kill -9` does. Clients go on to turn to it.
    pub(crate) fn kill(&mut self, number: usize) {
        self.nodes[number].address.killed.store(true, Ordering::SeqCst);
        self.nodes[number].server.kill();
    }

    /// Replaces a server that was killed; `lifetime` is how long a first try runs before it is killed too.
    pub(crate) fn start_again(&mut self, number: usize, lifetime: Option<Duration>) {
        if let Some(lifetime) = lifetime {
            killed_while_starting(&["--store", &store_address(&self.database, &name(self.starts))], lifetime);
            self.starts += 1;
        }
        self.nodes[number] = Node::start(&self.database, self.starts);
        self.starts += 1;
        self.endpoints.addresses.write().unwrap()[number] = Arc::clone(&self.nodes[number].address);
    }

    /// Stops the database as a crash does, and starts it again after a while.
    pub(crate) fn crash_database(&mut self, pause: Duration) {
        self.outage(&["stop", "start"], pause);
    }

    /// Stops the database, and promotes its standby.
    pub(crate) fn fail_over(&mut self) {
        self.outage(&["failover"], Duration::ZERO);
    }

    /// Sends these commands to the database, and waits until the servers have reconnected.
    fn outage(&mut self, orders: &[&str], pause: Duration) {
        self.endpoints.unreachable.store(true, Ordering::SeqCst);
        self.endpoints.outages.fetch_add(1, Ordering::SeqCst);
        for order in orders {
            self.database.order(order);
            std::thread::sleep(pause);
        }
        for node in self.nodes.iter().filter(|node| !node.address.killed.load(Ordering::SeqCst)) {
            until("the server finds the database again", || {
                let (status, _) = node.server.call("GET", "/ojs/v1/health", &Value::Null).ok()?;
                (status == 200).then_some(())
            });
        }
        self.endpoints.unreachable.store(false, Ordering::SeqCst);
    }

    /// Waits until no transaction of a killed server is still running: the database may have a
    /// commit in progress that no client waits for any more.
    pub(crate) fn wait_for_the_dead(&self) {
        const LEFT: &str = "SELECT count(*) FROM pg_stat_activity \
                            WHERE application_name LIKE 'crash\\_%' AND application_name <> ALL ($1)";
        let living: Vec<&str> = self.nodes.iter().map(|node| &*node.name).collect();
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.database.address, NoTls).await.unwrap();
            tokio::spawn(connection);
            let deadline = Instant::now() + TIMEOUT;
            while client.query_one(LEFT, &[&living]).await.unwrap().get::<_, i64>(0) > 0 {
                assert!(Instant::now() < deadline, "connections of killed servers do not end");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
}

/// The database, for a server whose connections have this name.
fn store_address(database: &Cluster, name: &str) -> String {
    database.address_with(&format!("application_name={name}"))
}

/// The name of the connections of a server.
fn name(start: usize) -> String {
    format!("crash_{start}")
}
