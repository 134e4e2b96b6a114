//! Jobs in the transactions of applications, drained by real servers.

use crate::app::{App, address, new_schema};
use crate::harness::{Server, redrive, stderr, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn node(schema: &str) -> Server {
    Server::start_at(&["--store", &address(schema)], &[])
}

/// Arguments that both HTTP and the function accept, or both refuse: type, args, options.
const CASES: &[(&str, &str, &str)] = &[
    ("a", "[]", "{}"),
    ("email.send-now.x_1", "[{\"deep\": [1, null, \"ü\"]}]", "{\"queue\": \"reports.eu-1\", \"priority\": -3}"),
    ("a", "[]", "{\"priority\": 3.0, \"timeout_ms\": 5, \"timeout\": 1.5, \"tags\": [\"x\"], \"pending\": true}"),
    ("a", "[]", "{\"scheduled_at\": \"+PT2H\", \"expires_at\": \"2035-02-13T10:00:00.5+01:00\"}"),
    ("a", "[]", "{\"delay_until\": \"2035-02-13t10:00:00z\", \"visibility_timeout\": \"PT30S\"}"),
    ("a", "[]", "{\"visibility_timeout\": 30, \"unknown\": {\"stored\": true}}"),
    (
        "a",
        "[]",
        "{\"retry\": {\"max_attempts\": 0, \"initial_interval\": \"P1DT2H3M4.5S\", \"max_interval\": \"P2D\"}}",
    ),
    (
        "a",
        "[]",
        "{\"retry\": {\"jitter\": false, \"non_retryable_errors\": [\"x.*\"], \"on_exhaustion\": \"dead_letter\"}}",
    ),
    ("a", "[]", "{\"retry_policy\": {\"backoff_coefficient\": 1, \"backoff_strategy\": \"linear\"}}"),
    ("a", "[]", "{\"retry\": {\"dialect\": \"exosphere\", \"policy\": {\"max_retries\": 2}}}"),
    ("A", "[]", "{}"),
    ("a..b", "[]", "{}"),
    ("a.1", "[]", "{}"),
    ("", "[]", "{}"),
    ("a b", "[]", "{}"),
    ("a", "{}", "{}"),
    ("a", "null", "{}"),
    ("a", "[]", "[]"),
    ("a", "[]", "{\"queue\": \"Mail\"}"),
    ("a", "[]", "{\"queue\": null}"),
    ("a", "[]", "{\"queue\": \"-x\"}"),
    ("a", "[]", "{\"priority\": 1.5}"),
    ("a", "[]", "{\"priority\": \"1\"}"),
    ("a", "[]", "{\"priority\": 3000000000}"),
    ("a", "[]", "{\"priority\": 100, \"visibility_timeout_ms\": 100}"),
    ("a", "[]", "{\"priority\": 101}"),
    ("a", "[]", "{\"priority\": -101}"),
    ("a", "[]", "{\"visibility_timeout_ms\": 99}"),
    ("a", "[]", "{\"visibility_timeout\": 0.0000001}"),
    ("a", "[]", "{\"timeout\": 1e300}"),
    ("a", "[]", "{\"expires_at\": \"2026-01-01T00:00:00Z\"}"),
    ("a", "[]", "{\"expires_at\": \"+PT1H\"}"),
    ("a", "[]", "{\"timeout_ms\": 0}"),
    ("a", "[]", "{\"timeout\": -1}"),
    ("a", "[]", "{\"visibility_timeout\": \"30s\"}"),
    ("a", "[]", "{\"scheduled_at\": \"tomorrow\"}"),
    ("a", "[]", "{\"scheduled_at\": \"PT2H\"}"),
    ("a", "[]", "{\"scheduled_at\": \"+P\"}"),
    ("a", "[]", "{\"expires_at\": \"2035-02-13\"}"),
    ("a", "[]", "{\"tags\": [1]}"),
    ("a", "[]", "{\"tags\": \"x\"}"),
    ("a", "[]", "{\"pending\": 1}"),
    ("a", "[]", "{\"idempotency_key\": \"\"}"),
    ("a", "[]", "{\"idempotency_key\": 7}"),
    ("a", "[]", "{\"max_attempts\": 3}"),
    ("a", "[]", "{\"retry\": []}"),
    ("a", "[]", "{\"retry\": {\"max_attempts\": -1}}"),
    ("a", "[]", "{\"retry\": {\"max_attempts\": 1.5}}"),
    ("a", "[]", "{\"retry\": {\"initial_interval\": \"PT\"}}"),
    ("a", "[]", "{\"retry\": {\"initial_interval\": \"P1W\"}}"),
    ("a", "[]", "{\"retry\": {\"initial_interval\": 5}}"),
    ("a", "[]", "{\"retry\": {\"backoff_coefficient\": 0.5}}"),
    ("a", "[]", "{\"retry\": {\"jitter\": \"full\"}}"),
    ("a", "[]", "{\"retry\": {\"on_exhaustion\": \"drop\"}}"),
    ("a", "[]", "{\"retry\": {\"backoff_type\": \"quadratic\"}}"),
    ("a", "[]", "{\"retry\": {\"attempts\": 3}}"),
];

/// A reason without the values that were found: `jsonb` writes numbers in another way, and the time is another one.
fn rule(reason: &str) -> String {
    reason.split(": found ").map(|part| part.split_once("; allowed").map_or(part, |(_, allowed)| allowed)).collect()
}

/// The function refuses what has the wrong shape. A node refuses everything else, for the reasons of the HTTP API, and
/// nothing that is valid waits for it.
#[test]
fn a_job_by_sql_is_taken_or_refused_as_it_is_by_the_http_api() {
    let schema = new_schema();
    let (server, app) = (node(&schema), App::connect());
    let large = format!("[\"{}\"]", "x".repeat(600_000));
    let every = "{\"queue\": \"my queue\", \"priority\": 1.5, \"retry\": {\"jitter\": 1}}";
    let (mut at_once, mut taken, mut set_aside) = (0, Vec::new(), BTreeMap::new());
    for (kind, args, options) in CASES.iter().chain(&[("a", &*large, "{}"), ("No", "[]", every)]) {
        let body = format!("{{\"type\": {}, \"args\": {args}, \"options\": {options}}}", json!(kind));
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let (status, answer) = server.call("POST", "/ojs/v1/jobs", &body).expect("an answer");
        let by_sql = app.ask(&format!("SELECT {schema}.enqueue('{kind}', '{args}', options => '{options}')::text"));
        match by_sql.map(|row| row.get::<_, String>(0)) {
            Ok(id) if status < 300 => taken.push(id),
            Ok(id) => drop(set_aside.insert(id, answer["error"]["message"].as_str().expect("a message").to_owned())),
            Err(error) => {
                assert!(status >= 300, "{kind} {args} {options}: {answer} {error:?}");
                at_once += 1;
            }
        }
    }
    assert!(at_once == 3 && taken.len() >= 10 && set_aside.len() > 30, "{at_once} {taken:?} {set_aside:?}");
    let waiting = format!("SELECT count(*) FROM {schema}.inbox WHERE refused_us IS NULL");
    until("the inbox is drained", || (app.count(&waiting) == 0).then_some(()));
    let reasons = format!("SELECT coalesce(json_object_agg(id, reason), '{{}}')::text FROM {schema}.inbox");
    let reasons: BTreeMap<String, String> = serde_json::from_str(&app.text(&reasons)).expect("JSON");
    let rules = |of: &BTreeMap<String, String>| of.iter().map(|(id, why)| (id.clone(), rule(why))).collect::<Vec<_>>();
    assert_eq!(rules(&reasons), rules(&set_aside));
    for id in &taken {
        assert_eq!(server.call("GET", &format!("/ojs/v1/jobs/{id}"), &Value::Null).expect("an answer").0, 200, "{id}");
    }
    for parts in [
        &["600004 bytes", "524288 bytes"][..],
        &["/type", "\"No\"", "/options/queue", "\"my queue\"", "/options/priority", "1.5", "/options/retry/jitter"],
    ] {
        let lists = |reason: &&String| parts.iter().all(|part| reason.contains(part));
        assert_eq!(reasons.values().filter(lists).count(), 1, "{parts:?} in {reasons:?}");
    }
}

#[test]
fn a_committed_job_runs_on_any_node_with_its_options_and_a_rolled_back_one_never_does() {
    let schema = new_schema();
    let (first, second, app) = (node(&schema), node(&schema), App::connect());
    app.run(&format!("CREATE TABLE {schema}.orders (id integer)"));
    app.run(&format!("BEGIN; INSERT INTO {schema}.orders VALUES (1)"));
    let rolled_back = app.text(&format!("SELECT {schema}.enqueue('order.ship', '[1]', 'orders')::text"));
    app.run("ROLLBACK");

    let waiting = json!({ "queues": ["orders"], "worker_id": "tester", "wait_ms": 30_000 });
    let (id, taken) = std::thread::scope(|scope| {
        let fetch = scope.spawn(|| second.ask("POST", "/ojs/v1/workers/fetch", waiting.clone()));
        app.run(&format!("BEGIN; INSERT INTO {schema}.orders VALUES (2);"));
        let call = "enqueue('order.ship', '[2, {\"gift\": true}]', 'orders', '{\"retry\": {\"max_attempts\": 7}, \"priority\": 4}', '{\"trace\": \"t\"}')";
        let id = app.text(&format!("SELECT {schema}.{call}::text"));
        app.run("COMMIT");
        (id, fetch.join().expect("no panic")["jobs"][0].take())
    });
    assert_eq!((&taken["id"], &taken["args"]), (&json!(id), &json!([2, { "gift": true }])));
    assert_eq!(
        (&taken["priority"], &taken["max_attempts"], &taken["meta"]["trace"]),
        (&json!(4), &json!(7), &json!("t"))
    );
    first.succeed(&taken);
    assert_eq!(second.state(&id), "completed");
    let (status, _) = first.call("GET", &format!("/ojs/v1/jobs/{rolled_back}"), &Value::Null).expect("an answer");
    assert_eq!(status, 404);
    assert_eq!(app.count(&format!("SELECT count(*) FROM {schema}.orders")), 1);
}

#[test]
fn entries_that_a_server_refuses_are_listed_with_the_reason_and_can_be_repaired() {
    let schema = new_schema();
    let (server, app) = (node(&schema), App::connect());
    let options = "{\"retry\": {\"initial_interval\": \"PT10M\"}}";
    let bad = app.text(&format!("SELECT {schema}.enqueue('a', options => '{options}')::text"));
    let good = app.text(&format!("SELECT {schema}.enqueue('a')::text"));
    until("the good one is taken", || {
        (server.call("GET", &format!("/ojs/v1/jobs/{good}"), &Value::Null).ok()?.0 == 200).then_some(())
    });
    until("the bad one is set aside", || server.log_lines().iter().any(|line| line.contains(&bad)).then_some(()));
    let inbox = |more: &[&str]| {
        let output =
            redrive(&[&["store", "inbox", &address(&schema), "--json"], more].concat()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let listed = inbox(&[]);
    assert_eq!((&listed["waiting"], &listed["refused"], &listed["jobs"][0]["id"]), (&json!(0), &json!(1), &json!(bad)));
    let reason = listed["jobs"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("/options/retry") && reason.contains("max_interval"), "{reason}");

    let copied = redrive(&["store", "copy", &address(&schema), "nowhere"]).output().expect("it runs");
    assert_eq!(copied.status.code(), Some(3), "a server has the store: {}", stderr(&copied));

    app.run(&format!("UPDATE {schema}.inbox SET document = document #- '{{options,retry}}'"));
    assert_eq!(inbox(&["--again", &bad])["changed"], json!([bad]));
    until("it is a job now", || {
        (server.call("GET", &format!("/ojs/v1/jobs/{bad}"), &Value::Null).ok()?.0 == 200).then_some(())
    });
    assert_eq!(inbox(&[])["refused"], 0);

    app.run(&format!("SELECT {schema}.enqueue('a', options => '{options}')"));
    until("another is set aside", || (inbox(&[])["refused"] == 1).then_some(()));
    server.stop();
    let refused = redrive(&["store", "copy", &address(&schema), "nowhere"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("1 that were set aside"), "{}", stderr(&refused));
    assert_eq!(inbox(&["--drop", "all"])["changed"].as_array().map(Vec::len), Some(1));
}

/// Nodes are killed while an application continues: every order has exactly one job.
#[test]
fn nodes_that_are_killed_neither_lose_nor_double_what_was_committed() {
    const ORDERS: i64 = 1_000;
    let schema = new_schema();
    let (mut first, second, app) = (node(&schema), node(&schema), App::connect());
    app.run(&format!("CREATE TABLE {schema}.orders (id integer, job uuid)"));
    for order in 0..ORDERS {
        let insert =
            format!("INSERT INTO {schema}.orders SELECT {order}, {schema}.enqueue('ship', '[{order}]', 'orders')");
        // Every third transaction is rolled back.
        app.run(&if order % 3 == 0 { format!("BEGIN; {insert}; ROLLBACK") } else { insert });
        if order % 200 == 199 {
            first.kill();
            first = node(&schema);
        }
    }
    until("the inbox is drained", || (app.count(&format!("SELECT count(*) FROM {schema}.inbox")) == 0).then_some(()));
    let orders = app.count(&format!("SELECT count(*) FROM {schema}.orders"));
    assert!((600..700).contains(&orders), "{orders}");
    let same = format!(
        "SELECT count(*) FROM {schema}.orders o FULL JOIN {schema}.specs s ON s.id = o.job WHERE o.job IS NULL OR s.id IS NULL"
    );
    assert_eq!(app.count(&same), 0, "an order without its job, or a job without its order");
    let jobs = second.fetch("orders", 1_000);
    assert_eq!(jobs.len() as i64, orders);
}
