//! Celery: the options of a task with automatic retries. Seconds.

use super::{Import, ImportedRule, Loss, MOST_RETRIES, after_first_run, signed_retries, warn_unrelated};
use crate::dialect::fields::{Fields, Findings};
use crate::dialect::{Warning, warn_unread};
use crate::{
    AttemptLimit, Backoff, Cap, CapPlace, Curve, Disposition, Jitter, Matcher, Pattern, Problems, Rounding, Span,
};
use serde_json::Value;

pub(super) const RELATED: [&str; 8] = [
    "max_retries",
    "default_retry_delay",
    "autoretry_for",
    "dont_autoretry_for",
    "retry_backoff",
    "retry_backoff_max",
    "retry_jitter",
    "retry_kwargs",
];

/// The other options of a task. `retry_policy` is about publishing messages to the broker.
const UNRELATED: [&str; 11] = [
    "name",
    "bind",
    "queue",
    "throws",
    "acks_late",
    "reject_on_worker_lost",
    "rate_limit",
    "time_limit",
    "soft_time_limit",
    "ignore_result",
    "retry_policy",
];

const DEFAULT_RETRIES: u32 = 3;
const DEFAULT_DELAY: Span = Span::from_secs(180);
const DEFAULT_BACKOFF_MAX_S: f64 = 600.0;

pub(super) fn read(value: &Value) -> Result<Import, Problems> {
    let mut findings = Findings::default();
    let f = &mut findings;
    let mut lost = Vec::new();
    let fields = Fields::document(value, f);
    let known: Vec<&str> = RELATED.into_iter().chain(UNRELATED).collect();
    fields.only(&known, f);
    let kwargs = fields.nested("retry_kwargs", f);
    kwargs.only(&["max_retries", "countdown", "eta", "queue"], f);
    let own_limit = limit(&fields, f).unwrap_or(after_first_run(DEFAULT_RETRIES));
    let kwargs_limit = if kwargs.given("max_retries") { limit(&kwargs, f) } else { None };
    let include = classes(&fields, "autoretry_for", f);
    let exclude = classes(&fields, "dont_autoretry_for", f);
    let timing = Timing::of(&fields, &kwargs, f);
    warn_unrelated(&fields, &UNRELATED, f);

    let automatic = !include.is_empty();
    if automatic {
        timing.warn_of_unread(&fields, &kwargs, f);
        timing.note_lost(&fields, &kwargs, &mut lost);
        note_subclasses(&fields, [("autoretry_for", &include), ("dont_autoretry_for", &exclude)], &mut lost);
    } else {
        note_manual_only(&fields, &mut lost, f);
    }
    let everything = include.is_empty() || include.contains(&Pattern::Any);
    let imported = ImportedRule {
        matcher: Matcher {
            include_types: (!everything).then_some(include),
            exclude_types: exclude,
            ..Matcher::default()
        },
        backoff: timing.backoff(),
        attempts: if automatic { kwargs_limit.unwrap_or(own_limit) } else { AttemptLimit::Disabled },
        max_elapsed: None,
        on_stop: Disposition::Fail,
    };
    imported.import(findings, lost)
}

/// `max_retries`: null is no limit, and what is negative allows as little as 0 does.
fn limit(fields: &Fields<'_>, f: &mut Findings) -> Option<AttemptLimit> {
    const KEY: &str = "max_retries";
    if fields.get(KEY) == Some(&Value::Null) {
        return Some(AttemptLimit::Unlimited);
    }
    let allowed = format!("null for no limit, or a whole number up to {MOST_RETRIES}");
    let retries = fields.read(KEY, &allowed, f, signed_retries)?;
    if retries < 0 {
        f.warnings.push(Warning {
            code: "negative-limit",
            path: fields.path_of(KEY),
            message: format!("{retries} is the same as 0: nothing is retried"),
            instead: "null for no limit, or 0".to_owned(),
        });
    }
    Some(after_first_run(u32::try_from(retries).unwrap_or(0)))
}

/// Exception classes by name. The root of all of them stands for every failure.
fn classes(fields: &Fields<'_>, key: &str, f: &mut Findings) -> Vec<Pattern> {
    const ROOTS: [&str; 4] = ["Exception", "BaseException", "builtins.Exception", "builtins.BaseException"];
    let class = |name: &str| {
        let pattern = if ROOTS.contains(&name) { Pattern::Any } else { Pattern::exact(name) };
        (!name.is_empty()).then_some(pattern)
    };
    fields.patterns(key, "the name of an exception class", f, class).unwrap_or_default()
}

fn note_subclasses(fields: &Fields<'_>, lists: [(&str, &Vec<Pattern>); 2], lost: &mut Vec<Loss>) {
    for (key, list) in lists {
        if list.iter().any(|pattern| *pattern != Pattern::Any) {
            let message = "Celery takes subclasses of these classes too; the policy compares the names of error \
                           types, so name every subclass that your tasks raise";
            lost.push(Loss::new(fields.path_of(key), message));
        }
    }
}

fn note_manual_only(fields: &Fields<'_>, lost: &mut Vec<Loss>, f: &mut Findings) {
    let unread = ["dont_autoretry_for", "retry_backoff", "retry_backoff_max", "retry_jitter", "retry_kwargs"];
    warn_unread(fields, &unread, "a task without autoretry_for", f);
    let path = if fields.has("autoretry_for") { fields.path_of("autoretry_for") } else { String::new() };
    let message = "without autoretry_for a task is retried only where its code calls self.retry(), which no setting \
                   shows; the policy retries nothing: put the exceptions in question into autoretry_for";
    lost.push(Loss::new(path, message));
}

/// How long to wait, as far as the options say.
struct Timing {
    /// Seconds; absent where `retry_backoff` is off.
    factor: Option<f64>,
    backoff_max: Span,
    jitter: bool,
    /// The wait without backoff.
    constant: Span,
}

impl Timing {
    fn of(fields: &Fields<'_>, kwargs: &Fields<'_>, f: &mut Findings) -> Self {
        let backoff_max_s = whole_seconds(fields, "retry_backoff_max", f).unwrap_or(DEFAULT_BACKOFF_MAX_S);
        let countdown = if kwargs.given("countdown") { kwargs.seconds("countdown", f) } else { None };
        let default_delay = fields.seconds("default_retry_delay", f).unwrap_or(DEFAULT_DELAY);
        Self {
            factor: factor(fields, f),
            backoff_max: Span::saturating_ms(backoff_max_s * 1000.0),
            jitter: fields.boolean("retry_jitter", f).unwrap_or(true),
            constant: countdown.unwrap_or(default_delay),
        }
    }

    fn backoff(&self) -> Backoff {
        let Some(factor) = self.factor else { return Backoff::fixed(self.constant) };
        Backoff {
            initial: Span::saturating_ms(factor * 1000.0),
            offset: Span::ZERO,
            curve: Curve::Exponential { rate: 2.0 },
            cap: Some(Cap { at: self.backoff_max, place: CapPlace::BeforeJitter }),
            jitter: if self.jitter { Jitter::FULL } else { Jitter::None },
            rounding: Rounding::Exact,
        }
    }

    fn warn_of_unread(&self, fields: &Fields<'_>, kwargs: &Fields<'_>, f: &mut Findings) {
        if let Some(factor) = self.factor {
            warn_unread(fields, &["default_retry_delay"], "an automatic retry with retry_backoff", f);
            warn_unread(kwargs, &["countdown", "eta"], "an automatic retry with retry_backoff", f);
            self.warn_of_cap(fields, factor, f);
        } else {
            warn_unread(fields, &["retry_backoff_max", "retry_jitter"], "a task without retry_backoff", f);
        }
    }

    fn warn_of_cap(&self, fields: &Fields<'_>, factor_s: f64, f: &mut Findings) {
        if factor_s * 1000.0 > self.backoff_max.ms() {
            f.warnings.push(Warning {
                code: "capped-from-the-start",
                path: fields.path_of("retry_backoff"),
                message: format!("retry_backoff_max cuts every delay down to {}", self.backoff_max),
                instead: "a retry_backoff_max that is larger than retry_backoff".to_owned(),
            });
        }
    }

    fn note_lost(&self, fields: &Fields<'_>, kwargs: &Fields<'_>, lost: &mut Vec<Loss>) {
        if self.factor.is_some() && self.jitter {
            let message = "Celery draws whole seconds, from 0 to the delay; the policy draws from the same range \
                           without the grid";
            let path = if fields.has("retry_jitter") { fields.path_of("retry_jitter") } else { String::new() };
            lost.push(Loss::new(path, message));
        }
        if self.factor.is_none() && kwargs.given("eta") && !kwargs.given("countdown") {
            let message =
                format!("a policy waits for a time, not until a date; here each retry waits {}", self.constant);
            lost.push(Loss::new(kwargs.path_of("eta"), message));
        }
        if kwargs.given("queue") {
            let message = "a policy names no queue; retries stay in the queue of the task";
            lost.push(Loss::new(kwargs.path_of("queue"), message));
        }
    }
}

/// The factor of `retry_backoff` in seconds; `None` where it is off.
fn factor(fields: &Fields<'_>, f: &mut Findings) -> Option<f64> {
    const KEY: &str = "retry_backoff";
    let parse = |value: &Value| value.as_bool().map(|on| f64::from(u8::from(on))).or_else(|| value.as_f64());
    let given = fields.read(KEY, "true, false or a number of seconds", f, parse).filter(|number| *number != 0.0)?;
    let factor = given.max(1.0).trunc();
    warn_of_rounding(fields, KEY, given, factor, f);
    Some(factor)
}

/// Seconds without their fraction, which Celery cuts off.
fn whole_seconds(fields: &Fields<'_>, key: &str, f: &mut Findings) -> Option<f64> {
    let parse = |value: &Value| value.as_f64().filter(|n| *n >= 0.0);
    let given = fields.read(key, "a number of seconds, at least 0", f, parse)?;
    warn_of_rounding(fields, key, given, given.trunc(), f);
    Some(given.trunc())
}

fn warn_of_rounding(fields: &Fields<'_>, key: &str, given: f64, used: f64, f: &mut Findings) {
    if given != used {
        f.warnings.push(Warning {
            code: "rounded-by-celery",
            path: fields.path_of(key),
            message: format!("Celery uses {used} instead of {given}"),
            instead: format!("{used}"),
        });
    }
}
