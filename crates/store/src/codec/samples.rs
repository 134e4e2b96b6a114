//! Jobs for the tests of everything that writes and reads bytes.

use crate::{
    ChildEnd, EventBody, EventKind, FailedAttempt, Interest, Job, JobEvent, JobId, Lease, LeaseToken, Message,
    MessageBody, OnConflict, OtherEvent, Parent, Revision, Run, RunEnd, RunId, Signal, Spec, State, States, Times,
    Transition, Unique, UniqueKey,
};
use redrive_policy::{
    AttemptLimit, Backoff, Computed, Disposition, Draw, Handled, History, Matcher, Mismatch, Moment, Origin, Outcome,
    Parts, Policy, Reason, Rule, Span, Unmatched, Verdict,
};
use std::sync::Arc;

/// A job that has something in every place.
pub(crate) fn job() -> Job {
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
            limits: None,
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
        parent: Some(Parent { run: RunId::new(at(6), 8), child: 300 }),
        unique: Some(Arc::new(Unique {
            key: UniqueKey([7; 32]),
            states: States::from_bits(0b1010_0101),
            period: Some(Span::from_secs(5)),
            on_conflict: OnConflict::ReplaceExceptSchedule,
            schedule: Some(at(14)),
        })),
    }
}

/// A run that failed, and what was decided.
pub(crate) fn run(verdict: Verdict) -> FailedAttempt {
    let [available, started, at] = [1, 2, 3].map(Moment::from_micros);
    FailedAttempt {
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

/// A verdict of every kind.
pub(crate) fn verdicts() -> Vec<Verdict> {
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

/// A run with all parts, one with none, and one that failed.
pub(crate) fn runs() -> Vec<Run> {
    let at = Moment::from_micros;
    let bare = Run {
        id: RunId::new(at(6), 8),
        program: "flow".into(),
        version: 1,
        state: Arc::from(*b""),
        revision: 0,
        timer: None,
        key: None,
        parent: None,
        depth: 0,
        children: 0,
        seed: 7,
        created: at(10),
        advanced: at(10),
        end: None,
        interest: None,
    };
    let end = RunEnd { at: at(12), succeeded: true, result: Arc::from(*b"{}") };
    let whole = Run {
        state: Arc::from(*b"\0state"),
        revision: 300,
        timer: Some(at(13)),
        key: Some("k".into()),
        parent: Some(Parent { run: RunId::new(at(6), 9), child: 300 }),
        depth: 2,
        children: u64::from(u32::MAX) + 1,
        advanced: at(11),
        end: Some(end.clone()),
        ..bare.clone()
    };
    let failed = Run { end: Some(RunEnd { succeeded: false, ..end }), ..bare.clone() };
    let interest = Interest { types: vec!["job.*".into()], queues: vec!["q".into()], job_types: Vec::new() };
    let listening = Run { interest: Some(Arc::new(interest)), ..bare.clone() };
    vec![whole, bare, failed, listening]
}

/// A message of each kind.
pub(crate) fn messages() -> Vec<Message> {
    let at = Moment::from_micros;
    let failure = || job().failures[0].clone();
    let (child, id, generation) = (300, job().id, 2);
    let ends = [
        ChildEnd::Completed { result: None },
        ChildEnd::Completed { result: Some(Arc::from(*b"{}")) },
        ChildEnd::Failed { failure: failure(), dead: true },
        ChildEnd::Expired { last_failure: None, dead: false },
        ChildEnd::Expired { last_failure: Some(failure()), dead: true },
        ChildEnd::Cancelled { last_failure: None },
        ChildEnd::Cancelled { last_failure: Some(failure()) },
    ];
    let others = [
        MessageBody::JobRedriven { child, id, generation },
        MessageBody::RunEnded { child, id: RunId::new(at(6), 9), succeeded: true, result: Arc::from(*b"{}") },
        MessageBody::Signal(Signal { name: "cancel".into(), body: Arc::from(*b"\0") }),
    ];
    let ends = ends.map(|end| MessageBody::JobEnded { child, id, generation, end });
    let transition = Transition::new(job(), EventKind::Discarded, Some(State::Active), at(14));
    let of_job = JobEvent::of(&transition, 1_000).map(|event| EventBody::Job(Box::new(event)));
    let other = OtherEvent {
        event_type: "cron.triggered".into(),
        subject: "s".into(),
        queue: Some("q".into()),
        job_type: None,
        data: Arc::from(*b"{}"),
    };
    let events = of_job.chain([EventBody::Other(other)]).map(|event| MessageBody::Event { at: at(14), event });
    let numbered = (299..).zip(ends.into_iter().chain(others).chain(events));
    numbered.map(|(number, body)| Message { number, at: at(14), body }).collect()
}
