//! Definitions as the machine runs them: names are resolved, expressions are read, and nothing can be missing.

mod calls;
mod fields;
mod flows;
mod middleware;
mod order;
mod providers;
mod steps;
#[cfg(test)]
mod tests;

use crate::problem::{Findings, Problem};
use crate::providers::Provider;
use crate::schema::Schema;
use crate::template::Template;
use redrive_policy::Matcher;

/// The place of a flow in its definition. The root is 0.
pub(crate) type FlowId = usize;
/// The place of a step in its flow.
pub(crate) type StepId = usize;
/// The place of a call in the definition.
pub(crate) type CallId = usize;
/// The place of a middleware entry in the definition.
pub(crate) type EntryId = usize;

/// How large the text of a definition may be.
pub const MAX_DEFINITION: usize = 4 << 20;

/// A definition that was read and has no problem.
#[derive(Debug)]
pub struct Definition {
    pub(crate) flows: Vec<Flow>,
    pub(crate) calls: Vec<Call>,
    pub(crate) entries: Vec<Entry>,
    /// Of the text. A state goes on with the definition that it was started with.
    pub(crate) fingerprint: u64,
}

impl Definition {
    /// Reads the text of a definition.
    ///
    /// # Errors
    /// Every problem with its path, line and column.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        let mut findings = Findings::default();
        if text.len() > MAX_DEFINITION {
            findings.add(
                0,
                "",
                format!("the definition has {} bytes; at most {MAX_DEFINITION} are allowed", text.len()),
            );
            return Err(findings.located(text));
        }
        let (root, duplicates) = match crate::json::parse(text) {
            Ok(parsed) => parsed,
            Err(malformed) => {
                findings.add(malformed.at, "", format!("the document is not JSON: {}", malformed.message));
                return Err(findings.located(text));
            }
        };
        for duplicate in duplicates {
            findings.add(duplicate.at, "", duplicate.message);
        }
        let read = flows::read(&root, &mut findings, fingerprint(text));
        if findings.is_empty() { Ok(read) } else { Err(findings.located(text)) }
    }

    /// The call providers of a server that it names, in the order of the definition. Without a server, a flow that
    /// calls one of them waits for ever.
    pub fn providers(&self) -> impl Iterator<Item = Provider> {
        self.calls.iter().filter_map(|call| match call.target {
            Target::Outside(provider) => Some(provider),
            Target::Mock | Target::Flow(_) => None,
        })
    }

    /// How many flows, steps, calls and middleware entries it has.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let steps = self.flows.iter().map(|flow| flow.steps.len()).sum();
        Counts { flows: self.flows.len(), steps, calls: self.calls.len(), middleware: self.entries.len() }
    }
}

/// How large a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The root flow, named flows and inline flows.
    pub flows: usize,
    /// Steps of all flows.
    pub steps: usize,
    /// Calls of steps and of cleanups.
    pub calls: usize,
    /// Middleware entries of flows, steps and cleanups.
    pub middleware: usize,
}

/// FNV-1a, which is enough to notice that a state is resumed with another definition.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The JSON Pointer of the flow in the definition.
    pub(crate) path: String,
    pub(crate) entrypoint: StepId,
    pub(crate) steps: Vec<Step>,
    pub(crate) stack: Vec<EntryId>,
    pub(crate) parameters: Schema,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    Call { input: Option<Template>, stack: Vec<EntryId>, call: CallId, tail: Tail },
    Gather(Gather),
    Match { input: Option<Template>, cases: Vec<(Template, Clause)>, default: Clause },
    Pass(Clause),
    Sleep { until: bool, value: Template, next: StepId },
    Return { value: Option<Template> },
    Raise(Option<Envelope>),
}

impl Action {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Call { .. } => "Call",
            Self::Gather(_) => "Gather",
            Self::Match { .. } => "Match",
            Self::Pass(_) => "Pass",
            Self::Sleep { .. } => "Sleep",
            Self::Return { .. } => "Return",
            Self::Raise(_) => "Raise",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) form: GatherForm,
    /// Absent, all must succeed.
    pub(crate) successes: Option<Template>,
    pub(crate) wait: bool,
    pub(crate) concurrency: Option<usize>,
    pub(crate) tail: Tail,
}

#[derive(Debug)]
pub(crate) enum GatherForm {
    Iterate { over: Template, call: CallId },
    Scatter(Vec<CallId>),
}

pub(crate) type Assign = Vec<(String, Template)>;

/// What a step emits, assigns, and where it goes on.
#[derive(Debug, Default)]
pub(crate) struct Clause {
    pub(crate) output: Option<Template>,
    pub(crate) assign: Assign,
    pub(crate) next: StepId,
}

/// How a step that calls goes on after success and after failure.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub(crate) success: Clause,
    pub(crate) catch: Vec<(Matcher, Clause)>,
}

/// The envelope of a failure, as far as it is written.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    pub(crate) kind: Option<Template>,
    pub(crate) code: Option<Template>,
    pub(crate) message: Option<Template>,
    pub(crate) details: Option<Template>,
    pub(crate) retryable: Option<Template>,
    pub(crate) previous: Option<Template>,
}

impl Envelope {
    pub(crate) const fn is_empty(&self) -> bool {
        self.kind.is_none()
            && self.code.is_none()
            && self.message.is_none()
            && self.details.is_none()
            && self.retryable.is_none()
            && self.previous.is_none()
    }
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) input: Option<Template>,
    pub(crate) with: Option<Template>,
    pub(crate) value: Option<Template>,
    pub(crate) on_success: Assign,
    pub(crate) on_failure: Assign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Mock,
    /// A provider that is called by whoever runs the machine.
    Outside(Provider),
    Flow(FlowId),
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// The JSON Pointer of the entry in the definition.
    pub(crate) path: String,
    pub(crate) kind: Middleware,
    pub(crate) on_entry: Phase,
    pub(crate) on_success: Phase,
    pub(crate) on_failure: Phase,
    pub(crate) on_always: Phase,
    pub(crate) envelope: Envelope,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Middleware {
    Retry,
    Timeout,
    Loop,
    Finally { call: CallId, stack: Vec<EntryId> },
}

#[derive(Debug, Default)]
pub(crate) struct Phase {
    pub(crate) when: Option<Template>,
    pub(crate) with: Option<Template>,
    /// `output` of onEntry, `value` of onSuccess.
    pub(crate) shape: Option<Template>,
    pub(crate) assign: Assign,
}
