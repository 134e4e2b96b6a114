//! What every fuzz target asserts: any input is refused with a path, or gives a policy whose verdicts keep
//! within their bounds.

pub mod envelope;

use redrive_policy::dialect::Dialect;
use redrive_policy::{
    Bounds, Draw, Failure, History, Moment, Origin, Outcome, Pattern, Policy, Problems, Signal, Span, Verdict, decide,
    wire,
};
use serde_json::Value;

/// Histories that a job can have: none, a few failures, the overflow of other engines, the end.
const FAILED: [u32; 6] = [0, 1, 2, 37, 1100, u32::MAX];

/// Reads the bytes as a policy of one dialect, and applies it to some failures.
pub fn policy(dialect: Dialect, bytes: &[u8]) {
    let Some(document) = parsed(bytes) else { return };
    match dialect.read(&document) {
        Err(refusal) => assert_refusal(&document, &refusal),
        Ok(reading) => {
            assert_survives_json(&reading.policy);
            let words = words(&reading.policy);
            for word in &words {
                assert_far_out(&reading.policy, word);
            }
            assert_bounds(&reading.policy, &words);
        }
    }
}

/// Reads the bytes as text, and what it holds as a failure of every dialect.
pub fn text(bytes: &[u8]) {
    let Some(value) = parsed(bytes) else { return };
    let again = wire::parse_json(&value.to_string()).expect("what was read can be written and read again");
    assert_eq!(again, value);
    for dialect in Dialect::ALL {
        match dialect.read_failure("", &value) {
            Err(refusal) => assert_refusal(&value, &refusal),
            Ok(read) => assert!(read.elapsed.is_none_or(is_sound) && read.failure.delay.is_none_or(is_sound)),
        }
    }
    let _ = redrive_policy::notation::recognise(&value);
}

fn parsed(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    match wire::parse_json(text) {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!error.message.is_empty());
            None
        }
    }
}

/// Each path leads into the document, or to a member that is missing from it.
fn assert_refusal(document: &Value, refusal: &Problems) {
    assert!(!refusal.0.is_empty());
    for problem in &refusal.0 {
        let leads = document.pointer(&problem.path).is_some() || problem.message.starts_with("missing");
        assert!(leads, "{problem:?} leads nowhere in {document}");
    }
}

fn assert_survives_json(policy: &Policy) {
    let text = serde_json::to_string(policy).expect("a policy is JSON");
    assert_eq!(&wire::from_json::<Policy>(&text).expect("and comes back from it"), policy);
}

/// Error types and codes that the policy's own lists know, and one that they do not.
fn words(policy: &Policy) -> Vec<String> {
    let mut words = vec!["error".to_owned()];
    for rule in &policy.rules {
        let lists = [rule.matcher.include_types.as_deref(), rule.matcher.codes.as_deref()];
        for pattern in lists.into_iter().flatten().flatten().chain(&rule.matcher.exclude_types) {
            words.push(match pattern {
                Pattern::Any => "anything".to_owned(),
                Pattern::Exact(text) => text.to_string(),
                Pattern::Prefix(prefix) => format!("{prefix}x"),
            });
        }
    }
    words.truncate(8);
    words
}

fn failures(word: &str) -> [Failure<'_>; 3] {
    let failure = Failure { code: word, ..Failure::of_type(word) };
    [
        failure,
        Failure { retryable: Some(true), ..failure },
        failure.with_signal(Signal::RequeueAfter(Span::from_millis(7))),
    ]
}

fn assert_far_out(policy: &Policy, word: &str) {
    for failed in FAILED {
        let history = History::with_failures(Moment::ORIGIN, failed);
        for failure in failures(word) {
            let at = |draw| decide(policy, &history, &failure, Moment::ORIGIN, draw);
            let (low, high) = (at(Draw::LOWEST), at(Draw::SUPREMUM));
            assert_verdict(policy, &low);
            assert_verdict(policy, &high);
            if let (Some(low), Some(high)) = (low.delay(), high.delay()) {
                assert!(low <= high, "{low:?} above {high:?}");
            }
        }
    }
}

fn assert_verdict(policy: &Policy, verdict: &Verdict) {
    let Outcome::Retry { delay, origin } = verdict.outcome else { return };
    assert!(is_sound(delay), "{verdict:?}");
    if let (Some(limit), Origin::Backoff(_)) = (policy.attempts.max_runs(), origin) {
        assert!(verdict.attempt < limit, "{verdict:?} under a limit of {limit}");
    }
    if let (Some(rule), Origin::Backoff(computed)) = (verdict.rule, origin) {
        assert!(is_sound(computed.raw));
        let cap = policy.rules[rule].backoff.cap;
        assert!(cap.is_none_or(|cap| delay <= cap.at), "{verdict:?} above {cap:?}");
    }
}

/// One job that meets every word in turn, once for each end of the draws.
fn assert_bounds(policy: &Policy, words: &[String]) {
    for draw in [Draw::LOWEST, Draw::SUPREMUM] {
        let (mut history, mut bounds) = (History::new(Moment::ORIGIN), Bounds::new(Moment::ORIGIN));
        for word in words.iter().cycle().take(12) {
            let [failure, ..] = failures(word);
            let verdict = decide(policy, &history, &failure, Moment::ORIGIN, draw);
            let bounds = bounds.record(policy, &verdict);
            history.record(&verdict);
            match (verdict.delay(), bounds) {
                (Some(delay), Some((low, high))) => assert!(low <= delay && delay <= high, "{verdict:?}"),
                _ => break,
            }
        }
    }
}

fn is_sound(span: Span) -> bool {
    span.ms().is_finite() && span.ms().is_sign_positive() && span <= Span::MAX
}
