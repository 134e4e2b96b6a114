//! The policies of a history: short ones, so that jobs reach every kind of end.

use redrive_policy::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Pattern, Policy, Problems,
    Rounding, Rule, Span, Unmatched,
};
use std::sync::Arc;

pub(super) fn policies() -> Result<Vec<Arc<Policy>>, Problems> {
    let parts = [three_runs(), two_rules(), forever(), once()];
    parts.into_iter().map(|parts| Policy::new(parts).map(Arc::new)).collect()
}

fn three_runs() -> Parts {
    let matcher = Matcher { exclude_types: vec![Pattern::exact("fatal")], ..Matcher::default() };
    simple(Rule { matcher, budget: None, backoff: Backoff::fixed(Span::from_millis(100)) }, AttemptLimit::AtMost(3))
}

/// The second rule has its own count and previous delay.
fn two_rules() -> Parts {
    let matcher = Matcher { include_types: Some(vec![Pattern::dotted("net.*")]), ..Matcher::default() };
    let first = Rule { matcher, budget: Some(2), backoff: Backoff::fixed(Span::from_millis(10)) };
    let backoff = Backoff {
        initial: Span::from_millis(10),
        offset: Span::ZERO,
        curve: Curve::Fixed,
        cap: Some(Cap { at: Span::from_millis(1_000), place: CapPlace::AfterJitter }),
        jitter: Jitter::Decorrelated,
        rounding: Rounding::Exact,
    };
    let second = Rule { matcher: Matcher::default(), budget: None, backoff };
    Parts {
        rules: vec![first, second],
        attempts: AttemptLimit::AtMost(4),
        max_elapsed: Some(Span::from_millis(30_000)),
        on_stop: Disposition::DeadLetter,
        unmatched: Unmatched::PassesThrough,
        delegated: None,
    }
}

fn forever() -> Parts {
    let rule = Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE };
    Parts { on_stop: Disposition::Fail, ..simple(rule, AttemptLimit::Unlimited) }
}

fn once() -> Parts {
    let rule = Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE };
    Parts { on_stop: Disposition::DeadLetter, ..simple(rule, AttemptLimit::Disabled) }
}

fn simple(rule: Rule, attempts: AttemptLimit) -> Parts {
    Parts {
        rules: vec![rule],
        attempts,
        max_elapsed: None,
        on_stop: Disposition::Discard,
        unmatched: Unmatched::NonRetryable,
        delegated: None,
    }
}
