//! Limits that operators set, and how groups stand.

use super::harness::{Harness, QUEUE, ids};
use super::{CaseResult, Violation, ensure, same};
use crate::{Bounds, Full, Group, Job, Limits, Missing, Rate, Setting, Spec};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

fn concurrency(most: u32) -> Bounds {
    Bounds { concurrency: Some(most), ..Bounds::default() }
}

fn rate(limit: u32, ms: u32) -> Bounds {
    Bounds { rate: Some(Rate { limit, period: Span::from_millis(ms) }), ..Bounds::default() }
}

fn queue() -> Group {
    Group::Queue(QUEUE.into())
}

async fn set(harness: &Harness<'_>, group: Group, bounds: Bounds, until: Option<Moment>) -> CaseResult {
    let setting = Setting { bounds, until, ..Setting::default() };
    Ok(harness.store.set_limit(group, Some(setting), harness.now).await?)
}

async fn jobs(harness: &mut Harness<'_>, count: usize, limits: Option<Limits>) -> Result<Vec<Job>, Violation> {
    let limits = limits.map(Arc::new);
    let mut jobs = Vec::new();
    for _ in 0..count {
        jobs.push(harness.enqueue_with(|spec: &mut Spec| spec.limits.clone_from(&limits)).await?);
    }
    Ok(jobs)
}

pub(super) async fn limit_of_a_queue_holds_all_its_jobs(harness: &mut Harness<'_>) -> CaseResult {
    let plain = jobs(harness, 2, None).await?;
    let keyed = jobs(harness, 2, Some(Limits::own("api", concurrency(9)))).await?;
    set(harness, queue(), concurrency(3), None).await?;
    let claimed = harness.claim(9).await?;
    same!(ids(&claimed), [plain[0].id, plain[1].id, keyed[0].id], "as many as may be active in the queue");
    let full = vec![Full { group: queue(), opens: None }];
    same!(harness.claim_whole(9).await?.full, full, "the group that is full");
    harness.done(&claimed[0]).await?;
    same!(ids(&harness.claim(9).await?), [keyed[1].id], "the next");
    Ok(())
}

pub(super) async fn limit_of_a_queue_leaves_other_queues(harness: &mut Harness<'_>) -> CaseResult {
    set(harness, queue(), rate(1, 1_000), None).await?;
    let mine = jobs(harness, 2, None).await?;
    let other = harness.enqueue_with(|spec| spec.queue = "other".into()).await?;
    let claimed = harness.claim_with(harness.claim_request(&[QUEUE, "other"], 9)).await?;
    same!(ids(&claimed), [mine[0].id, other.id], "one of the queue, and the other");
    harness.advance(1_000);
    same!(ids(&harness.claim(9).await?), [mine[1].id], "a second later");
    Ok(())
}

pub(super) async fn limit_of_a_type_holds_jobs_that_were_enqueued_under_it(harness: &mut Harness<'_>) -> CaseResult {
    let by_kind = Limits { own: None, by_kind: true };
    let group = Group::Kind("work".into());
    set(harness, group.clone(), concurrency(1), None).await?;
    let before = jobs(harness, 1, None).await?;
    let limited = jobs(harness, 2, Some(by_kind.clone())).await?;
    let other = harness.enqueue_with(|spec| {
        spec.kind = "other".into();
        spec.limits = Some(Arc::new(by_kind));
    });
    let other = other.await?;
    same!(ids(&harness.claim(9).await?), [before[0].id, limited[0].id, other.id], "one of the type, and others");
    harness.store.set_limit(group, None, harness.now).await?;
    same!(ids(&harness.claim(9).await?), [limited[1].id], "once the limit is removed");
    Ok(())
}

pub(super) async fn limit_that_is_set_replaces_what_jobs_bring(harness: &mut Harness<'_>) -> CaseResult {
    let group = Group::Key("api".into());
    let all = jobs(harness, 4, Some(Limits::own("api", concurrency(2)))).await?;
    let until = harness.later(1_000);
    set(harness, group.clone(), concurrency(0), Some(until)).await?;
    let full = vec![Full { group: group.clone(), opens: Some(until) }];
    same!(harness.claim_whole(9).await?.full, full, "a group that is held for a second");
    harness.advance_to(until);
    same!(ids(&harness.claim(9).await?), [all[0].id, all[1].id], "after it");
    set(harness, group, concurrency(3), None).await?;
    same!(ids(&harness.claim(9).await?), [all[2].id], "with a larger limit");
    Ok(())
}

pub(super) async fn limit_of_every_group_must_be_satisfied(harness: &mut Harness<'_>) -> CaseResult {
    set(harness, queue(), concurrency(3), None).await?;
    set(harness, Group::Kind("work".into()), rate(2, 1_000), None).await?;
    let mut limits = Limits::own("api", concurrency(1));
    limits.by_kind = true;
    let all = jobs(harness, 3, Some(limits)).await?;
    let first = harness.claim(9).await?;
    same!(ids(&first), [all[0].id], "one of the key");
    harness.done(&first[0]).await?;
    let second = harness.claim(9).await?;
    same!(ids(&second), [all[1].id], "the second of the type");
    harness.done(&second[0]).await?;
    same!(harness.claim(9).await?, [], "no third of the type within the period");
    harness.advance(1_000);
    same!(ids(&harness.claim(9).await?), [all[2].id], "after it");
    Ok(())
}

pub(super) async fn limit_group_that_is_held_opens_at_its_time(harness: &mut Harness<'_>) -> CaseResult {
    let all = jobs(harness, 1, Some(Limits::own("api", concurrency(5)))).await?;
    let group = Group::Key("api".into());
    let until = harness.later(700);
    harness.store.hold_group(group.clone(), until, harness.now).await?;
    harness.restart();
    same!(harness.claim_whole(9).await?.full, vec![Full { group, opens: Some(until) }], "while it is held");
    harness.advance_to(until);
    same!(ids(&harness.claim(9).await?), [all[0].id], "when that is over");
    Ok(())
}

pub(super) async fn limit_settings_survive_a_restart(harness: &mut Harness<'_>) -> CaseResult {
    let throttle = Some(Rate { limit: 1, period: Span::from_secs(2) });
    let whole = Setting {
        bounds: Bounds { throttle, ..Bounds { concurrency: Some(7), ..rate(3, 500) } },
        until: Some(harness.later(5_000)),
        depth: Some(12),
        text: Arc::from(*b"{}"),
    };
    let groups = [Group::Key("k\0".into()), queue(), Group::Kind("kind".into())];
    for group in &groups {
        harness.store.set_limit(group.clone(), Some(whole.clone()), harness.now).await?;
    }
    harness.restart();
    let expected: Vec<_> = groups.iter().map(|group| (group.clone(), whole.clone())).collect();
    same!(harness.store.settings().await?, expected, "what is set");
    harness.store.set_limit(queue(), None, harness.now).await?;
    harness.restart();
    same!(harness.store.settings().await?, [expected[0].clone(), expected[2].clone()], "what is left");
    Ok(())
}

pub(super) async fn limit_that_is_set_keeps_its_queue(harness: &mut Harness<'_>) -> CaseResult {
    set(harness, queue(), concurrency(1), None).await?;
    let names = |queues: Vec<crate::Queue>| queues.into_iter().map(|queue| queue.name).collect::<Vec<_>>();
    same!(names(harness.store.queues().await?), [QUEUE.into()], "the queues");
    harness.advance(9_000);
    same!(harness.store.prune_queues(Span::ZERO, harness.now).await?, [], "what is pruned");
    harness.store.pause("idle".into(), false, Missing::Create, harness.now).await?;
    ensure!(harness.store.forget_queue(QUEUE.into()).await?.is_ok(), "a queue without jobs is removed on request");
    same!(harness.store.settings().await?, [], "what is set after that");
    Ok(())
}

pub(super) async fn limit_standings_count_what_waits_and_what_runs(harness: &mut Harness<'_>) -> CaseResult {
    let group = Group::Key("api".into());
    same!(harness.store.standings(None, harness.now).await?, [], "the groups of an empty store");
    let bounds = Bounds { concurrency: Some(2), ..rate(5, 1_000) };
    jobs(harness, 3, Some(Limits::own("api", bounds))).await?;
    let claimed = harness.claim(9).await?;
    let standing = harness.store.standings(Some(group.clone()), harness.now).await?;
    same!(harness.store.standings(None, harness.now).await?, standing, "all groups");
    let [standing] = &standing[..] else { return Err(Violation::new(format!("one group, not {standing:?}"))) };
    same!((standing.active, standing.waiting, standing.started), (2, 1, 2), "active, waiting and started");
    same!((standing.bounds, standing.opens, standing.held), (bounds, None, None), "its limits");
    harness.done(&claimed[0]).await?;
    set(harness, queue(), concurrency(8), None).await?;
    let all = harness.store.standings(None, harness.now).await?;
    let counts: Vec<_> = all.iter().map(|of| (of.group.clone(), of.active, of.waiting)).collect();
    same!(counts, [(group, 1, 1), (queue(), 1, 1)], "the key and the queue");
    Ok(())
}
