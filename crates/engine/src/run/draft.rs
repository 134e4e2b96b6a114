//! The step of a run while it is being put together.

use super::{CLOCK_STEPPED, Child, Context, Effect, Input, Program, ProgramStep, RunLimits};
use crate::wall::{moved, shown_message};
use crate::{Engine, Submission};
use redrive_policy::{Entropy, Moment, Seeded};
use redrive_store::{Blob, JobId, MessageBody, NewJob, NewRun, Parent, PendingRun, Run, RunId, RunStep, Signal};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How many refused jobs a program is told of in one step, before its run fails: it could ask for others for ever.
const MOST_REFUSALS: usize = 1_000;

/// What a run does with its messages, up to now.
pub(super) struct Draft<'e> {
    engine: &'e Engine,
    program: &'e Arc<dyn Program>,
    run: Run,
    step: RunStep,
    /// The version of the program that wrote the state: an earlier one until the program has been called.
    version: u32,
    draws: Seeded,
    /// The time by the clock of the store, and how far the wall clock is ahead of it.
    now: Moment,
    ahead_us: i64,
    /// Jobs that cannot be enqueued, of which the program has to learn.
    refused: VecDeque<(u64, String)>,
    /// Jobs that are duplicates of others, by number: the store has refused a step with them.
    duplicates: &'e HashMap<u64, String>,
    /// Whether there may be more messages than were read.
    more_waits: bool,
}

impl<'e> Draft<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        program: &'e Arc<dyn Program>,
        run: Run,
        duplicates: &'e HashMap<u64, String>,
        now: Moment,
    ) -> Self {
        let step = RunStep { version: program.version(), ..RunStep::of(&run) };
        let draws = Seeded::new(run.seed ^ run.revision.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ahead_us = engine.wall().ahead_us;
        Self {
            engine,
            program,
            version: run.version,
            run,
            step,
            draws,
            now,
            ahead_us,
            refused: VecDeque::new(),
            more_waits: false,
            duplicates,
        }
    }

    /// Everything that there is for a run to do.
    pub(super) fn of(mut self, pending: &PendingRun) -> RunStep {
        self.more_waits = pending.messages.len() >= self.limits().messages;
        self.step.consumed = pending.messages.iter().map(|message| message.number).collect();
        match self.inputs(pending) {
            Ok(()) => self.step,
            Err(why) => failed(&self.run, self.step.consumed, &why),
        }
    }

    /// What a run does when the wall clock was set. Its messages stay for later.
    pub(super) fn clock_stepped(mut self) -> RunStep {
        let signal = Signal { name: CLOCK_STEPPED.into(), body: Blob::default() };
        match self.input(&[Input::Message(&MessageBody::Signal(signal))]) {
            Ok(_) => self.step,
            Err(why) => failed(&self.run, Vec::new(), &why),
        }
    }

    fn inputs(&mut self, pending: &PendingRun) -> Result<(), String> {
        let messages: Vec<Cow<'_, MessageBody>> =
            pending.messages.iter().map(|message| shown_message(&message.body, self.ahead_us)).collect();
        let start = (self.run.revision == 0).then_some(Input::Started);
        let inputs: Vec<Input<'_>> =
            start.into_iter().chain(messages.iter().map(|message| Input::Message(message))).collect();
        let mut rest = inputs.as_slice();
        while !rest.is_empty() {
            let taken = self.input(rest)?;
            rest = rest.get(taken.max(1)..).unwrap_or_default();
        }
        if self.step.timer.is_some_and(|timer| timer <= self.now) {
            self.step.timer = None;
            self.input(&[Input::TimerDue])?;
        }
        Ok(())
    }

    /// One call of the program, and what follows from it at once; how many of the inputs it has taken.
    fn input(&mut self, inputs: &[Input<'_>]) -> Result<usize, String> {
        let taken = self.call(inputs)?;
        let mut told = 0;
        while let Some((child, why)) = self.refused.pop_front() {
            told += 1;
            if told > MOST_REFUSALS {
                return Err(format!("more than {MOST_REFUSALS} jobs of one step cannot be enqueued; the last: {why}"));
            }
            self.call(&[Input::JobRefused { child, why: &why }])?;
        }
        Ok(taken)
    }

    fn call(&mut self, inputs: &[Input<'_>]) -> Result<usize, String> {
        let state = Arc::clone(&self.step.state);
        let context = Context {
            id: self.run.id,
            state: &state,
            version: self.version,
            created: moved(self.run.created, self.ahead_us),
            now: moved(self.now, self.ahead_us),
            draw: self.draws.draw(),
            ended: self.step.end.is_some(),
            seed: self.run.seed,
            more_waits: self.more_waits,
        };
        let (taken, ProgramStep { state, effects }) = self.program.steps(&context, inputs)?;
        let most = self.limits().state_bytes;
        if state.len() > most {
            return Err(format!("the state has {} bytes; at most {most} are allowed (runs.state_bytes)", state.len()));
        }
        self.step.state = Blob::from(state);
        self.version = self.step.version;
        effects.into_iter().try_for_each(|effect| self.effect(effect))?;
        Ok(taken)
    }

    fn effect(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::Enqueue { child, document } => self.enqueue(child, &document)?,
            Effect::CancelJob(child) => {
                let id = self.job_id(child);
                self.step.cancelled.push(id);
            }
            Effect::WithdrawJob(child) => {
                let id = self.job_id(child);
                self.step.withdrawn.push(id);
            }
            Effect::StartRun { child, program, state } => self.start(child, program, state)?,
            Effect::SignalRun(child, signal) => {
                let id = self.run_id(child);
                self.step.signals.push((id, signal));
            }
            Effect::Timer(at) => self.step.timer = at.map(|at| moved(at, -self.ahead_us)),
            Effect::Finish { succeeded, result } => {
                self.step.end = Some((succeeded, Blob::from(result)));
                self.step.timer = None;
            }
            Effect::Resume => self.step.end = None,
            Effect::Listen(interest) => self.step.interest = interest.map(Arc::new),
            Effect::Emit { event, with } => {
                let refused = with.is_some_and(|child| self.refused.iter().any(|(number, _)| *number == child));
                self.step.events.extend(Some(event).filter(|_| !refused));
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, child: Child, document: &[u8]) -> Result<(), String> {
        if let Some(why) = self.duplicates.get(&child.number) {
            self.refused.push_back((child.number, why.clone()));
            return Ok(());
        }
        let now = moved(self.now, self.ahead_us);
        let submission = self.program.submission(self.engine, document, now);
        match submission.and_then(|submission| self.new_job(child, submission)) {
            Ok(job) => {
                self.step.jobs.push((child.number, job));
                self.check_children()
            }
            Err(why) => {
                self.refused.push_back((child.number, why));
                Ok(())
            }
        }
    }

    fn new_job(&self, child: Child, submission: Submission) -> Result<NewJob, String> {
        let submission = Submission { id: Some(self.job_id(child)), idempotency_key: None, ..submission };
        let mut ids = self.engine.new_ids(self.now);
        let job = self.engine.new_job(submission, &mut ids).map_err(|error| error.to_string())?;
        Ok(self.engine.stored_job(job))
    }

    fn start(&mut self, child: Child, program: &'static str, state: Vec<u8>) -> Result<(), String> {
        let known = self.engine.runs.program(program).ok_or_else(|| format!("there is no program \"{program}\""))?;
        let (depth, most) = (self.run.depth + 1, self.limits().depth);
        if depth > most {
            return Err(format!("the run is {depth} levels deep; at most {most} are allowed (runs.depth)"));
        }
        let id = self.run_id(child);
        self.step.runs.push(NewRun {
            id,
            program: program.into(),
            version: known.version(),
            state: Blob::from(state),
            key: None,
            parent: Some(Parent { run: self.run.id, child: child.number }),
            depth,
            // As hard to guess as that of the parent, and the same when the step is computed again.
            seed: self.run.seed.rotate_left(17) ^ child.number.wrapping_mul(0xd1b5_4a32_d192_ed03),
        });
        self.check_children()
    }

    fn check_children(&self) -> Result<(), String> {
        let (children, children_of_step) = (self.program.most_children(&self.limits()), self.limits().children_of_step);
        let new = self.step.jobs.len() + self.step.runs.len();
        if new > children_of_step {
            return Err(format!("one step starts {new} jobs and runs; at most {children_of_step} are allowed"));
        }
        let all = self.run.children + new as u64;
        if all > children {
            return Err(format!("the run has {all} jobs and runs; at most {children} are allowed (runs.children)"));
        }
        Ok(())
    }

    fn limits(&self) -> RunLimits {
        self.engine.runs.limits
    }

    fn job_id(&self, child: Child) -> JobId {
        Engine::child_job(&self.run, child)
    }

    fn run_id(&self, child: Child) -> RunId {
        RunId::from_bytes(self.job_id(child).to_bytes())
    }
}

/// The step of a run that cannot go on.
pub(super) fn failed(run: &Run, consumed: Vec<u64>, why: &str) -> RunStep {
    let result = Blob::from(serde_json::json!({ "message": why }).to_string().into_bytes());
    RunStep { consumed, timer: None, end: Some((false, result)), ..RunStep::of(run) }
}
