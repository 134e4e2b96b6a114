//! What a step tells of itself, for histories. Nothing of it is a part of the state.

use super::outside::Provider;
use crate::result::Outcome;
use redrive_policy::{Moment, Origin, Span};
use std::collections::VecDeque;

/// How many notes of one step are kept.
const MOST: usize = 1_000;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// When.
    pub at: Moment,
    /// In which flow: its JSON Pointer in the definition.
    pub flow: String,
    /// At which step of it.
    pub step: Option<String>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "`execution`, `call`, `retry`, `attempt` and `iteration` are numbers, `path` a pointer")]
pub enum What {
    /// A step begins.
    StepStarted { execution: u64, action: &'static str },
    /// A step is over.
    StepEnded { execution: u64, result: Brief },
    /// A call has left the machine.
    CallDispatched { call: u64, provider: Provider },
    /// Its Result was accepted.
    CallAnswered { call: u64, result: Brief },
    /// Its Result is not wanted any more.
    CallWithdrawn { call: u64 },
    /// A Retry is entered.
    RetryEntered { retry: u64, path: String },
    /// The scope inside of a Retry runs.
    AttemptStarted { retry: u64, attempt: u32 },
    /// It has ended; a failure was decided on.
    AttemptEnded { retry: u64, attempt: u32, result: Brief, decided: Option<Decided> },
    /// A Retry is left.
    RetryEnded { retry: u64, attempt: u32, interrupted: bool, result: Brief },
    /// The bound of a Timeout is over.
    TimeoutExceeded { path: String },
    /// A Loop goes on.
    LoopAgain { path: String, iteration: u64 },
    /// The cleanup of a Finally begins.
    CleanupStarted { path: String },
    /// It is over.
    CleanupEnded { path: String, result: Brief },
    /// The flow has ended.
    Ended { result: Brief },
}

/// A Result without its value and its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// `success`, or the type of the failure.
    pub kind: String,
    /// The code of a failure.
    pub code: Option<String>,
    /// Its message.
    pub message: Option<String>,
}

/// What a Retry has decided on a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The policy that has handled it.
    pub policy: Option<usize>,
    /// What happens.
    pub decision: Decision,
    /// Why, in sentences.
    pub explanation: String,
}

/// What happens after a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The scope runs again.
    Retry {
        /// After this delay.
        delay: Span,
        /// Where the delay comes from.
        origin: Origin,
        /// When.
        next_at: Moment,
    },
    /// The budget of the policy is spent.
    Exhausted,
    /// The failure passes through.
    Passed,
}

/// The notes of a step, the newest of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Notes {
    on: bool,
    kept: VecDeque<Note>,
    dropped: u64,
}

impl Notes {
    pub(super) const fn off() -> Self {
        Self { on: false, kept: VecDeque::new(), dropped: 0 }
    }

    pub(super) const fn on() -> Self {
        Self { on: true, kept: VecDeque::new(), dropped: 0 }
    }

    pub(super) const fn are_wanted(&self) -> bool {
        self.on
    }

    pub(super) fn add(&mut self, note: Note) {
        if self.kept.len() == MOST {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(note);
    }

    pub(super) fn ended(&mut self, at: Moment, outcome: &Outcome) {
        if self.on {
            self.add(Note { at, flow: String::new(), step: None, what: What::Ended { result: Brief::of(outcome) } });
        }
    }

    /// How many notes came before those that are kept.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl IntoIterator for Notes {
    type Item = Note;
    type IntoIter = std::collections::vec_deque::IntoIter<Note>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl Brief {
    /// That of a Result.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Success(_) => Self { kind: "success".to_owned(), code: None, message: None },
            Outcome::Failure(failure) => Self {
                kind: failure.kind.clone(),
                code: Some(failure.code.clone()),
                message: failure.message.as_ref().map(|message| message.chars().take(200).collect()),
            },
        }
    }
}
