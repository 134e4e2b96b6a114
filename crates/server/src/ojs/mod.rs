//! Open Job Spec over HTTP: levels 0 to 3, and parts of level 4.

mod about;
mod admin;
mod backup;
mod cron;
mod cursor;
mod dead;
mod envelope;
mod events;
mod failure;
mod fetch;
mod health;
mod heartbeat;
mod inbox;
mod intake;
mod jobs;
mod lists;
mod names;
mod progress;
mod queues;
mod rate_limits;
mod repeat;
mod settle;
pub(crate) mod streams;
mod webhooks;
mod workers;
mod workflows;

pub(crate) use health::Probe;

use crate::access::{OPEN, Queues, admin, enqueue, inspect, read, work};
use crate::api_error::{ApiError, Code};
use crate::endpoints::Endpoints;
use axum::http::Uri;

/// Adds all paths.
pub(crate) fn add(endpoints: Endpoints) -> Endpoints {
    endpoints
        .get("/ojs/v1/health", OPEN, &[], about::health)
        .get("/health", OPEN, &[], about::health)
        .get("/live", OPEN, &[], health::live)
        .get("/ready", OPEN, &[], health::ready)
        .get("/metrics", read(Queues::All), &[], health::metrics)
        .get("/ojs/manifest", OPEN, &[], about::manifest)
        .get("/ojs/v1/errors/{code}", OPEN, &[], about::error)
        .post("/ojs/v1/jobs", enqueue(Queues::ByHandler), &[], jobs::enqueue)
        .post("/ojs/v1/jobs/batch", enqueue(Queues::ByHandler), &[], jobs::enqueue_batch)
        .get("/ojs/v1/jobs/{id}", read(Queues::OfJobInPath), &[], jobs::show)
        .delete("/ojs/v1/jobs/{id}", enqueue(Queues::OfJobInPath), &[], jobs::cancel)
        .post("/ojs/v1/jobs/{id}/activate", enqueue(Queues::OfJobInPath), &[], jobs::activate)
        .get("/ojs/v1/jobs/{id}/progress", read(Queues::OfJobInPath), &[], progress::get)
        .put("/ojs/v1/jobs/{id}/progress", work(Queues::OfJobInPath), &[], progress::put)
        .post("/ojs/v1/workers/fetch", work(Queues::ByHandler), &[], fetch::fetch)
        .post("/ojs/v1/workers/ack", work(Queues::ByHandler), &[], settle::ack)
        .post("/ojs/v1/workers/nack", work(Queues::ByHandler), &[], settle::nack)
        .post("/ojs/v1/workers/settle", work(Queues::ByHandler), &[], settle::settle_many)
        .post("/ojs/v1/workers/heartbeat", work(Queues::ByHandler), &[], heartbeat::heartbeat)
        .post("/ojs/v1/workers/beat", work(Queues::ByHandler), &[], heartbeat::beat)
        .get("/ojs/v1/workers/{id}/health", read(Queues::All), &[], workers::health)
        .post("/ojs/v1/workers/progress", work(Queues::ByHandler), &[], progress::report)
        .get("/ojs/v1/queues", read(Queues::ByHandler), lists::PARAMETERS, queues::list)
        .delete("/ojs/v1/queues/{name}", admin(Queues::InPath), &[], queues::remove)
        .get("/ojs/v1/queues/{name}/config", read(Queues::InPath), &[], rate_limits::config)
        .put("/ojs/v1/queues/{name}/config", admin(Queues::InPath), &[], rate_limits::configure)
        .get("/ojs/v1/queues/{name}/stats", read(Queues::InPath), &[], queues::stats)
        .post("/ojs/v1/queues/{name}/pause", admin(Queues::InPath), &[], queues::pause)
        .post("/ojs/v1/queues/{name}/resume", admin(Queues::InPath), &[], queues::resume)
        .get("/ojs/v1/rate-limits", read(Queues::All), lists::NUMBERED, rate_limits::list)
        .get("/ojs/v1/rate-limits/{key}", read(Queues::All), &[], rate_limits::show)
        .put("/ojs/v1/rate-limits/{key}", admin(Queues::All), &[], rate_limits::set)
        .delete("/ojs/v1/rate-limits/{key}", admin(Queues::All), &[], rate_limits::unset)
        .get("/ojs/v1/dead-letter", read(Queues::InQuery), dead::LIST_PARAMETERS, dead::list)
        .delete("/ojs/v1/dead-letter", admin(Queues::All), dead::DELETE_PARAMETERS, dead::delete_many)
        .get("/ojs/v1/dead-letter/stats", read(Queues::InQuery), &dead::FILTER, dead::stats)
        .post("/ojs/v1/dead-letter/retry", admin(Queues::All), &[], dead::retry_many)
        .get("/ojs/v1/dead-letter/{id}", read(Queues::OfJobInPath), &[], dead::show)
        .delete("/ojs/v1/dead-letter/{id}", admin(Queues::OfJobInPath), &[], dead::delete)
        .post("/ojs/v1/dead-letter/{id}/retry", admin(Queues::OfJobInPath), &[], dead::retry)
        .get("/ojs/v1/workflows", read(Queues::All), workflows::LIST_PARAMETERS, workflows::list)
        .post("/ojs/v1/workflows", enqueue(Queues::All), &[], workflows::create)
        .get("/ojs/v1/workflows/{id}", read(Queues::All), &[], workflows::show)
        .delete("/ojs/v1/workflows/{id}", enqueue(Queues::All), &[], workflows::cancel)
        .get("/ojs/v1/cron", read(Queues::All), cron::LIST_PARAMETERS, cron::list)
        .post("/ojs/v1/cron", admin(Queues::All), &[], cron::register)
        .get("/ojs/v1/cron/{name}", read(Queues::All), &[], cron::show)
        .put("/ojs/v1/cron/{name}", admin(Queues::All), &[], cron::replace)
        .patch("/ojs/v1/cron/{name}", admin(Queues::All), &[], cron::switch)
        .delete("/ojs/v1/cron/{name}", admin(Queues::All), &[], cron::delete)
        .get("/ojs/v1/webhooks/subscriptions", inspect(), &[], webhooks::list)
        .post("/ojs/v1/webhooks/subscriptions", admin(Queues::All), &[], webhooks::create)
        .get("/ojs/v1/webhooks/subscriptions/{id}", inspect(), &[], webhooks::show)
        .patch("/ojs/v1/webhooks/subscriptions/{id}", admin(Queues::All), &[], webhooks::change)
        .delete("/ojs/v1/webhooks/subscriptions/{id}", admin(Queues::All), &[], webhooks::delete)
        .post("/ojs/v1/webhooks/subscriptions/{id}/test", admin(Queues::All), &[], webhooks::test)
        .post("/ojs/v1/webhooks/subscriptions/{id}/rotate-secret", admin(Queues::All), &[], webhooks::rotate)
        .get("/ojs/v1/webhooks/deliveries", inspect(), webhooks::DELIVERIES, webhooks::deliveries)
        .get("/ojs/v1/webhooks/deliveries/{id}", inspect(), &[], webhooks::show_delivery)
        .delete("/ojs/v1/webhooks/deliveries/{id}", admin(Queues::All), &[], webhooks::drop_delivery)
        .post("/ojs/v1/webhooks/deliveries/{id}/retry", admin(Queues::All), &[], webhooks::retry)
        .get("/ojs/v1/events", read(Queues::ByHandler), &["types", "queues", "after", "limit"], events::list)
        .get("/ojs/v1/events/stream", read(Queues::ByHandler), streams::PARAMETERS, streams::of_channel)
        .get("/ojs/v1/jobs/{id}/events", read(Queues::OfJobInPath), streams::PARAMETERS_OF_ONE, streams::of_job)
        .get("/ojs/v1/queues/{name}/events", read(Queues::InPath), streams::PARAMETERS_OF_ONE, streams::of_queue)
        .get("/ojs/v1/admin/stats", read(Queues::All), &[], admin::stats)
        .get("/ojs/v1/admin/stats/history", read(Queues::InQuery), admin::HISTORY_PARAMETERS, admin::history)
        .get("/ojs/v1/admin/queues", read(Queues::ByHandler), lists::NUMBERED, admin::queues)
        .get("/ojs/v1/admin/queues/{name}", read(Queues::InPath), &[], admin::queue)
        .get("/ojs/v1/admin/queues/{name}/config", read(Queues::InPath), &[], rate_limits::config)
        .put("/ojs/v1/admin/queues/{name}/config", admin(Queues::InPath), &[], rate_limits::configure)
        .put("/ojs/v1/admin/queues/{name}/rate-limit", admin(Queues::InPath), &[], rate_limits::set_queue)
        .get("/ojs/v1/admin/types/{type}/rate-limit", read(Queues::All), &[], rate_limits::show_type)
        .put("/ojs/v1/admin/types/{type}/rate-limit", admin(Queues::All), &[], rate_limits::set_type)
        .delete("/ojs/v1/admin/types/{type}/rate-limit", admin(Queues::All), &[], rate_limits::unset_type)
        .post("/ojs/v1/admin/queues/{name}/pause", admin(Queues::InPath), &[], admin::pause)
        .post("/ojs/v1/admin/queues/{name}/resume", admin(Queues::InPath), &[], admin::resume)
        .delete("/ojs/v1/admin/queues/{name}/jobs", admin(Queues::InPath), &[], dead::purge)
        .get("/ojs/v1/admin/jobs", read(Queues::InQuery), admin::LIST_PARAMETERS, admin::jobs)
        .post("/ojs/v1/admin/jobs/bulk/retry", admin(Queues::All), &[], dead::retry_ended)
        .post("/ojs/v1/admin/jobs/bulk/cancel", admin(Queues::All), &[], dead::cancel_many)
        .post("/ojs/v1/admin/jobs/bulk/delete", admin(Queues::All), &[], dead::delete_ended)
        .get("/ojs/v1/admin/jobs/{id}", read(Queues::OfJobInPath), &[], admin::job)
        .post("/ojs/v1/admin/jobs/{id}/cancel", admin(Queues::OfJobInPath), &[], admin::cancel)
        .post("/ojs/v1/admin/jobs/{id}/retry", admin(Queues::OfJobInPath), &[], admin::retry)
        .get("/ojs/v1/admin/workers", read(Queues::All), lists::NUMBERED, workers::list)
        .get("/ojs/v1/admin/workers/{id}", read(Queues::All), &[], workers::show)
        .delete("/ojs/v1/admin/workers/{id}", admin(Queues::All), &[], workers::remove)
        .post("/ojs/v1/admin/workers/{id}/quiet", admin(Queues::All), &[], workers::quiet)
        .post("/ojs/v1/admin/workers/{id}/terminate", admin(Queues::All), &[], workers::terminate)
        .post("/ojs/v1/admin/workers/{id}/resume", admin(Queues::All), &[], workers::resume)
        .get("/ojs/v1/admin/dead-letter", read(Queues::InQuery), dead::NUMBERED_PARAMETERS, dead::list_numbered)
        .delete("/ojs/v1/admin/dead-letter", admin(Queues::All), &[], dead::delete_older)
        .get("/ojs/v1/admin/dead-letter/stats", read(Queues::InQuery), &dead::FILTER, dead::stats)
        .get("/ojs/v1/admin/dead-letter/{id}", read(Queues::OfJobInPath), &[], dead::show)
        .delete("/ojs/v1/admin/dead-letter/{id}", admin(Queues::OfJobInPath), &[], dead::delete_silently)
        .post("/ojs/v1/admin/dead-letter/{id}/retry", admin(Queues::OfJobInPath), &[], dead::retry)
        .get("/ojs/v1/admin/crons", read(Queues::All), cron::NUMBERED_PARAMETERS, cron::list_numbered)
        .get("/ojs/v1/admin/workflows", read(Queues::All), workflows::NUMBERED_PARAMETERS, workflows::list_numbered)
        .get("/ojs/v1/admin/system/config", inspect(), &[], admin::config)
        .get("/ojs/v1/admin/system/maintenance", read(Queues::All), &[], admin::maintenance)
        .post("/ojs/v1/admin/system/maintenance", admin(Queues::All), &[], admin::set_maintenance)
        .get("/ojs/v1/admin/graph-runs", read(Queues::All), admin::graphs::RUNS_PARAMETERS, admin::graphs::runs)
        .get("/ojs/v1/admin/graph-runs/{run}", read(Queues::All), &[], admin::graphs::run)
        .get("/ojs/v1/admin/graph-states", read(Queues::All), admin::graphs::STATES_PARAMETERS, admin::graphs::states)
        .post("/ojs/v1/admin/graph-states/{state}/free", admin(Queues::All), &[], admin::graphs::free)
        .get("/ojs/v1/admin/keys", inspect(), &[], admin::keys)
        .post("/ojs/v1/admin/keys", admin(Queues::All), &[], admin::create_key)
        .post("/ojs/v1/admin/keys/{name}/rotate", admin(Queues::All), &[], admin::rotate_key)
        .delete("/ojs/v1/admin/keys/{name}", admin(Queues::All), &[], admin::revoke_key)
        .post("/ojs/v1/admin/backup", admin(Queues::All), &[], backup::backup)
}

pub(crate) async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is no path {}; GET /ojs/manifest tells what there is", uri.path()))
}
