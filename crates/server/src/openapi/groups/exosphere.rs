//! Exosphere's API.

use crate::api_error::Code::{Conflict, Duplicate, NotConfigured, NotFound, RateLimited, ValidationError};
use crate::openapi::operation::{Group, get, post, put};

/// For operators, over all namespaces.
pub(super) const GRAPHS: Group = Group {
    name: "Graphs",
    about: "Runs of Exosphere's graphs over all namespaces, and states whose runtimes have died.",
    operations: &[
        get("/ojs/v1/admin/graph-runs", "Runs of graphs, the newest first").gives(&[(200, "GraphRuns")]),
        get("/ojs/v1/admin/graph-runs/{run}", "A run with its graph and all of its states")
            .gives(&[(200, "GraphRunStates")])
            .fails(&[NotFound]),
        get("/ojs/v1/admin/graph-states", "States that runtimes have, and have not reported")
            .gives(&[(200, "TakenStates")]),
        post("/ojs/v1/admin/graph-states/{state}/free", "Take a state from a runtime that has died")
            .about("The state has failed: the retry policy of its graph decides what comes next.")
            .may_take("StateFreeing")
            .gives(&[(200, "FreedState")])
            .fails(&[NotFound, Conflict]),
    ],
};

pub(super) const EXOSPHERE: Group = Group {
    name: "Exosphere",
    about: "The API that Exosphere's Python SDK calls. Its errors have one member, `detail`.",
    operations: &[
        get("/v0/namespaces", "Namespaces that have registered nodes").gives(&[(200, "Namespaces")]),
        put("/v0/namespace/{namespace}/nodes/", "Register the nodes of a runtime")
            .takes("NodeRegistration")
            .gives(&[(200, "RegisteredNodes")])
            .fails(&[ValidationError, Conflict, RateLimited]),
        put("/v0/namespace/{namespace}/nodes", "Register the nodes of a runtime; without the last slash")
            .takes("NodeRegistration")
            .gives(&[(200, "RegisteredNodes")])
            .fails(&[ValidationError, Conflict, RateLimited]),
        get("/v0/namespace/{namespace}/nodes/", "Registered nodes").gives(&[(200, "NodeList")]),
        get("/v0/namespace/{namespace}/nodes", "Registered nodes; without the last slash").gives(&[(200, "NodeList")]),
        get("/v0/namespace/{namespace}/graphs/", "Graphs").gives(&[(200, "GraphList")]),
        get("/v0/namespace/{namespace}/graphs", "Graphs; without the last slash").gives(&[(200, "GraphList")]),
        put("/v0/namespace/{namespace}/graph/{graph}", "Put a graph")
            .takes("NewGraph")
            .gives(&[(201, "Graph")])
            .fails(&[ValidationError, Conflict, RateLimited]),
        get("/v0/namespace/{namespace}/graph/{graph}", "A graph").gives(&[(200, "Graph")]).fails(&[NotFound]),
        post("/v0/namespace/{namespace}/graph/{graph}/trigger", "Start a run of a graph")
            .takes("GraphTrigger")
            .gives(&[(200, "GraphRun")])
            .fails(&[NotFound, ValidationError, Conflict, Duplicate]),
        post("/v0/namespace/{namespace}/states/enqueue", "Claim states of some nodes")
            .takes("StateClaim")
            .gives(&[(200, "ClaimedStates")])
            .fails(&[ValidationError]),
        post("/v0/namespace/{namespace}/state/{state}/executed", "Report the outputs of a state")
            .takes("StateOutputs")
            .gives(&[(200, "StateStatus")])
            .fails(&[NotFound, ValidationError, Conflict]),
        post("/v0/namespace/{namespace}/state/{state}/errored", "Report that a state failed")
            .takes("StateError")
            .gives(&[(200, "StateStatus")])
            .fails(&[NotFound, ValidationError, Conflict]),
        post("/v0/namespace/{namespace}/state/{state}/prune", "End the branch of a state")
            .takes("StatePrune")
            .gives(&[(200, "StateStatus")])
            .fails(&[NotFound, ValidationError, Conflict]),
        post("/v0/namespace/{namespace}/state/{state}/re-enqueue-after", "Run a state again later")
            .takes("StateWait")
            .gives(&[(200, "StateStatus")])
            .fails(&[NotFound, ValidationError, Conflict]),
        get("/v0/namespace/{namespace}/state/{state}/secrets", "The secrets of the graph of a state")
            .gives(&[(200, "GraphSecrets")])
            .fails(&[NotFound, NotConfigured]),
        post("/v0/namespace/{namespace}/state/{state}/manual-retry", "Retry a state by hand")
            .takes("ManualRetry")
            .gives(&[(200, "RetriedState")])
            .fails(&[NotFound, ValidationError, Conflict, RateLimited]),
        get("/v0/namespace/{namespace}/runs/{page}/{size}", "Runs of graphs, the newest first")
            .gives(&[(200, "GraphRunPage")])
            .fails(&[ValidationError]),
        get("/v0/namespace/{namespace}/states/run/{run}/graph", "The states of a run, and how they follow each other")
            .gives(&[(200, "RunStructure")]),
        get("/v0/namespace/{namespace}/graph/{graph}/run/{run}/node/{state}", "All about one state")
            .gives(&[(200, "ShownState")])
            .fails(&[NotFound]),
    ],
};
