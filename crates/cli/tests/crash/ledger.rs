//! The ledger of the client: what it sent, what was acknowledged, and what must therefore be true.

use serde_json::Value;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a lease lasts.
pub(crate) const LEASE: Duration = Duration::from_millis(1_500);

/// Whether something that was sent took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// No answer came: it may have taken effect or not.
    Unknown,
    /// The server acknowledged it.
    Yes,
}

/// The policy of a job, and how its runs end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobPlan {
    /// How many runs it may have.
    pub(crate) limit: u32,
    /// How many of its runs fail before one succeeds.
    pub(crate) failing: u32,
    /// The wait after each failure.
    pub(crate) delay: Duration,
    /// The wait before its first run.
    pub(crate) start: Duration,
    /// Whether it ends among the dead letters when its runs are used up.
    pub(crate) dead_letter: bool,
}

/// A run that this client holds, or held.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) token: Value,
    pub(crate) attempt: u32,
    /// When it was asked for; the lease began no earlier.
    pub(crate) asked: Instant,
    /// When it was requested or when the job became available, whichever was later according to the server:
    /// a request may have been on its way while another node, whose clock is a little ahead, found the job due.
    begun_at: String,
    expires_at: String,
    /// Whether its end was sent, and how it ended: success or failure.
    pub(crate) ended: Option<(Acknowledged, bool)>,
    /// How often its end was sent, and when first.
    reports: u32,
    reported: Instant,
}

/// A failure that the server acknowledged.
#[derive(Clone, Debug)]
struct Failure {
    attempt: u32,
    /// When it was first sent, and the wait that the server announced: no next run before both are over.
    sent: Instant,
    delay: Duration,
    due_at: Option<String>,
}

/// What is known of one job.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) plan: JobPlan,
    pub(crate) created: Acknowledged,
    /// Jobs of one batch are stored all or none.
    batch: u64,
    sent: Instant,
    /// By attempt.
    pub(crate) runs: Vec<Run>,
    failures: Vec<Failure>,
    /// The end that the server acknowledged or showed.
    pub(crate) terminal: Option<String>,
    /// When the client learned it. An earlier request may have been answered before.
    ended: Instant,
    pub(crate) cancel_sent: bool,
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// How far the clocks of two servers may be apart. The times that they report must still be consistent;
    /// only what the client measures by its own clock may be off by this much.
    pub(crate) slack: Duration,
    pub(crate) jobs: HashMap<String, Entry>,
    /// The violations so far, for the report at the end of a round.
    pub(crate) wrong: Vec<String>,
    pub(crate) acknowledged: usize,
}

impl Ledger {
    pub(crate) fn sent(&mut self, id: &str, plan: JobPlan, batch: u64) {
        let entry = Entry {
            plan,
            created: Acknowledged::Unknown,
            batch,
            sent: Instant::now(),
            runs: Vec::new(),
            failures: Vec::new(),
            terminal: None,
            ended: Instant::now(),
            cancel_sent: false,
        };
        self.jobs.insert(id.to_owned(), entry);
    }

    pub(crate) fn created(&mut self, id: &str) {
        self.acknowledged += 1;
        self.entry(id).created = Acknowledged::Yes;
    }

    pub(crate) fn entry(&mut self, id: &str) -> &mut Entry {
        self.jobs.get_mut(id).unwrap_or_else(|| panic!("job {id} was never sent"))
    }

    /// A job was claimed.
    pub(crate) fn fetched(&mut self, job: &Value, asked: Instant) {
        let id = text(job, "id");
        if !self.jobs.contains_key(&id) {
            return self.wrong.push(format!("{id} was claimed and never sent"));
        }
        self.acknowledged += 1;
        let slack = self.slack;
        let entry = self.entry(&id);
        // A job that was seen is stored.
        entry.created = Acknowledged::Yes;
        let attempt = number(job, "attempt");
        let run = Run {
            token: job["lease_token"].clone(),
            attempt,
            asked,
            begun_at: text(job, "started_at").max(text(job, "enqueued_at")),
            expires_at: text(job, "lease_expires_at"),
            ended: None,
            reports: 0,
            reported: Instant::now(),
        };
        let problem = entry.problem_of_run(&run, job, slack);
        // Of two answers the later one may be heard first.
        let index = entry.runs.partition_point(|other| other.attempt <= attempt);
        entry.runs.insert(index, run);
        self.wrong.extend(problem.map(|problem| format!("{id}: {problem}: {job}")));
    }

    /// The end of a run is about to be sent.
    pub(crate) fn ending(&mut self, id: &str, token: &Value, success: bool) {
        let run = self.run(id, token);
        run.ended = Some((Acknowledged::Unknown, success));
        if run.reports == 0 {
            run.reported = Instant::now();
        }
        run.reports += 1;
    }

    /// The server has answered to the end of a run.
    pub(crate) fn ended(&mut self, id: &str, token: &Value, status: u64, answer: &Value) {
        let run = self.run(id, token).clone();
        let Some((_, success)) = run.ended else { panic!("{id}: an answer to nothing") };
        if status == 200 {
            self.acknowledged += 1;
            self.run(id, token).ended = Some((Acknowledged::Yes, success));
            let entry = self.entry(id);
            if !success {
                // Announced in whole milliseconds, the nearest: the wait itself may be half a one shorter.
                let delay = Duration::from_millis(answer["retry_delay_ms"].as_u64().unwrap_or(0).saturating_sub(1));
                let due_at = answer["next_attempt_at"].as_str().map(str::to_owned);
                entry.failures.push(Failure { attempt: run.attempt, sent: run.reported, delay, due_at });
            }
            let state = text(answer, "state");
            if ["completed", "discarded"].contains(&state.as_str()) {
                entry.end(state);
            }
            return;
        }
        // Allowed if the lease is over, the job was cancelled, or an earlier report without an answer
        // may have ended the run.
        let over = run.asked.elapsed() + self.slack >= LEASE || self.entry(id).cancel_sent || run.reports > 1;
        if status != 409 || !over {
            self.wrong.push(format!("{id}: a good lease was refused with {status}: {answer}"));
        }
    }

    pub(crate) fn cancelled(&mut self, id: &str) {
        self.acknowledged += 1;
        self.entry(id).end("cancelled".to_owned());
    }

    fn run(&mut self, id: &str, token: &Value) -> &mut Run {
        let runs = &mut self.entry(id).runs;
        runs.iter_mut().find(|run| run.token == *token).expect("a run of this client")
    }

    /// Compares everything that the server has with the ledger, and resolves what was unknown.
    pub(crate) fn compare(&mut self, listed: &[Value]) {
        let mut found = HashMap::new();
        for job in listed {
            let id = text(job, "id");
            match self.jobs.get_mut(&id) {
                None => self.wrong.push(format!("{id} is stored and was never sent")),
                Some(entry) => {
                    self.wrong
                        .extend(entry.problems_of(job).into_iter().map(|problem| format!("{id}: {problem}: {job}")));
                }
            }
            if found.insert(id.clone(), job).is_some() {
                self.wrong.push(format!("{id} is listed twice"));
            }
        }
        let mut batches: HashMap<u64, (usize, usize)> = HashMap::new();
        for (id, entry) in &self.jobs {
            let stored = found.contains_key(id);
            if entry.created == Acknowledged::Yes && !stored {
                self.wrong.push(format!("{id} was acknowledged and is lost"));
            }
            let (there, gone) = batches.entry(entry.batch).or_default();
            if stored { *there += 1 } else { *gone += 1 }
        }
        for (batch, (there, gone)) in batches {
            if there > 0 && gone > 0 {
                self.wrong.push(format!("of batch {batch} {there} jobs are stored and {gone} are not"));
            }
        }
        // A job that was unknown and is not stored will never be; a stored one stays.
        self.jobs.retain(|id, entry| {
            entry.created = if found.contains_key(id) { Acknowledged::Yes } else { entry.created };
            entry.created == Acknowledged::Yes
        });
    }
}

impl Entry {
    /// What is wrong with this claim, if anything.
    fn problem_of_run(&self, run: &Run, job: &Value, slack: Duration) -> Option<String> {
        let Run { attempt, asked, begun_at, expires_at, .. } = run;
        let since = |moment: Instant| moment.elapsed() + slack;
        if let Some(terminal) = self.terminal.as_ref().filter(|_| *asked >= self.ended) {
            return Some(format!("it is {terminal}, and was claimed"));
        }
        if *attempt > self.plan.limit {
            return Some(format!("attempt {attempt} of at most {}", self.plan.limit));
        }
        if since(self.sent) < self.plan.start || *begun_at < text(job, "scheduled_at") {
            return Some(format!("its first run came before its start in {:?}", self.plan.start));
        }
        let (earlier, later): (Vec<&Run>, Vec<&Run>) = self.runs.iter().partition(|other| other.attempt <= *attempt);
        if let Some(last) = earlier.last() {
            if *attempt == last.attempt || *begun_at < last.begun_at {
                return Some(format!("attempt {attempt} after attempt {} at {}", last.attempt, last.begun_at));
            }
            if last.ended.is_none() && *begun_at < last.expires_at {
                return Some(format!("two leases at once: one until {}", last.expires_at));
            }
        }
        if let Some(next) = later.first().filter(|next| next.begun_at < *expires_at) {
            return Some(format!("two leases at once: attempt {} from {}", next.attempt, next.begun_at));
        }
        let failed = self.failures.iter().find(|failure| failure.attempt + 1 == *attempt)?;
        let early = since(failed.sent) < failed.delay || failed.due_at.as_ref().is_some_and(|due_at| begun_at < due_at);
        early.then(|| format!("early: the failure before it said {failed:?}"))
    }

    fn end(&mut self, state: String) {
        if self.terminal.is_none() {
            (self.terminal, self.ended) = (Some(state), Instant::now());
        }
    }

    /// What is wrong with a job as the server shows it; also records its end.
    fn problems_of(&mut self, job: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        let state = text(job, "state");
        let attempt = number(job, "attempt");
        if let Some(terminal) = self.terminal.as_ref().filter(|terminal| **terminal != state) {
            problems.push(format!("it was {terminal} and is {state}"));
        }
        if ["completed", "discarded", "cancelled"].contains(&state.as_str()) {
            self.end(state.clone());
        }
        let last_attempt = self.runs.last().map_or(0, |run| run.attempt);
        if attempt > self.plan.limit || attempt < last_attempt {
            problems.push(format!("attempt {attempt}, of {}, after {last_attempt}", self.plan.limit));
        }
        let errors = job["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let attempts: Vec<u32> = errors.iter().map(|error| number(error, "attempt")).collect();
        if !attempts.iter().copied().eq(1..=attempts.len() as u32) {
            problems.push(format!("failures of attempts {attempts:?}"));
        }
        for failure in &self.failures {
            let message = message_of(failure.attempt);
            if !errors.iter().any(|error| error["attempt"] == failure.attempt && error["message"] == *message) {
                problems.push(format!("the acknowledged failure of attempt {} is not in the history", failure.attempt));
            }
        }
        // Every run that is over has failed, except one that succeeded, was cancelled, or is still running.
        let failed = errors.len() as u32;
        let fits = match state.as_str() {
            "completed" | "active" => failed + 1 == attempt,
            "cancelled" => failed == attempt || failed + 1 == attempt,
            "discarded" => failed == attempt && attempt == self.plan.limit,
            _ => failed == attempt,
        };
        if !fits {
            problems.push(format!("{failed} failures and attempt {attempt} of {} when {state}", self.plan.limit));
        }
        problems
    }
}

/// The message with which a run of this number fails.
pub(crate) fn message_of(attempt: u32) -> String {
    format!("planned failure of attempt {attempt}")
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value, key: &str) -> u32 {
    value[key].as_u64().and_then(|number| number.try_into().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
