//! `redrive flow show`: a run, with the attempts of its retries on a line of time.

use super::{path_of, result};
use crate::client::{Client, CommonArgs, Send};
use crate::output::word;
use crate::{exit::Failed, output, when};
use redrive_ojs::time::parse_rfc3339;
use redrive_policy::Span;
use redrive_policy::lab::picture::attempts::{Attempt, Attempts, End, Retry, attempts_svg, attempts_text};
use serde_json::Value;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The id of the run
    id: String,
    /// Write the attempts as a picture; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

const EXAMPLES: &str = "\
Examples:
  redrive flow show 019c5654-1111-7111-8111-111111111111
  redrive flow show 019c5654-1111-7111-8111-111111111111 --svg attempts.svg";

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let run = run_of(&args.common.client()?, &args.id)?;
    if args.common.json {
        return output::json(&run);
    }
    let chart = chart(&run, when::now_ms());
    if let Some(svg) = &args.svg {
        return output::file(svg, &attempts_svg(&chart));
    }
    output::text(&shown(&run, &chart, output::terminal_width().unwrap_or(100)))
}

/// A run as the server tells it.
pub(super) fn run_of(client: &Client, id: &str) -> Result<Value, Failed> {
    client.ask(Send::Get, &path_of("runs", id))
}

fn shown(run: &Value, chart: &Attempts, width: usize) -> String {
    let now = when::now_ms();
    let mut out = attempts_text(chart, width);
    let positions = output::entries(run, "positions");
    if !positions.is_empty() {
        out.push('\n');
    }
    for position in positions {
        out.push_str(&format!("at {}\n", position_line(position, now)));
    }
    if run["result"].is_object() {
        out.push_str(&format!("\n{}", result::shown(&run["result"])));
    }
    out
}

/// Where a run is, and what it waits for.
fn position_line(position: &Value, now: i64) -> String {
    let step = match position["step"].as_str() {
        Some(step) => format!("step {}", output::plain(step)),
        None => "no step".to_owned(),
    };
    let flow = position["flow"].as_str().filter(|flow| !flow.is_empty());
    let flow = flow.map_or_else(String::new, |flow| format!(" of {}", output::plain(flow)));
    let waits = match position["waits"].as_str() {
        None | Some("nothing") => String::new(),
        Some(waits) => format!(", waits for {}", if waits == "retry" { "the next attempt" } else { waits }),
    };
    let until = when::relative(position["until"].as_str(), now);
    let until = if until.is_empty() { until } else { format!(", goes on {until}") };
    let job = position["job_id"].as_str().map_or_else(String::new, |job| format!(": job {}", output::plain(job)));
    format!("{step}{flow}{waits}{job}{until}")
}

/// What the picture shows of a run.
fn chart(run: &Value, now_ms: i64) -> Attempts {
    let start = run["started_at"].as_str().and_then(parse_rfc3339).map_or(0, |at| at.micros());
    let since = |time: &Value| {
        let at = time.as_str().and_then(parse_rfc3339)?;
        Some((at.micros() - start).max(0) as f64 / 1e3)
    };
    let ended = since(&run["ended_at"]);
    let now = ended.unwrap_or((now_ms as f64 - start as f64 / 1e3).max(0.0));
    let took = match (ended, run["wakes_at"].as_str()) {
        (Some(ended), _) => format!(", took {}", Span::saturating_ms(ended)),
        (None, Some(wakes)) => format!(", goes on {}", when::relative(Some(wakes), now_ms)),
        (None, None) => String::new(),
    };
    let started = when::relative(run["started_at"].as_str(), now_ms);
    let name = format!("{}, version {}", word(&run["definition"]), word(&run["version"]));
    Attempts {
        title: format!("{name}: {}", word(&run["state"])),
        subtitle: format!("run {}, started {started}{took}", word(&run["id"])),
        now_ms: now,
        retries: output::entries(run, "retries").iter().map(|one| retry(one, &since, now_ms)).collect(),
        omitted: run["retries_omitted"].as_u64().unwrap_or(0),
    }
}

fn retry(retry: &Value, since: &impl Fn(&Value) -> Option<f64>, now_ms: i64) -> Retry {
    let of = match (retry["step"].as_str(), retry["flow"].as_str()) {
        (Some(step), _) => format!("step {}", output::plain(step)),
        (None, Some("") | None) => "the flow".to_owned(),
        (None, Some(flow)) => format!("flow {}", output::plain(flow)),
    };
    let state = match retry["state"].as_str().unwrap_or_default() {
        "running" => "an attempt runs".to_owned(),
        "waiting" => "waits for the next attempt".to_owned(),
        "succeeded" => "has succeeded".to_owned(),
        "exhausted" => "has given up".to_owned(),
        "passed" => "let the failure pass".to_owned(),
        "interrupted" => "was interrupted".to_owned(),
        "failed" => "has failed itself".to_owned(),
        other => output::plain(other).into_owned(),
    };
    let next = &retry["next"];
    let next = since(&next["at"]).map(|at| {
        let due = when::relative(next["at"].as_str(), now_ms);
        (at, format!("attempt {} {due}, at {}", next["attempt"], word(&next["at"])))
    });
    Retry {
        name: format!("Retry {} of {of} ({})", retry["number"], word(&retry["path"])),
        state,
        attempts: output::entries(retry, "attempts").iter().filter_map(|one| attempt(one, since)).collect(),
        omitted: retry["attempts_omitted"].as_u64().unwrap_or(0),
        next,
    }
}

fn attempt(attempt: &Value, since: &impl Fn(&Value) -> Option<f64>) -> Option<Attempt> {
    let (from_ms, to_ms) = (since(&attempt["started_at"])?, since(&attempt["ended_at"]));
    let took = match to_ms {
        Some(to) if to > from_ms => format!(" after {}", Span::saturating_ms(to - from_ms)),
        Some(_) => " at once".to_owned(),
        None => String::new(),
    };
    let begun = format!("started at {}", Span::saturating_ms(from_ms));
    let (end, how) = match attempt["outcome"].as_str() {
        Some("success") => (End::Success, format!("{begun}, succeeded{took}")),
        Some("failure") => (End::Failure, format!("{begun}, failed{took}: {}", result::failure(&attempt["failure"]))),
        Some("interrupted") => (End::Interrupted, format!("{begun}, interrupted{took}")),
        _ => (End::Runs, begun),
    };
    let mut says = vec![how];
    let policy = attempt["policy"].as_u64().map_or_else(String::new, |policy| format!(" by policy {policy}"));
    match attempt["decision"].as_str() {
        Some("retry") => {
            let delay = Span::saturating_ms(attempt["delay_ms"].as_f64().unwrap_or(0.0));
            let from = match attempt["delay_from"].as_str() {
                Some("override") => ", as the failure asked",
                _ => "",
            };
            says.push(format!("retry in {delay}{policy}{from}, at {}", word(&attempt["next_at"])));
        }
        Some("exhausted") => says.push(format!("no more attempts{policy}")),
        Some("passed") => says.push("no policy handles it".to_owned()),
        _ => {}
    }
    says.extend(attempt["explanation"].as_str().map(|text| output::plain(text).into_owned()));
    Some(Attempt { number: attempt["attempt"].as_u64().unwrap_or(0), from_ms, to_ms, end, says })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_that_waits_is_told_with_what_is_next() {
        let run = json!({
            "id": "0192", "definition": "order", "version": 2, "state": "running", "result": null, "ended_at": null,
            "started_at": "2026-01-01T00:00:00Z", "wakes_at": "2026-01-01T00:00:04Z", "retries_omitted": 0,
            "positions": [{
                "flow": "/flows/Ask", "step": "charge", "action": "Call", "waits": "retry",
                "until": "2026-01-01T00:00:04Z", "job_id": null,
            }],
            "retries": [{
                "number": 1, "path": "/steps/charge/middleware/0", "flow": "", "step": "charge", "state": "waiting",
                "attempts_omitted": 0, "next": { "attempt": 2, "at": "2026-01-01T00:00:04Z" },
                "attempts": [{
                    "attempt": 1, "started_at": "2026-01-01T00:00:01Z", "ended_at": "2026-01-01T00:00:02Z",
                    "outcome": "failure", "failure": { "type": "error", "code": "A.B", "message": "down" },
                    "policy": 0, "decision": "retry", "delay_ms": 2000.0, "delay_from": "backoff",
                    "next_at": "2026-01-01T00:00:04Z", "explanation": "Retry 1 waits 2 s.",
                }],
            }],
        });
        let now = when::parse("2026-01-01T00:00:03Z").expect("valid");
        let chart = chart(&run, now);
        let expected = "\
order, version 2: running
run 0192, started 3 s ago, goes on in 1 s

Retry 1 of step charge (/steps/charge/middleware/0): waits for the next attempt
          ██████████✗───────────────────▶
0                                     4 s
  attempt 1   started at 1 s, failed after 1 s: error A.B: down
              retry in 2 s by policy 0, at 2026-01-01T00:00:04Z
              Retry 1 waits 2 s.
  next        attempt 2 in 1 s, at 2026-01-01T00:00:04Z
";
        assert_eq!(attempts_text(&chart, 41), expected);
        let position = position_line(&run["positions"][0], now);
        assert_eq!(position, "step charge of /flows/Ask, waits for the next attempt, goes on in 1 s");
    }
}
