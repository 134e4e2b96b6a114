//! Numbers over time, from the memory of this process.

use crate::api_error::ApiError;
use crate::app::App;
use crate::ojs::names::queue_in_path;
use crate::request::Query;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::{Counted, Period};
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Problem, Span};
use serde_json::{Value, json};
use std::sync::Arc;

/// Which time, in which parts, and of which queue.
pub(crate) const HISTORY_PARAMETERS: &[&str] = &["period", "since", "until", "queue"];
/// The periods by their names, and how long each is.
const PERIODS: [(&str, Period, Span); 4] = [
    ("1m", Period::Minutes(1), Span::from_secs(60)),
    ("5m", Period::Minutes(5), Span::from_secs(300)),
    ("1h", Period::Hours(1), Span::from_secs(3_600)),
    ("1d", Period::Hours(24), Span::from_secs(86_400)),
];
/// How many parts an answer has at most: the minutes of a day.
const MOST_PARTS: usize = 1_440;

/// `GET /admin/stats/history`.
pub(crate) async fn history(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let said = query.get("period").unwrap_or("5m");
    let known = PERIODS.iter().find(|(name, ..)| *name == said);
    if known.is_none() {
        problems.push(Problem::new("?period", format!("\"{said}\""), "1m, 5m, 1h or 1d"));
    }
    let now = app.engine.now();
    let until = query.moment("until", &mut problems).unwrap_or(now).min(now);
    let hour_before = Moment::from_micros(until.micros().saturating_sub(3_600_000_000));
    let since = query.moment("since", &mut problems).unwrap_or(hour_before);
    if since > until {
        let allowed = format!("a time before {}", rfc3339(until));
        problems.push(Problem::new("?since", rfc3339(since), allowed));
    }
    if let Some(queue) = query.get("queue") {
        queue_in_path(queue, &app.limits)?;
    }
    let Some((name, period, length)) = known.filter(|_| problems.is_empty()) else {
        return Err(ApiError::invalid(problems));
    };
    let history = app.engine.history(query.get("queue"), (since, until), *period, MOST_PARTS + 1);
    if history.parts.len() > MOST_PARTS {
        let most = length.times(MOST_PARTS as f64);
        let message =
            format!("\"{name}\" has more than {MOST_PARTS} parts from since to until; ask for {most}, or less");
        return Err(ApiError::invalid(vec![Problem::with_message("?period", message)]));
    }
    let data: Vec<Value> = history.parts.iter().map(|(at, counted)| part(*at, counted)).collect();
    Ok(JsonResponse::json(&json!({
        "period": name,
        "data": data,
        "counted_since": rfc3339(history.since),
    })))
}

fn part(at: Moment, counted: &Counted) -> Value {
    json!({
        "timestamp": rfc3339(at),
        "processed": counted.completed,
        "failed": counted.failed,
        "enqueued": counted.enqueued,
        "latency_p50_ms": latency(counted, 0.5),
        "latency_p99_ms": latency(counted, 0.99),
    })
}

/// For how long this share of the jobs had waited at most, in whole milliseconds; null where none was claimed.
pub(super) fn latency(counted: &Counted, share: f64) -> Option<u64> {
    counted.waited(share).map(|wait| wait.ms().ceil() as u64)
}
