//! A delivery: the job that carries one event to one subscription.

use crate::events::event_envelope;
use crate::jobs::body;
use redrive_policy::Moment;
use redrive_store::{EventBody, Job, JobId, RESERVED_QUEUES, RunId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

const SUBSCRIPTION: &str = "sub_";
const DELIVERY: &str = "del_";

/// A subscription as callers name it.
#[must_use]
pub fn subscription_id(run: RunId) -> String {
    format!("{SUBSCRIPTION}{run}")
}

/// The run of a subscription that a caller names.
#[must_use]
pub fn subscription_of(text: &str) -> Option<RunId> {
    text.strip_prefix(SUBSCRIPTION)?.parse().ok()
}

/// A delivery as callers name it. It is the same for every attempt.
#[must_use]
pub fn delivery_id(job: JobId) -> String {
    format!("{DELIVERY}{job}")
}

/// The job of a delivery that a caller names.
#[must_use]
pub fn delivery_of(text: &str) -> Option<JobId> {
    text.strip_prefix(DELIVERY)?.parse().ok()
}

/// The queue of the deliveries of a subscription, which nobody else can enqueue into or fetch from.
#[must_use]
pub fn delivery_queue(run: RunId) -> Arc<str> {
    format!("{RESERVED_QUEUES}{run}").into()
}

/// What a program asks the engine to enqueue.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) queue: String,
    pub(super) event_type: String,
    pub(super) payload: Box<RawValue>,
    pub(super) retry: Option<Box<RawValue>>,
}

/// An event as it is sent. Its id follows from what happened, so that it is the same for all subscriptions.
pub(super) fn envelope(at: Moment, event: &EventBody) -> (String, String) {
    let hashed = event_envelope("", at, event).to_string();
    let id = format!("evt_{}", JobId::new(at, fnv128(hashed.as_bytes())));
    let text = event_envelope(&id, at, event).to_string();
    (id, text)
}

/// The hash of Fowler, Noll and Vo, with 128 bits.
fn fnv128(bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// What a delivery carries.
#[derive(Debug, PartialEq, Eq)]
pub struct Payload<'j> {
    /// The type of the event.
    pub event_type: String,
    /// The body of the request.
    pub text: &'j str,
}

/// Reads the job of a delivery.
///
/// # Errors
/// It is none.
pub fn payload(job: &Job) -> Result<Payload<'_>, String> {
    #[derive(Deserialize)]
    struct Head {
        r#type: String,
    }
    let args = body::args(&job.spec.body);
    let args: Vec<&RawValue> = serde_json::from_str(args).map_err(|error| format!("the delivery: {error}"))?;
    let text = args.first().map(|payload| payload.get()).ok_or_else(|| "the delivery has no event".to_owned())?;
    let head: Head = serde_json::from_str(text).map_err(|error| format!("the event of the delivery: {error}"))?;
    Ok(Payload { event_type: head.r#type, text })
}
