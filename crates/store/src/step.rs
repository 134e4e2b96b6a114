//! Where reads that look at many jobs let others go first.

use std::future::poll_fn;
use std::task::Poll;

/// Ends a step of a read that takes many: comes back once everything else that is ready on this thread had its turn.
///
/// It wakes its task while it is polled. Whoever throttles a read tells the end of a step by that from a wait for
/// something else. A read that ends a step holds no lock and no transaction.
pub async fn end_step() {
    let mut is_polled = false;
    poll_fn(|context| {
        if is_polled {
            return Poll::Ready(());
        }
        is_polled = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
