//! Drives the program in memory, as an engine would. The wall clock and the clock of timers are apart: the first can
//! be set, the second only goes on.

use super::{at, shown};
use redrive_engine::{CLOCK_STEPPED, Child, Context, Effect, Input, Program, ProgramStep};
use redrive_ojs::cron::{Cron, CronJob, Definition, Overlap};
use redrive_policy::{Draw, Moment};
use redrive_store::{Blob, ChildEnd, JobId, MessageBody, OtherEvent, Run, RunId, Signal};
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) struct Driver {
    program: Cron,
    state: Vec<u8>,
    /// By the clock of timers.
    timer: Option<i64>,
    elapsed: i64,
    /// How far the wall clock is ahead of it.
    ahead: i64,
    pub(super) ended: bool,
    /// The slots of all jobs, in the order in which they were enqueued.
    pub(super) enqueued: Vec<String>,
    pub(super) cancelled: Vec<String>,
    /// Whether jobs are refused.
    pub(super) refuses: bool,
    /// What it told, and with which job.
    pub(super) told: Vec<(OtherEvent, Option<u64>)>,
}

pub(super) fn definition(expression: &str, overlap: Overlap) -> Definition {
    Definition {
        name: "test".to_owned(),
        expression: expression.to_owned(),
        timezone: "UTC".to_owned(),
        overlap,
        enabled: true,
        description: None,
        template: RawValue::from_string(r#"{"args":[],"type":"a.b"}"#.to_owned()).unwrap(),
    }
}

impl Driver {
    pub(super) fn new(expression: &str, overlap: Overlap, start: &str) -> Self {
        let state = CronJob::beginning(definition(expression, overlap)).unwrap();
        let mut driver = Self {
            program: Cron::default(),
            state,
            timer: None,
            elapsed: at(start).micros(),
            ahead: 0,
            ended: false,
            enqueued: Vec::new(),
            cancelled: Vec::new(),
            refuses: false,
            told: Vec::new(),
        };
        driver.call(&Input::Started);
        driver
    }

    pub(super) fn now(&self) -> Moment {
        Moment::from_micros(self.elapsed + self.ahead)
    }

    /// Lets time pass until the wall clock shows this; timers come when they are due.
    pub(super) fn wait_until(&mut self, time: &str) {
        let end = at(time).micros() - self.ahead;
        while let Some(timer) = self.timer.filter(|timer| *timer <= end) {
            self.elapsed = self.elapsed.max(timer);
            self.timer = None;
            self.call(&Input::TimerDue);
        }
        self.elapsed = self.elapsed.max(end);
    }

    /// Nobody calls the program until the wall clock shows this.
    pub(super) fn sleep_until(&mut self, time: &str) {
        self.elapsed = at(time).micros() - self.ahead;
    }

    /// Sets the wall clock, of which the program is not told.
    pub(super) fn set_clock(&mut self, time: &str) {
        self.ahead = at(time).micros() - self.elapsed;
    }

    /// Sets the wall clock, and tells the program.
    pub(super) fn step_clock(&mut self, time: &str) {
        self.set_clock(time);
        self.signal(CLOCK_STEPPED, b"{}");
    }

    pub(super) fn signal(&mut self, name: &str, body: &[u8]) {
        let signal = Signal { name: name.into(), body: Blob::from(body) };
        self.call(&Input::Message(&MessageBody::Signal(signal)));
    }

    /// The job of a slot ends.
    pub(super) fn end(&mut self, slot: &str) {
        let (child, id) = (number(slot), JobId::new(at(slot), 0));
        let end = ChildEnd::Completed { result: None };
        self.call(&Input::Message(&MessageBody::JobEnded { child, id, generation: 0, end }));
    }

    /// The job of a slot had ended, and is redriven.
    pub(super) fn redrive(&mut self, slot: &str) {
        let (child, id) = (number(slot), JobId::new(at(slot), 0));
        self.call(&Input::Message(&MessageBody::JobRedriven { child, id, generation: 1 }));
    }

    /// The schedule as it is answered.
    pub(super) fn shown(&self) -> Value {
        let mut out = Vec::new();
        CronJob::of(&self.run()).unwrap().push(&mut out);
        serde_json::from_slice(&out).unwrap()
    }

    pub(super) fn next(&self) -> Value {
        self.shown()["next_run_at"].clone()
    }

    fn run(&self) -> Run {
        Run {
            id: RunId::new(self.now(), 0),
            program: self.program.kind().into(),
            version: self.program.version(),
            state: Blob::from(self.state.as_slice()),
            revision: 1,
            timer: None,
            key: None,
            parent: None,
            depth: 0,
            children: 0,
            seed: 0,
            created: self.now(),
            advanced: self.now(),
            end: None,
            interest: None,
        }
    }

    fn call(&mut self, input: &Input<'_>) {
        let state = self.state.clone();
        let context = Context {
            id: RunId::new(self.now(), 0),
            state: &state,
            version: self.program.version(),
            created: self.now(),
            now: self.now(),
            draw: Draw::from_bits(1),
            ended: self.ended,
            seed: 1,
            more_waits: false,
        };
        let step = self.program.step(&context, input).unwrap();
        assert_eq!(self.program.step(&context, input).unwrap(), step, "the same input gives the same step");
        let ProgramStep { state, effects } = step;
        self.state = state;
        let mut refused = Vec::new();
        for effect in effects {
            match effect {
                Effect::Enqueue { child, .. } if self.refuses => refused.push(child.number),
                Effect::Enqueue { child, document } => {
                    let document: Value = serde_json::from_slice(&document).unwrap();
                    let slot = shown(child.at);
                    assert_eq!(child, Child { number: number(&slot), at: at(&slot) });
                    assert_eq!(document["meta"]["cron_name"], "test");
                    self.enqueued.push(slot);
                }
                Effect::CancelJob(child) => self.cancelled.push(shown(child.at)),
                Effect::Timer(time) => self.timer = time.map(|time| time.micros() - self.ahead),
                Effect::Finish { succeeded: true, .. } => {
                    self.ended = true;
                    self.timer = None;
                }
                Effect::Emit { event, with } => self.told.push((event, with)),
                other => panic!("{other:?}"),
            }
        }
        for child in refused {
            self.call(&Input::JobRefused { child, why: "a test" });
        }
    }
}

fn number(slot: &str) -> u64 {
    u64::try_from(at(slot).micros() / 1_000).unwrap()
}
