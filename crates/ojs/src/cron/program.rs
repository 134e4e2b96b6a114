//! The program of schedules. Its timer is the next slot; each slot is one job, whose number is the slot.

use super::state::{Refused, State};
use super::{Definition, Overlap, Schedule, events};
use crate::json::Members;
use crate::{Limits, submission};
use redrive_engine::{
    CLOCK_STEPPED, Child, Context, Effect, Engine, Input, Program, ProgramStep, RunLimits, Submission,
};
use redrive_policy::Moment;
use redrive_store::{MessageBody, Signal};

/// The name under which runs of schedules are stored.
pub const KIND: &str = "cron";

/// What a schedule can be told.
pub mod signals {
    /// It ends.
    pub const DELETE: &str = "delete";
    /// It is due again, from now on.
    pub const ENABLE: &str = "enable";
    /// It is not due until it is enabled.
    pub const DISABLE: &str = "disable";
    /// It becomes another, which is the body of the signal.
    pub const REPLACE: &str = "replace";
}

/// Why a slot is skipped whose job would overlap.
const OVERLAP: &str = "overlap_prevention";
/// How many jobs that have not ended are remembered. More than one is there only where old ones were redriven.
const MOST_ALIVE: usize = 100;
/// How many slots wait for the job before them; those that come then are skipped.
const MOST_WAITING: usize = 100;

/// The program of schedules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cron {
    limits: Limits,
}

impl Cron {
    /// The program, with the limits that its jobs have.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits }
    }
}

impl Program for Cron {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        if context.ended {
            return Ok(ProgramStep { state: context.state.to_vec(), effects: Vec::new() });
        }
        let mut turn = Turn::new(*context)?;
        match input {
            Input::Started => turn.start(),
            Input::TimerDue => turn.due()?,
            Input::JobRefused { child, why } => turn.refused(*child, why)?,
            Input::Message(MessageBody::JobEnded { child, .. }) => turn.ended(*child)?,
            Input::Message(MessageBody::JobRedriven { child, .. }) => turn.redriven(*child),
            Input::Message(MessageBody::Signal(signal)) => turn.signal(signal)?,
            Input::Message(MessageBody::RunEnded { .. } | MessageBody::Event { .. }) => {}
        }
        turn.done()
    }

    fn submission(&self, engine: &Engine, document: &[u8], now: Moment) -> Result<Submission, String> {
        let text = std::str::from_utf8(document).map_err(|error| error.to_string())?;
        let members = Members::parse(text).map_err(|error| error.to_string())?;
        submission(engine, &members, None, &self.limits, now).map_err(crate::Invalid::message)
    }

    fn follows_wall_clock(&self) -> bool {
        true
    }

    /// A schedule has no last job.
    fn most_children(&self, _: &RunLimits) -> u64 {
        u64::MAX
    }
}

/// One call of the program.
struct Turn<'c> {
    context: Context<'c>,
    state: State,
    schedule: Schedule,
    now: Moment,
    effects: Vec<Effect>,
    deleted: bool,
}

impl<'c> Turn<'c> {
    fn new(context: Context<'c>) -> Result<Self, String> {
        let state = State::read(context.state)?;
        let schedule = state.definition.schedule()?;
        Ok(Self { context, state, schedule, now: context.now, effects: Vec::new(), deleted: false })
    }

    /// The state, and the timer, which is set anew at each call: its time by the clock of the store may have changed.
    fn done(mut self) -> Result<ProgramStep, String> {
        if !self.deleted {
            self.effects.push(Effect::Timer(self.state.slots.next()));
        }
        Ok(ProgramStep { state: self.state.written()?, effects: self.effects })
    }

    fn start(&mut self) {
        self.state.slots.count_from(self.now);
        self.plan();
    }

    fn signal(&mut self, signal: &Signal) -> Result<(), String> {
        match &*signal.name {
            signals::DELETE => {
                self.deleted = true;
                self.state.slots.clear();
                self.effects.push(Effect::Finish { succeeded: true, result: b"{}".to_vec() });
            }
            signals::ENABLE | signals::DISABLE => {
                self.state.definition.enabled = &*signal.name == signals::ENABLE;
                self.plan();
            }
            signals::REPLACE => self.replace(&signal.body)?,
            CLOCK_STEPPED => self.clock_stepped()?,
            // From a later version; there is nothing to be done about it.
            _ => {}
        }
        Ok(())
    }

    fn replace(&mut self, body: &[u8]) -> Result<(), String> {
        let new: Definition = serde_json::from_slice(body).map_err(|error| format!("a new definition: {error}"))?;
        let old = &self.state.definition;
        if new.expression != old.expression || new.timezone != old.timezone {
            self.schedule = new.schedule()?;
            self.state.slots.count_from(self.now);
        }
        if new.overlap != Overlap::Enqueue {
            for slot in std::mem::take(&mut self.state.waiting) {
                self.skip(slot, "schedule_replaced");
            }
        }
        self.state.definition = new;
        self.plan();
        Ok(())
    }

    /// The wall clock was set. Where slots were passed over, the last of them is due now.
    fn clock_stepped(&mut self) -> Result<(), String> {
        self.state.slots.clock_stepped(self.now);
        if self.state.slots.next().is_some_and(|next| next <= self.now) {
            return self.due();
        }
        self.plan();
        Ok(())
    }

    fn plan(&mut self) {
        if self.state.definition.enabled {
            self.state.slots.plan(&self.schedule, self.now);
        } else {
            self.state.slots.clear();
        }
    }

    /// A slot is due, unless the timer came early.
    fn due(&mut self) -> Result<(), String> {
        let Some(slot) = self.state.slots.take(&self.schedule, self.now).map(Moment::micros) else { return Ok(()) };
        match self.state.definition.overlap {
            Overlap::Skip if !self.state.alive.is_empty() => self.skip(slot, OVERLAP),
            Overlap::Enqueue if !self.state.alive.is_empty() || !self.state.waiting.is_empty() => {
                if self.state.waiting.len() < MOST_WAITING {
                    self.state.waiting.push_back(slot)
                } else {
                    self.skip(slot, OVERLAP)
                }
            }
            Overlap::CancelPrevious => {
                let cancelled = self.state.alive.iter().map(|slot| Effect::CancelJob(child(*slot)));
                self.effects.extend(cancelled);
                return self.enqueue(slot);
            }
            Overlap::Skip | Overlap::Allow | Overlap::Enqueue => return self.enqueue(slot),
        }
        Ok(())
    }

    fn skip(&mut self, slot: i64, reason: &str) {
        self.state.skipped += 1;
        self.state.last_skipped = Some(slot);
        let job = self.state.alive.last().map(|alive| self.context.job_id(child(*alive)));
        let event = events::skipped(&self.state.definition, Moment::from_micros(slot), reason, job);
        self.effects.push(Effect::Emit { event, with: None });
    }

    fn enqueue(&mut self, slot: i64) -> Result<(), String> {
        let document = self.state.definition.document(Moment::from_micros(slot), self.now)?;
        let child = child(slot);
        self.effects.push(Effect::Enqueue { child, document });
        let job = self.context.job_id(child);
        let event = events::triggered(&self.state.definition, Moment::from_micros(slot), job);
        self.effects.push(Effect::Emit { event, with: Some(child.number) });
        self.state.runs += 1;
        self.state.last_run = Some(self.now.micros());
        self.alive(slot);
        Ok(())
    }

    /// A job of this slot has not ended. Where jobs may overlap, that makes no difference.
    fn alive(&mut self, slot: i64) {
        if self.state.definition.overlap != Overlap::Allow {
            self.state.alive.insert(slot);
            while self.state.alive.len() > MOST_ALIVE {
                self.state.alive.pop_first();
            }
        }
    }

    fn ended(&mut self, number: u64) -> Result<(), String> {
        self.state.alive.remove(&slot(number));
        let next = if self.state.alive.is_empty() { self.state.waiting.pop_front() } else { None };
        next.map_or(Ok(()), |waiting| self.enqueue(waiting))
    }

    fn redriven(&mut self, number: u64) {
        self.alive(slot(number));
    }

    fn refused(&mut self, number: u64, why: &str) -> Result<(), String> {
        self.state.runs = self.state.runs.saturating_sub(1);
        self.state.last_error = Some(Refused { slot: slot(number), why: why.to_owned() });
        let event = events::refused(&self.state.definition, Moment::from_micros(slot(number)), why);
        self.effects.push(Effect::Emit { event, with: None });
        self.ended(number)
    }
}

/// The job of a slot. Its number is the slot in milliseconds: all slots are whole ones.
fn child(slot: i64) -> Child {
    Child { number: u64::try_from(slot / 1_000).unwrap_or(0), at: Moment::from_micros(slot) }
}

/// The slot of a job.
fn slot(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).saturating_mul(1_000)
}
