//! `redrive webhook`.

use crate::harness::{Folder, Server, stderr, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

/// Allows addresses of this machine.
const OPEN: [(&str, &str); 2] = [("REDRIVE_WEBHOOKS_ALLOW_PRIVATE", "true"), ("REDRIVE_WEBHOOKS_ALLOW_HTTP", "true")];

/// An endpoint that answers each request with this status, until the test ends.
fn endpoint(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 64 << 10]);
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    url
}

fn added(server: &Server, url: &str) -> String {
    let args = ["webhook", "add", url, "job.cancelled", "--queue", "mail", "--description", "tests", "--json"];
    let answer = server.printed_json(&args);
    assert!(answer["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{answer}");
    answer["id"].as_str().expect("an id").to_owned()
}

/// Causes a delivery, and waits until it stands like this.
fn delivered(server: &Server, status: &str) -> String {
    let id = server.enqueue(json!({ "type": "mail.send", "args": [], "options": { "queue": "mail" } }));
    server.printed(&["job", "cancel", &id]);
    until("the delivery has ended", || {
        let listed = server.printed_json(&["webhook", "deliveries", "--status", status, "--json"]);
        listed["deliveries"][0]["id"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_webhook_is_added_tested_changed_paused_and_deleted() {
    let folder = Folder::new("webhook");
    let server = Server::start_under(&OPEN, &["--data", &folder.at("data")], &[]);
    assert!(server.printed(&["webhook", "list"]).starts_with("no subscriptions yet"));
    let url = endpoint("200 OK");
    let text = server.printed(&["webhook", "add", &url, "job.failed", "workflow.*"]);
    assert!(text.contains("is added\nsecret whsec_") && text.ends_with("It is not shown again.\n"), "{text}");
    let id = added(&server, &url);
    let listed = server.printed(&["webhook", "list"]);
    assert!(listed.contains(&id) && listed.contains("job.failed,workflow.*") && listed.contains("active"), "{listed}");
    assert_eq!(server.printed_json(&["webhook", "list", "--json"])["total"], 2);
    let shown = server.printed(&["webhook", "show", &id]);
    assert!(shown.contains(&url) && shown.contains("mail") && !shown.contains("whsec_"), "{shown}");
    assert_eq!(server.printed(&["webhook", "test", &id]), "delivered: 200\n");
    let delivery = delivered(&server, "delivered");
    let deliveries = server.printed(&["webhook", "deliveries", "--subscription", &id]);
    assert!(deliveries.contains(&delivery) && deliveries.contains("job.cancelled"), "{deliveries}");
    let change = ["webhook", "update", &id, "--event", "job.*", "--timeout", "5s", "--json"];
    let changed = server.printed_json(&change);
    assert_eq!((&changed["events"], &changed["timeout_ms"]), (&json!(["job.*"]), &json!(5_000)));
    assert_eq!(server.printed(&["webhook", "pause", &id]), format!("subscription {id} is paused\n"));
    assert!(server.printed(&["webhook", "list"]).contains("paused"));
    assert_eq!(server.printed(&["webhook", "resume", &id]), format!("subscription {id} is active\n"));
    let rotated = server.printed(&["webhook", "rotate", &id]);
    assert!(rotated.contains("has a new secret\nsecret whsec_"), "{rotated}");
    assert_eq!(server.printed(&["webhook", "drop", &delivery]), format!("delivery {delivery} is dropped\n"));
    assert_eq!(server.printed(&["webhook", "delete", &id]), format!("subscription {id} is deleted\n"));
    assert_eq!(server.printed_json(&["webhook", "list", "--json"])["total"], 1);
}

#[test]
fn dead_deliveries_are_listed_and_sent_again() {
    let folder = Folder::new("webhook-dead");
    let server = Server::start_under(&OPEN, &["--data", &folder.at("data")], &[]);
    let id = added(&server, &endpoint("410 Gone"));
    let tested = server.printed_json(&["webhook", "test", &id, "--json"]);
    assert_eq!((&tested["success"], &tested["status_code"]), (&Value::Bool(false), &json!(410)));
    let delivery = delivered(&server, "dead");
    let listed = server.printed(&["webhook", "deliveries", "--status", "dead"]);
    assert!(listed.contains(&delivery) && listed.contains("410"), "{listed}");
    assert_eq!(server.printed(&["webhook", "retry", &delivery]), format!("delivery {delivery} is sent again\n"));
}

#[test]
fn what_is_mistyped_is_refused_with_what_may_be_meant() {
    let folder = Folder::new("webhook-wrong");
    let server = Server::start(&folder.at("data"));
    for (args, code, words) in [
        (&["webhook", "add", "https://example.com/", "job.canceled"][..], 1, "job.cancelled"),
        (&["webhook", "add", "http://127.0.0.1:9/", "job.*"], 1, "webhooks.allow_http"),
        (&["webhook", "add", "https://example.com/"], 2, "<TYPE>..."),
        (&["webhook", "show", "sub_1"], 1, "`redrive webhook list`"),
        (&["webhook", "retry", "del_1"], 1, "`redrive webhook deliveries`"),
        (&["webhook", "deliveries", "--status", "ded"], 2, "'dead'"),
        (&["webhook", "lst"], 2, "'list'"),
        (&["webhok", "list"], 2, "'webhook'"),
    ] {
        let refused = server.command(args);
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(code) && said.contains(words), "{args:?}: {said}");
    }
    for (command, example) in [("webhook", "redrive webhook add https"), ("workers", "redrive workers show")] {
        let help = server.printed(&[command, "--help"]);
        assert!(help.contains("Examples:") && help.contains(example), "{help}");
    }
}
