//! What the tests of the five documents share: verdicts as short texts that a table can hold.

#![allow(dead_code, reason = "each test crate uses the part that it needs")]

use redrive_policy::dialect::{Dialect, Reading};
use redrive_policy::lab::replay::{Script, Step, replay};
use redrive_policy::{Draw, Entropy, Outcome, Policy, Span};
use serde_json::{Value, json};

/// A source that always gives the same draw.
pub(crate) struct Always(pub(crate) f64);

impl Entropy for Always {
    fn draw(&mut self) -> Draw {
        Draw::try_from(self.0).expect("a draw")
    }
}

/// The draw just below the limit: the largest that a source can give.
pub(crate) fn largest_draw() -> f64 {
    Draw::from_bits(u64::MAX).value()
}

pub(crate) fn reading(dialect: Dialect, document: &Value) -> Reading {
    dialect.read(document).unwrap_or_else(|problems| panic!("{dialect} refuses {document}: {problems}"))
}

pub(crate) fn policy(dialect: Dialect, document: &Value) -> Policy {
    reading(dialect, document).policy
}

/// Two documents that mean the same.
pub(crate) fn assert_same(dialect: Dialect, a: &Value, b: &Value) {
    assert_eq!(policy(dialect, a), policy(dialect, b), "{a} and {b} must mean the same");
}

/// The same failure `times` times.
pub(crate) fn again(failure: Value, times: usize) -> Vec<Value> {
    vec![failure; times]
}

pub(crate) fn steps(dialect: Dialect, document: &Value, failures: &[Value], draw: f64) -> Vec<Step> {
    let script = json!({ "policy": document, "failures": failures });
    let script = Script::of(&script).expect("a script");
    let failures = script.read_failures(dialect).unwrap_or_else(|problems| panic!("{problems}"));
    replay(&policy(dialect, document), &failures, &mut Always(draw))
}

/// One step as a text: `1000` for a wait that no draw changes, `500..1500` for the bounds of one
/// that draws change, `max_attempts discard` for a stop. Milliseconds, rounded to the nanosecond.
pub(crate) fn told(step: &Step) -> String {
    let ms = |span: Span| (span.ms() * 1e6).round() / 1e6;
    match (step.verdict.outcome, step.bounds) {
        (Outcome::Retry { .. }, Some((min, max))) if min == max => format!("{}", ms(min)),
        (Outcome::Retry { .. }, Some((min, max))) => format!("{}..{}", ms(min), ms(max)),
        (Outcome::Retry { .. }, None) => panic!("a retry has bounds"),
        (Outcome::Stop { reason, disposition }, _) => format!("{} {disposition}", reason.name()),
    }
}

/// All steps as texts, for the draw in the middle; see [`told`].
pub(crate) fn story(dialect: Dialect, document: &Value, failures: &[Value]) -> Vec<String> {
    steps(dialect, document, failures, 0.5).iter().map(told).collect()
}

/// Checks the steps against their texts; as many failures are consumed as there are texts.
pub(crate) fn assert_story(dialect: Dialect, document: &Value, failures: &[Value], expected: &[&str]) {
    assert_eq!(story(dialect, document, failures), expected, "{dialect}: {document}");
}

/// The delays, in milliseconds, that one constant draw gives for the first `count` retries.
pub(crate) fn delays(dialect: Dialect, document: &Value, failure: Value, count: usize, draw: f64) -> Vec<f64> {
    let steps = steps(dialect, document, &again(failure, count), draw);
    let delays: Vec<f64> = steps.iter().filter_map(|step| step.verdict.delay()).map(|delay| delay.ms()).collect();
    assert_eq!(delays.len(), count, "{document} stops before {count} retries");
    delays
}

/// Checks that a document is refused with exactly these paths, each with a message that says more
/// than that it is wrong.
pub(crate) fn assert_refused(dialect: Dialect, document: &Value, paths: &[&str]) {
    let problems = match dialect.read(document) {
        Ok(_) => panic!("{dialect} accepts {document}"),
        Err(problems) => problems.0,
    };
    let found: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(found, paths, "{dialect}: {document}");
    for problem in &problems {
        let tells = ["allowed", "required", "contradicts"].iter().any(|word| problem.message.contains(word));
        assert!(tells, "{}: {} does not say what is allowed", problem.path, problem.message);
    }
}

/// Checks that each value of a list is refused under one field.
pub(crate) fn assert_field_refuses(dialect: Dialect, field: &str, values: &[Value]) {
    for value in values {
        let document = set(&json!({}), field, value.clone());
        assert_refused(dialect, &document, &[field]);
    }
}

/// Checks that each value of a list is accepted under one field.
pub(crate) fn assert_field_accepts(dialect: Dialect, field: &str, values: &[Value]) {
    for value in values {
        reading(dialect, &set(&json!({}), field, value.clone()));
    }
}

/// The document with another value at a JSON Pointer; objects on the way are made.
pub(crate) fn set(document: &Value, pointer: &str, value: Value) -> Value {
    let mut changed = document.clone();
    let mut place = &mut changed;
    for key in pointer.split('/').skip(1) {
        place = match key.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[key],
        };
    }
    *place = value;
    changed
}

/// The document without the member at a JSON Pointer.
pub(crate) fn without(document: &Value, pointer: &str) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer to a member");
    let mut changed = document.clone();
    let object = changed.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
    object.remove(key).expect("a member");
    changed
}

/// The codes and paths of the warnings.
pub(crate) fn warnings(dialect: Dialect, document: &Value) -> Vec<(&'static str, String)> {
    reading(dialect, document).warnings.into_iter().map(|warning| (warning.code, warning.path)).collect()
}
