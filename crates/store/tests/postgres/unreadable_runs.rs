//! Runs that cannot be read: damaged ones are set aside, those of newer versions are left to newer nodes, and neither
//! holds up another.

use crate::subject::{new_schema, open, options, plain_client, runtime};
use crate::work::now;
use redrive_store::postgres::UnreadableJobs;
use redrive_store::{
    Blob, MessageBody, NewRun, Parent, PendingRun, PendingRuns, Postgres, Run, RunFilter, RunId, RunStep, Signal,
    Store, StoreError,
};
use std::sync::{Arc, Mutex};
use tokio_postgres::Client;

/// A store with runs, and one client that reaches behind it.
struct Database {
    schema: String,
    store: Postgres,
    client: Client,
    reported: Arc<Mutex<Vec<String>>>,
}

impl Database {
    async fn new() -> Self {
        let schema = new_schema();
        let store = open(&schema);
        let reported: Arc<Mutex<Vec<String>>> = Arc::default();
        let list = Arc::clone(&reported);
        store.watch_unreadable(move |id, why| list.lock().unwrap().push(format!("{id} {why}")));
        Self { schema, store, client: plain_client().await, reported }
    }

    /// Runs that have taken their first step.
    async fn runs<const N: usize>(&self) -> [Run; N] {
        let mut runs = Vec::new();
        for number in 0..N as u128 {
            runs.push(self.run(number, None).await);
        }
        runs.try_into().unwrap()
    }

    async fn run(&self, number: u128, parent: Option<Parent>) -> Run {
        let new = NewRun {
            id: RunId::new(now(), number),
            program: "test".into(),
            version: 1,
            state: Blob::from(&b"{}"[..]),
            key: None,
            parent,
            depth: 0,
            seed: 0,
        };
        let run = self.store.start_runs(vec![new], now()).await.unwrap().unwrap().remove(0);
        self.store.advance(vec![RunStep::of(&run)], now()).await.unwrap().remove(0).unwrap().run
    }

    async fn signal(&self, run: &Run) {
        let signal = Signal { name: "a".into(), body: Blob::default() };
        self.store.signal(run.id, signal, now()).await.unwrap().unwrap();
    }

    async fn set(&self, table: &str, column: &str, run: &Run, change: &str) {
        let sql = format!("UPDATE {}.{table} SET body = {change} WHERE {column} = '{}'", self.schema, run.id);
        assert_eq!(self.client.execute(&sql, &[]).await.unwrap(), 1, "{sql}");
    }

    async fn pending(&self) -> Vec<PendingRun> {
        let programs = vec![("test".into(), 1)];
        self.store.pending_runs(PendingRuns { programs, only: None, limit: 1, messages: 10 }, now()).await.unwrap()
    }

    async fn pending_ids(&self) -> Vec<RunId> {
        self.pending().await.iter().map(|pending| pending.run.id).collect()
    }

    async fn next(&self) -> bool {
        self.store.next_run(vec![("test".into(), 1)]).await.unwrap().is_some()
    }

    async fn aside(&self) -> UnreadableJobs {
        UnreadableJobs::open(options(&self.schema)).await.unwrap()
    }
}

const DAMAGED: &str = "substring(body FOR 4)";

#[test]
fn a_damaged_run_and_a_damaged_message_are_set_aside_and_delay_no_other() {
    runtime().block_on(async {
        let database = Database::new().await;
        let [damaged, told_badly, sound] = database.runs().await;
        for run in [&damaged, &told_badly, &sound] {
            database.signal(run).await;
        }
        database.set("run_states", "id", &damaged, DAMAGED).await;
        database.set("run_messages", "run", &told_badly, DAMAGED).await;
        // One at a time: each look sets those aside that come before.
        assert_eq!(database.pending_ids().await, []);
        assert_eq!(database.pending_ids().await, []);
        assert_eq!(database.pending_ids().await, [sound.id]);
        let reported = database.reported.lock().unwrap().clone();
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert!(reported[0].contains(&damaged.id.to_string()) && reported[0].contains("the run: "), "{reported:?}");
        assert!(reported[1].contains("a message to the run: "), "{reported:?}");
        let listed = database.store.runs(RunFilter::default(), 10).await.unwrap();
        assert_eq!(listed.iter().map(|run| run.id).collect::<Vec<_>>(), [sound.id]);
        let list = database.aside().await.list(10).await.unwrap();
        assert_eq!((list.total, list.newer), (2, 0));
        assert!(list.jobs.iter().all(|aside| aside.is_run && aside.row.contains("\"program\": \"test\"")), "{list:?}");
        assert!(matches!(database.store.run(damaged.id).await, Err(StoreError::Broken(_))));
    });
}

#[test]
fn a_run_that_was_set_aside_still_gets_messages_and_goes_on_when_it_is_put_back() {
    runtime().block_on(async {
        let database = Database::new().await;
        let [parent] = database.runs().await;
        let child = database.run(7, Some(Parent { run: parent.id, child: 3 })).await;
        database.signal(&parent).await;
        let before: Vec<u8> = {
            let sql = format!("SELECT body FROM {}.run_states WHERE id = '{}'", database.schema, parent.id);
            database.client.query_one(&sql, &[]).await.unwrap().get(0)
        };
        database.set("run_states", "id", &parent, DAMAGED).await;
        assert_eq!(database.pending_ids().await, []);
        assert!(!database.next().await, "it is not waited for");
        // The child does not depend on its parent.
        let end = RunStep { end: Some((true, Blob::default())), ..RunStep::of(&child) };
        database.store.advance(vec![end], now()).await.unwrap().remove(0).unwrap();
        let repaired = before.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        database.set("run_states", "id", &parent, &format!("'\\x{repaired}'::bytea")).await;
        assert_eq!(database.pending_ids().await, [], "it is put back by people");
        assert_eq!(database.aside().await.restore(None).await.unwrap().len(), 1);
        let pending = database.pending().await.remove(0);
        let kinds: Vec<bool> =
            pending.messages.iter().map(|message| matches!(message.body, MessageBody::RunEnded { .. })).collect();
        assert_eq!((pending.run.id, kinds), (parent.id, vec![false, true]));
    });
}

#[test]
fn a_run_that_was_set_aside_can_be_deleted_with_its_messages() {
    runtime().block_on(async {
        let database = Database::new().await;
        let [damaged] = database.runs().await;
        database.signal(&damaged).await;
        database.set("run_states", "id", &damaged, DAMAGED).await;
        assert_eq!(database.pending_ids().await, []);
        assert_eq!(database.aside().await.delete(None).await.unwrap().len(), 1);
        for table in ["run_states", "run_messages", "unreadable"] {
            let sql = format!("SELECT count(*) FROM {}.{table}", database.schema);
            assert_eq!(database.client.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0), 0, "{table}");
        }
    });
}

#[test]
fn runs_and_messages_of_newer_versions_are_left_alone() {
    runtime().block_on(async {
        let database = Database::new().await;
        let [newer, told_by_newer, sound] = database.runs().await;
        for run in [&newer, &told_by_newer, &sound] {
            database.signal(run).await;
        }
        database.set("run_states", "id", &newer, "set_byte(body, 0, 3)").await;
        database.set("run_messages", "run", &told_by_newer, "set_byte(body, 0, 3)").await;
        assert_eq!(database.pending_ids().await, [sound.id]);
        let consumed = database.pending().await.remove(0).messages.iter().map(|message| message.number).collect();
        let step = RunStep { consumed, ..RunStep::of(&sound) };
        database.store.advance(vec![step], now()).await.unwrap().remove(0).unwrap();
        assert_eq!(database.pending_ids().await, []);
        assert!(!database.next().await, "there is nothing that this node could do");
        let list = database.aside().await.list(10).await.unwrap();
        assert_eq!((list.total, list.newer), (0, 1), "nothing is set aside");
        // Behind a message that can be read, one of a newer version waits.
        database.set("run_messages", "run", &told_by_newer, "set_byte(body, 0, 1)").await;
        assert_eq!(database.pending_ids().await, [told_by_newer.id]);
    });
}
