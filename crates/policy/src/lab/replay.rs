//! One job that fails again and again, step by step.

use crate::dialect::{Dialect, ReadFailure};
use crate::{Bounds, Entropy, History, Moment, Origin, Outcome, Policy, Problem, Problems, Span, Verdict, decide};
use serde_json::{Map, Value, json};

/// One failure, and what the policy made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The verdict, with its explanation.
    pub verdict: Verdict,
    /// The shortest and the longest delay over all draws; absent for a stop.
    pub bounds: Option<(Span, Span)>,
    /// The time since the job was created at which the failure happened.
    pub elapsed: Span,
}

/// The document that `redrive policy replay` takes, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// The policy in its dialect.
    pub policy: &'a Value,
    /// The failures in the words of that dialect.
    pub failures: &'a [Value],
}

impl<'a> Script<'a> {
    /// Takes apart `{"policy": …, "failures": […]}`.
    ///
    /// # Errors
    /// Which of the two members is missing, or of the wrong kind.
    pub fn of(document: &'a Value) -> Result<Self, Problems> {
        const SHAPE: &str = "{\"policy\": …, \"failures\": […]}";
        let object = document.as_object().ok_or_else(|| {
            Problems(vec![Problem::new("", crate::problem::shown(document), format!("an object {SHAPE}"))])
        })?;
        let mut problems = Vec::new();
        for key in object.keys().filter(|key| !["policy", "failures"].contains(&key.as_str())) {
            let path = crate::problem::member("", key);
            problems.push(Problem::with_message(path, format!("unknown field; a replay is {SHAPE}")));
        }
        let policy = object.get("policy");
        if policy.is_none() {
            problems.push(Problem::with_message("/policy", "missing; the policy to replay is required"));
        }
        let failures = object.get("failures").and_then(Value::as_array);
        if failures.is_none() {
            problems.push(Problem::with_message(
                "/failures",
                "missing, or not an array; the failures in order are required",
            ));
        }
        match (policy, failures) {
            (Some(policy), Some(failures)) if problems.is_empty() => Ok(Self { policy, failures }),
            _ => Err(Problems(problems)),
        }
    }

    /// Reads the failures.
    ///
    /// # Errors
    /// Every problem of every failure.
    pub fn read_failures(&self, dialect: Dialect) -> Result<Vec<ReadFailure<'a>>, Problems> {
        let mut problems = Vec::new();
        let mut read = Vec::with_capacity(self.failures.len());
        for (index, failure) in self.failures.iter().enumerate() {
            match dialect.read_failure(&format!("/failures/{index}"), failure) {
                Ok(failure) => read.push(failure),
                Err(Problems(more)) => problems.extend(more),
            }
        }
        if problems.is_empty() { Ok(read) } else { Err(Problems(problems)) }
    }
}

/// Feeds the failures to the policy in order, and stops at the first stop.
///
/// A failure that does not say when it happened is taken to happen as soon as the wait before it
/// is over: runs that take no time.
pub fn replay(policy: &Policy, failures: &[ReadFailure<'_>], entropy: &mut impl Entropy) -> Vec<Step> {
    let mut history = History::new(Moment::ORIGIN);
    let mut bounds = Bounds::new(Moment::ORIGIN);
    let mut now = Moment::ORIGIN;
    let mut steps = Vec::new();
    for ReadFailure { failure, elapsed } in failures {
        if let Some(elapsed) = elapsed {
            now = Moment::ORIGIN.after(*elapsed);
        }
        let verdict = decide(policy, &history, failure, now, entropy.draw());
        let bounds = bounds.record(policy, &verdict);
        history.record(&verdict);
        steps.push(Step { verdict, bounds, elapsed: now.since(Moment::ORIGIN) });
        match verdict.delay() {
            Some(delay) => now = now.after(delay),
            None => break,
        }
    }
    steps
}

impl Step {
    /// The step for programs. `rules` says whether the dialect has rules to name.
    #[must_use]
    pub fn to_json(&self, rules: bool) -> Value {
        let mut fields = Map::new();
        fields.insert("attempt".to_owned(), self.verdict.attempt.into());
        match (self.verdict.outcome, self.bounds) {
            (Outcome::Retry { delay, origin }, Some((min, max))) => {
                fields.insert("verdict".to_owned(), "retry".into());
                fields.insert("delay_ms".to_owned(), json!(delay));
                fields.insert("min_ms".to_owned(), json!(min));
                fields.insert("max_ms".to_owned(), json!(max));
                match origin {
                    Origin::Backoff(computed) => {
                        fields.insert("raw_ms".to_owned(), json!(computed.raw));
                        fields.extend(computed.capped_at.map(|cap| ("capped_at_ms".to_owned(), json!(cap))));
                        fields.extend(computed.draw.map(|draw| ("draw".to_owned(), json!(draw))));
                    }
                    Origin::Override => drop(fields.insert("override".to_owned(), true.into())),
                    Origin::Requeue => drop(fields.insert("counted".to_owned(), false.into())),
                }
            }
            (Outcome::Retry { .. }, None) => {}
            (Outcome::Stop { reason, disposition }, _) => {
                fields.insert("verdict".to_owned(), "stop".into());
                fields.insert("reason".to_owned(), reason.name().into());
                fields.insert("disposition".to_owned(), disposition.name().into());
            }
        }
        fields.extend(self.verdict.rule.filter(|_| rules).map(|rule| ("rule".to_owned(), rule.into())));
        Value::Object(fields)
    }
}
