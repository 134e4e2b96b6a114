//! Failures in the words of each dialect, as `redrive policy replay` takes them.

use super::Dialect;
use super::fields::{Fields, Findings};
use crate::{Disposition, Failure, Problem, Problems, Signal, Span};
use serde_json::Value;

/// A failure that was read, and when it happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadFailure<'a> {
    /// The failure.
    pub failure: Failure<'a>,
    /// The time since the job was created, where it was given.
    pub elapsed: Option<Span>,
}

/// What a failure can say in each dialect.
const fn words(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Ojs => &["type", "code", "elapsed_ms", "message", "details"],
        Dialect::Azolla => &["type", "retriable", "elapsed_ms", "message", "data"],
        Dialect::TaskHarbor => &["type", "unrecoverable", "elapsed_ms", "message"],
        Dialect::Exosphere => &["signal", "delay_ms", "elapsed_ms", "error"],
        Dialect::Mwl => &["code", "type", "retryable", "delay", "elapsed_ms", "message", "details", "previous"],
    }
}

impl Dialect {
    /// Reads a failure in the words of this dialect; `path` is where it stands.
    ///
    /// # Errors
    /// Every problem, each with a JSON Pointer, the value found and what is allowed.
    pub fn read_failure<'a>(self, path: &str, value: &'a Value) -> Result<ReadFailure<'a>, Problems> {
        let mut findings = Findings::default();
        let f = &mut findings;
        let fields = Fields::at(path, value, f);
        fields.only(words(self), f);
        let elapsed = fields.ms("elapsed_ms", f);
        let failure = match self {
            Self::Ojs => ojs(&fields, f),
            Self::Azolla => azolla(&fields, f),
            Self::TaskHarbor => taskharbor(&fields, f),
            Self::Exosphere => exosphere(&fields, f),
            Self::Mwl => mwl(&fields, f),
        };
        if findings.problems.is_empty() {
            Ok(ReadFailure { failure, elapsed })
        } else {
            Err(Problems(findings.problems))
        }
    }
}

fn ojs<'a>(fields: &Fields<'a>, f: &mut Findings) -> Failure<'a> {
    fields.require("type", "the error type, such as \"external.timeout\",", f);
    let failure = Failure::of_type(fields.text("type", f).unwrap_or_default());
    // §7: only the exact control codes act, everything else is a label.
    match fields.text("code", f).unwrap_or("RETRY") {
        "DISCARD" | "FAIL" => failure.with_signal(Signal::Stop(Disposition::Discard)),
        "DEAD_LETTER" => failure.with_signal(Signal::Stop(Disposition::DeadLetter)),
        _ => failure,
    }
}

fn azolla<'a>(fields: &Fields<'a>, f: &mut Findings) -> Failure<'a> {
    fields.require("type", "the error type, such as \"ValueError\",", f);
    let type_name = fields.text("type", f).unwrap_or_default();
    // The flag is kept and shown; the document lets only the two lists decide.
    Failure { retryable: fields.boolean("retriable", f), ..Failure::of_type(type_name) }
}

fn taskharbor<'a>(fields: &Fields<'a>, f: &mut Findings) -> Failure<'a> {
    let failure = Failure::of_type(fields.text("type", f).unwrap_or("error"));
    match fields.boolean("unrecoverable", f) {
        Some(true) => failure.with_signal(Signal::Unrecoverable),
        _ => failure,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ExosphereSignal {
    Prune,
    RequeueAfter,
}

fn exosphere<'a>(fields: &Fields<'a>, f: &mut Findings) -> Failure<'a> {
    let signals = [("prune", ExosphereSignal::Prune), ("requeue_after", ExosphereSignal::RequeueAfter)];
    let signal = fields.word("signal", &signals, f);
    let delay = fields.ms("delay_ms", f);
    match signal {
        Some(ExosphereSignal::RequeueAfter) => {
            fields.require("delay_ms", "a number of milliseconds", f);
            Failure::default().with_signal(Signal::RequeueAfter(delay.unwrap_or(Span::ZERO)))
        }
        other => {
            if delay.is_some() {
                let message = "only a failure with \"signal\": \"requeue_after\" has a delay of its own";
                f.problems.push(Problem::with_message(fields.path_of("delay_ms"), message));
            }
            let signal = if other.is_some() { Signal::Prune } else { Signal::None };
            Failure::default().with_signal(signal)
        }
    }
}

fn mwl<'a>(fields: &Fields<'a>, f: &mut Findings) -> Failure<'a> {
    fields.require("code", "the failure's code", f);
    let code = fields.text("code", f).unwrap_or_default();
    let type_name = fields.text("type", f).unwrap_or("error");
    if type_name == "success" {
        f.problems.push(Problem::new(fields.path_of("type"), "\"success\"", "the type of a failure"));
    }
    let nullable = |key| fields.get(key).is_some_and(|value| !value.is_null());
    let retryable = if nullable("retryable") { fields.boolean("retryable", f) } else { None };
    let delay = if nullable("delay") { fields.signed_iso("delay", f) } else { None };
    Failure { type_name, code, retryable, signal: Signal::None, delay }
}
