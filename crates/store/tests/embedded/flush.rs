//! When answers come.

use crate::sim::SimDisk;
use crate::subject::{SMALL, open};
use crate::workload::Workload;
use redrive_policy::Moment;
use redrive_store::conformance::block_on;
use redrive_store::{Filter, Held, JobId, Missing, Page, Store};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

fn is_ready<T>(answer: &mut Pin<Box<dyn Future<Output = T> + Send + '_>>) -> bool {
    answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_read_waits_for_what_it_has_seen_and_for_nothing_else() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    let id = JobId::new(Moment::ORIGIN, 1);
    let page = Page::new(0, 9);
    assert!(is_ready(&mut store.get(id)), "nothing is pending");
    let held = disk.hold_flushes();
    let first = workload.batch_of_bytes(1, 10);
    let write = first.call(&store);
    disk.wait_for_held_calls(1);
    let none = Held::new();
    let mut reads = (store.get(id), store.queues(), store.next_wake(&none), store.list(Filter::default(), page));
    assert!(!is_ready(&mut reads.0) && !is_ready(&mut reads.1) && !is_ready(&mut reads.2) && !is_ready(&mut reads.3));
    drop(held);
    block_on(write).unwrap();
    assert!(is_ready(&mut reads.0) && is_ready(&mut reads.1) && is_ready(&mut reads.2) && is_ready(&mut reads.3));
    assert!(is_ready(&mut store.queues()), "nothing is pending any more");
}

#[test]
fn writes_that_arrive_during_a_flush_share_the_next_one() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    block_on(workload.batch_of_bytes(1, 10).call(&store)).unwrap();
    let before = store.status().flushes;
    let held = disk.hold_flushes();
    let first = workload.batch_of_bytes(1, 10);
    let mut answers = vec![first.call(&store)];
    // A lone write is on its way at once.
    disk.wait_for_held_calls(1);
    for _ in 0..20 {
        let op = workload.batch_of_bytes(1, 10);
        answers.push(op.call(&store));
    }
    drop(held);
    for answer in answers {
        block_on(answer).unwrap();
    }
    store.close().unwrap();
    assert_eq!(store.status().flushes - before, 2);
}

#[test]
fn an_operation_is_carried_out_even_if_no_caller_waits() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(1);
    for _ in 0..5 {
        drop(workload.batch_of_bytes(2, 10).call(&store));
    }
    assert_eq!(store.status().jobs, 10);
    drop(store);
    let (store, opened) = open(&disk, SMALL).unwrap();
    assert!(opened.clean);
    assert_eq!(store.status().jobs, 10);
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let disk = SimDisk::default();
    let (store, _) = open(&disk, SMALL).unwrap();
    let mut workload = Workload::new(2);
    for op in workload.ops(50) {
        op.play(&store).unwrap();
    }
    block_on(store.pause("one".into(), true, Missing::Create, Moment::ORIGIN)).unwrap();
    let before = store.status();
    block_on(store.pause("one".into(), true, Missing::Create, Moment::ORIGIN)).unwrap();
    assert!(block_on(store.cancel(JobId::new(Moment::ORIGIN, 1), Moment::ORIGIN)).unwrap().is_err());
    assert_eq!(block_on(store.enqueue(Vec::new(), Moment::ORIGIN)).unwrap(), Ok(Vec::new()));
    store.close().unwrap();
    let after = store.status();
    assert_eq!((after.flushes, after.log_bytes), (before.flushes, before.log_bytes));
}
