//! The server about itself.

use crate::api_error::Code::NotFound;
use crate::openapi::operation::{Group, get};

pub(super) const SERVER: Group = Group {
    name: "Server",
    about: "What the server can do, and whether it is well.",
    operations: &[
        get("/ojs/v1/health", "Whether the server is well").gives(&[(200, "Health"), (503, "Health")]),
        get("/health", "Whether the server is well").gives(&[(200, "Health"), (503, "Health")]),
        get("/live", "Whether the server answers").gives(&[(200, "Live")]),
        get("/ready", "Whether a write would be flushed")
            .about(
                "Reasons that do not block are for operators; the server takes writes all the same. Messages are for \
                 callers with a key.",
            )
            .gives(&[(200, "Ready"), (503, "Ready")]),
        get("/metrics", "Metrics in the text format of Prometheus").gives(&[(200, "text/plain")]),
        get("/ojs/manifest", "What the server can do").gives(&[(200, "Manifest")]),
        get("/ojs/v1/errors/{code}", "What an error means, and what to do about it")
            .gives(&[(200, "ErrorCode")])
            .fails(&[NotFound]),
        get("/openapi.json", "This description").gives(&[(200, "OpenApi")]),
        get("/docs", "This description, as a page for readers").gives(&[(200, "text/html")]),
        get("/docs/style.css", "How the page looks").gives(&[(200, "text/css")]),
    ],
};
