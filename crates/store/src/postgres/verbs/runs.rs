//! Signs of life and the ends of runs.

use super::super::core::{Core, held};
use super::super::kept::Kept;
use super::super::trouble::Trouble;
use super::super::value::Reader;
use super::super::write;
use crate::rules;
use crate::{Hold, Job, JobId, Refusal, Settlement, State, StoreError};
use redrive_policy::{Moment, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What workers say about the runs that they hold, and when.
pub(in crate::postgres) struct Call {
    pub(in crate::postgres) words: Words,
    pub(in crate::postgres) now: Moment,
}

pub(in crate::postgres) enum Words {
    Alive(Vec<Hold>, Option<Span>),
    Ended(Vec<Settlement>),
}

pub(in crate::postgres) type Answers = Vec<Result<Job, Refusal>>;

/// One word about one run.
#[derive(Clone, Copy)]
enum Word<'c> {
    Alive(&'c Hold, Option<Span>, Moment),
    Ended(&'c Settlement, Moment),
}

impl Word<'_> {
    fn id(self) -> JobId {
        match self {
            Self::Alive(hold, ..) => hold.id,
            Self::Ended(settlement, _) => settlement.hold.id,
        }
    }

    fn apply(self, jobs: &mut HashMap<JobId, Kept>) -> Result<Job, Refusal> {
        held(jobs, self.id())?.change(|job| match self {
            Self::Alive(hold, span, now) => rules::extend(job, &hold.proof, span, now),
            Self::Ended(settlement, now) => rules::settle(job, settlement, now),
        })
    }
}

/// Takes the words of several callers together, one after the other.
pub(in crate::postgres) async fn batch(core: Arc<Core>, calls: Vec<Call>) -> Vec<Result<Answers, StoreError>> {
    let mut words = Vec::new();
    let mut lengths = Vec::with_capacity(calls.len());
    for Call { words: said, now } in &calls {
        let before = words.len();
        match said {
            Words::Alive(holds, span) => words.extend(holds.iter().map(|hold| Word::Alive(hold, *span, *now))),
            Words::Ended(settlements) => words.extend(settlements.iter().map(|each| Word::Ended(each, *now))),
        }
        lengths.push(words.len() - before);
    }
    match heard(&core, &words).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            lengths.into_iter().map(|length| Ok(answers.by_ref().take(length).collect())).collect()
        }
        Err(trouble) => {
            let error = StoreError::from(trouble);
            calls.iter().map(|_| Err(error.clone())).collect()
        }
    }
}

/// The answers to all words. Each concerns one job and no other, so that jobs which this node remembers go
/// the short way, and all others, and those that have changed meanwhile, the long one.
async fn heard(core: &Core, words: &[Word<'_>]) -> Result<Answers, Trouble> {
    let mut answers = BTreeMap::new();
    let known = core.remembered.take(words.iter().map(|word| word.id()));
    if !known.is_empty() {
        answers = short(core, words, known).await?;
    }
    let open: Vec<(usize, Word<'_>)> =
        words.iter().copied().enumerate().filter(|(place, _)| !answers.contains_key(place)).collect();
    if !open.is_empty() {
        answers.extend(core.repeat(|| long(core, &open)).await?);
    }
    Ok(answers.into_values().collect())
}

/// Reads the jobs under a lock, and writes what becomes of them.
async fn long(core: &Core, words: &[(usize, Word<'_>)]) -> Result<Vec<(usize, Result<Job, Refusal>)>, Trouble> {
    let ids: BTreeSet<JobId> = words.iter().map(|(_, word)| word.id()).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let mut session = core.session().await?;
    let mut jobs = core.hold(&mut session, &ids, false).await?;
    let answers = words.iter().map(|(place, word)| (*place, word.apply(&mut jobs))).collect();
    core.commit(&mut session, &jobs.values().collect::<Vec<_>>()).await?;
    core.remembered.keep(jobs.into_values().filter(|kept| kept.job.state == State::Active));
    Ok(answers)
}

/// Writes what becomes of runs that this node remembers, each on the condition that nobody has written it
/// meanwhile. Whatever is refused has to be looked at again: the job may have moved on.
async fn short(
    core: &Core,
    words: &[Word<'_>],
    mut jobs: HashMap<JobId, Kept>,
) -> Result<BTreeMap<usize, Result<Job, Refusal>>, Trouble> {
    let mut answers = BTreeMap::new();
    let mut doubtful = BTreeSet::new();
    for (place, word) in words.iter().enumerate() {
        if !jobs.contains_key(&word.id()) {
            continue;
        }
        let answer = word.apply(&mut jobs);
        if answer.is_err() {
            doubtful.insert(word.id());
        }
        answers.insert(place, answer);
    }
    let mut sound: Vec<&Kept> = jobs.values().filter(|kept| kept.changed && !doubtful.contains(&kept.job.id)).collect();
    sound.sort_by_key(|kept| kept.job.id);
    let mut written = BTreeSet::new();
    if !sound.is_empty() {
        let orders = write::changes(&sound, &|name| core.catalogue.queue(name))?;
        let mut session = core.session().await?;
        match session.write_all(&orders).await {
            Ok(rows) => {
                for row in &rows {
                    written.insert(Reader::new(row).id()?);
                }
            }
            // Rolled back: the long way locks in order.
            Err(Trouble::Collided(_) | Trouble::Taken) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    core.tidy.wrote(written.len());
    core.tell(jobs.values().filter(|kept| written.contains(&kept.job.id)).map(|kept| &kept.job));
    core.remembered
        .keep(jobs.into_values().filter(|kept| written.contains(&kept.job.id) && kept.job.state == State::Active));
    answers.retain(|place, _| written.contains(&words[*place].id()));
    Ok(answers)
}
