//! Flows made at random, each from a seed that a failure prints. They are interrupted after every single transition,
//! go on from the stored state, and must end as they do without interruptions.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;
mod random;

use harness::START;
use random::Made;
use redrive_flow::{Definition, Effect, Message, Start, State};
use redrive_policy::{Draw, Moment};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many flows are made. One seed can be repeated with REDRIVE_FLOW_SEED.
const FLOWS: u64 = 300;
/// How many transitions a flow may need.
const MOST: usize = 200_000;

fn seeds() -> Vec<u64> {
    match std::env::var("REDRIVE_FLOW_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..FLOWS).collect(),
    }
}

/// Says from which seed a flow was made, where a test fails.
struct Seed<'m>(u64, &'m Made);

impl Drop for Seed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed, made) = self;
            eprintln!("REDRIVE_FLOW_SEED={seed}; cancelled after {:?} ms: {:#}", made.cancelled_after, made.definition);
        }
    }
}

fn each(mut test: impl FnMut(&Definition, &Made)) {
    for seed in seeds() {
        let made = random::flow(seed);
        let said = Seed(seed, &made);
        let definition = Definition::read(&made.definition.to_string());
        test(&definition.unwrap_or_else(|problems| panic!("{problems:#?}")), &made);
        drop(said);
    }
}

/// The random number of a moment, so that all ways to the end draw alike.
fn draw_at(now: Moment) -> Draw {
    Draw::from_bits((now.micros() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

const fn message(cancels: bool) -> Message {
    if cancels { Message::Cancel } else { Message::Continue }
}

/// Runs a flow to its end with this step, and returns its Result and the moments at which it went on.
fn to_the_end(
    definition: &Definition,
    made: &Made,
    mut step: impl FnMut(State, bool, Moment) -> (State, Vec<Effect>),
) -> (Value, Vec<i64>) {
    let start = Start { id: "e".to_owned(), input: json!(1), arguments: json!({}) };
    let mut state = definition.start(start, START).expect("a state");
    let (mut now, mut moments) = (START, Vec::new());
    let mut cancel = made.cancelled_after.map(|ms| Moment::from_micros(START.micros() + ms * 1_000));
    for _ in 0..MOST {
        let (next, effects) = step(state, cancel.take_if(|at| *at <= now).is_some(), now);
        state = next;
        match effects.as_slice() {
            [Effect::Finish(result)] => return (result.to_value(), moments),
            [Effect::Timer(at)] => {
                let at = cancel.map_or(*at, |cancel| cancel.min(*at)).max(now);
                if at > now {
                    moments.push(at.micros());
                }
                now = at;
            }
            other => panic!("the flow waits for nothing: {other:?}"),
        }
    }
    panic!("the flow does not end");
}

fn uninterrupted(definition: &Definition, made: &Made, transitions: usize) -> (Value, Vec<i64>) {
    to_the_end(definition, made, |state, cancels, now| {
        definition.step(state, message(cancels), now, draw_at(now), transitions).expect("a step")
    })
}

/// A crash between any two transitions changes nothing: not the Result, and not the moment at which anything happens,
/// which shows each attempt, each cleanup and each delay that was drawn. A step that is lost is computed again alike.
#[test]
fn a_flow_that_is_interrupted_after_every_transition_ends_as_if_it_were_not() {
    each(|definition, made| {
        let interrupted = to_the_end(definition, made, |state, cancels, now| {
            let stored = serde_json::to_string(&state).expect("a state can be written");
            let step = || {
                let read: State = serde_json::from_str(&stored).expect("a state can be read");
                definition.step(read, message(cancels), now, draw_at(now), 1).expect("a step")
            };
            let (lost, again) = (step(), step());
            assert_eq!(lost, again);
            again
        });
        assert_eq!(uninterrupted(definition, made, 1), interrupted);
        if !made.draws {
            assert_eq!(uninterrupted(definition, made, MOST), interrupted, "in one step for each moment");
        }
    });
}

/// A flow that is called before its time waits for the moment that it was to wait for: nothing is drawn again, nothing
/// is counted, nothing runs.
#[test]
fn a_flow_that_is_called_early_does_not_change() {
    each(|definition, made| {
        let called_early = to_the_end(definition, made, |state, cancels, now| {
            let (mut state, effects) = definition.step(state, message(cancels), now, draw_at(now), 1).expect("a step");
            if let [Effect::Timer(at)] = effects[..]
                && at > now
            {
                for part in 1..3 {
                    let early = Moment::from_micros(now.micros() + (at.micros() - now.micros()) * part / 3);
                    let again = definition.step(state.clone(), Message::Continue, early, draw_at(early), 9);
                    let (again, timer) = again.expect("a step");
                    assert_eq!((&again, timer), (&state, effects.clone()));
                    state = again;
                }
            }
            (state, effects)
        });
        assert_eq!(uninterrupted(definition, made, 1), called_early);
    });
}

/// The cleanup of every Finally that was entered runs once, whatever happens to the flow.
#[test]
fn every_cleanup_runs_once() {
    let mut cleanups = 0;
    each(|definition, made| {
        // By task and depth: how often the cleanup of the entry that stands there was started.
        let open = std::cell::RefCell::new(BTreeMap::<(String, usize), usize>::new());
        to_the_end(definition, made, |state, cancels, now| {
            let before = stacks(&state);
            let (next, effects) = definition.step(state, message(cancels), now, draw_at(now), 1).expect("a step");
            let after = stacks(&next);
            let mut open = open.borrow_mut();
            for (task, stack) in &after {
                for (depth, record) in stack.iter().enumerate() {
                    let entry = &record["Entry"];
                    if entry["own"] == "Finally" && entry["established"] == true {
                        open.entry((task.clone(), depth)).or_default();
                    }
                    let had = before.get(task).and_then(|stack| stack.get(depth));
                    if record.get("Cleanup").is_some() && had.is_none_or(|had| had.get("Cleanup").is_none()) {
                        *open.get_mut(&(task.clone(), depth - 1)).expect("its entry is established") += 1;
                        cleanups += 1;
                    }
                }
            }
            open.retain(|(task, depth), started| {
                let there = after.get(task).is_some_and(|stack| stack.len() > *depth);
                assert!(*started <= 1, "a cleanup was repeated");
                assert!(there || *started == 1, "a cleanup was lost");
                there
            });
            (next, effects)
        });
        assert!(open.borrow().is_empty());
    });
    assert!(cleanups > 0 || seeds().len() == 1, "the flows had no cleanups");
}

/// The stacks of the tasks, as they are stored.
fn stacks(state: &State) -> BTreeMap<String, Vec<Value>> {
    let stored = serde_json::to_value(state).expect("a state can be written");
    let tasks = stored["tasks"].as_object().expect("tasks");
    let stack = |task: &Value| task["stack"].as_array().cloned().unwrap_or_default();
    tasks.iter().map(|(id, task)| (id.clone(), stack(task))).collect()
}
