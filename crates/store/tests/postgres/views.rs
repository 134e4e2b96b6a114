//! The views for psql: they show every job as the store does.

use crate::subject::{new_schema, open, plain_client, runtime};
use crate::work::{claim, decision, failed, job, later, now};
use redrive_policy::{Computed, Disposition, Draw, Mismatch, Moment, Origin, Outcome, Reason, Span, Verdict};
use redrive_store::{
    AttemptOutcome, Decision, FailedAttempt, Job, JobId, LeaseRef, NewJob, Postgres, Redrive, Settlement, Spec, Start,
    State, Store, Token,
};
use std::sync::Arc;
use tokio_postgres::{Client, Row};

fn settle(job: &Job, report: AttemptOutcome) -> Settlement {
    Settlement { lease_ref: LeaseRef { id: job.id, token: Token::Lease(job.lease.as_ref().unwrap().token) }, report }
}

/// Enqueues a job in a queue of its own, claims it, and reports how it ended.
async fn ran(store: &Postgres, new: NewJob, report: impl FnOnce() -> AttemptOutcome) -> Job {
    store.enqueue(vec![new.clone()], now()).await.unwrap().unwrap();
    let run = store.claim(claim(&new.spec.queue, 1, 5), later(7)).await.unwrap().jobs.remove(0);
    store.settle(vec![settle(&run, report())], later(900)).await.unwrap().remove(0).unwrap();
    store.get(new.id).await.unwrap().unwrap()
}

fn error(text: &str) -> AttemptOutcome {
    let error: Arc<[u8]> = text.as_bytes().into();
    AttemptOutcome::Failed(Box::new(move |job| Decision { error: Arc::clone(&error), ..decision(job, later(900)) }))
}

/// A job whose failure is a dead letter.
fn dead_letter(job: &Job) -> Decision {
    let outcome = Outcome::Stop { reason: Reason::Unrecoverable, disposition: Disposition::DeadLetter };
    let verdict = Verdict { outcome, ..decision(job, now()).verdict };
    Decision { verdict, error: (*b"not even JSON \x00\xff").into(), ..decision(job, now()) }
}

/// One job in every state, and some more.
async fn every_state(store: &Postgres) -> Vec<JobId> {
    let new = job("scheduled");
    let spec = Spec {
        body: (*b"{\"args\":[1,{\"deep\":null}],\"meta\":{\"trace\":\"t\"}}").into(),
        expires: Some(later(90_000)),
        priority: -7,
        ..(*new.spec).clone()
    };
    let scheduled = NewJob { start: Start::Scheduled(later(5_000)), spec: Arc::new(spec), ..new };
    let pending = NewJob { start: Start::Pending, ..job("pending") };
    let (available, active, cancelled) = (job("available"), job("active"), job("cancelled"));
    let all = [&scheduled, &pending, &available, &active, &cancelled].map(Clone::clone);
    store.enqueue(all.to_vec(), now()).await.unwrap().unwrap();
    store.claim(claim("active", 1, 1), later(3)).await.unwrap();
    store.cancel(cancelled.id, later(4)).await.unwrap().unwrap();
    let mut ids: Vec<JobId> = all.iter().map(|new| new.id).collect();
    ids.push(ran(store, job("retryable"), || error("{\"type\":\"timeout\",\"message\":\"too slow\"}")).await.id);
    ids.push(ran(store, job("completed"), || AttemptOutcome::Done(Some((*b"{\"sum\":3}").into()))).await.id);
    ids.push(ran(store, job("dead"), || AttemptOutcome::Failed(Box::new(dead_letter))).await.id);
    let redriven = ran(store, job("redriven"), || AttemptOutcome::Failed(Box::new(dead_letter))).await.id;
    store.redrive(redriven, Redrive::default(), later(2_000)).await.unwrap().unwrap();
    let again = store.claim(claim("redriven", 1, 6), later(2_001)).await.unwrap().jobs.remove(0);
    store.settle(vec![settle(&again, failed(later(2_002)))], later(2_002)).await.unwrap().remove(0).unwrap();
    ids.push(redriven);
    ids
}

async fn row(client: &Client, schema: &str, id: JobId) -> Row {
    let us = |name: &str| format!("(extract(epoch FROM {name}) * 1000000)::bigint AS {name}");
    let times = ["created_at", "available_at", "due_at", "started_at", "lease_until", "finished_at", "expires_at"];
    let sql = format!(
        "SELECT queue, type, state, dead_letter, priority, attempt, max_attempts, generation, worker, args::text, \
         meta::text, result::text, last_error, {} FROM {schema}.jobs WHERE id = '{id}'",
        times.map(us).join(", ")
    );
    client.query_one(&sql, &[]).await.unwrap()
}

#[test]
fn the_view_of_jobs_says_what_the_store_says_in_every_state() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let ids = every_state(&store).await;
        let client = plain_client().await;
        let mut states = Vec::new();
        for id in &ids {
            let job = store.get(*id).await.unwrap().unwrap();
            let row = row(&client, &schema, *id).await;
            let text = |name: &str| row.get::<_, Option<String>>(name);
            let time = |name: &str| row.get::<_, Option<i64>>(name).map(Moment::from_micros);
            assert_eq!(text("queue").as_deref(), Some(&*job.spec.queue));
            assert_eq!(text("type").as_deref(), Some("work"));
            assert_eq!(text("state").as_deref(), Some(job.state.name()));
            assert_eq!(
                (row.get::<_, bool>("dead_letter"), row.get::<_, i32>("priority")),
                (job.dead, job.spec.priority)
            );
            assert_eq!(row.get::<_, i64>("attempt"), i64::from(job.attempt));
            assert_eq!(row.get::<_, Option<i64>>("max_attempts"), Some(3));
            assert_eq!(row.get::<_, i64>("generation"), i64::from(job.generation));
            assert_eq!(time("created_at"), Some(job.times.created));
            assert_eq!((time("available_at"), time("due_at")), (job.times.available, job.due), "{job:?}");
            assert_eq!((time("started_at"), time("finished_at")), (job.times.started, job.times.finished));
            assert_eq!(time("lease_until"), job.lease.as_ref().map(|lease| lease.until));
            assert_eq!(time("expires_at"), job.spec.expires);
            let holder = job.lease.as_ref().map(|lease| &lease.worker).or(job.completed_by.as_ref());
            assert_eq!(text("worker").as_deref(), holder.map(|worker| &**worker), "{job:?}");
            let result = job.result.as_ref().map(|result| String::from_utf8_lossy(result).replace(':', ": "));
            assert_eq!(text("result"), result);
            states.push(job.state);
            if job.state == State::Scheduled {
                assert_eq!(text("args").as_deref(), Some("[1, {\"deep\": null}]"));
                assert_eq!(text("meta").as_deref(), Some("{\"trace\": \"t\"}"));
            }
            match job.failures.last() {
                None => assert_eq!(text("last_error"), None),
                Some(run) if run.error.starts_with(b"{") => assert_eq!(text("last_error").as_deref(), Some("too slow")),
                Some(run) if run.error.starts_with(b"not") => {
                    assert_eq!(text("last_error").as_deref(), Some("not even JSON \\000\\377"));
                }
                Some(_) => assert_eq!(text("last_error").as_deref(), Some("\"boom\"")),
            }
        }
        assert!(State::ALL.iter().all(|state| states.contains(state)), "{states:?}");
        let whole = client.query(&format!("SELECT * FROM {schema}.jobs"), &[]).await.unwrap();
        assert_eq!(whole.len(), ids.len());
    });
}

/// One verdict of every kind.
fn verdicts() -> Vec<Verdict> {
    let span = Span::saturating_ms(0.1 + 0.2);
    let computed = |capped_at, draw| Origin::Backoff(Computed { retry: 300, raw: span, capped_at, draw, delay: span });
    let draw = Some(Draw::from_bits(9));
    let origins =
        [computed(None, None), computed(Some(span), draw), computed(None, draw), Origin::Override, Origin::Requeue];
    let delays = [0.0, 1.0, 1_234.5, 1e9, 0.001].map(Span::saturating_ms);
    let retries = origins.into_iter().zip(delays).map(|(origin, delay)| Outcome::Retry { delay, origin });
    let mut reasons = vec![
        Reason::MaxAttempts { limit: 500 },
        Reason::MaxElapsed { limit: span, elapsed: span, delay: Some(span) },
        Reason::MaxElapsed { limit: span, elapsed: span, delay: None },
        Reason::Unmatched,
        Reason::Handler,
        Reason::Unrecoverable,
        Reason::RetriesDisabled,
        Reason::Pruned,
    ];
    let mismatches = [Mismatch::Excluded { entry: 300 }, Mismatch::NotIncluded, Mismatch::Permanent];
    reasons.extend(mismatches.map(Reason::NonRetryable));
    let dispositions = [Disposition::Discard, Disposition::DeadLetter, Disposition::Fail];
    let stops = reasons.into_iter().zip(dispositions.into_iter().cycle());
    let outcomes = retries.chain(stops.map(|(reason, disposition)| Outcome::Stop { reason, disposition }));
    (0..)
        .zip(outcomes)
        .map(|(index, outcome)| Verdict { attempt: 1, rule: (index > 0).then_some(index), outcome })
        .collect()
}

/// The word of an enumeration in JSON.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap();
    value.as_str().or_else(|| value["name"].as_str()).unwrap().to_owned()
}

fn assert_attempt(row: &Row, id: JobId, run: &FailedAttempt) {
    assert_eq!(row.get::<_, uuid::Uuid>("job").into_bytes(), id.to_bytes());
    assert_eq!(
        (row.get::<_, i64>("generation"), row.get::<_, i64>("attempt")),
        (run.generation.into(), run.attempt.into())
    );
    let times = ["available", "started", "failed"].map(|name| row.get::<_, i64>(name));
    assert_eq!(times, [run.available, run.started, run.at].map(Moment::micros));
    assert_eq!(row.get::<_, String>("worker"), *run.worker);
    let (delay, reason, disposition) = match &run.verdict.outcome {
        Outcome::Retry { delay, .. } => (Some(delay.ms()), None, None),
        Outcome::Stop { reason, disposition } => (None, Some(word(reason)), Some(word(disposition))),
    };
    assert_eq!(row.get::<_, Option<f64>>("delay_ms"), delay);
    assert_eq!(row.get::<_, String>("verdict"), if delay.is_some() { "retry" } else { "stop" });
    assert_eq!((row.get("reason"), row.get("disposition")), (reason, disposition), "{run:?}");
}

#[test]
fn the_view_of_attempts_says_what_was_decided_and_why() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let client = plain_client().await;
        let sql = format!(
            "SELECT job, generation, attempt, worker, verdict, delay_ms, reason, disposition, error_type, error_message, \
             (extract(epoch FROM available_at) * 1000000)::bigint AS available, \
             (extract(epoch FROM started_at) * 1000000)::bigint AS started, \
             (extract(epoch FROM failed_at) * 1000000)::bigint AS failed \
             FROM {schema}.attempts WHERE job = $1 ORDER BY failed_at"
        );
        let mut seen = 0;
        for verdict in verdicts() {
            let decided = move |job: &Job| Decision {
                verdict,
                error: (*b"{\"code\":\"E7\",\"message\":\"no\"}").into(),
                ..decision(job, later(900))
            };
            let job = ran(&store, job("q"), || AttemptOutcome::Failed(Box::new(decided))).await;
            let rows = client.query(&sql, &[&uuid::Uuid::from_bytes(job.id.to_bytes())]).await.unwrap();
            // A run that was requeued or pruned has not failed, and is not stored.
            assert_eq!(rows.len(), job.failures.len());
            for (row, run) in rows.iter().zip(&job.failures) {
                assert_attempt(row, job.id, run);
                let message = ["error_type", "error_message"].map(|name| row.get::<_, String>(name));
                assert_eq!(message, ["E7", "no"]);
                seen += 1;
            }
            store.remove(job.id).await.unwrap().ok();
            store.cancel(job.id, later(901)).await.unwrap().ok();
        }
        assert!(seen >= verdicts().len() - 2, "{seen} verdicts were seen");
        for id in every_state(&store).await {
            let job = store.get(id).await.unwrap().unwrap();
            let rows = client.query(&sql, &[&uuid::Uuid::from_bytes(id.to_bytes())]).await.unwrap();
            assert_eq!(rows.len(), job.failures.len());
            rows.iter().zip(&job.failures).for_each(|(row, run)| assert_attempt(row, id, run));
        }
    });
}

#[test]
fn damaged_rows_and_rows_of_other_versions_fail_no_view() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let ids = every_state(&store).await;
        let client = plain_client().await;
        let cut = "substring(rests[1] FOR (octet_length(rests[1]) * random())::integer)";
        for damage in [
            "UPDATE live SET rest = set_byte(rest, 0, 9)",
            "UPDATE claims SET rests[1] = set_byte(rests[1], 0, 9)",
            "UPDATE claims SET rests[1] = substring(rests[1] FOR 15), failures = '{\"\\\\x0105\"}'",
            &format!("UPDATE ended SET rests[1] = {cut}, failures[1] = substring(failures[1] FOR 20)"),
            "UPDATE live SET rest = '', failures = '\\x02'",
            "UPDATE specs SET body = '{', own_policy = '\\xff'",
        ] {
            client.batch_execute(&format!("SET search_path = {schema}; {damage}; RESET search_path")).await.unwrap();
            let jobs = client.query(&format!("SELECT * FROM {schema}.jobs"), &[]).await.unwrap();
            assert_eq!(jobs.len(), ids.len());
            client.query(&format!("SELECT * FROM {schema}.attempts"), &[]).await.unwrap();
        }
    });
}

/// The views show times without the step of the database's clock, too.
#[test]
fn views_show_times_by_the_wall_clock_of_the_database() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let new = job("q");
        store.enqueue(vec![new.clone()], now()).await.unwrap().unwrap();
        let client = plain_client().await;
        client.batch_execute(&format!("UPDATE {schema}.clock SET offset_us = 3000000")).await.unwrap();
        let created = row(&client, &schema, new.id).await.get::<_, i64>("created_at");
        assert_eq!(created, now().micros() - 3_000_000);
    });
}

#[test]
fn a_role_that_may_only_read_the_views_reads_them_and_nothing_else() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let ids = every_state(&store).await;
        let client = plain_client().await;
        let role = format!("reader_{schema}");
        let set_up = format!(
            "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; \
             GRANT SELECT ON {schema}.jobs, {schema}.attempts, {schema}.queues TO {role}; SET ROLE {role}"
        );
        client.batch_execute(&set_up).await.unwrap();
        assert_eq!(client.query(&format!("SELECT * FROM {schema}.jobs"), &[]).await.unwrap().len(), ids.len());
        assert!(!client.query(&format!("SELECT * FROM {schema}.attempts"), &[]).await.unwrap().is_empty());
        assert!(!client.query(&format!("SELECT * FROM {schema}.queues"), &[]).await.unwrap().is_empty());
        for forbidden in ["SELECT * FROM live", "SELECT * FROM claims", "SELECT * FROM specs", "DELETE FROM ended"] {
            let sql = forbidden.replace("FROM ", &format!("FROM {schema}."));
            let denied = client.query(&sql, &[]).await.expect_err(&sql);
            assert_eq!(denied.code().map(|code| code.code()), Some("42501"), "{sql}: {denied}");
        }
        client.batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
    });
}

#[test]
fn one_job_among_many_is_found_by_index() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let ids = every_state(&store).await;
        let client = plain_client().await;
        let many = format!(
            "SET search_path = {schema}; \
             CREATE TEMP TABLE more AS SELECT gen_random_uuid() AS id FROM generate_series(1, 20000); \
             INSERT INTO specs (id, kind, body, policy, source) SELECT more.id, kind, body, policy, 100 FROM more, \
               (SELECT * FROM specs LIMIT 1) s; \
             INSERT INTO live SELECT more.id, 0, NULL, NULL, queue, 0, 2, rest FROM more, \
               (SELECT * FROM live WHERE state = 2 LIMIT 1) l; \
             INSERT INTO specs (id, kind, body, policy, source) SELECT more.id, kind, body, policy, 1000 + more.no \
               FROM (SELECT gen_random_uuid() AS id, no FROM generate_series(1, 10000) AS n (no)) more, \
               (SELECT * FROM specs LIMIT 1) s; \
             INSERT INTO claims (source, due_us, alive_us, lease_us, queue, priority, version, gone, ids, rests) \
               SELECT s.source, due_us, alive_us, lease_us, queue, priority, version, gone, ARRAY[s.id], rests \
               FROM specs s, claims WHERE s.source BETWEEN 1001 AND 6000; \
             INSERT INTO ended (source, finished_us, queue, priority, bytes, state, jobs, dead, ids, rests) \
               SELECT s.source, finished_us, queue, priority, 0, state, 1, false, ARRAY[s.id], rests \
               FROM specs s, (SELECT * FROM ended LIMIT 1) o WHERE s.source BETWEEN 6001 AND 11000; \
             ANALYZE live, specs, ended, claims; RESET search_path"
        );
        client.batch_execute(&many).await.unwrap();
        let active: JobId = ids[3];
        assert_eq!(row(&client, &schema, active).await.get::<_, String>("state"), "active");
        for (view, column) in [("jobs", "id"), ("attempts", "job")] {
            let sql = format!("EXPLAIN SELECT * FROM {schema}.{view} WHERE {column} = '{active}'");
            let plan: Vec<String> = client.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            assert!(plan.contains("live_id"), "{plan}");
            assert!(plan.contains("claims_pkey") && plan.contains("ended_source"), "{plan}");
            assert!(!plan.contains("Seq Scan on live") && !plan.contains("Seq Scan on specs"), "{plan}");
        }
    });
}
