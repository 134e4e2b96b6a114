//! Compares the jobs of the servers with the ledger of the client.

use crate::harness::{Server, TIMEOUT};
use crate::ledger::{Entry, Ledger};
use crate::load::Load;
use crate::target::Target;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// All jobs of a server.
pub(crate) fn all_jobs(server: &Server) -> Vec<Value> {
    let mut listed = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("/ojs/v1/admin/jobs?include=payload&per_page=500{next}");
        let mut answer = server.ask("GET", &path, Value::Null);
        listed.append(answer["items"].as_array_mut().expect("items"));
        match answer["pagination"]["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => return listed,
        }
    }
}

/// Everything that the server has, against everything that is known.
pub(crate) fn compared(server: &Server, ledger: &Mutex<Ledger>, when: &str) {
    let listed = all_jobs(server);
    let mut ledger = ledger.lock().expect("no thread panicked");
    ledger.compare(&listed);
    assert!(ledger.wrong.is_empty(), "{when}: {:#?}", ledger.wrong);
}

/// Lets every job end without further kills, and checks all of them once more.
pub(crate) fn drained(
    target: &dyn Target,
    server: &Server,
    ledger: &Mutex<Ledger>,
    batches: &AtomicU64,
    random: &mut fastrand::Rng,
) {
    let enough = AtomicBool::new(false);
    let load = Load { target, ledger, enough: &enough, batches };
    let (first, second) = (fastrand::Rng::with_seed(random.u64(..)), fastrand::Rng::with_seed(random.u64(..)));
    std::thread::scope(|scope| {
        let workers = [scope.spawn(|| load.work(first)), scope.spawn(|| load.work(second))];
        let deadline = Instant::now() + TIMEOUT;
        let open = |stats: &Value| {
            let waiting = ["available", "active", "scheduled", "retryable", "pending"];
            waiting.iter().filter_map(|state| stats["stats"][*state].as_u64()).sum::<u64>()
        };
        loop {
            let stats = server.ask("GET", "/ojs/v1/queues/crash/stats", Value::Null);
            if open(&stats) == 0 || Instant::now() > deadline {
                enough.store(true, Ordering::SeqCst);
                assert_eq!(open(&stats), 0, "jobs that never end: {stats}");
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        for worker in workers {
            assert!(worker.join().expect("the ledger was not contradicted").is_ok());
        }
    });
    compared(server, ledger, "at the end");
    dead_letters(server, ledger);
}

/// The dead letters are exactly the exhausted jobs whose policy says so.
fn dead_letters(server: &Server, ledger: &Mutex<Ledger>) {
    let answer = server.ask("GET", "/ojs/v1/dead-letter?limit=1", Value::Null);
    let ledger = ledger.lock().expect("no thread panicked");
    let discarded = |entry: &&Entry| entry.terminal.as_deref() == Some("discarded");
    let expected = ledger.jobs.values().filter(discarded).filter(|entry| entry.plan.dead_letter).count();
    assert_eq!(answer["pagination"]["total"], json!(expected));
    let ended = ledger.jobs.values().filter(|entry| entry.terminal.is_some()).count();
    assert_eq!(ended, ledger.jobs.len(), "every job has ended");
}
