//! Webhooks: subscriptions to events, as a program of the run mechanism. A run is one subscription. The store leaves
//! the events that it wants in its inbox, and each of them becomes a job in a queue of its own: a delivery.

mod delivery;
mod events;
mod program;
mod request;
mod subscription;

pub use delivery::{Payload, delivery_id, delivery_of, delivery_queue, payload, subscription_id, subscription_of};
pub use program::{WEBHOOK, Webhooks, signals};
pub use request::{EVENT_TYPES, SubscriptionRequest};
pub use subscription::{Definition, Subscription};
