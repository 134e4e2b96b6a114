//! Events: read, as they happen, and sent to endpoints.

use crate::api_error::Code::{Conflict, Duplicate, NotFound, RateLimited};
use crate::openapi::operation::{Group, delete, get, patch, post};

const STREAM: &str = "text/event-stream";

pub(super) const EVENTS: Group = Group {
    name: "Events",
    about: "What happened lately, and what happens.",
    operations: &[
        get("/ojs/v1/events", "What happened lately, the oldest first")
            .about("`cursor` of an answer is `after` of the next request.")
            .gives(&[(200, "EventList")]),
        get("/ojs/v1/events/stream", "Events as they happen")
            .about(
                "Server-sent events. A stream of a job ends with the job; 204 where the client has all of it already, \
                 so that it does not call again.",
            )
            .reads(&["Last-Event-ID"])
            .gives(&[(200, STREAM), (204, "")])
            .fails(&[NotFound, RateLimited]),
        get("/ojs/v1/jobs/{id}/events", "The changes of a job, as they happen")
            .reads(&["Last-Event-ID"])
            .gives(&[(200, STREAM), (204, "")])
            .fails(&[NotFound, RateLimited]),
        get("/ojs/v1/queues/{name}/events", "The changes of the jobs of a queue, as they happen")
            .reads(&["Last-Event-ID"])
            .gives(&[(200, STREAM)])
            .fails(&[NotFound, RateLimited]),
    ],
};

pub(super) const WEBHOOKS: Group = Group {
    name: "Webhooks",
    about: "Events to your own endpoints, signed and tried again.",
    operations: &[
        get("/ojs/v1/webhooks/subscriptions", "All subscriptions, the newest first")
            .gives(&[(200, "SubscriptionList")]),
        post("/ojs/v1/webhooks/subscriptions", "Subscribe an endpoint to events")
            .about("The answer has the secret; no later one does, besides that of a rotation.")
            .takes("NewSubscription")
            .gives(&[(201, "SubscriptionWithSecret")])
            .fails(&[Conflict]),
        get("/ojs/v1/webhooks/subscriptions/{id}", "A subscription").gives(&[(200, "Subscription")]).fails(&[NotFound]),
        patch("/ojs/v1/webhooks/subscriptions/{id}", "Change a subscription")
            .takes("SubscriptionChange")
            .gives(&[(200, "Subscription")])
            .fails(&[NotFound, Conflict, RateLimited]),
        delete("/ojs/v1/webhooks/subscriptions/{id}", "Delete a subscription")
            .about("Deliveries that have not ended are cancelled.")
            .gives(&[(200, "Deleted")])
            .fails(&[NotFound, Conflict, RateLimited]),
        post("/ojs/v1/webhooks/subscriptions/{id}/test", "Send one request now, and tell what came of it")
            .gives(&[(200, "WebhookTest")])
            .fails(&[NotFound]),
        post("/ojs/v1/webhooks/subscriptions/{id}/rotate-secret", "Replace the secret of a subscription")
            .gives(&[(200, "SubscriptionWithSecret")])
            .fails(&[NotFound, Conflict, RateLimited]),
        get("/ojs/v1/webhooks/deliveries", "Deliveries, the newest first")
            .gives(&[(200, "DeliveryList")])
            .fails(&[NotFound]),
        get("/ojs/v1/webhooks/deliveries/{id}", "A delivery, with the event that it carries")
            .gives(&[(200, "Delivery")])
            .fails(&[NotFound]),
        delete("/ojs/v1/webhooks/deliveries/{id}", "Drop a delivery")
            .gives(&[(200, "Deleted")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/webhooks/deliveries/{id}/retry", "Send a delivery again that has ended")
            .gives(&[(200, "Delivery")])
            .fails(&[NotFound, Conflict, Duplicate]),
    ],
};
