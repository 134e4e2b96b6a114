//! A program that does everything a program can do, and writes down what it was told.

use redrive_engine::{Child, Context, Effect, Engine, Input, Program, ProgramStep, Submission};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, ChildEnd, MessageBody, Signal};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the program.
pub(crate) const ERRAND: &str = "errand";
/// The queue of its jobs.
pub(crate) const QUEUE: &str = "errands";
/// The signals that it knows.
pub(crate) const CANCEL: &str = "cancel";
pub(crate) const NOTE: &str = "note";
/// The number of the first run that it starts, and of the job that it enqueues when its timer is due.
pub(crate) const FIRST_RUN: u64 = 1_000;
pub(crate) const LATE_JOB: u64 = 500;

/// What a run is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How many jobs, and how many runs with a job each.
    pub(crate) jobs: u64,
    pub(crate) runs: u64,
    /// When one more job is enqueued.
    pub(crate) timer_ms: Option<u64>,
}

/// What a run is to do, and what it was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errand {
    pub(crate) plan: Plan,
    /// How often it was told that a child ended, and that it was redriven.
    pub(crate) ends: BTreeMap<u64, u64>,
    pub(crate) redrives: BTreeMap<u64, u64>,
    /// The children that have not ended.
    open: BTreeSet<u64>,
    failed: BTreeSet<u64>,
    pub(crate) starts: u64,
    pub(crate) timers: u64,
    pub(crate) notes: u64,
    pub(crate) cancelled: bool,
}

impl Errand {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let Plan { jobs, runs, timer_ms } = self.plan;
        let counts = |counts: &BTreeMap<u64, u64>| json!(counts.iter().collect::<Vec<_>>());
        let state = json!({
            "jobs": jobs, "runs": runs, "timer_ms": timer_ms, "ends": counts(&self.ends),
            "redrives": counts(&self.redrives), "open": self.open, "failed": self.failed, "starts": self.starts,
            "timers": self.timers, "notes": self.notes, "cancelled": self.cancelled,
        });
        state.to_string().into_bytes()
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let state: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let number = |key: &str| state[key].as_u64().unwrap_or(0);
        let list = |key: &str| state[key].as_array().cloned().unwrap_or_default();
        let set = |key: &str| list(key).iter().filter_map(Value::as_u64).collect();
        let counts = |key: &str| {
            let pairs = list(key);
            pairs.iter().filter_map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?))).collect()
        };
        Ok(Self {
            plan: Plan { jobs: number("jobs"), runs: number("runs"), timer_ms: state["timer_ms"].as_u64() },
            ends: counts("ends"),
            redrives: counts("redrives"),
            open: set("open"),
            failed: set("failed"),
            starts: number("starts"),
            timers: number("timers"),
            notes: number("notes"),
            cancelled: state["cancelled"] == true,
        })
    }

    /// The jobs that it has enqueued by now.
    pub(crate) fn enqueued(&self) -> BTreeSet<u64> {
        (0..self.plan.jobs).chain((self.timers > 0).then_some(LATE_JOB)).collect()
    }

    fn waits_for_timer(&self) -> bool {
        self.plan.timer_ms.is_some() && self.timers == 0 && !self.cancelled
    }
}

/// The program.
pub(crate) struct Errands;

impl Program for Errands {
    fn kind(&self) -> &'static str {
        ERRAND
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let mut errand = Errand::read(context.state)?;
        let mut effects = Vec::new();
        match input {
            Input::Started => begin(&mut errand, context, &mut effects),
            Input::TimerDue => {
                errand.timers += 1;
                errand.open.insert(LATE_JOB);
                effects.push(enqueue(context, LATE_JOB));
            }
            Input::Message(message) => told(&mut errand, context, message, &mut effects),
            Input::JobRefused { why, .. } => return Err((*why).to_owned()),
        }
        let over = errand.open.is_empty() && !errand.waits_for_timer();
        match (context.ended, over) {
            (false, true) => {
                effects.push(Effect::Finish { succeeded: errand.failed.is_empty(), result: b"{}".to_vec() });
            }
            (true, false) => effects.push(Effect::Resume),
            _ => {}
        }
        Ok(ProgramStep { state: errand.write(), effects })
    }

    fn submission(&self, _: &Engine, document: &[u8], _: Moment) -> Result<Submission, String> {
        Ok(Submission::new(ERRAND, QUEUE, Blob::from(document)))
    }
}

fn begin(errand: &mut Errand, context: &Context<'_>, effects: &mut Vec<Effect>) {
    errand.starts += 1;
    let Plan { jobs, runs, timer_ms } = errand.plan;
    errand.open = (0..jobs).chain(FIRST_RUN..FIRST_RUN + runs).collect();
    effects.extend((0..jobs).map(|number| enqueue(context, number)));
    for number in FIRST_RUN..FIRST_RUN + runs {
        let state = Errand::new(Plan { jobs: 1, runs: 0, timer_ms }).write();
        effects.push(Effect::StartRun { child: Child::of(context, number), program: ERRAND, state });
    }
    let timer = timer_ms.map(|ms| context.now.after(Span::from_millis(ms as u32)));
    effects.push(Effect::Timer(timer));
}

fn enqueue(context: &Context<'_>, number: u64) -> Effect {
    Effect::Enqueue { child: Child::of(context, number), document: b"{}".to_vec() }
}

fn told(errand: &mut Errand, context: &Context<'_>, message: &MessageBody, effects: &mut Vec<Effect>) {
    match message {
        MessageBody::JobEnded { child, end, .. } => {
            *errand.ends.entry(*child).or_default() += 1;
            errand.open.remove(child);
            if !matches!(end, ChildEnd::Completed { .. }) {
                errand.failed.insert(*child);
            }
        }
        MessageBody::JobRedriven { child, .. } => {
            *errand.redrives.entry(*child).or_default() += 1;
            errand.failed.remove(child);
            errand.open.insert(*child);
        }
        MessageBody::RunEnded { child, .. } => {
            *errand.ends.entry(*child).or_default() += 1;
            errand.open.remove(child);
        }
        MessageBody::Signal(signal) if &*signal.name == CANCEL && !context.ended => {
            errand.cancelled = true;
            for number in &errand.open {
                let child = Child::of(context, *number);
                let signal = Signal { name: CANCEL.into(), body: Blob::default() };
                let is_run = *number >= FIRST_RUN;
                effects.push(if is_run { Effect::SignalRun(child, signal) } else { Effect::CancelJob(child) });
            }
            effects.push(Effect::Timer(None));
        }
        MessageBody::Signal(signal) => errand.notes += u64::from(&*signal.name == NOTE),
        MessageBody::Event { .. } => {}
    }
}
