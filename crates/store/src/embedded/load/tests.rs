use super::*;
use crate::embedded::frame::HEADER;
use crate::embedded::snapshot::Cursor;
use crate::{Missing, NewJob, Spec};
use redrive_policy::{AttemptLimit, Backoff, Disposition, Matcher, Parts, Policy, Rule, Unmatched};

fn at(micros: i64) -> Moment {
    Moment::from_micros(micros)
}

fn job(queue: &str, number: u128) -> NewJob {
    let rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE }];
    let (attempts, on_stop) = (AttemptLimit::Unlimited, Disposition::Discard);
    let parts =
        Parts { rules, attempts, max_elapsed: None, on_stop, unmatched: Unmatched::NonRetryable, delegated: None };
    let spec = Spec::new("kind", queue, Arc::from(*b"{}"), Arc::new(Policy::new(parts).unwrap()));
    NewJob::new(JobId::new(at(0), number), Arc::new(spec))
}

/// The records of what has changed since the last call.
fn written(store_state: &mut StoreState) -> Vec<u8> {
    let records = store_state.frame.records().split_off(HEADER);
    assert!(store_state.frame.is_empty());
    records
}

fn forgotten(store_state: &mut StoreState, queue: &str, number: u128) {
    let id = JobId::new(at(0), number);
    store_state.cancel(id, at(2)).unwrap();
    store_state.forget(id).unwrap();
    store_state.forget_queue(queue).unwrap();
}

fn loaded(parts: &[&[u8]]) -> Result<Vec<(Arc<str>, Moment, usize)>, String> {
    let mut loader = Loader::default();
    for records in parts {
        loader.apply(records)?;
    }
    let store_state = loader.finish()?;
    Ok(store_state.queues().into_iter().map(|queue| (Arc::clone(&queue.name), queue.created, queue.jobs())).collect())
}

#[test]
fn the_log_may_speak_of_a_queue_that_was_forgotten_before_the_snapshot_was_begun() {
    let mut store_state = Loader::default().finish().unwrap();
    store_state.pause_queue(&"old".into(), false, Missing::Create, at(1));
    drop(written(&mut store_state));
    store_state.enqueue(&[job("old", 1)], at(2)).unwrap().unwrap();
    let before = written(&mut store_state);
    forgotten(&mut store_state, "old", 1);
    let after = written(&mut store_state);
    assert_eq!(loaded(&[&before, &after]), Ok(vec![]));
    assert!(loaded(&[&before]).unwrap_err().contains("a queue that is not known"));
}

#[test]
fn a_queue_that_was_made_anew_stays_when_the_log_says_once_more_that_it_was_forgotten() {
    let mut store_state = Loader::default().finish().unwrap();
    store_state.enqueue(&[job("again", 1)], at(1)).unwrap().unwrap();
    forgotten(&mut store_state, "again", 1);
    store_state.enqueue(&[job("again", 2)], at(9)).unwrap().unwrap();
    let log = written(&mut store_state);
    let mut snapshot = Vec::new();
    let mut cursor = Cursor::default();
    while cursor.write_jobs(&store_state, 9, &mut snapshot) {}
    let expected = Ok(vec![("again".into(), at(9), 1)]);
    assert_eq!(loaded(&[&snapshot]), expected);
    assert_eq!(loaded(&[&snapshot, &log]), expected);
    assert_eq!(loaded(&[&log]), expected);
}

#[test]
fn a_snapshot_has_the_queue_that_came_to_the_place_of_a_forgotten_one_meanwhile() {
    let mut store_state = Loader::default().finish().unwrap();
    for (queue, number) in [("first", 1), ("second", 2)] {
        store_state.enqueue(&[job(queue, number)], at(1)).unwrap().unwrap();
    }
    drop(written(&mut store_state));
    let (mut cursor, mut snapshot) = (Cursor::default(), Vec::new());
    cursor.write_common(&store_state, &mut snapshot);
    forgotten(&mut store_state, "first", 1);
    store_state.enqueue(&[job("third", 3)], at(3)).unwrap().unwrap();
    assert_eq!(store_state.indexes.queue_indexes.len(), 2, "the number was used again");
    let log = written(&mut store_state);
    while cursor.write_jobs(&store_state, 9, &mut snapshot) {}
    assert_eq!(loaded(&[&snapshot, &log]), Ok(vec![("second".into(), at(1), 1), ("third".into(), at(3), 1)]));
}
