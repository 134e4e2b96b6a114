use super::*;
use crate::{Lease, LeaseToken, Spec, State, Times};
use redrive_policy::{
    AttemptLimit, Backoff, Computed, Disposition, Draw, Handled, History, Matcher, Mismatch, Origin, Outcome, Parts,
    Policy, Reason, Rule, Unmatched, Verdict,
};
use std::sync::Arc;

fn job() -> Job {
    let rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE }];
    let (attempts, on_stop) = (AttemptLimit::Unlimited, Disposition::Discard);
    let parts =
        Parts { rules, attempts, max_elapsed: None, on_stop, unmatched: Unmatched::NonRetryable, delegated: None };
    let at = Moment::from_micros;
    let handled = [(3, Some(0.1)), (0, None), (u32::MAX, Some(7.0))];
    let handled = handled.map(|(count, ms)| Handled { count, previous: ms.map(Span::saturating_ms) });
    let token = LeaseToken { number: 7, nonce: u64::MAX };
    Job {
        id: JobId::new(at(5), 7),
        spec: Arc::new(Spec {
            kind: "kind".into(),
            queue: "queue".into(),
            priority: i32::MIN,
            body: Arc::from([0, 255, 10]),
            policy: Arc::new(Policy::new(parts).unwrap()),
            timeout: Some(Span::MAX),
            lease: None,
            expires: Some(at(i64::MAX)),
        }),
        state: State::Active,
        attempt: 300,
        history: History::restored(at(-1), 9, handled),
        due: Some(at(1)),
        lease: Some(Lease {
            token,
            worker: "ada".into(),
            alive: at(2),
            until: at(3),
            span: Span::from_secs(1),
            deadline: Some(at(4)),
        }),
        leases: 7,
        generation: 1,
        releases: 2,
        dead: true,
        times: Times { created: at(10), available: Some(at(11)), started: Some(at(12)), finished: Some(at(13)) },
        last_delay: Some(Span::saturating_ms(0.3)),
        failures: verdicts().into_iter().map(run).collect(),
        revisions: vec![Revision { generation: 300, at: at(9), by: "ada".into(), body: Arc::from([255, 0]) }],
        result: Some(Arc::from(*b"{}")),
        settled: Some(token),
        completed_by: Some("bob".into()),
    }
}

fn run(verdict: Verdict) -> FailedRun {
    let [available, started, at] = [1, 2, 3].map(Moment::from_micros);
    FailedRun {
        generation: 1,
        attempt: 2,
        available,
        started,
        at,
        worker: "ada".into(),
        error: Arc::from(*b"{\"a\":1}"),
        verdict,
    }
}

/// One of every kind.
fn verdicts() -> Vec<Verdict> {
    let span = Span::saturating_ms(0.1 + 0.2);
    let computed = |capped_at, draw| Origin::Backoff(Computed { retry: 3, raw: span, capped_at, draw, delay: span });
    let origins =
        [computed(None, None), computed(Some(span), Some(Draw::from_bits(9))), Origin::Override, Origin::Requeue];
    let mismatches = [
        Mismatch::Excluded { entry: 300 },
        Mismatch::NotIncluded,
        Mismatch::OtherCode,
        Mismatch::OtherFlag,
        Mismatch::Permanent,
    ];
    let mut reasons = vec![
        Reason::MaxAttempts { limit: 5 },
        Reason::MaxElapsed { limit: span, elapsed: span, delay: Some(span) },
        Reason::MaxElapsed { limit: span, elapsed: span, delay: None },
        Reason::Unmatched,
        Reason::Handler,
        Reason::Unrecoverable,
        Reason::RetriesDisabled,
        Reason::Pruned,
    ];
    reasons.extend(mismatches.map(Reason::NonRetryable));
    let dispositions = [Disposition::Discard, Disposition::DeadLetter, Disposition::Fail];
    let stops = reasons.into_iter().zip(dispositions.into_iter().cycle());
    let outcomes = origins.into_iter().map(|origin| Outcome::Retry { delay: span, origin });
    let outcomes = outcomes.chain(stops.map(|(reason, disposition)| Outcome::Stop { reason, disposition }));
    outcomes.enumerate().map(|(index, outcome)| Verdict { attempt: 1, rule: index.checked_sub(1), outcome }).collect()
}

/// All records, one after the other.
fn all(job: &Job) -> Vec<u8> {
    let mut out = Vec::new();
    policy(&mut out, 300, b"{}");
    let timeout = Some(Span::from_secs(1));
    for (timeout, lease) in [(timeout, None), (None, timeout), (None, None)] {
        let record = SharedSpecRecord { number: 1, kind: "k", queue: "q", priority: -1, policy: 300, timeout, lease };
        shared_spec(&mut out, &record);
    }
    queue(&mut out, "q", true, Moment::from_micros(1));
    put(&mut out, job, 1, Some("key"));
    put(&mut out, job, 1, None);
    row(&mut out, job);
    for run in &job.failures {
        failure(&mut out, job.id, run);
    }
    for old in &job.revisions {
        revision(&mut out, job.id, old);
    }
    respec(&mut out, job.id, &SpecRecord { shared_spec: 1, expires: None, body: b"" });
    delete(&mut out, job.id);
    clock(&mut out, Moment::from_micros(1), -5);
    sealed(&mut out);
    closed(&mut out);
    begin(&mut out, u64::MAX);
    end(&mut out, 3);
    out
}

fn read(bytes: &[u8]) -> Result<Vec<Record<'_>>, Unreadable> {
    let mut from = Decoder::new(bytes);
    let mut records = Vec::new();
    while !from.is_empty() {
        records.push(Record::decode(&mut from)?);
    }
    Ok(records)
}

#[test]
fn every_record_comes_back_as_it_was() {
    let job = job();
    let bytes = all(&job);
    let mut records = read(&bytes).unwrap().into_iter();
    assert_eq!(records.next(), Some(Record::Policy { number: 300, text: b"{}" }));
    assert_eq!(records.by_ref().take(3).filter(|record| matches!(record, Record::SharedSpec(_))).count(), 3);
    let created = Moment::from_micros(1);
    assert_eq!(records.next(), Some(Record::Queue { name: "q", paused: true, created }));
    for key in [Some("key"), None] {
        let spec = SpecRecord { shared_spec: 1, expires: job.spec.expires, body: &job.spec.body };
        let put = Record::Put { id: job.id, created: job.times.created, key, spec, row: Row::of(&job) };
        assert_eq!(records.next(), Some(put));
    }
    assert_eq!(records.next(), Some(Record::Row { id: job.id, row: Row::of(&job) }));
    for run in &job.failures {
        assert_eq!(records.next(), Some(Record::Failure { id: job.id, run: run.clone() }));
    }
    for old in &job.revisions {
        assert_eq!(records.next(), Some(Record::Revision { id: job.id, revision: old.clone() }));
    }
    let spec = SpecRecord { shared_spec: 1, expires: None, body: b"" };
    assert_eq!(records.next(), Some(Record::Respec { id: job.id, spec }));
    assert_eq!(records.next(), Some(Record::Delete { id: job.id }));
    let rest: Vec<_> = records.collect();
    assert_eq!(
        rest,
        [
            Record::Clock { at: created, ahead_us: -5 },
            Record::Sealed,
            Record::Closed,
            Record::Begin { next_sequence: u64::MAX },
            Record::End { jobs: 3 }
        ]
    );
}

#[test]
fn whatever_the_bytes_say_reading_them_does_not_panic() {
    let bytes = all(&job());
    for at in 0..bytes.len() {
        let _ = read(&bytes[..at]);
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
            let mut copy = bytes.clone();
            copy[at] = value;
            let _ = read(&copy);
        }
    }
}

#[test]
fn a_state_is_written_as_its_place_in_the_list() {
    for (place, state) in State::ALL.into_iter().enumerate() {
        assert_eq!(state as usize, place);
    }
}
