//! The bodies of the requests, and the parts of the answers that are read.

use serde::Deserialize;
use std::io::Write;
use std::ops::Range;

/// For jobs that fail twice and then succeed: three runs without delay.
const RETRY_POLICY: &str = concat!(
    r#","retry":{"dialect":"azolla","policy":{"stop":{"max_attempts":3},"#,
    r#""wait":{"strategy":"fixed","delay":0},"retry":{"include_errors":["planned"]}}}"#
);

/// For jobs that must be the only one of their arguments.
const UNIQUE: &str = r#","unique":{"keys":["type","args"]}"#;

/// What is special about the jobs of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Nothing,
    /// They fail twice and then succeed.
    Fails,
    /// They are unique jobs.
    Unique,
}

/// What all jobs of a phase have in common.
#[derive(Clone, Debug)]
pub(super) struct JobTemplate {
    queue: String,
    /// From the end of the number to the end of the job.
    tail: Vec<u8>,
}

impl JobTemplate {
    pub(super) fn new(queue: String, special: Special) -> Self {
        let note = "x".repeat(64);
        let option = match special {
            Special::Nothing => "",
            Special::Fails => RETRY_POLICY,
            Special::Unique => UNIQUE,
        };
        let tail = format!(r#","kind":"bench","note":"{note}"}}],"options":{{"queue":"{queue}"{option}}}}}"#);
        Self { queue, tail: tail.into_bytes() }
    }

    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    /// One job, appended.
    pub(super) fn push_job(&self, body: &mut Vec<u8>, number: usize) {
        body.extend_from_slice(br#"{"type":"bench.job","args":[{"i":"#);
        body.extend_from_slice(number.to_string().as_bytes());
        body.extend_from_slice(&self.tail);
    }

    /// A batch of jobs.
    pub(super) fn push_batch(&self, body: &mut Vec<u8>, numbers: Range<usize>) {
        body.extend_from_slice(br#"{"jobs":["#);
        self.push_jobs(body, numbers);
        body.extend_from_slice(b"]}");
    }

    /// A workflow of jobs, one after the other.
    pub(super) fn push_chain(&self, body: &mut Vec<u8>, numbers: Range<usize>) {
        body.extend_from_slice(br#"{"type":"chain","name":"bench","steps":["#);
        self.push_jobs(body, numbers);
        body.extend_from_slice(b"]}");
    }

    /// A workflow of jobs at the same time; the last one runs when the others have completed.
    pub(super) fn push_group(&self, body: &mut Vec<u8>, numbers: Range<usize>) {
        let last = numbers.end.saturating_sub(1);
        body.extend_from_slice(br#"{"type":"batch","name":"bench","jobs":["#);
        self.push_jobs(body, numbers.start..last);
        body.extend_from_slice(br#"],"callbacks":{"on_complete":"#);
        self.push_job(body, last);
        body.extend_from_slice(b"}}");
    }

    fn push_jobs(&self, body: &mut Vec<u8>, numbers: Range<usize>) {
        for number in numbers.clone() {
            if number != numbers.start {
                body.push(b',');
            }
            self.push_job(body, number);
        }
    }

    /// A request for jobs, which waits for a while if there are none.
    pub(super) fn fetch(&self, count: usize) -> Vec<u8> {
        format!(r#"{{"queues":["{}"],"count":{count},"worker_id":"bench","wait_ms":1000}}"#, self.queue).into_bytes()
    }
}

/// The answer to a fetch, as far as it matters.
#[derive(Debug, Deserialize)]
pub(super) struct Fetched<'a> {
    #[serde(borrow)]
    pub(super) jobs: Vec<Claimed<'a>>,
}

/// A claimed job.
#[derive(Debug, Deserialize)]
pub(super) struct Claimed<'a> {
    pub(super) id: &'a str,
    pub(super) attempt: u32,
    pub(super) lease_token: &'a str,
    pub(super) args: [Payload; 1],
}

/// The argument of a job: its number.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    pub(super) i: usize,
}

/// The end of a run as a request of its own.
pub(super) fn push_end(body: &mut Vec<u8>, job: &Claimed<'_>, fails: bool) {
    body.push(b'{');
    push_report(body, job, fails);
    body.push(b'}');
}

/// The end of a run as one of many; [`close_settlement`] ends the request.
pub(super) fn push_settlement(body: &mut Vec<u8>, job: &Claimed<'_>, fails: bool) {
    let lead: &[u8] = if body.is_empty() { br#"{"settlements":[{"action":""# } else { br#",{"action":""# };
    body.extend_from_slice(lead);
    body.extend_from_slice(if fails { br#"nack","# } else { br#"ack","# });
    push_report(body, job, fails);
    body.push(b'}');
}

/// Ends a request that settles many.
pub(super) fn close_settlement(body: &mut Vec<u8>) {
    body.extend_from_slice(b"]}");
}

fn push_report(body: &mut Vec<u8>, job: &Claimed<'_>, fails: bool) {
    let error = if fails { r#","error":{"type":"planned","message":"planned"}"# } else { "" };
    // Writing into memory does not fail.
    let _ = write!(body, r#""job_id":"{}","lease_token":"{}"{error}"#, job.id, job.lease_token);
}

/// The answer to a request that settles many, as far as it matters.
#[derive(Debug, Deserialize)]
pub(super) struct Settled {
    pub(super) settled: usize,
    pub(super) refused: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_policy::dialect::Dialect;
    use serde_json::{Value, json};

    #[test]
    fn what_is_sent_is_json_and_its_policy_is_valid() {
        let template = JobTemplate::new("bench-1-d".to_owned(), Special::Fails);
        let mut body = Vec::new();
        template.push_batch(&mut body, 7..9);
        let batch: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(batch["jobs"][1]["args"][0]["i"], 8);
        let retry = &batch["jobs"][0]["options"]["retry"];
        let dialect: Dialect = retry["dialect"].as_str().expect("named").parse().expect("known");
        let policy = dialect.read(&retry["policy"]).expect("valid").policy;
        assert_eq!(policy.attempts.max_runs(), Some(3));
        assert!(policy.rules[0].backoff.initial.is_zero());
    }

    #[test]
    fn workflows_have_every_job_once() {
        let template = JobTemplate::new("bench-1-w".to_owned(), Special::Nothing);
        let (mut chain, mut group) = (Vec::new(), Vec::new());
        template.push_chain(&mut chain, 10..20);
        template.push_group(&mut group, 0..101);
        let chain: Value = serde_json::from_slice(&chain).expect("JSON");
        let group: Value = serde_json::from_slice(&group).expect("JSON");
        let numbers = |jobs: &Value| jobs.as_array().expect("a list").iter().map(number_of).collect::<Vec<u64>>();
        assert_eq!(numbers(&chain["steps"]), (10..20).collect::<Vec<u64>>());
        assert_eq!(numbers(&group["jobs"]), (0..100).collect::<Vec<u64>>());
        assert_eq!(number_of(&group["callbacks"]["on_complete"]), 100);
    }

    fn number_of(job: &Value) -> u64 {
        job["args"][0]["i"].as_u64().expect("a number")
    }

    #[test]
    fn many_reports_are_one_document() {
        let answer = br#"{"jobs":[{"id":"x","attempt":1,"lease_token":"1-0","args":[{"i":5,"note":"n"}],"more":[1]}]}"#;
        let fetched: Fetched<'_> = serde_json::from_slice(answer).expect("JSON");
        let (mut body, mut single) = (Vec::new(), Vec::new());
        push_settlement(&mut body, &fetched.jobs[0], true);
        push_settlement(&mut body, &fetched.jobs[0], false);
        close_settlement(&mut body);
        push_end(&mut single, &fetched.jobs[0], true);
        let error = json!({ "type": "planned", "message": "planned" });
        assert_eq!(
            serde_json::from_slice::<Value>(&body).expect("JSON"),
            json!({ "settlements": [
                { "action": "nack", "job_id": "x", "lease_token": "1-0", "error": error },
                { "action": "ack", "job_id": "x", "lease_token": "1-0" },
            ] })
        );
        let single: Value = serde_json::from_slice(&single).expect("JSON");
        assert_eq!(single, json!({ "job_id": "x", "lease_token": "1-0", "error": error }));
    }
}
