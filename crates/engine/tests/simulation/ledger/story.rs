//! One job's story as people read it, for a seed that failed.

use super::{Account, Ended, Ledger, Reply, When};
use redrive_policy::{Moment, Outcome};
use redrive_store::Job;

impl Ledger {
    /// Everything that is known of a job, in the order of events.
    pub(crate) fn story(&self, account: usize) -> String {
        let account = &self.accounts[account];
        let mut lines: Vec<(When, String)> = Vec::new();
        events(account, &mut lines);
        lines.sort_by_key(|(when, _)| (when.from, when.to));
        let mut story = format!("{:?}\n", account.planned_jobs);
        for (when, line) in lines {
            let (from, to) = (seconds(self.earliest(when.from, when.to)), seconds(self.latest(when.from, when.to)));
            story.push_str(&format!("{:>6}..{:<6} {from}..{to}  {line}\n", when.from, when.to));
        }
        story
    }
}

fn events(account: &Account, lines: &mut Vec<(When, String)>) {
    let mut line = |when: When, text: String| lines.push((when, text));
    for submit in &account.submits {
        line(submit.when, format!("submit: {:?}", submit.outcome));
    }
    for (number, run) in &account.runs {
        line(run.when, format!("claim by {}: lease {number}, {}", run.worker, short(&run.job)));
    }
    for settle in &account.settles {
        let ending = match &settle.ending {
            Ended::Done { .. } => "done".to_owned(),
            Ended::Failed { number, reported } => format!("failed with error {number}, {reported:?}"),
            Ended::Released { delay } => format!("released for {delay}"),
        };
        line(settle.when, format!("settle lease {:?}: {ending}: {}", settle.run, in_short(&settle.reply)));
    }
    for extend in &account.extends {
        line(extend.when, format!("extend lease {:?} by {:?}: {}", extend.run, extend.span, in_short(&extend.reply)));
    }
    let calls = [("cancel", &account.cancels), ("activate", &account.activations), ("remove", &account.removals)];
    for (name, calls) in calls {
        for call in calls {
            line(call.when, format!("{name}: {}", in_short(&call.reply)));
        }
    }
    for redrive in &account.generation {
        line(redrive.when, format!("redrive with version {:?}: {}", redrive.version, in_short(&redrive.reply)));
    }
    for observation in &account.observations {
        line(
            observation.when,
            format!("seen: {}", observation.job.as_ref().map_or("not there".to_owned(), |job| short(job))),
        );
    }
}

fn in_short(reply: &Reply) -> String {
    match reply {
        Reply::Yes(job) => short(job),
        Reply::No(refusal) => format!("refused, {refusal:?}"),
        Reply::Lost => "no answer".to_owned(),
    }
}

/// Seconds of the day, which is as much as a story needs.
fn seconds(moment: Moment) -> String {
    format!("{:.6}", moment.micros() as f64 / 1e6 % 1e7)
}

/// What matters of a job, in one line.
pub(crate) fn short(job: &Job) -> String {
    let lease = job.lease.as_ref().map(|lease| {
        format!(
            "lease {} until {} deadline {:?}",
            lease.token.number,
            seconds(lease.until),
            lease.deadline.map(seconds)
        )
    });
    let failures: Vec<String> = job
        .failures
        .iter()
        .map(|run| {
            let error = String::from_utf8_lossy(&run.error);
            let error: String = error.chars().take(16).collect();
            let decided = match run.verdict.outcome {
                Outcome::Retry { delay, .. } => format!("retry after {} ms", delay.ms()),
                Outcome::Stop { reason, disposition } => format!("{} {disposition}", reason.name()),
            };
            format!("{}/{} at {} {error}: {decided}", run.generation, run.attempt, seconds(run.at))
        })
        .collect();
    format!(
        "{} generation {} attempt {} leases {} releases {} due {:?} dead {} lease {:?} failures {failures:?}",
        job.state,
        job.generation,
        job.attempt,
        job.leases,
        job.releases,
        job.due.map(seconds),
        job.dead,
        lease,
    )
}
