//! Copies of a store that another process runs, and copies that fail.

use crate::backups::check_whole;
use crate::history::History;
use crate::scratch::Scratch;
use crate::sim::SimDisk;
use crate::subject::{DIR, SMALL, TINY, open};
use crate::workload::{Workload, everything};
use redrive_store::embedded::{self, Embedded, OpenError, backup_on};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// As another process does it: with nothing but the files, and without the lock.
fn copy(disk: &SimDisk, to: &str) -> Result<embedded::Findings, OpenError> {
    backup_on(Arc::new(disk.clone()), DIR, to, &mut |_| {})
}

#[test]
fn a_backup_beside_a_running_store_has_all_that_was_acknowledged() {
    let history = History::new(43, 120);
    for options in [SMALL, TINY] {
        let disk = SimDisk::default();
        let (store, _) = open(&disk, options).unwrap();
        for (number, op) in history.ops.iter().enumerate() {
            op.play(&store).unwrap();
            if number == 60 {
                store.compact().unwrap();
            }
            if number % 10 == 0 {
                let to = format!("/backup{number}");
                let findings = copy(&disk, &to).unwrap();
                assert!(findings.is_sound() && findings.torn.is_none() && findings.clean, "{findings:?}");
                let opened = history.check_copy(&disk, &to, options, number + 1);
                assert!(opened.confirmed, "{opened:?}");
            }
        }
    }
}

#[test]
fn a_backup_beside_a_store_that_writes_and_compacts_is_whole() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, TINY).unwrap();
    let (written, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for seed in 0..2 {
            let (store, written, stop) = (&store, &written, &stop);
            scope.spawn(move || {
                let mut workload = Workload::new(seed);
                while !stop.load(Ordering::SeqCst) {
                    workload.batch_of_bytes(2, 30).play(store).unwrap();
                    written.fetch_add(2, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                store.compact().unwrap();
            }
        });
        check_whole(20, &disk, &written, &stop, |to| copy(&disk, to).unwrap());
    });
}

#[test]
fn a_backup_on_the_real_disk_needs_no_lock() {
    let scratch = Scratch::new();
    let (dir, to) = (scratch.path().join("store"), scratch.path().join("copy"));
    let (store, _) = Embedded::open(&dir, SMALL).unwrap();
    for op in Workload::new(3).ops(60) {
        op.play(&store).unwrap();
    }
    let findings = embedded::backup(&dir, &to, &mut |_| {}).unwrap();
    assert!(findings.is_sound(), "{findings:?}");
    let (copy, _) = Embedded::open(&to, SMALL).unwrap();
    assert_eq!(everything(&copy).unwrap(), everything(&store).unwrap());
}

#[test]
fn a_backup_that_fails_leaves_nothing_behind_and_can_be_repeated() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(3);
    (0..10).for_each(|_| drop(workload.batch_of_bytes(10, 300).play(&store).unwrap()));
    let before = disk.names().len();
    for room in [0, 100, 5_000, 20_000] {
        disk.fill_up(room);
        let outcome = copy(&disk, "/copy");
        assert!(matches!(outcome, Err(OpenError::Disk(_))), "{outcome:?}");
        assert_eq!(disk.names().len(), before, "{:?}", disk.names());
        disk.repair();
    }
    assert!(copy(&disk, "/copy").unwrap().is_sound());
}
