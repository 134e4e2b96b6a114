//! A worker: it claims jobs and ends them, or stalls, crashes, comes back late, reports twice and
//! sends tokens that are none of its own.

use super::{refusal, timeout};
use crate::common::Seeded;
use crate::expectation::Reported;
use crate::ledger::{Ended, Extend, Reply, Settle, When};
use crate::planned_job::PlannedJob;
use crate::plans::{CODES, NAMES};
use crate::server_policies::QUEUES;
use crate::world::{Response, Waiting, World};
use redrive_engine::{ClaimRequest, Ending, EngineError, FailureReport, Randomness};
use redrive_policy::{Disposition, Signal, Span};
use redrive_store::{Blob, Job, JobId, LeaseRef, LeaseToken, Settled, Token};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How a worker behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// In every way that a worker can.
    Faulty,
    /// It ends what it has: mostly well, and at once.
    Honest,
}

/// A lease that the worker has, or had.
#[derive(Clone, Debug)]
struct Held {
    account: usize,
    id: JobId,
    token: LeaseToken,
    /// What it said about it, where it got no answer.
    said: Option<Said>,
}

/// How a run ended, for the ledger and for the engine.
type Said = (Ended, Ending);

pub(crate) struct Worker {
    world: Rc<World>,
    rng: Seeded,
    /// Its place in the list of claims that wait.
    place: usize,
    name: Rc<str>,
    behaviour: Behaviour,
    held: Vec<Held>,
    /// Old leases, of which it has not let go in its mind.
    past: Vec<Held>,
}

impl Worker {
    pub(crate) fn new(world: Rc<World>, rng: Seeded, behaviour: Behaviour) -> Self {
        let place = {
            let mut waiting = world.waiting.borrow_mut();
            waiting.push(None);
            waiting.len() - 1
        };
        Self {
            world,
            rng,
            place,
            name: format!("worker-{place}").into(),
            behaviour,
            held: Vec::new(),
            past: Vec::new(),
        }
    }

    pub(crate) async fn work(mut self) {
        while !self.world.is_closing() {
            self.world.idle(self.rng.between(1, 10)).await;
            if self.held.len() < 4 && self.rng.permille(600) {
                self.claim().await;
            }
            self.settle().await;
            if self.rng.permille(250) {
                self.extend().await;
            }
            if self.rng.permille(80) {
                self.come_back_late().await;
            }
            if self.rng.permille(40) {
                self.forge().await;
            }
            if self.rng.permille(60) && !self.held.is_empty() {
                self.crash();
            }
        }
    }

    /// Claims, and ends all that it gets; answers how many jobs that were.
    pub(crate) async fn work_once(&mut self) -> usize {
        self.claim().await;
        let count = self.held.len();
        self.settle().await;
        count
    }

    async fn claim(&mut self) {
        let faulty = self.behaviour == Behaviour::Faulty;
        let mut queues = QUEUES.to_vec();
        if faulty && self.rng.permille(500) {
            queues.swap(0, self.rng.below(3) as usize);
            queues.truncate(self.rng.between(1, 3) as usize);
        }
        let waits = faulty && self.rng.permille(350);
        let lease = self.rng.permille(300).then(|| Span::from_secs(self.rng.between(1, 120) as u32));
        let request = ClaimRequest {
            queues: queues.iter().map(|queue| Arc::from(*queue)).collect(),
            count: self.rng.between(1, 3) as usize,
            bytes: usize::MAX,
            worker: Arc::from(&*self.name),
            lease,
            wait: Duration::from_secs(u64::from(waits) * 3_600),
        };
        let timeout = if waits { Some(self.rng.between(20, 200)) } else { self.timeout() };
        self.listen(waits.then_some(queues));
        let (when, response) = self.world.ask(timeout, |engine| async move { engine.claim(&request).await }).await;
        self.listen(None);
        match response {
            Response::Answer(jobs) => jobs.into_iter().for_each(|job| self.take(when, lease, &Rc::new(job))),
            Response::Lost => self.world.ledger.borrow_mut().lost -= 1,
            Response::Refused(error) => panic!("a claim is refused: {error}"),
        }
    }

    fn timeout(&self) -> Option<u64> {
        if self.behaviour == Behaviour::Faulty { timeout(&self.rng) } else { None }
    }

    /// Says that it waits, so that somebody can see whether it waits in vain.
    fn listen(&self, queues: Option<Vec<&'static str>>) {
        let mut ledger = self.world.ledger.borrow_mut();
        let (lost_before, from) = (ledger.lost, ledger.mark());
        self.world.waiting.borrow_mut()[self.place] = queues.map(|queues| Waiting { queues, lost_before, from });
    }

    fn take(&mut self, when: When, lease: Option<Span>, job: &Rc<Job>) {
        self.world.ledger.borrow_mut().claimed(when, &self.name, lease, job);
        if let (Some(lease), Some((account, _))) = (&job.lease, PlannedJob::of(job)) {
            self.held.push(Held { account, id: job.id, token: lease.token, said: None });
        }
    }

    /// Ends some of what it has, in one request.
    async fn settle(&mut self) {
        let mut ended = Vec::new();
        let mut kept = Vec::new();
        for mut held in std::mem::take(&mut self.held) {
            if self.behaviour == Behaviour::Faulty && held.said.is_none() && !self.rng.permille(350) {
                kept.push(held);
                continue;
            }
            let said = held.said.take().unwrap_or_else(|| self.ending());
            // Twice in one request, with the same words or with others.
            if self.behaviour == Behaviour::Faulty && self.rng.permille(40) {
                let again = if self.rng.permille(500) { self.ending() } else { said.clone() };
                ended.push((held.clone(), again));
            }
            ended.push((held, said));
        }
        self.held = kept;
        if !ended.is_empty() {
            self.report(ended).await;
        }
    }

    async fn report(&mut self, ended: Vec<(Held, Said)>) {
        let endings = ended.iter().map(|(held, (_, ending))| (held.lease_ref(), ending.clone())).collect();
        let (when, response) =
            self.world.ask(self.timeout(), |engine| async move { engine.settle(endings).await }).await;
        let answers = each(response, ended.len());
        for ((mut held, said), answer) in ended.into_iter().zip(answers) {
            let reply = self.note((held.account, held.genuine()), when, said.0.clone(), answer);
            // Without an answer most of them say it again.
            if matches!(reply, Reply::Lost) && self.rng.permille(700) {
                held.said = Some(said);
                self.held.push(held);
            } else {
                self.past.push(held);
            }
        }
        let surplus = self.past.len().saturating_sub(8);
        self.past.drain(..surplus);
    }

    /// Writes down the answer to the report of a run's end.
    fn note(&self, (account, run): (usize, Option<u32>), when: When, ending: Ended, answer: Answer<Settled>) -> Reply {
        let mut ledger = self.world.ledger.borrow_mut();
        let repeated = matches!(answer, Ok(Settled::Repeated(_)));
        if let Ok(Settled::Transition(transition)) = &answer {
            ledger.answered(account, when, transition.clone());
        }
        let reply = reply_of(answer.map(Settled::into_job));
        ledger.replied(account, when, &reply);
        ledger.accounts[account].settles.push(Settle { when, run, ending, reply: reply.clone(), repeated });
        reply
    }

    /// A heartbeat for all that it has.
    async fn extend(&mut self) {
        let lease_refs: Vec<LeaseRef> = self.held.iter().map(Held::lease_ref).collect();
        let span = self.rng.permille(300).then(|| Span::from_secs(self.rng.between(1, 200) as u32));
        let (when, response) =
            self.world.ask(self.timeout(), |engine| async move { engine.extend(lease_refs, span).await }).await;
        let answers = each(response, self.held.len());
        for (held, answer) in self.held.iter().zip(answers) {
            note_extend(&self.world, held, when, span, answer);
        }
    }

    /// A lease of the past is used as if nothing had been.
    async fn come_back_late(&mut self) {
        if self.past.is_empty() {
            return;
        }
        let held = self.rng.pick(&self.past).clone();
        if self.rng.permille(400) {
            let lease_refs = vec![held.lease_ref()];
            let (when, response) =
                self.world.ask(None, |engine| async move { engine.extend(lease_refs, None).await }).await;
            each(response, 1).into_iter().for_each(|answer| note_extend(&self.world, &held, when, None, answer));
        } else {
            let said = self.ending();
            self.report(vec![(held, said)]).await;
        }
    }

    /// A token that no worker was given.
    async fn forge(&mut self) {
        let Some(genuine) = self.held.first().or(self.past.first()) else { return };
        let LeaseToken { number, nonce } = genuine.token;
        let token = match self.rng.below(3) {
            0 => LeaseToken { number, nonce: nonce ^ (1 << self.rng.below(64)) },
            1 => LeaseToken { number: number + 1, nonce },
            _ => LeaseToken { number: 0, nonce },
        };
        let token = if self.rng.permille(700) { Token::Lease(token) } else { Token::Worker("nobody".into()) };
        let (account, lease_ref) = (genuine.account, LeaseRef { id: genuine.id, token });
        let (ending, said) = self.ending();
        let endings = vec![(lease_ref, said)];
        let (when, response) = self.world.ask(None, |engine| async move { engine.settle(endings).await }).await;
        for answer in each(response, 1) {
            self.note((account, None), when, ending.clone(), answer);
        }
    }

    /// It forgets what it had, or one of them; the tokens may turn up again.
    fn crash(&mut self) {
        let kept = if self.rng.permille(500) { 0 } else { self.held.len() - 1 };
        self.past.extend(self.held.drain(kept..));
    }

    fn ending(&self) -> Said {
        let rng = &self.rng;
        let done = if self.behaviour == Behaviour::Honest { 600 } else { 400 };
        if rng.permille(done) {
            let result = rng.permille(700).then(|| blob(&format!("result {}", rng.bits())));
            return (Ended::Done { result: result.clone() }, Ending::Done(result));
        }
        if self.behaviour == Behaviour::Faulty && rng.permille(250) {
            let delay = Span::from_millis(if rng.permille(400) { 0 } else { rng.below(60_000) as u32 });
            return (Ended::Released { delay }, Ending::Released(delay));
        }
        let number = {
            let mut ledger = self.world.ledger.borrow_mut();
            ledger.failures_sent += 1;
            ledger.failures_sent
        };
        let reported = reported(rng, self.behaviour);
        let report = FailureReport {
            error: blob(&format!("error {number}")),
            types: reported.types.iter().map(|name| (*name).to_owned()).collect(),
            code: reported.code.to_owned(),
            retryable: reported.retryable,
            signal: reported.signal,
            delay: reported.delay_ms.map(Span::saturating_ms),
            worker_policy: None,
            hold: None,
        };
        (Ended::Failed { number, reported }, Ending::Failed(report))
    }
}

impl Held {
    const fn lease_ref(&self) -> LeaseRef {
        LeaseRef { id: self.id, token: Token::Lease(self.token) }
    }

    const fn genuine(&self) -> Option<u32> {
        Some(self.token.number)
    }
}

fn note_extend(world: &World, held: &Held, when: When, span: Option<Span>, answer: Answer<Job>) {
    let reply = reply_of(answer);
    let mut ledger = world.ledger.borrow_mut();
    ledger.replied(held.account, when, &reply);
    let extend = Extend { when, run: held.genuine(), span, reply };
    ledger.accounts[held.account].extends.push(extend);
}

/// The answer to one part of a batch: what was done, or why not; no error where the answer got lost.
type Answer<T> = Result<T, Option<EngineError>>;

/// The answers of a batch, one for each.
fn each<T>(response: Response<Vec<Result<T, EngineError>>>, count: usize) -> Vec<Answer<T>> {
    match response {
        Response::Answer(answers) => {
            assert_eq!(answers.len(), count, "as many answers as questions");
            answers.into_iter().map(|answer| answer.map_err(Some)).collect()
        }
        Response::Refused(error) => panic!("a batch is refused whole: {error}"),
        Response::Lost => (0..count).map(|_| Err(None)).collect(),
    }
}

fn reply_of(answer: Answer<Job>) -> Reply {
    match answer {
        Ok(job) => Reply::Yes(Rc::new(job)),
        Err(Some(error)) => refusal(error),
        Err(None) => Reply::Lost,
    }
}

/// A random failure. An honest worker asks for nothing that could go on for ever.
fn reported(rng: &Seeded, behaviour: Behaviour) -> Reported {
    let types = (0..rng.below(3)).map(|_| *rng.pick(&NAMES)).collect();
    let signal = match rng.below(40) {
        0 => Signal::Stop(Disposition::Discard),
        1 => Signal::Stop(Disposition::DeadLetter),
        2 => Signal::Unrecoverable,
        3 => Signal::Permanent,
        4 => Signal::Prune,
        5 | 6 if behaviour == Behaviour::Faulty => Signal::RequeueAfter(Span::from_millis(rng.below(30_000) as u32)),
        _ => Signal::None,
    };
    Reported {
        types,
        code: rng.pick::<&str>(&CODES),
        retryable: *rng.pick(&[None, None, Some(true), Some(false)]),
        signal,
        delay_ms: rng.permille(150).then(|| rng.below(90_000) as f64),
    }
}

fn blob(text: &str) -> Blob {
    Arc::from(text.as_bytes())
}
