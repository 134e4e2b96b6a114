//! A policy as a layer of tower.

use super::plan::PastFailures;
use super::{DefaultSleeper, Pause, Sleeper};
use crate::{Ambient, Entropy, Failure, Policy};
use std::sync::Arc;
use tower::retry::RetryLayer;

/// A policy for [`tower::retry`].
///
/// Its function looks at each response: `None` is a success, a [`Failure`] is passed to the policy.
/// Each request has attempts and elapsed time of its own. Requests are cloned for the retries;
/// [`clone_request`](Self::clone_request) is for those that are not [`Clone`], or that must not be
/// sent twice.
///
/// ```
/// use redrive_policy::{Failure, Policy, retry::TowerPolicy};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU16, Ordering};
/// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::builder().max_attempts(5).build()?;
/// let layer = TowerPolicy::new(Arc::new(policy), |result: &Result<u16, std::io::Error>| match result {
///     Ok(status) if *status < 500 => None,
///     Ok(_) => Some(Failure::of_type("http.server_error")),
///     Err(_) => Some(Failure::of_type("io")),
/// })
/// .layer();
///
/// let calls = Arc::new(AtomicU16::new(0));
/// let flaky = service_fn(|_request: &'static str| {
///     let call = calls.fetch_add(1, Ordering::Relaxed);
///     async move { Ok(if call < 2 { 503 } else { 200 }) }
/// });
/// let mut service = ServiceBuilder::new().layer(layer).service(flaky);
/// assert_eq!(service.ready().await?.call("GET /").await?, 200);
/// assert_eq!(calls.load(Ordering::Relaxed), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TowerPolicy<F, S = DefaultSleeper, N = Ambient, R = ByClone> {
    policy: Arc<Policy>,
    classify: F,
    sleeper: S,
    entropy: N,
    requests: R,
    past: PastFailures,
    /// Whether a request has come back. It never is in the layer, which tower copies for each.
    under_way: bool,
}

impl<F> TowerPolicy<F> {
    /// A policy, and the function that distinguishes failures from successes.
    pub fn new<Res, E>(policy: Arc<Policy>, classify: F) -> Self
    where
        F: for<'r> Fn(&'r Result<Res, E>) -> Option<Failure<'r>>,
    {
        Self {
            policy,
            classify,
            sleeper: DefaultSleeper::default(),
            entropy: Ambient,
            requests: ByClone,
            past: PastFailures::default(),
            under_way: false,
        }
    }
}

impl<F, S, N, R> TowerPolicy<F, S, N, R> {
    /// How to wait, for runtimes other than tokio.
    pub fn sleeper<Z: Sleeper>(self, sleeper: Z) -> TowerPolicy<F, Z, N, R> {
        let Self { policy, classify, entropy, requests, past, under_way, .. } = self;
        TowerPolicy { policy, classify, sleeper, entropy, requests, past, under_way }
    }

    /// Where draws come from. Each request draws from a copy of its own, so a seeded source gives
    /// all of them the same draws: right for tests, and wrong for production.
    pub fn entropy<M: Entropy>(self, entropy: M) -> TowerPolicy<F, S, M, R> {
        let Self { policy, classify, sleeper, requests, past, under_way, .. } = self;
        TowerPolicy { policy, classify, sleeper, entropy, requests, past, under_way }
    }

    /// How to copy a request; `None` for one that must not be sent twice.
    pub fn clone_request<Req, G>(self, requests: G) -> TowerPolicy<F, S, N, G>
    where
        G: Fn(&Req) -> Option<Req>,
    {
        let Self { policy, classify, sleeper, entropy, past, under_way, .. } = self;
        TowerPolicy { policy, classify, sleeper, entropy, requests, past, under_way }
    }

    /// The layer for a service.
    #[must_use]
    pub const fn layer(self) -> RetryLayer<Self> {
        RetryLayer::new(self)
    }
}

/// How requests are copied.
pub trait CloneRequest<Req> {
    /// A copy; `None` where there can be none, and so no retry.
    fn clone_request(&self, request: &Req) -> Option<Req>;
}

/// By [`Clone`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ByClone;

impl<Req: Clone> CloneRequest<Req> for ByClone {
    fn clone_request(&self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}

impl<Req, G: Fn(&Req) -> Option<Req>> CloneRequest<Req> for G {
    fn clone_request(&self, request: &Req) -> Option<Req> {
        self(request)
    }
}

impl<Req, Res, E, F, S, N, R> tower::retry::Policy<Req, Res, E> for TowerPolicy<F, S, N, R>
where
    F: for<'r> Fn(&'r Result<Res, E>) -> Option<Failure<'r>>,
    S: Sleeper,
    N: Entropy,
    R: CloneRequest<Req>,
{
    type Future = Pause<S::Sleep>;

    fn retry(&mut self, _: &mut Req, result: &mut Result<Res, E>) -> Option<Self::Future> {
        self.under_way = true;
        let failure = (self.classify)(result)?;
        let verdict = self.past.settle(&self.policy, &failure, || self.sleeper.now(), &mut self.entropy);
        verdict.delay().map(|delay| Pause::new(&self.sleeper, delay))
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        // tower asks the layer's own policy before it copies that one for the request: the only
        // sign of a new request there is.
        if !self.under_way {
            self.past = PastFailures::default();
            self.past.start(&self.policy, || self.sleeper.now());
        }
        self.requests.clone_request(request)
    }
}
