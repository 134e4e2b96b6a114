//! The real server under load, killed at random moments, again and again; and the proof from the
//! outside, by a client that keeps its own book: nothing that was acknowledged is lost, no job runs
//! more often than its policy allows, nothing runs early, every acknowledged failure is in the history,
//! a job has one lease at a time, and what has ended stays ended.
//!
//! `CRASH_ROUNDS` and `CRASH_SEED` set how often and in which order; `scripts/crash` runs many more.
//! The seed decides the jobs, the workers and the moments of the kills; where in its work a kill meets
//! the server depends on the machine too.

#![allow(clippy::expect_used, clippy::panic)]

#[path = "crash/book.rs"]
mod book;
mod harness;
#[path = "crash/load.rs"]
mod load;

use book::Book;
use harness::{Folder, PATIENCE, Server, redrive, stdout};
use load::{Gone, Load};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many requests to hand in jobs one round makes at most.
const REQUESTS: usize = 40;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn kill_minus_nine_loses_nothing_that_was_acknowledged() {
    let rounds = setting("CRASH_ROUNDS", 20);
    let seed = setting("CRASH_SEED", 20_261_115);
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = Folder::new("crash");
    let data = folder.at("data");
    let (book, batches) = (Mutex::new(Book::default()), AtomicU64::new(0));
    for round in 1..=rounds {
        if random.u8(..4) == 0 {
            killed_while_starting(&data, &mut random);
        }
        let mut server = Server::start(&data);
        compared(&server, &book, &format!("round {round}, after the start"));
        let killed = loaded(&mut server, &book, &batches, &mut random);
        assert!(killed, "round {round}: the load ended before the kill");
        sound(&data);
    }
    let server = Server::start(&data);
    compared(&server, &book, "after the last kill");
    drained(&server, &book, &batches, &mut random);
    let book = book.into_inner().expect("no thread panicked");
    let (jobs, acknowledged) = (book.jobs.len(), book.acknowledged);
    assert!(jobs as u64 >= rounds, "hardly any job got in: {jobs}");
    eprintln!("crash: seed {seed}, {rounds} rounds, {jobs} jobs, {acknowledged} acknowledgements, all of them kept");
}

/// A start that does not get far: whatever the server does to recover is cut short too.
fn killed_while_starting(data: &str, random: &mut fastrand::Rng) {
    let mut child = redrive(&["serve", "--listen", "127.0.0.1:0", "--data", data])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a server");
    std::thread::sleep(Duration::from_millis(random.u64(0..40)));
    child.kill().expect("it can be killed");
    child.wait().expect("it can be waited for");
}

/// Puts the server under load and kills it at a random moment; answers whether the load was still on.
fn loaded(server: &mut Server, book: &Mutex<Book>, batches: &AtomicU64, random: &mut fastrand::Rng) -> bool {
    let (killed, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let url = server.url.clone();
    let load = Load { url: &url, book, killed: &killed, enough: &enough, batches };
    let life = Duration::from_millis(random.u64(20..700));
    let seeds: [u64; 5] = std::array::from_fn(|_| random.u64(..));
    let [first, second, third, fourth, fifth] = seeds.map(fastrand::Rng::with_seed);
    std::thread::scope(|scope| {
        let helpers = [
            scope.spawn(|| load.hand_in(first, REQUESTS)),
            scope.spawn(|| load.hand_in(second, REQUESTS)),
            scope.spawn(|| load.meddle(third)),
            scope.spawn(|| load.catch_up()),
        ];
        let workers = [scope.spawn(|| load.work(fourth)), scope.spawn(|| load.work(fifth))];
        std::thread::sleep(life);
        killed.store(true, Ordering::SeqCst);
        server.kill();
        for helper in helpers {
            let _ = helper.join().expect("the book was not contradicted");
        }
        // Workers end only when the server is gone.
        workers.into_iter().all(|worker| matches!(worker.join().expect("the book was not contradicted"), Err(Gone)))
    })
}

/// Everything that the server has, against everything that is known.
fn compared(server: &Server, book: &Mutex<Book>, when: &str) {
    let mut listed = Vec::new();
    for page in 1.. {
        let mut answer = server.ask("GET", &format!("/ojs/v1/admin/jobs?per_page=500&page={page}"), Value::Null);
        let items = answer["items"].as_array_mut().expect("items");
        if items.is_empty() {
            break;
        }
        listed.append(items);
    }
    let mut book = book.lock().expect("no thread panicked");
    book.compare(&listed);
    assert!(book.wrong.is_empty(), "{when}: {:#?}", book.wrong);
}

/// The folder that a kill left is sound, to the last byte.
fn sound(data: &str) {
    let output = redrive(&["store", "check", data, "--json"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

/// Lets every job come to its end without further kills, and looks at all of them once more.
fn drained(server: &Server, book: &Mutex<Book>, batches: &AtomicU64, random: &mut fastrand::Rng) {
    let (killed, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let load = Load { url: &server.url, book, killed: &killed, enough: &enough, batches };
    let (first, second) = (fastrand::Rng::with_seed(random.u64(..)), fastrand::Rng::with_seed(random.u64(..)));
    std::thread::scope(|scope| {
        let workers = [scope.spawn(|| load.work(first)), scope.spawn(|| load.work(second))];
        let deadline = Instant::now() + PATIENCE;
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
            assert!(worker.join().expect("the book was not contradicted").is_ok());
        }
    });
    compared(server, book, "at the end");
    dead_letters(server, book);
}

/// Among the dead letters are those that asked for it when their runs were used up, and nobody else.
fn dead_letters(server: &Server, book: &Mutex<Book>) {
    let answer = server.ask("GET", "/ojs/v1/dead-letter?limit=1", Value::Null);
    let book = book.lock().expect("no thread panicked");
    let discarded = |entry: &&book::Entry| entry.terminal.as_deref() == Some("discarded");
    let expected = book.jobs.values().filter(discarded).filter(|entry| entry.nature.dead_letter).count();
    assert_eq!(answer["pagination"]["total"], json!(expected));
    let ended = book.jobs.values().filter(|entry| entry.terminal.is_some()).count();
    assert_eq!(ended, book.jobs.len(), "every job has ended");
}
