//! Two stores, read side by side in the order of ids.

use super::{CopyError, Portable, PortableGroup, PortableRun, QueueMark, Source};
use crate::{Group, JobId, RunId, StoreFuture};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;

/// Compares everything. Neither side is ever in memory as a whole.
pub(super) async fn compare(
    one: &mut (dyn Source + '_),
    other: &mut (dyn Source + '_),
    seen: &mut (dyn FnMut(usize) + Send),
) -> Result<(), CopyError> {
    same_queues(&one.queues().await?, &other.queues().await?)?;
    compare_items::<Portable>(one, other, seen).await?;
    compare_items::<PortableRun>(one, other, &mut |_| {}).await?;
    compare_items::<PortableGroup>(one, other, &mut |_| {}).await
}

async fn compare_items<T: Item>(
    one: &mut (dyn Source + '_),
    other: &mut (dyn Source + '_),
    seen: &mut (dyn FnMut(usize) + Send),
) -> Result<(), CopyError> {
    let (mut left, mut right) = (Pages::<T>::new(), Pages::<T>::new());
    let mut done = 0_usize;
    loop {
        left.fill(one).await?;
        right.fill(other).await?;
        while !left.needs_more() && !right.needs_more() {
            match (left.page.pop_front(), right.page.pop_front()) {
                (Some(expected), Some(found)) if expected == found => done += 1,
                (Some(expected), Some(found)) => return Err(CopyError::Differs(difference(&expected, &found))),
                (Some(expected), None) => return Err(CopyError::Differs(missing(&expected))),
                (None, Some(found)) => return Err(CopyError::Differs(surplus(&found))),
                (None, None) => return Ok(()),
            }
        }
        seen(done);
    }
}

/// What is compared one by one.
trait Item: PartialEq + Send + Sized {
    type Id: Clone + Ord + fmt::Display + Send;

    /// What it is called.
    const WHAT: &'static str;

    fn id(&self) -> Self::Id;

    fn after<'s>(from: &'s mut (dyn Source + '_), last: Option<Self::Id>) -> StoreFuture<'s, Vec<Self>>;

    /// The names of its parts, and whether each is the same. Only those that differ are named, never their contents.
    fn parts(&self, other: &Self) -> Vec<(&'static str, bool)>;
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

fn missing<T: Item>(item: &T) -> String {
    format!("{} {} is missing", T::WHAT, item.id())
}

fn surplus<T: Item>(item: &T) -> String {
    format!("{} {} was not there before", T::WHAT, item.id())
}

/// What is different, by the names of the parts.
fn difference<T: Item>(one: &T, other: &T) -> String {
    match one.id().cmp(&other.id()) {
        Ordering::Less => return missing(one),
        Ordering::Greater => return surplus(other),
        Ordering::Equal => {}
    }
    let named: Vec<&str> = one.parts(other).into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect();
    let named = if named.is_empty() { "counts".to_owned() } else { named.join(", ") };
    format!("{} {} has another {named}", T::WHAT, one.id())
}

impl Item for Portable {
    type Id = JobId;

    const WHAT: &'static str = "job";

    fn id(&self) -> JobId {
        self.job.id
    }

    fn after<'s>(from: &'s mut (dyn Source + '_), last: Option<JobId>) -> StoreFuture<'s, Vec<Self>> {
        from.after(last)
    }

    fn parts(&self, found: &Self) -> Vec<(&'static str, bool)> {
        let (one, other) = (&self.job, &found.job);
        vec![
            ("idempotency key", self.idempotency_key == found.idempotency_key),
            ("policy", one.spec.policy == other.spec.policy),
            ("other specification", one.spec == other.spec || one.spec.policy != other.spec.policy),
            ("state", one.state == other.state),
            ("history", one.history == other.history),
            ("lease", one.lease == other.lease && one.settled == other.settled),
            ("times", one.times == other.times && one.due == other.due && one.last_delay == other.last_delay),
            ("failures", one.failures == other.failures),
            ("revisions", one.revisions == other.revisions),
            ("result", one.result == other.result),
            ("run", one.parent == other.parent),
        ]
    }
}

impl Item for PortableRun {
    type Id = RunId;

    const WHAT: &'static str = "run";

    fn id(&self) -> RunId {
        self.run.id
    }

    fn after<'s>(from: &'s mut (dyn Source + '_), last: Option<RunId>) -> StoreFuture<'s, Vec<Self>> {
        from.runs_after(last)
    }

    fn parts(&self, found: &Self) -> Vec<(&'static str, bool)> {
        let (one, other) = (&self.run, &found.run);
        vec![
            ("program", one.program == other.program && one.version == other.version),
            ("state", one.state == other.state && one.revision == other.revision),
            ("times", (one.timer, one.created, one.advanced) == (other.timer, other.created, other.advanced)),
            ("key", one.key == other.key),
            ("parent", one.parent == other.parent),
            ("end", one.end == other.end),
            ("messages", self.messages == found.messages),
        ]
    }
}

impl Item for PortableGroup {
    type Id = Group;

    const WHAT: &'static str = "limit";

    fn id(&self) -> Group {
        self.group.clone()
    }

    fn after<'s>(from: &'s mut (dyn Source + '_), last: Option<Group>) -> StoreFuture<'s, Vec<Self>> {
        from.groups_after(last)
    }

    fn parts(&self, found: &Self) -> Vec<(&'static str, bool)> {
        let (one, other) = (&self.row, &found.row);
        vec![
            ("setting", one.setting == other.setting),
            ("starts", one.starts == other.starts),
            ("hold", one.held == other.held),
        ]
    }
}

/// The items of one side, a page at a time.
struct Pages<T: Item> {
    page: VecDeque<T>,
    last: Option<T::Id>,
    over: bool,
}

impl<T: Item> Pages<T> {
    const fn new() -> Self {
        Self { page: VecDeque::new(), last: None, over: false }
    }

    fn needs_more(&self) -> bool {
        self.page.is_empty() && !self.over
    }

    async fn fill(&mut self, from: &mut (dyn Source + '_)) -> Result<(), CopyError> {
        if self.needs_more() {
            self.page = T::after(from, self.last.clone()).await?.into();
            self.last = self.page.back().map(Item::id);
            self.over = self.page.is_empty();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::samples;
    use crate::limit::GroupRow;
    use crate::rules;
    use crate::{NewJob, Run, Setting, Spec};
    use redrive_policy::{Moment, Policy, Span};
    use std::future::{Future, ready};
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    /// A store that is a list, read in pages of this length.
    #[derive(Clone)]
    struct Fixed(Vec<QueueMark>, Vec<Portable>, usize, Vec<PortableRun>, Vec<PortableGroup>);

    impl Source for Fixed {
        fn queues(&mut self) -> StoreFuture<'_, Vec<QueueMark>> {
            Box::pin(ready(Ok(self.0.clone())))
        }

        fn count(&mut self) -> StoreFuture<'_, usize> {
            Box::pin(ready(Ok(self.1.len())))
        }

        fn after(&mut self, last: Option<JobId>) -> StoreFuture<'_, Vec<Portable>> {
            let rest = self.1.iter().filter(|moved| last.is_none_or(|last| moved.job.id > last));
            Box::pin(ready(Ok(rest.take(self.2).cloned().collect())))
        }

        fn runs_after(&mut self, last: Option<RunId>) -> StoreFuture<'_, Vec<PortableRun>> {
            let rest = self.3.iter().filter(|moved| last.is_none_or(|last| moved.run.id > last));
            Box::pin(ready(Ok(rest.take(self.2).cloned().collect())))
        }

        fn groups_after(&mut self, last: Option<Group>) -> StoreFuture<'_, Vec<PortableGroup>> {
            let rest = self.4.iter().filter(|moved| last.as_ref().is_none_or(|last| moved.group > *last));
            Box::pin(ready(Ok(rest.take(self.2).cloned().collect())))
        }
    }

    fn portable(number: u128) -> Portable {
        let policy = Policy::builder().max_attempts(3).build().unwrap();
        let spec = Spec::new("work", "q", Arc::from(*b"{}"), Arc::new(policy));
        let new = NewJob::new(JobId::new(Moment::ORIGIN, number), Arc::new(spec));
        Portable { job: rules::created(&new, Moment::ORIGIN), idempotency_key: None }
    }

    fn store(page: usize) -> Fixed {
        let queue = QueueMark { name: "q".into(), paused: false, created: Moment::ORIGIN };
        let run = |number| PortableRun {
            run: Run { id: RunId::new(Moment::ORIGIN, number), ..samples::runs().swap_remove(1) },
            messages: samples::messages(),
        };
        let group = |number| PortableGroup {
            group: Group::Key(format!("key-{number}").into()),
            row: GroupRow { setting: Some(Setting::default()), ..GroupRow::default() },
        };
        let groups = (1..=4).map(group).collect();
        Fixed(vec![queue], (1..=10).map(portable).collect(), page, (1..=5).map(run).collect(), groups)
    }

    fn compared(mut one: Fixed, mut other: Fixed) -> Result<(), CopyError> {
        let mut seen = |_| {};
        let mut work = std::pin::pin!(compare(&mut one, &mut other, &mut seen));
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("lists answer at once"),
        }
    }

    #[test]
    fn stores_are_the_same_however_they_are_read() {
        for (one, other) in [(1, 1), (3, 4), (10, 3), (11, 100)] {
            assert_eq!(compared(store(one), store(other)), Ok(()));
        }
    }

    #[test]
    fn every_difference_is_found_and_named() {
        type Change = fn(&mut Fixed);
        let changes: [(Change, &str); 18] = [
            (|store| drop(store.1.remove(9)), "is missing"),
            (|store| drop(store.1.remove(0)), "is missing"),
            (|store| store.1.push(portable(11)), "was not there before"),
            (|store| store.1.insert(0, portable(0)), "was not there before"),
            (|store| store.0[0].paused = true, "a queue was"),
            (|store| store.0.clear(), "1 queues"),
            (|store| store.1[4].idempotency_key = Some("k".into()), "another idempotency key"),
            (
                |store| store.1[7].job = rules::cancel(store.1[7].job.clone(), Moment::ORIGIN).unwrap().job,
                "another state, times",
            ),
            (|store| store.1[2].job.leases = 1, "another counts"),
            (|store| store.1[3].job.parent = store.3[0].run.parent.or(samples::job().parent), "another run"),
            (|store| drop(store.3.remove(2)), "is missing"),
            (|store| drop(store.3[1].messages.pop()), "another messages"),
            (|store| store.3[4].run.state = Arc::from(*b"other"), "another state"),
            (|store| store.3[0].run.children = 9, "another counts"),
            (|store| drop(store.4.pop()), "is missing"),
            (|store| store.4[1].row.setting = None, "another setting"),
            (|store| store.4[1].row.held = Some(Moment::ORIGIN), "another hold"),
            (|store| store.4[2].row.starts.push(Moment::ORIGIN, Span::from_secs(1)), "another starts"),
        ];
        for (change, words) in changes {
            let mut other = store(4);
            change(&mut other);
            let Err(CopyError::Differs(told)) = compared(store(3), other) else { panic!("{words}: not found") };
            assert!(told.contains(words), "{told}");
        }
    }
}
