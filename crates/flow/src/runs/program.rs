//! The program of flows that run.

use super::calls;
use super::state::FlowState;
use crate::{Answer, Definition, Effect as Told, Message, Start, StateError, Traced};
use redrive_engine::{Child, Context, Effect, Engine, Input, Program, ProgramStep, Submission};
use redrive_ojs::Limits;
use redrive_policy::Moment;
use redrive_store::MessageBody;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of the runs of flows.
pub const FLOW: &str = "flow.run";
/// The signal that cancels a flow.
pub const CANCEL: &str = "cancel";
/// How many transitions a run makes at once, before others have their turn.
const TRANSITIONS: usize = 5_000;
/// How many definitions are kept as they were read.
const READ: usize = 256;

/// The program of flows, with the limits of the jobs of its server. It keeps definitions as they were read, so that not
/// every step has to read them again; that changes nothing but the time that a step takes.
pub struct Flows {
    limits: Limits,
    read: Mutex<HashMap<Arc<str>, Arc<Definition>>>,
}

impl fmt::Debug for Flows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flows").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Flows {
    /// The program.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, read: Mutex::default() }
    }

    fn definition(&self, text: &str) -> Result<Arc<Definition>, String> {
        let known = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(text) {
            return Ok(Arc::clone(found));
        }
        let read = Definition::read(text).map_err(|problems| {
            let first = problems.first().map_or_else(String::new, ToString::to_string);
            format!("this version of the server cannot read the definition: {first}")
        })?;
        let (read, mut known) = (Arc::new(read), known());
        if known.len() >= READ {
            known.clear();
        }
        known.insert(text.into(), Arc::clone(&read));
        Ok(read)
    }
}

impl Program for Flows {
    fn kind(&self) -> &'static str {
        FLOW
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        Ok(self.steps(context, std::slice::from_ref(input))?.1)
    }

    /// The state is read and written once, however many calls have ended.
    fn steps(&self, context: &Context<'_>, inputs: &[Input<'_>]) -> Result<(usize, ProgramStep), String> {
        if context.ended {
            return Ok((inputs.len(), ProgramStep { state: context.state.to_vec(), effects: Vec::new() }));
        }
        let state = FlowState::read(context.state)?;
        let definition = self.definition(&state.text)?;
        let mut turn = Turn { definition: &definition, context, state, effects: Effects::default() };
        for input in inputs {
            turn.take(input)?;
        }
        let Turn { mut state, effects, .. } = turn;
        if effects.finish.is_some() {
            (state.text, state.machine) = (String::new(), None);
        }
        Ok((inputs.len(), ProgramStep { state: state.write(), effects: effects.listed() }))
    }

    fn submission(&self, engine: &Engine, document: &[u8], now: Moment) -> Result<Submission, String> {
        calls::of_document(engine, document, &self.limits, now)
    }

    /// Sleeps, gaps and deadlines are times of the wall clock.
    fn follows_wall_clock(&self) -> bool {
        true
    }
}

/// What a step does, put together of what each of its inputs does.
#[derive(Default)]
struct Effects {
    enqueued: BTreeMap<u64, Effect>,
    cancelled: Vec<Effect>,
    timer: Option<Moment>,
    finish: Option<Effect>,
}

impl Effects {
    fn listed(self) -> Vec<Effect> {
        let timer = Effect::Timer(self.timer).into();
        let last: Option<Effect> = self.finish.or(timer);
        self.enqueued.into_values().chain(self.cancelled).chain(last).collect()
    }
}

/// One call of the program.
struct Turn<'c> {
    definition: &'c Definition,
    context: &'c Context<'c>,
    state: FlowState,
    effects: Effects,
}

impl Turn<'_> {
    fn take(&mut self, input: &Input<'_>) -> Result<(), String> {
        if self.effects.finish.is_some() {
            return Ok(());
        }
        match input {
            Input::Started => {
                let start = Start {
                    id: self.context.id.to_string(),
                    input: self.state.input.clone(),
                    arguments: self.state.arguments.clone(),
                };
                let machine = self.definition.start(start, self.context.created).map_err(unreadable)?;
                self.state.machine = Some(machine);
                self.state.begun_us = self.context.created.micros();
                self.state.events.tell(self.context.now, "run.started");
                self.go_on(Message::Continue)
            }
            Input::Message(MessageBody::JobEnded { child, id, end, .. }) => {
                let provider = self.state.machine.as_ref().and_then(|state| self.definition.awaited(state, *child));
                match provider {
                    Some(provider) => self.answer(calls::answer(*child, provider, &id.to_string(), end)),
                    None => Ok(()),
                }
            }
            Input::JobRefused { child, why } => {
                let provider = self.state.machine.as_ref().and_then(|state| self.definition.awaited(state, *child));
                match provider {
                    Some(provider) => self.answer(calls::refused(*child, provider, why)),
                    None => Ok(()),
                }
            }
            Input::Message(MessageBody::Signal(signal)) if &*signal.name == CANCEL && !self.state.cancelled => {
                self.state.cancelled = true;
                self.state.events.tell(self.context.now, "run.cancelling");
                self.go_on(Message::Cancel)
            }
            // A wall clock that was set changes when the timer is due.
            Input::TimerDue | Input::Message(MessageBody::Signal(_)) => self.go_on(Message::Continue),
            Input::Message(
                MessageBody::JobRedriven { .. } | MessageBody::RunEnded { .. } | MessageBody::Event { .. },
            ) => Ok(()),
        }
    }

    fn answer(&mut self, answer: Answer) -> Result<(), String> {
        self.go_on(Message::Answer(Box::new(answer)))
    }

    fn go_on(&mut self, message: Message) -> Result<(), String> {
        let Some(machine) = self.state.machine.take() else { return Err("the run has no state".to_owned()) };
        let (now, seed) = (self.context.now, self.context.seed);
        let traced = self.definition.trace(machine, message, now, seed, TRANSITIONS).map_err(unreadable)?;
        let Traced { state, effects, notes } = traced;
        self.state.machine = Some(state);
        self.state.events.skip(notes.dropped());
        let (context, state) = (self.context, &mut self.state);
        let begun = state.child(0);
        for note in notes {
            state.retries.note(&note);
            state.events.note(&note, |call| context.job_id(Child { number: call, ..begun }).to_string());
        }
        self.effects.timer = None;
        for effect in effects {
            self.carry_out(effect);
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Told) {
        let child = |number| self.state.child(number);
        match effect {
            Told::Dispatch(dispatch) => {
                let (number, document) = (dispatch.call, calls::document(*dispatch));
                self.effects.enqueued.insert(number, Effect::Enqueue { child: child(number), document });
            }
            // What has not been enqueued yet never is.
            Told::Withdraw(number) => {
                if self.effects.enqueued.remove(&number).is_none() {
                    self.effects.cancelled.push(Effect::CancelJob(child(number)));
                }
            }
            Told::Timer(at) => self.effects.timer = Some(at),
            Told::Finish(outcome) => {
                let result = outcome.to_value().to_string().into_bytes();
                self.effects.finish = Some(Effect::Finish { succeeded: outcome.is_success(), result });
            }
        }
    }
}

fn unreadable(error: StateError) -> String {
    error.to_string()
}
