//! Temporal: the `RetryPolicy` of its API, in the JSON form of protocol buffers.

use super::{Import, ImportedRule, Loss};
use crate::dialect::fields::{Fields, Findings};
use crate::dialect::{go_duration, warn_unread};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Pattern, Problem, Problems, Rounding,
    Span,
};
use serde_json::Value;

/// One field under the two names that the JSON form of protocol buffers accepts.
type Names = (&'static str, &'static str);

const INITIAL_INTERVAL: Names = ("initialInterval", "initial_interval");
const COEFFICIENT: Names = ("backoffCoefficient", "backoff_coefficient");
const MAXIMUM_INTERVAL: Names = ("maximumInterval", "maximum_interval");
const MAXIMUM_ATTEMPTS: Names = ("maximumAttempts", "maximum_attempts");
const NON_RETRYABLE: Names = ("nonRetryableErrorTypes", "non_retryable_error_types");

/// Every name that is read.
pub(super) const FIELDS: [&str; 10] = [
    INITIAL_INTERVAL.0,
    INITIAL_INTERVAL.1,
    COEFFICIENT.0,
    COEFFICIENT.1,
    MAXIMUM_INTERVAL.0,
    MAXIMUM_INTERVAL.1,
    MAXIMUM_ATTEMPTS.0,
    MAXIMUM_ATTEMPTS.1,
    NON_RETRYABLE.0,
    NON_RETRYABLE.1,
];

/// The server's defaults, filled in field by field before anything is checked.
const DEFAULT_INITIAL: Span = Span::from_secs(1);
const DEFAULT_COEFFICIENT: f64 = 2.0;
/// Where no maximum interval is set, it is this many times the initial one.
const DEFAULT_MAXIMUM_FACTOR: f64 = 100.0;

/// Entries that name a kind of timeout instead of an error type.
const TIMEOUT_PREFIX: &str = "TemporalTimeout:";
const TIMEOUTS: [&str; 4] = ["StartToClose", "Heartbeat", "ScheduleToStart", "ScheduleToClose"];

pub(super) fn read(value: &Value) -> Result<Import, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let mut lost = Vec::new();
    let fields = Fields::document(value, f);
    let names = [INITIAL_INTERVAL, COEFFICIENT, MAXIMUM_INTERVAL, MAXIMUM_ATTEMPTS, NON_RETRYABLE];
    fields.only(&FIELDS, f);
    let [initial, coefficient, maximum, attempts, non_retryable] = names.map(|names| one_of(&fields, names, f));

    let most = i32::MAX.unsigned_abs();
    let attempts = attempts.and_then(|key| fields.whole(key, 0, u64::from(most), f)).and_then(|n| n.try_into().ok());
    // The server does not look at the other fields of a policy that never retries.
    let single = attempts == Some(1);
    if single {
        let unread: Vec<&str> = [initial, coefficient, maximum, non_retryable].into_iter().flatten().collect();
        warn_unread(&fields, &unread, "a policy of one attempt", f);
    }
    let timing = Timing { initial, coefficient, maximum, single };
    let exclude_types = non_retryable.map(|key| non_retryable_types(&fields, key, single, &mut lost, f));
    let imported = ImportedRule {
        matcher: Matcher { exclude_types: exclude_types.unwrap_or_default(), ..Matcher::default() },
        backoff: timing.read(&fields, f),
        attempts: match attempts {
            None | Some(0) => AttemptLimit::Unlimited,
            Some(limit) => AttemptLimit::AtMost(limit),
        },
        max_elapsed: None,
        on_stop: Disposition::Fail,
    };
    imported.import(findings, lost)
}

/// The name under which a field says something. In this form of JSON `null` is the same as absent.
fn one_of(fields: &Fields<'_>, names: Names, f: &mut Findings) -> Option<&'static str> {
    let (camel, snake) = names;
    match (fields.given(camel), fields.given(snake)) {
        (true, true) => {
            let message = format!("is {camel} under its other name; keep one of the two");
            f.problems.push(Problem::with_message(fields.path_of(snake), message));
            Some(camel)
        }
        (true, false) => Some(camel),
        (false, true) => Some(snake),
        (false, false) => None,
    }
}

/// The fields that are given, under the names that they have.
struct Timing {
    initial: Option<&'static str>,
    coefficient: Option<&'static str>,
    maximum: Option<&'static str>,
    single: bool,
}

impl Timing {
    fn read(&self, fields: &Fields<'_>, f: &mut Findings) -> Backoff {
        let initial = self.initial.and_then(|key| duration(fields, key, f));
        let rate = self.coefficient.and_then(|key| self.rate(fields, key, f)).unwrap_or(DEFAULT_COEFFICIENT);
        let maximum = self.maximum.and_then(|key| duration(fields, key, f));
        if self.single {
            return backoff(DEFAULT_INITIAL, DEFAULT_COEFFICIENT, DEFAULT_INITIAL.times(DEFAULT_MAXIMUM_FACTOR));
        }
        let origin = if initial.is_some() { "" } else { " (its default)" };
        let initial = initial.unwrap_or(DEFAULT_INITIAL);
        if let (Some(key), Some(maximum)) = (self.maximum, maximum)
            && maximum < initial
        {
            let allowed =
                format!("at least {}, which is {initial}{origin}", self.initial.unwrap_or(INITIAL_INTERVAL.0));
            f.problems.push(Problem::new(fields.path_of(key), maximum, allowed));
        }
        backoff(initial, rate, maximum.unwrap_or(initial.times(DEFAULT_MAXIMUM_FACTOR)))
    }

    /// Zero is the same as unset.
    fn rate(&self, fields: &Fields<'_>, key: &str, f: &mut Findings) -> Option<f64> {
        let allowed = format!("a number of at least 1, or 0 for the default of {DEFAULT_COEFFICIENT}");
        let fits = |n: &f64| self.single || *n == 0.0 || *n >= 1.0;
        fields.read(key, &allowed, f, |value| value.as_f64().filter(fits)).filter(|n| *n != 0.0)
    }
}

fn backoff(initial: Span, rate: f64, maximum: Span) -> Backoff {
    Backoff {
        initial,
        offset: Span::ZERO,
        curve: Curve::Exponential { rate },
        cap: Some(Cap { at: maximum, place: CapPlace::BeforeJitter }),
        jitter: Jitter::None,
        rounding: Rounding::Exact,
    }
}

/// A duration as the API writes it (`100s`, `0.500s`) or as Go prints it (`1m40s`); zero is unset.
fn duration(fields: &Fields<'_>, key: &str, f: &mut Findings) -> Option<Span> {
    const ALLOWED: &str =
        "a duration as text with its unit, not negative, such as \"1s\", \"0.5s\" or \"1m40s\"; 0 sets the default";
    fields.read(key, ALLOWED, f, |value| value.as_str().and_then(go_duration)).filter(|span| !span.is_zero())
}

fn non_retryable_types(
    fields: &Fields<'_>,
    key: &str,
    single: bool,
    lost: &mut Vec<Loss>,
    f: &mut Findings,
) -> Vec<Pattern> {
    let allowed = format!("an error type, or {TIMEOUT_PREFIX} with one of {}", TIMEOUTS.join(", "));
    let is_known = |text: &str| text.strip_prefix(TIMEOUT_PREFIX).is_none_or(|kind| TIMEOUTS.contains(&kind));
    let parse = |text: &str| (single || is_known(text)).then(|| Pattern::exact(text));
    let patterns = fields.patterns(key, &allowed, f, parse).unwrap_or_default();
    for (index, pattern) in patterns.iter().enumerate() {
        if !single && matches!(pattern, Pattern::Exact(text) if text.starts_with(TIMEOUT_PREFIX)) {
            let path = format!("{}/{index}", fields.path_of(key));
            let message = "names a timeout that the server detects; the policy knows error types only, and stops at \
                           a failure that is reported with exactly this text as its type";
            lost.push(Loss::new(path, message));
        }
    }
    patterns
}
