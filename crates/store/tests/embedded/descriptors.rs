//! A process that has no file descriptors left.

use crate::scratch::Scratch;
use crate::sim::SimDisk;
use crate::subject::{SMALL, open};
use crate::workload::{Workload, everything};
use redrive_store::embedded::{Embedded, Notice};
use std::fs::File;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest time that a test waits for anything, even on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The names of the log's files, without those that are being prepared.
fn segments(disk: &SimDisk) -> usize {
    disk.names().iter().filter(|name| name.ends_with(".log")).count()
}

#[test]
fn a_store_without_descriptors_waits_for_one_and_goes_on() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let (sender, notices) = channel();
    store.watch(move |notice| drop(sender.send(notice.clone())));
    let mut workload = Workload::new(1);
    // More than the reserve can bridge.
    disk.exhaust(30);
    while segments(&disk) < 3 {
        workload.batch_of_bytes(5, 300).play(&store).unwrap();
    }
    assert_eq!(disk.exhausted(), 0);
    let Notice::Waits(why) = notices.recv_timeout(TIMEOUT).unwrap() else { panic!("another notice") };
    assert!(why.contains("writes wait") && why.contains("ulimit -n"), "{why}");
    assert_eq!(notices.recv_timeout(TIMEOUT).unwrap(), Notice::GoesOn);
    let status = store.status();
    assert_eq!((status.stopped.clone(), status.warnings()), (None, Vec::new()));
    let shown = everything(&store).unwrap();
    drop(store);
    let (store, opened) = open(&disk, SMALL).unwrap();
    assert!(opened.clean, "{opened:?}");
    assert_eq!(everything(&store).unwrap(), shown);
}

#[test]
fn a_compaction_without_descriptors_fails_and_the_store_goes_on() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    workload.batch_of_bytes(5, 300).play(&store).unwrap();
    disk.exhaust(1_000);
    assert!(store.compact().is_err());
    workload.batch_of_bytes(1, 300).play(&store).unwrap();
    disk.exhaust(0);
    store.compact().unwrap();
    assert_eq!(store.status().stopped, None);
}

/// The process of the next test: it uses up all its descriptors, and continues to write.
#[test]
fn process_without_descriptors() {
    let Ok(dir) = std::env::var("REDRIVE_FEW_DESCRIPTORS") else { return };
    let (store, _) = Embedded::open(&dir, SMALL).unwrap();
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    let mut workload = Workload::new(1);
    for _ in 0..10 {
        for _ in 0..20 {
            workload.batch_of_bytes(5, 300).play(&store).unwrap();
        }
        store.compact().unwrap();
    }
    let jobs = store.status().jobs;
    drop(files);
    store.close().unwrap();
    eprintln!("outcome: {jobs} jobs");
}

#[cfg(unix)]
#[test]
fn a_process_without_descriptors_fills_segments_and_compacts_with_those_in_reserve() {
    let scratch = Scratch::new();
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 64; exec \"$0\" --exact descriptors::process_without_descriptors --nocapture"])
        .arg(test)
        .env("REDRIVE_FEW_DESCRIPTORS", scratch.path());
    let message = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(message.contains("outcome: 1000 jobs"), "{message}");
    let (store, opened) = Embedded::open(scratch.path(), SMALL).unwrap();
    assert!(opened.clean, "{opened:?}");
    assert_eq!(store.status().jobs, 1_000);
}
