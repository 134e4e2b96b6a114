//! The dead-letter queue in numbers.

use super::select::{Selection, error_type};
use crate::answer::Answer;
use crate::app::App;
use crate::fault::Fault;
use crate::request::Query;
use crate::time::rfc3339;
use axum::extract::State;
use redrive_policy::Moment;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) async fn stats(State(app): State<Arc<App>>, query: Query) -> Result<Answer, Fault> {
    let (mut total, mut oldest, mut newest) = (0_u64, None::<Moment>, None::<Moment>);
    let (mut by_queue, mut by_type, mut by_error) = (Tally::new(), Tally::new(), Tally::new());
    Selection::of_query(&query)?
        .for_each(&app, |job| {
            total += 1;
            *by_queue.entry(job.spec.queue.to_string()).or_default() += 1;
            *by_type.entry(job.spec.kind.to_string()).or_default() += 1;
            *by_error.entry(error_type(&job)).or_default() += 1;
            oldest = oldest.into_iter().chain(job.times.finished).min();
            newest = newest.into_iter().chain(job.times.finished).max();
        })
        .await?;
    let max_age = app.engine.settings().retention.dead;
    let mut stats = Map::new();
    stats.insert("total".to_owned(), total.into());
    stats.insert("by_queue".to_owned(), json!(by_queue));
    stats.insert("by_type".to_owned(), json!(by_type));
    stats.insert("by_error_type".to_owned(), json!(by_error));
    let moments = [("oldest_at", oldest), ("newest_at", newest)];
    stats.extend(moments.into_iter().filter_map(|(key, at)| Some((key.to_owned(), rfc3339(at?).into()))));
    stats.insert("retention".to_owned(), json!({ "max_age": format!("PT{}S", max_age.secs()) }));
    Ok(Answer::json(&Value::Object(stats)))
}

type Tally = BTreeMap<String, u64>;
