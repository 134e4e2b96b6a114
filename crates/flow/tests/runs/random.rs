//! Flows made at random.

use crate::harness::{FINALLY, LOOP, MOCK, RETRY, TIMEOUT, done};
use crate::world::{Tried, job, worker};
use fastrand::Rng;
use serde_json::{Value, json};

fn call(rng: &mut Rng, depth: usize) -> Value {
    match rng.u32(..if depth > 0 { 8 } else { 6 }) {
        0 => json!({ "provider": MOCK, "with": { "value": 1, "delay": format!("PT{}S", rng.u32(..6)) } }),
        1 => json!({ "provider": MOCK, "with": { "failure": { "code": "A.Failed" } } }),
        2 => job("fails"),
        3 => job("fails.once"),
        4 | 5 => job("sometimes"),
        _ => json!({ "flow": steps(rng, depth - 1) }),
    }
}

fn entry(rng: &mut Rng) -> Value {
    match rng.u32(..4) {
        0 => {
            let jitter = ["none", "full", "equal", "decorrelated"][rng.usize(..4)];
            let code = ["*", "A.*", "Boom"][rng.usize(..3)];
            let policy = json!({
                "match": { "codes": [code] }, "attempts": rng.u32(1..4),
                "backoff": { "initial": "PT2S", "rate": 2, "jitter": jitter },
            });
            json!({ "provider": RETRY, "onEntry": { "with": { "policies": [policy] } } })
        }
        1 => json!({ "provider": TIMEOUT, "onEntry": { "with": { "duration": format!("PT{}S", rng.u32(1..8)) } } }),
        2 => json!({
            "provider": LOOP,
            "onSuccess": { "when": format!("{{{{ middleware.metadata.iteration < {} }}}}", rng.u32(1..3)) },
        }),
        _ => {
            let cleanup = if rng.bool() { job("cleanup") } else { call(rng, 0) };
            json!({ "provider": FINALLY, "onAlways": { "with": { "call": cleanup } } })
        }
    }
}

fn step(rng: &mut Rng, next: &str, depth: usize) -> Value {
    let catch = json!([{ "match": { "codes": ["*"] }, "next": next }]);
    let mut step = match rng.u32(..6) {
        0 => return json!({ "action": "Sleep", "for": format!("PT{}S", rng.u32(..5)), "next": next }),
        1 => {
            let calls: Vec<Value> = (0..rng.usize(1..4)).map(|_| call(rng, depth)).collect();
            let completion = json!({ "successes": rng.usize(..=calls.len()), "wait": rng.bool() });
            json!({ "action": "Gather", "calls": calls, "completion": completion, "next": next })
        }
        _ => {
            let middleware: Vec<Value> = (0..rng.usize(..4)).map(|_| entry(rng)).collect();
            json!({ "action": "Call", "middleware": middleware, "call": call(rng, depth), "next": next })
        }
    };
    if rng.bool() {
        step["catch"] = catch;
    }
    step
}

fn steps(rng: &mut Rng, depth: usize) -> Value {
    let middleware: Vec<Value> = (0..rng.usize(..3)).map(|_| entry(rng)).collect();
    let (first, second) = (step(rng, "second", depth), step(rng, "done", depth));
    json!({
        "entrypoint": "first", "middleware": middleware,
        "steps": { "first": first, "second": second, "done": done() },
    })
}

#[tokio::test]
async fn flows_made_at_random_end_alike_whatever_is_interrupted() {
    let (mut kinds, mut jobs, mut cleanups) = ([0_usize; 3], 0, 0);
    for seed in 0..60 {
        let rng = &mut Rng::with_seed(seed);
        let mut definition = steps(rng, 2);
        definition["$schema"] = "https://mwl.dev/v0.1/flow/schema.json".into();
        eprintln!("seed {seed}: {definition}");
        let mut tried = Tried::new(definition).worker(worker);
        tried.cancelled_after = rng.bool().then(|| rng.u32(..6));
        let ended = tried.check().await;
        let kind = ["success", "error", "cancellation"].iter().position(|kind| ended.result["type"] == *kind);
        kinds[kind.unwrap_or(1)] += 1;
        jobs += ended.jobs.len();
        cleanups += ended.jobs_of("cleanup").len();
    }
    assert!(kinds.iter().all(|count| *count > 3), "the flows cover little: {kinds:?}");
    assert!(jobs > 100 && cleanups > 10, "the flows have few jobs: {jobs}, {cleanups} of them cleanups");
}
