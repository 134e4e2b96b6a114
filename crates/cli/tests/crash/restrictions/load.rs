//! The clients: they enqueue jobs that are unique or limited, work on them, and redrive those that failed.

use super::ledger::{BY_KEY, BY_QUEUE, BY_RATE, KEY_LIMIT, PERIOD, RATE, Restricted};
use crate::ledger::{LEASE, text};
use crate::load::{agent, new_id};
use crate::target::{Gone, Target};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

const QUEUE: &str = "restricted";
/// The queue that has a limit.
pub(crate) const NARROW: &str = "narrow";
/// How many kinds of jobs must be unique.
const UNIQUE_KINDS: u8 = 4;
/// How many limited jobs a client enqueues in a round, at most: all of them have to run in the end.
const LIMITED: usize = 12;

/// What all threads of a round share.
pub(crate) struct RestrictedLoad<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) ledger: &'a Mutex<Restricted>,
    /// Set when the threads are to end by themselves.
    pub(crate) enough: &'a AtomicBool,
}

impl RestrictedLoad<'_> {
    fn ledger(&self) -> MutexGuard<'_, Restricted> {
        self.ledger.lock().expect("no thread panicked")
    }

    fn is_enough(&self) -> bool {
        self.enough.load(Ordering::SeqCst)
    }

    /// Enqueues jobs. A request without an answer is not repeated: then the job is there or not.
    pub(crate) fn enqueue(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let (agent, mut limited) = (agent(), 0);
        while !self.is_enough() {
            let id = new_id(&mut random);
            let is_limited = limited < LIMITED && random.u8(..4) == 0;
            limited += usize::from(is_limited);
            let document = if is_limited { limited_job(&id, &mut random) } else { unique_job(&id, &mut random) };
            match self.target.ask(&agent, "POST", "/ojs/v1/jobs", &document)? {
                Some((201, _)) => {
                    self.ledger().created.insert(id);
                    self.ledger().counts[0] += 1;
                }
                Some((200, answer)) if answer["deduplicated"] == true => self.ledger().counts[1] += 1,
                Some((409, answer)) if answer["error"]["code"] == "duplicate" => self.ledger().counts[2] += 1,
                Some((status, answer)) => panic!("{document}: {status} {answer}"),
                None => {}
            }
            std::thread::sleep(Duration::from_millis(random.u64(0..8)));
        }
        Ok(())
    }

    /// Redrives dead letters, which is refused while another job of the kind is there.
    pub(crate) fn redrive(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        while !self.is_enough() {
            std::thread::sleep(Duration::from_millis(random.u64(5..40)));
            let path = "/ojs/v1/dead-letter?limit=20";
            let Some((200, dead)) = self.target.ask(&agent, "GET", path, &Value::Null)? else { continue };
            let jobs = dead["jobs"].as_array().cloned().unwrap_or_default();
            let Some(job) = random.choice(&jobs) else { continue };
            let id = text(job, "id");
            self.ledger().redriven.insert(id.clone());
            match self.target.ask(&agent, "POST", &format!("/ojs/v1/dead-letter/{id}/retry"), &json!({}))? {
                Some((200, _)) => self.ledger().counts[3] += 1,
                Some((404 | 409, _)) | None => {}
                Some((status, answer)) => panic!("{id} was redriven: {status} {answer}"),
            }
        }
        Ok(())
    }

    /// Claims jobs and ends them; sometimes it forgets one, which runs again when its lease has ended.
    pub(crate) fn work(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        let body = json!({
            "queues": [NARROW, QUEUE], "count": 4, "worker_id": "crash", "wait_ms": 20,
            "visibility_timeout_ms": LEASE.as_millis() as u64,
        });
        while !self.is_enough() {
            let asked = Instant::now();
            let Some((status, answer)) = self.target.ask(&agent, "POST", "/ojs/v1/workers/fetch", &body)? else {
                continue;
            };
            assert_eq!(status, 200, "{answer}");
            let jobs = answer["jobs"].as_array().expect("jobs");
            jobs.iter().for_each(|job| self.ledger().fetched(job, asked));
            for job in jobs {
                std::thread::sleep(Duration::from_millis(random.u64(0..10)));
                if random.u8(..100) < 96 {
                    self.report(&agent, job, &mut random)?;
                }
            }
        }
        Ok(())
    }

    fn report(&self, agent: &ureq::Agent, job: &Value, random: &mut fastrand::Rng) -> Result<(), Gone> {
        let mut body = json!({ "job_id": job["id"], "lease_token": job["lease_token"] });
        let fails = text(job, "type").starts_with("unique") && random.u8(..3) == 0;
        if fails {
            body["error"] = json!({ "type": "planned", "message": "as planned" });
        }
        let path = if fails { "/ojs/v1/workers/nack" } else { "/ojs/v1/workers/ack" };
        self.ledger().ending(job);
        match self.target.ask(agent, "POST", path, &body)? {
            // The lease may be over, or the job replaced.
            Some((200 | 409, _)) | None => Ok(()),
            Some((status, answer)) => panic!("{path}: {status} {answer}"),
        }
    }
}

fn unique_job(id: &str, random: &mut fastrand::Rng) -> Value {
    let on_conflict = ["reject", "ignore", "replace", "replace_except_schedule"][random.usize(..4)];
    let mut document = json!({
        "id": id, "type": format!("unique.k{}", random.u8(..UNIQUE_KINDS)), "args": [id],
        "options": {
            "queue": QUEUE,
            "unique": { "keys": ["type"], "on_conflict": on_conflict },
            "retry": { "max_attempts": 1, "on_exhaustion": "dead_letter" },
        },
    });
    if random.u8(..4) == 0 {
        document["options"]["scheduled_at"] = "+PT0.2S".into();
    }
    document
}

fn limited_job(id: &str, random: &mut fastrand::Rng) -> Value {
    let rate = json!({ "limit": RATE, "period": format!("PT{}S", PERIOD.as_secs()) });
    let (kind, queue, limit) = match random.u8(..5) {
        0 => (BY_RATE, QUEUE, json!({ "key": "seldom", "rate": rate })),
        1 | 2 => (BY_KEY, QUEUE, json!({ "key": "few", "concurrency": KEY_LIMIT })),
        _ => (BY_QUEUE, NARROW, Value::Null),
    };
    let mut document = json!({ "id": id, "type": kind, "args": [id], "options": { "queue": queue } });
    if !limit.is_null() {
        document["options"]["rate_limit"] = limit;
    }
    // A run that a worker forgot is followed by another one, however often.
    document["options"]["retry"] =
        json!({ "max_attempts": 100, "initial_interval": "PT0.01S", "max_interval": "PT0.05S" });
    document
}
