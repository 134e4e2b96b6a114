//! The orders that flow, and what has to become of each of them: its Result, its jobs and its calls of the service
//! follow from its input alone.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The definition of all runs.
pub(crate) const DEFINITION: &str = include_str!("order.json");
/// Where the workers of this test find their jobs.
pub(crate) const QUEUE: &str = "flows";
/// How often the two Retry entries around jobs make an attempt, and how often the Loop runs.
const ATTEMPTS: u32 = 3;
const ROUNDS: u32 = 2;
/// The code of a failure that was planned.
pub(crate) const DOWN: &str = "Flows.Down";

/// What kind of a run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is charged, announced, and made in parts.
    Order,
    /// It sleeps until it is cancelled.
    Hold,
    /// It waits for a job that nobody has, until its time is over.
    Late,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) kind: Kind,
    /// How many attempts to charge it fail. As many as there are attempts: all of them.
    charge: u32,
    /// How often the service says that it is busy.
    busy: u32,
    /// Of each part, how many attempts fail in each round.
    parts: Vec<[u32; ROUNDS as usize]>,
}

impl Order {
    pub(crate) fn random(random: &mut fastrand::Rng) -> Self {
        let kind = match random.u8(..20) {
            0 => Kind::Hold,
            1 => Kind::Late,
            _ => Kind::Order,
        };
        let failing = |random: &mut fastrand::Rng| if random.u8(..4) == 0 { random.u32(1..=ATTEMPTS) } else { 0 };
        let charge = failing(random);
        let busy = if random.u8(..5) == 0 { random.u32(1..3) } else { 0 };
        let parts = (0..random.usize(..3)).map(|_| std::array::from_fn(|_| failing(random))).collect();
        Self { kind, charge, busy, parts }
    }

    pub(crate) fn input(&self, id: &str, url: &str) -> Value {
        let kind = match self.kind {
            Kind::Order => "order",
            Kind::Hold => "hold",
            Kind::Late => "late",
        };
        let parts: Vec<usize> = (0..self.parts.len()).collect();
        json!({ "id": id, "kind": kind, "url": url, "busy": self.busy, "parts": parts })
    }

    fn is_charged(&self) -> bool {
        self.kind == Kind::Order && self.charge < ATTEMPTS
    }

    /// Whether the job at this place fails for good.
    pub(crate) fn fails(&self, place: &str, at: &Value) -> bool {
        let number = |index: usize| at[index].as_u64().expect("a number") as usize;
        match place {
            "charge" => number(0) < self.charge as usize,
            "make" => number(2) < self.parts[number(0)][number(1)] as usize,
            _ => false,
        }
    }

    /// The Result that it has to end with.
    pub(crate) fn result(&self) -> Value {
        match self.kind {
            Kind::Hold => json!({ "type": "cancellation", "code": "System.Cancelled" }),
            Kind::Late => json!({ "type": "timeout", "code": "Provider.Middleware.Timeout.Exceeded" }),
            Kind::Order if !self.is_charged() => json!({
                "type": "error", "code": "Order.Refused",
                "details": { "attempts": ATTEMPTS, "tries": ATTEMPTS, "because": DOWN },
            }),
            Kind::Order => {
                let parts: Vec<Value> = (0..self.parts.len()).map(|part| self.result_of_part(part)).collect();
                let charged = result("charge", &json!([self.charge]));
                json!({ "type": "success", "value": { "charged": charged, "announced": self.busy, "parts": parts } })
            }
        }
    }

    fn result_of_part(&self, part: usize) -> Value {
        let failing = self.parts[part];
        let last = ROUNDS as usize - 1;
        match failing.contains(&ATTEMPTS) {
            true => DOWN.into(),
            false => result("make", &json!([part, last, failing[last]])),
        }
    }

    /// The jobs that it has to have, each of them once.
    pub(crate) fn jobs(&self) -> BTreeSet<String> {
        let mut jobs = BTreeSet::from([named("order-over", &json!([]))]);
        if self.kind == Kind::Late {
            jobs.extend([named("late", &json!([])), named("late-over", &json!([]))]);
        }
        if self.kind != Kind::Order {
            return jobs;
        }
        jobs.extend(attempts(self.charge).map(|attempt| named("charge", &json!([attempt]))));
        for (part, failing) in self.parts.iter().enumerate().filter(|_| self.is_charged()) {
            for (round, failing) in failing.iter().enumerate() {
                jobs.extend(attempts(*failing).map(|attempt| named("make", &json!([part, round, attempt]))));
                if *failing == ATTEMPTS {
                    break;
                }
            }
            jobs.insert(named("part-over", &json!([part])));
        }
        jobs
    }

    /// How often the service is called, each time with another key.
    pub(crate) fn calls(&self) -> u64 {
        if self.is_charged() { u64::from(self.busy) + 1 } else { 0 }
    }
}

/// The attempts of a Retry, counted from zero, of which so many fail.
fn attempts(failing: u32) -> std::ops::Range<u32> {
    0..(failing + 1).min(ATTEMPTS)
}

/// What a job at this place returns.
pub(crate) fn result(place: &str, at: &Value) -> Value {
    json!({ "place": place, "at": at })
}

/// A job of a run, by its place.
pub(crate) fn named(place: &str, at: &Value) -> String {
    format!("{place} {at}")
}

#[test]
fn jobs_and_results_follow_from_the_input() {
    let order = |kind, charge, parts| Order { kind, charge, busy: 1, parts };
    let names = |order: &Order| order.jobs().into_iter().collect::<Vec<_>>();
    let refused = order(Kind::Order, 3, vec![[0, 0]]);
    assert_eq!(names(&refused), ["charge [0]", "charge [1]", "charge [2]", "order-over []"]);
    assert_eq!((&refused.result()["code"], refused.calls()), (&json!("Order.Refused"), 0));
    let made = order(Kind::Order, 0, vec![[0, 1], [3, 0]]);
    let of_parts = ["make [0,0,0]", "make [0,1,0]", "make [0,1,1]", "make [1,0,0]", "make [1,0,1]", "make [1,0,2]"];
    let rest = ["order-over []", "part-over [0]", "part-over [1]"];
    assert_eq!(names(&made), [&["charge [0]"][..], &of_parts, &rest].concat());
    let parts = json!([{ "place": "make", "at": [0, 1, 1] }, DOWN]);
    assert_eq!((&made.result()["value"]["parts"], made.calls()), (&parts, 2));
    assert_eq!(names(&order(Kind::Late, 0, vec![])), ["late []", "late-over []", "order-over []"]);
}
