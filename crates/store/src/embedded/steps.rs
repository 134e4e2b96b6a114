//! Verbs that take many steps, and let others have the lock between them.

use super::store::Embedded;
use super::ticket::{Durable, Ticket};
use super::verbs::list::Scan;
use crate::{Answer, Filter, Listed, Page, StoreError};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// How often the work between two steps looks whether the lock is still wanted. It goes on then, so that no number of
/// other verbs can hold it up for ever.
const PATIENCE: usize = 100;

impl Embedded {
    /// Takes the first step of a list at once, and the others when its answer is waited for.
    pub(super) fn list_in_steps(&self, filter: Filter, page: Page) -> Answer<'_, Listed> {
        let begun = self.begin(filter, page);
        Box::pin(async move {
            let (mut scan, mut ticket) = begun?;
            while !scan.is_over() {
                self.give_way().await;
                ticket = self.go_on(&mut scan)?;
            }
            Durable::new(scan.listed(), ticket).await
        })
    }

    fn begin(&self, filter: Filter, page: Page) -> Result<(Scan, Arc<Ticket>), StoreError> {
        let mut scan = self.shared.lock().ledger.begin_list(filter, page, self.options.list_most_jobs);
        let ticket = self.go_on(&mut scan)?;
        Ok((scan, ticket))
    }

    /// One step of a list, and what an answer that has seen it must wait for.
    fn go_on(&self, scan: &mut Scan) -> Result<Arc<Ticket>, StoreError> {
        let mut core = self.shared.lock();
        if let Some(why) = core.stopped() {
            return Err(why.clone());
        }
        core.ledger.go_on(scan, self.options.list_step_jobs);
        Ok(core.ticket())
    }

    /// Lets other work of this thread go on, and other threads have the lock.
    async fn give_way(&self) {
        for _ in 0..PATIENCE {
            yielded().await;
            if !self.shared.is_wanted() {
                return;
            }
        }
    }
}

/// Comes back once everything else that is ready on this thread had its turn.
async fn yielded() {
    let mut asked = false;
    poll_fn(|context| {
        if asked {
            return Poll::Ready(());
        }
        asked = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
