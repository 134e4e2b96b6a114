//! Decisions are pure, survive a restart, and keep to the limits and the lists.

use super::arbitrary::{NAMES, any_policy, draws};
use super::documents::scripts;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use redrive_policy::dialect::ReadFailure;
use redrive_policy::{Failure, History, Moment, Outcome, Policy, Reason, Rule, Signal, Span, Verdict, decide, wire};

fn restarted(history: &History) -> History {
    let stored = serde_json::to_string(history).expect("a history is JSON");
    wire::from_json(&stored).expect("and comes back from it")
}

/// Failures of any dialect: what the canonical decision can meet.
fn failures() -> impl Strategy<Value = Failure<'static>> {
    let signal = prop_oneof![
        20 => Just(Signal::None),
        1 => Just(Signal::Unrecoverable),
        1 => Just(Signal::Permanent),
        1 => Just(Signal::Prune),
        2 => (0_u32..5_000).prop_map(|ms| Signal::RequeueAfter(Span::from_millis(ms))),
    ];
    let delay = proptest::option::weighted(0.2, (0.0..1e6).prop_map(Span::saturating_ms));
    (select(&NAMES[..]), select(&NAMES[..]), any::<Option<bool>>(), signal, delay)
        .prop_map(|(type_name, code, retryable, signal, delay)| Failure { type_name, code, retryable, signal, delay })
}

/// The longest story of one job: it goes on until a stop.
fn verdicts(policy: &Policy, failures: &[Failure<'_>], draws: &[redrive_policy::Draw]) -> Vec<Verdict> {
    let mut history = History::new(Moment::ORIGIN);
    let mut told = Vec::new();
    for (failure, draw) in failures.iter().zip(draws.iter().cycle()) {
        let verdict = decide(policy, &history, failure, Moment::ORIGIN, *draw);
        history.record(&verdict);
        told.push(verdict);
        if verdict.delay().is_none() {
            break;
        }
    }
    told
}

proptest! {
    #[test]
    fn the_same_arguments_give_the_same_verdict(
        policy in any_policy(), failures in vec(failures(), 1..20), draws in vec(draws(), 20)
    ) {
        prop_assert_eq!(verdicts(&policy, &failures, &draws), verdicts(&policy, &failures, &draws));
    }

    #[test]
    fn a_restart_at_every_step_changes_nothing(
        policy in any_policy(), failures in vec(failures(), 1..20), draws in vec(draws(), 20)
    ) {
        let mut history = History::new(Moment::from_micros(1_700_000_000_000_000));
        for (failure, draw) in failures.iter().zip(&draws) {
            let again = restarted(&history);
            prop_assert_eq!(&again, &history);
            let verdict = decide(&policy, &history, failure, history.created(), *draw);
            prop_assert_eq!(decide(&policy, &again, failure, again.created(), *draw), verdict);
            history.record(&verdict);
        }
    }

    #[test]
    fn a_verdict_survives_its_json(
        policy in any_policy(), failures in vec(failures(), 1..9), draws in vec(draws(), 9)
    ) {
        for verdict in verdicts(&policy, &failures, &draws) {
            let stored = serde_json::to_string(&verdict).expect("a verdict is JSON");
            let back: Verdict = wire::from_json(&stored).expect("and comes back from it");
            prop_assert_eq!(back, verdict, "{}", stored);
        }
    }

    #[test]
    fn a_policy_never_grants_more_runs_than_its_limit(
        (dialect, document, failures) in scripts(), draws in vec(draws(), 1..9)
    ) {
        let policy = dialect.read(&document).expect("valid").policy;
        let read = |failure| dialect.read_failure("", failure).expect("a failure");
        let failures: Vec<Failure<'_>> = failures.iter().map(read).map(|ReadFailure { failure, .. }| failure).collect();
        let told = verdicts(&policy, &failures, &draws);
        let counted = told.iter().filter(|verdict| verdict.counted() && verdict.delay().is_some());
        let runs = 1 + counted.clone().count() as u64;
        if let Some(limit) = policy.attempts.max_runs() {
            prop_assert!(runs <= u64::from(limit), "{runs} runs, {limit} are allowed");
        }
        for (index, rule) in policy.rules.iter().enumerate() {
            let granted = counted.clone().filter(|verdict| verdict.rule == Some(index)).count() as u64;
            if let Some(retries) = policy.max_retries(rule) {
                prop_assert!(granted <= u64::from(retries), "rule {index} granted {granted} of {retries}");
            }
        }
    }

    #[test]
    fn the_last_run_that_a_limit_allows_is_the_last(policy in any_policy(), over in 0_u32..3, draw in draws()) {
        let Some(limit) = policy.attempts.max_runs() else { return Ok(()) };
        let history = History::with_failures(Moment::ORIGIN, (limit - 1).saturating_add(over));
        let verdict = decide(&policy, &history, &Failure::default(), Moment::ORIGIN, draw);
        prop_assert!(verdict.delay().is_none(), "{verdict:?}");
    }

    #[test]
    fn an_excluded_type_is_never_retried(
        policy in any_policy(), failures in vec(failures(), 1..20), draws in vec(draws(), 20)
    ) {
        let excluded = |failure: &Failure<'_>| {
            let on_list = |rule: &Rule| rule.matcher.exclude_types.iter().any(|p| p.matches(failure.type_name));
            policy.rules.iter().all(on_list)
        };
        for (failure, verdict) in failures.iter().zip(verdicts(&policy, &failures, &draws)) {
            if excluded(failure) && failure.signal == Signal::None {
                let stopped = matches!(
                    verdict.outcome,
                    Outcome::Stop { reason: Reason::NonRetryable(_) | Reason::Unmatched, .. }
                );
                prop_assert!(stopped, "{failure:?}: {verdict:?}");
            }
        }
    }

    #[test]
    fn a_rule_only_handles_what_its_matcher_fits(
        policy in any_policy(), failures in vec(failures(), 1..20), draws in vec(draws(), 20)
    ) {
        for (failure, verdict) in failures.iter().zip(verdicts(&policy, &failures, &draws)) {
            if let Some(rule) = verdict.rule {
                prop_assert!(policy.rules[rule].matcher.check(failure).is_ok());
                prop_assert!(policy.rules[..rule].iter().all(|earlier| earlier.matcher.check(failure).is_err()));
            }
        }
    }
}
