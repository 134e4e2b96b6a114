//! The success path: what a retry costs a call that needs none.

use super::delays::{backoff_policy, backon_policy, tokio_retry2_policy};
use redrive_benches::Contender;
use redrive_policy::Policy;
use std::hint::black_box;
use tokio::runtime::Runtime;

const CALLS: u32 = 2_000;

async fn work() -> Result<u64, &'static str> {
    Ok(black_box(7))
}

fn blocking_work() -> Result<u64, &'static str> {
    Ok(black_box(7))
}

fn calls<'a>(name: &'static str, ours: bool, slice: impl FnMut() + 'a) -> Contender<'a> {
    Contender { name, ours, operations: CALLS, slice: Box::new(slice) }
}

/// Calls of an async function that succeeds at once, on tokio.
pub fn asynchronous<'a>(policy: &'a Policy, runtime: &'a Runtime) -> Vec<Contender<'a>> {
    let backon = backon_policy();
    vec![
        calls("no retry at all", true, move || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    black_box(work().await).ok();
                }
            });
        }),
        calls("redrive", true, move || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    black_box(redrive_policy::retry(black_box(policy), work).await).ok();
                }
            });
        }),
        calls("redrive, a closure with an async block", true, move || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    black_box(redrive_policy::retry(black_box(policy), || async { work().await }).await).ok();
                }
            });
        }),
        calls("backon", false, move || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    black_box(backon::Retryable::retry(work, black_box(backon)).await).ok();
                }
            });
        }),
        calls("tokio-retry2", false, move || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    let work = || async { work().await.map_err(tokio_retry2::RetryError::transient) };
                    black_box(tokio_retry2::Retry::spawn(tokio_retry2_policy(), work).await).ok();
                }
            });
        }),
        calls("backoff", false, move || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    let work = || async { work().await.map_err(backoff::Error::transient) };
                    black_box(backoff::future::retry(backoff_policy(), work).await).ok();
                }
            });
        }),
    ]
}

/// Calls of a blocking function that succeeds at once.
pub fn blocking(policy: &Policy) -> Vec<Contender<'_>> {
    let backon = backon_policy();
    vec![
        calls("no retry at all", true, || {
            for _ in 0..CALLS {
                black_box(blocking_work()).ok();
            }
        }),
        calls("redrive", true, move || {
            for _ in 0..CALLS {
                black_box(redrive_policy::retry_blocking(black_box(policy), blocking_work).call()).ok();
            }
        }),
        calls("backon", false, move || {
            for _ in 0..CALLS {
                black_box(backon::BlockingRetryable::retry(blocking_work, black_box(backon)).call()).ok();
            }
        }),
        calls("backoff", false, || {
            for _ in 0..CALLS {
                let work = || blocking_work().map_err(backoff::Error::transient);
                black_box(backoff::retry(backoff_policy(), work)).ok();
            }
        }),
    ]
}
