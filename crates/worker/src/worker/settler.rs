//! Reporting to the server how runs ended: all reports that gathered while the last request was in progress.

use super::runner::Runner;
use crate::delay::GrowingDelay;
use crate::transport::{Ending, RunReport, Settled};
use crate::{ClientError, Event, Failure, Refused};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many reports share a request.
const MAX_BATCH: usize = 1_000;

/// Reports for as long as the worker runs.
pub(super) async fn run<S: Send + Sync + 'static>(runner: Arc<Runner<S>>) {
    loop {
        let reported = runner.reported.notified();
        let reports = runner.buffer().reports(MAX_BATCH);
        if reports.is_empty() {
            reported.await;
            continue;
        }
        deliver(&runner, reports).await;
        runner.room.notify_one();
    }
}

/// Delivers reports, however long the server is unreachable. If the lease expires meanwhile, the server refuses
/// the report.
async fn deliver<S: Send + Sync + 'static>(runner: &Runner<S>, reports: Vec<RunReport>) {
    let mut lists = vec![reports];
    while let Some(mut list) = lists.pop() {
        let answers = match answered(runner, &list).await {
            Ok(answers) => answers,
            // One of the reports is invalid or too long: halving the list isolates it.
            Err(_) if list.len() > 1 => {
                let rest = list.split_off(list.len() / 2);
                lists.extend([rest, list]);
                continue;
            }
            Err(refused) => vec![Settled::Refused(refused)],
        };
        let unreadable = apply_answers(runner, list, &answers);
        if !unreadable.is_empty() {
            lists.push(unreadable);
        }
    }
}

/// Records the answers. For reports that the server cannot read, it returns failures to send instead.
fn apply_answers<S: Send + Sync + 'static>(
    runner: &Runner<S>,
    list: Vec<RunReport>,
    answers: &[Settled],
) -> Vec<RunReport> {
    let mut unreadable = Vec::new();
    let mut finished = Vec::with_capacity(list.len());
    for (report, answer) in list.into_iter().zip(answers) {
        match answer {
            Settled::Refused(refused) if is_about_content(refused) && !is_substitute(&report) => {
                unreadable.push(RunReport { ending: substitute(refused), ..report });
            }
            _ => {
                count(runner, &report, answer);
                finished.push(report.run);
            }
        }
    }
    let mut buffer = runner.buffer();
    finished.iter().for_each(|run| buffer.forget(run));
    unreadable
}

/// The answers of the server, once it answers.
///
/// # Errors
/// It cannot read the list.
async fn answered<S: Send + Sync + 'static>(runner: &Runner<S>, list: &[RunReport]) -> Result<Vec<Settled>, Refused> {
    let mut unreachable = GrowingDelay::unreachable();
    loop {
        let error = match runner.transport().settle(list, &runner.settings.report_defaults).await {
            Ok(answers) => {
                if unreachable.reset() {
                    runner.emit(&Event::Back);
                }
                return Ok(answers);
            }
            Err(ClientError::Refused(refused)) if is_about_content(&refused) => return Err(refused),
            Err(error) => error,
        };
        let wait = unreachable.next_delay();
        runner.emit(&Event::Unreachable(&error, wait));
        tokio::time::sleep(wait).await;
    }
}

/// Whether the server refuses the content of a report, not its lease or its sender.
const fn is_about_content(refused: &Refused) -> bool {
    matches!(refused.status, 400 | 413 | 422)
}

/// The type of the failure that replaces a report that the server cannot read.
const SUBSTITUTE: &str = "report_refused";

/// Replaces a result that is too long, or an error that is not valid, by a failure that says so. Running the job
/// again would end the same way.
fn substitute(refused: &Refused) -> Ending {
    let message = format!("the server does not accept the outcome of the handler: {}", refused.message);
    Ending::Failed(Failure::new(SUBSTITUTE, message).unrecoverable())
}

fn is_substitute(report: &RunReport) -> bool {
    matches!(&report.ending, Ending::Failed(failure) if failure.type_name() == SUBSTITUTE)
}

fn count<S: Send + Sync + 'static>(runner: &Runner<S>, report: &RunReport, answer: &Settled) {
    let (job, tally) = (&report.run.job, &runner.tally);
    match answer {
        Settled::Accepted { state, retry_after, dead } => {
            let count = match report.ending {
                Ending::Done(_) => &tally.done,
                Ending::Failed(_) => &tally.failed,
                Ending::Released(_) | Ending::Declined { .. } => &tally.released,
            };
            count.fetch_add(1, Ordering::Relaxed);
            runner.emit(&Event::Settled { job, state, retry_after: *retry_after, dead: *dead });
        }
        Settled::Refused(refused) => {
            tally.lost.fetch_add(1, Ordering::Relaxed);
            runner.emit(&Event::Refused(job, refused));
        }
    }
}
