//! Compares the workflows and schedules of the servers with the ledger of the clients.

use super::ledger::{Place, RunLedger, Schedule, Workflow};
use crate::harness::{Server, until};
use crate::ledger::{Acknowledged, text};
use redrive_ojs::time::parse_rfc3339;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How late a slot may be while a server is there, even on a machine that is busy with other tests.
const LATE: Duration = Duration::from_secs(15);

/// A time in which no server was there.
pub(crate) type Outage = (SystemTime, SystemTime);

/// All jobs of a server, each at its place.
pub(crate) struct Jobs {
    steps: HashMap<(String, usize), Vec<Value>>,
    /// By the schedule and the slot.
    slots: HashMap<String, BTreeMap<String, Vec<Value>>>,
}

impl Jobs {
    pub(crate) fn of(server: &Server) -> Self {
        let mut steps: HashMap<_, Vec<Value>> = HashMap::new();
        let mut slots: HashMap<String, BTreeMap<_, Vec<Value>>> = HashMap::new();
        for job in crate::check::all_jobs(server) {
            match Place::of(&job) {
                Place::Step(id, step) => steps.entry((id, step)).or_default().push(job),
                Place::Slot(name, slot) => slots.entry(name).or_default().entry(slot).or_default().push(job),
            }
        }
        Self { steps, slots }
    }

    fn of_step(&self, id: &str, step: usize) -> &[Value] {
        self.steps.get(&(id.to_owned(), step)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Everything that holds at any moment: nothing is enqueued twice or without a reason, and nothing that was
/// acknowledged is lost.
pub(crate) fn compared(server: &Server, ledger: &Mutex<RunLedger>, when: &str) {
    let jobs = Jobs::of(server);
    let mut ledger = ledger.lock().expect("no thread panicked");
    let mut wrong = std::mem::take(&mut ledger.wrong);
    for ((id, step), jobs) in &jobs.steps {
        let expected = ledger.workflows.get(id).is_some_and(|workflow| workflow.plan.is_enqueued(*step));
        if jobs.len() > 1 || !expected {
            wrong.push(format!("step {step} of {id} has {} jobs, expected: {expected}: {jobs:?}", jobs.len()));
        }
    }
    for (id, workflow) in &mut ledger.workflows {
        match server.call("GET", &format!("/ojs/v1/workflows/{id}"), &Value::Null).expect("an answer") {
            (200, _) => workflow.created = Acknowledged::Yes,
            (404, _) if workflow.created == Acknowledged::Unknown => {}
            (status, answer) => wrong.push(format!("{id}: {status} {answer}")),
        }
    }
    // What was unknown and is not stored will never be.
    ledger.workflows.retain(|_, workflow| workflow.created == Acknowledged::Yes);
    for (name, schedule) in &mut ledger.schedules {
        match server.call("GET", &format!("/ojs/v1/cron/{name}"), &Value::Null).expect("an answer") {
            (200, _) => schedule.created = Acknowledged::Yes,
            (404, _) if schedule.created == Acknowledged::Unknown => {}
            (status, answer) => wrong.push(format!("{name}: {status} {answer}")),
        }
    }
    ledger.schedules.retain(|_, schedule| schedule.created == Acknowledged::Yes);
    assert!(wrong.is_empty(), "{when}: {wrong:#?}");
}

/// Waits until every workflow and every job is over.
pub(crate) fn all_over(server: &Server) {
    until("every workflow and every job is over", || {
        let running = server.ask("GET", "/ojs/v1/workflows?state=running&limit=1", Value::Null);
        let stats = server.ask("GET", "/ojs/v1/queues/runs/stats", Value::Null);
        let open = ["available", "active", "scheduled", "retryable", "pending"];
        let open: u64 = open.iter().filter_map(|state| stats["stats"][*state].as_u64()).sum();
        let schedules = server.ask("GET", "/ojs/v1/cron?limit=100", Value::Null);
        let waiting = schedules["crons"].as_array().expect("schedules").iter().any(|one| one["waiting_count"] != 0);
        (running["workflows"] == json!([]) && open == 0 && !waiting).then_some(())
    });
}

/// What holds of workflows that are over: each of their steps has exactly the one job that it must have, with its
/// result, and the workflow says the same.
pub(crate) fn workflows(server: &Server, ledger: &RunLedger, jobs: &Jobs) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, workflow) in &ledger.workflows {
        let shown = server.ask("GET", &format!("/ojs/v1/workflows/{id}"), Value::Null);
        let problems = problems_of_workflow(id, workflow, jobs, &shown);
        wrong.extend(problems.into_iter().map(|problem| format!("{id}: {problem}: {shown} {:?}", workflow.plan)));
    }
    wrong
}

fn problems_of_workflow(id: &str, workflow: &Workflow, jobs: &Jobs, shown: &Value) -> Vec<String> {
    let (plan, state) = (&workflow.plan, text(shown, "state"));
    let allowed = match workflow.cancelled {
        None => vec![plan.end()],
        Some(Acknowledged::Unknown) => vec![plan.end(), "cancelled"],
        Some(Acknowledged::Yes) => vec!["cancelled"],
    };
    let mut problems = Vec::new();
    if !allowed.contains(&&*state) {
        problems.push(format!("it is {state}, allowed is {allowed:?}"));
    }
    for index in 0..plan.steps.len() {
        let jobs = jobs.of_step(id, index);
        let least = usize::from(plan.is_enqueued(index) && state != "cancelled");
        if jobs.len() < least {
            problems.push(format!("step {index} has no job"));
        }
        let Some(job) = jobs.first().filter(|_| state != "cancelled") else { continue };
        let expected = if plan.completes(index) { "completed" } else { "discarded" };
        let step = &shown["steps"][index];
        if job["state"] != expected || step["job_id"] != job["id"] {
            problems.push(format!("step {index}, which has to be {expected}, is {job}"));
        }
        if expected == "completed" && step["result"] != super::plan::result(index) {
            problems.push(format!("step {index} has another result"));
        }
    }
    problems
}

/// What holds of schedules: each slot has one job, and only those slots have none that came before the one which
/// was due when a server was there again.
pub(crate) fn schedules(server: &Server, ledger: &RunLedger, jobs: &Jobs, outages: &[Outage]) -> Vec<String> {
    let (mut wrong, none) = (Vec::new(), BTreeMap::new());
    for (name, schedule) in &ledger.schedules {
        let slots = jobs.slots.get(name).unwrap_or(&none);
        let shown = server.ask("GET", &format!("/ojs/v1/cron/{name}"), Value::Null);
        let mut problems = gaps(schedule, slots, outages);
        for (slot, jobs) in slots.iter().filter(|(_, jobs)| jobs.len() > 1) {
            problems.push(format!("the slot {slot} has {} jobs", jobs.len()));
        }
        for seen in schedule.slots.keys().filter(|seen| !slots.contains_key(*seen)) {
            problems.push(format!("the job of {seen} was seen, and is lost"));
        }
        let waiting = shown["waiting_count"].as_u64();
        if shown["run_count"].as_u64() != Some(slots.len() as u64) || shown["skipped_count"] != 0 {
            problems.push(format!("{} slots have jobs, and {waiting:?} wait", slots.len()));
        }
        wrong.extend(problems.into_iter().map(|problem| format!("{name}: {problem}: {shown} {:?}", slots.keys())));
    }
    for name in jobs.slots.keys().filter(|name| !ledger.schedules.contains_key(*name)) {
        wrong.push(format!("the schedule {name} was never sent"));
    }
    wrong
}

fn gaps(schedule: &Schedule, slots: &BTreeMap<String, Vec<Value>>, outages: &[Outage]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut before: Option<(SystemTime, SystemTime)> = None;
    for (text_of_slot, jobs) in slots {
        let slot = time(text_of_slot);
        let triggered = time(&text(&jobs[0]["meta"], "cron_triggered_at"));
        if triggered < slot {
            problems.push(format!("the job of {text_of_slot} was enqueued before it was due"));
        }
        // The job of a slot that waited for another may be enqueued any time later.
        if let Some((earlier, earlier_triggered)) = before.filter(|_| !schedule.plan.one_by_one) {
            let missed = earlier + schedule.plan.period;
            if missed < slot && earlier_triggered >= missed {
                problems.push(format!("a slot before {text_of_slot} was due at {earlier_triggered:?}, and has no job"));
            }
            let absent: Duration = outages.iter().map(|outage| overlap(*outage, (earlier, slot))).sum();
            if since(slot, earlier) > schedule.plan.period + absent + LATE {
                problems.push(format!("nothing was due for long before {text_of_slot}"));
            }
        }
        before = Some((slot, triggered));
    }
    problems
}

fn time(text: &str) -> SystemTime {
    let at = parse_rfc3339(text).unwrap_or_else(|| panic!("\"{text}\" is a time"));
    UNIX_EPOCH + Duration::from_micros(at.micros().try_into().expect("a time after 1970"))
}

fn since(later: SystemTime, earlier: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}

fn overlap(one: Outage, other: Outage) -> Duration {
    since(one.1.min(other.1), one.0.max(other.0))
}
