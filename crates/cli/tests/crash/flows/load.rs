//! The clients: one kind starts the flows, one cancels those that hold, and one works on their jobs.

use super::plan::{DOWN, Kind, Order, QUEUE, named, result};
use crate::ledger::{LEASE, text};
use crate::load::{agent, new_id};
use crate::target::{Gone, Reply, Target};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What the clients know.
#[derive(Default)]
pub(crate) struct FlowLedger {
    /// By the id of the run.
    pub(crate) orders: HashMap<String, Order>,
    /// Those that are to be started, and those of them for which a request was sent before.
    unstarted: Vec<String>,
    sent: HashSet<String>,
    /// Those that are to be cancelled.
    held: Vec<String>,
    /// The jobs whose end was to be reported, and those of them whose end was acknowledged.
    reported: HashSet<String>,
    ended: HashSet<String>,
    pub(crate) started: usize,
    /// How often a start, and a cancellation, was sent again.
    pub(crate) repeated: usize,
    pub(crate) wrong: Vec<String>,
}

impl FlowLedger {
    pub(crate) fn new(count: usize, random: &mut fastrand::Rng) -> Self {
        let orders: HashMap<String, Order> = (0..count).map(|_| (new_id(random), Order::random(random))).collect();
        let mut unstarted: Vec<String> = orders.keys().cloned().collect();
        unstarted.sort_unstable();
        Self { orders, unstarted, ..Self::default() }
    }

    /// How many flows have been started, and how many jobs worked on.
    pub(crate) fn progress(&self) -> usize {
        self.started + self.reported.len()
    }
}

/// What all threads of a round share.
pub(crate) struct FlowLoad<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) ledger: &'a Mutex<FlowLedger>,
    /// Where the service is that the flows call.
    pub(crate) service: &'a str,
    /// Set when the threads are to end by themselves.
    pub(crate) enough: &'a AtomicBool,
}

impl FlowLoad<'_> {
    fn ledger(&self) -> MutexGuard<'_, FlowLedger> {
        self.ledger.lock().expect("no thread panicked")
    }

    fn is_enough(&self) -> bool {
        self.enough.load(Ordering::SeqCst)
    }

    /// Starts flows until there is none left. A start without an answer is repeated with the same id.
    pub(crate) fn start(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        while !self.is_enough() {
            let Some((id, order, mut repeated)) = self.next_start() else { break };
            let body = json!({ "definition": "order", "id": id, "input": order.input(&id, self.service) });
            let reply =
                self.ask_for(&agent, "POST", "/flows/v1/runs", &body, |ledger| ledger.unstarted.push(id.clone()));
            let Some((status, run)) = reply? else { continue };
            let wrong = !(status == 201 || status == 200 && repeated) || run["id"] != *id;
            {
                let mut ledger = self.ledger();
                ledger.started += 1;
                ledger.wrong.extend(wrong.then(|| format!("{id} was started: {status} {run}")));
                if order.kind == Kind::Hold {
                    ledger.held.push(id.clone());
                }
            }
            // A client that has forgotten that it had an answer.
            repeated = random.u8(..20) == 0;
            if repeated && let Some((status, run)) = self.target.ask(&agent, "POST", "/flows/v1/runs", &body)? {
                let wrong = status != 200 || run["id"] != *id;
                self.ledger().wrong.extend(wrong.then(|| format!("{id} was started again: {status} {run}")));
            }
        }
        Ok(())
    }

    /// The next flow to be started, and whether a request for it was sent before.
    fn next_start(&self) -> Option<(String, Order, bool)> {
        let mut ledger = self.ledger();
        let id = ledger.unstarted.pop()?;
        let repeated = !ledger.sent.insert(id.clone());
        ledger.repeated += usize::from(repeated);
        Some((id.clone(), ledger.orders[&id].clone(), repeated))
    }

    /// A request; where it has no answer, the ledger is told before anything else.
    fn ask_for(
        &self,
        agent: &ureq::Agent,
        method: &str,
        path: &str,
        body: &Value,
        unanswered: impl FnOnce(&mut FlowLedger),
    ) -> Result<Reply, Gone> {
        let reply = self.target.ask(agent, method, path, body);
        if !matches!(reply, Ok(Some(_))) {
            unanswered(&mut self.ledger());
        }
        reply
    }

    /// Cancels one flow that holds after the other.
    pub(crate) fn cancel(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        while !self.is_enough() {
            std::thread::sleep(Duration::from_millis(random.u64(0..100)));
            let Some(id) = self.ledger().held.pop() else { continue };
            let path = format!("/flows/v1/runs/{id}");
            let reply = self.ask_for(&agent, "DELETE", &path, &Value::Null, |ledger| {
                ledger.repeated += 1;
                ledger.sent.insert(format!("cancel {id}"));
                ledger.held.push(id.clone());
            })?;
            let Some((status, answer)) = reply else { continue };
            let mut ledger = self.ledger();
            let wrong = !(status == 202 || status == 409 && ledger.sent.contains(&format!("cancel {id}")));
            ledger.wrong.extend(wrong.then(|| format!("{id} was cancelled: {status} {answer}")));
        }
        Ok(())
    }

    /// Claims jobs and reports their ends; sometimes it forgets one for a while, and sometimes the first attempt of a
    /// job fails, which its flow does not see.
    pub(crate) fn work(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        while !self.is_enough() {
            let body = json!({
                "queues": [QUEUE], "count": random.usize(1..30), "worker_id": "crash", "wait_ms": 20,
                "visibility_timeout_ms": LEASE.as_millis() as u64,
            });
            let asked = Instant::now();
            let Some((status, answer)) = self.target.ask(&agent, "POST", "/ojs/v1/workers/fetch", &body)? else {
                continue;
            };
            assert_eq!(status, 200, "{answer}");
            let mut reports = Vec::new();
            for job in answer["jobs"].as_array().expect("jobs") {
                let (forgotten, fails_at_first) = (random.u8(..100) == 0, random.u8(..20) == 0);
                let report = self.report_of(job, fails_at_first);
                reports.extend((!forgotten).then_some(report));
            }
            if reports.is_empty() {
                continue;
            }
            let body = json!({ "settlements": reports });
            if let Some((status, answer)) = self.target.ask(&agent, "POST", "/ojs/v1/workers/settle", &body)? {
                assert_eq!(status, 200, "{answer}");
                self.settled(&reports, &answer, asked);
            }
        }
        Ok(())
    }

    /// The end of an attempt as the order has it.
    fn report_of(&self, job: &Value, fails_at_first: bool) -> Value {
        let (id, place, at) = place_of(job);
        let mut ledger = self.ledger();
        if ledger.ended.contains(&text(job, "id")) {
            ledger.wrong.push(format!("a job that had ended was claimed: {job}"));
        }
        let mut report = json!({ "job_id": job["id"], "lease_token": job["lease_token"], "action": "nack" });
        let fails = match ledger.orders.get(&id) {
            Some(order) if order.jobs().contains(&named(&place, &at)) => order.fails(&place, &at),
            _ => {
                ledger.wrong.push(format!("no order has such a job: {job}"));
                false
            }
        };
        if fails {
            report["error"] = json!({ "type": DOWN, "message": "as planned", "retryable": false });
        } else if fails_at_first && job["attempt"] == 1 {
            report["error"] = json!({ "type": "Flows.Again", "message": "as planned" });
            return report;
        } else {
            report["action"] = "ack".into();
            report["result"] = result(&place, &at);
        }
        ledger.reported.insert(text(job, "id"));
        report
    }

    fn settled(&self, reports: &[Value], answer: &Value, asked: Instant) {
        let mut ledger = self.ledger();
        for (report, result) in reports.iter().zip(answer["results"].as_array().expect("results")) {
            match result["status"].as_u64() {
                Some(200) if ["completed", "discarded"].contains(&&*text(result, "state")) => {
                    ledger.ended.insert(text(report, "job_id"));
                }
                Some(200) => {}
                // The lease is over.
                Some(409) if asked.elapsed() + LEASE / 4 >= LEASE => {}
                _ => ledger.wrong.push(format!("{report} was refused: {result}")),
            }
        }
    }
}

/// The order of a job, and its place in it.
pub(crate) fn place_of(job: &Value) -> (String, String, Value) {
    let args = &job["args"];
    let text = |index: usize| args[index].as_str().unwrap_or_default().to_owned();
    (text(0), text(1), args[2].clone())
}
