//! Why each attempt was retried or stopped: the verdicts that were stored when it failed.

mod ending;
mod redriven;
mod run;

use super::show::{error_line, policy_origin};
use crate::client::{Client, Send, escaped};
use crate::{exit::Failed, output, when};
use ending::ending;
use redrive_azolla::{ANY_ERROR, fits_as_any_error};
use redrive_policy::dialect::Dialect;
use redrive_policy::lab::explain::{because, headline, summary, time_line};
use redrive_policy::lab::replay::Step;
use redrive_policy::{Bounds, Failure, Mismatch, Moment, Outcome, Policy, Reason, Span, Verdict};
use redriven::Revision;
use run::Run;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many characters a time line takes at least.
const WIDTH: usize = 60;

/// The decisions on a job, as the server reports them.
#[derive(Deserialize)]
struct Decisions {
    policy: Policy,
    /// The generation of the job, from 0; a redrive begins the next.
    generation: u32,
    completed_by: Option<String>,
    cleared_expiry: Option<String>,
    failures: Vec<FailureRecord>,
    #[serde(default)]
    revisions: Vec<Revision>,
}

#[derive(Deserialize)]
struct FailureRecord {
    generation: u32,
    available_at: String,
    started_at: String,
    at: String,
    worker_id: Option<String>,
    verdict: Verdict,
    /// The policy that decided, where that is not the job's own, because the worker brought one.
    policy: Option<Policy>,
}

impl FailureRecord {
    fn decided_by<'a>(&'a self, own: &'a Policy) -> &'a Policy {
        self.policy.as_ref().unwrap_or(own)
    }
}

pub(super) fn run(client: &Client, job: &Value, json: bool) -> Result<(), Failed> {
    if json {
        return output::json(&job["redrive"]);
    }
    output::text(&explained(job, &Decisions::of(job)?, is_held_back(client, job)?))
}

impl Decisions {
    fn of(job: &Value) -> Result<Self, Failed> {
        Self::deserialize(&job["redrive"]).map_err(|error| Failed {
            code: 3,
            message: format!("the server does not explain it ({error}); is it older than this command?"),
        })
    }
}

/// Says of each failed attempt of a job what came next, and why.
pub(crate) fn failures_explained(job: &Value) -> Result<String, Failed> {
    let (decisions, mut out) = (Decisions::of(job)?, String::new());
    let mut position = 0;
    for generation in generations(&decisions) {
        let failures: Vec<&FailureRecord> =
            decisions.failures.iter().filter(|failure| failure.generation == generation).collect();
        push_generation(&mut out, job, &decisions, &failures, position);
        position += failures.len();
    }
    Ok(out)
}

/// Whether the job waits in a queue that is paused.
fn is_held_back(client: &Client, job: &Value) -> Result<bool, Failed> {
    let waits = matches!(job["state"].as_str(), Some("available" | "scheduled" | "retryable" | "pending"));
    let Some(queue) = job["queue"].as_str().filter(|_| waits) else { return Ok(false) };
    let stats = client.try_ask(Send::Get, &format!("/ojs/v1/queues/{}/stats", escaped(queue)))?;
    Ok(stats.is_ok_and(|stats| stats["status"] == "paused"))
}

fn explained(job: &Value, decisions: &Decisions, held_back: bool) -> String {
    let text = |key: &str| job[key].as_str().unwrap_or("?");
    let mut out = format!("Job {} ({}) in queue {} is {}.\n", text("id"), text("type"), text("queue"), text("state"));
    out.push_str(&format!("Its retry policy is {}: {}.\n\n", policy_origin(job), in_short(&decisions.policy)));
    let mut lines = Vec::new();
    let mut position = 0;
    for generation in generations(decisions) {
        let failures: Vec<&FailureRecord> =
            decisions.failures.iter().filter(|failure| failure.generation == generation).collect();
        let steps = push_generation(&mut out, job, decisions, &failures, position);
        position += failures.len();
        if !steps.is_empty() {
            lines.push(time_line(&steps, WIDTH));
        }
        if generation < decisions.generation {
            out.push_str(&redriven::explained(job, &decisions.revisions, generation));
        }
    }
    out.push_str(&ending(job, decisions));
    if held_back {
        let queue = text("queue");
        out.push_str(&format!(
            "Queue {queue} is paused: no worker gets the job until `redrive queues resume {queue}`.\n"
        ));
    }
    if let (Some(last), Some("completed")) = (lines.last_mut(), job["state"].as_str()) {
        // The run that the line leads to has succeeded.
        *last = last.replace('▶', "✓");
    }
    lines.iter().for_each(|line| out.push_str(&format!("\n{line}\n")));
    out
}

/// The generations of which something is stored, and the one before the present: it has ended too.
fn generations(decisions: &Decisions) -> BTreeSet<u32> {
    let failed = decisions.failures.iter().map(|failure| failure.generation);
    let revised = decisions.revisions.iter().map(|revision| revision.generation);
    failed.chain(revised).chain(decisions.generation.checked_sub(1)).collect()
}

/// Says how the runs of one generation failed. `position` is the index of their first error in the job's list.
fn push_generation(
    out: &mut String,
    job: &Value,
    decisions: &Decisions,
    failures: &[&FailureRecord],
    position: usize,
) -> Vec<Step> {
    let nothing = Value::Null;
    let errors: Vec<&Value> =
        (position..).take(failures.len()).map(|index| job["errors"].get(index).unwrap_or(&nothing)).collect();
    let steps = steps(&decisions.policy, failures, job);
    for ((failure, step), error) in failures.iter().zip(&steps).zip(errors) {
        push_failure(out, job, failure.decided_by(&decisions.policy), failure, step, error);
    }
    steps
}

fn push_failure(out: &mut String, job: &Value, policy: &Policy, failure: &FailureRecord, step: &Step, error: &Value) {
    let verdict = &failure.verdict;
    let (attempt, error_line) = (verdict.attempt, error_line(error));
    out.push_str(&format!("Attempt {attempt} failed ({error_line}): {}\n", headline(verdict)));
    out.push_str(&Run::failed(job, failure).line());
    if failure.policy.is_some() {
        out.push_str(&format!("    With the worker's own policy: {}.\n", in_short(policy)));
    }
    let met = failure_of(policy, verdict, error);
    for sentence in because(policy, &met, step).into_iter().chain(any_error(job, policy, verdict, met.type_name)) {
        out.push_str(&format!("    {sentence}\n"));
    }
}

/// Why the rule of a task fits an error that it does not name, where Azolla's clients have created the task.
fn any_error(job: &Value, policy: &Policy, verdict: &Verdict, type_name: &str) -> Option<String> {
    let rule = policy.rules.get(verdict.rule?)?;
    let is_azolla = job["redrive"]["policy_from"]["dialect"] == Dialect::Azolla.name();
    (is_azolla && fits_as_any_error(&rule.matcher, type_name)).then(|| {
        format!("{ANY_ERROR} in its list of errors to retry stands for every type in tasks of Azolla's clients.")
    })
}

/// The policy in a line: how often, and how long it waits.
fn in_short(policy: &Policy) -> String {
    let budget = match &policy.rules[..] {
        [only] => only.budget,
        _ => None,
    };
    let runs = match policy.attempts.max_runs().into_iter().chain(budget).min() {
        Some(0 | 1) => "one run and no retry".to_owned(),
        Some(most) => format!("at most {most} runs"),
        None => "runs without a limit on their number".to_owned(),
    };
    let timing = match policy.rules.len() {
        1 => summary(policy, 0),
        many => {
            let budget = |budget: Option<u32>| budget.map_or_else(|| "no limit".to_owned(), |most| most.to_string());
            let budgets: Vec<String> = policy.rules.iter().map(|rule| budget(rule.budget)).collect();
            format!("{many} rules with budgets of {} failures each of its own", budgets.join(", "))
        }
    };
    match policy.delegated {
        Some(_) => format!("{runs}, {timing}; unless its worker brings a policy of its own"),
        None => format!("{runs}, {timing}"),
    }
}

/// The verdicts of one generation, with the bounds that their delays had.
fn steps(own: &Policy, generation: &[&FailureRecord], job: &Value) -> Vec<Step> {
    // The bounds of a delay may depend on all delays before it.
    let whole = generation.first().is_some_and(|failure| failure.verdict.attempt == 1);
    let has_rule =
        |failure: &&FailureRecord| failure.verdict.rule.is_none_or(|rule| rule < failure.decided_by(own).rules.len());
    let known = generation.iter().all(has_rule);
    let mut bounds = (whole && known).then(|| Bounds::new(Moment::ORIGIN));
    let step = |failure: &&FailureRecord| Step {
        verdict: failure.verdict,
        bounds: bounds.as_mut().and_then(|bounds| bounds.record(failure.decided_by(own), &failure.verdict)),
        elapsed: when::between(job["created_at"].as_str(), Some(&failure.at)).unwrap_or(Span::ZERO),
    };
    generation.iter().map(step).collect()
}

/// The failure in the words that the decision saw.
fn failure_of<'a>(policy: &Policy, verdict: &Verdict, error: &'a Value) -> Failure<'a> {
    let details = &error["details"];
    let names = [&error["type"], &details["error_class"], &details["error_type"], &error["code"]];
    let names: Vec<&str> = names.into_iter().filter_map(Value::as_str).collect();
    // An error may go by several names; the one that was decisive is the one to show.
    let decisive = |name: &&&str| match verdict.outcome {
        Outcome::Stop { reason: Reason::NonRetryable(why @ Mismatch::Excluded { .. }), .. } => {
            policy.rule_for(&Failure::of_type(name)) == Err(why)
        }
        _ => true,
    };
    let name = names.iter().find(decisive).or(names.first()).copied();
    Failure { code: error["code"].as_str().unwrap_or(""), ..Failure::of_type(name.unwrap_or("error")) }
}
