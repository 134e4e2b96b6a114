//! The load: clients that enqueue, work on and cancel jobs until the server is gone.

use crate::ledger::{Acknowledged, JobPlan, LEASE, Ledger, message_of, text};
use crate::target::{Gone, Reply, Target};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const QUEUE: &str = "crash";

/// What all threads of a round share.
pub(crate) struct Load<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) ledger: &'a Mutex<Ledger>,
    /// Set when the threads are to end by themselves.
    pub(crate) enough: &'a AtomicBool,
    pub(crate) batches: &'a AtomicU64,
}

impl Load<'_> {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no thread panicked")
    }

    fn ask(&self, agent: &ureq::Agent, method: &str, path: &str, body: &Value) -> Result<Reply, Gone> {
        self.target.ask(agent, method, path, body)
    }

    fn is_enough(&self) -> bool {
        self.enough.load(Ordering::SeqCst)
    }

    /// Enqueues jobs, one by one and in batches, at most `most` requests.
    pub(crate) fn enqueue(&self, mut random: fastrand::Rng, most: usize) -> Result<(), Gone> {
        let agent = agent();
        for _ in 0..most {
            let size = if random.bool() { 1 } else { random.usize(2..12) };
            let batch = self.batches.fetch_add(1, Ordering::Relaxed);
            let plans: Vec<(String, JobPlan)> = (0..size).map(|_| (new_id(&mut random), plan(&mut random))).collect();
            let mut documents: Vec<Value> = plans.iter().map(|(id, plan)| document(id, plan)).collect();
            for (id, plan) in &plans {
                self.ledger().sent(id, *plan, batch);
            }
            let (path, body) = match documents.pop() {
                Some(single) if documents.is_empty() => ("/ojs/v1/jobs", single),
                last => {
                    ("/ojs/v1/jobs/batch", json!({ "jobs": documents.into_iter().chain(last).collect::<Vec<_>>() }))
                }
            };
            if self.sent_until_answered(&agent, path, &body)? {
                plans.iter().for_each(|(id, _)| self.ledger().created(id));
            }
            if self.is_enough() {
                break;
            }
        }
        Ok(())
    }

    /// Sends jobs until they are acknowledged; returns false if the outcome stays unknown.
    fn sent_until_answered(&self, agent: &ureq::Agent, path: &str, body: &Value) -> Result<bool, Gone> {
        let mut before = 0;
        while before == 0 || !self.is_enough() {
            match self.ask(agent, "POST", path, body)? {
                Some((201, _)) => return Ok(true),
                // Ids are used once: an earlier request without an answer was carried out.
                Some((409, _)) if before > 0 => return Ok(true),
                Some((status, answer)) => panic!("{path}: {status} {answer}"),
                None => before += 1,
            }
        }
        Ok(false)
    }

    /// Claims and settles jobs, one by one and in batches; sometimes it forgets one for a while.
    pub(crate) fn work(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        while !self.is_enough() {
            let many = random.bool();
            let count = if many { random.usize(1..20) } else { 1 };
            let lease_ms = LEASE.as_millis() as u64;
            let body = json!({
                "queues": [QUEUE], "count": count, "worker_id": "crash", "visibility_timeout_ms": lease_ms, "wait_ms": 20,
            });
            let asked = Instant::now();
            // A job that was claimed without a response comes back when its lease ends.
            let Some((status, answer)) = self.ask(&agent, "POST", "/ojs/v1/workers/fetch", &body)? else { continue };
            assert_eq!(status, 200, "{answer}");
            let jobs = answer["jobs"].as_array().expect("jobs");
            jobs.iter().for_each(|job| self.ledger().fetched(job, asked));
            let ends: Vec<End> = jobs.iter().filter(|_| random.u8(..100) < 95).map(|job| self.end_of(job)).collect();
            self.report(&agent, &ends, many)?;
        }
        Ok(())
    }

    /// Repeats the reports of earlier rounds that had no answer or were never sent.
    pub(crate) fn report_missing(&self) -> Result<(), Gone> {
        let agent = agent();
        let mut ends = Vec::new();
        for (id, entry) in &self.ledger().jobs {
            let open = entry.runs.last().filter(|run| !matches!(run.ended, Some((Acknowledged::Yes, _))));
            if let Some(run) = open.filter(|_| entry.terminal.is_none()) {
                let success = run.ended.map_or(run.attempt > entry.plan.failing, |(_, success)| success);
                ends.push(End { id: id.clone(), token: run.token.clone(), attempt: run.attempt, success });
            }
        }
        ends.chunks(10).try_for_each(|some| self.report(&agent, some, true))
    }

    /// Cancels a few jobs in whatever state they are.
    pub(crate) fn cancel_some(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        for _ in 0..3 {
            let open = |(id, entry): (&String, &crate::ledger::Entry)| {
                (entry.terminal.is_none() && entry.created == Acknowledged::Yes).then(|| id.clone())
            };
            let ids: Vec<String> = self.ledger().jobs.iter().filter_map(open).collect();
            let Some(id) = random.choice(&ids) else { continue };
            self.ledger().entry(id).cancel_sent = true;
            match self.ask(&agent, "DELETE", &format!("/ojs/v1/jobs/{id}"), &Value::Null)? {
                Some((200, _)) => self.ledger().cancelled(id),
                // It ended in between.
                Some((409, _)) | None => {}
                Some((status, answer)) => panic!("{id} was cancelled: {status} {answer}"),
            }
        }
        Ok(())
    }

    fn end_of(&self, job: &Value) -> End {
        let id = text(job, "id");
        let attempt = job["attempt"].as_u64().and_then(|attempt| attempt.try_into().ok()).unwrap_or(0);
        let failing = self.ledger().jobs.get(&id).map_or(0, |entry| entry.plan.failing);
        End { id, token: job["lease_token"].clone(), attempt, success: attempt > failing }
    }

    /// Sends reports; those without an answer are sent a second time, and then left for later.
    fn report(&self, agent: &ureq::Agent, ends: &[End], many: bool) -> Result<(), Gone> {
        let pieces = ends.chunks(if many { ends.len().max(1) } else { 1 });
        for some in pieces {
            let report = || match some {
                [end] if !many => self.report_alone(agent, end),
                _ => self.report_together(agent, some),
            };
            if !report()? {
                report()?;
            }
        }
        Ok(())
    }

    /// Returns whether an answer came.
    fn report_together(&self, agent: &ureq::Agent, ends: &[End]) -> Result<bool, Gone> {
        ends.iter().for_each(|end| self.ledger().ending(&end.id, &end.token, end.success));
        let body = json!({ "settlements": ends.iter().map(End::settlement).collect::<Vec<_>>() });
        let Some((status, answer)) = self.ask(agent, "POST", "/ojs/v1/workers/settle", &body)? else {
            return Ok(false);
        };
        assert_eq!(status, 200, "{answer}");
        for (end, result) in ends.iter().zip(answer["results"].as_array().expect("results")) {
            let status = result["status"].as_u64().expect("a status");
            self.ledger().ended(&end.id, &end.token, status, result);
        }
        Ok(true)
    }

    /// Returns whether an answer came.
    fn report_alone(&self, agent: &ureq::Agent, end: &End) -> Result<bool, Gone> {
        self.ledger().ending(&end.id, &end.token, end.success);
        let path = if end.success { "/ojs/v1/workers/ack" } else { "/ojs/v1/workers/nack" };
        let Some((status, answer)) = self.ask(agent, "POST", path, &end.settlement())? else { return Ok(false) };
        self.ledger().ended(&end.id, &end.token, status, &answer);
        Ok(true)
    }
}

struct End {
    id: String,
    token: Value,
    attempt: u32,
    success: bool,
}

impl End {
    fn settlement(&self) -> Value {
        let action = if self.success { "ack" } else { "nack" };
        let mut report = json!({ "action": action, "job_id": self.id, "lease_token": self.token });
        if !self.success {
            report["error"] = json!({ "type": "planned", "message": message_of(self.attempt) });
        }
        report
    }
}

fn plan(random: &mut fastrand::Rng) -> JobPlan {
    let limit = random.u32(1..6);
    JobPlan {
        limit,
        failing: random.u32(0..=limit),
        delay: Duration::from_millis(random.u64(1..120)),
        start: Duration::from_millis(if random.u8(..4) == 0 { random.u64(1..400) } else { 0 }),
        dead_letter: random.bool(),
    }
}

fn document(id: &str, plan: &JobPlan) -> Value {
    let seconds = |span: Duration| format!("PT{}S", span.as_secs_f64());
    let mut document = json!({
        "id": id, "type": "crash.test", "args": [id],
        "options": { "queue": QUEUE, "retry": {
            "max_attempts": plan.limit,
            "initial_interval": seconds(plan.delay),
            "max_interval": "PT1S",
            "on_exhaustion": if plan.dead_letter { "dead_letter" } else { "discard" },
        } },
    });
    if !plan.start.is_zero() {
        document["options"]["scheduled_at"] = format!("+{}", seconds(plan.start)).into();
    }
    document
}

/// A client that takes any status for an answer.
pub(crate) fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    config.timeout_global(Some(Duration::from_secs(30))).build().into()
}

/// A name of this client's own making, so that a job can be recognised whose acceptance was never heard.
pub(crate) fn new_id(random: &mut fastrand::Rng) -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis()) & 0xffff_ffff_ffff;
    let (a, b) = (random.u16(..0x1000), random.u64(..) & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000);
    let (high, low) = (millis >> 16, millis & 0xffff);
    format!("{high:08x}-{low:04x}-7{a:03x}-{:04x}-{:012x}", b >> 48, b & 0xffff_ffff_ffff)
}
