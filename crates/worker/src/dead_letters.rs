//! Jobs that failed permanently and are stored for inspection.

use crate::transport::{DeadFilter, Start, Transport};
use crate::{ClientError, JobInfo};
use std::fmt;
use std::sync::Arc;

/// How many are read in one request when all that match are selected.
const STEP: usize = 500;

/// The dead letters, or those that match a filter: `client.dead_letters().queue("mail").retry_all()`.
#[derive(Clone)]
pub struct DeadLetters {
    transport: Arc<dyn Transport>,
    filter: DeadFilter,
}

impl DeadLetters {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, filter: DeadFilter::default() }
    }

    /// Only those of a queue.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.filter.queue = Some(queue.into());
        self
    }

    /// Only those of a type.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.filter.kind = Some(kind.into());
        self
    }

    /// Only those whose last failure is of this type.
    #[must_use]
    pub fn error_type(mut self, error_type: impl Into<String>) -> Self {
        self.filter.error_type = Some(error_type.into());
        self
    }

    /// How many there are.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn count(&self) -> Result<usize, ClientError> {
        match self.transport.dead_letters(&self.filter, &Start::Offset(0), 1).await?.total {
            Some(total) => Ok(total),
            None => Ok(self.ids().await?.len()),
        }
    }

    /// A page of them, the latest first.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses to skip this many.
    pub async fn list(&self, offset: usize, limit: usize) -> Result<Vec<JobInfo>, ClientError> {
        let mut jobs = Vec::new();
        self.walk(offset, limit, |job| jobs.push(job)).await?;
        Ok(jobs)
    }

    /// Reads up to `limit` of them, in as many steps as the server needs.
    async fn walk(&self, offset: usize, limit: usize, mut each: impl FnMut(JobInfo)) -> Result<(), ClientError> {
        let mut left = limit;
        let mut start = Some(Start::Offset(offset));
        while let Some(from) = start.filter(|_| left > 0) {
            let page = self.transport.dead_letters(&self.filter, &from, STEP.min(left)).await?;
            left = left.saturating_sub(page.jobs.len());
            page.jobs.into_iter().map(JobInfo::new).for_each(&mut each);
            start = page.next;
        }
        Ok(())
    }

    /// Redrives one, to run again as if it were new. Its history stays.
    ///
    /// # Errors
    /// There is no such dead letter, or the server cannot be reached.
    pub async fn retry(&self, id: &str) -> Result<JobInfo, ClientError> {
        Ok(JobInfo::new(self.transport.retry_dead(id).await?))
    }

    /// Deletes one.
    ///
    /// # Errors
    /// There is no such dead letter, or the server cannot be reached.
    pub async fn delete(&self, id: &str) -> Result<(), ClientError> {
        self.transport.delete_dead(id).await
    }

    /// Redrives all that match now; returns how many.
    ///
    /// # Errors
    /// The server cannot be reached; some of them may be redriven already.
    pub async fn retry_all(&self) -> Result<usize, ClientError> {
        let ids = self.ids().await?;
        let mut count = 0;
        for id in &ids {
            count += usize::from(unless_gone(self.retry(id).await)?.is_some());
        }
        Ok(count)
    }

    /// Deletes all that match now; returns how many.
    ///
    /// # Errors
    /// The server cannot be reached; some of them may be deleted already.
    pub async fn delete_all(&self) -> Result<usize, ClientError> {
        let ids = self.ids().await?;
        let mut count = 0;
        for id in &ids {
            count += usize::from(unless_gone(self.delete(id).await)?.is_some());
        }
        Ok(count)
    }

    async fn ids(&self) -> Result<Vec<String>, ClientError> {
        let mut ids = Vec::new();
        self.walk(0, usize::MAX, |job| ids.push(job.id().to_owned())).await?;
        Ok(ids)
    }
}

/// `None` if another caller has redriven or deleted it meanwhile.
fn unless_gone<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ClientError::Refused(refused)) if matches!(refused.status, 404 | 409) => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters").field("filter", &self.filter).finish_non_exhaustive()
    }
}
