//! Compares the unique and limited jobs of the servers with the ledger of the clients.

use super::ledger::{BY_KEY, BY_QUEUE, KEY_LIMIT, QUEUE_LIMIT, Restricted};
use crate::check::all_jobs;
use crate::harness::{Server, until};
use crate::ledger::text;
use redrive_ojs::time::parse_rfc3339;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

fn has_ended(job: &Value) -> bool {
    ["completed", "cancelled", "discarded"].contains(&&*text(job, "state"))
}

/// Everything that holds at any moment: nothing that was acknowledged is lost, no two jobs of a unique kind have not
/// ended, and no limit is exceeded.
pub(crate) fn compared(server: &Server, ledger: &Mutex<Restricted>, when: &str) {
    let jobs = all_jobs(server);
    let ledger = ledger.lock().expect("no thread panicked");
    let stored: BTreeSet<String> = jobs.iter().map(|job| text(job, "id")).collect();
    let lost = ledger.created.difference(&stored).map(|id| format!("{id} was acknowledged and is lost"));
    let mut wrong: Vec<String> = lost.collect();
    let mut unended: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| text(job, "type").starts_with("unique") && !has_ended(job)) {
        unended.entry(text(job, "type")).or_default().push(job);
    }
    wrong.extend(unended.values().filter(|jobs| jobs.len() > 1).map(|jobs| format!("duplicates: {jobs:?}")));
    for (kind, most) in [(BY_KEY, KEY_LIMIT), (BY_QUEUE, QUEUE_LIMIT)] {
        let active = jobs.iter().filter(|job| text(job, "type") == kind && text(job, "state") == "active").count();
        if active > most {
            wrong.push(format!("{active} jobs of {kind} are active"));
        }
    }
    wrong.extend(ledger.exceeded());
    assert!(wrong.is_empty(), "{when}: {wrong:#?}");
}

/// Waits until all jobs have ended.
pub(crate) fn all_over(server: &Server) {
    until("every job is over", || all_jobs(server).iter().all(has_ended).then_some(()));
}

/// The jobs of a unique kind were there one after the other: each had ended before the next was created.
pub(crate) fn lifetimes(server: &Server, ledger: &Restricted) {
    let mut kinds: BTreeMap<String, Vec<(i64, i64, String)>> = BTreeMap::new();
    let micros = |job: &Value, key: &str| parse_rfc3339(&text(job, key)).map(|at| at.micros());
    for job in all_jobs(server).iter().filter(|job| text(job, "type").starts_with("unique")) {
        let ended = ["completed_at", "cancelled_at", "discarded_at"].iter().find_map(|key| micros(job, key));
        let lifetime = (micros(job, "created_at"), ended);
        let (Some(created), Some(ended)) = lifetime else { panic!("a job without its times: {job}") };
        if !ledger.redriven.contains(&text(job, "id")) {
            kinds.entry(text(job, "type")).or_default().push((created, ended, text(job, "id")));
        }
    }
    let slack = ledger.slack.as_micros() as i64;
    for (kind, mut jobs) in kinds {
        jobs.sort();
        // A job that replaces another may have asked earlier, on another node, and then have waited for it. By these
        // times the one that it replaced ended before it was created, and overlaps with nothing.
        let mut last = &jobs[0];
        let mut overlap = None;
        for job in &jobs[1..] {
            if last.1.min(job.1) > job.0 + slack {
                overlap = Some((last, job));
            }
            last = if job.1 > last.1 { job } else { last };
        }
        assert!(overlap.is_none(), "two jobs of {kind} at the same time: {overlap:?}");
    }
}
