//! What a store shows: lists, queues, and the next moment.

use super::bench::{Bench, LEASE_MS, QUEUE, START, held_by_token, ids, stopped};
use super::{Verified, same};
use crate::{Filter, Missing, NewJob, Page, Queue, Start, State};
use redrive_policy::{Moment, Span};

pub(super) async fn get_of_an_unknown_job_is_nothing(bench: &mut Bench<'_>) -> Verified {
    let nobody = bench.name();
    same!(bench.store().get(nobody).await?, None, "an unknown job");
    Ok(())
}

pub(super) async fn list_is_newest_first_and_in_pages(bench: &mut Bench<'_>) -> Verified {
    let mut jobs: Vec<NewJob> = (0..7).map(|_| bench.job()).collect();
    let mut names: Vec<_> = jobs.iter().map(|job| job.id).collect();
    names.reverse();
    // The order is that of the names, not of their arrival.
    jobs.swap(1, 5);
    bench.enqueue(jobs).await??;
    for (offset, limit) in [(0, 3), (3, 3), (6, 3), (7, 3), (99, 3), (0, 0), (0, usize::MAX), (usize::MAX, 1)] {
        let page = bench.page(Filter::default(), Page::new(offset, limit)).await?;
        let expected: Vec<_> = names.iter().copied().skip(offset).take(limit).collect();
        same!((ids(&page.jobs), page.total), (expected, Some(7)), "{limit} jobs from {offset}");
        same!(
            page.next.is_some(),
            offset.saturating_add(limit) < 7,
            "whether there are more after {limit} from {offset}"
        );
    }
    for (offset, limit) in [(0, 1), (0, 2), (0, 7), (2, 3), (6, 1)] {
        let walked = bench.walk(Filter::default(), Page::new(offset, limit)).await?;
        same!(ids(&walked.jobs), names[offset..], "all from {offset} on, {limit} at a time");
    }
    Ok(())
}

pub(super) async fn list_goes_on_behind_an_entry_whatever_came_and_went(bench: &mut Bench<'_>) -> Verified {
    let mut names = Vec::new();
    for _ in 0..7 {
        names.push(bench.added().await?.id);
    }
    let first = bench.page(Filter::default(), Page::new(0, 3)).await?;
    same!(ids(&first.jobs), [names[6], names[5], names[4]], "the first page");
    bench.added().await?;
    for gone in [names[4], names[2]] {
        bench.cancel(gone).await??;
        bench.store().remove(gone).await??;
    }
    let next = first.next.ok_or_else(|| super::Flaw::new("there are four jobs behind the first page"))?;
    let rest = bench.walk(Filter::default(), Page { limit: 2, ..next }).await?;
    same!(ids(&rest.jobs), [names[3], names[1], names[0]], "the rest, after the last entry of the first page is gone");
    Ok(())
}

pub(super) async fn list_of_dead_letters_begins_with_what_died_last(bench: &mut Bench<'_>) -> Verified {
    let mut held = Vec::new();
    for queue in ["a", "b", "a", "b", "a"] {
        held.push(bench.held_with(|spec| spec.queue = queue.into()).await?);
    }
    let mut died = Vec::new();
    // Two die at the same moment.
    for (place, wait) in [(3, 5), (0, 5), (4, 0), (1, 5), (2, 5)] {
        bench.pass(wait);
        let report = stopped(redrive_policy::Disposition::DeadLetter);
        died.push(bench.settle(held_by_token(&held[place])?, report).await??);
    }
    let expected = [2, 1, 4, 0, 3].map(|place| held[place].id);
    let dead = Filter { dead: Some(true), ..Filter::default() };
    for limit in [1, 2, 5, usize::MAX] {
        let walked = bench.walk(dead.clone(), Page::new(0, limit)).await?;
        same!((ids(&walked.jobs), walked.total), (expected.to_vec(), Some(5)), "dead letters, {limit} at a time");
    }
    let of_queue = Filter { queue: Some("a".into()), ..dead.clone() };
    let walked = bench.walk(of_queue, Page::new(0, 2)).await?;
    same!(
        (ids(&walked.jobs), walked.total),
        (vec![expected[0], expected[2], expected[3]], Some(3)),
        "those of a queue"
    );
    let times = Filter { finished_since: died[1].times.finished, finished_before: died[4].times.finished, ..dead };
    let walked = bench.walk(times.clone(), Page::new(0, 2)).await?;
    same!(ids(&walked.jobs), expected[1..4], "those between two times");
    let backwards = Filter { finished_since: times.finished_before, finished_before: times.finished_since, ..times };
    same!(
        bench.walk(backwards, Page::new(0, 2)).await?.jobs,
        [],
        "those between two times that are the wrong way round"
    );
    Ok(())
}

pub(super) async fn list_ends_a_page_before_it_has_too_many_bytes(bench: &mut Bench<'_>) -> Verified {
    let mut names = Vec::new();
    for length in [10, 10_000, 60_000, 10_000, 10_000, 10] {
        names.push(bench.added_with(|spec| spec.body = vec![b'x'; length].into()).await?.id);
    }
    names.reverse();
    let mut page = Page { bytes: 30_000, ..Page::new(0, 9) };
    for expected in [&names[..3], &names[3..4], &names[4..]] {
        let listed = bench.store().list(Filter::default(), page).await?;
        same!(ids(&listed.jobs), expected, "a page of at most 30 kB, or one job");
        page = listed.next.unwrap_or(page);
    }
    Ok(())
}

pub(super) async fn list_without_payloads_has_everything_else(bench: &mut Bench<'_>) -> Verified {
    let job = bench.job_in(State::Completed).await?;
    let page = Page { payloads: false, bytes: 30_000, ..Page::new(0, 9) };
    bench.added_with(|spec| spec.body = vec![b'x'; 60_000].into()).await?;
    let listed = bench.page(Filter::default(), page).await?;
    same!(listed.jobs.len(), 2, "a page on which bodies do not count");
    let mut expected = job.clone();
    expected.result = None;
    expected.spec = std::sync::Arc::new(crate::Spec { body: [].into(), ..crate::Spec::clone(&job.spec) });
    same!(listed.jobs.last(), Some(&expected), "a job without its body and its result");
    same!(bench.get(job.id).await?, job, "the same job by its name");
    Ok(())
}

pub(super) async fn list_shows_what_fits_the_filter(bench: &mut Bench<'_>) -> Verified {
    for state in State::ALL {
        bench.job_in(state).await?;
        bench.pass(10);
    }
    bench.added_with(|spec| (spec.kind, spec.queue) = ("rare".into(), "active".into())).await?;
    let all = bench.list(Filter::default()).await?.jobs;
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
        let listed = bench.list(filter.clone()).await?;
        let expected: Vec<_> = all.iter().filter(|job| filter.fits(job)).cloned().collect();
        let counted = filter.is_counted().then_some(total);
        same!((listed.jobs.len(), listed.total), (total, counted), "how many fit {filter:?}");
        same!(listed.jobs, expected, "{filter:?}");
        let page = bench.page(filter.clone(), Page::new(1, 1)).await?;
        same!((page.jobs.len(), page.total), (usize::from(total > 1), counted), "the second of {filter:?}");
    }
    Ok(())
}

pub(super) async fn queues_count_their_jobs_by_state(bench: &mut Bench<'_>) -> Verified {
    for (copies, state) in (1..).zip(State::ALL) {
        for _ in 0..copies {
            bench.job_in(state).await?;
        }
    }
    let queues = bench.store().queues().await?;
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

pub(super) async fn queues_stay_when_their_jobs_are_gone(bench: &mut Bench<'_>) -> Verified {
    let job = bench.added().await?;
    bench.pass(5);
    bench.added_with(|spec| spec.queue = "later".into()).await?;
    bench.cancel(job.id).await??;
    bench.store().remove(job.id).await??;
    let seen: Vec<_> = bench.store().queues().await?.into_iter().map(|q| (q.name, q.created, q.counts)).collect();
    let mut later = [0; 8];
    later[2] = 1;
    same!(seen, [("later".into(), bench.now(), later), (QUEUE.into(), START, [0; 8])], "name, birth and counts");
    Ok(())
}

pub(super) async fn pause_answers_the_queue_and_makes_one_where_there_is_none(bench: &mut Bench<'_>) -> Verified {
    let expected = Queue { name: "new".into(), paused: true, created: START, counts: [0; 8] };
    same!(
        bench.store().pause("new".into(), true, Missing::Create, bench.now()).await?,
        Some(expected.clone()),
        "a queue that nobody knew"
    );
    bench.pass(5);
    same!(
        bench.store().pause("new".into(), true, Missing::Create, bench.now()).await?,
        Some(expected.clone()),
        "the same queue, paused again"
    );
    bench.added_with(|spec| spec.queue = "new".into()).await?;
    let mut open = Queue { paused: false, ..expected };
    open.counts[2] = 1;
    same!(
        bench.store().pause("new".into(), false, Missing::Create, bench.now()).await?,
        Some(open.clone()),
        "the same queue with a job, opened"
    );
    let other = Queue { name: "other".into(), paused: false, created: bench.now(), counts: [0; 8] };
    same!(
        bench.store().pause("other".into(), false, Missing::Create, bench.now()).await?,
        Some(other.clone()),
        "an unknown queue, opened"
    );
    same!(bench.store().queues().await?, [open, other], "the queues");
    Ok(())
}

pub(super) async fn pause_refuses_a_queue_that_nobody_knows_where_it_shall_make_none(
    bench: &mut Bench<'_>,
) -> Verified {
    for paused in [true, false] {
        let refused = bench.store().pause("misspelt".into(), paused, Missing::Refuse, bench.now()).await?;
        same!(refused, None, "an unknown queue, paused: {paused}");
    }
    same!(bench.store().queues().await?, Vec::new(), "the queues");
    bench.added().await?;
    let known = bench.store().pause(QUEUE.into(), true, Missing::Refuse, bench.now()).await?;
    same!(known.map(|queue| (queue.paused, queue.counts[2])), Some((true, 1)), "a queue with a job");
    bench.store().pause("made".into(), true, Missing::Create, bench.now()).await?;
    let made = bench.store().pause("made".into(), false, Missing::Refuse, bench.now()).await?;
    same!(made.map(|queue| queue.paused), Some(false), "a queue that a pause has made");
    Ok(())
}

pub(super) async fn pause_does_not_stop_running_jobs(bench: &mut Bench<'_>) -> Verified {
    let held = bench.held().await?;
    bench.store().pause(QUEUE.into(), true, Missing::Create, bench.now()).await?;
    bench.extend(held_by_token(&held)?, None).await??;
    same!(bench.done(&held).await?.state, State::Completed, "a job whose queue was paused meanwhile");
    Ok(())
}

pub(super) async fn next_wake_is_the_earliest_of_all_times(bench: &mut Bench<'_>) -> Verified {
    same!(bench.next_wake().await?, None, "an empty store");
    bench.added().await?;
    same!(bench.next_wake().await?, None, "a job that waits for a worker only");
    // Each step puts an earlier time in front of the ones before it.
    let due = |ms| Start::Scheduled(START.after(Span::from_millis(ms)));
    let new = bench.job();
    bench.add(NewJob { start: due(90_000), ..new }).await?;
    same!(wake_ms(bench).await?, Some(90_000), "a scheduled job");
    bench.claim(1).await?;
    same!(wake_ms(bench).await?, Some(LEASE_MS.into()), "a lease");
    let expires = bench.later(9_000);
    bench.added_with(|spec| spec.expires = Some(expires)).await?;
    same!(wake_ms(bench).await?, Some(9_000), "a job that expires");
    let failing = bench.held_with(|spec| (spec.priority, spec.timeout) = (1, Some(Span::from_millis(800)))).await?;
    same!(wake_ms(bench).await?, Some(800), "a deadline");
    bench.fail(&failing).await?;
    same!(wake_ms(bench).await?, Some(1_000), "a retry, and the deadline is gone");
    bench.pass(1_000);
    bench.promote(9).await?;
    same!(wake_ms(bench).await?, Some(9_000), "the time after the retry became available");
    Ok(())
}

pub(super) async fn next_wake_forgets_what_has_ended(bench: &mut Bench<'_>) -> Verified {
    let expires = bench.later(5);
    for state in State::ALL {
        let job = bench.job_in(state).await?;
        if !state.is_terminal() {
            bench.cancel(job.id).await??;
        }
    }
    let done = bench.held_with(|spec| (spec.expires, spec.timeout) = (Some(expires), Some(Span::ZERO))).await?;
    bench.done(&done).await?;
    same!(bench.next_wake().await?, None, "a store in which everything has ended");
    Ok(())
}

pub(super) async fn next_wake_may_be_past(bench: &mut Bench<'_>) -> Verified {
    bench.held().await?;
    bench.pass(LEASE_MS * 3);
    same!(wake_ms(bench).await?, Some(LEASE_MS.into()), "a lease that ran out long ago");
    Ok(())
}

/// The next moment, in milliseconds since the start of the case.
async fn wake_ms(bench: &Bench<'_>) -> Result<Option<i64>, super::Flaw> {
    let wake = bench.next_wake().await?;
    Ok(wake.map(|wake: Moment| (wake.micros() - START.micros()) / 1_000))
}
