//! Verdicts in sentences.

use super::replay::Step;
use crate::dialect::describe;
use crate::{
    Backoff, CapPlace, Computed, Curve, Disposition, Failure, Jitter, Mismatch, Origin, Outcome, Policy, Reason,
    Rounding, Rule, Span, Verdict,
};

/// What happens now, in one line: `retry in 1.6 s` or `stop (max_attempts): …`.
#[must_use]
pub fn headline(verdict: &Verdict) -> String {
    match verdict.outcome {
        Outcome::Retry { delay, .. } if delay.is_zero() => "retry at once".to_owned(),
        Outcome::Retry { delay, .. } => format!("retry in {delay}"),
        Outcome::Stop { reason, disposition } => format!("stop ({}): {}", reason.name(), fate(disposition)),
    }
}

/// How it came about, as one or more sentences.
#[must_use]
pub fn because(policy: &Policy, failure: &Failure<'_>, step: &Step) -> Vec<String> {
    match step.verdict.outcome {
        Outcome::Stop { reason, .. } => vec![stopped(policy, failure, &step.verdict, reason)],
        Outcome::Retry { origin: Origin::Override, .. } => {
            vec!["The failure asked for this wait itself; it is used as it is, without cap and jitter.".to_owned()]
        }
        Outcome::Retry { origin: Origin::Requeue, .. } => {
            vec!["The handler asked to run again later; that is no failure, and nothing is counted.".to_owned()]
        }
        Outcome::Retry { origin: Origin::Backoff(computed), .. } => {
            let Some(rule) = step.verdict.rule.and_then(|rule| policy.rules.get(rule)) else { return Vec::new() };
            waits(policy, &rule.backoff, step, computed)
        }
    }
}

/// The timing of a rule in one line: `exponential growth ×2 from 1 s, at most 5 min, jitter ×0.5–1.5`.
#[must_use]
pub fn summary(policy: &Policy, rule: usize) -> String {
    let Some(Rule { backoff, .. }) = policy.rules.get(rule) else { return String::new() };
    if *backoff == Backoff::IMMEDIATE {
        return "retries at once".to_owned();
    }
    let mut said = match backoff.curve {
        Curve::Fixed | Curve::Exponential { rate: 1.0 } => format!("always {}", backoff.initial),
        _ => format!("{} from {}", describe::curve(backoff.curve), backoff.initial),
    };
    if !backoff.offset.is_zero() {
        said.push_str(&format!(" on top of {}", backoff.offset));
    }
    if let Some(cap) = backoff.cap {
        said.push_str(&format!(", at most {}", cap.at));
    }
    said.push_str(&format!(", {}", backoff.jitter));
    said
}

fn fate(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Discard => "the job is discarded",
        Disposition::DeadLetter => "the job goes to the dead letters",
        Disposition::Fail => "the failure is returned to the caller",
    }
}

fn waits(policy: &Policy, backoff: &Backoff, step: &Step, computed: Computed) -> Vec<String> {
    let mut said = Vec::new();
    let n = computed.retry;
    said.extend(handled(policy, step, n));
    if backoff.jitter == Jitter::Decorrelated {
        said.push(format!("Retry {n} is drawn between {} and three times the delay before it.", backoff.initial));
    } else {
        said.push(format!("Retry {n} waits {} by {}.", computed.raw, describe::curve(backoff.curve)));
    }
    if let Some(at) = computed.capped_at {
        let place = backoff.cap.map(|cap| cap.place);
        let twice = computed.draw.is_some() && place == Some(CapPlace::BeforeAndAfter);
        let again = if twice { ", before and after the jitter" } else { "" };
        said.push(format!("The cap of {at} shortens it{again}."));
    }
    if let Some(draw) = computed.draw {
        let cut = if backoff.rounding == Rounding::FloorMs { ", cut down to a whole millisecond" } else { "" };
        said.push(format!(
            "With {} and the draw {:.4} it becomes {}{cut}.",
            backoff.jitter,
            draw.value(),
            computed.delay
        ));
    }
    if let Some((min, max)) = step.bounds.filter(|(min, max)| min != max) {
        said.push(format!("Over all draws it lies between {min} and {max}."));
    }
    said
}

/// Which rule handles the `n`th failure that it meets, and how much of its budget is spent.
fn handled(policy: &Policy, step: &Step, n: u32) -> Option<String> {
    let position = step.verdict.rule?;
    let rule = policy.rules.get(position)?;
    let budget = rule.budget.map(|budget| format!("failure {n} of its budget of {budget}"));
    if policy.rules.len() == 1 {
        return budget.map(|budget| format!("The rule handles it: {budget}."));
    }
    let budget = budget.map_or_else(String::new, |budget| format!(": {budget}"));
    Some(format!("Policy {position} handles it ({}){budget}.", describe::matcher(&rule.matcher)))
}

fn stopped(policy: &Policy, failure: &Failure<'_>, verdict: &Verdict, reason: Reason) -> String {
    match reason {
        Reason::MaxAttempts { limit } if policy.rules.len() > 1 => {
            let rule = verdict.rule.unwrap_or_default();
            format!("Policy {rule} has handled its last failure: its budget of {limit} counts the first run.")
        }
        Reason::MaxAttempts { limit: 0 | 1 } => "The limit allows one run and no retry.".to_owned(),
        Reason::MaxAttempts { limit } => format!("This was attempt {} of at most {limit}.", verdict.attempt),
        Reason::MaxElapsed { limit, elapsed, delay: None } => {
            format!("{elapsed} have passed since the job was created; the limit is {limit}.")
        }
        Reason::MaxElapsed { limit, elapsed, delay: Some(delay) } => format!(
            "{elapsed} have passed since the job was created, and after a wait of {delay} the next attempt \
             would start at or past the limit of {limit}."
        ),
        Reason::NonRetryable(mismatch) => mismatched(policy, failure, mismatch),
        Reason::Unmatched => format!("No policy matches {}; the failure passes through unchanged.", named(failure)),
        Reason::Handler => "The handler's own code decides, before anything that the policy says.".to_owned(),
        Reason::Unrecoverable => "The handler declared the error unrecoverable.".to_owned(),
        Reason::RetriesDisabled => "Retries are switched off.".to_owned(),
        Reason::Pruned => "The node pruned its branch; that is no failure.".to_owned(),
    }
}

fn mismatched(policy: &Policy, failure: &Failure<'_>, mismatch: Mismatch) -> String {
    match mismatch {
        Mismatch::Excluded { entry } => {
            let lists = policy.rules.last().map(|rule| &rule.matcher.exclude_types);
            let pattern = lists.and_then(|list| list.get(entry)).map_or_else(String::new, ToString::to_string);
            format!("The error type \"{}\" matches \"{pattern}\", which must not be retried.", failure.type_name)
        }
        Mismatch::NotIncluded => {
            format!("The error type \"{}\" is not on the list of those to retry.", failure.type_name)
        }
        Mismatch::OtherCode => format!("The code \"{}\" is not on the list of those to retry.", failure.code),
        Mismatch::OtherFlag => "The failure does not assert the retryable value that is asked for.".to_owned(),
        Mismatch::Permanent => "The failure was declared permanent.".to_owned(),
    }
}

fn named(failure: &Failure<'_>) -> String {
    if failure.code.is_empty() { format!("\"{}\"", failure.type_name) } else { format!("\"{}\"", failure.code) }
}

/// The attempts on a line of `width` characters, each `●` where it ran, `✗` where it ended; waits are
/// to scale, but for those that are too short to see.
#[must_use]
pub fn time_line(steps: &[Step], width: usize) -> String {
    let total: f64 = steps.iter().filter_map(|step| step.verdict.delay()).map(Span::ms).sum();
    let mut line = String::new();
    for step in steps {
        match step.verdict.delay() {
            Some(delay) => {
                line.push('●');
                let share = if total > 0.0 { delay.ms() / total } else { 0.0 };
                let dashes = (share * width as f64).round() as usize;
                line.push_str(&"─".repeat(dashes.max(1)));
            }
            None => line.push('✗'),
        }
    }
    if steps.last().is_some_and(|step| step.verdict.delay().is_some()) {
        line.push('▶');
    }
    line
}
