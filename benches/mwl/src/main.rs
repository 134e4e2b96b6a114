//! Runs of flows in memory, without effects: prints a line of JSON for each flow. With PORT and CONNECTIONS, it starts
//! runs on a server instead.

mod load;

use redrive_flow::{Definition, Effect, Message, Start, State, TRANSITIONS};
use redrive_policy::{Draw, Moment};
use serde_json::{Map, Value, json};
use std::time::Instant;

const SCHEMA: &str = "https://mwl.dev/v0.1/flow/schema.json";
const NOW: Moment = Moment::from_micros(1_767_225_600_000_000);
const STEPS: usize = 1_000;
const RUNS: usize = 51;

fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    match arguments[..] {
        [] => in_memory(),
        [port, connections] => load::run(u16::try_from(port).expect("a port"), connections),
        _ => eprintln!("usage: redrive-benches-mwl [PORT CONNECTIONS]"),
    }
}

fn in_memory() {
    for (name, says, definition) in [
        ("pass", "1,000 Pass steps", chain(|_| json!({ "action": "Pass" }))),
        (
            "assign",
            "1,000 Pass steps, each with an expression",
            chain(|_| {
                json!({
                    "action": "Pass", "assign": { "n": "{{ vars.n + 1.0 }}" }, "output": "{{ step.input }}",
                })
            }),
        ),
        (
            "call",
            "1,000 calls of mock",
            chain(|_| {
                json!({
                    "action": "Call",
                    "call": { "provider": "mwl:provider.call/mwl/mock/v1", "with": { "value": "{{ vars.n }}" } },
                })
            }),
        ),
        (
            "loop",
            "1,000 iterations of a Loop around a flow of one step",
            around(
                json!({
                    "provider": "mwl:provider.middleware/mwl/loop/v1",
                    "onSuccess": { "when": "{{ middleware.metadata.iteration < 1000 }}" },
                }),
                json!({}),
            ),
        ),
        (
            "retry",
            "1,000 attempts of a Retry without delays",
            around(
                json!({
                    "provider": "mwl:provider.middleware/mwl/retry/v1",
                    "onEntry": { "with": { "policies": [{ "match": { "codes": ["*"] }, "attempts": 1000 }] } },
                    "onFailure": { "assign": { "n": "{{ vars.n + 1.0 }}" } },
                }),
                json!({ "code": "A.B" }),
            ),
        ),
        ("gather", "a Gather with 1,000 dispatches", gather()),
    ] {
        measure(name, says, &definition);
    }
}

fn flow(steps: Value, first: &str) -> Value {
    json!({
        "$schema": SCHEMA, "entrypoint": first, "steps": steps,
        "parameters": { "type": "object", "properties": { "n": { "default": 0 } } },
    })
}

fn chain(step: impl Fn(usize) -> Value) -> Value {
    let mut steps = Map::new();
    for at in 0..STEPS {
        let mut step = step(at);
        step["next"] = if at + 1 == STEPS { json!("end") } else { json!(format!("s{}", at + 1)) };
        steps.insert(format!("s{at}"), step);
    }
    steps.insert("end".to_owned(), json!({ "action": "Return" }));
    flow(steps.into(), "s0")
}

fn around(entry: Value, failure: Value) -> Value {
    let with = if failure == json!({}) { json!({}) } else { json!({ "failure": failure }) };
    let inner = json!({ "entrypoint": "in", "steps": {
        "in": { "action": "Call", "call": { "provider": "mwl:provider.call/mwl/mock/v1", "with": with }, "next": "end" },
        "end": { "action": "Return" },
    } });
    let first = json!({ "action": "Call", "middleware": [entry], "call": { "flow": inner }, "next": "end" });
    flow(json!({ "first": first, "end": { "action": "Return" } }), "first")
}

fn gather() -> Value {
    let over: Vec<usize> = (0..STEPS).collect();
    let call = json!({ "provider": "mwl:provider.call/mwl/mock/v1" });
    let first = json!({ "action": "Gather", "over": over, "call": call, "next": "end" });
    flow(json!({ "first": first, "end": { "action": "Return" } }), "first")
}

fn measure(name: &str, says: &str, definition: &Value) {
    let text = definition.to_string();
    let begun = Instant::now();
    let definition = Definition::read(&text).expect("a valid definition");
    let read_ms = begun.elapsed().as_secs_f64() * 1e3;
    let start = || {
        let start = Start { id: "e".to_owned(), input: json!({ "order": 17 }), arguments: json!({}) };
        definition.start(start, NOW).expect("a state")
    };
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let state = start();
            let begun = Instant::now();
            to_the_end(&definition, state);
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let bytes = serde_json::to_vec(&start()).expect("a state is JSON").len();
    let (median, slowest) = (times[RUNS / 2], times[RUNS - 1]);
    println!(
        "{}",
        json!({
            "flow": name, "says": says, "runs": RUNS, "median_ms": rounded(median), "slowest_ms": rounded(slowest),
            "read_ms": rounded(read_ms), "state_bytes": bytes,
        })
    );
}

pub(crate) fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

fn to_the_end(definition: &Definition, mut state: State) {
    loop {
        let stepped = definition.step(state, Message::Continue, NOW, Draw::LOWEST, TRANSITIONS).expect("a step");
        match stepped.1.as_slice() {
            [Effect::Finish(_)] => return,
            [Effect::Timer(_)] => state = stepped.0,
            other => panic!("it waits for nothing: {other:?}"),
        }
    }
}
