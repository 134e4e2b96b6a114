//! The Retry middleware. Which policy handles a failure, whether its budget lasts and how long the gap is, is decided
//! by `redrive-policy`, as for jobs.

use super::Machine;
use super::arguments;
use super::notes::Decision as Noted;
use super::scope::Site;
use super::state::{Control, Own, Task};
use crate::model::{Entry, Middleware};
use crate::result::{Failure, Outcome};
use redrive_policy::{Outcome as Decided, Span, Verdict, decide};
use serde_json::json;

/// A failure as policies and matchers see it.
pub(super) fn facts(failure: &Failure) -> redrive_policy::Failure<'_> {
    redrive_policy::Failure {
        type_name: &failure.kind,
        code: &failure.code,
        retryable: failure.retryable,
        ..redrive_policy::Failure::default()
    }
}

/// What becomes of a failure.
pub(super) enum Decision {
    /// The inner scope runs again.
    Consumed(Control),
    /// It passes through.
    Passes,
    /// This one is emitted in its place.
    Exhausted(Failure),
}

/// A fault of the phase, and the failure that it supersedes.
type Fault = Box<(Failure, Failure)>;

impl Machine<'_> {
    /// The action of onFailure.
    pub(super) fn decide_on(&mut self, task: &mut Task, spec: &Entry, failure: &Failure) -> Result<Decision, Fault> {
        let rising = Outcome::Failure(failure.clone());
        let site = Site::Phase { entered_at: self.now, result: Some(&rising) };
        let fault = |fault: Failure| Box::new((fault, failure.clone()));
        if !self.gate(task, site, &spec.on_failure).map_err(fault)? {
            self.note_gated(task, failure);
            return Ok(Decision::Passes);
        }
        let with = self.with(task, site, &spec.on_failure).map_err(fault)?;
        if spec.kind != Middleware::Retry {
            arguments::nothing(&with).map_err(fault)?;
            return Ok(Decision::Passes);
        }
        let delay = arguments::delay(&with).map_err(fault)?;
        let Some(verdict) = self.verdict(task, failure, delay).map_err(fault)? else { return Ok(Decision::Passes) };
        match (verdict.outcome, verdict.rule) {
            (Decided::Retry { delay, origin }, _) => {
                // The carry is evaluated before the variables are restored, and applied after it.
                let carry = self.values(task, site, &spec.on_failure.assign).map_err(fault)?;
                let next_at = self.now.after(delay);
                self.note_verdict(task, failure, &verdict, Noted::Retry { delay, origin, next_at });
                Ok(Decision::Consumed(self.reenter(task, &verdict, carry, delay)))
            }
            (Decided::Stop { .. }, Some(rule)) => {
                self.note_verdict(task, failure, &verdict, Noted::Exhausted);
                Ok(Decision::Exhausted(exhausted(task, rule, failure)))
            }
            (Decided::Stop { .. }, None) => {
                self.note_verdict(task, failure, &verdict, Noted::Passed);
                Ok(Decision::Passes)
            }
        }
    }

    /// What the policies say; `None` where none was captured.
    fn verdict(&mut self, task: &Task, failure: &Failure, delay: Option<Span>) -> Result<Option<Verdict>, Failure> {
        let Some(Own::Retry(retry)) = task.entry().map(|entry| &entry.own) else { return Ok(None) };
        let Some(captured) = &retry.policies else { return Ok(None) };
        let policy = arguments::policies(captured)?;
        let facts = redrive_policy::Failure { delay, ..facts(failure) };
        let draw = self.next_draw(retry.number, retry.attempt);
        Ok(Some(decide(&policy, &retry.history, &facts, self.now, draw)))
    }

    fn reenter(
        &self,
        task: &mut Task,
        verdict: &Verdict,
        carry: Vec<(String, serde_json::Value)>,
        delay: Span,
    ) -> Control {
        if let Some(Own::Retry(retry)) = task.entry_mut().map(|entry| &mut entry.own) {
            retry.history.record(verdict);
            retry.attempt = retry.attempt.saturating_add(1);
            let mut vars = retry.snapshot.clone();
            vars.extend(carry);
            if let Some(frame) = task.frame_mut() {
                frame.vars = vars;
            }
        }
        if delay.is_zero() { Control::Start } else { Control::Until(self.now.after(delay)) }
    }
}

fn exhausted(task: &Task, rule: usize, last: &Failure) -> Failure {
    let attempts = match task.entry().map(|entry| &entry.own) {
        Some(Own::Retry(retry)) => retry.attempt,
        _ => 0,
    };
    Failure::new("error", "Provider.Middleware.Retry.Exhausted")
        .with_details(json!({ "attempts": attempts, "policy": rule }))
        .superseding(last.clone())
}
