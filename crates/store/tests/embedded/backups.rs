//! Backups of stores that are running, closed, or damaged at their end.

use crate::history::History;
use crate::scratch::Scratch;
use crate::sim::SimDisk;
use crate::subject::{DIR, SMALL, TINY, open};
use crate::workload::{Workload, everything};
use redrive_store::embedded::{Embedded, Findings, LoadProgress, OpenError, Options, backup_on};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

#[test]
fn a_backup_of_a_running_store_has_all_that_was_acknowledged() {
    let history = History::new(41, 120);
    for options in [SMALL, TINY] {
        let disk = SimDisk::default();
        let (store, _) = open(&disk, options).unwrap();
        for (number, op) in history.ops.iter().enumerate() {
            op.play(&store).unwrap();
            if number % 20 == 7 {
                let to = format!("/backup{number}");
                let mut seen = Vec::new();
                let findings = store.backup(&to, &mut |progress| seen.push(progress)).unwrap();
                assert!(findings.is_sound() && findings.torn.is_none(), "{findings:?}");
                assert!(seen.is_sorted_by_key(|progress: &LoadProgress| progress.done));
                assert!(seen.last().is_some_and(|last| last.done == last.total), "{seen:?}");
                history.check_copy(&disk, &to, options, number + 1);
            }
        }
    }
}

/// Ends the threads beside a check, also where the check fails: the scope waits for them.
struct StopWhenDone<'a>(&'a AtomicBool);

impl Drop for StopWhenDone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Makes backups while jobs are written two by two: each has all that was acknowledged, and no half of a batch.
pub(crate) fn check_whole(
    count: usize,
    disk: &SimDisk,
    written: &AtomicUsize,
    stop: &AtomicBool,
    backup: impl Fn(&str) -> Findings,
) {
    let _stop = StopWhenDone(stop);
    for number in 0..count {
        let to = format!("/backup{number}");
        let before = written.load(Ordering::SeqCst);
        let findings = backup(&to);
        assert!(findings.is_sound(), "{findings:?}");
        let jobs = findings.jobs.iter().sum::<usize>();
        assert!(jobs >= before && jobs % 2 == 0, "{jobs} jobs, {before} were acknowledged");
        disk.delete_under(Path::new(&to));
    }
}

#[test]
fn a_backup_while_others_write_and_compact_is_whole() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, TINY).unwrap();
    let (written, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut workload = Workload::new(7);
            while !stop.load(Ordering::SeqCst) {
                workload.batch_of_bytes(2, 30).play(&store).unwrap();
                written.fetch_add(2, Ordering::SeqCst);
            }
        });
        check_whole(30, &disk, &written, &stop, |to| store.backup(to, &mut |_| {}).unwrap());
    });
}

#[test]
fn a_backup_of_a_closed_store_leaves_out_a_torn_write() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(2);
    workload.batch_of_bytes(2, 10).play(&store).unwrap();
    let (before, mark) = (everything(&store).unwrap(), disk.bytes("high-water"));
    workload.batch_of_bytes(1, 10).play(&store).unwrap();
    let torn = disk.copy();
    torn.edit("high-water", |bytes| *bytes = mark);
    torn.edit("00000001.log", |bytes| {
        let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        bytes[last] = 0;
    });
    let findings = backup_on(Arc::new(torn.clone()), DIR, "/copy", &mut |_| {}).unwrap();
    assert!(findings.is_sound() && findings.torn.is_none(), "{findings:?}");
    let (copy, opened) = Embedded::open_on(Arc::new(torn.clone()), "/copy", SMALL).unwrap();
    assert!(opened.repairs.is_empty(), "{opened:?}");
    assert_eq!(everything(&copy).unwrap(), before);
    let error = backup_on(Arc::new(torn.clone()), DIR, "/copy", &mut |_| {}).unwrap_err();
    assert!(matches!(error, OpenError::NotEmpty(_)), "{error}");
    let error = backup_on(Arc::new(torn), "/nowhere", "/other", &mut |_| {}).unwrap_err();
    assert!(matches!(error, OpenError::Missing(_)), "{error}");
}

#[test]
fn a_backup_on_the_real_disk_can_be_opened() {
    let scratch = Scratch::new();
    let (store, _) = Embedded::open(scratch.path().join("store"), Options::default()).unwrap();
    for op in Workload::new(3).ops(60) {
        op.play(&store).unwrap();
    }
    store.backup(scratch.path().join("copy"), &mut |_| {}).unwrap();
    let (copy, _) = Embedded::open(scratch.path().join("copy"), Options::default()).unwrap();
    assert_eq!(everything(&copy).unwrap(), everything(&store).unwrap());
}
