//! Telling the server how runs ended: whatever has come together while the last report was under way.

use super::runner::Runner;
use crate::away::Waits;
use crate::transport::{Ending, Report, Settled};
use crate::{ClientError, Event, Refused};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many reports share a request.
const MOST_TOGETHER: usize = 1_000;

/// Reports for as long as the worker runs.
pub(super) async fn run<S: Send + Sync + 'static>(runner: Arc<Runner<S>>) {
    loop {
        let reported = runner.reported.notified();
        let reports = runner.desk().reports(MOST_TOGETHER);
        if reports.is_empty() {
            reported.await;
            continue;
        }
        deliver(&runner, reports).await;
        runner.room.notify_one();
    }
}

/// Delivers reports, however long the server is away. A lease that runs out meanwhile makes a report
/// late, not wrong: the server refuses it.
async fn deliver<S: Send + Sync + 'static>(runner: &Runner<S>, reports: Vec<Report>) {
    let mut away = Waits::away();
    let answers = loop {
        match runner.transport().settle(&reports, &runner.settings.terms).await {
            Ok(answers) => break answers,
            Err(error) if error.is_temporary() => {
                let wait = away.next_wait();
                runner.tell(&Event::Away(&error, wait));
                tokio::time::sleep(wait).await;
            }
            Err(error) => break refused_whole(&error, reports.len()),
        }
    };
    if away.reset() {
        runner.tell(&Event::Back);
    }
    for (report, answer) in reports.iter().zip(&answers) {
        note(runner, report, answer);
    }
    let mut desk = runner.desk();
    reports.iter().for_each(|report| desk.forget(&report.run));
}

/// A list that the server does not take: none of its reports counts.
fn refused_whole(error: &ClientError, count: usize) -> Vec<Settled> {
    let refused = match error {
        ClientError::Refused(refused) => refused.clone(),
        other => Refused { status: 0, code: "error".to_owned(), message: other.to_string() },
    };
    vec![Settled::Refused(refused); count]
}

fn note<S: Send + Sync + 'static>(runner: &Runner<S>, report: &Report, answer: &Settled) {
    let (job, tally) = (&report.run.job, &runner.tally);
    match answer {
        Settled::As { state, retry_after, dead } => {
            let count = match report.ending {
                Ending::Done(_) => &tally.done,
                Ending::Failed(_) => &tally.failed,
                Ending::Released(_) => &tally.released,
            };
            count.fetch_add(1, Ordering::Relaxed);
            runner.tell(&Event::Settled { job, state, retry_after: *retry_after, dead: *dead });
        }
        Settled::Refused(refused) => {
            tally.lost.fetch_add(1, Ordering::Relaxed);
            runner.tell(&Event::Refused(job, refused));
        }
    }
}
