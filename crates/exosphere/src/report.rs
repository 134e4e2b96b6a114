//! What runtimes report: the bodies of their calls, and what is stored of them.

use crate::fields::{FieldError, Loc, Reader};
use crate::run::Executed;
use serde_json::{Map, Value, json};

/// How many outputs one state may return.
const MOST_OUTPUTS: usize = 10_000;
/// The longest time after which a state can be enqueued again: a hundred years.
const LONGEST_WAIT_MS: i64 = 100 * 365 * 86_400_000;

/// A call for states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enqueue {
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// At most so many states.
    pub batch_size: usize,
}

/// Reads the body of `POST states/enqueue`.
///
/// # Errors
/// Every field that is wrong.
pub fn read_enqueue(body: &Value) -> Result<Enqueue, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let Some(members) = reader.object(body, &loc, &["nodes", "batch_size"]) else {
        return reader.finish(Enqueue::default());
    };
    let at = loc.key("nodes");
    let nodes = reader.required(members, "nodes", &loc).map_or(&[][..], |nodes| reader.list(nodes, &at));
    let nodes = nodes.iter().enumerate().filter_map(|(index, node)| reader.string(node, &at.item(index))).collect();
    let size = reader.required(members, "batch_size", &loc);
    let size = size.and_then(|size| reader.whole(size, &loc.key("batch_size"), i64::MIN, i64::MAX)).unwrap_or(0);
    reader.finish(Enqueue { nodes, batch_size: usize::try_from(size).unwrap_or(0) })
}

/// Reads the body of `POST state/{id}/executed`.
///
/// # Errors
/// Every field that is wrong.
pub fn read_outputs(body: &Value) -> Result<Vec<Map<String, Value>>, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let Some(members) = reader.object(body, &loc, &["outputs"]) else { return reader.finish(Vec::new()) };
    let at = loc.key("outputs");
    let outputs = reader.required(members, "outputs", &loc).map_or(&[][..], |outputs| reader.list(outputs, &at));
    if outputs.len() > MOST_OUTPUTS {
        let message = format!("found {} outputs; at most {MOST_OUTPUTS} are allowed", outputs.len());
        reader.wrong(&at, message, &Value::Null);
    }
    let read = |(index, output)| reader.map(output, &at.item(index)).cloned();
    let outputs = outputs.iter().enumerate().filter_map(read).collect();
    reader.finish(outputs)
}

/// Reads the body of `POST state/{id}/errored`.
///
/// # Errors
/// Every field that is wrong.
pub fn read_error(body: &Value) -> Result<String, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let members = reader.object(body, &loc, &["error"]);
    let error = members.and_then(|members| reader.text(members, "error", &loc));
    reader.finish(error.unwrap_or_default())
}

/// Reads the body of `POST state/{id}/prune`.
///
/// # Errors
/// Every field that is wrong.
pub fn read_prune(body: &Value) -> Result<Map<String, Value>, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let members = reader.object(body, &loc, &["data"]);
    let data = members.and_then(|members| reader.required(members, "data", &loc));
    let data = data.and_then(|data| reader.map(data, &loc.key("data")).cloned());
    reader.finish(data.unwrap_or_default())
}

/// Reads the body of `POST state/{id}/re-enqueue-after`: a time in milliseconds.
///
/// # Errors
/// Every field that is wrong.
pub fn read_wait(body: &Value) -> Result<i64, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let members = reader.object(body, &loc, &["enqueue_after"]);
    let wait = members.and_then(|members| reader.required(members, "enqueue_after", &loc));
    let wait = wait.and_then(|wait| reader.whole(wait, &loc.key("enqueue_after"), 1, LONGEST_WAIT_MS));
    reader.finish(wait.unwrap_or_default())
}

/// Reads the body of `POST state/{id}/manual-retry`: the name of the retry.
///
/// # Errors
/// Every field that is wrong.
pub fn read_retry(body: &Value) -> Result<String, Vec<FieldError>> {
    let (mut reader, loc) = (Reader::default(), Loc::body());
    let members = reader.object(body, &loc, &["fanout_id"]);
    let id = members.and_then(|members| reader.trimmed(members, "fanout_id", &loc));
    reader.finish(id.unwrap_or_default())
}

/// Reads the numbers in the path of a list: the page, from 1, and its size.
///
/// # Errors
/// Those that are no such numbers.
pub fn read_page(page: &str, size: &str, most: usize) -> Result<(usize, usize), Vec<FieldError>> {
    let mut reader = Reader::default();
    let mut number = |name: &str, text: &str, most: usize| {
        let read = text.parse().ok().filter(|number| (1..=most).contains(number));
        if read.is_none() {
            let message = format!("found {text:?}; a whole number from 1 to {most} is required");
            reader.wrong(&Loc::path(name), message, &text.into());
        }
        read.unwrap_or(1)
    };
    let read = (number("page", page, u32::MAX as usize), number("size", size, most));
    reader.finish(read)
}

/// What is stored of outputs, as the result of a job, with the number of retries that it took.
#[must_use]
pub fn outputs_document(outputs: Vec<Map<String, Value>>, retries: u32) -> Vec<u8> {
    // Writing into memory cannot fail, and every key is a text.
    serde_json::to_vec(&Executed { outputs, retries }).unwrap_or_default()
}

/// What is stored of an error.
#[must_use]
pub fn error_document(error: &str) -> Vec<u8> {
    json!({ "type": "error", "message": error }).to_string().into_bytes()
}

/// What is stored of the end of a branch.
#[must_use]
pub fn pruned_document(data: &Map<String, Value>) -> Vec<u8> {
    json!({ "type": "pruned", "message": "the branch was pruned", "details": data }).to_string().into_bytes()
}
