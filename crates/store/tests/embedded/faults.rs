//! A disk that fails: the store stops, reports it, and has lost nothing that it acknowledged.

use crate::history::{History, Reached};
use crate::sim::{Fault, SimDisk};
use crate::subject::{DIR, SMALL, TINY, open};
use crate::workload::{Workload, everything};
use redrive_store::conformance::block_on;
use redrive_store::embedded::{OpenError, check_on};
use redrive_store::{Store, StoreError};

/// Counts of the outcomes of faults.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    stopped: usize,
}

impl Tally {
    /// Calls operations on a disk with a fault, and continues after the disk was repaired.
    fn meet(&mut self, history: &History, fault: Fault, seed: u64) {
        let disk = SimDisk::default();
        disk.break_with(fault);
        let context = format!("{fault:?}, seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut reached = Reached { acknowledged: 0, called: 0 };
        match open(&disk, TINY) {
            Err(OpenError::Disk(_)) => self.refused += 1,
            Err(error) => panic!("{context}: {error}"),
            Ok((store, _)) => {
                reached = history.play(&store, &mut random);
                if reached.acknowledged < history.ops.len() {
                    self.stopped += 1;
                    stays_stopped(&store, &context);
                } else {
                    // It may still be met when the store is closed.
                    let _ = store.close();
                }
            }
        }
        disk.repair();
        let (store, _) = open(&disk, TINY).unwrap_or_else(|error| panic!("{context}: {error}"));
        let place = history.place_of(&store, reached).unwrap_or_else(|found| panic!("{context}: {found}"));
        history.go_on(&store, place);
        store.close().unwrap();
        assert!(check_on(&disk, DIR, &mut |_| {}).unwrap().is_sound(), "{context}");
    }
}

/// Every operation and the status report the reason.
fn stays_stopped(store: &redrive_store::Embedded, context: &str) {
    let mut workload = Workload::new(1);
    for op in workload.ops(30) {
        let Err(StoreError::Unavailable(why)) = op.play(store) else { panic!("{context}: {op:?} was answered") };
        assert!(why.contains("stopped because it cannot") && why.contains("start again"), "{context}: {why}");
        assert_eq!(store.status().stopped, Some(StoreError::Unavailable(why)), "{context}");
    }
    assert!(store.close().is_err(), "{context}");
}

/// How many calls, and how many writes, the operations of a history make without any fault. The threads of
/// the store make a few more or less of them each time.
fn effort(history: &History) -> (u64, u64) {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, TINY).unwrap();
    history.play(&store, &mut fastrand::Rng::with_seed(0));
    drop(store);
    disk.counts()
}

#[test]
fn a_disk_that_fails_for_good_at_any_call_loses_nothing() {
    let history = History::new(21, 200);
    let (calls, _) = effort(&history);
    let mut tally = Tally::default();
    (1..calls).for_each(|call| tally.meet(&history, Fault::FailFrom(call), call));
    assert!(calls > 100 && tally.refused > 5 && tally.stopped > 50, "{tally:?} in {calls} calls");
}

#[test]
fn a_disk_that_fails_once_at_any_call_loses_nothing() {
    let history = History::new(22, 200);
    let (calls, _) = effort(&history);
    let mut tally = Tally::default();
    (1..calls).for_each(|call| tally.meet(&history, Fault::FailOnce(call), call));
    assert!(calls > 100 && tally.refused > 5 && tally.stopped > 10, "{tally:?} in {calls} calls");
}

#[test]
fn a_compaction_that_meets_a_fault_says_so_and_changes_nothing() {
    let (mut failed, mut stopped) = (0, 0);
    for call in 1.. {
        let disk = SimDisk::default();
        let (store, _) = open(&disk, SMALL).unwrap();
        let mut workload = Workload::new(call);
        workload.batch_of_bytes(10, 100).play(&store).unwrap();
        let before = everything(&store).unwrap();
        let (calls, _) = disk.counts();
        disk.break_with(Fault::FailOnce(call));
        let outcome = store.compact();
        let met = disk.counts().0 >= calls + call;
        disk.repair();
        assert_eq!(store.status().compaction, Some(outcome.clone()), "call {call}");
        match (&outcome, store.status().stopped) {
            (Ok(()), None) if !met => break,
            (Err(_), None) => failed += 1,
            (Err(why), Some(stop)) => {
                assert_eq!(*why, stop, "call {call}");
                stopped += 1;
            }
            other => panic!("call {call}: {other:?}"),
        }
        if store.status().stopped.is_none() {
            store.compact().unwrap();
            assert_eq!(everything(&store).unwrap(), before, "call {call}");
        }
        drop(store);
        assert_eq!(everything(&open(&disk, SMALL).unwrap().0).unwrap(), before, "call {call}");
    }
    // The seal of the old segment is a part of the log, written, flushed, marked and looked for; nothing else is.
    assert!(failed > 8 && stopped == 6, "{failed} failed, {stopped} stopped");
}

#[test]
fn a_write_that_stops_early_at_any_place_loses_nothing() {
    let history = History::new(23, 100);
    let (_, writes) = effort(&history);
    let mut tally = Tally::default();
    for bytes in [0, 1, 20, 27, 28, 40, 300, 511, 512, 600] {
        (1..writes).for_each(|write| tally.meet(&history, Fault::ShortWrite(write, bytes), write));
    }
    assert!(tally.stopped > 100, "{tally:?} in {writes} writes");
}

#[test]
fn a_full_disk_stops_the_store_with_the_way_out() {
    for room in [0, 100, 2_000, 5_000, 17_000, 40_000] {
        let disk = SimDisk::default();
        let (store, _) = open(&disk, SMALL).unwrap();
        let mut workload = Workload::new(room);
        disk.fill_up(room);
        let mut acknowledged = everything(&store).unwrap();
        let why = loop {
            match workload.batch_of_bytes(3, 100).play(&store) {
                Ok(_) => acknowledged = everything(&store).unwrap(),
                Err(StoreError::Unavailable(why)) => break why,
                Err(error) => panic!("{error}"),
            }
        };
        assert!(why.contains("make room on the disk") && why.contains("0000000"), "{why}");
        drop(store);
        // Opening needs no room.
        let (store, _) = open(&disk, SMALL).unwrap();
        assert_eq!(everything(&store).unwrap(), acknowledged, "room for {room}");
        drop(store);
        disk.repair();
        let (store, _) = open(&disk, SMALL).unwrap();
        workload.batch_of_bytes(300, 100).play(&store).unwrap();
    }
}

#[test]
fn a_disk_too_full_for_a_snapshot_is_reported_and_the_store_goes_on() {
    // Too little for the segment behind the snapshot; enough for that one only.
    for room in [0, 17_000] {
        compaction_without_room(room);
    }
}

fn compaction_without_room(room: u64) {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(4);
    workload.batch_of_bytes(30, 100).play(&store).unwrap();
    disk.fill_up(room);
    let Err(StoreError::Unavailable(why)) = store.compact() else { panic!("there was room") };
    assert!(why.contains("make room on the disk"), "{why}");
    assert_eq!(store.status().compaction, Some(Err(StoreError::Unavailable(why))));
    assert_eq!(store.status().stopped, None);
    workload.batch_of_bytes(1, 100).play(&store).unwrap();
    disk.repair();
    store.compact().unwrap();
    let before = everything(&store).unwrap();
    drop(store);
    assert_eq!(everything(&open(&disk, SMALL).unwrap().0).unwrap(), before);
}

#[test]
fn a_caller_that_waits_gets_the_error_when_the_flush_fails() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(6);
    let held = disk.hold_flushes();
    let first = workload.batch_of_bytes(1, 10);
    let first = first.call(&store);
    disk.wait_for_held_calls(1);
    let second = workload.batch_of_bytes(1, 10);
    let second = second.call(&store);
    let read = store.queues();
    disk.break_with(Fault::PowerCut(1));
    drop(held);
    for outcome in [block_on(first).map(drop), block_on(second).map(drop), block_on(read).map(drop)] {
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    }
}
