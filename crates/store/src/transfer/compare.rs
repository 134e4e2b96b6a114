//! Two stores, read side by side in the order of names.

use super::{CopyError, Portable, QueueMark, Source};
use crate::JobId;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Compares everything. Neither side is ever in memory as a whole.
pub(super) async fn compare(
    one: &mut (dyn Source + '_),
    other: &mut (dyn Source + '_),
    seen: &mut (dyn FnMut(usize) + Send),
) -> Result<(), CopyError> {
    same_queues(&one.queues().await?, &other.queues().await?)?;
    let (mut left, mut right) = (Pages::default(), Pages::default());
    let mut done = 0_usize;
    loop {
        left.fill(one).await?;
        right.fill(other).await?;
        while !left.needs_more() && !right.needs_more() {
            match (left.page.pop_front(), right.page.pop_front()) {
                (Some(expected), Some(found)) if expected == found => done += 1,
                (Some(expected), Some(found)) => return Err(CopyError::Differs(difference(&expected, &found))),
                (Some(expected), None) => return Err(CopyError::Differs(missing(expected.job.id))),
                (None, Some(found)) => return Err(CopyError::Differs(surplus(found.job.id))),
                (None, None) => return Ok(()),
            }
        }
        seen(done);
    }
}

fn same_queues(one: &[QueueMark], other: &[QueueMark]) -> Result<(), CopyError> {
    if one.len() != other.len() {
        return Err(CopyError::Differs(format!("there were {} queues and there are {}", one.len(), other.len())));
    }
    match one.iter().zip(other).find(|(one, other)| one != other) {
        Some((one, other)) => Err(CopyError::Differs(format!("a queue was {one:?} and is {other:?}"))),
        None => Ok(()),
    }
}

fn missing(id: JobId) -> String {
    format!("job {id} is missing")
}

fn surplus(id: JobId) -> String {
    format!("job {id} was not there before")
}

/// What is different, by the names of the parts: what a job says is nobody's business here.
fn difference(expected: &Portable, found: &Portable) -> String {
    let (one, other) = (&expected.job, &found.job);
    match one.id.cmp(&other.id) {
        Ordering::Less => return missing(one.id),
        Ordering::Greater => return surplus(other.id),
        Ordering::Equal => {}
    }
    let parts = [
        ("idempotency key", expected.idempotency_key == found.idempotency_key),
        ("policy", one.spec.policy == other.spec.policy),
        ("other specification", one.spec == other.spec || one.spec.policy != other.spec.policy),
        ("state", one.state == other.state),
        ("history", one.history == other.history),
        ("lease", one.lease == other.lease && one.settled == other.settled),
        ("times", one.times == other.times && one.due == other.due && one.last_delay == other.last_delay),
        ("failures", one.failures == other.failures),
        ("result", one.result == other.result),
    ];
    let named: Vec<&str> = parts.iter().filter(|(_, same)| !same).map(|(name, _)| *name).collect();
    let named = if named.is_empty() { "counts".to_owned() } else { named.join(", ") };
    format!("job {} has another {named}", one.id)
}

/// The jobs of one side, a page at a time.
#[derive(Default)]
struct Pages {
    page: VecDeque<Portable>,
    last: Option<JobId>,
    over: bool,
}

impl Pages {
    fn needs_more(&self) -> bool {
        self.page.is_empty() && !self.over
    }

    async fn fill(&mut self, from: &mut (dyn Source + '_)) -> Result<(), CopyError> {
        if self.needs_more() {
            self.page = from.after(self.last).await?.into();
            self.last = self.page.back().map(|moved| moved.job.id);
            self.over = self.page.is_empty();
        }
        Ok(())
    }
}
