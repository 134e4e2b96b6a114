//! A list does not delay other operations.

use crate::sim::SimDisk;
use crate::subject::{SMALL, open};
use crate::workload::Workload;
use redrive_store::conformance::block_on;
use redrive_store::embedded::Options;
use redrive_store::{Embedded, Filter, Page, Store};
use std::task::{Context, Poll, Waker};

const JOBS: usize = 50_000;
const STEP: usize = 100;

/// A store with many jobs of one kind.
fn filled(options: Options) -> (Embedded, Workload) {
    let (store, _) = open(&SimDisk::default(), Options { segment_bytes: 64 << 20, ..options }).unwrap();
    let mut workload = Workload::new(1);
    for _ in 0..JOBS / 1_000 {
        workload.play_batch(&store, 1_000);
    }
    (store, workload)
}

#[test]
fn a_list_by_kind_lets_writers_in_after_every_step() {
    let (store, mut workload) = filled(Options { list_step_jobs: STEP, ..SMALL });
    let filter = Filter { kind: Some("another".into()), ..Filter::default() };
    let mut list = store.list(filter, Page::new(0, 10));
    let mut context = Context::from_waker(Waker::noop());
    let mut steps = 1;
    let listed = loop {
        match list.as_mut().poll(&mut context) {
            Poll::Ready(listed) => break listed.unwrap(),
            Poll::Pending => {
                steps += 1;
                // It answers, so the list does not hold the lock.
                if steps % 50 == 0 {
                    workload.play_batch(&store, 1);
                }
            }
        }
    };
    assert!(listed.jobs.is_empty() && listed.next.is_none(), "{listed:?}");
    assert!(steps >= JOBS / STEP, "{JOBS} jobs were looked at in {steps} steps of at most {STEP}");
}

#[test]
fn a_list_by_kind_looks_at_a_limited_number_of_jobs_in_one_call() {
    let most = 20_000;
    let (store, _) = filled(Options { list_step_jobs: STEP, list_most_jobs: most, ..SMALL });
    let filter = Filter { kind: Some("another".into()), ..Filter::default() };
    let mut page = Page::new(0, 10);
    let mut calls = 0;
    loop {
        let listed = block_on(store.list(filter.clone(), page)).unwrap();
        calls += 1;
        let Some(next) = listed.next else { break };
        page = next;
    }
    // A call that looked at more than `most` jobs would leave fewer calls.
    assert_eq!(calls, JOBS.div_ceil(most));
}

#[test]
fn a_list_by_queue_and_state_is_counted_without_being_read() {
    let (store, _) = filled(Options { list_step_jobs: STEP, ..SMALL });
    let filter = Filter { queue: Some("one".into()), dead: Some(false), ..Filter::default() };
    let mut list = store.list(filter, Page::new(0, 10));
    let Poll::Ready(listed) = list.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("ten jobs take one step")
    };
    assert_eq!(listed.unwrap().total, Some(JOBS));
}
