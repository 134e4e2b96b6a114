//! Jobs that are enqueued one by one while a few requests are under way share the next request.
//!
//! No call waits for company: one that finds few requests under way is sent at once. Requests are sent by tasks of
//! their own, so that a caller that goes away takes nothing from the others.

use crate::info::JobData;
use crate::transport::Transport;
use crate::{ClientError, NewJob, QueueFull};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How many requests are under way at the same time. With a single one, the server would be idle while callers take
/// their answers and enqueue again; with many, each would carry few jobs, and cost as much.
const MOST_REQUESTS: usize = 2;
/// How many jobs share a request. Servers may take more, but more would only make each caller wait longer.
const MOST_JOBS: usize = 100;
/// The size at which a request is full, in bytes of arguments; servers take a megabyte in all.
const MOST_BYTES: usize = 256 << 10;

/// What became of a job: its envelope, and whether it is new.
type Answer = Result<(JobData, bool), ClientError>;

struct Call {
    job: NewJob,
    answer: oneshot::Sender<Answer>,
}

/// Gathers jobs for one transport.
pub(crate) struct Gather {
    transport: Arc<dyn Transport>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: VecDeque<Call>,
    /// How many tasks send them.
    tasks: usize,
}

impl Gather {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Arc<Self> {
        Arc::new(Self { transport, waiting: Mutex::default() })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues a job, alone or with others.
    ///
    /// A job with an idempotency key goes alone: where its key is that of another job it is refused, and the jobs that
    /// came with it may have been enqueued, so that they could not be sent again.
    pub(crate) async fn enqueue(self: &Arc<Self>, job: NewJob) -> Answer {
        if job.idempotency_key.is_some() {
            return single(self.transport.enqueue(&[job]).await);
        }
        let (answer, answered) = oneshot::channel();
        let is_task_free = {
            let mut waiting = self.waiting();
            waiting.calls.push_back(Call { job, answer });
            let is_free = waiting.tasks < MOST_REQUESTS;
            waiting.tasks += usize::from(is_free);
            is_free
        };
        if is_task_free {
            tokio::spawn(Sending { gather: Arc::clone(self), is_over: false }.run());
        }
        let lost = || ClientError::Unreachable("the request ended without an answer".to_owned());
        answered.await.unwrap_or_else(|_| Err(lost()))
    }
}

/// A task that sends.
struct Sending {
    gather: Arc<Gather>,
    /// Whether it has found no further call.
    is_over: bool,
}

impl Sending {
    async fn run(mut self) {
        loop {
            // Callers that are ready to run, such as those that were answered just now, add their next jobs first.
            tokio::task::yield_now().await;
            let Some(calls) = self.next_calls() else { break };
            self.deliver(calls).await;
        }
    }

    /// The calls of the next request; `None` where no call waits, and then this task is over.
    fn next_calls(&mut self) -> Option<Vec<Call>> {
        let mut waiting = self.gather.waiting();
        let (mut calls, mut bytes) = (Vec::new(), 0);
        while calls.len() < MOST_JOBS && bytes < MOST_BYTES {
            let Some(call) = waiting.calls.pop_front() else { break };
            // A caller that has gone no longer wants its job.
            if !call.answer.is_closed() {
                bytes += call.job.args.get().len();
                calls.push(call);
            }
        }
        if calls.is_empty() {
            waiting.tasks -= 1;
            self.is_over = true;
            return None;
        }
        Some(calls)
    }

    /// Sends jobs and answers their callers. Of jobs that are refused together nothing was enqueued: each half of them
    /// is sent again, until every job that is at fault was refused alone.
    async fn deliver(&self, calls: Vec<Call>) {
        let mut lists = vec![calls];
        while let Some(mut list) = lists.pop() {
            let (jobs, callers): (Vec<NewJob>, Vec<_>) = list.drain(..).map(|call| (call.job, call.answer)).unzip();
            match self.gather.transport.enqueue(&jobs).await {
                Ok(enqueued) if enqueued.len() == callers.len() => {
                    for (caller, enqueued) in callers.into_iter().zip(enqueued) {
                        // A caller that has gone away meanwhile does not learn the outcome.
                        let _ = caller.send(Ok(enqueued));
                    }
                }
                Err(ClientError::QueueFull(full)) if jobs.len() > 1 => {
                    let calls = jobs.into_iter().zip(callers).map(|(job, answer)| Call { job, answer });
                    let [fitting, others] = sent_again(calls, &full);
                    lists.extend([others, fitting].into_iter().filter(|list| !list.is_empty()));
                }
                Err(ClientError::Refused(refused)) if jobs.len() > 1 && !refused.is_temporary() => {
                    list.extend(jobs.into_iter().zip(callers).map(|(job, answer)| Call { job, answer }));
                    let rest = list.split_off(list.len() / 2);
                    lists.extend([rest, list]);
                }
                outcome => {
                    let error = outcome.map_or_else(|error| error, |found| garbled(jobs.len(), found.len()));
                    callers.into_iter().for_each(|caller| drop(caller.send(Err(error.clone()))));
                }
            }
        }
    }
}

impl Drop for Sending {
    /// Where the task was ended before its time, as by a runtime that shuts down, the callers that no other task serves
    /// get an error, and the next call starts another.
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.gather.waiting();
            waiting.tasks -= 1;
            if waiting.tasks == 0 {
                waiting.calls.clear();
            }
        }
    }
}

/// Of jobs that were refused together because a queue is full, those to send again: first all of other queues with as
/// many of that queue as there is room for, then its others. Where there is no room, those are answered.
fn sent_again(calls: impl Iterator<Item = Call>, full: &QueueFull) -> [Vec<Call>; 2] {
    let (mut room, mut fitting, mut others) = (full.bound.saturating_sub(full.depth), Vec::new(), Vec::new());
    let is_full = room == 0;
    for call in calls {
        let is_of_it = call.job.queue.as_deref().unwrap_or("default") == full.queue;
        if is_of_it && is_full {
            // A caller that has gone away meanwhile does not learn the outcome.
            let _ = call.answer.send(Err(ClientError::QueueFull(full.clone())));
        } else if is_of_it && room == 0 {
            others.push(call);
        } else {
            room -= u64::from(is_of_it);
            fitting.push(call);
        }
    }
    [fitting, others]
}

/// The answer for the only job of a request.
pub(crate) fn single(enqueued: Result<Vec<(JobData, bool)>, ClientError>) -> Answer {
    let mut enqueued = enqueued?;
    let found = enqueued.len();
    enqueued.pop().filter(|_| found == 1).ok_or_else(|| garbled(1, found))
}

fn garbled(sent: usize, found: usize) -> ClientError {
    ClientError::Garbled(format!("{sent} jobs were enqueued, and the answer names {found}"))
}
