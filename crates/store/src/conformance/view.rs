//! What a store shows: lists, queues, and the next moment.

use super::harness::{Harness, LEASE_MS, QUEUE, START, ids, lease_of, stopped};
use super::{CaseResult, Violation, same};
use crate::{Filter, Missing, NewJob, Page, Queue, QueueLoad, Start, State};
use redrive_policy::{Moment, Span};

pub(super) async fn get_of_an_unknown_job_returns_nothing(harness: &mut Harness<'_>) -> CaseResult {
    let unknown = harness.new_id();
    same!(harness.store().get(unknown).await?, None, "an unknown job");
    Ok(())
}

pub(super) async fn get_many_answers_jobs_of_all_states_in_the_order_asked_for(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let jobs: Vec<NewJob> = (0..60).map(|_| harness.job()).collect();
    let mut wanted: Vec<_> = jobs.iter().map(|job| job.id).collect();
    harness.enqueue(jobs).await??;
    harness.claim(1).await?;
    harness.cancel(wanted[59]).await??;
    wanted.reverse();
    let mut asked = wanted.clone();
    asked.insert(7, harness.new_id());
    let found = harness.store().get_many(asked).await?;
    same!(ids(&found), wanted, "all that are stored, in the order asked for");
    for job in found {
        same!(harness.store().get(job.id).await?, Some(job.clone()), "as alone");
    }
    let last = wanted[59];
    let twice = harness.store().get_many(vec![last, last]).await?;
    same!(ids(&twice), [last, last], "one that is asked for twice");
    same!(harness.store().get_many(Vec::new()).await?, [], "of none");
    Ok(())
}

pub(super) async fn list_is_newest_first_and_in_pages(harness: &mut Harness<'_>) -> CaseResult {
    let mut jobs: Vec<NewJob> = (0..7).map(|_| harness.job()).collect();
    let mut names: Vec<_> = jobs.iter().map(|job| job.id).collect();
    names.reverse();
    // The order is that of the ids, not of their arrival.
    jobs.swap(1, 5);
    harness.enqueue(jobs).await??;
    for (offset, limit) in [(0, 3), (3, 3), (6, 3), (7, 3), (99, 3), (0, 0), (0, usize::MAX), (usize::MAX, 1)] {
        let page = harness.page(Filter::default(), Page::new(offset, limit)).await?;
        let expected: Vec<_> = names.iter().copied().skip(offset).take(limit).collect();
        same!((ids(&page.jobs), page.total), (expected, Some(7)), "{limit} jobs from {offset}");
        same!(
            page.next.is_some(),
            offset.saturating_add(limit) < 7,
            "whether there are more after {limit} from {offset}"
        );
    }
    for (offset, limit) in [(0, 1), (0, 2), (0, 7), (2, 3), (6, 1)] {
        let walked = harness.walk(Filter::default(), Page::new(offset, limit)).await?;
        same!(ids(&walked.jobs), names[offset..], "all from {offset} on, {limit} at a time");
    }
    Ok(())
}

pub(super) async fn list_continues_after_an_entry_whatever_was_added_or_removed(
    harness: &mut Harness<'_>,
) -> CaseResult {
    let mut names = Vec::new();
    for _ in 0..7 {
        names.push(harness.enqueue_one().await?.id);
    }
    let first = harness.page(Filter::default(), Page::new(0, 3)).await?;
    same!(ids(&first.jobs), [names[6], names[5], names[4]], "the first page");
    harness.enqueue_one().await?;
    for gone in [names[4], names[2]] {
        harness.cancel(gone).await??;
        harness.store().remove(gone).await??;
    }
    let next = first.next.ok_or_else(|| super::Violation::new("there are four jobs behind the first page"))?;
    let rest = harness.walk(Filter::default(), Page { limit: 2, ..next }).await?;
    same!(ids(&rest.jobs), [names[3], names[1], names[0]], "the rest, after the last entry of the first page is gone");
    Ok(())
}

pub(super) async fn list_of_dead_letters_begins_with_what_died_last(harness: &mut Harness<'_>) -> CaseResult {
    let mut claimed = Vec::new();
    for queue in ["a", "b", "a", "b", "a"] {
        claimed.push(harness.claimed_with(|spec| spec.queue = queue.into()).await?);
    }
    let mut died = Vec::new();
    // Two die at the same moment.
    for (place, wait) in [(3, 5), (0, 5), (4, 0), (1, 5), (2, 5)] {
        harness.advance(wait);
        let report = stopped(redrive_policy::Disposition::DeadLetter);
        died.push(harness.settle(lease_of(&claimed[place])?, report).await??);
    }
    let expected = [2, 1, 4, 0, 3].map(|place| claimed[place].id);
    let dead = Filter { dead: Some(true), ..Filter::default() };
    for limit in [1, 2, 5, usize::MAX] {
        let walked = harness.walk(dead.clone(), Page::new(0, limit)).await?;
        same!((ids(&walked.jobs), walked.total), (expected.to_vec(), Some(5)), "dead letters, {limit} at a time");
    }
    let of_queue = Filter { queue: Some("a".into()), ..dead.clone() };
    let walked = harness.walk(of_queue, Page::new(0, 2)).await?;
    same!(
        (ids(&walked.jobs), walked.total),
        (vec![expected[0], expected[2], expected[3]], Some(3)),
        "those of a queue"
    );
    let times = Filter { finished_since: died[1].times.finished, finished_before: died[4].times.finished, ..dead };
    let walked = harness.walk(times.clone(), Page::new(0, 2)).await?;
    same!(ids(&walked.jobs), expected[1..4], "those between two times");
    let backwards = Filter { finished_since: times.finished_before, finished_before: times.finished_since, ..times };
    same!(
        harness.walk(backwards, Page::new(0, 2)).await?.jobs,
        [],
        "those between two times that are the wrong way round"
    );
    Ok(())
}

pub(super) async fn list_ends_a_page_before_it_has_too_many_bytes(harness: &mut Harness<'_>) -> CaseResult {
    let mut names = Vec::new();
    for length in [10, 10_000, 60_000, 10_000, 10_000, 10] {
        names.push(harness.enqueue_with(|spec| spec.body = vec![b'x'; length].into()).await?.id);
    }
    names.reverse();
    let mut page = Page { bytes: 30_000, ..Page::new(0, 9) };
    for expected in [&names[..3], &names[3..4], &names[4..]] {
        let listed = harness.store().list(Filter::default(), page).await?;
        same!(ids(&listed.jobs), expected, "a page of at most 30 kB, or one job");
        page = listed.next.unwrap_or(page);
    }
    Ok(())
}

pub(super) async fn list_without_payloads_has_everything_else(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.job_in(State::Completed).await?;
    let page = Page { payloads: false, bytes: 30_000, ..Page::new(0, 9) };
    harness.enqueue_with(|spec| spec.body = vec![b'x'; 60_000].into()).await?;
    let listed = harness.page(Filter::default(), page).await?;
    same!(listed.jobs.len(), 2, "a page on which bodies do not count");
    let mut expected = job.clone();
    expected.result = None;
    expected.spec = std::sync::Arc::new(crate::Spec { body: [].into(), ..crate::Spec::clone(&job.spec) });
    same!(listed.jobs.last(), Some(&expected), "a job without its body and its result");
    same!(harness.get(job.id).await?, job, "the same job by its id");
    Ok(())
}

pub(super) async fn list_shows_what_fits_the_filter(harness: &mut Harness<'_>) -> CaseResult {
    for state in State::ALL {
        harness.job_in(state).await?;
        harness.advance(10);
    }
    harness.enqueue_with(|spec| (spec.kind, spec.queue) = ("rare".into(), "active".into())).await?;
    let all = harness.list(Filter::default()).await?.jobs;
    same!(all.len(), 9, "how many jobs there are");
    let finished = |state: State| all.iter().find(|job| job.state == state).and_then(|job| job.times.finished);
    let none = Filter::default;
    let filters = [
        (Filter { queue: Some("active".into()), ..none() }, 2),
        (Filter { queue: Some("nowhere".into()), ..none() }, 0),
        (Filter { kind: Some("rare".into()), ..none() }, 1),
        (Filter { kind: Some("work".into()), queue: Some("active".into()), ..none() }, 1),
        (Filter { state: Some(State::Available), ..none() }, 2),
        (Filter { dead: Some(true), ..none() }, 1),
        (Filter { dead: Some(false), ..none() }, 8),
        (Filter { finished_since: finished(State::Cancelled), ..none() }, 2),
        (Filter { finished_before: finished(State::Cancelled), ..none() }, 1),
        (Filter { finished_since: Some(START), finished_before: finished(State::Discarded), ..none() }, 2),
        (Filter { state: Some(State::Completed), dead: Some(true), ..none() }, 0),
    ];
    for (filter, total) in filters {
        let listed = harness.list(filter.clone()).await?;
        let expected: Vec<_> = all.iter().filter(|job| filter.fits(job)).cloned().collect();
        let counted = filter.is_counted().then_some(total);
        same!((listed.jobs.len(), listed.total), (total, counted), "how many fit {filter:?}");
        same!(listed.jobs, expected, "{filter:?}");
        let page = harness.page(filter.clone(), Page::new(1, 1)).await?;
        same!((page.jobs.len(), page.total), (usize::from(total > 1), counted), "the second of {filter:?}");
    }
    Ok(())
}

pub(super) async fn loads_of_queues_tell_what_is_due_and_what_comes_next(harness: &mut Harness<'_>) -> CaseResult {
    let failed = harness.claimed().await?;
    let retry = harness.fail(&failed).await?;
    let scheduled = NewJob { start: Start::Scheduled(harness.later(1)), ..harness.job() };
    let scheduled = harness.enqueue_new(scheduled).await?;
    harness.job_in(State::Discarded).await?;
    let first = harness.enqueue_one().await?;
    harness.advance(1);
    let preferred = harness.enqueue_with(|spec| spec.priority = 5).await?;
    harness.enqueue_with(|spec| spec.queue = "other".into()).await?;
    let loads = harness.store().loads(harness.now()).await?;
    let queues: Vec<Queue> = loads.iter().map(|load| load.queue.clone()).collect();
    same!(queues, harness.store().queues().await?, "the queues");
    let load = load(harness).await?;
    same!((load.due, load.first_due), (1, scheduled.due), "what is due, without the retry that waits");
    let dead = loads.iter().map(|load| (&*load.queue.name, load.dead)).filter(|(_, dead)| *dead > 0);
    same!(dead.collect::<Vec<_>>(), [(State::Discarded.name(), 1)], "the queues with dead letters");
    same!(load.next_available, preferred.times.available, "since when the job with the highest priority waits");
    harness.advance_to(retry.due.unwrap_or(START));
    same!(self::load(harness).await?.due, 2, "what is due when the retry is");
    harness.promote(9).await?;
    let load = self::load(harness).await?;
    same!((load.due, load.first_due), (0, None), "what is due after all of it became available");
    harness.claim_next(preferred.id).await?;
    same!(self::load(harness).await?.next_available, first.times.available, "since when the next one waits");
    harness.store().probe(harness.now()).await?;
    Ok(())
}

/// The load of the queue that most jobs are in.
async fn load(harness: &Harness<'_>) -> Result<QueueLoad, Violation> {
    let loads = harness.store().loads(harness.now()).await?;
    let load = loads.into_iter().find(|load| *load.queue.name == *QUEUE);
    load.ok_or_else(|| Violation::new("the queue is missing"))
}

pub(super) async fn queues_count_their_jobs_by_state(harness: &mut Harness<'_>) -> CaseResult {
    for (copies, state) in (1..).zip(State::ALL) {
        for _ in 0..copies {
            harness.job_in(state).await?;
        }
    }
    let queues = harness.store().queues().await?;
    let mut names: Vec<_> = State::ALL.map(State::name).to_vec();
    names.sort_unstable();
    same!(queues.iter().map(|queue| &*queue.name).collect::<Vec<_>>(), names, "the queues, by name");
    for (copies, (index, state)) in (1..).zip(State::ALL.into_iter().enumerate()) {
        let mut counts = [0; 8];
        counts[index] = copies;
        let found = queues.iter().find(|queue| &*queue.name == state.name());
        same!(found.map(|queue| queue.counts), Some(counts), "the counts of the queue {state}");
    }
    Ok(())
}

pub(super) async fn queues_stay_when_their_jobs_are_gone(harness: &mut Harness<'_>) -> CaseResult {
    let job = harness.enqueue_one().await?;
    harness.advance(5);
    harness.enqueue_with(|spec| spec.queue = "later".into()).await?;
    harness.cancel(job.id).await??;
    harness.store().remove(job.id).await??;
    let seen: Vec<_> = harness.store().queues().await?.into_iter().map(|q| (q.name, q.created, q.counts)).collect();
    let mut later = [0; 8];
    later[2] = 1;
    same!(
        seen,
        [("later".into(), harness.now(), later), (QUEUE.into(), START, [0; 8])],
        "name, creation time and counts"
    );
    Ok(())
}

pub(super) async fn pause_returns_the_queue_and_creates_it_if_missing(harness: &mut Harness<'_>) -> CaseResult {
    let expected = Queue { name: "new".into(), paused: true, created: START, counts: [0; 8] };
    same!(
        harness.store().pause("new".into(), true, Missing::Create, harness.now()).await?,
        Some(expected.clone()),
        "a queue that was unknown"
    );
    harness.advance(5);
    same!(
        harness.store().pause("new".into(), true, Missing::Create, harness.now()).await?,
        Some(expected.clone()),
        "the same queue, paused again"
    );
    harness.enqueue_with(|spec| spec.queue = "new".into()).await?;
    let mut open = Queue { paused: false, ..expected };
    open.counts[2] = 1;
    same!(
        harness.store().pause("new".into(), false, Missing::Create, harness.now()).await?,
        Some(open.clone()),
        "the same queue with a job, opened"
    );
    let other = Queue { name: "other".into(), paused: false, created: harness.now(), counts: [0; 8] };
    same!(
        harness.store().pause("other".into(), false, Missing::Create, harness.now()).await?,
        Some(other.clone()),
        "an unknown queue, opened"
    );
    same!(harness.store().queues().await?, [open, other], "the queues");
    Ok(())
}

pub(super) async fn pause_refuses_an_unknown_queue_unless_it_may_create_it(harness: &mut Harness<'_>) -> CaseResult {
    for paused in [true, false] {
        let refused = harness.store().pause("misspelt".into(), paused, Missing::Refuse, harness.now()).await?;
        same!(refused, None, "an unknown queue, paused: {paused}");
    }
    same!(harness.store().queues().await?, Vec::new(), "the queues");
    harness.enqueue_one().await?;
    let known = harness.store().pause(QUEUE.into(), true, Missing::Refuse, harness.now()).await?;
    same!(known.map(|queue| (queue.paused, queue.counts[2])), Some((true, 1)), "a queue with a job");
    harness.store().pause("made".into(), true, Missing::Create, harness.now()).await?;
    let made = harness.store().pause("made".into(), false, Missing::Refuse, harness.now()).await?;
    same!(made.map(|queue| queue.paused), Some(false), "a queue that a pause has made");
    Ok(())
}

pub(super) async fn pause_does_not_stop_running_jobs(harness: &mut Harness<'_>) -> CaseResult {
    let claimed = harness.claimed().await?;
    harness.store().pause(QUEUE.into(), true, Missing::Create, harness.now()).await?;
    harness.extend(lease_of(&claimed)?, None).await??;
    same!(harness.done(&claimed).await?.state, State::Completed, "a job whose queue was paused meanwhile");
    Ok(())
}

pub(super) async fn next_wake_is_the_earliest_of_all_times(harness: &mut Harness<'_>) -> CaseResult {
    same!(harness.next_wake().await?, None, "an empty store");
    harness.enqueue_one().await?;
    same!(harness.next_wake().await?, None, "a job that waits for a worker only");
    // Each step puts an earlier time in front of the ones before it.
    let due = |ms| Start::Scheduled(START.after(Span::from_millis(ms)));
    let new = harness.job();
    harness.enqueue_new(NewJob { start: due(90_000), ..new }).await?;
    same!(wake_ms(harness).await?, Some(90_000), "a scheduled job");
    harness.claim(1).await?;
    same!(wake_ms(harness).await?, Some(LEASE_MS.into()), "a lease");
    let expires = harness.later(9_000);
    harness.enqueue_with(|spec| spec.expires = Some(expires)).await?;
    same!(wake_ms(harness).await?, Some(9_000), "a job that expires");
    let failing =
        harness.claimed_with(|spec| (spec.priority, spec.timeout) = (1, Some(Span::from_millis(800)))).await?;
    same!(wake_ms(harness).await?, Some(800), "a deadline");
    harness.fail(&failing).await?;
    same!(wake_ms(harness).await?, Some(1_000), "a retry, and the deadline is gone");
    harness.advance(1_000);
    harness.promote(9).await?;
    same!(wake_ms(harness).await?, Some(9_000), "the time after the retry became available");
    Ok(())
}

pub(super) async fn next_wake_forgets_what_has_ended(harness: &mut Harness<'_>) -> CaseResult {
    let expires = harness.later(5);
    for state in State::ALL {
        let job = harness.job_in(state).await?;
        if !state.is_terminal() {
            harness.cancel(job.id).await??;
        }
    }
    let done = harness.claimed_with(|spec| (spec.expires, spec.timeout) = (Some(expires), Some(Span::ZERO))).await?;
    harness.done(&done).await?;
    same!(harness.next_wake().await?, None, "a store in which store_view has ended");
    Ok(())
}

pub(super) async fn next_wake_may_lie_in_the_past(harness: &mut Harness<'_>) -> CaseResult {
    harness.claimed().await?;
    harness.advance(LEASE_MS * 3);
    same!(wake_ms(harness).await?, Some(LEASE_MS.into()), "a lease that ran out long ago");
    Ok(())
}

/// The next moment, in milliseconds since the start of the case.
async fn wake_ms(harness: &Harness<'_>) -> Result<Option<i64>, super::Violation> {
    let wake = harness.next_wake().await?;
    Ok(wake.map(|wake: Moment| (wake.micros() - START.micros()) / 1_000))
}
