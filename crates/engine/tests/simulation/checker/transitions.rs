//! Transitions say what happened: those that requests were answered with, and the events that the servers published.

use super::Case;
use crate::ledger::{Answered, Ended, Settle, short};
use redrive_engine::Event;
use redrive_policy::Moment;
use redrive_store::{EventKind, JobEvent, JobId, State, Transition};
use std::collections::HashMap;

const CHECK: &str = "transitions";

pub(super) fn verify(case: &mut Case<'_>) {
    for answered in &case.account.transitions {
        if let Some(wrong) = incoherence(case, answered) {
            let transition = &answered.transition;
            let (event, from) = (transition.event, transition.from);
            let message =
                format!("{wrong} in {event:?} from {from:?} at {:?}: {}", answered.when, short(&transition.job));
            case.violation(CHECK, message);
        }
    }
    repeats(case);
    if let Some(id) = case.account.id {
        published(case, id);
        events(case, id);
    }
}

/// The part of an answer that does not fit the others, or what else is known of the run.
fn incoherence(case: &Case<'_>, answered: &Answered) -> Option<&'static str> {
    let transition = &answered.transition;
    let run = transition.lease.as_ref().and_then(|lease| case.account.runs.get(&lease.token.number));
    let is_decided = matches!(transition.event, EventKind::RetryScheduled | EventKind::Discarded);
    let may_be_decided = is_decided || transition.event == EventKind::Snoozed;
    let ends = transition.job.state.is_terminal() && transition.event != EventKind::Removed;
    let wrong = [
        ("the state before", !follows(transition)),
        ("the lease", transition.lease.is_some() != (transition.from == Some(State::Active))),
        ("the attempt", run.is_some_and(|run| run.job.attempt != transition.attempt)),
        ("the generation", run.is_some_and(|run| run.job.generation != transition.generation())),
        ("the worker", run.is_some_and(|run| transition.worker().map(|name| &**name) != Some(&*run.worker))),
        ("the verdict", is_decided && transition.verdict.is_none() || !may_be_decided && transition.verdict.is_some()),
        (
            "the failure",
            transition.failure().map(|failure| failure.verdict) != transition.verdict.filter(|_| is_decided),
        ),
        ("the end", transition.end().is_some() != ends),
        ("the overdue run", transition.overdue.is_some()),
        ("the time", !case.ledger.showed(answered.when, transition.at)),
    ];
    wrong.into_iter().find(|(_, wrong)| *wrong).map(|(part, _)| part)
}

/// Whether the event leads from the state before it to the one after it.
fn follows(transition: &Transition) -> bool {
    let (from, to) = (transition.from, transition.job.state);
    match transition.event {
        EventKind::Enqueued => from.is_none(),
        EventKind::Removed => from == Some(to) && to.is_terminal(),
        event => from.and_then(|from| from.after(event)) == Some(to),
    }
}

/// A success that was acknowledged is repeated ever after, and nothing else is.
fn repeats(case: &mut Case<'_>) {
    let settles = &case.account.settles;
    let is_done = |settle: &Settle| matches!(settle.ending, Ended::Done { .. });
    let mut violations = Vec::new();
    for (index, settle) in settles.iter().enumerate().filter(|(_, settle)| settle.reply.surely()) {
        let mut others = settles.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
        let same = |other: &&Settle| is_done(other) && settle.run.is_some() && other.run == settle.run;
        let first = |other: &Settle| !other.repeated && other.reply.maybe() && other.when.may_precede(settle.when);
        let unfounded = settle.repeated && !(is_done(settle) && others.clone().filter(same).any(first));
        let known = |other: &Settle| other.reply.surely() && other.when.before(settle.when);
        let unnoticed = is_done(settle) && !settle.repeated && others.any(|other| same(&other) && known(other));
        if unfounded || unnoticed {
            violations.push(format!("repeated is {} in {settle:?}", settle.repeated));
        }
    }
    violations.into_iter().for_each(|message| case.violation(CHECK, message));
}

/// What identifies an event; a run that was released may be released again, as the same attempt at the same time.
type Key = (EventKind, u32, u32, State, i64);

fn key_of(at: Moment, event: &JobEvent) -> Key {
    (event.kind, event.generation, event.attempt, event.state, at.micros())
}

/// What a log says of a job; second events of one change are left out.
fn changes(log: &[Event], id: JobId) -> impl Iterator<Item = (Moment, &JobEvent)> {
    let changes = log.iter().filter_map(|event| Some((event.at, event.change()?)));
    changes.filter(move |(_, event)| event.job == id)
}

/// What a server answers, it has published.
fn published(case: &mut Case<'_>, id: JobId) {
    for (deaths, log) in case.ledger.event_logs.iter().enumerate() {
        let mut counts: HashMap<Key, i64> = HashMap::new();
        for (at, event) in changes(log, id) {
            *counts.entry(key_of(at, event)).or_default() += 1;
        }
        for Answered { transition, .. } in case.account.transitions.iter().filter(|answered| answered.deaths == deaths)
        {
            let (generation, state) = (transition.generation(), transition.job.state);
            let key = (transition.event, generation, transition.attempt, state, transition.at.micros());
            *counts.entry(key).or_default() -= 1;
        }
        for (key, _) in counts.into_iter().filter(|(_, count)| *count < 0) {
            case.violation(CHECK, format!("it was answered, and not published: {key:?}"));
        }
    }
}

/// Every event can happen, and a run ends once.
fn events(case: &mut Case<'_>, id: JobId) {
    let mut ends: HashMap<(u32, u32), usize> = HashMap::new();
    for (_, event) in case.ledger.event_logs.iter().flat_map(|log| changes(log, id)) {
        let possible = match event.kind {
            EventKind::Enqueued => matches!(event.state, State::Scheduled | State::Pending | State::Available),
            EventKind::Removed => event.state.is_terminal(),
            kind => State::ALL.iter().any(|from| from.after(kind) == Some(event.state)),
        };
        if !possible {
            case.violation(CHECK, format!("{:?} leads to {}", event.kind, event.state));
        }
        if matches!(event.kind, EventKind::Completed | EventKind::RetryScheduled | EventKind::Discarded) {
            *ends.entry((event.generation, event.attempt)).or_default() += 1;
        }
    }
    for ((generation, attempt), count) in ends.into_iter().filter(|(_, count)| *count > 1) {
        case.violation(CHECK, format!("attempt {attempt} of generation {generation} ended {count} times"));
    }
}
