//! Opening, closing and compacting a folder.

use crate::scratch::Scratch;
use crate::sim::SimDisk;
use crate::subject::{DIR, SMALL, TINY, open};
use crate::workload::{Workload, everything};
use redrive_policy::{Moment, Span};
use redrive_store::conformance::block_on;
use redrive_store::embedded::{self, Embedded, OpenError, check_on};
use redrive_store::{
    AttemptOutcome, Claim, Filter, LeaseRef, Page, Retention, RunFilter, Settlement, State, Store, StoreError, Token,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[test]
fn a_second_opening_is_refused_and_names_the_process() {
    let scratch = Scratch::new();
    let (store, _) = Embedded::open(scratch.path(), SMALL).unwrap();
    for refusal in
        [Embedded::open(scratch.path(), SMALL).map(drop), embedded::check(scratch.path(), &mut |_| {}).map(drop)]
    {
        let error = refusal.unwrap_err();
        assert!(matches!(&error, OpenError::InUse { holder: Some(pid), .. } if *pid == std::process::id()), "{error}");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    }
    store.close().unwrap();
    Embedded::open(scratch.path(), SMALL).unwrap();
}

/// The other process of the next test: it opens a folder, and prints the outcome.
#[test]
fn second_process() {
    if let Ok(dir) = std::env::var("REDRIVE_SECOND_PROCESS") {
        let outcome = Embedded::open(dir, SMALL).map(drop);
        eprintln!("outcome: {}", outcome.map_or_else(|error| error.to_string(), |()| "opened".to_owned()));
    }
}

#[test]
fn a_second_process_is_refused() {
    let scratch = Scratch::new();
    let ask = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "folder::second_process", "--nocapture"])
            .env("REDRIVE_SECOND_PROCESS", scratch.path());
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let (store, _) = Embedded::open(scratch.path(), SMALL).unwrap();
    let message = ask();
    assert!(message.contains(&format!("is in use by process {}", std::process::id())), "{message}");
    drop(store);
    let message = ask();
    assert!(message.contains("outcome: opened"), "{message}");
}

#[test]
fn closing_is_orderly_and_happens_once() {
    let disk = SimDisk::default();
    let (store, opened) = open(&disk, SMALL).unwrap();
    assert!(opened.clean && opened.repairs.is_empty(), "{opened:?}");
    let mut workload = Workload::new(9);
    drop(workload.batch_of_bytes(3, 10).call(&store));
    store.close().unwrap();
    store.close().unwrap();
    for op in workload.ops(20) {
        let Err(StoreError::Unavailable(why)) = op.play(&store) else { panic!("{op:?} was answered") };
        assert!(why.contains("closed"), "{why}");
    }
    assert!(store.compact().is_err());
    let (_store, opened) = open(&disk, SMALL).unwrap();
    assert!(opened.clean && opened.repairs.is_empty(), "{opened:?}");
    assert_eq!(opened.count(State::Available), 3);
    assert_eq!(disk.names().iter().filter(|name| name.ends_with(".spare")).count(), 0);
}

#[test]
fn opening_reports_what_it_found() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    for op in Workload::new(35).ops(600) {
        op.play(&store).unwrap();
    }
    let page = Page::new(0, 0);
    let count = |filter: Filter| block_on(store.list(filter, page)).unwrap().total.unwrap();
    let expected = State::ALL.map(|state| count(Filter { state: Some(state), ..Filter::default() }));
    let dead = count(Filter { dead: Some(true), ..Filter::default() });
    assert!(dead > 0 && expected.iter().all(|count| *count > 0), "{expected:?}, {dead}");
    let runs = block_on(store.runs(RunFilter::default(), usize::MAX)).unwrap().len();
    assert_eq!((store.status().runs, runs > 0), (runs, true));
    drop(store);
    let findings = check_on(&disk, DIR, &mut |_| {}).unwrap();
    assert_eq!((findings.jobs, findings.dead, findings.queues, findings.runs), (expected, dead, 3, runs));
    assert!(findings.messages > 0, "{findings:?}");
    let (_store, opened) = open(&disk, SMALL).unwrap();
    assert_eq!((opened.jobs, opened.dead), (expected, dead));
}

#[test]
fn the_latest_time_and_the_offset_of_the_wall_clock_are_stored() {
    let disk = SimDisk::default();
    let at = |micros| Some(Moment::from_micros(micros));
    let (store, opened) = open(&disk, TINY).unwrap();
    assert_eq!((opened.latest, opened.wall_ahead_us), (None, 0), "a new store knows nothing of time");
    let mut workload = Workload::new(3);
    workload.play_batch(&store, 1);
    drop(store);
    let (store, opened) = open(&disk, TINY).unwrap();
    let created = block_on(store.list(Filter::default(), Page::new(0, 1))).unwrap().jobs[0].times.created;
    assert_eq!((opened.latest, opened.wall_ahead_us), (Some(created), 0), "when the last thing happened");
    store.keep_clock(Moment::from_micros(created.micros() + 7), -5);
    drop(store);
    let (store, opened) = open(&disk, TINY).unwrap();
    assert_eq!((opened.latest, opened.wall_ahead_us), (at(created.micros() + 7), -5));
    store.compact().unwrap();
    drop(store);
    let (_store, opened) = open(&disk, TINY).unwrap();
    assert_eq!((opened.latest, opened.wall_ahead_us), (at(created.micros() + 7), -5), "in a snapshot, too");
}

#[test]
fn checking_nothing_finds_no_store() {
    let scratch = Scratch::new();
    for dir in [scratch.path().to_owned(), scratch.path().join("none")] {
        let error = embedded::check(&dir, &mut |_| {}).unwrap_err();
        assert_eq!(error, OpenError::Missing(dir));
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// Claims and completes or fails jobs until there are no more.
fn work(store: &dyn Store, seed: u64) {
    for round in 0.. {
        let now = Moment::from_micros(1_700_000_000_000_000 + round);
        let seed = seed << 32 | round as u64;
        let claim = Claim { count: 3, ..Claim::new(vec!["one".into()], Span::from_secs(60), seed) };
        let claimed = block_on(store.claim(claim, now)).unwrap().jobs;
        if claimed.is_empty() {
            return;
        }
        let settlements = claimed.iter().map(|job| Settlement {
            lease_ref: LeaseRef { id: job.id, token: Token::Lease(job.lease.as_ref().unwrap().token) },
            report: AttemptOutcome::Done(Some(Arc::from(*b"{}"))),
        });
        for outcome in block_on(store.settle(settlements.collect(), now)).unwrap() {
            outcome.unwrap();
        }
    }
}

#[test]
fn compacting_under_load_keeps_everything() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let left = AtomicUsize::new(4);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (store, left) = (&store, &left);
            scope.spawn(move || {
                let mut workload = Workload::new(seed);
                for _ in 0..40 {
                    workload.batch_of_bytes(5, 60).play(store).unwrap();
                    work(store, seed);
                    workload.batch_of_bytes(2, 60).play(store).unwrap();
                }
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut compactions = 0;
        while left.load(Ordering::SeqCst) > 0 || compactions < 5 {
            store.compact().unwrap();
            compactions += 1;
        }
    });
    let before = everything(&store).unwrap();
    assert_eq!(store.status().jobs, 4 * 40 * 7);
    drop(store);
    let (store, opened) = open(&disk, SMALL).unwrap();
    assert!(opened.clean, "{opened:?}");
    assert_eq!(everything(&store).unwrap(), before);
    assert!(check_on(&disk.copy(), DIR, &mut |_| {}).unwrap().is_sound());
}

/// One round of a busy store: ten jobs are enqueued, completed, and pruned.
fn pass_through(store: &Embedded, workload: &mut Workload) {
    workload.batch_of_bytes(10, 200).play(store).unwrap();
    work(store, 1);
    let retention = Retention { finished: Span::ZERO, dead: Span::ZERO };
    assert_eq!(block_on(store.prune(retention, usize::MAX, Moment::from_micros(i64::MAX))).unwrap(), 10);
}

#[test]
fn the_space_of_removed_jobs_is_reclaimed() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(8);
    let used =
        || disk.names().iter().filter(|name| name.contains('.')).map(|name| disk.bytes(name).len()).sum::<usize>();
    for _ in 0..10 {
        (0..10).for_each(|_| pass_through(&store, &mut workload));
        assert!(used() > 50_000, "{} bytes on disk", used());
        store.compact().unwrap();
        // A snapshot of nothing, and the segment in use.
        assert!(used() < 40_000, "{} bytes on disk", used());
    }
    let status = store.status();
    assert_eq!((status.jobs, status.live_bytes, status.log_bytes), (0, 0, 0));
}

#[test]
fn the_log_is_compacted_by_itself_when_it_has_grown() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, TINY).unwrap();
    let mut workload = Workload::new(8);
    while store.status().compaction.is_none() {
        pass_through(&store, &mut workload);
    }
    assert_eq!(store.status().compaction, Some(Ok(())));
    assert!(!disk.names().contains(&"00000001.log".to_owned()), "{:?}", disk.names());
}

#[test]
fn a_decision_that_panics_changes_nothing() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(8);
    workload.batch_of_bytes(3, 10).play(&store).unwrap();
    let now = Moment::from_micros(1_800_000_000_000_000);
    let claim = Claim { count: 3, ..Claim::new(vec!["one".into()], Span::from_secs(60), 1) };
    let claimed = block_on(store.claim(claim, now)).unwrap().jobs;
    let lease_ref = |index: usize| LeaseRef { id: claimed[index].id, token: Token::None };
    let settlements = vec![
        Settlement { lease_ref: lease_ref(0), report: AttemptOutcome::Done(None) },
        Settlement {
            lease_ref: lease_ref(1),
            report: AttemptOutcome::Failed(Box::new(|_| panic!("a bug of the caller"))),
        },
        Settlement { lease_ref: lease_ref(2), report: AttemptOutcome::Done(None) },
    ];
    assert!(catch_unwind(AssertUnwindSafe(|| drop(store.settle(settlements, now)))).is_err());
    let done = Settlement { lease_ref: lease_ref(2), report: AttemptOutcome::Done(None) };
    assert!(block_on(store.settle(vec![done], now)).unwrap()[0].is_ok());
    let before = everything(&store).unwrap();
    assert_eq!(block_on(store.get(claimed[1].id)).unwrap().map(|job| job.state), Some(State::Active));
    drop(store);
    assert_eq!(everything(&open(&disk, SMALL).unwrap().0).unwrap(), before);
}
