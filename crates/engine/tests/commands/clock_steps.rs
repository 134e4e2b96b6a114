//! Runs whose timers stand for times of the wall clock learn that it was set.

use super::common::Seeded;
use super::harness::START;
use redrive_engine::{
    CLOCK_STEPPED, Clock, Context, Engine, Input, Layers, ManualClock, Program, ProgramStep, RunLimits, RunRequest,
    Settings, Step, Submission, sweeper,
};
use redrive_policy::Moment;
use redrive_store::{Blob, Memory, MessageBody, RunId};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Counts the steps of the clock that it learns of.
struct Counts {
    kind: &'static str,
    follows: bool,
}

impl Program for Counts {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let told = matches!(input, Input::Message(MessageBody::Signal(signal)) if &*signal.name == CLOCK_STEPPED);
        let state = context.state.iter().map(|count| count + u8::from(told)).collect();
        Ok(ProgramStep { state, effects: Vec::new() })
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("it has no jobs".to_owned())
    }

    fn follows_wall_clock(&self) -> bool {
        self.follows
    }
}

/// A clock that answers the steps that it is given.
struct Steps {
    elapsed: ManualClock,
    next: Mutex<Option<Step>>,
}

impl Clock for Steps {
    fn now(&self) -> Moment {
        self.elapsed.now()
    }

    fn check_wall(&self) -> Option<Step> {
        self.next.lock().expect("no panic").take()
    }
}

async fn start(engine: &Engine, program: &'static str) -> RunId {
    let state = Blob::from(&[0_u8][..]);
    engine.start_run(RunRequest { id: None, program, state, key: None }).await.expect("started").id
}

async fn told(engine: &Engine, run: RunId) -> u8 {
    engine.run(run).await.expect("stored").state[0]
}

#[tokio::test(start_paused = true)]
async fn they_learn_it_at_the_start_and_at_each_step() {
    let clock = Arc::new(Steps { elapsed: ManualClock::at(START), next: Mutex::new(None) });
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let engine = Engine::new(Arc::new(Memory::new()), Arc::clone(&clock) as _, Arc::new(Seeded::new(1)), settings);
    let follows = |kind, follows| Arc::new(Counts { kind, follows }) as Arc<dyn Program>;
    let programs = [follows("follows", true), follows("other", false)];
    let engine = Arc::new(engine.with_programs(programs, RunLimits::default()));
    let mut runs = Vec::new();
    for _ in 0..250 {
        runs.push(start(&engine, "follows").await);
    }
    let other = start(&engine, "other").await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let sweeper = tokio::spawn(sweeper::run(Arc::clone(&engine), async { drop(stopped.await) }, |_| {}));
    for count in 1..=3 {
        // Longer than the sweeper sleeps.
        tokio::time::sleep(Duration::from_secs(3)).await;
        for run in &runs {
            assert_eq!(told(&engine, *run).await, count);
        }
        *clock.next.lock().expect("no panic") = Some(Step { at: clock.now(), by_us: 5_000_000 });
    }
    assert_eq!(told(&engine, other).await, 0);
    drop(stop);
    sweeper.await.expect("it stops");
}
