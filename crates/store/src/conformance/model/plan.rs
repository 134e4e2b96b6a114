//! The arguments of a step, in small numbers that shrink well.
//!
//! Jobs and leases are numbered from the latest back, so that the latest are used most often; times are
//! whole milliseconds from a short list, so that they often coincide.

use crate::{OnConflict, State, States, Unique, UniqueKey};
use proptest::option;
use proptest::prelude::*;
use redrive_policy::{Disposition, Failure, Signal, Span};
use std::sync::Arc;

/// How many queues, workers, kinds and keys there are.
pub(super) const FEW: u8 = 3;
/// How many policies there are.
pub(super) const POLICIES: u8 = 4;

/// A job to be enqueued.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// Its id: a new one, or that of a job that was enqueued before, counted back from the last.
    pub id: Option<u8>,
    /// Its spec.
    pub spec: SpecPlan,
    /// Its first state: available, pending, or scheduled.
    pub start: StartPlan,
    /// Which idempotency key it has.
    pub key: Option<u8>,
    /// What it must be unique in.
    pub unique: Option<UniquePlan>,
    /// How many jobs may wait in its queue.
    pub depth: Option<u8>,
}

/// What a job must be unique in.
#[derive(Clone, Copy, Debug)]
pub struct UniquePlan {
    /// Which key.
    pub key: u8,
    /// The states that count, as bits.
    pub states: u8,
    /// How long, in milliseconds.
    pub period_ms: Option<u32>,
    /// What happens to a duplicate.
    pub on_conflict: OnConflict,
}

impl UniquePlan {
    /// The policy of the plan.
    pub(super) fn policy(self) -> Arc<Unique> {
        let (key, states) = (UniqueKey([self.key; 32]), States::from_bits(self.states));
        let period = self.period_ms.map(Span::from_millis);
        Arc::new(Unique { states, period, on_conflict: self.on_conflict, ..Unique::new(key) })
    }
}

/// The first state of a job.
#[derive(Clone, Copy, Debug)]
pub enum StartPlan {
    /// Available immediately.
    Available,
    /// Pending until it is activated.
    Pending,
    /// Scheduled this many milliseconds from now; in the past if negative.
    Scheduled(i32),
}

/// The spec of a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpecPlan {
    /// Which queue.
    pub queue: u8,
    /// Which kind.
    pub kind: u8,
    /// The priority.
    pub priority: i8,
    /// Which policy.
    pub policy: u8,
    /// How long a run may take, in milliseconds.
    pub timeout_ms: Option<u32>,
    /// How long a lease lasts, in milliseconds.
    pub lease_ms: Option<u32>,
    /// When it expires, in milliseconds from now; in the past if negative.
    pub expires_ms: Option<i32>,
    /// Its limit.
    pub limit: Option<LimitPlan>,
}

/// The limit of a job. Rates and throttles are those of the key.
#[derive(Clone, Copy, Debug)]
pub struct LimitPlan {
    /// Which key.
    pub key: u8,
    /// How many may be active.
    pub concurrency: Option<u32>,
    /// Whether the rate or the throttle of the key applies.
    pub timed: bool,
    /// Whether its type is limited.
    pub by_kind: bool,
}

/// A claim to hold the lease of a job.
#[derive(Clone, Copy, Debug)]
pub struct LeasePlan {
    /// Which lease, counted back from the one that was claimed last.
    pub back: u8,
    /// The token that is presented.
    pub token: TokenPlan,
}

impl LeasePlan {
    /// With the token that came with the lease.
    pub(super) const fn by_token(back: u8) -> Self {
        Self { back, token: TokenPlan::Lease }
    }
}

/// The token that is presented for a lease.
#[derive(Clone, Copy, Debug)]
pub enum TokenPlan {
    /// The token that came with it.
    Lease,
    /// A forged token with the same number.
    Forged,
    /// A token with a number that was not issued yet.
    Ahead,
    /// A worker's name.
    Worker(u8),
    /// Nothing.
    None,
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Successfully, with or without a result.
    Done(Option<u8>),
    /// With an error of this type, on which the policy decides.
    Failed(u8),
    /// With an error that asks for its own delay, in milliseconds.
    RetryAfter(u32),
    /// With an error that ends the job.
    Stop(Disposition),
    /// With a request to run again after this many milliseconds, which is not a failure.
    Requeue(u32),
    /// Unfinished.
    Released {
        /// The delay in milliseconds.
        delay_ms: u32,
        /// How many releases in a row are allowed.
        most: u32,
    },
}

impl End {
    /// The failure that the policy decides on, if there is one.
    pub(super) fn failure(self) -> Option<Failure<'static>> {
        match self {
            Self::Done(_) | Self::Released { .. } => None,
            Self::Failed(kind) => Some(Failure::of_type(["boom", "net.reset", "fatal"][usize::from(kind % 3)])),
            Self::RetryAfter(ms) => Some(Failure::default().retry_after(Span::from_millis(ms))),
            Self::Stop(disposition) => Some(Failure::default().with_signal(Signal::Stop(disposition))),
            Self::Requeue(ms) => Some(Failure::default().with_signal(Signal::RequeueAfter(Span::from_millis(ms)))),
        }
    }
}

/// Which queues are held.
#[derive(Clone, Copy, Debug)]
pub enum HeldPlan {
    /// None.
    None,
    /// All.
    All,
    /// One.
    One(u8),
}

/// Which jobs to list. Times are counted back from now.
#[derive(Clone, Copy, Debug)]
pub struct ListPlan {
    /// Only those in this queue.
    pub queue: Option<u8>,
    /// Only those of this kind.
    pub kind: Option<u8>,
    /// Only those in this state.
    pub state: Option<State>,
    /// Only dead letters, or only others.
    pub dead: Option<bool>,
    /// Only those that ended at most this many milliseconds ago.
    pub since_ms: Option<u32>,
    /// Only those that ended more than this many milliseconds ago.
    pub before_ms: Option<u32>,
    /// How many to skip.
    pub offset: usize,
    /// How many to return.
    pub limit: usize,
}

impl ListPlan {
    /// All jobs.
    pub(super) const ALL: Self = Self {
        queue: None,
        kind: None,
        state: None,
        dead: None,
        since_ms: None,
        before_ms: None,
        offset: 0,
        limit: usize::MAX,
    };
}

/// A delay in milliseconds.
pub(super) fn wait_ms() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 1, 2, 10, 50, 100, 1_000, 20_000])
}

/// A time around now, in milliseconds.
fn around_ms() -> impl Strategy<Value = i32> {
    prop::sample::select(vec![-10, -1, 0, 1, 10, 100, 1_000])
}

/// A job or a lease, counted back from the last.
pub(super) fn back() -> impl Strategy<Value = u8> {
    prop_oneof![3 => 0..5_u8, 1 => 0..25_u8]
}

/// A limit that is mostly large enough, and sometimes zero.
pub(super) fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![2 => Just(100_usize), 3 => 0..4_usize]
}

pub(super) fn job() -> impl Strategy<Value = JobPlan> {
    let start = prop_oneof![
        4 => Just(StartPlan::Available),
        1 => Just(StartPlan::Pending),
        2 => around_ms().prop_map(StartPlan::Scheduled),
    ];
    let (key, unique) = (option::weighted(0.15, 0..FEW), option::weighted(0.2, unique()));
    (option::weighted(0.1, back()), spec(), start, key, unique, option::weighted(0.25, 0..9_u8))
        .prop_map(|(id, spec, start, key, unique, depth)| JobPlan { id, spec, start, key, unique, depth })
}

fn unique() -> impl Strategy<Value = UniquePlan> {
    let states = prop_oneof![2 => Just(States::UNENDED.bits()), 2 => Just(u8::MAX), 1 => any::<u8>()];
    let on_conflict = proptest::sample::select(&OnConflict::ALL[..]);
    (0..FEW, states, option::weighted(0.3, wait_ms()), on_conflict)
        .prop_map(|(key, states, period_ms, on_conflict)| UniquePlan { key, states, period_ms, on_conflict })
}

pub(super) fn spec() -> impl Strategy<Value = SpecPlan> {
    let said = (0..FEW, 0..FEW, -1..=1_i8, 0..POLICIES);
    let times =
        (option::weighted(0.2, wait_ms()), option::weighted(0.2, wait_ms()), option::weighted(0.2, around_ms()));
    let limit = (0..FEW, option::weighted(0.5, 0..3_u32), any::<bool>(), any::<bool>())
        .prop_map(|(key, concurrency, timed, by_kind)| LimitPlan { key, concurrency, timed, by_kind });
    let limit = option::weighted(0.15, limit);
    (said, times, limit).prop_map(|((queue, kind, priority, policy), (timeout_ms, lease_ms, expires_ms), limit)| {
        SpecPlan { queue, kind, priority, policy, timeout_ms, lease_ms, expires_ms, limit }
    })
}

pub(super) fn lease_ref() -> impl Strategy<Value = LeasePlan> {
    let token = prop_oneof![
        8 => Just(TokenPlan::Lease),
        1 => Just(TokenPlan::Forged),
        1 => Just(TokenPlan::Ahead),
        1 => (0..FEW).prop_map(TokenPlan::Worker),
        1 => Just(TokenPlan::None),
    ];
    (back(), token).prop_map(|(back, token)| LeasePlan { back, token })
}

pub(super) fn end() -> impl Strategy<Value = End> {
    let disposition = prop::sample::select(vec![Disposition::Discard, Disposition::DeadLetter, Disposition::Fail]);
    prop_oneof![
        3 => option::of(any::<u8>()).prop_map(End::Done),
        6 => (0..3_u8).prop_map(End::Failed),
        1 => wait_ms().prop_map(End::RetryAfter),
        1 => disposition.prop_map(End::Stop),
        1 => wait_ms().prop_map(End::Requeue),
        3 => (prop_oneof![1 => Just(0), 1 => wait_ms()], 0..4_u32)
            .prop_map(|(delay_ms, most)| End::Released { delay_ms, most }),
    ]
}

pub(super) fn held() -> impl Strategy<Value = HeldPlan> {
    prop_oneof![4 => Just(HeldPlan::None), 1 => Just(HeldPlan::All), 2 => (0..FEW).prop_map(HeldPlan::One)]
}

pub(super) fn list() -> impl Strategy<Value = ListPlan> {
    let few = || option::weighted(0.3, 0..FEW);
    let ms = || option::weighted(0.2, wait_ms());
    let state = option::weighted(0.3, prop::sample::select(State::ALL.to_vec()));
    let said = (few(), few(), state, option::weighted(0.3, any::<bool>()));
    (said, (ms(), ms(), 0..4_usize, limit())).prop_map(
        |((queue, kind, state, dead), (since_ms, before_ms, offset, limit))| ListPlan {
            queue,
            kind,
            state,
            dead,
            since_ms,
            before_ms,
            offset,
            limit,
        },
    )
}
