//! Webhooks: events are sent to endpoints, signed, each as an ordinary durable job.

mod address;
mod deliver;
mod outcome;
mod send;
mod sign;

pub use address::WebhookSettings;
pub(crate) use address::endpoint;
pub(crate) use deliver::{Attempt, cancel_all, extended};
pub(crate) use send::{Delivery, NoAnswer, Sender};
