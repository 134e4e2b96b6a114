//! The machine: a state, a message, the time and a random number in; the next state and effects out.
//!
//! It knows no clock, no randomness and no I/O. Each transition is small and works on the innermost record of one
//! task; a call of a flow, a middleware entry or a cleanup is a record on an explicit stack and never a call of the
//! host, so that the state can be stored between any two transitions and no input can overflow the host's stack.

mod arguments;
mod calls;
mod entries;
mod frames;
mod gather;
mod notes;
mod outside;
mod positions;
mod retry;
mod scope;
mod state;
mod steps;
mod trace;
mod unwind;

use crate::model::Definition;
use crate::result::{Failure, Outcome};
pub use notes::{Brief, Decided, Decision, Note, Notes, What};
pub use outside::{Answer, Dispatch, Provider};
pub use positions::{Position, Waits};
use redrive_policy::{Draw, Moment};
use serde_json::Value;
pub use state::State;
use state::{Control, FrameRecord, Record, Task, TaskId, VERSION, Vars};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
pub use trace::Traced;

/// How many transitions one step makes at most, unless the caller says otherwise. A flow that has more to do asks for
/// the next step at once.
pub const TRANSITIONS: usize = 100_000;

/// Why the machine is called.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The flow was started, or the time of its timer has come.
    Continue,
    /// The flow is to be cancelled: cleanups run, and nothing else.
    Cancel,
    /// A call that was dispatched has its Result. It counts as accepted, whatever deadline has passed meanwhile. An
    /// answer that the flow does not wait for any more changes nothing.
    Answer(Box<Answer>),
}

/// What happens besides the new state.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The flow waits until this moment, when it is to be called again. There is no other timer.
    Timer(Moment),
    /// A call leaves the machine. The state that goes with this effect has to be stored before that.
    Dispatch(Box<Dispatch>),
    /// The Result of this call is not wanted any more.
    Withdraw(u64),
    /// The flow has ended.
    Finish(Outcome),
}

/// A flow to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The id of the execution.
    pub id: String,
    /// The input of the root flow.
    pub input: Value,
    /// Its arguments: an object.
    pub arguments: Value,
}

/// Why a state cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateError {
    /// Another version wrote it.
    Version(u32),
    /// It was started with another definition.
    OtherDefinition,
    /// A document is nested too deeply.
    TooDeep,
    /// It contradicts itself.
    Damaged,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(found) => write!(f, "the state has version {found}; version {VERSION} is known"),
            Self::OtherDefinition => write!(f, "the state was started with another definition"),
            Self::TooDeep => {
                write!(
                    f,
                    "input and arguments have at most {} arrays and objects inside of each other",
                    crate::json::MAX_DEPTH
                )
            }
            Self::Damaged => write!(f, "the state is damaged: it contradicts itself"),
        }
    }
}

impl std::error::Error for StateError {}

impl Definition {
    /// A new execution of the root flow. Nothing has run yet.
    ///
    /// # Errors
    /// The input or the arguments are nested too deeply.
    pub fn start(&self, start: Start, now: Moment) -> Result<State, StateError> {
        let Start { id, input, arguments } = start;
        if [&input, &arguments].iter().any(|value| crate::result::depth(value) > crate::json::MAX_DEPTH) {
            return Err(StateError::TooDeep);
        }
        let frame = FrameRecord {
            flow: 0,
            input,
            arguments: Some(arguments),
            entered_at: now,
            vars: Vars::new(),
            failure: None,
        };
        let root = Task { parent: None, stack: vec![Record::Frame(frame)], control: Control::Start, pending: None };
        Ok(State {
            version: VERSION,
            fingerprint: self.fingerprint,
            id,
            entered_at: now,
            tasks: BTreeMap::from([(0, root)]),
            next_task: 1,
            next_step: 0,
            next_call: 0,
            next_retry: 1,
            outside: BTreeMap::new(),
            result: None,
        })
    }

    /// What the flow does next: at most `transitions` of them. The same arguments always give the same step.
    ///
    /// # Errors
    /// The state is not one that can go on with this definition.
    pub fn step(
        &self,
        state: State,
        message: Message,
        now: Moment,
        draw: Draw,
        transitions: usize,
    ) -> Result<(State, Vec<Effect>), StateError> {
        let traced = self.advance(state, message, now, (Draws::Of(draw), Notes::off()), transitions)?;
        Ok((traced.state, traced.effects))
    }

    fn advance(
        &self,
        state: State,
        message: Message,
        now: Moment,
        (draws, notes): (Draws, Notes),
        transitions: usize,
    ) -> Result<Traced, StateError> {
        if state.version != VERSION {
            return Err(StateError::Version(state.version));
        }
        if state.fingerprint != self.fingerprint {
            return Err(StateError::OtherDefinition);
        }
        let ready = state.tasks.iter().filter(|(_, task)| task.is_ready()).map(|(id, _)| *id).collect();
        let mut machine = Machine { definition: self, state, now, draws, drawn: 0, ready, outgoing: Vec::new(), notes };
        match message {
            // A task that had not finished its last step is interrupted where its time is over by now.
            Message::Continue => machine.fire_overdue(),
            Message::Cancel => {
                machine.fire_overdue();
                machine.interrupt(0, Failure::new("cancellation", "System.Cancelled"), state::Owner::Outside);
            }
            Message::Answer(answer) => machine.accept(*answer)?,
        }
        machine.run(transitions)?;
        let effects = machine.effects();
        Ok(Traced { state: machine.state, effects, notes: machine.notes })
    }
}

impl State {
    /// The Result, where the flow has ended.
    #[must_use]
    pub const fn result(&self) -> Option<&Outcome> {
        self.result.as_ref()
    }
}

/// A state while it makes a step.
struct Machine<'d> {
    definition: &'d Definition,
    state: State,
    now: Moment,
    draws: Draws,
    /// How many random numbers were drawn in this step.
    drawn: u64,
    /// Tasks that can go on.
    ready: BTreeSet<TaskId>,
    /// Calls that leave, and calls whose Results are not wanted any more.
    outgoing: Vec<Effect>,
    notes: Notes,
}

/// Where the random numbers of a step come from.
#[derive(Clone, Copy, Debug)]
enum Draws {
    /// The first is this one, and the others follow from it.
    Of(Draw),
    /// Each gap of the run has its own, in however many steps the run goes on.
    OfRun(u64),
}

impl Machine<'_> {
    fn run(&mut self, transitions: usize) -> Result<(), StateError> {
        for _ in 0..transitions {
            if self.state.result.is_some() {
                return Ok(());
            }
            match self.ready.pop_first() {
                Some(id) => self.transition(id)?,
                None if self.wake() => {}
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn effects(&mut self) -> Vec<Effect> {
        let mut effects = std::mem::take(&mut self.outgoing);
        let next = match &self.state.result {
            Some(result) => Some(Effect::Finish(result.clone())),
            None if !self.ready.is_empty() => Some(Effect::Timer(self.now)),
            None => self.next_moment().map(Effect::Timer),
        };
        effects.extend(next);
        effects
    }

    fn transition(&mut self, id: TaskId) -> Result<(), StateError> {
        let mut task = self.state.tasks.remove(&id).ok_or(StateError::Damaged)?;
        let control = std::mem::replace(&mut task.control, Control::Children);
        let done = match control {
            Control::Start => self.start(id, &mut task),
            Control::Rise(outcome) => self.rise(&mut task, outcome),
            Control::Unwind { failure, owner } => self.unwind(&mut task, failure, owner),
            Control::Until(_) | Control::Children | Control::Outside => None,
        };
        done.ok_or(StateError::Damaged)?;
        self.put_back(id, task);
        Ok(())
    }

    /// Stores a task again, or ends it where nothing is left of it.
    fn put_back(&mut self, id: TaskId, mut task: Task) {
        if task.stack.is_empty() {
            let outcome = match task.control {
                Control::Rise(outcome) => outcome,
                Control::Unwind { failure, .. } => Outcome::Failure(failure),
                _ => return,
            };
            match task.parent {
                Some((parent, index)) => self.deliver(parent, index, state::Slot::Ended(outcome)),
                None => {
                    self.notes.ended(self.now, &outcome);
                    self.state.result = Some(outcome);
                }
            }
            return;
        }
        if !task.unwinds()
            && let Some(failure) = task.pending.take()
        {
            task.control = Control::Unwind { failure, owner: state::Owner::Outside };
        }
        if task.is_ready() {
            self.ready.insert(id);
        }
        self.state.tasks.insert(id, task);
    }

    /// Starts the innermost record. `None` where the state contradicts itself.
    fn start(&mut self, id: TaskId, task: &mut Task) -> Option<()> {
        match task.stack.last()? {
            Record::Frame(_) => self.start_frame(task),
            Record::Entry(entry) if entry.established => {
                let (place, index, value) = (entry.place, entry.index + 1, entry.delivered.clone());
                self.note_attempt(task);
                self.descend(task, place, index, value)
            }
            Record::Entry(_) => self.on_entry(task),
            Record::Graph(_) => self.start_step(id, task),
            Record::Call(_) => self.start_call(id, task),
            Record::Gather(_) => self.advance_gather(id, task),
            Record::Cleanup(_) => self.start_cleanup(task),
        }
    }

    /// A Result rises to the innermost record.
    fn rise(&mut self, task: &mut Task, outcome: Outcome) -> Option<()> {
        match task.stack.last()? {
            Record::Frame(_) => self.end_frame(task, outcome),
            Record::Entry(_) => match outcome {
                Outcome::Success(value) => self.on_success(task, value),
                Outcome::Failure(failure) => self.on_failure(task, failure),
            },
            Record::Graph(_) => self.settle_step(task, outcome),
            Record::Call(_) => self.settle_call(task, outcome),
            Record::Cleanup(_) => self.end_cleanup(task, outcome),
            Record::Gather(_) => None,
        }
    }

    /// The random number of a gap.
    fn next_draw(&mut self, retry: u64, attempt: u32) -> Draw {
        self.drawn += 1;
        let (seed, number) = match self.draws {
            Draws::Of(draw) if self.drawn == 1 => return draw,
            Draws::Of(draw) => (draw.value().to_bits(), self.drawn),
            Draws::OfRun(seed) => (seed, retry << 32 | u64::from(attempt)),
        };
        let mut bits = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Draw::from_bits(bits ^ (bits >> 31))
    }
}
