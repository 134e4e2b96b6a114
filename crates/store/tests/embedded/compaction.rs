//! Compactions that fail.

use crate::sim::SimDisk;
use crate::subject::{SMALL, TINY, open};
use crate::workload::{Workload, everything};
use redrive_policy::Moment;
use redrive_store::conformance::block_on;
use redrive_store::embedded::{Notice, Options};
use redrive_store::{Missing, Store, StoreError};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest time that a test waits for anything, even on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_compaction_that_fails_is_reported_once_repeated_and_reported_when_it_succeeds() {
    let disk = SimDisk::default();
    let options = Options { retry_compaction_after: Duration::from_millis(1), ..TINY };
    let (store, _) = open(&disk, options).unwrap();
    let (sender, notices) = channel();
    store.watch(move |notice| drop(sender.send(notice.clone())));
    disk.refuse(".draft");
    Workload::new(1).batch_of_bytes(3, 10).play(&store).unwrap();
    // Each change of a queue makes the log longer, but not its snapshot.
    for paused in [true, false].into_iter().cycle().take(20) {
        block_on(store.pause("one".into(), paused, Missing::Create, Moment::ORIGIN)).unwrap();
    }
    let Notice::CompactionFails(StoreError::Unavailable(why)) = notices.recv_timeout(TIMEOUT).unwrap() else {
        panic!("another notice")
    };
    assert!(why.contains(".draft") && why.contains("the log grows"), "{why}");
    let files = || disk.names().iter().filter(|name| name.ends_with(".log")).count();
    // One attempt may still begin a segment: that of the log that has grown since the first.
    let attempts = disk.refusals();
    disk.wait_for_refusals(attempts + 2);
    let before = files();
    disk.wait_for_refusals(attempts + 6);
    assert_eq!(files(), before, "an attempt takes no further segment");
    let warnings = store.status().warnings();
    assert!(warnings.len() == 1 && warnings[0].starts_with("the log was not compacted because"), "{warnings:?}");
    assert_eq!(store.status().stopped, None);
    assert!(notices.try_recv().is_err(), "it is told once");
    disk.repair();
    assert_eq!(notices.recv_timeout(TIMEOUT).unwrap(), Notice::CompactionWorks);
    assert_eq!(store.status().warnings(), [""; 0]);
    let shown = everything(&store).unwrap();
    drop(store);
    assert_eq!(everything(&open(&disk, options).unwrap().0).unwrap(), shown);
}

#[test]
fn a_copy_after_a_failed_one_has_everything() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(2);
    for round in 0..20 {
        disk.refuse(".draft");
        assert!(store.compact().is_err(), "round {round}");
        for op in workload.ops(15) {
            op.play(&store).unwrap();
        }
        disk.repair();
        store.compact().unwrap();
        let shown = everything(&store).unwrap();
        assert_eq!(everything(&open(&disk.copy(), SMALL).unwrap().0).unwrap(), shown, "round {round}");
    }
}
