//! What is true whenever nothing is under way: queues count what is in them, and nobody waits in vain.

use super::Violation;
use crate::common::wrapped::in_place;
use crate::ledger::short;
use crate::world::World;
use redrive_store::{Filter, Job, Page, Queue, State, Store};
use std::collections::BTreeMap;
use std::rc::Rc;

const ALL: Page = Page::new(0, usize::MAX);

/// Looks at the store itself, without any fault in between.
pub(crate) fn at_rest(world: &World, store: &dyn Store) {
    let listed = in_place(store.list(Filter::default(), ALL)).expect("the store works");
    let queues = in_place(store.queues()).expect("the store works");
    let jobs: Vec<Rc<Job>> = listed.jobs.into_iter().map(Rc::new).collect();
    let mut violations = recount(&jobs, &queues);
    violations.extend(in_vain(world, &jobs, &queues));
    violations.extend(held_back(world, &jobs, &queues));
    world.ledger.borrow_mut().violations.append(&mut violations);
}

/// Compares the counts of the queues with the jobs themselves.
pub(super) fn recount(jobs: &[Rc<Job>], queues: &[Queue]) -> Vec<Violation> {
    let mut counted: BTreeMap<(&str, State), usize> = BTreeMap::new();
    for job in jobs {
        *counted.entry((&*job.spec.queue, job.state)).or_default() += 1;
    }
    let mut violations = Vec::new();
    let mut violation = |message| violations.push(Violation { check: "counts", message, account: None });
    for queue in queues {
        for state in State::ALL {
            let (stated, counted) = (queue.count(state), counted.remove(&(&*queue.name, state)).unwrap_or(0));
            if stated != counted {
                violation(format!("queue {} says {stated} {state}, and there are {counted}", queue.name));
            }
        }
    }
    for ((queue, state), count) in counted {
        violation(format!("{count} jobs are {state} in {queue}, which is no queue"));
    }
    violations
}

/// What is due and yet waits, although its queue is open and a sweep has just been.
fn held_back(world: &World, jobs: &[Rc<Job>], queues: &[Queue]) -> Vec<Violation> {
    let open = |name: &str| queues.iter().any(|queue| *queue.name == *name && !queue.paused);
    let late = jobs.iter().filter(|job| job.due.is_some_and(|due| due <= world.now()) && open(&job.spec.queue));
    late.map(|job| Violation {
        check: "at rest",
        message: format!("due, and held back: {}", short(job)),
        account: None,
    })
    .collect()
}

/// Claims that wait although there is a job for them. Where an answer got lost meanwhile the engine
/// may not know of the job, and the claim finds it when it asks again.
fn in_vain(world: &World, jobs: &[Rc<Job>], queues: &[Queue]) -> Vec<Violation> {
    let ledger = world.ledger.borrow();
    let mut violations = Vec::new();
    for waiting in world.waiting.borrow().iter().flatten() {
        let open = |name: &str| queues.iter().any(|queue| *queue.name == *name && !queue.paused);
        let job = jobs.iter().find(|job| {
            let queue = &*job.spec.queue;
            // Where the clock steps back, a job that had expired can be had again without a signal.
            job.state == State::Available
                && job.spec.expires.is_none()
                && waiting.queues.contains(&queue)
                && open(queue)
        });
        if let Some(job) = job.filter(|_| waiting.lost_before == ledger.lost) {
            let message = format!("a claim waits since {} in {:?} beside {}", waiting.from, waiting.queues, job.id);
            violations.push(Violation { check: "woken", message, account: None });
        }
    }
    violations
}
