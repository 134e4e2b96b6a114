//! The retry policy of a task: as it comes over the wire, as the document writes it, and what applies.

use crate::common::retry_policy_wait::Kind;
use crate::common::{RetryPolicy, RetryPolicyRetry, RetryPolicyStop, RetryPolicyWait};
use redrive_engine::{Effective, Engine};
use redrive_ojs::policy_text;
use redrive_policy::dialect::Dialect;
use redrive_policy::{Disposition, Matcher, Pattern, Policy, Problem, Problems};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// In the list of errors to retry, it stands for every type: Azolla's own suite relies on that.
pub const ANY_ERROR: &str = "TaskError";

/// The policy that applies to a task. One that brings none has what an operator has set for its type or its queue, or
/// else the defaults of the document.
///
/// # Errors
/// Every problem of the policy.
pub fn effective(
    engine: &Engine,
    policies: &Policies,
    policy: Option<&RetryPolicy>,
    kind: &str,
    queue: &str,
) -> Result<Arc<Effective>, Problems> {
    if policy.is_none() {
        let configured = engine.effective(None, kind, queue)?;
        if configured.layer != "server" {
            return Ok(configured);
        }
    }
    let document = document(policy)?;
    let text = json!({ "dialect": Dialect::Azolla.name(), "policy": document }).to_string();
    policies.adapted(engine.effective(Some(policy_text(&text)), kind, queue)?)
}

/// A policy as the document writes it: what is present on the wire is what the sender said. JSON has no word for a
/// number that is not finite.
fn document(policy: Option<&RetryPolicy>) -> Result<Value, Problems> {
    let Some(policy) = policy else { return Ok(json!({})) };
    let mut members = Members::default();
    // Zero is the absence of a number that has no presence of its own.
    if policy.version != 0 {
        members.top.insert("version".to_owned(), policy.version.into());
    }
    if let Some(stop) = &policy.stop {
        members.stop(stop);
    }
    if let Some(wait) = &policy.wait {
        members.wait(wait);
    }
    if let Some(retry) = &policy.retry {
        let RetryPolicyRetry { include_errors, exclude_errors } = retry;
        let retry = json!({ "include_errors": include_errors, "exclude_errors": exclude_errors });
        members.top.insert("retry".to_owned(), retry);
    }
    let document = Value::Object(members.top);
    let mut problems = members.problems;
    if problems.is_empty() {
        return Ok(document);
    }
    problems.extend(Dialect::Azolla.read(&document).err().into_iter().flat_map(|problems| problems.0));
    Err(Problems(problems))
}

/// The members of a document, and which of its numbers are not finite.
#[derive(Default)]
struct Members {
    top: Map<String, Value>,
    problems: Vec<Problem>,
}

impl Members {
    fn stop(&mut self, stop: &RetryPolicyStop) {
        let mut members = Map::new();
        members.insert("max_attempts".to_owned(), stop.max_attempts.map_or(Value::Null, Value::from));
        if let Some(max_delay) = stop.max_delay {
            self.number(&mut members, "/stop/max_delay", max_delay);
        }
        self.top.insert("stop".to_owned(), members.into());
    }

    fn wait(&mut self, wait: &RetryPolicyWait) {
        let (strategy, numbers) = match &wait.kind {
            None => return,
            Some(Kind::Fixed(fixed)) => ("fixed", vec![("/wait/delay", fixed.delay)]),
            Some(Kind::Exponential(wait)) => {
                ("exponential", growing(wait.initial_delay, wait.multiplier, wait.max_delay))
            }
            Some(Kind::ExponentialJitter(wait)) => {
                ("exponential_jitter", growing(wait.initial_delay, wait.multiplier, wait.max_delay))
            }
        };
        let mut members = Map::new();
        members.insert("strategy".to_owned(), strategy.into());
        for (path, number) in numbers {
            self.number(&mut members, path, number);
        }
        self.top.insert("wait".to_owned(), members.into());
    }

    fn number(&mut self, members: &mut Map<String, Value>, path: &'static str, number: f64) {
        match serde_json::Number::from_f64(number) {
            Some(finite) => {
                let key = path.rsplit('/').next().unwrap_or(path);
                members.insert(key.to_owned(), finite.into());
            }
            None => self.problems.push(Problem::new(path, number, "a finite number of seconds, or a finite factor")),
        }
    }
}

fn growing(initial_delay: f64, multiplier: f64, max_delay: f64) -> Vec<(&'static str, f64)> {
    vec![("/wait/initial_delay", initial_delay), ("/wait/multiplier", multiplier), ("/wait/max_delay", max_delay)]
}

/// How many policies are cached; when there are more, all are dropped.
const MOST_CACHED: usize = 1_000;

/// Policies of tasks as they apply in this protocol, cached by where the engine has the policy that they come from.
#[derive(Debug)]
pub struct Policies {
    on_stop: Disposition,
    adapted: Mutex<HashMap<usize, [Arc<Effective>; 2]>>,
}

impl Policies {
    /// Tasks that fail for good are kept as dead letters, or not.
    #[must_use]
    pub fn new(dead_letters: bool) -> Self {
        let on_stop = if dead_letters { Disposition::DeadLetter } else { Disposition::Fail };
        Self { on_stop, adapted: Mutex::default() }
    }

    /// A policy with what holds in this protocol alone.
    fn adapted(&self, read: Arc<Effective>) -> Result<Arc<Effective>, Problems> {
        let any_error = Pattern::exact(ANY_ERROR);
        if read.policy.on_stop == self.on_stop
            && !read.policy.rules.iter().any(|rule| includes(&rule.matcher, &any_error))
        {
            return Ok(read);
        }
        let address = Arc::as_ptr(&read).addr();
        if let Some([_, adapted]) = self.cached().get(&address) {
            return Ok(Arc::clone(adapted));
        }
        let mut parts = Policy::clone(&read.policy).into_parts();
        parts.on_stop = self.on_stop;
        for types in parts.rules.iter_mut().filter_map(|rule| rule.matcher.include_types.as_mut()) {
            if types.contains(&any_error) {
                types.push(Pattern::Any);
            }
        }
        let mut adapted = Effective::clone(&read);
        adapted.policy = Arc::new(Policy::new(parts)?);
        let adapted = Arc::new(adapted);
        let mut cached = self.cached();
        if cached.len() >= MOST_CACHED {
            cached.clear();
        }
        cached.insert(address, [read, Arc::clone(&adapted)]);
        Ok(adapted)
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, HashMap<usize, [Arc<Effective>; 2]>> {
        self.adapted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn includes(matcher: &Matcher, wanted: &Pattern) -> bool {
    matcher.include_types.as_ref().is_some_and(|types| types.contains(wanted))
}

/// Whether a failure of this type fits a rule of a task only because [`ANY_ERROR`] stands for every type here.
#[must_use]
pub fn fits_as_any_error(matcher: &Matcher, type_name: &str) -> bool {
    let named = Pattern::exact(type_name);
    includes(matcher, &Pattern::exact(ANY_ERROR)) && includes(matcher, &Pattern::Any) && !includes(matcher, &named)
}
