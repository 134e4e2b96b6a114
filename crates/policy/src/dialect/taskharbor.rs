//! TaskHarbor: the worker's policy and the job's limit, as one file.

use super::duration::to_go;
use super::fields::{Fields, Findings};
use super::{Part, Reading, Warning};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Delegation, Disposition, Jitter, Matcher, Parts, Policy, Problems,
    Rounding, Rule, Span, Unmatched,
};
use serde_json::{Value, json};

pub(super) const FIELDS: [&str; 2] = ["policy", "job"];

/// The defaults of "Default behavior".
const BASE: Span = Span::from_millis(200);
const MAX_DELAY: Span = Span::from_secs(5);
const MULTIPLIER: f64 = 2.0;
const JITTER: f64 = 0.2;
const MAX_ATTEMPTS: u32 = 25;

pub(super) fn read(value: &Value) -> Result<Reading, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let document = Fields::document(value, f);
    document.only(&FIELDS, f);
    let disabled = document.get("policy") == Some(&Value::Null);
    let policy = if disabled { Fields::absent() } else { document.nested("policy", f) };
    policy.only(&["base_delay", "max_delay", "multiplier", "jitter", "max_attempts"], f);
    let base = policy.go("base_delay", f).unwrap_or(BASE);
    let max_delay = policy.go("max_delay", f).unwrap_or(MAX_DELAY);
    let rate = policy.number("multiplier", 1.0, f).unwrap_or(MULTIPLIER);
    let jitter = policy.fraction("jitter", f).unwrap_or(JITTER);
    let policy_limit = limit(&policy, f).unwrap_or(Some(MAX_ATTEMPTS));
    let job = document.nested("job", f);
    job.only(&["max_attempts"], f);
    let job_limit = limit(&job, f).flatten();
    warn(&job, job_limit, policy_limit.filter(|_| !disabled), f);

    let attempts = match (policy_limit, job_limit) {
        _ if disabled => AttemptLimit::Disabled,
        (None, None) => AttemptLimit::Unset,
        (Some(limit), None) | (None, Some(limit)) => AttemptLimit::AtMost(limit),
        (Some(a), Some(b)) => AttemptLimit::AtMost(a.min(b)),
    };
    let backoff = Backoff {
        initial: base,
        offset: Span::ZERO,
        curve: Curve::Exponential { rate },
        cap: Some(Cap { at: max_delay, place: CapPlace::BeforeAndAfter }),
        jitter: Jitter::plus_minus(jitter),
        rounding: Rounding::Exact,
    };
    super::reading(
        findings,
        Parts {
            rules: vec![Rule { matcher: Matcher::default(), budget: None, backoff }],
            attempts,
            max_elapsed: None,
            on_stop: Disposition::DeadLetter,
            unmatched: Unmatched::NonRetryable,
            delegated: (!document.has("policy")).then(|| Delegation::new(job_limit)),
        },
    )
}

/// A limit on attempts; zero and below mean that there is none.
fn limit(fields: &Fields<'_>, f: &mut Findings) -> Option<Option<u32>> {
    fields.signed_count("max_attempts", f).map(|limit| u32::try_from(limit).ok().filter(|limit| *limit > 0))
}

fn warn(job: &Fields<'_>, job_limit: Option<u32>, policy_limit: Option<u32>, f: &mut Findings) {
    if let (Some(wanted), Some(cap)) = (job_limit, policy_limit)
        && wanted > cap
    {
        f.warnings.push(Warning {
            code: "limit-capped",
            path: job.path_of("max_attempts"),
            message: format!(
                "the job asks for {wanted} attempts, the policy's cap allows {cap}: the smaller one holds"
            ),
            instead: format!("at most {cap} here, or a higher max_attempts in the policy"),
        });
    }
}

/// The nearest TaskHarbor file: a worker's policy, and no limit of a job's own; or, where the timing is
/// left to the worker, the job's limit alone.
pub(super) fn write(policy: &Policy) -> Value {
    if policy.attempts == AttemptLimit::Disabled {
        return json!({ "policy": null });
    }
    if let Some(delegated) = policy.delegated {
        return match delegated.limit() {
            Some(limit) => json!({ "job": { "max_attempts": limit } }),
            None => json!({}),
        };
    }
    let rule = super::first_rule(policy);
    let backoff = &rule.backoff;
    let multiplier = match backoff.curve {
        Curve::Fixed => 1.0,
        Curve::Exponential { rate } => rate,
        Curve::Linear | Curve::Polynomial { .. } => MULTIPLIER,
    };
    json!({ "policy": {
        "base_delay": to_go(backoff.initial.at_most(GO_MAX)),
        "max_delay": to_go(super::cap_or_highest(policy, rule, GO_MAX)),
        "multiplier": multiplier,
        "jitter": fraction(backoff.jitter),
        "max_attempts": max_attempts(policy, rule),
    } })
}

/// The policy's own limit; 0 where it sets none and no job's limit has met it.
fn max_attempts(policy: &Policy, rule: &Rule) -> u32 {
    match policy.attempts {
        AttemptLimit::Unset => 0,
        _ => super::max_runs(policy, rule).unwrap_or(u32::MAX),
    }
}

/// Go's own limit on durations is 2^63 ns; a whole number of hours just below it.
const GO_MAX: Span = Span::saturating_ms(2_562_047.0 * 3_600_000.0);

/// The fraction of the same width; the nearest that ± can say.
fn fraction(jitter: Jitter) -> f64 {
    match jitter {
        Jitter::None => 0.0,
        // Fifteen digits restore the decimal that was written before a 1 was added to it.
        Jitter::Scale { low, high } => (((high - low) / 2.0).min(1.0) * 1e15).round() / 1e15,
        Jitter::Decorrelated => 0.5,
        Jitter::Added { .. } => JITTER,
    }
}

pub(super) fn path_of(part: Part) -> &'static str {
    match part {
        Part::Attempts | Part::Budget => "/policy/max_attempts",
        Part::Elapsed | Part::OnStop | Part::Delegation | Part::Rules | Part::Matcher | Part::Rounding => "",
        Part::Initial => "/policy/base_delay",
        Part::Curve => "/policy/multiplier",
        Part::Cap => "/policy/max_delay",
        Part::Jitter => "/policy/jitter",
    }
}
