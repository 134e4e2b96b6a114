//! A log whose end is lost, and how that is distinguished from one that ends there.

use crate::sim::{Call, Point, SECTOR, SimDisk};
use crate::subject::{DIR, SMALL, open};
use crate::workload::{Workload, everything};
use redrive_store::embedded::{OpenError, Options, check_on};
use std::time::Duration;

const MARK: &str = "high-water";

/// The places of all frames in a file, each of which is one sector long here.
fn frames(disk: &SimDisk, name: &str) -> Vec<usize> {
    let bytes = disk.bytes(name);
    let is_frame = |at: &usize| bytes[*at..].starts_with(&[0xf5, b'r', b'd', b'f']);
    (SECTOR..bytes.len()).step_by(SECTOR).filter(is_frame).collect()
}

fn last_log(disk: &SimDisk) -> String {
    disk.names().into_iter().filter(|name| name.ends_with(".log")).max().unwrap()
}

fn zero_from(disk: &SimDisk, name: &str, from: usize) {
    disk.edit(name, |bytes| bytes[from..].fill(0));
}

/// Opening and checking both report that the end is lost.
fn is_refused(disk: &SimDisk, context: &str) {
    let findings = check_on(disk, DIR, &mut |_| {}).unwrap();
    assert!(!findings.is_sound(), "{context}: {findings:?}");
    let Err(error) = open(disk, SMALL) else { panic!("{context}: opened") };
    let message = error.to_string();
    assert!(
        matches!(error, OpenError::Damaged(_)) && message.contains(MARK) && message.contains("backup"),
        "{message}"
    );
}

#[test]
fn a_zeroed_tail_of_any_number_of_frames_is_refused() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    for _ in 0..20 {
        workload.batch_of_bytes(1, 10).play(&store).unwrap();
    }
    // As a process leaves it that is killed.
    let killed = disk.copy();
    let name = last_log(&killed);
    let places = frames(&killed, &name);
    assert_eq!(places.len(), 20);
    for from in places {
        let damaged = killed.copy();
        zero_from(&damaged, &name, from);
        is_refused(&damaged, &format!("zeros from {from} on"));
    }
    let findings = check_on(&killed, DIR, &mut |_| {}).unwrap();
    assert!(findings.is_sound() && !findings.clean, "{findings:?}");
    assert_eq!((findings.last_frame, findings.high_water), (20, Some(20)));
    let (_store, opened) = open(&killed, SMALL).unwrap();
    assert!(!opened.clean && opened.confirmed, "{opened:?}");
}

#[test]
fn a_tail_that_is_lost_back_to_the_mark_of_an_earlier_close_is_refused() {
    let disk = SimDisk::default();
    let mut workload = Workload::new(1);
    let (store, _) = open(&disk, SMALL).unwrap();
    workload.batch_of_bytes(1, 10).play(&store).unwrap();
    store.close().unwrap();
    let name = last_log(&disk);
    let closed = frames(&disk, &name).len();
    let (store, opened) = open(&disk, SMALL).unwrap();
    assert!(opened.clean && opened.confirmed, "{opened:?}");
    for _ in 0..5 {
        workload.batch_of_bytes(1, 10).play(&store).unwrap();
    }
    let killed = disk.copy();
    zero_from(&killed, &name, frames(&killed, &name)[closed]);
    is_refused(&killed, "the log ends with the mark of a close");
}

#[test]
fn a_segment_that_lost_all_its_frames_is_refused() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    workload.batch_of_bytes(5, 10).play(&store).unwrap();
    store.compact().unwrap();
    workload.batch_of_bytes(5, 10).play(&store).unwrap();
    let killed = disk.copy();
    zero_from(&killed, &last_log(&killed), SECTOR);
    is_refused(&killed, "an empty log behind a snapshot");
}

#[test]
fn a_copy_that_lost_its_end_is_refused() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    for _ in 0..5 {
        workload.batch_of_bytes(1, 10).play(&store).unwrap();
    }
    store.backup("/copy", &mut |_| {}).unwrap();
    drop(store);
    disk.delete_under(DIR.as_ref());
    let name = last_log(&disk);
    let last = *frames(&disk, &name).last().unwrap();
    zero_from(&disk, &name, last);
    let findings = check_on(&disk, "/copy", &mut |_| {}).unwrap();
    assert!(!findings.is_sound(), "{findings:?}");
}

#[test]
fn a_folder_whose_log_and_snapshot_are_gone_is_not_a_new_store() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    Workload::new(1).batch_of_bytes(1, 10).play(&store).unwrap();
    drop(store);
    disk.delete_ending(".log");
    let Err(error) = open(&disk, SMALL) else { panic!("opened") };
    assert!(matches!(error, OpenError::Damaged(_)), "{error}");
    assert!(matches!(check_on(&disk, DIR, &mut |_| {}), Err(OpenError::Damaged(_))));
    // An operator who wants that removes the mark, too.
    disk.delete(MARK);
    assert_eq!(open(&disk, SMALL).unwrap().0.status().jobs, 0);
}

#[test]
fn a_store_without_its_mark_opens_reports_it_and_gets_a_new_one() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    workload.batch_of_bytes(3, 10).play(&store).unwrap();
    let shown = everything(&store).unwrap();
    drop(store);
    let whole = disk.bytes(MARK);
    for left in [None, Some(Vec::new()), Some(vec![0xf5; whole.len()]), Some(whole[..10].to_vec())] {
        let disk = disk.copy();
        match left {
            None => disk.delete(MARK),
            Some(left) => disk.edit(MARK, |bytes| *bytes = left),
        }
        let findings = check_on(&disk, DIR, &mut |_| {}).unwrap();
        assert!(findings.is_sound() && findings.high_water.is_none(), "{findings:?}");
        let (store, opened) = open(&disk, SMALL).unwrap();
        assert!(!opened.confirmed, "{opened:?}");
        assert_eq!(everything(&store).unwrap(), shown);
        drop(store);
        assert!(open(&disk, SMALL).unwrap().1.confirmed);
    }
}

#[test]
fn a_damaged_mark_never_refuses_a_sound_log() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    (0..3).for_each(|_| drop(workload.batch_of_bytes(1, 10).play(&store).unwrap()));
    let killed = disk.copy();
    for bit in 0..2 * SECTOR * 8 {
        let damaged = killed.copy();
        damaged.edit(MARK, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        let (_store, opened) = open(&damaged, SMALL).unwrap();
        // One of the two slots is whole.
        assert!(opened.confirmed, "bit {bit}: {opened:?}");
    }
}

#[test]
fn the_mark_is_flushed_beside_the_log_and_not_by_it() {
    let disk = SimDisk::default();
    let options = Options { look_every: Duration::from_millis(1), ..SMALL };
    let (store, _) = open(&disk, options).unwrap();
    let mark = disk.hold(Point { call: Call::Flush, ending: MARK, after: 0 });
    Workload::new(1).batch_of_bytes(1, 10).play(&store).unwrap();
    // The thread of the log flushes it because it has nothing else to do, the other one because it is time.
    disk.wait_for_held_calls(2);
    drop(mark);
    store.close().unwrap();
}
