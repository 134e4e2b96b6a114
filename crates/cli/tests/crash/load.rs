//! The load: some hand in jobs, some work, some call jobs off, until the server is gone.

use crate::book::{Book, Known, LEASE, Nature, message_of, text};
use crate::harness::call;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const QUEUE: &str = "crash";

/// What all threads of a round share.
pub(crate) struct Load<'a> {
    pub(crate) url: &'a str,
    pub(crate) book: &'a Mutex<Book>,
    /// Set just before the server is killed: from then on, and only then, answers may stay away.
    pub(crate) killed: &'a AtomicBool,
    /// Set when the threads are to end by themselves.
    pub(crate) enough: &'a AtomicBool,
    pub(crate) batches: &'a AtomicU64,
}

/// No answer came, because the server was killed.
pub(crate) struct Gone;

impl Load<'_> {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no thread panicked")
    }

    fn agent() -> ureq::Agent {
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
        config.timeout_global(Some(Duration::from_secs(30))).build().into()
    }

    fn ask(&self, agent: &ureq::Agent, method: &str, path: &str, body: &Value) -> Result<(u64, Value), Gone> {
        match call(agent, self.url, method, path, body) {
            Ok((status, answer)) => {
                assert!(status < 500, "{method} {path}: {status} {answer}");
                Ok((status.into(), answer))
            }
            Err(error) => {
                assert!(self.killed.load(Ordering::SeqCst), "{method} {path}: no answer from a living server: {error}");
                Err(Gone)
            }
        }
    }

    /// Hands in jobs, one by one and in batches, at most `most` requests.
    pub(crate) fn hand_in(&self, mut random: fastrand::Rng, most: usize) -> Result<(), Gone> {
        let agent = Self::agent();
        for _ in 0..most {
            let size = if random.bool() { 1 } else { random.usize(2..12) };
            let batch = self.batches.fetch_add(1, Ordering::Relaxed);
            let natures: Vec<(String, Nature)> =
                (0..size).map(|_| (new_id(&mut random), nature(&mut random))).collect();
            let mut documents: Vec<Value> = natures.iter().map(|(id, nature)| document(id, nature)).collect();
            for (id, nature) in &natures {
                self.book().sent(id, *nature, batch);
            }
            let (path, body) = match documents.pop() {
                Some(single) if documents.is_empty() => ("/ojs/v1/jobs", single),
                last => {
                    ("/ojs/v1/jobs/batch", json!({ "jobs": documents.into_iter().chain(last).collect::<Vec<_>>() }))
                }
            };
            let (status, answer) = self.ask(&agent, "POST", path, &body)?;
            assert_eq!(status, 201, "{answer}");
            for (id, _) in &natures {
                self.book().created(id);
            }
            if self.enough.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    /// Takes jobs and ends them, one by one and many at once; sometimes it forgets one for a while.
    pub(crate) fn work(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = Self::agent();
        while !self.enough.load(Ordering::SeqCst) {
            let many = random.bool();
            let count = if many { random.usize(1..20) } else { 1 };
            let lease_ms = LEASE.as_millis() as u64;
            let body = json!({
                "queues": [QUEUE], "count": count, "worker_id": "crash", "visibility_timeout_ms": lease_ms, "wait_ms": 20,
            });
            let asked = Instant::now();
            let (status, answer) = self.ask(&agent, "POST", "/ojs/v1/workers/fetch", &body)?;
            assert_eq!(status, 200, "{answer}");
            let jobs = answer["jobs"].as_array().expect("jobs");
            jobs.iter().for_each(|job| self.book().fetched(job, asked));
            let ends: Vec<End> = jobs.iter().filter(|_| random.u8(..100) < 95).map(|job| self.end_of(job)).collect();
            self.report(&agent, &ends, many)?;
        }
        Ok(())
    }

    /// Reports again what had no answer, and what was forgotten, of the rounds before.
    pub(crate) fn catch_up(&self) -> Result<(), Gone> {
        let agent = Self::agent();
        let mut ends = Vec::new();
        for (id, entry) in &self.book().jobs {
            let open = entry.runs.last().filter(|run| !matches!(run.ended, Some((Known::Yes, _))));
            if let Some(run) = open.filter(|_| entry.terminal.is_none()) {
                let success = run.ended.map_or(run.attempt > entry.nature.failing, |(_, success)| success);
                ends.push(End { id: id.clone(), token: run.token.clone(), attempt: run.attempt, success });
            }
        }
        ends.chunks(10).try_for_each(|some| self.report(&agent, some, true))
    }

    /// Calls off a few jobs, whatever they do.
    pub(crate) fn meddle(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = Self::agent();
        for _ in 0..3 {
            let open = |(id, entry): (&String, &crate::book::Entry)| {
                (entry.terminal.is_none() && entry.created == Known::Yes).then(|| id.clone())
            };
            let ids: Vec<String> = self.book().jobs.iter().filter_map(open).collect();
            let Some(id) = random.choice(&ids) else { continue };
            self.book().entry(id).cancel_sent = true;
            let (status, answer) = self.ask(&agent, "DELETE", &format!("/ojs/v1/jobs/{id}"), &Value::Null)?;
            match status {
                200 => self.book().cancelled(id),
                // It ended in between.
                other => assert_eq!(other, 409, "{answer}"),
            }
        }
        Ok(())
    }

    fn end_of(&self, job: &Value) -> End {
        let id = text(job, "id");
        let attempt = job["attempt"].as_u64().and_then(|attempt| attempt.try_into().ok()).unwrap_or(0);
        let failing = self.book().jobs.get(&id).map_or(0, |entry| entry.nature.failing);
        End { id, token: job["lease_token"].clone(), attempt, success: attempt > failing }
    }

    fn report(&self, agent: &ureq::Agent, ends: &[End], many: bool) -> Result<(), Gone> {
        if many && !ends.is_empty() {
            ends.iter().for_each(|end| self.book().ending(&end.id, &end.token, end.success));
            let settlements: Vec<Value> = ends.iter().map(End::settlement).collect();
            let sent = Instant::now();
            let body = json!({ "settlements": settlements });
            let (status, answer) = self.ask(agent, "POST", "/ojs/v1/workers/settle", &body)?;
            assert_eq!(status, 200, "{answer}");
            for (end, result) in ends.iter().zip(answer["results"].as_array().expect("results")) {
                let status = result["status"].as_u64().expect("a status");
                self.book().ended(&end.id, &end.token, sent, status, result);
            }
            return Ok(());
        }
        for end in ends {
            self.book().ending(&end.id, &end.token, end.success);
            let path = if end.success { "/ojs/v1/workers/ack" } else { "/ojs/v1/workers/nack" };
            let sent = Instant::now();
            let (status, answer) = self.ask(agent, "POST", path, &end.settlement())?;
            self.book().ended(&end.id, &end.token, sent, status, &answer);
        }
        Ok(())
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

fn nature(random: &mut fastrand::Rng) -> Nature {
    let limit = random.u32(1..6);
    Nature {
        limit,
        failing: random.u32(0..=limit),
        delay: Duration::from_millis(random.u64(1..120)),
        start: Duration::from_millis(if random.u8(..4) == 0 { random.u64(1..400) } else { 0 }),
        dead_letter: random.bool(),
    }
}

fn document(id: &str, nature: &Nature) -> Value {
    let seconds = |span: Duration| format!("PT{}S", span.as_secs_f64());
    let mut document = json!({
        "id": id, "type": "crash.test", "args": [id],
        "options": { "queue": QUEUE, "retry": {
            "max_attempts": nature.limit,
            "initial_interval": seconds(nature.delay),
            "max_interval": "PT1S",
            "on_exhaustion": if nature.dead_letter { "dead_letter" } else { "discard" },
        } },
    });
    if !nature.start.is_zero() {
        document["options"]["scheduled_at"] = format!("+{}", seconds(nature.start)).into();
    }
    document
}

/// A name of this client's own making, so that a job can be recognised whose acceptance was never heard.
fn new_id(random: &mut fastrand::Rng) -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis()) & 0xffff_ffff_ffff;
    let (a, b) = (random.u16(..0x1000), random.u64(..) & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000);
    let (high, low) = (millis >> 16, millis & 0xffff);
    format!("{high:08x}-{low:04x}-7{a:03x}-{:04x}-{:012x}", b >> 48, b & 0xffff_ffff_ffff)
}
