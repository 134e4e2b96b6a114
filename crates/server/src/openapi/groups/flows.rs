//! Flows.

use crate::api_error::Code::{Conflict, Duplicate, NotFound, RateLimited, ValidationError};
use crate::openapi::operation::{Group, delete, get, post, put};

pub(super) const FLOWS: Group = Group {
    name: "Flows",
    about: "MWL flows: definitions with their versions, and durable runs.",
    operations: &[
        get("/flows/v1/definitions", "Definitions, by name").gives(&[(200, "FlowDefinitions")]),
        put("/flows/v1/definitions/{name}", "Put a definition, or a new version of one")
            .about(
                "The body is the text of the definition: problems have its lines and columns. Runs keep the \
                    version that they started with.",
            )
            .takes("FlowText")
            .gives(&[(200, "FlowDefinition"), (201, "FlowDefinition")])
            .fails(&[ValidationError, Conflict, RateLimited]),
        get("/flows/v1/definitions/{name}", "A definition").gives(&[(200, "FlowDefinition")]).fails(&[NotFound]),
        delete("/flows/v1/definitions/{name}", "Remove a definition")
            .about("Its runs go on.")
            .gives(&[(200, "RemovedFlowDefinition")])
            .fails(&[NotFound, RateLimited]),
        get("/flows/v1/runs", "Runs of flows, the newest first")
            .about("A page may have fewer entries than `limit`, or none, and still `next_after`.")
            .gives(&[(200, "FlowRuns")]),
        post("/flows/v1/runs", "Start a run")
            .about("A request with an `id` can be repeated: it starts one run, and is answered with it.")
            .takes("NewFlowRun")
            .gives(&[(200, "FlowRun"), (201, "FlowRun")])
            .fails(&[NotFound, Duplicate]),
        get("/flows/v1/runs/{id}", "A run with its retries").gives(&[(200, "FlowRun")]).fails(&[NotFound]),
        delete("/flows/v1/runs/{id}", "Cancel a run")
            .about("Its cleanups run first.")
            .gives(&[(202, "FlowRun")])
            .fails(&[NotFound, Conflict, RateLimited]),
        get("/flows/v1/runs/{id}/history", "What has happened in a run, step by step")
            .gives(&[(200, "FlowHistory")])
            .fails(&[NotFound]),
        get("/flows/v1/runs/{id}/events", "The same as it happens, as server-sent events")
            .about("It ends with the run. 204 says that there is nothing behind the last event.")
            .reads(&["Last-Event-ID"])
            .gives(&[(200, "text/event-stream"), (204, "")])
            .fails(&[NotFound, RateLimited]),
    ],
};
