//! Runs: started once, seen while they wait, cancelled, listed, and done by workers.

use crate::common::{Harness, text};
use crate::world::{JOB, MOCK, around, delete, get, put, retrying, returning, run, sleeping, start, started, with};
use serde_json::{Value, json};

#[tokio::test]
async fn a_run_goes_through_the_gaps_of_a_retry_and_shows_its_attempts() {
    let call = json!({ "provider": MOCK, "with": { "failure": { "code": "Payment.Down", "message": "no answer" } } });
    let harness = with(&around(&json!([retrying(2)]), &call)).await;
    let reply = start(&harness, &json!({ "definition": "order", "input": 5, "arguments": {} })).await;
    assert_eq!(reply.header("location").rsplit('/').next(), reply.body["id"].as_str());
    let first = reply.expect(201);
    assert_eq!((&first["state"], &first["input"], &first["result"]), (&json!("running"), &json!(5), &Value::Null));
    let position = &first["positions"][0];
    assert_eq!(
        (&position["flow"], &position["step"], &position["waits"]),
        (&json!(""), &json!("charge"), &json!("retry"))
    );
    let entered = &first["retries"][0];
    assert_eq!((&entered["path"], &entered["state"]), (&json!("/steps/charge/middleware/0"), &json!("waiting")));
    assert_eq!(entered["next"], json!({ "attempt": 2, "at": "2026-02-13T10:00:02.000000Z" }));
    assert_eq!(first["wakes_at"], entered["next"]["at"]);
    let attempt = &entered["attempts"][0];
    assert_eq!((&attempt["failure"]["code"], &attempt["delay_ms"]), (&json!("Payment.Down"), &json!(2000.0)));
    assert_eq!((&attempt["decision"], &attempt["policy"]), (&json!("retry"), &json!(0)));
    assert!(attempt["explanation"].as_str().expect("sentences").contains("failure 1 of its budget of 2"), "{attempt}");
    harness.advance_ms(2_000.0).await;
    let ended = run(&harness, first["id"].as_str().expect("an id")).await;
    assert_eq!((&ended["state"], &ended["ended_at"]), (&json!("failed"), &json!("2026-02-13T10:00:02.000000Z")));
    assert_eq!(ended["result"]["code"], "Provider.Middleware.Retry.Exhausted");
    let entered = &ended["retries"][0];
    assert_eq!((&entered["state"], &entered["next"]), (&json!("exhausted"), &Value::Null));
    assert_eq!((&entered["attempts"][1]["decision"], &ended["positions"]), (&json!("exhausted"), &json!([])));
}

#[tokio::test]
async fn a_request_with_an_id_starts_one_run_however_often_it_is_sent() {
    let harness = with(&returning(&json!("{{ step.input }}"))).await;
    let id = "01933fd0-0000-7000-8000-000000000000";
    let body = json!({ "definition": "order", "input": { "a": 1 }, "id": id });
    let first = start(&harness, &body).await.expect(201);
    assert_eq!((&first["id"], &first["state"]), (&json!(id), &json!("completed")));
    put(&harness, "order", &returning(&json!("other"))).await.expect(200);
    assert_eq!(start(&harness, &body).await.expect(200), first, "also after its end, and with a newer version there");
    delete(&harness, "definitions/order").await.expect(200);
    assert_eq!(start(&harness, &body).await.expect(200), first);
    for (name, value) in [("input", json!(2)), ("version", json!(2)), ("arguments", json!({ "x": 1 }))] {
        let mut other = body.clone();
        other[name] = value;
        let refused = start(&harness, &other).await.expect(409);
        assert_eq!(refused["error"]["code"], "duplicate", "{name}");
    }
    assert_eq!(get(&harness, "runs").await.expect(200)["runs"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_run_that_is_cancelled_cleans_up_first() {
    let cleanup = json!({
        "provider": "mwl:provider.middleware/mwl/finally/v1",
        "onAlways": { "with": { "call": { "provider": MOCK, "with": { "delay": "PT3S" } } } },
    });
    let call = json!({ "provider": MOCK, "with": { "delay": "PT1H" } });
    let harness = with(&around(&json!([cleanup]), &call)).await;
    let id = started(&harness).await;
    let cancelling = delete(&harness, &format!("runs/{id}")).await.expect(202);
    assert_eq!((&cancelling["state"], &cancelling["result"]), (&json!("cancelling"), &Value::Null));
    delete(&harness, &format!("runs/{id}")).await.expect(202);
    harness.advance_ms(3_000.0).await;
    let ended = run(&harness, &id).await;
    assert_eq!((&ended["state"], &ended["result"]["code"]), (&json!("cancelled"), &json!("System.Cancelled")));
    let refused = delete(&harness, &format!("runs/{id}")).await.expect(409);
    assert_eq!(refused["error"]["details"]["state"], "cancelled");
}

#[tokio::test]
async fn runs_are_listed_the_newest_first_and_by_what_they_are() {
    let harness = with(&returning(&json!(1))).await;
    put(&harness, "wait", &sleeping("PT1H")).await.expect(201);
    let failing = around(&json!([]), &json!({ "provider": MOCK, "with": { "failure": { "code": "A.B" } } }));
    put(&harness, "fails", &failing).await.expect(201);
    let mut ids = Vec::new();
    for name in ["order", "wait", "fails", "order", "wait"] {
        harness.advance_ms(1.0).await;
        ids.push(text(&start(&harness, &json!({ "definition": name })).await.expect(201)["id"]));
    }
    let listed = async |query: &str| {
        let page = get(&harness, &format!("runs?{query}")).await.expect(200);
        let runs = page["runs"].as_array().expect("a list").clone();
        let found: Vec<usize> =
            runs.iter().map(|run| ids.iter().position(|id| run["id"] == **id).expect("known")).collect();
        (found, page["next_after"].as_str().map(str::to_owned))
    };
    assert_eq!(listed("limit=5").await, (vec![4, 3, 2, 1, 0], None));
    let (page, next) = listed("limit=2").await;
    assert_eq!(page, [4, 3]);
    assert_eq!(listed(&format!("limit=5&after={}", next.expect("a cursor"))).await.0, [2, 1, 0]);
    assert_eq!(listed("state=running").await.0, [4, 1]);
    assert_eq!(listed("state=ended").await.0, [3, 2, 0]);
    assert_eq!(listed("state=failed").await.0, [2]);
    assert_eq!(listed("state=completed&definition=order").await.0, [3, 0]);
    assert_eq!(listed("definition=wait").await.0, [4, 1]);
}

#[tokio::test]
async fn a_worker_has_the_call_as_a_job_and_its_result_is_the_result() {
    let call = json!({ "provider": JOB, "with": { "type": "charge", "meta": { "tenant": "a" }, "priority": 3,
        "retry": { "max_attempts": 2, "initial_interval": "PT1S", "jitter": false } } });
    let harness = with(&around(&json!([]), &call)).await;
    let run_id =
        text(&start(&harness, &json!({ "definition": "order", "input": { "amount": 5 } })).await.expect(201)["id"]);
    let waiting = run(&harness, &run_id).await;
    let job = harness.fetch().await.expect("a job");
    assert_eq!((&job["type"], &job["args"]), (&json!("charge"), &json!([{ "amount": 5 }])));
    assert_eq!((&job["meta"]["tenant"], &job["priority"]), (&json!("a"), &json!(3)));
    assert_eq!((&waiting["positions"][0]["waits"], &waiting["positions"][0]["job_id"]), (&json!("job"), &job["id"]));
    let reply = harness.fail(&text(&job["id"])).await;
    let again = harness.run_again(&reply).await;
    assert_eq!(again["id"], job["id"], "the job has a policy of its own");
    harness.post("/workers/ack", json!({ "job_id": job["id"], "result": { "receipt": 7 } })).await.expect(200);
    let ended = run(&harness, &run_id).await;
    assert_eq!(ended["result"], json!({ "type": "success", "value": { "receipt": 7 } }));
}

#[tokio::test]
async fn a_job_that_fails_for_good_is_a_failure_in_the_words_of_its_worker() {
    let call = json!({ "provider": JOB, "with": { "type": "charge", "retry": { "max_attempts": 1 } } });
    let harness = with(&around(&json!([]), &call)).await;
    let run_id = started(&harness).await;
    let job = harness.fetch().await.expect("a job");
    let error = json!({ "type": "Declined", "code": "Payment.Declined", "message": "no money", "retryable": false });
    harness.fail_with(&text(&job["id"]), error).await;
    let ended = run(&harness, &run_id).await;
    let result = &ended["result"];
    assert_eq!((&result["type"], &result["code"]), (&json!("error"), &json!("Payment.Declined")));
    assert_eq!((&result["message"], &result["retryable"]), (&json!("no money"), &json!(false)));
    assert_eq!(result["details"]["jobId"], job["id"]);
}

#[tokio::test]
async fn what_flows_are_given_is_in_no_log() {
    let secret = "hunter2-hunter2";
    let call = json!({ "provider": JOB, "with": { "type": "charge", "meta": { "token": secret } } });
    let harness: Harness = with(&around(&json!([]), &call)).await;
    let body = json!({ "definition": "order", "input": secret, "arguments": {} });
    let id = text(&start(&harness, &body).await.expect(201)["id"]);
    start(&harness, &json!({ "definition": "order", "input": secret, "nonsense": secret })).await.expect(400);
    let history = get(&harness, &format!("runs/{id}/history")).await.expect(200);
    assert!(!history.to_string().contains(secret), "{history}");
    delete(&harness, &format!("runs/{id}")).await.expect(202);
    let logged = harness.log.lock().expect("no panic").join("\n");
    assert!(!logged.contains(secret), "{logged}");
}
