//! The clients: they start and cancel workflows, register schedules, and work on the jobs of both.

use super::ledger::{Place, RunLedger};
use super::plan::{FATAL, QUEUE, SchedulePlan, WorkflowPlan, result};
use crate::ledger::{Acknowledged, LEASE, text};
use crate::load::{agent, new_id};
use crate::target::{Gone, Reply, Target};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// The largest number of workflows that one client starts in a round.
const WORKFLOWS: usize = 10;

/// What all threads of a round share.
pub(crate) struct RunLoad<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) ledger: &'a Mutex<RunLedger>,
    /// Set when the threads are to end by themselves.
    pub(crate) enough: &'a AtomicBool,
}

impl RunLoad<'_> {
    fn ledger(&self) -> MutexGuard<'_, RunLedger> {
        self.ledger.lock().expect("no thread panicked")
    }

    fn is_enough(&self) -> bool {
        self.enough.load(Ordering::SeqCst)
    }

    /// Starts workflows.
    pub(crate) fn start(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        for _ in 0..WORKFLOWS {
            let (id, plan) = (new_id(&mut random), WorkflowPlan::random(&mut random));
            let document = plan.document(&id);
            self.ledger().workflow_sent(&id, plan);
            if self.sent_until_answered(&agent, "/ojs/v1/workflows", &document)? {
                self.ledger().workflow(&id).created = Acknowledged::Yes;
            }
            if self.is_enough() {
                break;
            }
        }
        Ok(())
    }

    /// Registers a schedule.
    pub(crate) fn schedule(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let plan = SchedulePlan::random(format!("schedule-{:016x}", random.u64(..)), &mut random);
        let (name, document) = (plan.name.clone(), plan.document());
        self.ledger().schedule_sent(plan);
        if self.sent_until_answered(&agent(), "/ojs/v1/cron", &document)? {
            self.ledger().schedule(&name).created = Acknowledged::Yes;
        }
        Ok(())
    }

    /// Sends something until it is acknowledged; returns false if the outcome stays unknown.
    fn sent_until_answered(&self, agent: &ureq::Agent, path: &str, body: &Value) -> Result<bool, Gone> {
        let mut before = 0;
        while before == 0 || !self.is_enough() {
            match self.target.ask(agent, "POST", path, body)? {
                Some((201, _)) => return Ok(true),
                // Ids and names are used once: an earlier request without an answer was carried out.
                Some((409, _)) if before > 0 => return Ok(true),
                Some((status, answer)) => panic!("{path}: {status} {answer}"),
                None => before += 1,
            }
        }
        Ok(false)
    }

    /// Cancels a workflow in whatever state it is.
    pub(crate) fn cancel_one(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let open: Vec<String> = {
            let ledger = self.ledger();
            let open = ledger
                .workflows
                .iter()
                .filter(|(_, workflow)| workflow.created == Acknowledged::Yes && workflow.cancelled.is_none());
            open.map(|(id, _)| id.clone()).collect()
        };
        let Some(id) = random.choice(&open) else { return Ok(()) };
        self.ledger().workflow(id).cancelled = Some(Acknowledged::Unknown);
        match self.target.ask(&agent(), "DELETE", &format!("/ojs/v1/workflows/{id}"), &Value::Null)? {
            Some((200, _)) => self.ledger().workflow(id).cancelled = Some(Acknowledged::Yes),
            // It was over.
            Some((409, _)) => self.ledger().workflow(id).cancelled = None,
            None => {}
            Some((status, answer)) => panic!("the workflow {id} was cancelled: {status} {answer}"),
        }
        Ok(())
    }

    /// Claims jobs and ends them; sometimes it forgets one for a while.
    pub(crate) fn work(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        let body = json!({
            "queues": [QUEUE], "count": 4, "worker_id": "crash", "wait_ms": 20,
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
            for job in jobs.iter().filter(|_| random.u8(..100) < 97) {
                // A report without an answer is sent again once.
                if self.report(&agent, job)?.is_none() {
                    self.report(&agent, job)?;
                }
            }
        }
        Ok(())
    }

    /// Reports the end of an attempt as the plan has it.
    fn report(&self, agent: &ureq::Agent, job: &Value) -> Result<Reply, Gone> {
        let place = Place::of(job);
        let (returned, failing, doomed) = match &place {
            Place::Step(id, step) => {
                let plan = self.ledger().workflow(id).plan.steps[*step].clone();
                (result(*step), u64::from(plan.failing), plan.doomed)
            }
            Place::Slot(..) => (Value::Null, 0, false),
        };
        let mut body = json!({ "job_id": job["id"], "lease_token": job["lease_token"] });
        let fails = doomed || job["attempt"].as_u64() <= Some(failing);
        let path = if fails {
            let kind = if doomed { FATAL } else { "planned" };
            body["error"] = json!({ "type": kind, "message": "as planned" });
            "/ojs/v1/workers/nack"
        } else {
            body["result"] = returned;
            "/ojs/v1/workers/ack"
        };
        if doomed || !fails {
            self.ledger().ending(&place, !fails);
        }
        let reply = self.target.ask(agent, "POST", path, &body)?;
        match &reply {
            Some((200, answer)) if ["completed", "discarded"].contains(&&*text(answer, "state")) => {
                self.ledger().ended(&place);
            }
            // The lease may be over, the job cancelled, or an earlier report may have been carried out.
            Some((200 | 409, _)) | None => {}
            Some((status, answer)) => panic!("{path}: {status} {answer}"),
        }
        Ok(reply)
    }
}
