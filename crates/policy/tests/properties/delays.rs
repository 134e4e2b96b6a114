//! Delays are finite, bounded and never shrink before the jitter.

use super::arbitrary::{any_policy, counts, dialects, draws};
use super::documents::{documents, scripts};
use proptest::prelude::*;
use redrive_policy::dialect::{Dialect, ReadFailure};
use redrive_policy::lab::replay::replay;
use redrive_policy::{Draw, Entropy, Failure, History, Moment, Outcome, Policy, Span, decide};
use serde_json::Value;

/// Draws from a list, again and again.
struct Listed(Vec<Draw>, usize);

impl Entropy for Listed {
    fn draw(&mut self) -> Draw {
        self.1 += 1;
        self.0[self.1 % self.0.len()]
    }
}

fn read(dialect: Dialect, document: &Value) -> Policy {
    dialect.read(document).expect("a valid document").policy
}

fn is_sound(span: Span) -> bool {
    span.ms().is_finite() && (0.0..=Span::MAX.ms()).contains(&span.ms()) && span.ms().is_sign_positive()
}

proptest! {
    #[test]
    fn a_delay_is_sound_whatever_the_policy_and_the_retry(
        policy in any_policy(),
        retry in counts(),
        previous in proptest::option::of(0.0..Span::MAX.ms()),
        draw in draws()
    ) {
        for rule in &policy.rules {
            let computed = rule.backoff.delay(retry, previous.map(Span::saturating_ms), draw);
            prop_assert!(is_sound(computed.delay) && is_sound(computed.raw), "{computed:?}");
            match rule.backoff.cap {
                Some(cap) if cap.place.after() => prop_assert!(computed.delay <= cap.at, "{computed:?}"),
                _ => {}
            }
        }
    }

    #[test]
    fn in_every_dialect_a_delay_stays_below_its_cap(
        (dialect, document) in dialects().prop_flat_map(|d| (Just(d), documents(d))), retry in counts(), draw in draws()
    ) {
        for rule in &read(dialect, &document).rules {
            let longest = rule.backoff.cap.map_or(Span::MAX, |cap| cap.at);
            let delay = rule.backoff.delay(retry, None, draw).delay;
            prop_assert!(is_sound(delay) && delay <= longest, "{delay:?} above {longest:?}");
        }
    }

    #[test]
    fn raw_delays_never_decrease(
        policy in any_policy(), retry in counts(), further in prop_oneof![Just(1_u32), counts()]
    ) {
        for rule in &policy.rules {
            let (now, later) = (rule.backoff.raw(retry), rule.backoff.raw(retry.saturating_add(further)));
            prop_assert!(now <= later, "retry {retry} {now:?}, {further} later {later:?}");
        }
    }

    #[test]
    fn the_draws_0_and_1_give_the_bounds_of_every_other(policy in any_policy(), retry in counts(), draw in draws()) {
        for rule in &policy.rules {
            let of = |draw| rule.backoff.delay(retry, None, draw).delay;
            prop_assert!(of(Draw::LOWEST) <= of(draw) && of(draw) <= of(Draw::SUPREMUM));
        }
    }

    #[test]
    fn the_bounds_of_a_replay_contain_its_delays(
        (dialect, document, failures) in scripts(), draws in proptest::collection::vec(draws(), 1..30)
    ) {
        let policy = read(dialect, &document);
        let failures: Vec<ReadFailure<'_>> =
            failures.iter().map(|failure| dialect.read_failure("", failure).expect("a failure")).collect();
        for step in replay(&policy, &failures, &mut Listed(draws, 0)) {
            match (step.verdict.delay(), step.bounds) {
                (Some(delay), Some((low, high))) => prop_assert!(low <= delay && delay <= high, "{step:?}"),
                (None, None) => {}
                _ => prop_assert!(false, "bounds exactly where there is a delay: {step:?}"),
            }
        }
    }

    #[test]
    fn a_decision_far_into_a_job_is_sound(
        policy in any_policy(), failed in counts(), now in any::<i64>(), draw in draws()
    ) {
        let history = History::with_failures(Moment::ORIGIN, failed);
        let verdict = decide(&policy, &history, &Failure::default(), Moment::from_micros(now), draw);
        prop_assert_eq!(verdict.attempt, failed.saturating_add(1));
        match verdict.outcome {
            Outcome::Retry { delay, .. } => prop_assert!(is_sound(delay), "{verdict:?}"),
            Outcome::Stop { reason, .. } => prop_assert!(!reason.name().is_empty()),
        }
    }
}
