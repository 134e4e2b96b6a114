//! The dead-letter queue in numbers.

use super::select::{Selection, error_type};
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_ojs::time::rfc3339;
use redrive_policy::Moment;
use redrive_store::Job;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many dead letters are looked at, the latest first. Where there are more, the numbers are those of the counted
/// ones.
const MOST: u64 = 100_000;
/// How many different keys one table has; all others are counted together.
const KEYS: usize = 1_000;
const OTHERS: &str = "(others)";

pub(crate) async fn stats(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let (mut counted, mut oldest, mut newest) = (0_u64, None::<Moment>, None::<Moment>);
    let (mut by_queue, mut by_type, mut by_error) = (Tally::default(), Tally::default(), Tally::default());
    let mut complete = true;
    let selection = Selection::of_query(&query)?;
    let each = |job: Job| {
        if counted == MOST {
            complete = false;
            return ControlFlow::Break(());
        }
        counted += 1;
        by_queue.count(&job.spec.queue);
        by_type.count(&job.spec.kind);
        by_error.count(&error_type(&job));
        oldest = oldest.into_iter().chain(job.times.finished).min();
        newest = newest.into_iter().chain(job.times.finished).max();
        ControlFlow::Continue(())
    };
    app.engine.throttled(selection.walk(&app, each)).await?;
    let total = if complete { Some(counted) } else { selection.total(&app).await? };
    let max_age = app.engine.settings().retention.dead;
    let mut stats = Map::new();
    stats.insert("total".to_owned(), total.unwrap_or(counted).into());
    if !complete {
        stats.insert("total_at_least".to_owned(), total.is_none().into());
        stats.insert("counted".to_owned(), counted.into());
    }
    stats.insert("by_queue".to_owned(), json!(by_queue.0));
    stats.insert("by_type".to_owned(), json!(by_type.0));
    stats.insert("by_error_type".to_owned(), json!(by_error.0));
    let moments = [("oldest_at", oldest), ("newest_at", newest)];
    stats.extend(moments.into_iter().filter_map(|(key, at)| Some((key.to_owned(), rfc3339(at?).into()))));
    stats.insert("retention".to_owned(), json!({ "max_age": format!("PT{}S", max_age.secs()) }));
    Ok(JsonResponse::json(&Value::Object(stats)))
}

#[derive(Default)]
struct Tally(BTreeMap<String, u64>);

impl Tally {
    fn count(&mut self, key: &str) {
        if let Some(count) = self.0.get_mut(key) {
            *count += 1;
        } else {
            let key = if self.0.len() < KEYS { key } else { OTHERS };
            *self.0.entry(key.to_owned()).or_default() += 1;
        }
    }
}
