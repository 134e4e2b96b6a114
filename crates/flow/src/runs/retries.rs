//! The Retry entries of a run and their attempts, as they are shown.

use crate::{Brief, Decided, Decision, Note, What};
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Origin};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// How many Retry entries are kept, and how many attempts of each.
const KEPT: usize = 20;
const ATTEMPTS: usize = 20;

/// The Retry entries that were entered lately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Retries {
    omitted: u64,
    kept: VecDeque<Entered>,
}

/// A Retry that was entered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entered {
    number: u64,
    path: String,
    flow: String,
    step: Option<String>,
    entered_us: i64,
    ended_us: Option<i64>,
    state: State,
    attempts: VecDeque<Attempt>,
    omitted: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Running,
    Waiting,
    Succeeded,
    Exhausted,
    Passed,
    Interrupted,
    Failed,
}

/// A run of the scope inside of a Retry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Attempt {
    attempt: u32,
    started_us: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_us: Option<i64>,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gap: Option<Gap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    explanation: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Running,
    Success,
    Failure,
    Interrupted,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Failed {
    r#type: String,
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The wait behind an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Gap {
    delay_ms: f64,
    from: String,
    next_us: i64,
}

impl Retries {
    /// Writes a note down.
    pub(crate) fn note(&mut self, note: &Note) {
        match &note.what {
            What::RetryEntered { retry, path } => self.enter(note, *retry, path),
            What::AttemptStarted { retry, attempt } => {
                if let Some(entered) = self.of(*retry) {
                    entered.begin(*attempt, note.at);
                }
            }
            What::AttemptEnded { retry, attempt, result, decided } => {
                if let Some(entered) = self.of(*retry) {
                    entered.settle(*attempt, note.at, result, decided.as_ref());
                }
            }
            What::RetryEnded { retry, interrupted, result, .. } => {
                if let Some(entered) = self.of(*retry) {
                    entered.end(note.at, *interrupted, result);
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, note: &Note, number: u64, path: &str) {
        if self.kept.len() == KEPT {
            // Those that are over leave first.
            let over = self.kept.iter().position(|entered| entered.ended_us.is_some());
            self.kept.remove(over.unwrap_or(0));
            self.omitted += 1;
        }
        self.kept.push_back(Entered {
            number,
            path: path.to_owned(),
            flow: note.flow.clone(),
            step: note.step.clone(),
            entered_us: note.at.micros(),
            ended_us: None,
            state: State::Running,
            attempts: VecDeque::new(),
            omitted: 0,
        });
    }

    fn of(&mut self, number: u64) -> Option<&mut Entered> {
        self.kept.iter_mut().rev().find(|entered| entered.number == number)
    }

    /// How many Retry entries are not kept any more.
    pub(crate) const fn omitted(&self) -> u64 {
        self.omitted
    }

    /// As callers see them.
    pub(crate) fn shown(&self) -> Vec<Value> {
        self.kept.iter().map(Entered::shown).collect()
    }
}

impl Entered {
    fn begin(&mut self, attempt: u32, at: Moment) {
        if self.attempts.len() == ATTEMPTS {
            self.attempts.pop_front();
            self.omitted += 1;
        }
        self.state = State::Running;
        self.attempts.push_back(Attempt {
            attempt,
            started_us: at.micros(),
            ended_us: None,
            outcome: Outcome::Running,
            failure: None,
            policy: None,
            decision: None,
            gap: None,
            explanation: None,
        });
    }

    fn settle(&mut self, number: u32, at: Moment, result: &Brief, decided: Option<&Decided>) {
        let Some(attempt) = self.attempts.back_mut().filter(|attempt| attempt.attempt == number) else { return };
        attempt.ended_us = Some(at.micros());
        let Some(Decided { policy, decision, explanation }) = decided else {
            attempt.outcome = Outcome::Success;
            return;
        };
        attempt.outcome = Outcome::Failure;
        attempt.failure =
            Some(Failed { r#type: result.kind.clone(), code: result.code.clone(), message: result.message.clone() });
        attempt.policy = *policy;
        attempt.explanation = Some(explanation.clone());
        let word = match decision {
            Decision::Retry { delay, origin, next_at } => {
                let from = if matches!(origin, Origin::Override) { "override" } else { "backoff" };
                attempt.gap = Some(Gap { delay_ms: delay.ms(), from: from.to_owned(), next_us: next_at.micros() });
                self.state = State::Waiting;
                "retry"
            }
            Decision::Exhausted => {
                self.state = State::Exhausted;
                "exhausted"
            }
            Decision::Passed => {
                self.state = State::Passed;
                "passed"
            }
        };
        attempt.decision = Some(word.to_owned());
    }

    fn end(&mut self, at: Moment, interrupted: bool, result: &Brief) {
        self.ended_us = Some(at.micros());
        let last = self.attempts.back_mut();
        if interrupted {
            self.state = State::Interrupted;
            if let Some(attempt) = last.filter(|attempt| attempt.outcome == Outcome::Running) {
                (attempt.outcome, attempt.ended_us) = (Outcome::Interrupted, Some(at.micros()));
            }
            return;
        }
        self.state = match (self.state, result.code.is_none()) {
            (state @ (State::Exhausted | State::Passed), _) => state,
            (_, true) => State::Succeeded,
            (_, false) => State::Failed,
        };
    }

    fn shown(&self) -> Value {
        let last = self.attempts.back();
        let gap = last.filter(|_| self.state == State::Waiting).and_then(|attempt| attempt.gap.as_ref());
        let next = gap.map(|gap| json!({ "attempt": last.map(|last| last.attempt + 1), "at": time(gap.next_us) }));
        json!({
            "number": self.number,
            "path": self.path,
            "flow": self.flow,
            "step": self.step,
            "entered_at": time(self.entered_us),
            "ended_at": self.ended_us.map(time),
            "state": self.state,
            "attempts": self.attempts.iter().map(Attempt::shown).collect::<Vec<_>>(),
            "attempts_omitted": self.omitted,
            "next": next,
        })
    }
}

impl Attempt {
    fn shown(&self) -> Value {
        json!({
            "attempt": self.attempt,
            "started_at": time(self.started_us),
            "ended_at": self.ended_us.map(time),
            "outcome": self.outcome,
            "failure": self.failure,
            "policy": self.policy,
            "decision": self.decision,
            "delay_ms": self.gap.as_ref().map(|gap| gap.delay_ms),
            "delay_from": self.gap.as_ref().map(|gap| &gap.from),
            "next_at": self.gap.as_ref().map(|gap| time(gap.next_us)),
            "explanation": self.explanation,
        })
    }
}

fn time(micros: i64) -> String {
    rfc3339(Moment::from_micros(micros))
}
