//! From one place to another, and once more to compare.

use super::compare::compare;
use super::{CopyError, Portable, Source, Target};

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyProgress {
    /// What is being done.
    pub phase: Phase,
    /// How many jobs it is done with.
    pub done: usize,
    /// How many there are.
    pub total: usize,
}

/// What a copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It reads and writes.
    Copying,
    /// It reads both sides again and compares them.
    Verifying,
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// How many jobs are in each state, in the order of [`crate::State::ALL`].
    pub jobs: [usize; 8],
    /// How many of the discarded ones are dead letters.
    pub dead: usize,
    /// How many failed attempts they have.
    pub failures: usize,
    /// How many have an idempotency key.
    pub keys: usize,
    /// How many queues there are.
    pub queues: usize,
    /// How many of those are closed for claims.
    pub paused: usize,
    /// How many runs there are.
    pub runs: usize,
    /// How many messages wait in their inboxes.
    pub messages: usize,
    /// How many groups have limits that are set, or starts that count.
    pub limits: usize,
    /// How many jobs applications have left in the inbox of the source meanwhile. They are not in the copy.
    pub left_behind: usize,
}

/// Copies everything, compares both sides, and makes a store of the target.
///
/// # Errors
/// What one of the two says, or the first difference. The target is no store then.
pub async fn copy(
    from: &mut dyn Source,
    mut to: Box<dyn Target>,
    progress: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<Copied, CopyError> {
    let total = from.count().await?;
    let mut told = |phase, done| progress(CopyProgress { phase, done, total });
    let mut copied = read(from, Some(&mut *to), &mut |done| told(Phase::Copying, done)).await?;
    to.seal().await?;
    compare(from, &mut *to, &mut |done| told(Phase::Verifying, done)).await?;
    copied.left_behind = from.left_behind().await?;
    to.finish().await?;
    Ok(copied)
}

/// Reads and decodes all of a store.
///
/// # Errors
/// What the store says, such as that a row is not what was written.
pub async fn survey(
    from: &mut dyn Source,
    progress: &mut (dyn FnMut(CopyProgress) + Send),
) -> Result<Copied, CopyError> {
    let total = from.count().await?;
    read(from, None, &mut |done| progress(CopyProgress { phase: Phase::Verifying, done, total })).await
}

/// Reads everything, and adds it to the target if there is one.
async fn read(
    from: &mut dyn Source,
    mut to: Option<&mut dyn Target>,
    told: &mut (dyn FnMut(usize) + Send),
) -> Result<Copied, CopyError> {
    let queues = from.queues().await?;
    let paused = queues.iter().filter(|queue| queue.paused).count();
    let mut copied = Copied { queues: queues.len(), paused, ..Copied::default() };
    if let Some(to) = &mut to {
        to.add_queues(queues).await?;
    }
    let (mut last, mut done) = (None, 0);
    told(done);
    loop {
        let jobs = from.after(last).await?;
        let Some(newest) = jobs.last() else { break };
        last = Some(newest.job.id);
        done += jobs.len();
        jobs.iter().for_each(|moved| copied.note(moved));
        if let Some(to) = &mut to {
            to.add(jobs).await?;
        }
        told(done);
    }
    let mut last = None;
    loop {
        let runs = from.runs_after(last).await?;
        let Some(newest) = runs.last() else { break };
        last = Some(newest.run.id);
        copied.runs += runs.len();
        copied.messages += runs.iter().map(|moved| moved.messages.len()).sum::<usize>();
        if let Some(to) = &mut to {
            to.add_runs(runs).await?;
        }
    }
    let mut last = None;
    loop {
        let groups = from.groups_after(last).await?;
        let Some(newest) = groups.last() else { break };
        last = Some(newest.group.clone());
        copied.limits += groups.len();
        if let Some(to) = &mut to {
            to.add_groups(groups).await?;
        }
    }
    Ok(copied)
}

impl Copied {
    fn note(&mut self, moved: &Portable) {
        self.jobs[moved.job.state as usize] += 1;
        self.dead += usize::from(moved.job.dead);
        self.failures += moved.job.failures.len();
        self.keys += usize::from(moved.idempotency_key.is_some());
    }

    /// How many jobs there are in all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.jobs.iter().sum()
    }
}
