//! A real PgBouncer between the store and its database.

use crate::cluster::Cluster;
use crate::subject::{new_schema, runtime};
use crate::work::{claim, job, now};
use redrive_store::postgres::{Change, Options, Postgres};
use redrive_store::{AttemptOutcome, LeaseRef, Settlement, State, Store, Token};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tokio::sync::mpsc;

/// A pooler that stops by itself when its input ends.
struct Bouncer {
    child: Child,
    address: String,
}

impl Bouncer {
    fn start(mode: &str, cluster: &Cluster) -> Self {
        let folder = cluster.address.split(['@', '/']).find(|part| part.contains("%2F")).unwrap().replace("%2F", "/");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/pgbouncer");
        let mut command = Command::new(script);
        let mut child = command.args([mode, &folder]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("postgres://"), "scripts/pgbouncer did not start; see above for why");
        Self { child, address: address.trim().to_owned() }
    }

    fn options(&self) -> Options {
        Options::read(&self.address).unwrap().in_schema(&new_schema()).unwrap()
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_pooler_in_transaction_mode_is_refused_with_the_way_out() {
    let cluster = Cluster::start();
    let bouncer = Bouncer::start("transaction", &cluster);
    let refused = runtime().block_on(Postgres::open(bouncer.options())).unwrap_err().to_string();
    assert!(refused.contains("pool_mode = session"), "{refused}");
}

#[test]
fn behind_a_pooler_in_session_mode_everything_works() {
    let cluster = Cluster::start();
    let bouncer = Bouncer::start("session", &cluster);
    runtime().block_on(async {
        let options = bouncer.options();
        let here = Postgres::open(options.clone()).await.unwrap();
        let there = Postgres::open(options).await.unwrap();
        let (sender, mut heard) = mpsc::unbounded_channel();
        there.listen(move |change| drop(sender.send(change)));
        here.listen(|_| {});
        assert_eq!(heard.recv().await, Some(Change::Anything), "it listens");
        here.enqueue(vec![job("mail")], now()).await.unwrap().unwrap();
        while heard.recv().await.unwrap() != Change::Available("mail".into(), 1) {}
        let taken = there.claim(claim("mail", 1, 7), now()).await.unwrap().jobs;
        let lease_ref = LeaseRef { id: taken[0].id, token: Token::Lease(taken[0].lease.as_ref().unwrap().token) };
        let settled =
            here.settle(vec![Settlement { lease_ref, report: AttemptOutcome::Done(None) }], now()).await.unwrap();
        assert_eq!(settled[0].as_ref().map(|settled| settled.job().state), Ok(State::Completed));
    });
}
