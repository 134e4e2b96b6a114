//! Why each attempt was retried or stopped: the verdicts that were stored when it failed.

use super::show::{error_line, policy_origin};
use crate::{exit::Failed, output, when};
use redrive_policy::dialect::Dialect;
use redrive_policy::lab::explain::{because, headline, summary, time_line};
use redrive_policy::lab::replay::Step;
use redrive_policy::{Bounds, Failure, Mismatch, Moment, Outcome, Policy, Reason, Span, Verdict};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// How many characters a time line takes at least.
const WIDTH: usize = 60;

const TAKEN_BACK: &str = "It was taken back, to run again as if it were new.\n";

/// What the server tells about the decisions on a job.
#[derive(Deserialize)]
struct Told {
    policy: Policy,
    /// Which life the job is in, from 0; being taken back begins the next.
    life: u32,
    failures: Vec<ToldFailure>,
}

#[derive(Deserialize)]
struct ToldFailure {
    life: u32,
    at: String,
    verdict: Verdict,
}

pub(super) fn run(job: &Value, json: bool) -> Result<(), Failed> {
    if json {
        return output::json(&job["redrive"]);
    }
    let told = Told::deserialize(&job["redrive"]).map_err(|error| Failed {
        code: 3,
        message: format!("the server does not tell why ({error}); is it older than this command?"),
    })?;
    output::text(&explained(job, &told))
}

fn explained(job: &Value, told: &Told) -> String {
    let text = |key: &str| job[key].as_str().unwrap_or("?");
    let mut out = format!("Job {} ({}) in queue {} is {}.\n", text("id"), text("type"), text("queue"), text("state"));
    out.push_str(&format!("Its retry policy is {}: {}.\n\n", policy_origin(job), in_short(&told.policy)));
    let nothing = Value::Null;
    let mut lines = Vec::new();
    let lives: Vec<&[ToldFailure]> = told.failures.chunk_by(|one, other| one.life == other.life).collect();
    let mut position = 0;
    for (index, life) in lives.iter().enumerate() {
        if index > 0 {
            out.push_str(TAKEN_BACK);
        }
        let errors: Vec<&Value> =
            (position..).take(life.len()).map(|index| job["errors"].get(index).unwrap_or(&nothing)).collect();
        position += life.len();
        let policies: Vec<Cow<'_, Policy>> = errors.iter().map(|error| applied(&told.policy, error)).collect();
        let steps = steps(&policies, life, job);
        for (((failure, step), error), policy) in life.iter().zip(&steps).zip(errors).zip(&policies) {
            push_failure(&mut out, policy, failure, step, error);
        }
        lines.push(time_line(&steps, WIDTH));
    }
    if told.failures.last().is_some_and(|last| last.life < told.life) {
        out.push_str(TAKEN_BACK);
    }
    out.push_str(&ending(job, told));
    if let (Some(last), Some("completed")) = (lines.last_mut(), job["state"].as_str()) {
        // The run that the line leads to has succeeded.
        *last = last.replace('▶', "✓");
    }
    lines.iter().for_each(|line| out.push_str(&format!("\n{line}\n")));
    out
}

/// The policy that decided about a failure: the job's, as it meets the one that the worker brought.
fn applied<'a>(policy: &'a Policy, error: &Value) -> Cow<'a, Policy> {
    brought(error).map_or(Cow::Borrowed(policy), |worker| Cow::Owned(policy.on_worker(&worker)))
}

/// The policy that the worker brought, if it brought one.
fn brought(error: &Value) -> Option<Policy> {
    let retry = error.get("retry")?;
    let reading = match retry.get("dialect") {
        Some(dialect) => dialect.as_str()?.parse::<Dialect>().ok()?.read(&retry["policy"]),
        None => Dialect::Ojs.read(retry),
    };
    reading.ok().map(|reading| reading.policy)
}

fn push_failure(out: &mut String, policy: &Policy, failure: &ToldFailure, step: &Step, error: &Value) {
    let verdict = &failure.verdict;
    let after = if step.elapsed.is_zero() { String::new() } else { format!(" after {}", step.elapsed) };
    let (attempt, error_line) = (verdict.attempt, error_line(error));
    out.push_str(&format!("Attempt {attempt} failed{after} ({error_line}): {}\n", headline(verdict)));
    if brought(error).is_some() {
        out.push_str(&format!("    With the worker's own policy: {}.\n", in_short(policy)));
    }
    for sentence in because(policy, &failure_of(policy, verdict, error), step) {
        out.push_str(&format!("    {sentence}\n"));
    }
}

/// The policy in a line: how often, and how long it waits.
fn in_short(policy: &Policy) -> String {
    let runs = match policy.attempts.max_runs() {
        Some(0 | 1) => "one run and no retry".to_owned(),
        Some(most) => format!("at most {most} runs"),
        None => "runs without a limit on their number".to_owned(),
    };
    let timing = match policy.rules.len() {
        1 => summary(policy, 0),
        many => format!("{many} rules"),
    };
    match policy.delegated {
        Some(_) => format!("{runs}, {timing}; unless its worker brings a policy of its own"),
        None => format!("{runs}, {timing}"),
    }
}

/// The verdicts of one life with the bounds that their delays had.
fn steps(policies: &[Cow<'_, Policy>], life: &[ToldFailure], job: &Value) -> Vec<Step> {
    // The bounds of a delay may depend on all delays before it.
    let whole = life.first().is_some_and(|failure| failure.verdict.attempt == 1);
    let has_rule = |(failure, policy): (&ToldFailure, &Cow<'_, Policy>)| {
        failure.verdict.rule.is_none_or(|rule| rule < policy.rules.len())
    };
    let known = life.iter().zip(policies).all(has_rule);
    let mut bounds = (whole && known).then(|| Bounds::new(Moment::ORIGIN));
    let created = job["created_at"].as_str().and_then(when::parse);
    let step = |(failure, policy): (&ToldFailure, &Cow<'_, Policy>)| Step {
        verdict: failure.verdict,
        bounds: bounds.as_mut().and_then(|bounds| bounds.record(policy, &failure.verdict)),
        elapsed: match (created, when::parse(&failure.at)) {
            (Some(created), Some(at)) => Span::saturating_ms((at - created) as f64),
            _ => Span::ZERO,
        },
    };
    life.iter().zip(policies).map(step).collect()
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

/// What became of the job after its last failure, or without any.
fn ending(job: &Value, told: &Told) -> String {
    let now = when::now_ms();
    let ago = |key: &str| when::relative(job[key].as_str(), now);
    let attempt = job["attempt"].as_u64().unwrap_or(0);
    let this_life = told.failures.last().filter(|last| last.life == told.life);
    let stopped = this_life.is_some_and(|last| last.verdict.delay().is_none());
    let mut said = match job["state"].as_str().unwrap_or_default() {
        "completed" => format!("Attempt {attempt} succeeded {}.", ago("completed_at")),
        "retryable" => format!("Attempt {} is due {}.", attempt + 1, ago("next_attempt_at")),
        "scheduled" => format!("It may run from {} on, {}.", job["scheduled_at"], ago("scheduled_at")),
        "pending" => "It waits for somebody to activate it.".to_owned(),
        "available" => {
            format!("Attempt {} waits for a worker; the job became available {}.", attempt + 1, ago("enqueued_at"))
        }
        "active" => {
            let worker = job["worker_id"].as_str().map_or_else(String::new, |worker| format!(" on worker {worker}"));
            format!("Attempt {attempt} runs{worker}; it started {}.", ago("started_at"))
        }
        "cancelled" => format!("It was called off {}.", ago("cancelled_at")),
        "discarded" if !stopped => format!("Its time to live was over {}, before it ran again.", ago("discarded_at")),
        "discarded" if job["redrive"]["dead_letter"] == true => {
            "It is kept among the dead letters; `redrive dead retry` takes it back.".to_owned()
        }
        "discarded" => "It is not kept among the dead letters.".to_owned(),
        other => format!("Its state, {other}, is not known to this command."),
    };
    let releases = job["redrive"]["releases"].as_u64().unwrap_or(0);
    if releases > 0 {
        said.push_str(&format!(" Since its last failure it was given back unfinished {releases} times, at no cost."));
    }
    format!("{said}\n")
}
