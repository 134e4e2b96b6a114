//! Dead letters.

use crate::api_error::Code::{Conflict, Duplicate, NotFound, ValidationError};
use crate::openapi::operation::{Group, delete, get, post};

pub(super) const DEAD_LETTERS: Group = Group {
    name: "Dead letters",
    about: "Jobs whose retries are exhausted: list, redrive, delete; one by one or by filter.",
    operations: &[
        get("/ojs/v1/dead-letter", "Dead letters, the latest first").gives(&[(200, "DeadLetterPage")]),
        delete("/ojs/v1/dead-letter", "Delete many dead letters")
            .about("The order is in the body, or in the query for clients that send no body with a DELETE.")
            .may_take("BulkOrder")
            .gives(&[(200, "BulkAnswer")]),
        get("/ojs/v1/dead-letter/stats", "Dead letters in numbers").gives(&[(200, "DeadLetterStats")]),
        post("/ojs/v1/dead-letter/retry", "Redrive many dead letters")
            .may_take("BulkOrder")
            .gives(&[(200, "BulkAnswer")]),
        get("/ojs/v1/dead-letter/{id}", "A dead letter, and why it died")
            .gives(&[(200, "ShownJob")])
            .fails(&[NotFound]),
        delete("/ojs/v1/dead-letter/{id}", "Delete a dead letter")
            .gives(&[(200, "DeletedJob")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/dead-letter/{id}/retry", "Redrive a dead letter")
            .may_take("RedriveOrder")
            .gives(&[(200, "RedrivenJob")])
            .fails(&[NotFound, Conflict, Duplicate, ValidationError]),
        get("/ojs/v1/admin/dead-letter", "Dead letters by numbered pages").gives(&[(200, "JobItems")]),
        delete("/ojs/v1/admin/dead-letter", "Delete many dead letters, or those before a time")
            .may_take("BulkOrderOlder")
            .gives(&[(200, "BulkAnswer")]),
        get("/ojs/v1/admin/dead-letter/stats", "Dead letters in numbers").gives(&[(200, "DeadLetterStats")]),
        get("/ojs/v1/admin/dead-letter/{id}", "A dead letter, and why it died")
            .gives(&[(200, "ShownJob")])
            .fails(&[NotFound]),
        delete("/ojs/v1/admin/dead-letter/{id}", "Delete a dead letter")
            .gives(&[(204, "")])
            .fails(&[NotFound, Conflict]),
        post("/ojs/v1/admin/dead-letter/{id}/retry", "Redrive a dead letter")
            .may_take("RedriveOrder")
            .gives(&[(200, "RedrivenJob")])
            .fails(&[NotFound, Conflict, Duplicate, ValidationError]),
    ],
};
