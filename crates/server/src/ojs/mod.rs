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
mod streams;
mod webhooks;
mod workers;
mod workflows;

pub(crate) use health::Probe;

use crate::api_error::{ApiError, Code};
use crate::endpoints::Endpoints;
use axum::http::Uri;

/// Adds all paths.
pub(crate) fn add(endpoints: Endpoints) -> Endpoints {
    endpoints
        .get("/ojs/v1/health", &[], about::health)
        .get("/health", &[], about::health)
        .get("/live", &[], health::live)
        .get("/ready", &[], health::ready)
        .get("/metrics", &[], health::metrics)
        .get("/ojs/manifest", &[], about::manifest)
        .get("/ojs/v1/errors/{code}", &[], about::error)
        .post("/ojs/v1/jobs", &[], jobs::enqueue)
        .post("/ojs/v1/jobs/batch", &[], jobs::enqueue_batch)
        .get("/ojs/v1/jobs/{id}", &[], jobs::show)
        .delete("/ojs/v1/jobs/{id}", &[], jobs::cancel)
        .post("/ojs/v1/jobs/{id}/activate", &[], jobs::activate)
        .get("/ojs/v1/jobs/{id}/progress", &[], progress::get)
        .put("/ojs/v1/jobs/{id}/progress", &[], progress::put)
        .post("/ojs/v1/workers/fetch", &[], fetch::fetch)
        .post("/ojs/v1/workers/ack", &[], settle::ack)
        .post("/ojs/v1/workers/nack", &[], settle::nack)
        .post("/ojs/v1/workers/settle", &[], settle::settle_many)
        .post("/ojs/v1/workers/heartbeat", &[], heartbeat::heartbeat)
        .post("/ojs/v1/workers/beat", &[], heartbeat::beat)
        .get("/ojs/v1/workers/{id}/health", &[], workers::health)
        .post("/ojs/v1/workers/progress", &[], progress::report)
        .get("/ojs/v1/queues", lists::PARAMETERS, queues::list)
        .delete("/ojs/v1/queues/{name}", &[], queues::remove)
        .get("/ojs/v1/queues/{name}/config", &[], rate_limits::config)
        .put("/ojs/v1/queues/{name}/config", &[], rate_limits::configure)
        .get("/ojs/v1/queues/{name}/stats", &[], queues::stats)
        .post("/ojs/v1/queues/{name}/pause", &[], queues::pause)
        .post("/ojs/v1/queues/{name}/resume", &[], queues::resume)
        .get("/ojs/v1/rate-limits", lists::NUMBERED, rate_limits::list)
        .get("/ojs/v1/rate-limits/{key}", &[], rate_limits::show)
        .put("/ojs/v1/rate-limits/{key}", &[], rate_limits::set)
        .delete("/ojs/v1/rate-limits/{key}", &[], rate_limits::unset)
        .get("/ojs/v1/dead-letter", dead::LIST_PARAMETERS, dead::list)
        .delete("/ojs/v1/dead-letter", dead::DELETE_PARAMETERS, dead::delete_many)
        .get("/ojs/v1/dead-letter/stats", &dead::FILTER, dead::stats)
        .post("/ojs/v1/dead-letter/retry", &[], dead::retry_many)
        .get("/ojs/v1/dead-letter/{id}", &[], dead::show)
        .delete("/ojs/v1/dead-letter/{id}", &[], dead::delete)
        .post("/ojs/v1/dead-letter/{id}/retry", &[], dead::retry)
        .get("/ojs/v1/workflows", workflows::LIST_PARAMETERS, workflows::list)
        .post("/ojs/v1/workflows", &[], workflows::create)
        .get("/ojs/v1/workflows/{id}", &[], workflows::show)
        .delete("/ojs/v1/workflows/{id}", &[], workflows::cancel)
        .get("/ojs/v1/cron", cron::LIST_PARAMETERS, cron::list)
        .post("/ojs/v1/cron", &[], cron::register)
        .get("/ojs/v1/cron/{name}", &[], cron::show)
        .put("/ojs/v1/cron/{name}", &[], cron::replace)
        .patch("/ojs/v1/cron/{name}", &[], cron::switch)
        .delete("/ojs/v1/cron/{name}", &[], cron::delete)
        .get("/ojs/v1/webhooks/subscriptions", &[], webhooks::list)
        .post("/ojs/v1/webhooks/subscriptions", &[], webhooks::create)
        .get("/ojs/v1/webhooks/subscriptions/{id}", &[], webhooks::show)
        .patch("/ojs/v1/webhooks/subscriptions/{id}", &[], webhooks::change)
        .delete("/ojs/v1/webhooks/subscriptions/{id}", &[], webhooks::delete)
        .post("/ojs/v1/webhooks/subscriptions/{id}/test", &[], webhooks::test)
        .post("/ojs/v1/webhooks/subscriptions/{id}/rotate-secret", &[], webhooks::rotate)
        .get("/ojs/v1/webhooks/deliveries", webhooks::DELIVERIES, webhooks::deliveries)
        .get("/ojs/v1/webhooks/deliveries/{id}", &[], webhooks::show_delivery)
        .delete("/ojs/v1/webhooks/deliveries/{id}", &[], webhooks::drop_delivery)
        .post("/ojs/v1/webhooks/deliveries/{id}/retry", &[], webhooks::retry)
        .get("/ojs/v1/events", &["types", "queues", "after", "limit"], events::list)
        .get("/ojs/v1/events/stream", streams::PARAMETERS, streams::of_channel)
        .get("/ojs/v1/jobs/{id}/events", streams::PARAMETERS_OF_ONE, streams::of_job)
        .get("/ojs/v1/queues/{name}/events", streams::PARAMETERS_OF_ONE, streams::of_queue)
        .get("/ojs/v1/admin/stats", &[], admin::stats)
        .get("/ojs/v1/admin/stats/history", admin::HISTORY_PARAMETERS, admin::history)
        .get("/ojs/v1/admin/queues", lists::NUMBERED, admin::queues)
        .get("/ojs/v1/admin/queues/{name}", &[], admin::queue)
        .get("/ojs/v1/admin/queues/{name}/config", &[], rate_limits::config)
        .put("/ojs/v1/admin/queues/{name}/config", &[], rate_limits::configure)
        .put("/ojs/v1/admin/queues/{name}/rate-limit", &[], rate_limits::set_queue)
        .get("/ojs/v1/admin/types/{type}/rate-limit", &[], rate_limits::show_type)
        .put("/ojs/v1/admin/types/{type}/rate-limit", &[], rate_limits::set_type)
        .delete("/ojs/v1/admin/types/{type}/rate-limit", &[], rate_limits::unset_type)
        .post("/ojs/v1/admin/queues/{name}/pause", &[], admin::pause)
        .post("/ojs/v1/admin/queues/{name}/resume", &[], admin::resume)
        .delete("/ojs/v1/admin/queues/{name}/jobs", &[], dead::purge)
        .get("/ojs/v1/admin/jobs", admin::LIST_PARAMETERS, admin::jobs)
        .post("/ojs/v1/admin/jobs/bulk/retry", &[], dead::retry_ended)
        .post("/ojs/v1/admin/jobs/bulk/cancel", &[], dead::cancel_many)
        .post("/ojs/v1/admin/jobs/bulk/delete", &[], dead::delete_ended)
        .get("/ojs/v1/admin/jobs/{id}", &[], admin::job)
        .post("/ojs/v1/admin/jobs/{id}/cancel", &[], admin::cancel)
        .post("/ojs/v1/admin/jobs/{id}/retry", &[], admin::retry)
        .get("/ojs/v1/admin/workers", lists::NUMBERED, workers::list)
        .get("/ojs/v1/admin/workers/{id}", &[], workers::show)
        .delete("/ojs/v1/admin/workers/{id}", &[], workers::remove)
        .post("/ojs/v1/admin/workers/{id}/quiet", &[], workers::quiet)
        .post("/ojs/v1/admin/workers/{id}/terminate", &[], workers::terminate)
        .post("/ojs/v1/admin/workers/{id}/resume", &[], workers::resume)
        .get("/ojs/v1/admin/dead-letter", dead::NUMBERED_PARAMETERS, dead::list_numbered)
        .delete("/ojs/v1/admin/dead-letter", &[], dead::delete_older)
        .get("/ojs/v1/admin/dead-letter/stats", &dead::FILTER, dead::stats)
        .get("/ojs/v1/admin/dead-letter/{id}", &[], dead::show)
        .delete("/ojs/v1/admin/dead-letter/{id}", &[], dead::delete_silently)
        .post("/ojs/v1/admin/dead-letter/{id}/retry", &[], dead::retry)
        .get("/ojs/v1/admin/crons", cron::NUMBERED_PARAMETERS, cron::list_numbered)
        .get("/ojs/v1/admin/workflows", workflows::NUMBERED_PARAMETERS, workflows::list_numbered)
        .get("/ojs/v1/admin/graph-runs", admin::graphs::RUNS_PARAMETERS, admin::graphs::runs)
        .get("/ojs/v1/admin/graph-runs/{run}", &[], admin::graphs::run)
        .get("/ojs/v1/admin/graph-states", admin::graphs::STATES_PARAMETERS, admin::graphs::states)
        .post("/ojs/v1/admin/graph-states/{state}/free", &[], admin::graphs::free)
        .get("/ojs/v1/admin/system/config", &[], admin::config)
        .get("/ojs/v1/admin/system/maintenance", &[], admin::maintenance)
        .post("/ojs/v1/admin/system/maintenance", &[], admin::set_maintenance)
        .post("/ojs/v1/admin/backup", &[], backup::backup)
}

pub(crate) async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is no path {}; GET /ojs/manifest tells what there is", uri.path()))
}
