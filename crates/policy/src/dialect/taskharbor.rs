//! TaskHarbor: the worker's policy and the job's limit, as one file.

use super::fields::{Fields, Findings};
use super::{Reading, Warning};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Parts, Problems, Rounding, Rule, Span,
    Unmatched,
};
use serde_json::Value;

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
        (None, None) => AttemptLimit::Disabled,
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
