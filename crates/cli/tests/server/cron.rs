//! `redrive cron`.

use crate::harness::{Folder, Server, stderr};
use serde_json::json;

#[test]
fn schedules_are_registered_shown_changed_and_deleted() {
    let folder = Folder::new("cron");
    let server = Server::start(&folder.at("data"));
    assert!(server.printed(&["cron", "list"]).starts_with("no schedules yet"));
    let added = server.printed(&["cron", "add", "report", "0 9 * * MON-FRI", "report.make", "\"daily\"", "7"]);
    assert!(added.starts_with("schedule report is due in "), "{added}");
    let more = ["--timezone", "Europe/Berlin", "--overlap", "cancel-previous", "--queue", "slow", "--priority", "-5"];
    let add = ["cron", "add", "report", "@monthly", "report.make"];
    let taken = server.command(&[&add[..], &more].concat());
    assert_eq!(taken.status.code(), Some(1));
    assert!(stderr(&taken).contains("exists already") && stderr(&taken).contains("--replace"), "{}", stderr(&taken));
    server.printed(&[&add[..], &more, &["--replace"]].concat());
    let shown = server.printed_json(&["cron", "show", "report", "--json"]);
    let expected = json!({
        "name": "report", "cron": "@monthly", "type": "report.make", "args": [], "timezone": "Europe/Berlin",
        "overlap_policy": "cancel_previous", "options": { "queue": "slow", "priority": -5 }, "status": "active",
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&shown[key], value, "{key} of {shown}");
    }
    assert!(server.printed(&["cron", "show", "report"]).contains("@monthly"));
    assert_eq!(server.printed(&["cron", "pause", "report"]), "schedule report is paused\n");
    assert!(server.printed(&["cron", "list"]).contains("paused"));
    assert_eq!(server.printed(&["cron", "resume", "report"]), "schedule report is active\n");
    assert_eq!(server.printed(&["cron", "delete", "report"]), "schedule report is deleted\n");
    let missing = server.command(&["cron", "show", "report"]);
    assert_eq!(missing.status.code(), Some(1), "{}", stderr(&missing));
    let wrong = server.command(&["cron", "add", "report", "99 * * * *", "report.make"]);
    assert!(stderr(&wrong).contains("the minute: found \"99\"; allowed is 0 to 59"), "{}", stderr(&wrong));
}

#[test]
fn a_schedule_is_due_on_a_running_server() {
    let folder = Folder::new("cron-due");
    let server = Server::start(&folder.at("data"));
    server.printed(&["cron", "add", "often", "* * * * * *", "report.make", "--overlap", "allow"]);
    // The worker is woken by the slot: it neither sleeps nor asks again.
    let fetch = json!({ "queues": ["default"], "worker_id": "tester", "wait_ms": 10_000 });
    let fetched = server.ask("POST", "/ojs/v1/workers/fetch", fetch);
    assert_eq!(fetched["jobs"][0]["type"], "report.make", "{fetched}");
    assert!(server.printed_json(&["cron", "show", "often", "--json"])["run_count"].as_u64() >= Some(1));
}
