//! One random client: requests that are complete as HTTP, and right or wrong as Open Job Spec.

use crate::graphs;
use crate::hooks::neighbour_url;
use crate::mutate;
use crate::neighbour;
use crate::vocabulary::{
    ENDPOINTS, HEADERS, LIMIT_KEYS, METHODS, PARAMETERS, QUEUES, SCHEDULES, STRANGE_QUEUES, VALUES, document,
};
use crate::wire::{Caller, HttpResponse, Request};
use fastrand::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use tokio::time::Instant;

/// How many ids a client remembers.
const IDS: usize = 64;

/// Counts of the answers to a client.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How often each status came.
    statuses: BTreeMap<u16, usize>,
    /// How many connections ended without an answer.
    unanswered: usize,
    /// The queues that answers named.
    pub(crate) queues: BTreeSet<String>,
    /// How many jobs were stored, other than those of workflows and schedules, less all that were removed.
    pub(crate) jobs: i64,
    /// How many were removed.
    pub(crate) removed: i64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.unanswered += other.unanswered;
        self.jobs += other.jobs;
        self.removed += other.removed;
        self.queues.extend(other.queues);
    }

    pub(crate) fn note(&mut self, request: &Request, answer: &HttpResponse) {
        *self.statuses.entry(answer.status).or_default() += 1;
        let body = &answer.body;
        if answer.status >= 400 && request.method != "HEAD" && answer.status != 431 {
            let says = body["error"]["code"].is_string() || !body["detail"].is_null();
            assert!(says || body.is_null(), "{answer} to {request}");
        }
        let target = request.target.strip_prefix("http://localhost").unwrap_or(&request.target);
        let path = target.split('?').next().unwrap_or_default();
        let of_admin = path.starts_with("/ojs/v1/admin/queues/").then(|| &body["name"]);
        let named = jobs_of(body).map(|job| &job["queue"]).chain([&body["queue"]["name"]]).chain(of_admin);
        self.queues.extend(named.filter_map(Value::as_str).map(str::to_owned));
        // A queue that is configured exists.
        let configured = path.split_once("/queues/").and_then(|(_, rest)| rest.split('/').next());
        let configured = configured.filter(|_| request.method == "PUT" && answer.status == 200);
        self.queues.extend(configured.map(str::to_owned));
        let count = |value: &Value| value.as_i64().unwrap_or(0);
        let stored = match (&*request.method, path, answer.status) {
            ("POST", "/ojs/v1/jobs", 201) => 1,
            ("POST", "/ojs/v1/jobs/batch", 201) => {
                count(&body["count"]) - body["existing"].as_array().map_or(0, Vec::len) as i64
            }
            ("POST", "/ojs/v1/jobs/batch", 409) => count(&body["error"]["details"]["enqueued"]),
            ("DELETE", "/ojs/v1/dead-letter", 200) | ("POST", "/ojs/v1/admin/jobs/bulk/delete", 200) => {
                -count(&body["succeeded"])
            }
            ("DELETE", "/ojs/v1/admin/dead-letter", 200) => -count(&body["succeeded"]),
            ("DELETE", path, 200) if path.starts_with("/ojs/v1/admin/queues/") => -count(&body["succeeded"]),
            ("DELETE", path, 200) if path.starts_with("/ojs/v1/dead-letter/") && body["deleted"] == true => -1,
            ("DELETE", path, 204) if path.starts_with("/ojs/v1/admin/dead-letter/") => -1,
            _ => 0,
        };
        self.jobs += stored;
        self.removed -= stored.min(0);
    }

    /// Checks that the client got successes and refusals of many kinds.
    pub(crate) fn assert_covers_statuses(&self) {
        for status in [200, 201, 400, 404, 405, 409, 421] {
            assert!(self.statuses.contains_key(&status), "never {status}: {self}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "answers {:?}, {} without one, {} jobs", self.statuses, self.unanswered, self.jobs)
    }
}

pub(crate) async fn run(address: SocketAddr, mut random: Rng, until: Instant) -> Tally {
    let mut caller = Caller::new(address);
    let mut tally = Tally::default();
    let mut ids = vec!["019539a4-0000-7000-8000-ffffffffffff".to_owned()];
    let mut hooks = vec!["sub_019539a4-0000-7000-8000-ffffffffffff".to_owned()];
    while Instant::now() < until {
        let request = request(&ids, &hooks, &mut random);
        match caller.send(&request).await {
            Some(answer) => {
                tally.note(&request, &answer);
                remember(&answer.body, &mut ids, &mut random);
                remember_hooks(&answer.body, &mut hooks, &mut random);
            }
            // A body that is refused unread, or a head that is not HTTP, may close the connection.
            None => tally.unanswered += 1,
        }
    }
    tally
}

/// The jobs of an answer.
fn jobs_of(body: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["jobs", "items"].into_iter().filter_map(|key| body[key].as_array()).flatten();
    lists.chain([&body["job"]])
}

/// Takes the ids of jobs from an answer, except those of the neighbour.
fn remember(body: &Value, ids: &mut Vec<String>, random: &mut Rng) {
    for job in jobs_of(body) {
        if let Some(id) = job["id"].as_str()
            && job["queue"] != neighbour::QUEUE
        {
            add(id, ids, random);
        }
    }
    let states = ["states", "nodes"].into_iter().filter_map(|key| body[key].as_array()).flatten();
    for state in states.chain([body]) {
        for id in ["state_id", "run_id"].into_iter().filter_map(|key| state[key].as_str()) {
            add(id, ids, random);
        }
    }
}

/// Takes the ids of subscriptions and deliveries from an answer, except those of the neighbour.
fn remember_hooks(body: &Value, hooks: &mut Vec<String>, random: &mut Rng) {
    let lists = ["subscriptions", "deliveries"].into_iter().filter_map(|key| body[key].as_array()).flatten();
    for one in lists.chain([body]) {
        // A delivery in a list names no address: those of the neighbour are of one type that no other has.
        let of_neighbour = one["url"] == neighbour_url() || one["event_type"] == "job.completed";
        if let Some(id) = one["id"].as_str().filter(|id| id.starts_with("sub_") || id.starts_with("del_"))
            && !of_neighbour
        {
            add(id, hooks, random);
        }
    }
}

fn add(id: &str, ids: &mut Vec<String>, random: &mut Rng) {
    if ids.len() < IDS {
        ids.push(id.to_owned());
    } else {
        ids[random.usize(..IDS)] = id.to_owned();
    }
}

fn request(ids: &[String], hooks: &[String], random: &mut Rng) -> Request {
    let place = random.usize(..ENDPOINTS.len() + graphs::ENDPOINTS.len());
    let (method, path) = ENDPOINTS.iter().chain(&graphs::ENDPOINTS).copied().nth(place).expect("one of them");
    let id = &ids[random.usize(..ids.len())];
    let method = if random.u8(..20) == 0 { METHODS[random.usize(..METHODS.len())] } else { method };
    let target = target(path, id, &hooks[random.usize(..hooks.len())], random);
    let body = match method {
        "GET" | "HEAD" if random.u8(..10) > 0 => Vec::new(),
        _ if path.starts_with("/v0/") => mutate::text(graphs::document(path, random), random),
        _ => mutate::text(document(path, id, random), random),
    };
    let mut request = Request::new(method, &target, body);
    while random.u8(..4) == 0 {
        let (name, value) = HEADERS[random.usize(..HEADERS.len())];
        request.headers.push((name, value.to_vec()));
    }
    request
}

fn target(path: &str, id: &str, hook: &str, random: &mut Rng) -> String {
    let queue = match random.u8(..10) {
        0 => STRANGE_QUEUES[random.usize(..STRANGE_QUEUES.len())],
        1 => "No%20Queue",
        _ => QUEUES[random.usize(..QUEUES.len())],
    };
    let word = ["not_found", "nonsense", "%F0%9F%98%80", "%ff"][random.usize(..4)];
    let schedule = SCHEDULES[random.usize(..SCHEDULES.len())];
    // The workers of this test have another name, and go on.
    let worker = if random.bool() { "w" } else { word };
    let mut target = path.replace("{id}", id).replace("{queue}", queue).replace("{word}", word);
    target = target.replace("{schedule}", schedule).replace("{worker}", worker).replace("{hook}", hook);
    target = target.replace("{limit}", LIMIT_KEYS[random.usize(..LIMIT_KEYS.len())]).replace("{type}", "work.do");
    match random.u8(..40) {
        0 => target.push_str("/more"),
        1 => target.insert(0, '/'),
        2 => target.push_str(&"x".repeat(random.usize(..9_000))),
        3 => target.truncate(random.usize(1..=target.len())),
        4 => target = format!("http://localhost{target}"),
        5 => target = format!("http://evil.example{target}"),
        _ => {}
    }
    let mut sign = '?';
    let chance =
        if path.ends_with("dead-letter") || path.ends_with("jobs") || path.ends_with("events") { 2 } else { 10 };
    while random.u8(..chance) == 0 {
        let name = PARAMETERS[random.usize(..PARAMETERS.len())];
        target.push_str(&format!("{sign}{name}={}", VALUES[random.usize(..VALUES.len())]));
        sign = '&';
    }
    target
}
