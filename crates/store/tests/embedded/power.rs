//! The power fails at every flush that there is.

use crate::history::{History, Reached};
use crate::sim::{Call, Fault, Point, SimDisk};
use crate::subject::{DIR, SMALL, TINY, open};
use crate::workload::Workload;
use redrive_policy::Moment;
use redrive_store::Store;
use redrive_store::conformance::block_on;
use redrive_store::embedded::{Options, check_on};
use std::thread;

const SEEDS: u64 = 6;
const IMAGES: u64 = 3;

/// Cuts the power at the n-th flush, for every n, and checks what is left. Returns how often there
/// was something to cut off.
fn cut_everywhere(seed: u64, options: Options) -> usize {
    let history = History::new(seed, 150);
    let mut cut_off = 0;
    for flush in 1.. {
        let disk = SimDisk::default();
        disk.break_with(Fault::PowerCut(flush));
        let mut random = fastrand::Rng::with_seed(seed << 32 | flush);
        let reached = match open(&disk, options) {
            Ok((store, _)) => history.play(&store, &mut random),
            Err(_) => Reached { acknowledged: 0, called: 0 },
        };
        for image in 0..IMAGES {
            let after = disk.after_power_cut(&mut random);
            let context = format!("seed {seed}, flush {flush}, image {image}, {reached:?}");
            let (store, opened) = open(&after, options).unwrap_or_else(|error| panic!("{context}: {error}"));
            cut_off += opened.repairs.iter().filter(|repair| format!("{repair:?}").contains("CutOff")).count();
            let place = history.place_of(&store, reached).unwrap_or_else(|found| panic!("{context}: {found}"));
            history.go_on(&store, place);
            store.close().unwrap();
            let findings = check_on(&after, DIR, &mut |_| {}).unwrap();
            assert!(findings.is_sound() && findings.clean, "{context}: {findings:?}");
        }
        if !disk.is_dead() {
            assert!(flush > 40, "the verbs flushed only {flush} times");
            return cut_off;
        }
    }
    unreachable!("the verbs come to an end")
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_flush() {
    let cut_off: usize = (0..SEEDS).map(|seed| cut_everywhere(seed, SMALL)).sum();
    assert!(cut_off > 10, "only {cut_off} torn writes");
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_flush_of_snapshots_and_rotations() {
    let cut_off: usize = (10..10 + SEEDS).map(|seed| cut_everywhere(seed, TINY)).sum();
    assert!(cut_off > 10, "only {cut_off} torn writes");
}

#[test]
fn a_snapshot_never_brings_back_a_part_of_a_batch() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    let ids = workload.play_batch(&store, 10);
    // The slot of the first job is free, and will be that of the first job of the batch.
    block_on(store.cancel(ids[0], Moment::ORIGIN)).unwrap().unwrap();
    block_on(store.remove(ids[0])).unwrap().unwrap();
    thread::scope(|scope| {
        let draft = disk.hold(Point { call: Call::Write, ending: ".draft", after: 1 });
        scope.spawn(|| store.compact().unwrap());
        // The snapshot has written the first slots, and not yet the last.
        disk.wait_for_held_calls(1);
        let log = disk.hold_flushes();
        let batch = workload.batch_of_bytes(2, 10);
        let answer = batch.call(&store);
        disk.wait_for_held_calls(2);
        drop(draft);
        // This should have no effect, however long the wait.
        for _ in 0..20_000 {
            if disk.names().iter().any(|name| name.ends_with(".snapshot")) {
                break;
            }
            thread::yield_now();
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20 {
            let (after, _) = open(&disk.after_power_cut(&mut random), SMALL).unwrap();
            assert!([9, 11].contains(&after.status().jobs), "{} jobs", after.status().jobs);
        }
        drop(log);
        block_on(answer).unwrap();
    });
    assert_eq!(store.status().compaction, Some(Ok(())));
    let (after, _) = open(&disk.after_power_cut(&mut fastrand::Rng::with_seed(2)), SMALL).unwrap();
    assert_eq!(after.status().jobs, 11);
}
