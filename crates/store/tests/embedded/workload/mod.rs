//! Random operations as data, so that the same ones can be applied to several stores.

mod operation;

pub(crate) use operation::{Op, everything};

use operation::{Ending, Verb, all_pending};
use redrive_policy::{
    AttemptLimit, Backoff, Disposition, Jitter, Matcher, Moment, Parts, Policy, Rule, Span, Unmatched,
};
use redrive_store::conformance::block_on;
use redrive_store::{
    Bounds, Claim, Filter, JobId, LeaseRef, LeaseToken, Limits, Memory, NewJob, NewRun, Page, Parent, PendingRuns,
    Rate, Retention, RunId, RunStep, Signal, Spec, Start, Store, Token,
};
use std::sync::Arc;

/// Some jobs need several sectors, and some more than a segment has in the smallest stores.
const LARGEST_BODY: usize = 5_000;

/// A source of operations.
pub(crate) struct Workload {
    random: fastrand::Rng,
    now: Moment,
    ids: Vec<JobId>,
    policies: Vec<Arc<Policy>>,
    runs: Vec<RunId>,
    /// What a store contains that has done the same: steps of runs are computed from it.
    model: Memory,
}

impl Workload {
    pub(crate) fn new(seed: u64) -> Self {
        let policies = [(3, Disposition::DeadLetter), (2, Disposition::Discard)].map(|(runs, on_stop)| {
            let mut matcher = Matcher::default();
            matcher.exclude_types.push(redrive_policy::Pattern::exact("fatal"));
            let backoff = Backoff { jitter: Jitter::plus_minus(0.9), ..Backoff::fixed(Span::from_millis(700)) };
            let rules = vec![Rule { matcher, budget: None, backoff }];
            let attempts = AttemptLimit::AtMost(runs);
            let parts = Parts {
                rules,
                attempts,
                max_elapsed: None,
                on_stop,
                unmatched: Unmatched::NonRetryable,
                delegated: None,
            };
            Arc::new(Policy::new(parts).unwrap())
        });
        Self {
            random: fastrand::Rng::with_seed(seed),
            now: Moment::from_micros(1_700_000_000_000_000),
            ids: Vec::new(),
            policies: policies.into(),
            runs: Vec::new(),
            model: Memory::new(),
        }
    }

    pub(crate) fn ops(&mut self, count: usize) -> Vec<Op> {
        (0..count).map(|_| self.next()).collect()
    }

    pub(crate) fn next(&mut self) -> Op {
        if self.random.u8(..4) > 0 {
            self.now = self.now.after(Span::from_millis(self.random.u32(..400)));
        }
        let verb = match self.random.u8(..42) {
            0..8 => self.enqueue(),
            8..14 => self.claim(),
            14..20 => self.settle(),
            20 => Verb::Extend(vec![self.lease_ref()], self.random.bool().then(|| Span::from_millis(900))),
            21 => Verb::Reclaim(self.random.usize(..5)),
            22..24 => Verb::Promote(self.random.usize(..6)),
            24 => Verb::Cancel(self.id()),
            25 => Verb::Activate(self.id()),
            26 => {
                let spec = self.random.bool().then(|| self.spec());
                Verb::Redrive(self.id(), spec)
            }
            27 => Verb::Remove(self.id()),
            28 => {
                let mut span = || Span::from_millis(self.random.u32(..3_000));
                let (finished, dead) = (span(), span());
                Verb::Prune(Retention { finished, dead }, self.random.usize(..4))
            }
            29 => Verb::Pause(self.queue(), self.random.bool()),
            30 => self.read(),
            31 => Verb::Get(self.id()),
            32..34 => Verb::StartRuns((0..self.random.usize(1..3)).map(|_| self.new_run(None)).collect()),
            34..39 => Verb::Advance((0..self.random.usize(1..3)).map(|_| self.step()).collect()),
            39 => Verb::Signal(self.run(), self.signal()),
            40 => Verb::PruneRuns(Span::from_millis(self.random.u32(..2_000)), self.random.usize(..4)),
            _ => Verb::PendingRuns(all_pending()),
        };
        let op = Op { now: self.now, verb };
        op.play(&self.model).unwrap();
        op
    }

    fn run(&mut self) -> RunId {
        let known = self.random.choice(&self.runs).copied();
        known.unwrap_or_else(|| RunId::new(self.now, 0))
    }

    fn signal(&mut self) -> Signal {
        let length = if self.random.u8(..4) == 0 { self.random.usize(..LARGEST_BODY) } else { 20 };
        Signal { name: "go".into(), body: vec![b's'; length].into() }
    }

    fn new_run(&mut self, parent: Option<Parent>) -> NewRun {
        let id = if self.random.u8(..12) == 0 { self.run() } else { RunId::new(self.now, self.random.u128(..)) };
        self.runs.push(id);
        NewRun {
            id,
            program: ["flow", "cron"][self.random.usize(..2)].into(),
            version: self.random.u32(..2),
            state: vec![b'i'; self.random.usize(..200)].into(),
            key: (self.random.u8(..4) == 0).then(|| format!("key {}", self.random.u8(..2)).into()),
            parent,
            depth: parent.map_or(0, |_| 1),
            seed: self.random.u64(..),
        }
    }

    /// A step of a run as it is now, or once was.
    fn step(&mut self) -> RunStep {
        let id = self.run();
        let only = PendingRuns { only: Some(vec![id]), ..all_pending() };
        let (run, mut pending) = block_on(async {
            (self.model.run(id).await.unwrap(), self.model.pending_runs(only, self.now).await.unwrap())
        });
        let late = self.random.u8(..10) == 0;
        let revision = run.as_ref().map_or(0, |run| run.revision) + u64::from(late);
        let messages = pending.pop().map(|pending| pending.messages).unwrap_or_default();
        let read = self.random.usize(..=messages.len());
        let timer = self.random.bool().then(|| self.now.after(Span::from_millis(self.random.u32(..900))));
        let jobs = (0..self.random.u64(..3)).map(|_| (self.random.u64(..1_000), self.job())).collect();
        let parent = Parent { run: id, child: 1_000 + self.random.u64(..1_000) };
        RunStep {
            id,
            revision,
            version: 1,
            state: vec![b's'; self.random.usize(..300)].into(),
            timer,
            end: (self.random.u8(..4) == 0).then(|| (self.random.bool(), Arc::from(*b"end"))),
            consumed: messages.into_iter().take(read).map(|message| message.number).collect(),
            jobs,
            cancelled: (0..self.random.usize(..2)).map(|_| self.id()).collect(),
            withdrawn: (0..self.random.usize(..2)).map(|_| self.id()).collect(),
            runs: (0..self.random.usize(..2)).map(|_| self.new_run(Some(parent))).collect(),
            signals: (0..self.random.usize(..2)).map(|_| (self.run(), self.signal())).collect(),
            interest: None,
            events: Vec::new(),
        }
    }

    /// New jobs with bodies of this many bytes, which can run at once.
    pub(crate) fn batch_of_bytes(&mut self, count: usize, bytes: usize) -> Op {
        let jobs = (0..count).map(|_| self.plain_job(vec![b'x'; bytes])).collect();
        Op { now: self.now, verb: Verb::Enqueue(jobs) }
    }

    /// Adds this many new jobs, and returns their ids.
    pub(crate) fn play_batch(&mut self, store: &dyn Store, count: usize) -> Vec<JobId> {
        let jobs: Vec<_> = (0..count).map(|_| self.plain_job(vec![b'x'; 10])).collect();
        let ids = jobs.iter().map(|job| job.id).collect();
        block_on(store.enqueue(jobs, self.now)).unwrap().unwrap();
        ids
    }

    /// One new job with this body.
    pub(crate) fn batch_with_body(&mut self, body: Vec<u8>) -> Op {
        let jobs = vec![self.plain_job(body)];
        Op { now: self.now, verb: Verb::Enqueue(jobs) }
    }

    fn plain_job(&mut self, body: Vec<u8>) -> NewJob {
        let spec = Spec {
            kind: "mail".into(),
            queue: "one".into(),
            priority: 0,
            body: body.into(),
            policy: Arc::clone(&self.policies[0]),
            timeout: None,
            lease: None,
            expires: None,
            limits: None,
        };
        let id = JobId::new(self.now, self.random.u128(..));
        NewJob::new(id, Arc::new(spec))
    }

    fn enqueue(&mut self) -> Verb {
        let count = if self.random.u8(..3) == 0 { self.random.usize(..5) } else { 1 };
        Verb::Enqueue((0..count).map(|_| self.job()).collect())
    }

    fn job(&mut self) -> NewJob {
        let known = self.random.u8(..12) == 0;
        let id = if known { self.id() } else { JobId::new(self.now, self.random.u128(..)) };
        self.ids.push(id);
        let start = match self.random.u8(..5) {
            0 => Start::Scheduled(self.now.after(Span::from_millis(self.random.u32(..1_500)))),
            1 => Start::Pending,
            _ => Start::Available,
        };
        let key = (self.random.u8(..3) == 0).then(|| format!("key {}", self.random.u8(..12)).into());
        NewJob { start, idempotency_key: key, ..NewJob::new(id, self.spec()) }
    }

    fn spec(&mut self) -> Arc<Spec> {
        let length = if self.random.u8(..4) == 0 { self.random.usize(..LARGEST_BODY) } else { 20 };
        let filler = [0, b'x', self.random.u8(..)][self.random.usize(..3)];
        let short = |random: &mut fastrand::Rng| (random.u8(..4) == 0).then(|| Span::from_millis(random.u32(..900)));
        Arc::new(Spec {
            kind: ["mail", "image", "sum"][self.random.usize(..3)].into(),
            queue: self.queue(),
            priority: self.random.i32(-1..4),
            body: vec![filler; length].into(),
            policy: Arc::clone(&self.policies[self.random.usize(..2)]),
            timeout: short(&mut self.random),
            lease: short(&mut self.random),
            expires: short(&mut self.random).map(|span| self.now.after(span.times(4.0))),
            limits: self.limits(),
        })
    }

    /// Few jobs have any.
    fn limits(&mut self) -> Option<Arc<Limits>> {
        let rate = Rate { limit: self.random.u32(1..4), period: Span::from_millis(self.random.u32(1..900)) };
        let bounds = match self.random.u8(..16) {
            0 => Bounds { concurrency: Some(self.random.u32(..3)), ..Bounds::default() },
            1 => Bounds { rate: Some(rate), ..Bounds::default() },
            2 => Bounds { throttle: Some(rate), ..Bounds::default() },
            _ => return None,
        };
        Some(Arc::new(Limits::own(["a", "b"][self.random.usize(..2)], bounds)))
    }

    fn queue(&mut self) -> Arc<str> {
        ["one", "two", "three"][self.random.usize(..3)].into()
    }

    fn id(&mut self) -> JobId {
        match self.random.choice(&self.ids) {
            Some(id) => *id,
            None => JobId::new(self.now, 0),
        }
    }

    fn claim(&mut self) -> Verb {
        Verb::Claim(Claim {
            queues: vec![self.queue(), self.queue()],
            held: Arc::default(),
            count: self.random.usize(1..5),
            bytes: usize::MAX,
            worker: self.worker(),
            lease: Span::from_millis(self.random.u32(200..2_000)),
            timeout: self.random.bool().then(|| Span::from_millis(1_200)),
            seed: self.random.u64(..),
        })
    }

    fn worker(&mut self) -> Arc<str> {
        ["ada", "bob"][self.random.usize(..2)].into()
    }

    fn lease_ref(&mut self) -> LeaseRef {
        let id = self.id();
        let token = match self.random.u8(..6) {
            0 => Token::Worker(self.worker()),
            1 => Token::Lease(LeaseToken { number: self.random.u32(..4), nonce: 7 }),
            _ => Token::None,
        };
        LeaseRef { id, token }
    }

    fn settle(&mut self) -> Verb {
        let count = self.random.usize(1..6);
        let list = (0..count).map(|_| {
            let ending = match self.random.u8(..8) {
                0..3 => Ending::Done(self.random.bool().then(|| Arc::from(*b"{\"ok\":true}"))),
                3..7 => Ending::Failed(self.random.f64()),
                _ => Ending::Released(Span::from_millis(self.random.u32(..2) * 300)),
            };
            (self.lease_ref(), ending)
        });
        Verb::Settle(list.collect())
    }

    fn read(&mut self) -> Verb {
        if self.random.u8(..4) == 0 {
            return if self.random.bool() { Verb::Queues } else { Verb::NextWake };
        }
        let page = Page::new(self.random.usize(..4), self.random.usize(..9));
        let finished = |workload: &mut Self| {
            let ago = Span::from_millis(workload.random.u32(..5_000));
            (workload.random.u8(..4) == 0)
                .then(|| Moment::from_micros(workload.now.micros() - (ago.ms() * 1_000.0) as i64))
        };
        let states = redrive_store::State::ALL;
        let filter = Filter {
            queue: self.random.bool().then(|| self.queue()),
            kind: (self.random.u8(..4) == 0).then(|| "mail".into()),
            state: self.random.bool().then(|| states[self.random.usize(..states.len())]),
            dead: (self.random.u8(..4) == 0).then(|| self.random.bool()),
            finished_since: finished(self),
            finished_before: finished(self),
        };
        Verb::List(filter, page)
    }
}
