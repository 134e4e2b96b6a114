//! Flows made at random, from a seed. All of them end.

use crate::harness::{FINALLY, LOOP, MOCK, RETRY, TIMEOUT};
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A flow, and when it is cancelled.
pub(crate) struct Made {
    pub(crate) definition: Value,
    pub(crate) cancelled_after: Option<i64>,
    /// Whether a delay of it is drawn.
    pub(crate) draws: bool,
}

pub(crate) fn flow(seed: u64) -> Made {
    let mut maker = Maker { rng: Rng::with_seed(seed), draws: false };
    let mut definition = maker.flow(0);
    definition["$schema"] = json!("https://mwl.dev/v0.1/flow/schema.json");
    let cancelled_after = maker.sometimes(3).then(|| maker.rng.i64(0..20_000));
    Made { definition, cancelled_after, draws: maker.draws }
}

struct Maker {
    rng: Rng,
    draws: bool,
}

const CODES: [&str; 4] = ["A.B", "A.C", "B.A", "C"];

impl Maker {
    /// True once in so many times.
    fn sometimes(&mut self, times: u32) -> bool {
        self.rng.u32(0..times) == 0
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.rng.usize(0..all.len())].clone()
    }

    fn seconds(&mut self, most: u32) -> String {
        format!("PT{}.{}S", self.rng.u32(0..=most), self.rng.u32(0..10))
    }

    /// Steps in a line, some of which leave some out. Failures are caught here and there.
    fn flow(&mut self, depth: u32) -> Value {
        let count = self.rng.usize(1..=4 - depth.min(2) as usize);
        let mut steps = Map::new();
        for at in 0..count {
            let step = self.step(at, count, depth);
            steps.insert(name(at, count), step);
        }
        steps.insert("end".to_owned(), json!({ "action": "Return", "value": "{{ [step.input, vars.log, vars.n] }}" }));
        let mut flow = json!({
            "entrypoint": name(0, count), "steps": steps,
            "parameters": { "type": "object", "properties": { "n": { "default": 0 }, "log": { "default": "" } } },
        });
        if self.sometimes(2) {
            flow["middleware"] = self.stack(depth);
        }
        flow
    }

    fn step(&mut self, at: usize, count: usize, depth: u32) -> Value {
        let next = self.rng.usize(at + 1..=count);
        let next = json!(name(next, count));
        let log = format!("{{{{ vars.log + '{at}' }}}}");
        match self.rng.u32(0..10) {
            0 => json!({ "action": "Pass", "assign": { "log": log }, "next": next }),
            1 => json!({ "action": "Sleep", "for": self.seconds(4), "next": next }),
            2 => json!({
                "action": "Match", "cases": [{ "when": "{{ size(vars.log) > 2 }}", "next": "end" }],
                "default": { "next": next, "assign": { "log": log } },
            }),
            3 if self.sometimes(3) => {
                json!({ "action": "Raise", "result": { "code": self.one_of(&CODES), "details": "{{ vars.log }}" } })
            }
            4 | 5 if depth < 2 => {
                let calls: Vec<Value> = (0..self.rng.usize(1..=3)).map(|_| self.call(depth + 1)).collect();
                let mut step = json!({ "action": "Gather", "calls": calls, "next": next, "assign": { "log": log } });
                if self.sometimes(2) {
                    step["completion"] = json!({ "successes": self.rng.usize(0..=2), "wait": true });
                    if self.rng.bool() {
                        step["completion"]["wait"] = json!(false);
                    }
                }
                if self.sometimes(3) {
                    step["concurrency"] = json!(self.rng.usize(1..=2));
                }
                self.caught(step)
            }
            _ => {
                let middleware = if self.sometimes(3) { json!([]) } else { self.stack(depth) };
                let step = json!({
                    "action": "Call", "call": self.call(depth + 1), "middleware": middleware, "next": next,
                    "assign": { "log": log },
                });
                self.caught(step)
            }
        }
    }

    fn caught(&mut self, mut step: Value) -> Value {
        if self.sometimes(2) {
            step["catch"] = json!([{
                "match": { "codes": [self.one_of(&["*", "A.*", "System.*", "Provider.*"])] }, "next": "end",
                "assign": { "log": "{{ vars.log + failure.code }}" },
            }]);
        }
        step
    }

    fn call(&mut self, depth: u32) -> Value {
        if depth < 3 && self.sometimes(3) {
            return json!({ "flow": self.flow(depth) });
        }
        let mut with = json!({ "delay": if self.rng.bool() { "PT0S".to_owned() } else { self.seconds(3) } });
        let failure = |code: &str| format!("{{'code': '{code}', 'details': vars.log}}");
        let code = self.one_of(&CODES);
        match self.rng.u32(0..4) {
            0 => with["failure"] = json!({ "code": code, "retryable": self.one_of(&[Some(true), Some(false), None]) }),
            1 | 2 => with["failure"] = json!(format!("{{{{ vars.n < 2.0 ? {} : null }}}}", failure(code))),
            _ => {}
        }
        let arm = |name: &str| json!({ "assign": { "log": format!("{{{{ vars.log + '{name}' }}}}") } });
        json!({ "provider": MOCK, "with": with, "onSuccess": arm("s"), "onFailure": arm("f") })
    }

    fn stack(&mut self, depth: u32) -> Value {
        (0..self.rng.usize(1..=3)).map(|_| self.entry(depth)).collect()
    }

    fn entry(&mut self, depth: u32) -> Value {
        match self.rng.u32(0..7) {
            0..=2 => self.retry(),
            3 => json!({ "provider": TIMEOUT, "onEntry": { "with": { "duration": self.seconds(9) } } }),
            4 => json!({
                "provider": LOOP,
                "onSuccess": { "when": "{{ middleware.metadata.iteration < 3.0 }}", "assign": { "log": "{{ vars.log + 'l' }}" } },
            }),
            _ => {
                let mut with = json!({ "call": self.call(depth + 3) });
                if self.sometimes(4) {
                    with["middleware"] = json!([self.retry()]);
                }
                json!({ "provider": FINALLY, "onAlways": { "with": with, "assign": { "log": "{{ vars.log + 'c' }}" } } })
            }
        }
    }

    fn retry(&mut self) -> Value {
        let policies: Vec<Value> = (0..self.rng.usize(1..=2)).map(|_| self.policy()).collect();
        let mut entry = json!({
            "provider": RETRY, "onEntry": { "with": { "policies": policies } },
            "onFailure": { "assign": { "n": "{{ vars.n + 1.0 }}", "log": "{{ vars.log + 'r' }}" } },
        });
        if self.sometimes(4) {
            entry["onFailure"]["with"] = json!({ "delay": self.seconds(2) });
        }
        if self.sometimes(6) {
            entry["onEntry"]["when"] = json!("{{ size(vars.log) > 0 }}");
        }
        entry
    }

    fn policy(&mut self) -> Value {
        let mut policy = json!({
            "match": { "codes": [self.one_of(&["*", "A.*", "A.B", "B.*", "Provider.*"])] }, "attempts": self.rng.u32(1..=3),
        });
        if self.sometimes(2) {
            let jitter = self.one_of(&["none", "none", "full", "equal", "decorrelated"]);
            self.draws |= jitter != "none";
            policy["backoff"] = json!({ "initial": self.seconds(3), "rate": 2, "max": "PT5S", "jitter": jitter });
        }
        policy
    }
}

fn name(at: usize, count: usize) -> String {
    if at == count { "end".to_owned() } else { format!("s{at}") }
}
