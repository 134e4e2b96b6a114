//! Random scenarios and policies: against a plain model, and against what always holds.

use crate::run;
use proptest::prelude::*;
use redrive_policy::lab::simulate::{Arrival, Scenario};
use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Draw, Failure, History, Jitter, Matcher, Moment, Parts,
    Policy, Rule, Span, Unmatched, decide,
};

/// What a plain model counts: every attempt of every job in the order of time, one by one.
#[derive(Debug, Default, PartialEq)]
struct Plain {
    succeeded: u32,
    given_up: u32,
    given_up_after_recovery: u32,
    waiting: u32,
    attempts: u64,
    wasted: u64,
    overloaded: u64,
    last_done: Option<Span>,
}

fn plain_model(scenario: &Scenario, policy: &Policy) -> Plain {
    let mut plain = Plain::default();
    let mut queue: Vec<(Moment, u32, u32, History)> = (0..scenario.jobs)
        .map(|job| {
            let arrival = match scenario.arrival {
                Arrival::AllAtOnce => Span::ZERO,
                Arrival::PerSecond(rate) => Span::saturating_ms(f64::from(job) / rate * 1000.0),
            };
            let created = Moment::ORIGIN.after(arrival);
            (created, 0, job, History::new(created))
        })
        .collect();
    let mut served_in = (-1, 0);
    loop {
        let first = queue.iter().enumerate().min_by_key(|(_, (at, round, job, _))| (*at, *round, *job));
        let Some((index, _)) = first else { break };
        let (at, round, job, mut history) = queue.swap_remove(index);
        let elapsed = at.since(Moment::ORIGIN);
        if elapsed >= scenario.horizon {
            plain.waiting += 1;
            continue;
        }
        plain.attempts += 1;
        if elapsed >= scenario.outage {
            let second = at.micros() / 1_000_000;
            if served_in.0 != second {
                served_in = (second, 0);
            }
            if scenario.capacity_per_s.is_none_or(|capacity| served_in.1 < capacity) {
                served_in.1 += 1;
                plain.succeeded += 1;
                plain.last_done = Some(elapsed);
                continue;
            }
            plain.overloaded += 1;
        }
        plain.wasted += 1;
        let verdict = decide(policy, &history, &Failure::of_type("error"), at, Draw::LOWEST);
        history.record(&verdict);
        match verdict.delay() {
            Some(delay) => {
                let due = at.after(delay);
                queue.push((due, if due == at { round + 1 } else { 0 }, job, history));
            }
            None => {
                plain.given_up += 1;
                plain.given_up_after_recovery += u32::from(elapsed >= scenario.outage);
            }
        }
    }
    plain
}

prop_compose! {
    fn any_scenario()(
        jobs in 1_u32..120,
        rate in proptest::option::of(1.0..40.0_f64),
        outage in 0_u32..40_000,
        capacity_per_s in proptest::option::of(1_u32..15),
        horizon in 1_u32..200_000,
        seed: u64,
    ) -> Scenario {
        Scenario {
            jobs,
            arrival: rate.map_or(Arrival::AllAtOnce, Arrival::PerSecond),
            outage: Span::from_millis(outage),
            capacity_per_s,
            horizon: Span::from_millis(horizon),
            seed,
            ..Scenario::default()
        }
    }
}

prop_compose! {
    fn any_policy()(
        initial_ms in prop_oneof![Just(0_u32), 1_u32..3_000],
        max_ms in 1_u32..20_000,
        curve in prop_oneof![Just(Curve::Fixed), Just(Curve::Linear), Just(Curve::Exponential { rate: 2.0 })],
        jitter in prop_oneof![Just(Jitter::FULL), Just(Jitter::EQUAL), Just(Jitter::Decorrelated)],
        max_elapsed in proptest::option::of(1_u32..60_000),
        runs in 1_u32..25,
    ) -> Policy {
        let cap = Some(Cap { at: Span::from_millis(max_ms), place: CapPlace::AfterJitter });
        let backoff = Backoff { curve, cap, jitter, ..Backoff::fixed(Span::from_millis(initial_ms)) };
        Policy::new(Parts {
            rules: vec![Rule { matcher: Matcher::default(), budget: None, backoff }],
            attempts: AttemptLimit::AtMost(runs),
            max_elapsed: max_elapsed.map(Span::from_millis),
            on_stop: Disposition::Fail,
            unmatched: Unmatched::NonRetryable,
            delegated: None,
        })
        .expect("a valid policy")
    }
}

proptest! {
    /// Without jitter nothing is random, and the plain model must count the same.
    #[test]
    fn agrees_with_a_plain_model(scenario in any_scenario(), policy in any_policy()) {
        let mut parts = policy.into_parts();
        parts.rules[0].backoff.jitter = Jitter::None;
        let policy = Policy::new(parts).expect("a valid policy");
        let outcome = run(&scenario, &policy);
        let found = Plain {
            succeeded: outcome.succeeded,
            given_up: outcome.given_up,
            given_up_after_recovery: outcome.given_up_after_recovery,
            waiting: outcome.waiting,
            attempts: outcome.attempts,
            wasted: outcome.wasted,
            overloaded: outcome.overloaded,
            last_done: outcome.last_done,
        };
        prop_assert_eq!(found, plain_model(&scenario, &policy));
    }

    #[test]
    fn nothing_is_lost_and_no_limit_is_broken(
        scenario in any_scenario(),
        policy in any_policy(),
        failure_rate_after in 0.0..=1.0,
    ) {
        let scenario = Scenario { failure_rate_after, ..scenario };
        let runs = u64::from(policy.attempts.max_runs().expect("limited"));
        let outcome = run(&scenario, &policy);
        prop_assert_eq!(outcome.succeeded + outcome.given_up + outcome.waiting, scenario.jobs);
        prop_assert_eq!(outcome.attempts, outcome.wasted + u64::from(outcome.succeeded));
        prop_assert!(outcome.attempts <= u64::from(scenario.jobs) * runs);
        prop_assert!(outcome.given_up_after_recovery <= outcome.given_up);
        if let Some(capacity) = scenario.capacity_per_s {
            prop_assert!(outcome.served_peak_per_s <= capacity);
        }
        let series = &outcome.series;
        let all: u64 = series.first_runs.iter().chain(&series.retries).sum();
        prop_assert_eq!(all, outcome.attempts);
        let served: u64 = series.served.iter().sum();
        prop_assert!(served >= u64::from(outcome.succeeded) && served <= outcome.attempts);
        prop_assert_eq!(series.peak_per_s.iter().max().copied(), Some(outcome.peak.per_s));
        prop_assert!(outcome.last_attempt < scenario.horizon);
    }
}
