//! Runs definitions to their end on a clock that jumps. Each run is made twice: in long steps, and with the state
//! written and read again after every single transition. Both must end alike.

#![allow(clippy::expect_used, clippy::panic, dead_code)]

use redrive_flow::{Definition, Effect, Message, Start, State, TRANSITIONS};
use redrive_policy::{Draw, Moment};
use serde_json::{Value, json};

pub(crate) const RETRY: &str = "mwl:provider.middleware/mwl/retry/v1";
pub(crate) const TIMEOUT: &str = "mwl:provider.middleware/mwl/timeout/v1";
pub(crate) const LOOP: &str = "mwl:provider.middleware/mwl/loop/v1";
pub(crate) const FINALLY: &str = "mwl:provider.middleware/mwl/finally/v1";
pub(crate) const MOCK: &str = "mwl:provider.call/mwl/mock/v1";

/// 2026-01-01T00:00:00Z
pub(crate) const START: Moment = Moment::from_micros(1_767_225_600_000_000);

/// How a run ended, and when it waited for what.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) result: Value,
    /// The lengths of its waits, in milliseconds.
    pub(crate) waits: Vec<f64>,
}

impl Ran {
    pub(crate) fn value(&self) -> &Value {
        assert_eq!(self.result["type"], "success", "{}", self.result);
        &self.result["value"]
    }

    pub(crate) fn code(&self) -> &str {
        self.result["code"].as_str().unwrap_or_else(|| panic!("no failure: {}", self.result))
    }
}

/// A run that is being prepared.
#[derive(Clone)]
pub(crate) struct Flow {
    pub(crate) definition: Value,
    pub(crate) input: Value,
    pub(crate) arguments: Value,
    pub(crate) draw: f64,
    /// Cancelled after so many milliseconds.
    pub(crate) cancelled_after: Option<i64>,
}

/// A flow of these steps, from the step `first`.
pub(crate) fn flow(steps: Value) -> Flow {
    let definition = json!({
        "$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "first", "steps": steps,
    });
    Flow { definition, input: Value::Null, arguments: json!({}), draw: 0.5, cancelled_after: None }
}

impl Flow {
    pub(crate) fn with(mut self, member: &str, value: Value) -> Self {
        self.definition[member] = value;
        self
    }

    pub(crate) fn vars(self, defaults: Value) -> Self {
        let properties: serde_json::Map<String, Value> = defaults
            .as_object()
            .expect("an object")
            .iter()
            .map(|(name, default)| (name.clone(), json!({ "default": default })))
            .collect();
        self.with("parameters", json!({ "type": "object", "properties": properties }))
    }

    pub(crate) fn input(mut self, input: Value) -> Self {
        self.input = input;
        self
    }

    pub(crate) fn draw(mut self, draw: f64) -> Self {
        self.draw = draw;
        self
    }

    pub(crate) fn cancelled_after(mut self, ms: i64) -> Self {
        self.cancelled_after = Some(ms);
        self
    }

    pub(crate) fn run(&self) -> Ran {
        let text = self.definition.to_string();
        let definition = Definition::read(&text).unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
        let whole = self.to_the_end(&definition, TRANSITIONS, false);
        let interrupted = self.to_the_end(&definition, 1, true);
        assert_eq!(whole, interrupted, "the run that was interrupted ends otherwise: {text}");
        whole
    }

    fn to_the_end(&self, definition: &Definition, transitions: usize, stored: bool) -> Ran {
        let draw = Draw::try_from(self.draw).expect("a draw");
        let start = Start { id: "e".to_owned(), input: self.input.clone(), arguments: self.arguments.clone() };
        let mut state = definition.start(start, START).expect("a state");
        let (mut now, mut waits) = (START, Vec::new());
        let mut cancel = self.cancelled_after.map(|ms| Moment::from_micros(START.micros() + ms * 1_000));
        for _ in 0..200_000 {
            if stored {
                let text = serde_json::to_string(&state).expect("a state can be written");
                let read: State = serde_json::from_str(&text).expect("a state can be read");
                assert_eq!(read, state, "a state that was stored is another");
                state = read;
            }
            let message = if cancel.take_if(|at| *at <= now).is_some() { Message::Cancel } else { Message::Continue };
            let (next, effects) =
                definition.step(state, message, now, draw, transitions).unwrap_or_else(|error| panic!("{error}"));
            state = next;
            match effects.as_slice() {
                [Effect::Finish(result)] => return Ran { result: result.to_value(), waits },
                [Effect::Timer(at)] => {
                    let at = cancel.map_or(*at, |cancel| cancel.min(*at)).max(now);
                    if at > now {
                        waits.push(at.since(now).ms());
                    }
                    now = at;
                }
                other => panic!("the flow waits for nothing: {other:?}"),
            }
        }
        panic!("the flow does not end");
    }
}

/// A Call step with middleware around a mock.
pub(crate) fn call(middleware: Value, with: Value) -> Value {
    json!({ "action": "Call", "middleware": middleware, "call": { "provider": MOCK, "with": with }, "next": "done" })
}

pub(crate) fn done() -> Value {
    json!({ "action": "Return" })
}

/// A step under middleware, and its Result as the Result of the flow.
pub(crate) fn around(middleware: Value, with: Value) -> Flow {
    flow(json!({ "first": call(middleware, with), "done": done() }))
}

pub(crate) const EXHAUSTED: &str = "Provider.Middleware.Retry.Exhausted";

pub(crate) fn policy(codes: &[&str], attempts: u32) -> Value {
    json!({ "match": { "codes": codes }, "attempts": attempts })
}

pub(crate) fn retry(policies: Value, on_failure: Value) -> Value {
    json!({ "provider": RETRY, "onEntry": { "with": { "policies": policies } }, "onFailure": on_failure })
}

/// Fails with each of these codes in turn, and then succeeds. The carry counts in `tries`.
pub(crate) fn failing_with(codes: &[&str], policies: Value) -> Flow {
    let failing = "{{ size(vars.tries) < size(vars.codes) ? {'code': vars.codes[size(vars.tries)]} : null }}";
    around(
        json!([retry(policies, json!({ "assign": { "tries": "{{ vars.tries + 'x' }}" } }))]),
        json!({ "value": "{{ vars.tries }}", "failure": failing }),
    )
    .vars(json!({ "tries": "", "codes": codes }))
}

pub(crate) fn backing_off(backoff: Value, draw: f64, failures: usize) -> Vec<f64> {
    let codes = vec!["A.B"; failures];
    let policies = json!([{ "match": { "codes": ["*"] }, "attempts": 100, "backoff": backoff }]);
    failing_with(&codes, policies).draw(draw).run().waits
}
